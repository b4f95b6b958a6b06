"""Counts of requests, sectors and wavefronts are those of all threads, gone through one by one."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import loopkit as lk
from loopkit._arrays import AddressSpace
from loopkit._costs.accesses import Access, AddressMap, accesses_of, address_map, space_of
from loopkit._costs.warps import GLOBAL, SHARED, WarpCosts, warp_costs
from loopkit._poly.integer_points import enumerated, systems
from loopkit._poly.model import model_of
from loopkit.codegen.prepare import prepare

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))


def one_by_one(
    access: AddressMap,
    sizes: Mapping[str, int],
    block: tuple[int, int, int],
    itemsize: int,
    *,
    shared: bool,
) -> WarpCosts:
    """The same by going through all points."""
    lanes = [lane for lane in access.lanes if lane is not None]
    names = (*access.requests, *(name for name, _ in lanes), *access.others)
    warps: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for system in systems(access.domain, names, sizes):
        for row in enumerated(system):
            point = dict(zip(names, row.tolist(), strict=False))
            index = [0 if lane is None else point[lane[0]] - lane[1] for lane in access.lanes]
            thread = index[0] + block[0] * (index[1] + block[1] * index[2])
            address = access.address.constant + sum(
                c * point[v.name] for v, c in access.address.terms.items()
            )
            request = (*(point[n] for n in access.requests), thread // 32)
            assert thread % 32 not in warps[request]
            warps[request][thread % 32] = address * itemsize
    total = WarpCosts()
    for threads in warps.values():
        touched = set(threads.values())
        if not shared:
            pieces = len({a // 32 for a in touched})
            least = -(-len(touched) * itemsize // 32)
        else:
            pieces = least = 0
            words = -(-itemsize // 4)
            for turn in range(words):
                mine = [a for t, a in threads.items() if t * words // 32 == turn]
                used = {a // 4 + w for a in mine for w in range(words)}
                pieces += max(np.bincount([u % 32 for u in used]), default=0) if used else 0
                least += -(-len(used) // 32)
        total += WarpCosts(1, len(threads), len(touched), int(pieces), least)
    return total


def same_counts(knl: lk.Kernel, **sizes: int) -> list[tuple[Access, WarpCosts]]:
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
        counted = warp_costs(where, sizes, block, itemsize, 32, memory)
        assert counted == one_by_one(where, sizes, block, itemsize, shared=shared), access
        found.append((access, counted))
    return found


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("step", [1, 2, 3, 33])
def test_strides(dtype: str, step: int) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", f"b[{step}*i + 1] = a[i//2]", dtypes={"a, b": dtype}
    )
    same_counts(knl.split_iname("i", 48, outer_tag="g.0", inner_tag="l.0"), n=150)


def test_a_column_of_a_shared_array() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 32 }", "b[j, i] = a[i, j]", dtypes={"a, b": "float32"}
    )
    knl = knl.tag_inames({"i": "l.0", "j": "unr"}).add_prefetch("a", ["i", "j"])
    (read,) = [c for a, c in same_counts(knl) if a.array == "a_s" and not a.is_write]
    assert (read.requests, read.pieces, read.least_pieces) == (32, 32 * 32, 32)


GALLERY = {
    ("transpose", "scheduled"): {"n": 70, "m": 45},
    ("matmul", "tiled"): {"n": 33, "m": 50, "l": 21},
    ("matmul_registers", "registers"): {"n": 128, "m": 128, "l": 16},
    ("stencil_5", "scheduled"): {"n": 40, "m": 70},
    ("n_body", "scheduled"): {"n": 301},
    ("dg_gradient", "staged"): {"ne": 5},
    ("convolution", "scheduled"): {
        "images": 1,
        "filters": 11,
        "height": 20,
        "width": 35,
        "channels": 2,
    },
    ("batched_4x4", "scheduled"): {"count": 131},
    ("triangular_solve", "scheduled"): {"n": 10, "sides": 70},
    ("wavefront", "scheduled"): {"n": 9, "m": 40},
}


@pytest.mark.parametrize(("example", "schedule"), GALLERY)
def test_gallery(example: str, schedule: str) -> None:
    module = __import__(example)
    make = getattr(module, schedule, None)
    if make is None:
        pytest.fail(f"{example} has {[n for n in dir(module) if not n.startswith('_')]}")
    made = make()
    same_counts(made, **GALLERY[example, schedule])
