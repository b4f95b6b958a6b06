"""Costs of kernels of several launches: each as often as it runs, and all together."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import product

import pytest
from html_page import Page
from launch_kernels import (
    eliminated,
    every_third_or_fifth_in_blocks,
    normalised,
    now_and_then_in_blocks,
    summed,
    swept,
)
from seams import Costs

import loopkit as lk

CASES = [
    (summed, {"m": 9}),
    (summed, {"m": 0}),
    (normalised, {"n": 37, "m": 19}),
    (swept, {"n": 101, "steps": 3}),
    (swept, {"n": 101, "steps": 0}),
    (eliminated, {"n": 19}),
    (eliminated, {"n": 1}),
    (now_and_then_in_blocks, {"n": 9, "steps": 8}),
    (every_third_or_fifth_in_blocks, {"n": 13, "steps": 8}),
]


def shared_in_a_loop() -> lk.Kernel:
    """A launch with a tile in shared memory and barriers, in a triangle of iterations."""
    return (
        lk.make_kernel(
            ["{ [s, t, i, j]: 0 <= s < m and 0 <= t <= s and 32*s <= i < n and 0 <= j < 16 }"],
            """
            for s, t
                x[i] = x[i] + sum(j, w[16*s + j + t]) {id=step}
                ... gbarrier
            end
            """,
            [lk.GlobalArg("w", shape="32*m + 16"), ...],
            name="triangle",
            dtypes={"x, w": "float32"},
            assumptions="m >= 0 and n >= 0",
        )
        .split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("w", ["j"], default_tag="l.auto")
    )


def every_turn(knl: lk.Kernel, sizes: dict[str, int], number: int) -> list[tuple[lk.Kernel, dict]]:
    """A launch as a kernel with the sizes of each time that the call runs it, by brute force."""
    own = knl.launches()[number]
    loops = [name for name in own.sizes if name not in sizes]
    calls = [c for c in knl.launch_config(**sizes) if c.name == own.name]
    known = {name: value for name, value in sizes.items() if name in own.sizes}
    if not loops:
        return [(own, known)] * len(calls)
    found = []
    most = sizes.get("steps", len(calls) + 1)
    for values in product(range(most), repeat=len(loops)):
        at = {**known, **dict(zip(loops, values, strict=True))}
        try:
            grid = own.launch_config(**at).grid
        except lk.AssumptionError:
            continue
        if 0 not in grid:
            found.append((own, at))
    assert len(found) == len(calls)
    return found


def added(found: list[lk.Costs], one: Costs, what: str) -> None:
    total: Counter = Counter()
    for costs in found:
        total.update({key: n for key, n in getattr(costs, what) if n})
    assert dict(total) == {key: n for key, n in getattr(one, what) if n}


@pytest.mark.parametrize(("make", "sizes"), [*CASES, (shared_in_a_loop, {"m": 3, "n": 150})])
def test_each_launch_counts_as_often_as_it_runs(make, sizes):
    knl = make()
    costs = knl.costs(**sizes)
    assert isinstance(costs, Costs) and costs.launches
    assert costs.times == len(knl.launch_config(**sizes))
    for one in costs.launches:
        turns = every_turn(knl, sizes, one.number)
        found = [own.costs(**at) for own, at in turns]
        assert one.times == len(turns)
        assert one.blocks == sum(c.blocks for c in found)
        added(found, one, "instances")
        added(found, one, "operations")
        for number, access in enumerate(one.accesses):
            each = [c.accesses[number].counts for c in found]
            for what in ("requests", "threads", "pieces", "least_pieces", "elements"):
                mine = getattr(access.counts, what)
                assert mine == sum(getattr(c, what) for c in each if c is not None), what
            again = Counter()
            for c in found:
                if c.accesses[number].reuse is not None:
                    again.update(c.accesses[number].reuse.again)
            assert access.reuse is None or access.reuse.again == {**access.reuse.again, **again}
        for number, footprint in enumerate(one.footprints):
            assert footprint.read == sum(c.footprints[number].read for c in found)
            assert footprint.written == sum(c.footprints[number].written for c in found)
        for number, barrier in enumerate(one.barriers):
            assert barrier.times == sum(c.barriers[number].times for c in found)
            assert barrier.blocks == one.blocks
        if found:
            moved = sum(c.roofline.moved for c in found)
            assert one.roofline.moved == moved
            assert one.grid == tuple(map(max, zip(*(c.grid for c in found), strict=True)))


def test_footprints_of_the_whole_are_no_sums():
    costs = swept().costs(n=100, steps=5)
    whole = {f.array: (f.read, f.written) for f in costs.footprints}
    assert whole == {"v": (400, 392), "u": (400, 392)}
    alone = {f.array: (f.read, f.written) for f in costs.by_launch}
    assert alone == {"v": (5 * 400, 5 * 392), "u": (5 * 400, 5 * 392)}
    # All of v is read before it is written, and of u the ends, which no sweep writes.
    assert dict(costs.from_before) == {"v": 400, "u": 8}
    assert costs.must_move == 400 + 8 + 2 * 392


def test_what_launches_hand_over_need_not_reach_memory():
    costs = normalised().costs(n=10, m=7)
    assert costs.handed_over == ("top",)
    assert costs.must_move == 2 * 4 * 70
    assert next(f for f in costs.footprints if f.array == "x").read == 280
    assert next(f for f in costs.by_launch if f.array == "x").read == 560


def test_the_roofline_is_that_of_one_launch_after_the_other():
    costs = normalised().costs(n=1024, m=512, device="H100")
    roofline = costs.roofline
    assert roofline.seconds == sum(one.roofline.seconds for one in costs.launches)
    assert roofline.at_least is not None and roofline.at_least <= roofline.seconds
    assert roofline.beside(1e-3).share == roofline.seconds / 1e-3
    assert "set by" in str(roofline) and "launches find in L2" in str(roofline)
    with pytest.raises(lk.InvalidArgumentError, match="a time is a number of seconds"):
        roofline.beside(0)
    picture = costs.plot_roofline(measured=1e-3)
    assert "normalise_2: memory" in str(picture) and "Measured: 1 ms" in str(picture)
    assert picture.svg().startswith("<svg")


def test_a_call_that_launches_nothing():
    costs = swept().costs(n=10, steps=0)
    assert (costs.times, costs.blocks, costs.operations) == (0, 0, costs.operations)
    assert not any(n for _, n in costs.operations)
    assert costs.roofline.seconds == 0
    assert "0 launches in a call" in str(costs)


def value_at(value, sizes: dict[str, int]) -> int:
    """A number, or a polynomial at sizes."""
    return value if isinstance(value, int) else value(**{n: sizes[n] for n in value.names})


@pytest.mark.parametrize("make", [summed, normalised, swept])
def test_open_sizes(make):
    costs = make().costs()
    sizes = dict.fromkeys(costs.open_sizes, 128)
    exact = make().costs(**sizes)
    assert [value_at(one.times, sizes) for one in costs.launches] == [
        one.times for one in exact.launches
    ]
    for what in ("operations", "from_before"):
        for (key, poly), (its, n) in zip(getattr(costs, what), getattr(exact, what), strict=True):
            assert key == its and value_at(poly, sizes) == n
    assert value_at(costs.must_move, sizes) == exact.must_move
    assert costs.at(**sizes)
    assert "launches in a call" in str(costs)
    with pytest.raises(lk.InvalidArgumentError):
        _ = costs.roofline


def test_bad_sizes_are_refused():
    with pytest.raises(lk.InvalidArgumentError, match="it assumes"):
        swept().costs(n=2, steps=1)
    with pytest.raises(lk.UnknownNameError):
        swept().costs(n=20, steps=1, k=3)
    with pytest.raises(lk.InvalidArgumentError, match="whole number"):
        swept().costs(n=2.5, steps=1)


def test_costs_are_plain_data(golden):
    costs = swept().costs(n=1000, steps=7)
    assert pickle.loads(pickle.dumps(costs)) == costs
    assert hash(costs) == hash(swept().costs(n=1000, steps=7))
    golden("costs_jacobi.txt", f"{costs}\n\n\n{swept().costs()}")


def test_html_says_what_the_text_says():
    costs = normalised().costs(n=100, m=50, device="H100")
    html = costs._repr_mimebundle_()["text/html"]
    shown = Page(html).text
    for word in ("2 launches in a call", "handed over", "normalise_2", "launch 2: normalise_2"):
        assert word in shown
    assert html.count("data-lk-s") >= sum(len(one.accesses) for one in costs.launches)


def test_history_counts_all_launches():
    table = str(swept().history.at(n=1000, steps=7))
    assert "336 in 14 launches" in table
