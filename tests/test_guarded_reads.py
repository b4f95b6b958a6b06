"""Reads that happen only where a condition within an expression, or around it, holds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import Change, check_change, guarded_reads
from seams import guard_conjuncts as conjuncts

import loopkit as lk


def make(text, domain="{ [i]: 0 <= i < n }", dtypes="x, y: float32", assumptions="n >= 1", data=()):
    given = dict(part.split(": ") for part in dtypes.split("; "))
    more = ([*data, ...],) if data else ()
    return lk.make_kernel(domain, text, *more, dtypes=given, assumptions=assumptions)


def tiled(knl):
    return knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")


STENCILS = {
    "two": "y[i] = if(i > 0, x[i - 1], 0) + if(i < n - 1, x[i + 1], 0)",
    "nested": "y[i] = if(i > 0, if(i < n - 1, x[i - 1] + x[i + 1], x[i - 1]),"
    " if(n > 1, x[i + 1], 0))",
    "and": "y[i] = if(i > 0 and x[i - 1] > 0, x[i - 1], 0)",
    "or": "y[i] = if(i == n - 1 or x[i + 1] < 0, 0, x[i])",
    "not": "y[i] = if(not (i == 0 or i == n - 1), x[i - 1]*x[i + 1], 1)",
    "max and min": "y[i] = if(max(i, 1) > 1, x[i - 2], 0) + if(min(i, n - 2) == i, x[i + 1], 0)",
    "blocks": "if i > 0\n y[i] = x[i - 1]\nelse\n y[i] = 3\nend",
    "predicate": "y[i] = if(i > 0, x[i - 1], 0) + x[i] {if=i < n - 1 and x[i + 1] > 0}",
    "convolution": "y[i] = sum(r, if(i + r >= 0 and i + r < n, x[i + r], 0))",
}


@pytest.mark.parametrize("name", STENCILS)
def test_what_is_not_read_need_not_be_staged(name):
    domain = "{ [i, r]: 0 <= i < n and -2 <= r <= 2 }" if "r," in STENCILS[name] else None
    shape = [lk.GlobalArg("x", shape="n"), lk.GlobalArg("y", shape="n")]
    knl = make(STENCILS[name], domain or "{ [i]: 0 <= i < n }", data=shape)
    staged = tiled(knl).add_prefetch("x", ["i_inner", "r"] if domain else ["i_inner"])
    assert staged.history[-1].verdict == "proven"
    assert staged.prove().ok
    for n in (1, 2, 3, 6):
        x = np.arange(1, n + 1, dtype=np.float32) * (-1) ** np.arange(n, dtype=np.float32)
        one, two = np.zeros((2, n), np.float32)
        knl.executor("reference")(x=x, y=one, n=n)
        staged.executor("reference")(x=x, y=two, n=n)
        assert np.array_equal(one, two), n


def test_staged_by_each_thread_alone():
    knl = make(STENCILS["two"]).split_iname("i", 4, outer_tag="g.0")
    assert knl.add_prefetch("x", "i_inner", default_tag=None).prove().ok


def test_corners_of_a_guarded_cross_are_no_special_case():
    """What lies between accesses is fetched with them, whether they are guarded or not."""
    cross = (
        "if(i > 0, x[i - 1, j], 0) + if(i < n - 1, x[i + 1, j], 0)"
        " + if(j > 0, x[i, j - 1], 0) + if(j < n - 1, x[i, j + 1], 0) + x[i, j]"
    )
    knl = make(f"y[i, j] = {cross}", "{ [i, j]: 0 <= i, j < n }")
    knl = knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
    knl = knl.split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")
    staged = knl.add_prefetch("x", "i_inner, j_inner")
    (fetch,) = (s for s in staged.statements if s.kind == "move")
    assert not any("dim_0 + x_dim_1" in str(p) for p in fetch.predicates)
    assert staged.prove().ok


@pytest.mark.parametrize(
    "text",
    [
        "f(j) := if(j > 0, x[j - 1], 0) + if(j < n - 1, x[j + 1], 0)\ny[i] = f(i)",
        "f(j) := 2*x[j]\ny[i] = if(i > 0, f(i - 1), 0) + if(i < n - 1, f(i + 1), 0)",
        "f(j) := if(j > 0 and x[j - 1] > 1, x[j - 1], 0)\ny[i] = if(i > 1, f(i - 1), f(i))",
    ],
)
def test_precompute(text):
    staged = tiled(make(text)).precompute("f", "i_inner")
    assert staged.history[-1].verdict == "proven"
    assert staged.prove().ok


def test_buffer():
    knl = make(
        "y[i, j] = if(j > 0, y[i, j - 1], x[i, j])", "{ [i, j]: 0 <= i < n and 0 <= j < 16 }"
    )
    assert knl.buffer_array("y", "j", default_tag=None).prove().ok


def test_only_what_is_read_is_staged():
    knl = make("y[i] = if(i < 2, x[i], 1)", "{ [i]: 0 <= i < 8 }", assumptions="")
    staged = knl.add_prefetch("x", "i", default_tag=None)
    (fetch,) = (s for s in staged.statements if s.kind == "move")
    assert len(staged.statement_domain(fetch).get_basic_sets()) == 1
    source = staged.cuda()
    assert "x_dim_0 < 2" in source or "x_dim_0 <= 1" in source


def test_data_may_decide_what_is_read():
    """Where data decide, the text promises that nothing outside of the array is read."""
    shape = [lk.GlobalArg("x", shape="n")]
    for text in ("y[i] = if(flag[i] > 0, x[i - 1], 0)", "y[i] = x[i - 1] {if=flag[i] > 0}"):
        knl = make(text, dtypes="x, y: float32; flag: int32", data=shape)
        assert tiled(knl).add_prefetch("x", "i_inner").history[-1].verdict == "proven"


def test_an_affine_part_counts_beside_data():
    texts = (
        "y[i] = if(i > 0 and flag[i] > 0, x[i - 1], 0)",
        "y[i] = if(flag[i] > 0 and i > 0, x[i - 1], 0)",
        "y[i] = x[i - 1] {if=flag[i] > 0 and i > 0}",
    )
    for text in texts:
        knl = make(text, dtypes="x, y: float32; flag: int32")
        assert [a.shape for a in knl.args if a.name == "x"] == [(prim.Variable("n") - 1,)]
        assert tiled(knl).add_prefetch("x", "i_inner").prove().ok


def test_threads_that_meet_only_where_nothing_is_read():
    knl = make(
        "x[i] = if(i >= n - m, x[i + m], 2.0)", dtypes="x: float32", assumptions="1 <= m <= n"
    )
    assert tiled(knl).prove().ok
    other = make(
        "x[i] = if(i >= n - m - 1, x[i + m], 2.0)", dtypes="x: float32", assumptions="1 <= m < n"
    )
    with pytest.raises(lk.RaceError):
        tiled(other)


def test_conjuncts():
    knl = make("y[i] = if(not (i == 0 or not i > 3) and x[i] > 0, x[i - 1], 0)")
    (guards,) = {g for n, i, g in guarded_reads(knl.statements[0]) if n == "x" and len(g) == 3}
    i = prim.Variable("i")
    assert guards[:2] == (prim.LogicalNot(i.eq(0)), i.gt(3))
    assert conjuncts(i.gt(3)) == (i.gt(3),)


# {{{ what would be wrong


def staged_two():
    knl = tiled(make(STENCILS["two"]))
    return knl, knl.add_prefetch("x", "i_inner")


def refused(before, after, statement):
    by_id = {**after.statement_by_id, statement.id: statement}
    changed = after.with_(statements=tuple(by_id.values()))
    moves = frozenset(s.id for s in changed.statements if s.kind == "move")
    with pytest.raises(lk.IllegalTransformError) as caught:
        check_change(before, Change(changed, moves=moves))
    return str(caught.value)


def test_a_cell_that_a_guard_lets_be_read_must_be_staged():
    before, after = staged_two()
    (fetch,) = (s for s in after.statements if s.kind == "move")
    i_outer = prim.Variable("i_outer")
    narrow = dataclasses.replace(fetch, predicates=(*fetch.predicates, i_outer.gt(0)))
    assert "nothing has written" in refused(before, after, narrow)


@pytest.mark.parametrize("bound", [-1, 0, 2])
def test_a_guard_stays_what_it_was(bound):
    """A wider guard reads what was not staged; a narrower one leaves reads out."""
    before, after = staged_two()
    (user,) = (s for s in after.statements if s.kind != "move")
    first, second = user.rhs.children
    other = prim.Comparison(first.condition.left, ">", bound)
    if bound == 0:
        first = prim.If(prim.LogicalNot(first.condition), first.then, first.else_)
    else:
        first = prim.If(other, first.then, first.else_)
    refused(before, after, dataclasses.replace(user, rhs=prim.Sum((first, second))))


def test_branches_stay_where_they_were():
    before, after = staged_two()
    (user,) = (s for s in after.statements if s.kind != "move")
    first, second = user.rhs.children
    swapped = prim.If(first.condition, second.then, first.else_)
    refused(before, after, dataclasses.replace(user, rhs=prim.Sum((swapped, second))))


def test_parts_of_a_condition_stay_in_order():
    """``a and b`` reads nothing in ``b`` where ``a`` is false; ``b and a`` does."""
    knl = tiled(make(STENCILS["and"]))
    staged = knl.add_prefetch("x", "i_inner")
    (user,) = (s for s in staged.statements if s.kind != "move")
    one, two = user.rhs.condition.children
    turned = prim.If(prim.LogicalAnd((two, one)), user.rhs.then, user.rhs.else_)
    refused(knl, staged, dataclasses.replace(user, rhs=turned))


# }}}


NESTED = {
    "if": "if p[i] >= 0\n if x[p[i]] > 1\n  x[p[i]] = -1\n else\n  x[p[i]] = 5\n end\nend",
    "elif": "if p[i] < 0\n p[i] = -5\nelif x[p[i]] > 1\n x[p[i]] = -1\nelse\n x[p[i]] = 5\nend",
    "in an else": "if p[i] < 0\n y[i] = 1\nelse\n if x[p[i]] > 1\n  x[p[i]] = 2\n end\nend",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_condition_within_another_is_asked_where_that_holds(text):
    """A block that changes what its condition reads decides in front, and only if it comes to."""
    knl = make(text, dtypes="x: float32; p: int32", data=[lk.GlobalArg("x", shape="m")])
    far = -(10**9)
    results = []
    for p0 in (far, -1):  # what stands outside of the array is not looked at
        given = {"x": np.arange(4, dtype=np.float32), "p": np.array([p0, 3, 1, 0, p0, 3], np.int32)}
        if "y[" in text:
            given["y"] = np.zeros(6, np.float32)
        for executor in ("reference", "host"):
            found = knl.executor(executor)(**{k: v.copy() for k, v in given.items()})
            named = found._asdict() if isinstance(found, tuple) else {"x": found}
            results.append(named["x"])
    assert all(np.array_equal(results[0], other) for other in results[1:])
    assert results[0][3] != 3
    assert knl.prove().ok


def test_bounds_of_a_condition_within_another():
    text = "if i < n - 1\n if x[i + 1] > 0\n  x[i] = -1\n else\n  x[i] = 5\n end\nend"
    knl = make(text, dtypes="x: float32", data=[lk.GlobalArg("x", shape="n")])
    for n in (1, 2, 5):
        x = np.linspace(-1, 1, n).astype(np.float32)
        want = np.append(np.where(x[1:] > 0, -1, 5), x[-1])
        assert np.array_equal(knl.executor("host")(x=x.copy()), want)
