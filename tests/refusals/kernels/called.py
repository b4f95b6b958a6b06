"""Kernels that are about how they are called, and about what they call."""

from __future__ import annotations

from functools import cache

import loopkit as lk
from refusals.kernels.making import array, make


@cache
def spare_argument() -> lk.Kernel:
    """An argument that nothing needs."""
    return make(
        "{ [i]: 0 <= i < n }", "b[i] = 2*a[i] {id=s}", "n >= 1", "a, b", array("unused", "n")
    )


@cache
def calling() -> lk.Kernel:
    """Each column goes through a function."""
    halved = lk.make_function(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]/2 {id=half}", ["x", ...], name="halved"
    )
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "[i]: b[i, j] = halved([i]: a[i, j])",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        functions=[halved],
    )
