"""Statements that hand values to each other, from loop to loop or from line to line."""

from __future__ import annotations

from functools import cache

import numpy as np

import loopkit as lk
from refusals.kernels.making import array, make


@cache
def jacobi() -> lk.Kernel:
    """Sweeps over a line, there and back between two arrays."""
    return make(
        "{ [t, i, j]: 0 <= t < steps and 1 <= i, j < n }",
        """
        for t
            for i
                v[i] = u[i-1] + u[i+1] {id=there}
            end
            for j
                u[j] = v[j] {id=back}
            end
        end
        """,
        "steps, n >= 1",
        "u, v",
    )


@cache
def jacobi_16() -> lk.Kernel:
    """:func:`jacobi` for a line of constant length."""
    return make(
        "{ [t, i, j]: 0 <= t < steps and 1 <= i, j < 16 }",
        """
        for t
            for i
                v[i] = u[i-1] + u[i+1] {id=there}
            end
            for j
                u[j] = v[j] {id=back}
            end
        end
        """,
        "steps >= 1",
        "u, v",
    )


@cache
def two_loops() -> lk.Kernel:
    """Two loops over the same values; the second reads one place ahead."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            a[i] = 2*x[i] {id=make}
        end
        for j
            b[j] = a[j + 1] {id=use}
        end
        """,
        "1 <= n <= 64",
        "a, b, x",
    )


@cache
def two_loops_behind() -> lk.Kernel:
    """Like :func:`two_loops`, but the second loop reads one place behind."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            a[i + 1] = 2*x[i] {id=make}
        end
        for j
            b[j] = a[j] {id=use}
        end
        """,
        "1 <= n <= 64",
        "a, b, x",
    )


@cache
def two_loops_apart() -> lk.Kernel:
    """Two loops each iteration of which reads what the same one of the other wrote."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            a[i] = 2*x[i] {id=make}
        end
        for j
            b[j] = a[j] + 1 {id=use}
        end
        """,
        "1 <= n <= 64",
        "a, b, x",
    )


@cache
def read_then_write() -> lk.Kernel:
    """The second loop overwrites what the first one read one place behind."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            b[i] = a[i] {id=use}
        end
        for j
            a[j + 1] = 2*x[j] {id=make}
        end
        """,
        "1 <= n <= 64",
        "a, b, x",
    )


@cache
def ping() -> lk.Kernel:
    """Two statements of which the second uses the first."""
    return make(
        "{ [i]: 1 <= i < n }",
        """
        for i
            a[i] = a[i - 1] + x[i] {id=first}
            b[i] = 2*a[i] {id=second}
        end
        """,
        "n >= 1",
        "a, b, x",
    )


@cache
def ping_pong() -> lk.Kernel:
    """Two statements that hand a value on, one to the other and on to the next iteration."""
    return make(
        "{ [i]: 1 <= i < n }",
        """
        for i
            a[i] = b[i - 1] + x[i] {id=first}
            b[i] = 2*a[i] {id=second}
        end
        """,
        "n >= 1",
        "a, b, x",
    )


@cache
def ping_pong_16() -> lk.Kernel:
    """:func:`ping_pong` of constant length."""
    return make(
        "{ [i]: 1 <= i < 16 }",
        """
        for i
            a[i] = b[i - 1] + x[i] {id=first}
            b[i] = 2*a[i] {id=second}
        end
        """,
        "",
        "a, b, x",
    )


@cache
def running_total() -> lk.Kernel:
    """A cell that every row changes, after the row before it was read."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            r[0] = 2*r[0] + x[i] {id=step}
            for j
                y[i, j] = r[0] {id=use}
            end
        end
        """,
        "n, m >= 1",
        "r, x, y",
    )


@cache
def rows_in_turn() -> lk.Kernel:
    """A row is computed in a buffer that the next row uses again."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            for j
                a[j] = x[i, j] {id=make}
                b[i, j] = 2*a[j] {id=use}
            end
        end
        """,
        "n, m >= 1",
        "a, b, x",
    )


@cache
def rows_in_turn_16() -> lk.Kernel:
    """:func:`rows_in_turn` for rows of 16."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        """
        for i
            for j
                a[j] = x[i, j] {id=make}
                b[i, j] = 2*a[j] {id=use}
            end
        end
        """,
        "n >= 1",
        "a, b, x",
    )


@cache
def two_writers() -> lk.Kernel:
    """An array is used, changed, and used again."""
    return make(
        "{ [i, p, q, r]: 0 <= i, q < 16 and 0 <= p < n and 0 <= r < n }",
        """
        for p
            b[p] = sum(i, a[i]) {id=use}
        end
        for q
            a[q] = 2*x[q] {id=change}
        end
        for r
            c[r] = sum(i, a[i]) + 1 {id=again}
        end
        """,
        "n >= 1",
        "a, b, c, x",
    )


@cache
def twice_in_turn() -> lk.Kernel:
    """One iname heads two loops; the second reads what the first wrote one place further on."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            a[i] = 2*x[i] {id=make}
        end
        for i
            b[i] = a[n - 1 - i] {id=use}
        end
        """,
        "n >= 1",
        "b, x",
        array("a", "n"),
    )


@cache
def three_point() -> lk.Kernel:
    """Values from which each result takes three."""
    return make(
        "{ [i, p]: 0 <= i < n and 0 <= p < n + 2 }",
        """
        for p
            t[p] = 2*x[p] + 1 {id=make}
        end
        for i
            b[i] = t[i] + t[i + 1] + t[i + 2] {id=use}
        end
        """,
        "n >= 1",
        "b, x",
        lk.TemporaryVariable("t", np.dtype("float32"), ("n + 2",), lk.AddressSpace.GLOBAL),
    )


@cache
def rows_16() -> lk.Kernel:
    """Rows of 16, each value by itself."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }", "b[i, j] = 2*a[i, j] {id=s}", "n >= 1", "a, b"
    )
