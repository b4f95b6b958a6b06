"""Faults in what the language leaves to a call."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import loopkit as lk
from faults.planting import Patch, fault
from faults.printing import _crossed_strides


def of_the_call() -> lk.Kernel:
    """Rows whose strides are those of the arrays that are passed."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "b[i, j] = a[i, j]",
        [lk.GlobalArg("a", "float32", "n, 4", strides=lk.auto), ...],
        dtypes={"b": "float32"},
    )


fault(
    "calls: strides that the call gives are exchanged",
    of_the_call,
    None,
    Patch("codegen.lower:_with_strides", _crossed_strides),
    sizes={"n": 6},
    strided="a",
    values=lambda sizes: {"a": np.asfortranarray(np.arange(24.0, dtype="f4").reshape(6, 4))},
)


def with_table() -> lk.Kernel:
    """A filter whose coefficients stand in the source."""
    coefficients = np.array([[1, 2, 3], [4, 5, 6]], "f4")
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 2 and 0 <= j < 3 }",
        "b[i, j] = c[i, j]*a[i, j]",
        [lk.TemporaryVariable("c", initializer=coefficients, read_only=True), ...],
        dtypes={"a, b": "float32"},
    )


def _tables(change: Any) -> Patch:
    """The tables of the source hold something else."""

    def make(original: Any) -> Any:
        return lambda kernel: tuple(
            dataclasses.replace(t, data=change(np.frombuffer(t.data, "f4")).tobytes())
            for t in original(kernel)
        )

    return Patch("codegen.lower:tables_of", make)


fault(
    "values: an element of a table is rounded",
    with_table,
    None,
    _tables(lambda x: x + np.float32(0.5) * (x == 5)),
)
fault(
    "values: a table is transposed",
    with_table,
    None,
    _tables(lambda x: np.ascontiguousarray(x.reshape(2, 3).T)),
)


def with_bits() -> lk.Kernel:
    """Leading zeros of bytes."""
    return lk.make_kernel("{ [i]: 0 <= i < 4 }", "b[i] = clz(a[i])", dtypes={"a": "uint8"})


fault(
    "values: bits are counted in a wider type",
    with_bits,
    None,
    Patch("codegen.expressions:lower_call", lambda original: _in_registers(original)),
    values=lambda sizes: {"a": np.arange(4, dtype="u1")},
)


def _in_registers(original: Any) -> Any:
    """Functions of bits take narrow integers for the wide ones that C makes of them."""

    def lower_call(name: str, operands: Any, asked: Any) -> Any:
        found = original(name, operands, asked)
        node = getattr(found, "node", None)
        if name != "clz" or node is None:
            return found
        called = dataclasses.replace(node, function="lk_clz<int>")
        return dataclasses.replace(found, node=called)

    return lower_call
