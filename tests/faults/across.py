"""Faults in sums over blocks: where they start, where blocks add, and where they are read."""

from __future__ import annotations

import dataclasses
from typing import Any

from refusals.case import do
from seams import LaunchBarrier, build, entries_of

import loopkit as lk
from faults.planting import Patch, fault

STEP = do("realize_reduction", by="atomic", inames="j_outer")
SPLIT = (do("split_iname", "j", 8),)
SIZES = {"n": 3, "m": 19}


def rows() -> lk.Kernel:
    """Sums of rows."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = sum(j, x[i, j]) + 1",
        dtypes={"x": "float32"},
        assumptions="n, m >= 0",
    )


def _in_one_cell(original: Any) -> Any:
    """Each row adds to the first cell."""
    return lambda kernel, array, lengths, cells: original(
        kernel, array, lengths, dict.fromkeys(cells, (0,))
    )


def _too_few(original: Any) -> Any:
    return lambda *given: (original(*given)[0], original(*given)[1] - 1)


def _early(original: Any) -> Any:
    """The launch ends between a partial result and the update that takes it."""

    def parted(kernel: Any, start: str, taking: str) -> Any:
        entries = entries_of(kernel.tree)
        at = [leaf for leaf, _ in entries].index(taking)
        barrier = LaunchBarrier("early"), ()
        return original(
            kernel.with_(tree=build([*entries[:at], barrier, *entries[at:]])), start, taking
        )

    return parted


def _from_one(original: Any) -> Any:
    """Partial results start at one."""

    def partial(kernel: Any, *more: Any) -> Any:
        made = original(kernel, *more)
        return dataclasses.replace(made, start=dataclasses.replace(made.start, rhs=1))

    return partial


for name, patch, more in (
    ("all rows have one cell", Patch("transforms.reductions:with_axes", _in_one_cell), {}),
    ("a row too few", Patch("transforms.reductions:extent_or", _too_few), {"sanitize": True}),
    ("partial results are lost", Patch("transforms.reductions:_with_launches", _early), {}),
    ("partial results start at one", Patch("transforms.reductions:_partial", _from_one), {}),
):
    fault(
        f"realize_reduction over blocks: {name}",
        rows,
        STEP,
        patch,
        chain=SPLIT,
        sizes=SIZES,
        **more,
    )
