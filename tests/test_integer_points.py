"""Counts of integer points, and of their projections, are those that isl enumerates."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import EndlessError, count, distinct, enumerated, systems
from seams import sets as _sets

NAMES = ("i", "j", "k", "t")
SMALL = st.integers(-3, 3)


@st.composite
def domains(draw: st.DrawFn) -> str:
    """One or two sets of points between bounds that several names share, some with quotients."""
    pieces = []
    for _ in range(draw(st.integers(1, 2))):
        parts = [f"{draw(st.integers(-2, 0))} <= {n} <= {draw(st.integers(-1, 3))}" for n in NAMES]
        for _ in range(draw(st.integers(0, 3))):
            form = " + ".join(f"{draw(SMALL)}*{n}" for n in NAMES)
            relation = draw(st.sampled_from([">= 0", "= 0", "<= 2"]))
            if draw(st.integers(0, 3)) == 0:
                form = f"floor(({form})/{draw(st.integers(2, 4))}) + i"
            parts.append(f"{form} + {draw(SMALL)} {relation}")
        pieces.append(" and ".join(parts))
    return "[i, j, k, t, n] -> { : " + " or ".join(f"({p})" for p in pieces) + " }"


def points_of(domain: isl.Set) -> set[tuple[int, ...]]:
    """All values of the names, by isl."""
    domain = _sets.project_onto(domain, NAMES)
    found: set[tuple[int, ...]] = set()
    order = [domain.find_dim_by_name(isl.dim_type.param, name) for name in NAMES]
    domain = domain.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, 4)

    def visit(point: isl.Point) -> None:
        values = [
            int(str(point.get_coordinate_val(isl.dim_type.set, position))) for position in order
        ]
        found.add(tuple(values))

    domain.foreach_point(visit)
    return found


@given(domains(), st.sets(st.sampled_from(NAMES)))
@settings(max_examples=100, deadline=None)
def test_counts_are_those_of_all_points(text: str, keep: set[str]) -> None:
    domain = isl.Set(text)
    expected = points_of(domain)
    sizes = {"n": 5}
    assert count(domain, NAMES, sizes) == len(expected)
    found = systems(domain, NAMES, sizes)
    rows = [tuple(row[:4]) for system in found for row in enumerated(system).tolist()]
    assert sorted(rows) == sorted(expected)
    kept = tuple(name for name in NAMES if name in keep)
    columns = [NAMES.index(name) for name in kept]
    assert distinct(domain, kept, sizes) == len({tuple(p[c] for c in columns) for p in expected})


def test_the_digits_of_a_fetch_are_a_box() -> None:
    """Rounds of threads that copy a tile, whose index splits into its axes."""
    domain = isl.Set(
        "[b, r, t, x, y, c] -> { : 0 <= b < 1000000 and 0 <= r < 5 and 0 <= t < 256 and"
        " x = floor((256*r + t)/34) and y = 256*r + t - 34*x and x <= 33 and c = 32*b + x }"
    )
    assert distinct(domain, ("x", "y"), {}) == 34 * 34
    assert distinct(domain, ("c",), {}) == 32 * 1000000 + 2
    assert distinct(domain, ("b", "c"), {}) == 34 * 1000000


def test_boxes_beside_each_other_are_counted_once() -> None:
    text = " or ".join(f"({r} <= i <= 1000 + {r} and 0 <= j < 1000)" for r in range(-4, 5))
    assert distinct(isl.Set("[i, j] -> { : " + text + " }"), ("i", "j"), {}) == 1009 * 1000


def test_a_name_without_end_is_said() -> None:
    with pytest.raises(EndlessError, match="i"):
        count(isl.Set("[i] -> { : i >= 0 }"), ("i",), {})
