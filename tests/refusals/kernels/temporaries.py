"""Temporaries: scalars, what they carry, and tiles."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import loopkit as lk
from refusals.kernels.making import make


@cache
def scalar() -> lk.Kernel:
    """A temporary between two statements of one iteration."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 2*a[i] {id=make}
            b[i] = t + 1 {id=use}
        end
        """,
        "n >= 1",
        "a, b",
    )


@cache
def scalar_16() -> lk.Kernel:
    """:func:`scalar` for at most 16 values."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 2*a[i] {id=make}
            b[i] = t + 1 {id=use}
        end
        """,
        "1 <= n <= 16",
        "a, b",
    )


@cache
def scalar_pair() -> lk.Kernel:
    """A temporary that serves a loop inside of its own."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <> t = 2*x[i] {id=load}
            for j
                y[i, j] = t + x[j] {id=use}
            end
        end
        """,
        "n >= 1 and 1 <= m <= n",
        "x, y",
    )


@cache
def carried() -> lk.Kernel:
    """A temporary that takes a value from one iteration to the next."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        <float32> t = 0 {id=start}
        for i
            b[i] = t + a[i] {id=use}
            t = a[i] {id=keep}
        end
        """,
        "n >= 1",
        "a, b",
    )


@cache
def carried_16() -> lk.Kernel:
    """:func:`carried` for at most 16 values; the first iteration starts the temporary."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <float32> t = 0 {id=start, if=i == 0}
            b[i] = t + a[i] {id=use}
            t = a[i] {id=keep}
        end
        """,
        "1 <= n <= 16",
        "a, b",
    )


@cache
def inner_sums() -> lk.Kernel:
    """The sum of each row by hand, of at most 8 columns, in a temporary."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <float32> t = 0 {id=start}
            for j
                t = t + a[i, j] {id=add}
            end
            r[i] = t {id=done}
        end
        """,
        "n >= 1 and 1 <= m <= 8",
        "a, r",
    )


@cache
def inner_carried() -> lk.Kernel:
    """A temporary that carries a value along each row of at most 8 columns."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            for j
                <float32> t = 0 {id=start, if=j == 0}
                b[i, j] = t + a[i, j] {id=use}
                t = a[i, j] {id=keep}
            end
        end
        """,
        "n >= 1 and 1 <= m <= 8",
        "a, b",
    )


def _turned(*data: Any) -> lk.Kernel:
    return make(
        "{ [i, j]: 0 <= i, j < 16 }",
        """
        for i
            t[i] = 2*a[i] {id=load}
        end
        for j
            b[j] = t[15 - j] {id=use}
        end
        """,
        "",
        "a, b",
        *data,
    )


@cache
def turned() -> lk.Kernel:
    """A tile is filled, and read in the opposite order."""
    return _turned(lk.TemporaryVariable("t", np.dtype("float32"), (16,)))


@cache
def turned_private() -> lk.Kernel:
    """:func:`turned` in the memory of one thread."""
    space = lk.AddressSpace.PRIVATE
    return _turned(lk.TemporaryVariable("t", np.dtype("float32"), (16,), space))


@cache
def turned_rows() -> lk.Kernel:
    """:func:`turned` for each row of an array."""
    return make(
        "{ [r, i, j]: 0 <= r < n and 0 <= i, j < 16 }",
        """
        for r
            for i
                t[i] = 2*a[r, i] {id=load}
            end
            for j
                b[r, j] = t[15 - j] {id=use}
            end
        end
        """,
        "n >= 1",
        "a, b",
        lk.TemporaryVariable("t", np.dtype("float32"), (16,)),
    )


@cache
def turned_tile() -> lk.Kernel:
    """A small matrix is transposed through a tile."""
    return make(
        "{ [i, j, p, q]: 0 <= i, j, p, q < 8 }",
        """
        for i
            for j
                t[i, j] = 2*a[i, j] {id=load}
            end
        end
        for p
            for q
                b[p, q] = t[q, p] {id=use}
            end
        end
        """,
        "",
        "a, b",
        lk.TemporaryVariable("t", np.dtype("float32"), (8, 8)),
    )


@cache
def kept_then_changed() -> lk.Kernel:
    """A value is kept before the array that it comes from is changed."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 2*a[i] {id=keep}
            b[i] = t {id=use}
            a[i] = x[i] {id=change}
            c[i] = t + a[i] {id=again}
        end
        """,
        "n >= 1",
        "a, b, c, x",
    )


@cache
def ruled() -> lk.Kernel:
    """:func:`two_writers` with a substitution rule."""
    return make(
        "{ [i, p, q, r]: 0 <= i, q < 16 and 0 <= p < n and 0 <= r < n }",
        """
        f(x) := 3*a[x]
        for p
            b[p] = sum(i, f(i)) {id=use}
        end
        for q
            a[q] = 2*x[q] {id=change}
        end
        for r
            c[r] = sum(i, f(i)) + 1 {id=again}
        end
        """,
        "n >= 1",
        "a, b, c, x",
    )


@cache
def ruled_sums() -> lk.Kernel:
    """Sums of rows by a rule that holds them, before and after the rows change."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 8 }",
        """
        f(x) := sum(k, a[x, k])
        for i
            b[i] = f(i) {id=use}
            for j
                a[i, j] = 2*x[j] {id=change}
            end
            c[i] = f(i) {id=again}
        end
        """,
        "n >= 1",
        "a, b, c, x",
    )


@cache
def ruled_rows() -> lk.Kernel:
    """A rule whose values differ from row to row."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := 3*a[x, i]\nb[i, j] = f(j) + f(j + 1) {id=s}",
        "n >= 1",
        "a, b",
    )


@cache
def through_temporary() -> lk.Kernel:
    """Two loops, and between them a temporary that is read backwards."""
    return make(
        "{ [i, j]: 0 <= i, j < n }",
        """
        <> s[i] = 2*x[i] {id=make}
        y[j] = s[j] + s[n - 1 - j] {id=use}
        """,
        "n >= 1",
        "x, y",
    )


@cache
def through_scalar() -> lk.Kernel:
    """A value that each iteration of a loop makes and uses."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        <> s = 2*x[i] {id=make}
        y[i] = s {id=use}
        """,
        "n >= 1",
        "x, y",
    )


@cache
def through_scalar_in_rows() -> lk.Kernel:
    """A value that each iteration of two loops makes and uses."""
    return make(
        "{ [i, j]: 0 <= i, j < n }",
        """
        <> s = 2*x[i, j] {id=make}
        z[i, j] = s {id=use}
        """,
        "n >= 1",
        "x, z",
    )


@cache
def idle() -> lk.Kernel:
    """A value that nobody needs."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 2*a[i] {id=make}
            b[i] = a[i] + 1 {id=use}
        end
        """,
        "n >= 1",
        "a, b",
    )


@cache
def last_value() -> lk.Kernel:
    """A cell that each iteration copies, after what was there has been read."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            d[i] = b[0] {id=tell}
            c[0] = a[i] {id=make}
            b[0] = c[0] {id=use}
            e[0] = a[0] {id=other}
        end
        """,
        "n >= 1",
        "a, b, c, d, e",
    )


@cache
def two_rows() -> lk.Kernel:
    """Two rows of values, one read backwards, the other at once."""
    return make(
        "{ [i, j]: 0 <= i, j < 16 }",
        """
        for i
            <> t[i] = 2*a[i] {id=load}
            <> u[i] = 3*a[i] {id=more}
            c[i] = u[i] + 1 {id=now}
        end
        for j
            b[j] = t[15 - j] {id=use}
        end
        """,
        "",
        "a, b, c",
    )
