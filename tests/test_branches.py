"""Branches in the source: ``else`` where possible, and none where the condition may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden
from seams import ReadError, negation, read_function

import loopkit as lk

BRANCHES = """
    if x[i] > 1
        y[i] = 1
    elif x[i] > 0
        y[i] = x[i]
        z[i] = 2
    else
        y[i] = 0
    end
    """
SAME = """
    if x[i] > 0
        x[i] = 1 - x[i]
    else
        x[i] = 2 - x[i]
    end
    """


def scheduled(text: str, **more: Any) -> lk.Kernel:
    names = {n: "float32" for n in "xyz" if f"{n}[" in text}
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes=names, name="branches", **more)
    return knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def ifs_and_elses(knl: lk.Kernel) -> tuple[int, int]:
    source = str(knl.cuda())
    return source.count("if ("), source.count("else")


def test_else_stays_an_else(golden: Golden) -> None:
    knl = scheduled(BRANCHES)
    golden("else_branches.txt", str(knl.cuda()))
    assert knl.prove().ok
    assert knl.prove(text=True).ok


def test_elif_stands_on_the_line_of_its_else() -> None:
    """With and without braces, with and without a last ``else``; not where more stands there."""
    plain = "if x[i] > 1\n y[i] = 1\nelif x[i] > 0\n y[i] = 2\nelif x[i] > -1\n y[i] = 3\nend"
    several = plain.replace("y[i] = 3", "y[i] = 3\n z[i] = 4")
    inner = "if x[i] > 1\n y[i] = 1\nelse\n if x[i] > 0\n y[i] = 2\n end\n z[i] = 3\nend"
    both = "if x[i] > 1 and x[i] < 3\n y[i] = 1\nelif x[i] > 0\n y[i] = 2\nend"
    for text, heads in (
        (plain, ["else if (", "else if ("]),
        (several, ["} else if (", "} else if ("]),
        (inner, ["} else {"]),
        (both, ["else if ("]),
    ):
        knl = scheduled(text)
        lines = [line.strip() for line in str(knl.cuda()).splitlines()]
        found = [line for line in lines if "else" in line]
        assert [line[: len(head)] for line, head in zip(found, heads, strict=True)] == heads
        assert knl.prove().ok and knl.prove(text=True).ok
        x = np.resize(np.array([2, 0.5, -0.5, -2, np.nan], "f4"), 19)
        start = {name: np.zeros(19, "f4") for name in "yz" if name in knl.arg_by_name}
        out = knl(x=x, **start)
        y = out[0] if isinstance(out, tuple) else out
        third = 0 if text in (inner, both) else 3
        assert (y == np.select([x > 1, x > 0, x > -1], [1, 2, third])).all()


def test_branches_stand_inside_branches() -> None:
    """Each is asked once, and where what was asked first keeps it from being asked."""
    text = """
    if k[i] >= 0
        if x[k[i]] > 1
            y[i] = 1
        else
            y[i] = 2
        end
    else
        if x[i] > 0
            y[i] = 3
        else
            y[i] = 4
        end
    end
    """
    knl = scheduled(
        text, kernel_data=[lk.GlobalArg("k", "int32"), lk.GlobalArg("x", shape="n"), "..."]
    )
    assert ifs_and_elses(knl) == (4, 3)
    assert knl.assume_within("k", 0, "n").prove().ok
    k = np.resize(np.array([1, -1, 0], "i4"), 20)
    x = np.resize(np.array([0.5, 2, -1, 0, 3], "f4"), 20)
    due = np.where(k >= 0, np.where(x[k] > 1, 1, 2), np.where(x > 0, 3, 4))
    assert (knl(k=k, x=x) == due).all()


def test_no_condition_is_asked_where_another_keeps_it_away() -> None:
    """Each of two guards asks of ``x[k[i]]`` only where its own index is valid."""
    text = """
    y[i] = 1  {if=k[i] >= 0 and x[k[i]] > 1}
    y[i] = 2  {if=k[i] > 0 and not (x[k[i]] > 1)}
    """
    knl = scheduled(
        text, kernel_data=[lk.GlobalArg("k", "int32"), lk.GlobalArg("x", shape="n"), "..."]
    )
    assert ifs_and_elses(knl) == (2, 0)
    assert knl.assume_within("k", 0, "n").prove().ok
    k, x = np.array([-1, 1, 0], "i4"), np.array([2, 0, 0], "f4")
    run = knl.executor("host", sanitize=True)
    assert (run(k=k, x=x, y=np.zeros(3, "f4")) == [0, 2, 1]).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # What both ask last is valid behind what each asks in its own words.
        ("z[i] > 0 and k[i] >= 0 and x[k[i]] > 1", "not (z[i] > 0) and -1 < k[i] and x[k[i]] > 1"),
        ("z[i] > 0 and x[k[i]] > 1 and k[i] < 2", "not (z[i] > 0) and k[i] < 2 and x[k[i]] > 1"),
        # Several alternatives: behind the first only one of the two asks for it.
        ("z[i] > 0 and k[i] < 2 and x[k[i]] > 1", "not (z[i] > 0 and x[k[i]] > 1) and k[i] < 2"),
    ],
)
def test_what_two_branches_ask_is_not_asked_ahead_of_what_makes_it_valid(
    one: str, other: str
) -> None:
    knl = scheduled(
        f"y[i] = 1  {{if={one}}}\ny[i] = 2  {{if={other}}}",
        kernel_data=[lk.GlobalArg("k", "int32"), lk.GlobalArg("x", shape="n"), "..."],
    )
    k, x = np.array([0, 1, -5, 0, 1, 1], "i4"), np.array([0, 2, 3, 4, 5, 6], "f4")
    z = np.array([1, 1, -1, 1, 1, 1], "f4")
    if "k[i] >= 0" not in one:
        k[2], z[2] = 2_000_000_000, -1
    data = {"k": k, "x": x, "z": z}
    due = knl.executor("reference")(**data, y=np.zeros(6, "f4"))
    assert (knl.executor("host", sanitize=True)(**data, y=np.zeros(6, "f4")) == due).all()


@pytest.mark.parametrize("n", [0, 1, 15, 40])
@pytest.mark.parametrize("text", [BRANCHES, SAME])
def test_branches_compute_what_the_text_says(text: str, n: int) -> None:
    knl = scheduled(text)
    assert knl.prove().ok
    x = np.resize(np.array([-1, 0.5, 2, np.nan, -0.0, np.inf], "f4"), n)
    start = {name: np.zeros(n, "f4") for name in "yz" if name in knl.arg_by_name}
    due = {"x": x.copy(), **{k: v.copy() for k, v in start.items()}}
    knl.executor("reference")(**due)
    want = knl.executor("reference")(x=x.copy(), **{k: v.copy() for k, v in start.items()})
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order)(
            x=x.copy(), **{k: v.copy() for k, v in start.items()}
        )
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("y[i] = 1 {if=x[i] > 0}\ny[i] = 2 {if=not (x[i] > 0)}", 1),
        ("y[i] = 1 {if=not (x[i] > 0)}\ny[i] = 2 {if=x[i] > 0}", 1),
        ("y[i] = 1 {if=x[i] > 0}\ny[i] = 2 {if=x[i] <= 0}", 0),  # NaN is neither
        ("y[i] = 1 {if=x[i] > 0}\ny[i] = 2 {if=not (x[i] >= 0)}", 0),
        ("x[i] = 1 {if=x[i] > 0}\nx[i] = 2 {if=not (x[i] > 0)}", 0),  # asked anew
    ],
)
def test_neighbours_that_exclude_each_other(text: str, count: int) -> None:
    knl = scheduled(text)
    assert ifs_and_elses(knl)[1] == count
    assert knl.prove().ok
    assert knl.prove(text=True).ok


def test_other_loops_have_no_else_in_common() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        y[i] = 1 {if=x[i] > 0}
        z[j] = 2 {if=not (x[j] > 0)}
        """,
        dtypes={"x, y, z": "float32"},
    )
    assert ifs_and_elses(knl) == (2, 0)


