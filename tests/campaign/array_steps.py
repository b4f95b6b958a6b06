"""Arguments drawn at random for the transforms of axes."""

from __future__ import annotations

import random
from typing import Any

from loopkit import Kernel

Arguments = dict[str, Any] | None


def set_array_axis_names(r: random.Random, knl: Kernel) -> Arguments:
    arrays = [a for a in (*knl.temporaries, *knl.args) if getattr(a, "shape", None)]
    if not arrays:
        return None
    array = r.choice(arrays)
    rank = len(array.shape or ())
    names = r.sample(["row", "col", "depth", "part"], min(rank, 4))
    return {"ary_names": array.name, "dim_names": r.choice([names, names, names, None])}


def _axis(r: random.Random, knl: Kernel, name: str, rank: int) -> int | str:
    """An axis by its number, or by its name if it has one."""
    axis = r.randrange(rank)
    names = knl.array(name).dim_names
    return names[axis] if names and r.random() < 0.7 else axis


def split_array_dim(r: random.Random, knl: Kernel) -> Arguments:
    arrays = [(t.name, len(t.shape)) for t in knl.temporaries if t.shape]
    if r.random() < 0.1:
        arrays += [(a.name, len(getattr(a, "shape", None) or ())) for a in knl.args]
    arrays = [(name, rank) for name, rank in arrays if rank]
    if not arrays:
        return None
    name, rank = r.choice(arrays)
    axis = (name, _axis(r, knl, name, rank), r.choice("CF"))
    return {"arrays_and_axes": axis, "count": r.choice([1, 2, 3, 4, 5, 8])}


def concatenate_arrays(r: random.Random, knl: Kernel) -> Arguments:
    names = [t.name for t in knl.temporaries if t.shape]
    if len(names) < 2:
        return None
    return {"array_names": r.sample(names, 2), "axis_nr": r.choice([0, 0, -1])}


def unprivatize_temporaries_with_inames(r: random.Random, knl: Kernel) -> Arguments:
    if not any(t.shape for t in knl.temporaries):
        return None
    found: dict[str, Any] = {
        "privatizing_inames": r.sample(knl.all_inames, min(len(knl.all_inames), 3))
    }
    if r.random() < 0.5:
        found["only_var_names"] = [r.choice([t.name for t in knl.temporaries if t.shape])]
    return found
