"""Pictures of domains against domains, orders and threads that are enumerated in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopkit as lk

DOMAINS: dict[str, tuple[str, Callable[[int, int, int], bool]]] = {
    "box": ("0 <= i < n and 0 <= j < n", lambda i, j, n: 0 <= i < n and 0 <= j < n),
    "triangle": ("0 <= j <= i < n", lambda i, j, n: 0 <= j <= i < n),
    "skewed": ("0 <= i < n and i <= j < i + 4", lambda i, j, n: 0 <= i < n and i <= j < i + 4),
    "holes": (
        "0 <= i < n and 0 <= j < n and (i + 2*j) mod 3 = 0",
        lambda i, j, n: 0 <= i < n and 0 <= j < n and (i + 2 * j) % 3 == 0,
    ),
    "union": (
        "0 <= i < n and (0 <= j < 2 or n <= j < n + 3)",
        lambda i, j, n: 0 <= i < n and (0 <= j < 2 or n <= j < n + 3),
    ),
    "far": (
        "0 <= i < 2 and 50*i <= j < 50*i + n",
        lambda i, j, n: i in (0, 1) and 0 <= j - 50 * i < n,
    ),
}


def kernel(domain: str) -> lk.Kernel:
    return lk.make_kernel(
        f"{{ [i, j]: {domain} }}", "c[i, j] = i + j", dtypes={"c": "float32"}, name="some",
        assumptions="n >= 1",
    )  # fmt: skip


def enumerated(holds: Callable[[int, int, int], bool], n: int) -> set[tuple[int, int]]:
    reach = range(-60, 70)
    return {(i, j) for i, j in itertools.product(reach, reach) if holds(i, j, n)}


@given(
    which=st.sampled_from(sorted(DOMAINS)),
    n=st.integers(1, 7),
    splits=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    order=st.permutations(["i_outer", "i_inner", "j_outer", "j_inner"]),
    tags=st.sampled_from([{}, {"i_inner": "l.0"}, {"i_inner": "l.1", "j_inner": "l.0"}]),
    block=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_points_their_order_and_their_threads_are_those_of_the_loops(
    which: str,
    n: int,
    splits: tuple[int, int],
    order: list[str],
    tags: dict[str, str],
    block: bool,
) -> None:
    text, holds = DOMAINS[which]
    if block and which in ("box", "triangle"):
        tags = {**tags, "i_outer": "g.0"}
    si, sj = splits
    knl = kernel(text).split_iname("i", si).split_iname("j", sj)
    knl = knl.prioritize_loops(",".join(order)).tag_inames(tags)
    picture = knl.plot_domain(n=n)

    def parts(i: int, j: int) -> dict[str, int]:
        return {"i_outer": i // si, "i_inner": i % si, "j_outer": j // sj, "j_inner": j % sj}

    expected = enumerated(holds, n)
    assert {p.place for p in picture.points} == expected
    assert len(picture.points) == len(expected)
    loops = [name for name in order if name not in tags]
    steps = {place: tuple(parts(*place)[name] for name in loops) for place in expected}
    ranks = {step: rank for rank, step in enumerate(sorted(set(steps.values())))}
    tiles: dict[tuple[int, int], set[int]] = {}
    for point in picture.points:
        values = parts(*point.place)
        assert point.time == ranks[steps[point.place]]
        assert picture.turns[point.time] == (
            ", ".join(f"{name} = {values[name]}" for name in loops) or "the only one"
        )
        x = [values[name] for name, tag in tags.items() if tag == "l.0"]
        y = [values[name] for name, tag in tags.items() if tag == "l.1"]
        assert point.thread == (*(x or [0]), *(y or [0]), 0)
        assert point.block == ((values["i_outer"], 0, 0) if "i_outer" in tags else (0, 0, 0))
        tiles.setdefault((values["i_outer"], values["j_outer"]), set()).add(point.tile)
    if si > 1 and sj > 1:
        assert all(len(numbers) == 1 for numbers in tiles.values())
        assert len(set.union(*tiles.values())) == len(tiles)
    if not expected:
        return
    (grid,) = picture.figure().grids
    drawn = {(int(grid.rows[c.row]), int(grid.columns[c.column])): c for c in grid.cells}
    assert drawn.keys() == expected and len(grid.cells) == len(expected)
    wide = sj if "j_inner" in tags else 1
    for place, cell in drawn.items():
        values = parts(*place)
        if len(picture.turns) > 1:
            assert cell.label == str(ranks[steps[place]])
        x = [values[name] for name, tag in tags.items() if tag == "l.0"]
        y = [values[name] for name, tag in tags.items() if tag == "l.1"]
        if x and which == "box":
            thread = x[0] + wide * (y or [0])[0]
            assert cell.fill == f"series-{thread % 8}"
    for outline in grid.outlines:
        inside = {(int(grid.rows[r]), int(grid.columns[c])) for r, c in outline.cells}
        shared = [[parts(*place)[name] for name in picture.tiled_by] for place in sorted(inside)]
        assert all(values == shared[0] for values in shared)
        assert outline.title == ", ".join(
            f"{name} = {value}" for name, value in zip(picture.tiled_by, shared[0], strict=True)
        )


@pytest.mark.parametrize("n", [5, 12])
def test_arrows_go_from_each_point_to_the_next(n: int) -> None:
    picture = kernel(DOMAINS["triangle"][0]).split_iname("j", 2).plot_domain(n=n)
    (grid,) = picture.figure().grids
    seats = [(i, j) for i in range(n) for j in range(i + 1)]
    arrows = sorted(grid.arrows, key=lambda arrow: arrow.frame or 0)
    assert [a.through for a in arrows] == list(itertools.pairwise(seats))
    assert [a.frame for a in arrows] == list(range(1, len(seats)))


def test_long_orders_have_an_arrow_for_each_straight_run() -> None:
    picture = kernel(DOMAINS["box"][0]).plot_domain(n=12)
    (grid,) = picture.figure().grids
    runs = [((i, 0), (i, 11)) for i in range(12)]
    jumps = [((i, 11), (i + 1, 0)) for i in range(11)]
    assert sorted(a.through for a in grid.arrows) == sorted(runs + jumps)
    assert picture.frame_length == 2 and len(picture.figure().frames) == 72


def test_of_many_points_the_order_of_tiles_is_shown() -> None:
    knl = kernel(DOMAINS["box"][0]).split_iname("i", 8).split_iname("j", 4)
    in_tiles = knl.prioritize_loops("i_outer,j_outer,i_inner,j_inner").plot_domain(n=40)
    (grid,) = in_tiles.figure().grids
    firsts = [(i, j) for i in range(0, 40, 8) for j in range(0, 40, 4)]
    assert [a.through for a in grid.arrows] == list(itertools.pairwise(firsts))
    assert "order of tiles" in [key.meaning for key in in_tiles.figure().legend]
    # Where tiles run at once, they have no order.
    in_rows = knl.prioritize_loops("i_outer,i_inner,j_outer,j_inner").plot_domain(n=40)
    assert in_rows.figure().grids[0].arrows == ()


def test_each_step_of_the_slider_says_what_runs() -> None:
    knl = kernel("0 <= i < 4 and 0 <= j < n").tag_inames("i:l.0")
    frames = knl.plot_domain(n=3).figure().frames
    assert frames == tuple(f"{j}: j = {j} (4 instances)" for j in range(3))
    cells = knl.plot_domain(n=3).figure().grids[0].cells
    assert {(c.row, c.column, c.frame) for c in cells} == {
        (i, j, j) for i in range(4) for j in range(3)
    }


def test_an_empty_domain_is_said_to_be_empty() -> None:
    picture = kernel("0 <= i < n and n <= j < 3").plot_domain(n=5)
    assert picture.points == ()
    assert "has no instances here" in str(picture)
    picture.svg(), picture.html()


def test_inames_that_are_not_shown_are_summed_and_that_is_said() -> None:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k <= i }", "c[i, j] = sum(k, a[i, k])",
        dtypes={"a": "float32"}, assumptions="n >= 1",
    )  # fmt: skip
    picture = knl.plot_domain("insn_update", ["i", "j"], n=4)
    assert {p.place: p.instances for p in picture.points} == {
        (i, j): i + 1 for i in range(4) for j in range(4)
    }
    assert (
        "40 instances in 40 turns, on 16 places, up to 4 on each: other inames are summed"
        in str(picture)
    )
    slices = knl.plot_domain("insn_update", n=4).figure().grids
    assert [(grid.title, len(grid.cells)) for grid in slices] == [
        (f"k = {k}", 4 * (4 - k)) for k in range(4)
    ]


def test_at_fixes_inames_of_the_text_and_of_the_schedule() -> None:
    knl = kernel(DOMAINS["box"][0]).split_iname("i", 4).split_iname("j", 4)
    assert {p.place for p in knl.plot_domain(n=8, at={"i_outer": 1, "j": 3}).points} == {
        (i,) for i in range(4, 8)
    }
    shown = knl.plot_domain(n=1000, at={"i": range(10, 20, 3), "j": range(5)})
    assert {p.place for p in shown.points} == set(itertools.product((10, 13, 16, 19), range(5)))


def test_one_long_iname_is_folded_into_rows() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = i", dtypes={"c": "float32"})
    (grid,) = knl.plot_domain(n=70).figure().grids
    assert {(c.row, c.column): c.label for c in grid.cells} == {
        divmod(i, 32): str(i) for i in range(70)
    }
    assert grid.rows == ("0 +", "32 +", "64 +")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "plot_domain needs the sizes n"),
        ({"n": 3, "m": 4}, "there is no size 'm'"),
        ({"n": 0}, "it assumes"),
        ({"n": 2.5}, "is a whole number"),
        ({"n": 1000}, "has 1,000,000 instances here, and a picture looks at 200,000 at most"),
        ({"n": 200}, "has 40,000 points over i, j, and a picture shows 4,096 at most"),
        ({"n": 3, "at": {"z": 1}}, "there is no iname 'z'"),
        ({"n": 3, "at": {"i": "0"}}, "a number or a range"),
        ({"n": 3, "at": {"i": range(0)}}, "there are no values"),
        ({"n": 3, "inames": "ij"}, "a sequence of inames"),
        ({"n": 3, "inames": ["i", "i"]}, "twice"),
        ({"n": 3, "inames": []}, "one to three inames"),
        ({"n": 3, "colour": "red"}, "there is no colour 'red'"),
        ({"n": 3, "tiles": ["q"]}, "there is no iname 'q'"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(lk.LoopkitError) as caught:
        kernel(DOMAINS["box"][0]).plot_domain(**arguments)
    assert said in str(caught.value)


def test_what_is_too_large_says_what_to_fix() -> None:
    with pytest.raises(lk.InvalidArgumentError, match=r"at=\{'j': 0, 'i': 0\}, or at=\{'j': range"):
        kernel(DOMAINS["box"][0]).plot_domain(n=200)


def test_unknown_statements_are_refused() -> None:
    with pytest.raises(lk.UnknownNameError, match="there is no statement 'x'"):
        kernel(DOMAINS["box"][0]).plot_domain("x", n=3)
    loaded = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < r }"],
        """
        for i
            <> r = rows[i]
            c[i] = sum(j, a[i, j])
        end
        """,
        [lk.GlobalArg("a", "float32", shape="n, 8"), ...],
        dtypes={"rows": "int32"},
    )
    with pytest.raises(lk.InvalidArgumentError, match="data say"):
        loaded.plot_domain(n=3)


def test_a_copy_in_many_loops_is_shown_where_it_runs_first() -> None:
    knl = (
        lk.make_kernel(
            "{ [i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k < n }",
            "c[i, j] = sum(k, a[i, k] * b[k, j])",
            dtypes={"a, b": "float32"},
            assumptions="n >= 1",
        )
        .split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 8)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
    )
    picture = knl.plot_domain("fetch_a", n=20)
    assert dict(picture.at) == {"i_outer": "0", "j_outer": "0", "k_outer": "0"}
    assert {p.place for p in picture.points} == set(itertools.product(range(8), range(8)))
    assert {(p.place, p.thread) for p in picture.points} == {
        ((y, x), (x, y, 0)) for y, x in itertools.product(range(8), range(8))
    }
    last = knl.plot_domain("fetch_a", n=20, at={"k_outer": 2, "i_outer": 2})
    assert last.axes == ("a_dim_0", "a_dim_1", "j_outer")
    assert {p.place for p in last.points} == set(itertools.product(range(4), range(4), range(3)))


def test_sizes_and_ranges_of_any_length() -> None:
    """A size that no integer of a machine has is refused; a long range is not gone through."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a, b": "float32"})
    with pytest.raises(lk.InvalidArgumentError, match="does not fit int64"):
        knl.plot_domain(n=2**70)
    with pytest.raises(lk.InvalidArgumentError, match="does not fit int64"):
        knl.plot_footprint("a", n=-(2**70))
    assert len(knl.plot_domain(n=8, at={"i": range(0, 10**12, 2)}).points) == 4


def test_arguments_of_other_types_are_refused(tmp_path: Path) -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a, b": "float32"})
    wrong: Any = 3
    picture = knl.plot_domain(n=8)
    for call, said in (
        (lambda: knl.plot_domain(n=8, at=wrong), "at is a mapping of inames"),
        (lambda: knl.plot_domain(n=8, tiles=wrong), "tiles are a sequence of inames"),
        (lambda: knl.plot_access(wrong, n=8), "no array '3'"),
        (lambda: knl.plot_loop(wrong, n=8), "there is no .*'3'"),
        (lambda: knl.split_iname("i", 4).history.at(n="<b>"), "whole number"),
        (lambda: picture.save(wrong), "cannot be written"),
        (lambda: picture.save(tmp_path / "x.pdfx"), "ends in '.pdfx'"),
        (lambda: picture.plot(ax=wrong), "ax is matplotlib's"),
    ):
        with pytest.raises(lk.LoopkitError, match=said):
            call()
    assert not [*tmp_path.iterdir()]
