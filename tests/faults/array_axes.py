"""Faults in the transforms of axes."""

from __future__ import annotations

from typing import Any

from refusals.case import do

from faults import kernels
from faults.planting import Patch, fault


def _one_less(original: Any) -> Any:
    return lambda extent, count: original(extent, count) - 1


fault(
    "split_array_dim: the last part has no place",
    kernels.turned_rows,
    do("split_array_dim", ("t", 0), 3),
    Patch("transforms.array_axes:_parts", _one_less),
    sanitize=True,
)


def _unmoved(original: Any) -> Any:
    """All arrays begin at the start of the whole."""
    return lambda at, start: original(at, 0)


fault(
    "concatenate_arrays: one over the other",
    kernels.turned_rows,
    do("concatenate_arrays", "t, u", "w"),
    Patch("transforms.array_axes:_moved", _unmoved),
)


def _every_axis(original: Any) -> Any:
    """All axes go, not only those that tell iterations apart."""
    return lambda kernel, temporary, axes: original(kernel, temporary, range(len(temporary.shape)))


fault(
    "unprivatize: an axis goes that is needed",
    kernels.rows_apart,
    do("unprivatize_temporaries_with_inames", "i"),
    Patch("transforms.temporaries:without_axes", _every_axis),
)
