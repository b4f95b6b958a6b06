"""What data decide, counted with the data at hand: as a simulation of warps counts it."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gallery import kernels, load
from seams import NO_DATA, SPACES, ByData, Counting, accesses_of, model_of, prepare

import loopkit as lk

SPMV = {"n": 133, "m": 37}


def spmv() -> dict[str, Any]:
    given: dict[str, Any] = load("spmv").inputs(**SPMV, seed=5)
    return given


def by_hand(name: str, given: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Requests, threads and sectors of the accesses to the entries: warps, iteration by iteration.

    A thread of a row that others share takes each 32nd (or 128th) entry, from its own on.
    """
    start, column = given["start"], given["column"]
    requests: dict[Any, list[int]] = defaultdict(list)
    for row, (first, last) in enumerate(pairwise(start)):
        if name == "a thread a row":
            for k in range(first, last):
                requests[row // 32, k - first].append(k)
        else:
            threads = {"a warp a row": 32, "a block a row": 128}[name]
            for thread in range(threads):
                mine = [k for k in range(first, last) if k % threads == thread]
                for number, k in enumerate(mine):
                    requests[row, thread // 32, number].append(k)
    parts = requests.values()
    entries = sum(len({k * 4 // 32 for k in part}) for part in parts)
    vector = sum(len({column[k] * 4 // 32 for k in part}) for part in parts)
    threads = sum(map(len, parts))
    return {
        "value": (len(parts), threads, entries),
        "column": (len(parts), threads, entries),
        "x": (len(parts), threads, vector),
    }


@pytest.mark.parametrize("name", ["a thread a row", "a warp a row", "a block a row"])
def test_sparse_rows(name: str) -> None:
    given = spmv()
    costs = kernels("spmv")[name].costs(**given)
    assert dict(costs.sizes) == {"n": 133, "m": 37, "nnz": len(given["value"])}
    entries = len(given["value"])
    assert dict(costs.operations) == {("add", "float32"): entries, ("mul", "float32"): entries}
    found = {a.array: a.counts for a in costs.accesses if a.statement.endswith("update")}
    for array, counted in by_hand(name, given).items():
        counts = found[array]
        assert counts is not None
        assert (counts.requests, counts.threads, counts.pieces) == counted
    read = {f.array: f.read for f in costs.footprints}
    assert read["value"] == 4 * entries and read["x"] == 4 * len(set(given["column"]))
    assert not costs.needs and not costs.at_most
    assert costs.roofline.operations == 2 * entries


def test_it_says_what_to_give() -> None:
    knl = kernels("spmv")["a warp a row"]
    costs = knl.costs(n=10, m=5, nnz=30)
    assert costs.needs == ("column", "start")
    assert {a.array: a.needs for a in costs.accesses if a.counts is None} == {
        "value": ("start",),
        "column": ("start",),
        "x": ("column", "start"),
    }
    assert dict(costs.operations)["add", "float32"] is None
    assert "float32  not known" in str(costs) and "costs(column=..., start=...)" in str(costs)
    assert "costs(column=..., start=...)" in str(knl.costs())
    with pytest.raises(lk.InvalidArgumentError, match=r"costs\(column=..., start=...\)"):
        _ = costs.roofline
    given = spmv()
    partly = knl.costs(start=given["start"], m=37, nnz=len(given["value"]))
    assert partly.needs == ("column",)
    assert [a.array for a in partly.accesses if a.counts is None] == ["x"]


def test_arrays_are_checked() -> None:
    knl, given = kernels("spmv")["a warp a row"], spmv()
    with pytest.raises(lk.UnknownNameError, match="begin"):
        knl.costs(n=3, begin=given["start"])
    with pytest.raises(lk.InvalidArgumentError, match="costs needs the sizes m"):
        knl.costs(start=given["start"], column=given["column"])
    with pytest.raises(lk.InvalidArgumentError, match="axis 0 should have"):
        knl.costs(start=given["start"], column=given["column"], n=7, m=37)
    with pytest.raises(lk.InvalidArgumentError, match="dtype should be int32"):
        knl.costs(start=given["start"].astype(np.int64), column=given["column"], m=37)
    with pytest.raises(lk.AssumptionError, match="start never go down"):
        knl.costs(start=given["start"][::-1].copy(), column=given["column"], m=37)


def test_rows_of_nothing() -> None:
    knl = kernels("spmv")["a block a row"]
    none = np.zeros(0, np.int32)
    for rows in (0, 3):
        costs = knl.costs(start=np.zeros(rows + 1, np.int32), column=none, m=4)
        assert dict(costs.operations)["add", "float32"] == 0
        assert {a.counts.requests for a in costs.accesses if a.statement.endswith("update")} == {0}


def test_bins() -> None:
    """Updates of one warp that meet in a bin, and banks of shared memory."""
    values = np.repeat(np.arange(4, dtype=np.int32), 64)
    counts = np.zeros(256, np.int32)
    for name, space in {"global atomics": "global", "shared memory": "shared"}.items():
        costs = kernels("histogram")[name].costs(values=values, counts=counts)
        (update,) = (a for a in costs.accesses if a.is_atomic and "values[" in a.text)
        assert update.space == space and update.counts is not None
        assert (update.counts.requests, update.counts.elements) == (8, 8)
        assert update.collisions == 256 - 8
        assert not costs.needs
    spread = np.arange(256, dtype=np.int32) * 32 % 256
    costs = kernels("histogram")["shared memory"].costs(values=spread)
    (update,) = (a for a in costs.accesses if a.is_atomic and a.space == "shared")
    assert update.counts is not None and update.counts.elements == 8 * 8
    assert update.counts.pieces == 8 * 8  # all in bank 0


def test_conditions() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        if x[i] > 0 and kind[i] == 2
            y[i] = sqrt(x[i]) if big[i] > limit else x[i]*x[i]
        end
        """,
        [lk.ValueArg("limit", "float64"), ...],
        dtypes={"x, y": "float32", "kind": "int8", "big": "float64"},
        name="some",
    ).split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
    rng = np.random.default_rng(1)
    x = rng.normal(size=500).astype(np.float32)
    kind, big = rng.integers(0, 4, 500).astype(np.int8), rng.normal(size=500)
    open_ = knl.costs(n=500)
    assert open_.at_most and open_.needs == ("big", "kind", "limit", "x")
    costs = knl.costs(x=x, kind=kind, big=big, limit=0.25)
    runs, roots = (x > 0) & (kind == 2), (x > 0) & (kind == 2) & (big > 0.25)
    assert dict(costs.instances)["insn"] == runs.sum()
    done = dict(costs.operations)
    assert done["sqrt", "float32"] == roots.sum()
    assert done["mul", "float32"] == (runs & ~roots).sum()
    (stored,) = (a for a in costs.accesses if a.is_write)
    assert stored.counts is not None and not costs.at_most
    assert stored.counts.threads == runs.sum()
    warps = [w for w in range(16) if runs[32 * w : 32 * w + 32].any()]
    assert stored.counts.requests == len(warps)
    assert {f.array: f.written for f in costs.footprints}["y"] == 4 * runs.sum()


def test_data_that_lead_outside() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[place[i]]",
        [lk.GlobalArg("x", shape="m"), ...],
        dtypes={"x, y": "float32", "place": "int32"},
    )
    with pytest.raises(lk.InvalidArgumentError, match="index 9 would be asked of 'x'"):
        knl.costs(place=np.array([1, 9], np.int32), m=5)


def test_what_a_kernel_computes_nobody_can_give() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<int32> k = place[i] // 2\ny[i] = x[k]",
        [lk.GlobalArg("x", shape="m"), ...],
        dtypes={"x, y": "float32", "place": "int32"},
    )
    costs = knl.costs(place=np.array([1, 9], np.int32), m=5)
    (open_,) = (a for a in costs.accesses if a.counts is None)
    assert open_.array == "x" and open_.why == "data decide" and not open_.needs


SMALL: dict[str, dict[str, int]] = {
    "transpose": {"n": 45, "m": 33},
    "matmul": {"n": 33, "m": 20, "l": 21},
    "stencil_5": {"n": 40, "m": 35},
    "segmented_sum": {"segments": 133, "length": 37},
    "softmax": {"n": 5, "m": 301},
    "triangular_solve": {"n": 20, "sides": 70},
}


@pytest.mark.parametrize("example", SMALL)
def test_points_count_what_sets_do(example: str) -> None:
    """Where no data decide, both ways of counting say the same of every access."""
    sizes = SMALL[example]
    for knl in kernels(example).values():
        launch = knl.launch_config(**sizes)
        assert not isinstance(launch, tuple)
        model = model_of(prepare(knl))
        counting = Counting(model, sizes, launch.block)
        points = ByData(model, sizes, launch.block, NO_DATA)
        for access in accesses_of(model.kernel):
            if counting.space(access) in SPACES.values():
                known = counting.costs(access)
                counts, reuse = points.costs(access, known.itemsize, known.space)
                assert counts == known.counts
                assert known.reuse == reuse


def test_launches() -> None:
    """What a launch has written, the data of the call do not say in the next one."""
    text = "p[i] = q[i]\n... gbarrier\ny[place[j]] = x[p[j]]"
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        text,
        [lk.GlobalArg("x", shape="n"), lk.GlobalArg("y", shape="n"), ...],
        dtypes={"x, y": "float32", "p, q, place": "int32"},
    ).assume_injective("place")
    for iname in "ij":
        knl = knl.split_iname(iname, 32, outer_tag="g.0", inner_tag="l.0")
    place = np.arange(64, dtype=np.int32)[::-1].copy()
    open_ = knl.costs(n=64)
    assert open_.needs == ("place",)
    costs = knl.costs(place=place, q=place)
    found = {a.array: a for a in costs.accesses if a.statement == "insn_0"}
    assert found["x"].counts is None and not found["x"].needs
    assert found["y"].counts is not None and found["y"].counts.pieces == 8
