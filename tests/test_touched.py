"""Which threads touch which cells, listed: as sets have it."""

from __future__ import annotations

import itertools

import pymbolic.primitives as prim
from hypothesis import given
from hypothesis import strategies as st

from loopkit import _sets
from loopkit._poly.touched import Touched, farthest, touched_by
from loopkit._syntax.expression_parser import parse_expression

INDICES = ["t", "2*t", "t // 2", "t % 4", "t ^ 2", "7 - t", "4*(t % 2) + i", "2*i", "t + i", "3"]
WHERE = ["t >= 0", "t < 5", "t % 2 == 0", "(t & 6) == 2", "i <= t", "i == 1"]
THREADS, ROUNDS, WARP = 8, 3, 4


def domain(condition: str) -> tuple[prim.ExpressionNode, list[tuple[int, int]]]:
    where = parse_expression(condition)
    points = itertools.product(range(THREADS), range(ROUNDS))
    value = {"==": int.__eq__, ">=": int.__ge__, "<": int.__lt__, "<=": int.__le__}[where.operator]
    held = [
        (t, i)
        for t, i in points
        if value(
            _sets.value_at(where.left, {"t": t, "i": i}),
            _sets.value_at(where.right, {"t": t, "i": i}),
        )
    ]
    return where, held


def listed(condition: str, index: str) -> tuple[Touched, set[tuple[int, int]]]:
    where, held = domain(condition)
    box = parse_expression(f"t >= 0 and t < {THREADS} and i >= 0 and i < {ROUNDS} and n >= 2")
    points = _sets.condition_set(box) & _sets.condition_set(where)
    expr = parse_expression(index)
    found = touched_by(points, ["t", "i"], [[expr]], {"t": 1}, [32])
    assert found is not None
    return found, {(_sets.value_at(expr, {"t": t, "i": i}), t) for t, i in held}


accesses = st.tuples(st.sampled_from(WHERE), st.sampled_from(INDICES))


@given(accesses, accesses)
def test_where_threads_meet(first: tuple[str, str], second: tuple[str, str]) -> None:
    (one, mine), (two, its) = listed(*first), listed(*second)
    meet = [(a, b) for (cell, a), (other, b) in itertools.product(mine, its) if cell == other]
    warps = any(a // WARP != b // WARP for a, b in meet)
    assert farthest(one, two, WARP) == (2 if warps else int(any(a != b for a, b in meet)))


def test_what_is_not_its_own_is_around() -> None:
    points = _sets.condition_set(parse_expression("t >= 0 and t < 8 and n >= 3"))
    found = touched_by(points, ["t"], [[parse_expression("t")]], {"t": 1}, [8])
    assert found is not None
    assert _sets.involved_names(found.around) == {"n"}
    assert found.around.is_equal(found.whole)


WHERE_OTHERS = ["t < n", "t + i < n", "n <= 2*t", "2*t + n >= i + 3", "t < n and i >= n - 2"]


@given(st.sampled_from(WHERE_OTHERS), st.sampled_from(INDICES), st.booleans())
def test_what_others_decide(condition: str, index: str, is_own: bool) -> None:
    """Nothing is touched outside of ``around``, and all that is listed within ``whole``."""
    box = f"t >= 0 and t < {THREADS} and i >= 0 and i < {ROUNDS} and n >= 0 and n < 20"
    points = _sets.condition_set(parse_expression(f"{box} and {condition}"))
    expr = parse_expression(index)
    found = touched_by(points, ["t", *["i"] * is_own], [[expr]], {"t": 1}, [32])
    if found is None:
        assert not is_own and "i" in index
        return
    others = {"n", "i"} - found.names
    cells = {}
    for n, i, t in itertools.product(range(20), range(ROUNDS), range(THREADS)):
        at = {"n": n, "i": i, "t": t}
        place = tuple((name, at[name]) for name in sorted(others))
        own = cells.setdefault(place, {})
        if not _sets.at_values(points, at).is_empty():
            own.setdefault(_sets.value_at(expr, at), []).append(t)
    columns = (found.cells, found.first, found.last)
    listed = {cell: (low, high) for cell, low, high in zip(*columns, strict=True)}
    for place, touched in cells.items():
        low_and_high = {cell: (min(by), max(by)) for cell, by in touched.items()}
        if _sets.at_values(found.around, dict(place)).is_empty():
            assert not touched
        if not _sets.at_values(found.whole, dict(place)).is_empty():
            assert low_and_high == listed
        assert low_and_high.keys() <= listed.keys()


def test_what_cannot_be_listed() -> None:
    eight = _sets.condition_set(parse_expression("t >= 0 and t < 8"))
    tied = _sets.condition_set(parse_expression("t >= 0 and t < 8 and t == n"))
    t, outer = parse_expression("t"), parse_expression("t + n")
    assert touched_by(tied, ["t"], [[t]], {"t": 1}, [8]) is None
    assert touched_by(eight, ["t"], [[outer]], {"t": 1}, [8]) is None
    assert touched_by(eight, ["t"], [[parse_expression("min(t, 3)")]], {"t": 1}, [8]) is None
    assert touched_by(eight, ["t"], [[t]], {"t": 1}, [7]) is None
    endless = _sets.condition_set(parse_expression("t >= 0"))
    assert touched_by(endless, ["t"], [[t]], {"t": 1}, [8]) is None
