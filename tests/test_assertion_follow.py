"""Subscripts that read temporaries, followed to the index arrays that were copied there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from seams import followed, parse_expression, to_text

import loopkit as lk

PREDICATED = "for i \n <int32> t = perm[i] {if=p[i] > 0} \n y[t] = x[i] {id=r, if=%s} \n end"


def kernel(text: str | list[str], domain: str = "{ [i, j]: 0 <= i, j < n }", **more: Any) -> Any:
    shapes = {"y": "n", "x": "n + 1", "z": "n"}
    data: list[Any] = [lk.GlobalArg(name, "float32", shape=s) for name, s in shapes.items()]
    data += [lk.GlobalArg(name, "int32", shape="n") for name in ("perm", "q")]
    data += [lk.GlobalArg("wide", "int64", shape="n"), lk.GlobalArg("p", "int32", shape="n")]
    data += more.pop("temporaries", [])
    used = [d for d in data if isinstance(d, lk.TemporaryVariable) or d.name in "".join(text)]
    return lk.make_kernel(domain, text, [*used, ...], **more)


def found(knl: lk.Kernel) -> set[str]:
    """What the indices of the write of ``r`` become."""
    statement = knl.statement_by_id["r"]
    return {to_text(followed(knl, statement, index)) for index in statement.write[1]}


ARRAY = [lk.TemporaryVariable("t", "int32", shape="n")]

FOLLOWED = {
    "scalar": ("<int32> t = perm[i] \n y[t] = x[i] {id=r}", {}, "perm[i]"),
    "with arithmetic": ("<int32> t = perm[i] \n y[2*t + i] = x[i] {id=r}", {}, "2*perm[i] + i"),
    "wider": ("<int64> t = perm[i] \n y[t] = x[i] {id=r}", {}, "perm[i]"),
    "two copies": (
        "<int32> s = perm[n - 1 - i] \n <int32> t = s \n y[t] = x[i] {id=r}",
        {},
        "perm[n - 1 - i]",
    ),
    "index of an index": (
        "<int32> s = q[i] \n <int32> t = perm[i] \n y[perm[s]] = x[t] {id=r}",
        {},
        "perm[q[i]]",
    ),
    "array": (["t[j] = perm[j]", "y[t[i]] = x[i] {id=r}"], {"temporaries": ARRAY}, "perm[i]"),
    "another loop over the same iname": (
        "for i \n t[i] = perm[i] \n end \n for i \n y[t[n - 1 - i]] = x[i] {id=r} \n end",
        {"temporaries": ARRAY},
        "perm[n - 1 - i]",
    ),
    "the reader's condition": (PREDICATED % "p[i] > 0", {}, "perm[i]"),
}

KEPT = {
    "not whole": "<int32> t = wide[i] \n y[t] = x[i] {id=r}",
    "computed": "<int32> t = perm[i]*perm[i] \n y[t] = x[i] {id=r}",
    "two writers": "<int32> t = perm[i] \n t = q[i] \n y[t] = x[i] {id=r}",
    "a sum": "<int32> t = sum(j, perm[j]) \n y[t] = x[i] {id=r}",
    "written later": (
        "for i \n <int32> t = q[i] {id=w} \n y[t] = x[i] {id=r} \n t = perm[i] \n end"
    ),
    "of an array that is written": "<int32> t = q[i] \n q[i] = perm[i] \n y[t] = x[i] {id=r}",
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_copies_are_followed(name: str) -> None:
    text, more, expected = FOLLOWED[name]
    assert found(kernel(text, **more)) == {expected}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_sure_copy_stays(name: str) -> None:
    knl = kernel(KEPT[name])
    statement = knl.statement_by_id["r"]
    assert followed(knl, statement, statement.write[1][0]) == statement.write[1][0]


def test_conditions_that_do_not_imply_the_copy() -> None:
    knl = kernel(PREDICATED % "p[i] > 0")
    reader = replace(knl.statement_by_id["r"], predicates=())
    assert followed(knl, reader, reader.write[1][0]) == reader.write[1][0]


def test_cells_of_earlier_iterations_stay() -> None:
    text = "for i \n t[i] = perm[i] \n y[t[i]] = x[i] {id=r} \n end"
    knl = kernel(text, "{ [i]: 0 <= i < n }", temporaries=ARRAY)
    assert found(knl) == {"perm[i]"}
    reader, earlier = knl.statement_by_id["r"], parse_expression("t[0]")
    assert followed(knl, reader, earlier) == earlier


def test_cells_that_the_copy_leaves_out_stay() -> None:
    domains = ["{ [j]: 0 <= j < n - 1 }", "{ [i]: 0 <= i < n }"]
    text = ["t[j] = perm[j]", "y[t[i - 1]] = x[i] {id=r, if=i > 0}"]
    knl = kernel(text, domains, temporaries=ARRAY)
    assert found(knl) == {"perm[i - 1]"}
    reader, whole = knl.statement_by_id["r"], parse_expression("t[i]")
    assert followed(knl, reader, whole) == whole


def test_fetches_are_followed() -> None:
    knl = kernel("y[perm[i]] = x[i] {id=r}", "{ [i]: 0 <= i < n }").split_iname("i", 16)
    knl = knl.add_prefetch("perm", ["i_inner"], default_tag=None)
    assert "y[perm_r[i_inner]]" in str(knl)
    assert found(knl) == {"perm[16*i_outer + i_inner]"}


def staged(rounds: int) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 12 }",
        "y[perm[i]] = x[i] + float32(perm[(i + 1) % 12]) {id=r}",
        [lk.GlobalArg("x, y, perm", shape=12), ...],
        dtypes={"x, y": "float32", "perm": "int32"},
    )
    knl = knl.assume_injective("perm").assume_within("perm", 0, 12)
    return knl.split_iname("i", 12 // rounds, outer_tag="g.0", inner_tag="l.0")


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("tag", ["l.auto", None])
def test_rounds_of_threads_are_followed(rounds: int, tag: str | None) -> None:
    """Each cell holds one element, whichever thread copied it in whichever round."""
    knl = staged(rounds).add_prefetch("perm[:]", default_tag=tag)
    length = 12 // rounds
    assert found(knl) == {f"perm[{length}*i_outer + i_inner]"}
    assert knl.prove().ok


def test_cells_that_hold_one_element_or_another_stay() -> None:
    """A cell that two instances fill with different elements, and loops that have ended."""
    text = [
        "for i \n for j \n t[i + j] = perm[j] {if=j < 2} \n end \n end",
        "for i \n y[t[i]] = x[i] {id=r} \n end",
    ]
    data = [lk.TemporaryVariable("t", "int32", shape="2*n")]
    knl = kernel("\n".join(text), temporaries=data, assumptions="n >= 2")
    assert found(knl) == {"t[i]"}
    summed = ["t[i + j] = perm[i + j]", "y[t[i]] = x[i] {id=r}"]
    assert found(kernel(summed, temporaries=data, owe_bounds=True)) == {"perm[i]"}
    last = "for i \n <int32> s = perm[i] \n end \n for i \n y[s + i] = x[i] {id=r} \n end"
    assert found(kernel(last, "{ [i]: 0 <= i < n }", assumptions="n >= 1", owe_bounds=True)) == {
        "s + i"
    }


@pytest.mark.host
def test_code_is_made_of_what_an_assertion_has_proven() -> None:
    """Threads that scatter to cells of their own do not wait for each other."""
    knl = lk.make_kernel(
        ["{ [b]: 0 <= b < n }", "{ [it]: b0 <= it < b1 }"],
        """
        for b
            <> b0 = starts[b]
            <> b1 = starts[b + 1]
            for it
                <> u = user[it]
                out[u] = x[b]
            end
        end
        """,
        [
            lk.GlobalArg("out", "int32", shape="m"),
            lk.GlobalArg("x", "int32", shape="n"),
            lk.GlobalArg("starts", "int32", shape="n + 1"),
            lk.GlobalArg("user", "int32", shape="m"),
            ...,
        ],
    )
    knl = knl.assume_increasing("starts").assume_injective("user")
    knl = knl.split_iname("b", 128, inner_tag="l.0", outer_tag="g.0")
    assert not knl.prove().findings
    starts, user = np.array([0, 3, 3, 5, 9], "i4"), np.array([8, 2, 0, 1, 3, 4, 7, 6, 5], "i4")
    given = {"x": np.arange(1, 5, dtype="i4"), "starts": starts, "user": user}
    out = knl.executor("host", order="random")(out=np.zeros(9, "i4"), **given)
    assert out.tolist() == [1, 3, 1, 3, 4, 4, 4, 4, 1]
