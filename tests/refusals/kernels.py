"""The kernels that cases share, small and well known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import loopkit as lk


def make(
    domains: str | list[str], text: str, assumptions: str, floats: str, *data: Any
) -> lk.Kernel:
    """A kernel with arrays ``floats`` of float32; ``data`` declares what is not to be inferred."""
    return lk.make_kernel(
        domains,
        text,
        [*data, ...],
        dtypes={floats: "float32"} if floats else {},
        assumptions=assumptions,
    )


def array(name: str, shape: str, dtype: str = "float32") -> lk.GlobalArg:
    """A declared array; its shape as ``"n, m"``."""
    return lk.GlobalArg(name, dtype, shape=tuple(part.strip() for part in shape.split(",")))


@cache
def recurrence() -> lk.Kernel:
    """A prefix sum as one writes it first."""
    return make("{ [i]: 1 <= i < n }", "a[i] = a[i-1] + b[i] {id=s}", "n >= 1", "a, b")


@cache
def short_recurrence() -> lk.Kernel:
    """A recurrence of at most 64 steps, which one block could hold."""
    return make("{ [i]: 1 <= i < n }", "a[i] = a[i-1] + b[i] {id=s}", "1 <= n <= 64", "a, b")


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
def every_other() -> lk.Kernel:
    """A recurrence over two steps: neighbours are independent."""
    return make("{ [i]: 0 <= i < n }", "a[i + 2] = a[i] + b[i] {id=s}", "n >= 1", "a, b")


@cache
def shift_left() -> lk.Kernel:
    """Everything moves one place down, in place."""
    return make("{ [i]: 0 <= i < n }", "a[i] = a[i + 1] {id=s}", "n >= 1", "a")


@cache
def copied_shift() -> lk.Kernel:
    """The same into another array."""
    return make("{ [i]: 0 <= i < n }", "c[i] = a[i + 1] {id=s}", "n >= 1", "a, c")


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
def history() -> lk.Kernel:
    """Sweeps over a line that keep every step."""
    return make(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        "u[t + 1, i] = u[t, i - 1] + u[t, i + 1] {id=s}",
        "steps, n >= 1",
        "u",
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
def solve() -> lk.Kernel:
    """Forward substitution with a lower triangle whose diagonal is one."""
    return make(
        ["{ [i, r]: 0 <= i < n and 0 <= r < m }", "{ [j]: 0 <= j < i }"],
        "x[i, r] = b[i, r] - sum(j, t[i, j]*x[j, r]) {id=s}",
        "n, m >= 1",
        "b, t, x",
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
def matmul() -> lk.Kernel:
    """A product of matrices."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j]) {id=s}",
        "n, m, l >= 1",
        "a, b, c",
    )


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
def substitution_by_hand() -> lk.Kernel:
    """Forward substitution of one right side, its sums by hand."""
    return make(
        "{ [i, j]: 0 <= j < i < n }", "x[i] = 2*x[i] + t[i, j]*x[j] {id=s}", "n >= 1", "t, x"
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
def recurrence_16() -> lk.Kernel:
    """:func:`recurrence` of constant length."""
    return make("{ [i]: 1 <= i < 17 }", "a[i] = a[i-1] + b[i] {id=s}", "", "a, b")


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
def last_value() -> lk.Kernel:
    """What a temporary holds at the end of a loop is kept."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            t[0] = 2*a[i] {id=make}
        end
        r[0] = t[0] {id=use}
        """,
        "1 <= n <= 16",
        "a, r",
        lk.TemporaryVariable("t", np.dtype("float32"), (1,)),
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
def shift_right() -> lk.Kernel:
    """Every other value is doubled into its neighbour, in place."""
    return make("{ [i]: 0 <= i < n }", "a[i + 1] = 2*a[i] {id=s}", "n >= 1", "a")


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
def batch_16() -> lk.Kernel:
    """:func:`batch` of constant size."""
    return make(
        "{ [i, j]: 1 <= i < 16 and 0 <= j < 16 }",
        "a[i, j] = a[i-1, j] + b[i, j] {id=s}",
        "",
        "a, b",
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
def ruled_rows() -> lk.Kernel:
    """A rule whose values differ from row to row."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := 3*a[x, i]\nb[i, j] = f(j) + f(j + 1) {id=s}",
        "n >= 1",
        "a, b",
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
def spare_iname() -> lk.Kernel:
    """An iname that nothing uses."""
    return make(
        ["{ [i]: 1 <= i < n }", "{ [z]: 0 <= z < n }"],
        "a[i] = a[i-1] + b[i] {id=s}",
        "n >= 1",
        "a, b",
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
