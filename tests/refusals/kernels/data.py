"""Kernels in which data decide what is touched."""

from __future__ import annotations

from functools import cache

import loopkit as lk
from refusals.kernels.making import array, make


@cache
def histogram() -> lk.Kernel:
    """Counts by index."""
    return make(
        "{ [i]: 0 <= i < n }",
        "h[bin[i]] = h[bin[i]] + 1 {id=s}",
        "n, m >= 1",
        "",
        array("h", "m"),
        array("bin", "n", "int32"),
    )


@cache
def scatter() -> lk.Kernel:
    """Values go where an index array says."""
    return make(
        "{ [i]: 0 <= i < n }",
        "y[p[i]] = x[i] {id=s}",
        "n >= 1",
        "x",
        array("y", "2*n"),
        array("p", "n", "int32"),
    )


@cache
def scatter_two() -> lk.Kernel:
    """Values go to two places, where two index arrays say."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            y[p[i]] = x[i] {id=one}
            y[q[i]] = 2*x[i] {id=two}
        end
        """,
        "n >= 1",
        "x",
        array("y", "2*n"),
        array("p", "n", "int32"),
        array("q", "n", "int32"),
    )


@cache
def gather() -> lk.Kernel:
    """Values come from where an index array says."""
    return make(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[p[i]] {id=s}",
        "n >= 1",
        "y",
        array("x", "2*n"),
        array("p", "n", "int32"),
    )


@cache
def gather_in_place() -> lk.Kernel:
    """The same within one array."""
    return make(
        "{ [i]: 0 <= i < n }",
        "y[i] = y[p[i]] {id=s}",
        "n >= 1",
        "",
        array("y", "2*n"),
        array("p", "n", "int32"),
    )


@cache
def gather_rows() -> lk.Kernel:
    """Values come from where an index array of two axes says."""
    return make(
        "{ [i, j]: 0 <= i, j < n }",
        "y[i, j] = x[p[i, j]] {id=s}",
        "n >= 1",
        "y",
        array("x", "2*n"),
        array("p", "n, n", "int32"),
    )


@cache
def masked() -> lk.Kernel:
    """A recurrence where a mask is set."""
    return make(
        "{ [i]: 1 <= i < n }",
        "a[i] = a[i-1] + 1 {id=s, if=m[i] > 0}",
        "n >= 1",
        "a",
        array("m", "n", "int32"),
    )


@cache
def segments() -> lk.Kernel:
    """Each row changes a segment of its own, from where an array says."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: first <= j < last }"],
        """
        for i
            <> first = start[i]
            <> last = start[i + 1]
            for j
                y[j] = 2*y[j] + x[i] {id=s}
            end
        end
        """,
        "n >= 1",
        "x",
        array("y", "2*n"),
        array("start", "n + 1", "int32"),
    )


@cache
def written_index() -> lk.Kernel:
    """An index array that the kernel itself computes."""
    return make(
        "{ [i, j]: 0 <= i, j < n }",
        """
        for i
            p[i] = q[i] {id=order}
        end
        for j
            y[p[j]] = x[j] {id=s}
        end
        """,
        "n >= 1",
        "x",
        array("y", "2*n"),
        array("p", "n", "int32"),
        array("q", "n", "int32"),
    )


@cache
def spare_iname() -> lk.Kernel:
    """An iname that nothing uses."""
    return make(
        ["{ [i]: 1 <= i < n }", "{ [z]: 0 <= z < n }"],
        "a[i] = a[i-1] + b[i] {id=s}",
        "n >= 1",
        "a, b",
    )


@cache
def counted_down() -> lk.Kernel:
    """Numbers that are counted down until they are negative: data end the loop."""
    return make(
        "{ [i, t]: 0 <= i < n and 0 <= t < 8 }",
        """
        for i
            <> r = 4*x[i]
            for t
                r = r - 1 {id=less}
                break if r < 0 {id=stop}
                b[i, t] = r {id=keep}
            end
            c[i] = r {id=left}
        end
        """,
        "n >= 1",
        "b, c, x",
    )
