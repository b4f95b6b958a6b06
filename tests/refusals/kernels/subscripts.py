"""Subscripts with strides, remainders, sums and conditions."""

from __future__ import annotations

from functools import cache

import loopkit as lk
from refusals.kernels.making import array, make


@cache
def doubling() -> lk.Kernel:
    """Even cells come from cells half as far, some of them written before."""
    return make("{ [i]: 0 <= i < n }", "a[2*i] = a[i] + 1 {id=s}", "n >= 1", "", array("a", "2*n"))


@cache
def even_from_odd() -> lk.Kernel:
    """Even cells come from odd ones: nothing is written and read."""
    return make(
        "{ [i]: 0 <= i < n }", "a[2*i] = a[2*i + 1] + 1 {id=s}", "n >= 1", "", array("a", "2*n")
    )


@cache
def halves() -> lk.Kernel:
    """Two neighbours write each cell; the second one counts."""
    return make("{ [i]: 0 <= i < n }", "c[i // 2] = b[i] {id=s}", "n >= 1", "b", array("c", "n"))


@cache
def ring() -> lk.Kernel:
    """Eight cells are used over and over again."""
    return make(
        "{ [i]: 0 <= i < n }",
        "c[i % 8] = 2*c[i % 8] + b[i] {id=s}",
        "n >= 1",
        "b",
        array("c", "8"),
    )


@cache
def polynomials() -> lk.Kernel:
    """The product of two polynomials; all terms of one degree meet in one cell."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "c[i + j] = 2*c[i + j] + a[i]*b[j] {id=s}",
        "n, m >= 1",
        "a, b, c",
    )


@cache
def flip_flop() -> lk.Kernel:
    """Sweeps over a line between the two rows of one array."""
    return make(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        "u[(t + 1) % 2, i] = u[t % 2, i - 1] + u[t % 2, i + 1] {id=s}",
        "steps, n >= 1",
        "",
        array("u", "2, n + 1"),
    )


@cache
def one_row() -> lk.Kernel:
    """The sweeps of :func:`flip_flop` with one row: a step reads what it writes itself."""
    return make(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        "u[(t + 1) % 1, i] = u[t % 1, i - 1] + u[t % 1, i + 1] {id=s}",
        "steps, n >= 1",
        "",
        array("u", "1, n + 1"),
    )


@cache
def first_for_all() -> lk.Kernel:
    """The first iteration writes what all others read."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            h[0] = x[i] {id=make, if=i == 0}
            b[i] = h[0] + x[i] {id=use}
        end
        """,
        "1 <= n <= 64",
        "b, h, x",
    )


@cache
def mirrored() -> lk.Kernel:
    """The lower triangle is copied into the upper one."""
    return make(
        "{ [i, j]: 0 <= j < i < n }",
        "a[j, i] = a[i, j] {id=s}",
        "n >= 1",
        "",
        array("a", "n, n"),
    )


@cache
def mirrored_twice() -> lk.Kernel:
    """Every cell but the diagonal is copied to the other side, where it was copied from before."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n and i != j }",
        "a[j, i] = a[i, j] {id=s}",
        "n >= 1",
        "",
        array("a", "n, n"),
    )


@cache
def border() -> lk.Kernel:
    """Inner values come from their left neighbours, the border from itself."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            a[i] = 2*a[i] {id=border, if=i < 4}
            a[i] = a[i - 4] {id=inner, if=i >= 4}
        end
        """,
        "n >= 1",
        "a",
    )


@cache
def below_zero() -> lk.Kernel:
    """A loop that begins below zero; its third iteration reads what was written before it."""
    return make(
        "{ [i]: -2 <= i < n }",
        """
        h[0] = 2*x[0] {id=make}
        for i
            b[i + 2] = h[0] {id=use, if=i == 0}
        end
        """,
        "n >= 1",
        "b, h, x",
    )


@cache
def above_zero() -> lk.Kernel:
    """A loop that begins at three; all that it does reads what was written before it."""
    return make(
        "{ [i]: 3 <= i < n }",
        """
        h[0] = 2*x[0] {id=make}
        for i
            b[i] = h[0] {id=use}
        end
        """,
        "n >= 1",
        "b, h, x",
    )
