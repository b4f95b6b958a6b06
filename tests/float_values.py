"""What terms of floating-point numbers mean: NumPy's own operations, and no rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from term_texts import terms


def _larger(a: Any, b: Any) -> Any:
    return np.where((a > b) | (a != a), a, b)


def _smaller(a: Any, b: Any) -> Any:
    return np.where((a < b) | (a != a), a, b)


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "copysign": np.copysign,
    "max": _larger,
    "min": _smaller,
    "lt": np.less,
    "le": np.less_equal,
}


def values_of(term: Any, names: Mapping[str, Any]) -> Any:
    """The values of a term for arrays of values of its names."""
    dtype = terms.SORTS.get(term.sort)
    with np.errstate(all="ignore"):
        match term.op:
            case "constant":
                return np.asarray(term.data, dtype)
            case "name":
                return names[term.data[0]]
        args = [values_of(a, names) for a in term.args]
        if term.op in ("cast", "tofloat"):
            return args[0].astype(dtype)
        if term.op == "toint":
            return args[0].astype(term.data)
        found = OPERATIONS[term.op](*args)
        return found.astype(dtype) if dtype is not None else found


def are_same(one: Any, two: Any) -> Any:
    """Where values have the same bits; all that is not a number is one."""
    one, two = np.broadcast_arrays(one, two)
    if one.dtype.kind in "biu":
        return one == two
    bits = f"uint{8 * one.itemsize}"
    alike = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(two).view(bits)
    return alike | ((one != one) & (two != two))
