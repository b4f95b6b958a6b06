"""Counts of requests, sectors and wavefronts are those of all threads, gone through one by one."""

from __future__ import annotations

import importlib
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import gcd
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np
import pytest
from pace import timed
from seams import (
    GLOBAL,
    SHARED,
    Linear,
    Reuse,
    WarpCosts,
    accesses_of,
    address_map,
    lanes_of,
    model_of,
    moves,
    prepare,
    reuse,
    systems,
    warp_costs,
)
from seams import cost_space_of as space_of
from seams import sets as _sets

import loopkit as lk
from loopkit import AddressSpace
from tests.test_random_schedules import KERNELS, SIZES, random_schedule

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))


def points(access: Any, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """All points of an access's domain, by isl."""
    param, dim = isl.dim_type.param, isl.dim_type.set
    domain = _sets.project_onto(_sets.at_values(access.domain, sizes), access.names)
    names = _sets.names_of(domain)
    assert set(names) == set(access.names)
    found: list[isl.Point] = []
    domain.move_dims(dim, 0, param, 0, len(names)).foreach_point(found.append)
    for point in found:
        values = [_sets.integer(point.get_coordinate_val(dim, n)) for n in range(len(names))]
        yield dict(zip(names, values, strict=True))


def value(form: Linear, point: Mapping[str, int]) -> int:
    return form.constant + sum(c * point[v.name] for v, c in form.terms.items())


def one_by_one(
    access: Any,
    sizes: Mapping[str, int],
    block: tuple[int, int, int],
    itemsize: int,
    *,
    shared: bool,
) -> tuple[WarpCosts, Reuse]:
    """The same by going through all points."""
    warps: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    touched: tuple[set[object], ...] = (set(), set(), set(), set())
    for point in points(access, sizes):
        index = [0 if lane is None else point[lane[0]] - lane[1] for lane in access.lanes]
        thread = index[0] + block[0] * (index[1] + block[1] * index[2])
        request = (*(point[n] for n in access.requests), thread // 32)
        assert thread % 32 not in warps[request]
        warps[request][thread % 32] = value(access.address, point) * itemsize
        cell = tuple(value(form, point) for form in access.cell)
        in_block = tuple(point[n] for n in access.block_names)
        for seen, who in zip(
            touched, [(in_block, thread), (in_block, thread // 32), in_block, ()], strict=True
        ):
            seen.add((who, cell))
    pieces, least = [], []
    for threads in warps.values():
        addresses = set(threads.values())
        if not shared:
            pieces.append(len({a // 32 for a in addresses}))
            least.append(-(-len(addresses) * itemsize // 32))
            continue
        pieces.append(0)
        least.append(0)
        words = -(-itemsize // 4)
        for turn in range(words):
            mine = [a for t, a in threads.items() if t * words // 32 == turn]
            used = {a // 4 + w for a in mine for w in range(words)}
            pieces[-1] += int(np.bincount([u % 32 for u in used]).max()) if used else 0
            least[-1] += -(-len(used) // 32)
    lowest = [min(threads.values()) for threads in warps.values()]
    made = sum(map(len, warps.values()))
    counts = WarpCosts(
        len(warps),
        made,
        sum(len(set(threads.values())) for threads in warps.values()),
        sum(pieces),
        sum(least),
        max(pieces, default=0),
        gcd(4 if shared else 128, *lowest) if itemsize else 0,
    )
    return counts, Reuse(made, *map(len, touched))


def same_counts(knl: lk.Kernel, **sizes: int) -> list[tuple[Any, WarpCosts]]:
    """All counts of a kernel, compared."""
    block = knl.program().block
    model = model_of(prepare(knl))
    found = []
    for access in accesses_of(model.kernel):
        space = space_of(model.kernel, access.array)
        if space is AddressSpace.PRIVATE:
            continue
        itemsize = model.array(access.array).dtype.itemsize
        where = address_map(model, access, sizes)
        shared = space is AddressSpace.LOCAL
        memory = SHARED if shared else GLOBAL
        found_systems = systems(where.domain, where.names, sizes)
        moved, start = moves(where, itemsize), where.address.constant * itemsize
        lanes = lanes_of(where, found_systems, block, 32, moved, memory.period)
        counted = warp_costs(lanes, moved, start, itemsize, 32, memory)
        expected, touched = one_by_one(where, sizes, block, itemsize, shared=shared)
        assert counted == expected, access
        assert reuse(where, counted.threads, block, 32, sizes) == touched, access
        found.append((access, counted))
    return found


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("step", [1, 2, 3, 33])
def test_strides(dtype: str, step: int) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", f"b[{step}*i + 1] = a[i//2]", dtypes={"a, b": dtype}
    )
    same_counts(knl.split_iname("i", 48, outer_tag="g.0", inner_tag="l.0"), n=150)


@pytest.mark.parametrize("itemsize", [4, 8, 12, 16, 20])
def test_wide_elements_take_turns(itemsize: int) -> None:
    r = random.Random(itemsize)
    addresses = np.array([[r.randrange(64) * itemsize for _ in range(32)] for _ in range(50)])
    used = np.array([[r.random() < 0.8 for _ in range(32)] for _ in range(50)])
    turns = itemsize // 4
    expected = []
    for row, runs in zip(addresses.tolist(), used.tolist(), strict=True):
        banks: dict[tuple[int, int], set[int]] = defaultdict(set)
        for lane in range(32):
            for word in range(row[lane] // 4, (row[lane] + itemsize) // 4) if runs[lane] else ():
                banks[lane * turns // 32, word % 32].add(word)
        worst = (
            max((len(w) for (t, _), w in banks.items() if t == n), default=0) for n in range(turns)
        )
        expected.append(sum(worst))
    assert SHARED.pieces(addresses, used, itemsize)[0].tolist() == expected


def test_a_column_of_a_shared_array() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 32 }", "b[j, i] = a[i, j]", dtypes={"a, b": "float32"}
    )
    knl = knl.tag_inames({"i": "l.0", "j": "unr"}).add_prefetch("a", ["i", "j"])
    (read,) = [c for a, c in same_counts(knl) if a.array == "a_s" and not a.is_write]
    assert (read.requests, read.pieces, read.least_pieces) == (32, 32 * 32, 32)


GALLERY = {
    ("transpose", "scheduled"): {"n": 70, "m": 45},
    ("matmul", "tiled"): {"n": 17, "m": 20, "l": 18},
    ("matmul_registers", "any size"): {"n": 5, "m": 130, "l": 5},
    ("stencil_5", "scheduled"): {"n": 35, "m": 40},
    ("stencil_25", "tiled"): {"n": 2, "m": 3, "l": 33},
    ("n_body", "scheduled"): {"n": 40},
    ("dg_gradient", "registers"): {"ne": 5},
    ("convolution", "scheduled"): {
        "images": 1,
        "filters": 9,
        "height": 5,
        "width": 18,
        "channels": 2,
    },
    ("batched_4x4", "scheduled"): {"count": 131},
    ("triangular_solve", "scheduled"): {"n": 10, "sides": 70},
    ("wavefront", "scheduled"): {"n": 9, "m": 40},
}


@pytest.mark.slow
@pytest.mark.parametrize(("example", "schedule"), GALLERY)
def test_gallery(example: str, schedule: str) -> None:
    made = importlib.import_module(example).make()[schedule]
    sizes = GALLERY[example, schedule]
    found = same_counts(made, **{name: sizes[name] for name in made.sizes})
    assert found


def footprints(knl: lk.Kernel, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Bytes of each array in global memory that are read and written, cell by cell."""
    model = model_of(prepare(knl))
    cells: dict[tuple[str, bool], set[tuple[int, ...]]] = defaultdict(set)
    for access in accesses_of(model.kernel):
        if space_of(model.kernel, access.array) not in (AddressSpace.LOCAL, AddressSpace.PRIVATE):
            where = address_map(model, access, sizes)
            cells[access.array, access.is_write] |= {
                tuple(value(form, point) for form in where.cell) for point in points(where, sizes)
            }
    itemsize = {name: model.array(name).dtype.itemsize for name, _ in cells}
    return {
        name: (len(cells[name, False]) * size, len(cells[name, True]) * size)
        for name, size in itemsize.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_schedules(first: int) -> None:
    """Whatever transforms make of loops: requests, reuse and footprints are those of all points."""
    ran = 0
    for seed in range(first, first + 10):
        r = random.Random(seed)
        knl = random_schedule(r.choice(KERNELS)(), r)
        sizes = {n: v for n, v in r.choice(SIZES).items() if n in knl.sizes}
        sizes = knl.with_computed(sizes)
        try:
            knl.program()
        except lk.LoopkitError:
            continue
        same_counts(knl, **sizes)
        costs = knl.costs(**sizes)
        found = {f.array: (f.read, f.written) for f in costs.footprints}
        assert found == footprints(knl, sizes), seed
        ran += 1
    assert ran >= 3


def test_several_pieces() -> None:
    """A domain that is no single conjunction: threads of one warp come from different parts."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 3 }",
        "b[k, i] = a[k, 2*i] {if=(i < 5 or i > n - 7 or (i + k) % 4 == 0)}",
        dtypes={"a, b": "float32"},
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    for n in (1, 8, 40, 70):
        same_counts(knl, n=n)
        assert {f.array: (f.read, f.written) for f in knl.costs(n=n).footprints} == footprints(
            knl, {"n": n}
        )


def test_quotients_in_subscripts() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        "b[i, j] = a[(i + 3*j) // 4] + a[(7*i) % 9] + a[min(i, 3*j)]",
        dtypes={"a, b": "float16"},
    )
    knl = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").tag_inames({"j": "l.1"})
    same_counts(knl, n=37)


def test_no_elements_at_all() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a, b": "float32"}, assumptions="n >= 0"
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    costs = knl.costs(n=0)
    assert costs.blocks == 0
    assert [a.counts.requests for a in costs.accesses if a.counts] == [0, 0]
    assert {(f.read, f.written) for f in costs.footprints} == {(0, 0)}


def test_huge_sizes() -> None:
    """Of addresses beyond 32 bits, and of more instances than 64 bits hold."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        "b[i, j] = sum(k, a[i, k] * a[k, j])",
        dtypes={"a, b": "float32"},
        assumptions="1 <= n <= 4194304",
    )
    knl = knl.split_iname("i", 16, inner_tag="l.1").split_iname("j", 16, inner_tag="l.0")
    knl = knl.tag_inames({"i_outer": "g.0"})
    n = 1 << 20
    costs = knl.costs(n=n)
    assert dict(costs.operations)["mul", "float32"] == n**3
    row, column = [a.counts for a in costs.accesses if not a.is_write]
    assert row is not None and column is not None
    # A warp is two rows of 16 threads: two sectors, and one element, or 16, of each.
    assert (row.requests, row.pieces, row.threads) == (n**3 // 32, n**3 // 16, n**3)
    assert (column.pieces, column.alignment) == (n**3 // 16, 64)
    assert [(f.read, f.written) for f in costs.footprints] == [(4 * n**2, 0), (0, 4 * n**2)]
    large = knl.costs(n=4194304)
    assert dict(large.operations)["mul", "float32"] == 4194304**3 > 1 << 64


def test_where_data_decide() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[col[i]] {if=(mask[i] > 0)}",
        dtypes={"a, b, mask": "float32", "col": "int32"},
        kernel_data=[lk.GlobalArg("a", shape="n"), ...],
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    costs = knl.costs(n=100)
    by_array = {a.array: a for a in costs.accesses}
    assert by_array["a"].counts is None and by_array["a"].why == "data decide"
    assert costs.at_most == ("insn",)
    assert "as if conditions on data held: insn" in str(costs)
    assert {f.array: f.read for f in costs.footprints}["a"] is None
    mask, written = by_array["mask"], by_array["b"]
    assert mask.counts is not None and mask.counts.threads == 100 and not mask.at_most
    assert written.counts is not None and written.counts.threads == 100 and written.at_most


@pytest.mark.parametrize(
    ("example", "schedule", "sizes"),
    [
        ("stencil_25", "tiled", {"n": 1024, "m": 1024, "l": 1024}),
        ("stencil_25", "planes", {"n": 1024, "m": 1024, "l": 1024}),
        ("matmul_registers", "full tiles", {"n": 4096, "m": 4096, "l": 4096}),
        ("wavefront", "scheduled", {"n": 4096, "m": 4096}),
        ("axpy", "plain", {"n": 1 << 24}),
    ],
)
def test_nothing_is_enumerated(example: str, schedule: str, sizes: dict[str, int]) -> None:
    """Costs of real sizes take half a second of one core at most."""
    knl = importlib.import_module(example).make()[schedule]
    knl.program()
    costs, taken = timed(lambda: knl.costs(**sizes))
    assert all(a.counts is not None for a in costs.accesses)
    assert all(a.reuse is not None for a in costs.accesses if a.space == "global")
    assert all(f.read is not None and f.written is not None for f in costs.footprints)
    assert taken < 0.5