def read(text: str) -> Any:
    head = 'extern "C" __global__ void __launch_bounds__(1)\n'
    head += "f(float *__restrict__ x, int const n)\n{\n"
    return read_function(head + text + "\n}\n", lambda line, comment: "s")


def test_an_else_reads_as_a_guard_of_its_own() -> None:
    body = read("    if (n > 0)\n        x[0] = 1.0f;\n    else\n        x[0] = 2.0f;").body
    assert len(body) == 2
    assert body[1].condition.operator == "!"
    assert body[1].condition.operand == body[0].condition


@pytest.mark.parametrize(
    "text",
    [
        "if (x[0] > 0.0f)\n x[0] = 1.0f;\nelse\n x[0] = 2.0f;",
        "if (n > 0) {\n __syncthreads();\n} else\n x[0] = 2.0f;",
        "if (n > 0)\n x[0] = 1.0f;\nelse\n x[0] = 2.0f;\nelse\n x[0] = 3.0f;",
        "else\n x[0] = 2.0f;",
    ],
)
def test_what_no_else_may_follow(text: str) -> None:
    with pytest.raises(ReadError):
        read(text)


def test_an_else_behind_a_condition_that_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The printer makes one of two guards, the first of which changes what the second asks."""
    text = "x[i] = 1 {if=x[i] > 0}\nx[i] = 2 {if=not (x[i] > 0)}"
    assert scheduled(text).prove(text=True).ok

    def pair(first: Any, second: Any) -> bool:
        return getattr(second, "condition", None) == negation(first.condition)

    monkeypatch.setattr("loopkit.codegen.c.printer.is_else", pair)
    faulty = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"x": "float32"}, name="faulty")
    assert "else" in str(faulty.cuda())
    with_else = faulty.prove(text=True)
    assert not with_else.ok
    assert "before 'else'" in str(with_else)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("if x[i] > 1 or x[i] < -1\n y[i] = 1\nelse\n y[i] = 2\nend", 1),
        ("if not (x[i] > 1 or x[i] < -1)\n y[i] = 1\nelse\n y[i] = 2\nend", 1),
        (
            "if x[i] > 1 or z[i] > 6\n y[i] = 1\nelif x[i] > 0 or z[i] > 4\n y[i] = 2\nend",
            1,
        ),
        ("if x[i] > 1 or x[i] < -1\n x[i] = 1\n y[i] = 1\nelse\n y[i] = 2\nend", 0),
    ],
)
def test_either_of_two_conditions_has_an_else(text: str, count: int) -> None:
    """``not (a or b)`` is taken apart in the kernel, and put together again in the source."""
    knl = scheduled(text)
    if count:
        assert ifs_and_elses(knl)[1] == count
        assert "else" in str(knl.cuda()) and "!(" not in str(knl.cuda()).split("else")[-1]
    assert knl.prove().ok, knl.prove()
    assert knl.prove(text=True).ok
    rng = np.random.default_rng(2)
    x = np.resize(np.array([2, 0.5, -0.5, -2, np.nan, 0], "f4"), 37)
    given = {"x": x, "z": rng.integers(0, 9, 37).astype("f4"), "y": np.zeros(37, "f4")}
    given = {name: a for name, a in given.items() if f"{name}[" in text}
    want = knl.executor("reference")(**{name: a.copy() for name, a in given.items()})
    for order in ("ascending", "random"):
        found = knl.executor("host", order=order)(**{n: a.copy() for n, a in given.items()})
        for one, two in zip(np.atleast_2d(found), np.atleast_2d(want), strict=True):
            np.testing.assert_array_equal(one, two)
