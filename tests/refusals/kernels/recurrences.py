"""Loops whose iterations need each other, and their nearest kin that do not."""

from __future__ import annotations

from functools import cache

import loopkit as lk
from refusals.kernels.making import array, make


@cache
def recurrence() -> lk.Kernel:
    """A prefix sum as one writes it first."""
    return make("{ [i]: 1 <= i < n }", "a[i] = a[i-1] + b[i] {id=s}", "n >= 1", "a, b")


@cache
def short_recurrence() -> lk.Kernel:
    """A recurrence of at most 64 steps, which one block could hold."""
    return make("{ [i]: 1 <= i < n }", "a[i] = a[i-1] + b[i] {id=s}", "1 <= n <= 64", "a, b")


@cache
def recurrence_16() -> lk.Kernel:
    """:func:`recurrence` of constant length."""
    return make("{ [i]: 1 <= i < 17 }", "a[i] = a[i-1] + b[i] {id=s}", "", "a, b")


@cache
def batch() -> lk.Kernel:
    """Many recurrences beside each other."""
    return make(
        "{ [i, j]: 1 <= i < n and 0 <= j < m }",
        "a[i, j] = a[i-1, j] + b[i, j] {id=s}",
        "n, m >= 1",
        "a, b",
    )


@cache
def batch_16() -> lk.Kernel:
    """:func:`batch` of constant size."""
    return make(
        "{ [i, j]: 1 <= i < 16 and 0 <= j < 16 }",
        "a[i, j] = a[i-1, j] + b[i, j] {id=s}",
        "",
        "a, b",
    )


@cache
def every_other() -> lk.Kernel:
    """A recurrence over two steps: neighbours are independent."""
    return make("{ [i]: 0 <= i < n }", "a[i + 2] = a[i] + b[i] {id=s}", "n >= 1", "a, b")


@cache
def shift_left() -> lk.Kernel:
    """Everything moves one place down, in place."""
    return make("{ [i]: 0 <= i < n }", "a[i] = a[i + 1] {id=s}", "n >= 1", "a")


@cache
def shift_right() -> lk.Kernel:
    """Every other value is doubled into its neighbour, in place."""
    return make("{ [i]: 0 <= i < n }", "a[i + 1] = 2*a[i] {id=s}", "n >= 1", "a")


@cache
def shift_right_tagged() -> lk.Kernel:
    """:func:`shift_right`; what is read has a tag."""
    return make("{ [i]: 0 <= i < n }", "a[i + 1] = 2*a$before[i] {id=s}", "n >= 1", "a")


@cache
def copied_shift() -> lk.Kernel:
    """The same into another array."""
    return make("{ [i]: 0 <= i < n }", "c[i] = a[i + 1] {id=s}", "n >= 1", "a, c")


@cache
def shift_by() -> lk.Kernel:
    """A shift by a distance that the caller says."""
    return make(
        "{ [i]: 0 <= i < n }",
        "a[i] = a[i + d] {id=s}",
        "n >= 1 and d >= 1",
        "",
        array("a", "n + d"),
    )


@cache
def wave() -> lk.Kernel:
    """Each value needs the one above to the right: distance (1, -1)."""
    return make(
        "{ [i, j]: 1 <= i < n and 0 <= j < m }",
        "a[i, j] = a[i-1, j+1] + 1 {id=s}",
        "n, m >= 1",
        "a",
    )


@cache
def wave_16() -> lk.Kernel:
    """:func:`wave` of 16 rows, so that they can be joined."""
    return make(
        "{ [i, j]: 1 <= i < 16 and 0 <= j < m }",
        "a[i, j] = a[i-1, j+1] + 1 {id=s}",
        "m >= 1",
        "a",
    )


@cache
def wave_narrow() -> lk.Kernel:
    """:func:`wave` of 16 columns."""
    return make(
        "{ [i, j]: 1 <= i < m and 0 <= j < 16 }",
        "a[i, j] = a[i-1, j+1] + 1 {id=s}",
        "m >= 1",
        "a",
    )


@cache
def corner() -> lk.Kernel:
    """Each value needs its upper and its left neighbour, as in an alignment of strings."""
    return make(
        "{ [i, j]: 1 <= i < n and 1 <= j < m }",
        "a[i, j] = a[i-1, j] + 2*a[i, j-1] + b[i, j] {id=s}",
        "n, m >= 1",
        "a, b",
    )


@cache
def gauss_seidel() -> lk.Kernel:
    """Sweeps over a line in place, each value from its newest neighbours."""
    return make(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        """
        for t
            for i
                u[i] = u[i-1] + u[i+1] {id=s}
            end
        end
        """,
        "steps, n >= 1",
        "u",
    )


@cache
def history() -> lk.Kernel:
    """Sweeps over a line that keep every step."""
    return make(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        "u[t + 1, i] = u[t, i - 1] + u[t, i + 1] {id=s}",
        "steps, n >= 1",
        "u",
    )


@cache
def last_wins() -> lk.Kernel:
    """All iterations write one cell; the last one counts."""
    return make("{ [i]: 0 <= i < n }", "r[0] = a[i] {id=s}", "n >= 1", "a, r")


@cache
def transposed_in_place() -> lk.Kernel:
    """Not a transpose: cells are read after they were written."""
    return make("{ [i, j]: 0 <= i < n and 0 <= j < n }", "a[i, j] = a[j, i] {id=s}", "n >= 1", "a")


@cache
def transposed() -> lk.Kernel:
    """A transpose into another array."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }", "c[i, j] = a[j, i] {id=s}", "n >= 1", "a, c"
    )


@cache
def reversed_in_place() -> lk.Kernel:
    """Not a reversal: the second half reads what the first one wrote."""
    return make("{ [i]: 0 <= i < n }", "a[i] = a[n - 1 - i] {id=s}", "n >= 1", "", array("a", "n"))


@cache
def swapped_halves() -> lk.Kernel:
    """A reversal in place: each iteration swaps two cells that are its own."""
    return make(
        "{ [i]: 0 <= 2*i < n }",
        """
        for i
            <> t = a[i] {id=keep}
            a[i] = a[n - 1 - i] {id=first}
            a[n - 1 - i] = t {id=second}
        end
        """,
        "n >= 1",
        "",
        array("a", "n"),
    )


@cache
def columns() -> lk.Kernel:
    """Row after row adds to what a column holds, below the diagonal."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "c[j] = c[j]*2 + a[i, j] {id=s}",
        "n >= 1",
        "a, c",
    )


@cache
def factors() -> lk.Kernel:
    """A matrix without its columns, one after the other, as elimination goes."""
    return make(
        ["{ [k]: 0 <= k < n }", "{ [i]: k < i < n }", "{ [p, q]: k < p, q < n }"],
        """
        for k
            a[i, k] = a[i, k]*a[k, k] {id=column}
            a[p, q] = a[p, q] - a[p, k]*a[k, q] {id=rest, dep=column}
        end
        """,
        "n >= 1",
        "a",
    )


@cache
def substitution_by_hand() -> lk.Kernel:
    """Forward substitution of one right side, its sums by hand."""
    return make(
        "{ [i, j]: 0 <= j < i < n }", "x[i] = 2*x[i] + t[i, j]*x[j] {id=s}", "n >= 1", "t, x"
    )
