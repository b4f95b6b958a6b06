"""Sums by hand and by reduction, and what is built of them."""

from __future__ import annotations

from functools import cache

import loopkit as lk
from refusals.kernels.making import make


@cache
def solve() -> lk.Kernel:
    """Forward substitution with a lower triangle whose diagonal is one."""
    return make(
        ["{ [i, r]: 0 <= i < n and 0 <= r < m }", "{ [j]: 0 <= j < i }"],
        "x[i, r] = b[i, r] - sum(j, t[i, j]*x[j, r]) {id=s}",
        "n, m >= 1",
        "b, t, x",
    )


@cache
def summed() -> lk.Kernel:
    """A sum as one writes it by hand."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        <float32> acc = 0 {id=start}
        for i
            acc = acc + a[i] {id=add}
        end
        r[0] = acc {id=done}
        """,
        "n >= 1",
        "a, r",
    )


@cache
def summed_in_place() -> lk.Kernel:
    """A sum by hand, kept in an array."""
    return make("{ [i]: 0 <= i < n }", "r[0] = r[0] + a[i] {id=add}", "n >= 1", "a, r")


@cache
def row_sums() -> lk.Kernel:
    """The sum of each row by hand, of at most 32 columns."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "r[i] = r[i] + a[i, j] {id=add}",
        "n >= 1 and 1 <= m <= 32",
        "a, r",
    )


@cache
def row_dots() -> lk.Kernel:
    """The sum of each row as a reduction."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "r[i] = sum(j, a[i, j]) {id=s}",
        "n >= 1 and 1 <= m <= 32",
        "a, r",
    )


@cache
def row_products() -> lk.Kernel:
    """Every row changes the same 16 cells."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        "c[j] = 2*c[j] + a[i, j] {id=step}",
        "n >= 1",
        "a, c",
    )


@cache
def row_products_seen() -> lk.Kernel:
    """:func:`row_products`; each value is copied elsewhere at once."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        """
        for i
            for j
                c[j] = 2*c[j] + a[i, j] {id=step}
                b[i, j] = c[j] {id=see}
            end
        end
        """,
        "n >= 1",
        "a, b, c",
    )


@cache
def center() -> lk.Kernel:
    """The mean is taken off each row: a loop over what was summed just before."""
    return make(
        "{ [i, j, q]: 0 <= i < n and 0 <= j, q < m }",
        """
        for i
            <> mean = sum(j, a[i, j]) {id=sum}
            b[i, q] = a[i, q] - mean {id=take}
            r[i] = sum(j, a[i, j]*a[i, j]) + mean {id=square}
        end
        """,
        "n, m >= 1",
        "a, b, r",
    )


@cache
def two_row_sums() -> lk.Kernel:
    """The sum of each row, and the largest in it."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "r[i] = sum(j, a[i, j]) + max(j, a[i, j]) {id=s}",
        "n >= 1 and 1 <= m <= 32",
        "a, r",
    )


@cache
def weighted_rows() -> lk.Kernel:
    """Sums of whole numbers, each row's with a weight of its own."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = sum(j, w[i]*x[i, j], dtype=int32) {id=s}",
        dtypes={"w, x, y": "int32"},
        assumptions="n, m >= 1",
    )
