"""Branches in the source: an else where one is due, and none where the condition may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk
from loopkit.codegen.c.branches import negation
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.reader import read_function

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
