"""Kernels on which faults matter."""

from __future__ import annotations

import loopkit as lk


def _make(domains: str | list[str], text: str, floats: str, **more: object) -> lk.Kernel:
    return lk.make_kernel(domains, text, dtypes={floats: "float32"}, **more)


def added() -> lk.Kernel:
    """Each instance counts: one that runs twice, or never, shows."""
    return _make("{ [i]: 0 <= i < n }", "b[i] = b[i] + a[i] {id=s}", "a, b", assumptions="n >= 1")


def added_ten() -> lk.Kernel:
    """The same for ten elements."""
    return _make("{ [i]: 0 <= i < 10 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def moved() -> lk.Kernel:
    """Rows and columns, all different."""
    return _make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "b[i, j] = b[i, j] + a[i, j] {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def turned() -> lk.Kernel:
    """A transposition."""
    return _make(
        "{ [i, j]: 0 <= i, j < n }", "b[j, i] = a[i, j] {id=s}", "a, b", assumptions="n >= 1"
    )


def antidiagonal() -> lk.Kernel:
    """A dependence of distance (1, -1): the two loops must not be exchanged."""
    return _make(
        "{ [i, j]: 1 <= i < n and 0 <= j < n - 1 }",
        "a[i, j] = a[i - 1, j + 1] + 1 {id=s}",
        "a",
        assumptions="n >= 2",
    )


def recurrence() -> lk.Kernel:
    """Rows are independent of each other, and each is a recurrence."""
    return _make(
        "{ [i, j]: 0 <= i < 8 and 1 <= j < 8 }", "a[i, j] = a[i, j - 1] + a[i, j] {id=s}", "a"
    )


def apart() -> lk.Kernel:
    """Two loops, one shorter than the other."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }", "{ [k]: 0 <= k < n }"],
        """
        b[i] = 2*a[i] {id=s}
        c[j] = c[j] + 1 {id=t}
        d[k] = d[k] + 1 {id=u}
        """,
        "a, b, c, d",
        assumptions="n, m >= 1",
    )


def handed_on() -> lk.Kernel:
    """One statement uses what the one before it wrote, in the same loop."""
    return _make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            b[i] = 2*a[i] {id=s}
            c[i] = c[i] + b[i] {id=t}
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def ping_pong() -> lk.Kernel:
    """A step in time: all of one array, then all of the other."""
    return _make(
        ["{ [t]: 0 <= t < T }", "{ [i]: 0 <= i < 8 }", "{ [j]: 0 <= j < 8 }"],
        """
        for t
            for i
                b[i] = 2*a[i] + t {id=there}
            end
            for j
                a[j] = b[j] + 1 {id=back}
            end
        end
        """,
        "a, b",
        assumptions="T >= 1",
    )


def row_sums() -> lk.Kernel:
    """A sum for each row."""
    return _make(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        "c[i] = sum(k, a[i, k]) {id=s}",
        "a, c",
        assumptions="n >= 1",
    )


def stencil() -> lk.Kernel:
    """Three neighbours."""
    return _make(
        "{ [i]: 1 <= i < n - 1 }",
        "b[i] = a[i - 1] + 2*a[i] + 3*a[i + 1] {id=s}",
        "a, b",
        assumptions="n >= 3",
    )


def product() -> lk.Kernel:
    """The product of two matrices."""
    return _make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j]) {id=s}",
        "a, b, c",
        assumptions="n, m, l >= 1",
    )


def scaled_in_place() -> lk.Kernel:
    """An array is added to, then doubled by another statement, in each step of a loop."""
    return _make(
        ["{ [t]: 0 <= t < T }", "{ [j]: 0 <= j < 6 }", "{ [k]: 0 <= k < 6 }"],
        """
        for t
            for j
                c[j] = c[j] + a[j] {id=add}
            end
            for k
                c[k] = 2*c[k] {id=double}
            end
        end
        """,
        "a, c",
        assumptions="T >= 1",
    )


def updated() -> lk.Kernel:
    """An array that two loops update, one after the other."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }", "{ [j]: 0 <= j < 6 }"],
        """
        for i
            for k
                for j
                    c[i, j] = c[i, j] + a[i, k, j] {id=add}
                end
            end
        end
        """,
        "a, c",
        assumptions="n >= 1",
    )


def through_scalar() -> lk.Kernel:
    """A value that goes through a temporary."""
    return _make(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < 4 }",
        """
        for i
            for j
                <> t = 2*a[i, j] {id=first}
                b[i, j] = t + 1 {id=second}
                c[i, j] = t*t {id=third}
            end
        end
        """,
        "a, b, c",
    )


def rules() -> lk.Kernel:
    """Substitution rules with two arguments."""
    return _make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        f(x, y) := a[x, y] + 2*x
        b[i, j] = f(i, j) {id=s}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def ruled_row() -> lk.Kernel:
    """A rule with a halo."""
    return _make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        """
        f(x) := 2*a[x] + 1
        b[i, j] = f(i + j) {id=s}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def repeated() -> lk.Kernel:
    """A statement that runs several times for the same cell."""
    return _make(
        ["{ [i, r]: 0 <= i < n and 0 <= r < 3 }", "{ [spare]: 0 <= spare < 7 }"],
        """
        for i, r
            b[i] = b[i] + 1 {id=s}
        end
        """,
        "b",
        assumptions="n >= 1",
    )


def staged() -> lk.Kernel:
    """A temporary array that one loop fills and the next reads the other way round."""
    return _make(
        ["{ [g]: 0 <= g < n }", "{ [i]: 0 <= i < 8 }", "{ [j]: 0 <= j < 8 }"],
        """
        for g
            for i
                <> t[i] = a[8*g + i] {id=fill}
            end
            for j
                b[8*g + j] = t[7 - j] {id=drain}
            end
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def squares() -> lk.Kernel:
    """A temporary with two axes."""
    return _make(
        "{ [i, j, k, l]: 0 <= i, j, k, l < 4 }",
        """
        <> t[i, j] = a[i, j] {id=fill}
        b[l, k] = t[l, k] {id=drain}
        """,
        "a, b",
    )


def rules_of_four() -> lk.Kernel:
    """A rule with two arguments, of constant extents."""
    return _make(
        "{ [i, j]: 0 <= i, j < 4 }",
        """
        f(x, y) := a[x, y] + 2*x
        b[i, j] = f(i, j) {id=s}
        """,
        "a, b",
    )


def through_array() -> lk.Kernel:
    """A temporary array that one statement computes and another reads."""
    return _make(
        "{ [i, j]: 0 <= i < n + 1 and 0 <= j < n }",
        """
        <> t[i] = 2*a[i] {id=fill}
        b[j] = t[j] + t[j + 1] {id=use}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def scaled_by_size() -> lk.Kernel:
    """A size among the values."""
    return _make("{ [i]: 0 <= i < n }", "b[i] = n*a[i] {id=s}", "a, b", assumptions="n >= 1")


def conditional() -> lk.Kernel:
    """A condition on an iname."""
    return _make(
        "{ [i]: 0 <= i < n }",
        """
        if 2*i < n
            b[i] = b[i] + a[i] {id=s}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def conditional_on_data() -> lk.Kernel:
    """A condition on data."""
    return _make(
        "{ [i]: 0 <= i < n }",
        """
        if a[i] < 8
            b[i] = b[i] + a[i] {id=s}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def waves() -> lk.Kernel:
    """A function, and a difference."""
    return _make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            b[i] = sin(a[i]) {id=s}
            c[i] = a[i] - b[i] {id=t}
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def tripled() -> lk.Kernel:
    """Integers that a float64 cannot hold."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = 3*a[i] {id=s}",
        dtypes={"a, b": "int64"},
        assumptions="n >= 1",
    )


def rounded() -> lk.Kernel:
    """A cast to integers and back."""
    return _make(
        "{ [i]: 0 <= i < n }",
        "b[i] = cast(int32, a[i]) {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def scattered() -> lk.Kernel:
    """Writes go where an index array says."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[p[i]] = a[i] {id=s}",
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("b", shape="n"), lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def gathered() -> lk.Kernel:
    """Reads come from where an index array says."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[p[i]] {id=s}",
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def scattered_beside() -> lk.Kernel:
    """Writes that go where data says, and a loop beside that is there to be tagged."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < 4 }", "{ [j]: 0 <= j < 4 }"],
        """
        b[p[i]] = a[i] {id=s}
        c[j] = a[j] {id=t}
        """,
        dtypes={"a, b, c": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("b", shape="n"), ...],
        assumptions="n >= 4",
    )


def rolling() -> lk.Kernel:
    """A temporary array that is filled and read the other way round, over and over."""
    return _make(
        ["{ [t]: 0 <= t < T }", "{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        for t
            for i
                <> s[i] = a[t, i] {id=fill}
            end
            for j
                b[t, j] = s[63 - j] {id=drain}
            end
        end
        """,
        "a, b",
        assumptions="T >= 1",
    )


def crosswise() -> lk.Kernel:
    """Two temporary arrays of different length in turn."""
    return _make(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }", "{ [k]: 0 <= k < 64 }"],
        """
        <> s[i] = a[i] {id=one}
        <> r[j] = 2*s[63 - j] {id=two}
        b[k] = r[63 - k] + s[k] {id=three}
        """,
        "a, b",
    )


def shared_triangle() -> lk.Kernel:
    """In each step fewer threads have something to do, and they exchange what they have."""
    return _make(
        ["{ [k]: 0 <= k < 8 }", "{ [i]: k <= i < 64 }", "{ [j]: k <= j < 64 }"],
        """
        for k
            for i
                <> s[i] = a[k, i] {id=fill}
            end
            for j
                b[k, j] = s[63 + k - j] {id=drain}
            end
        end
        """,
        "a, b",
    )


def overwritten() -> lk.Kernel:
    """In each step fewer threads write what others wrote in the step before."""
    return _make(
        ["{ [k]: 0 <= k < 8 }", "{ [i]: k <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        for k
            for i
                <> s[63 + k - i] = a[k, i] {id=fill}
            end
        end
        b[j] = s[j] {id=drain}
        """,
        "a, b",
    )


def one_for_all() -> lk.Kernel:
    """A statement that no thread index belongs to."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 4 }"],
        """
        b[i] = b[i] + a[i] {id=s}
        c[k] = c[k] + 1 {id=t}
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def every_third() -> lk.Kernel:
    """A strided loop."""
    return _make(
        "{ [i]: 0 <= i < n and i mod 3 = 1 }",
        "b[i] = b[i] + a[i] {id=s}",
        "a, b",
        assumptions="n >= 2",
    )


def below_zero() -> lk.Kernel:
    """A quotient of something negative."""
    return _make("{ [i]: 0 <= i < 12 }", "b[i] = a[(i - 5)//2 + 3] {id=s}", "a, b")


def corner() -> lk.Kernel:
    """A loop between the larger of two bounds and the smaller of two others."""
    return _make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m and i - 3 <= j <= i + 3 }",
        "b[i, j] = b[i, j] + a[i, j] {id=s}",
        "a, b",
        assumptions="n, m >= 1",
    )


def large_tiles() -> lk.Kernel:
    """Two temporary arrays that need more than 48 KiB together."""
    return _make(
        ["{ [i, j]: 0 <= i < 64 and 0 <= j < 128 }", "{ [k, l]: 0 <= k < 64 and 0 <= l < 128 }"],
        """
        <> s[i, j] = a[i, j] {id=one}
        <> r[i, j] = 2*a[i, j] {id=two}
        b[k, l] = s[63 - k, l] + r[63 - k, 127 - l] {id=three}
        """,
        "a, b",
    )


def wide() -> lk.Kernel:
    """An array whose cells 32 bits cannot count."""
    return _make("{ [i, j]: 0 <= i < n and 0 <= j < m }", "b[i, j] = 2*a[i, j] {id=s}", "a, b")


def oblong() -> lk.Kernel:
    """Rows and columns of different number, through a temporary."""
    return _make(
        ["{ [i, j]: 0 <= i < 8 and 0 <= j < 16 }", "{ [k, l]: 0 <= k < 8 and 0 <= l < 16 }"],
        """
        <> s[i, j] = a[i, j] {id=one}
        b[k, l] = s[7 - k, 15 - l] {id=two}
        """,
        "a, b",
    )


def late() -> lk.Kernel:
    """Values that do not begin at zero."""
    return _make("{ [i]: 3 <= i < 11 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def distributed() -> lk.Kernel:
    """A product of a sum."""
    return _make(
        "{ [i]: 0 <= i < n }", "b[i] = a[i]*(a[i] + 1) {id=s}", "a, b", assumptions="n >= 1"
    )


def added_sixteen() -> lk.Kernel:
    """The same for sixteen elements."""
    return _make("{ [i]: 0 <= i < 16 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def doubled() -> lk.Kernel:
    """A temporary that is changed in place."""
    return _make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = a[i] + 1 {id=first}
            t = 2*t {id=double}
            b[i] = t {id=last}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def overlaid() -> lk.Kernel:
    """The second of two loops overwrites half of what the first one wrote."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= 2*j < n }"],
        """
        b[i] = a[i] {id=all}
        b[2*j] = 2*a[j] {id=half}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def kept() -> lk.Kernel:
    """What one loop reads, the next one overwrites."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        c[i] = b[i] {id=keep}
        b[j] = a[j] {id=overwrite}
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def flagged() -> lk.Kernel:
    """A condition on what another loop computes."""
    return _make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        for i
            f[i] = 2*a[i] {id=flag}
        end
        for j
            if f[j] < 20
                b[j] = b[j] + 1 {id=count}
            end
        end
        """,
        "a, b, f",
        assumptions="n >= 1",
    )


def indexed() -> lk.Kernel:
    """An index that another loop computes."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        p[i] = n - 1 - i {id=number}
        b[j] = a[p[j]] {id=gather}
        """,
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def neighbours() -> lk.Kernel:
    """Each iteration reads what the next one overwrites."""
    return _make(
        "{ [i]: 0 <= i < 7 }",
        """
        for i
            b[i] = a[i] {id=s}
            c[i] = b[i + 1] {id=t}
        end
        """,
        "a, b, c",
    )


def one_apart() -> lk.Kernel:
    """What one thread writes, its neighbour reads: the loops begin at different numbers."""
    return _make(
        ["{ [i]: 0 <= i < 8 }", "{ [j]: 1 <= j <= 8 }"],
        """
        <> t[i] = a[i] {id=fill}
        if j < 8
            b[j] = t[j] {id=drain}
        end
        """,
        "a, b",
    )


def three_terms() -> lk.Kernel:
    """A sum whose order matters."""
    return _make(
        "{ [i]: 0 <= i < n }",
        "d[i] = a[i] + b[i] + c[i] {id=s}",
        "a, b, c, d",
        assumptions="n >= 1",
    )


def chosen() -> lk.Kernel:
    """A choice within an expression."""
    return _make(
        "{ [i]: 0 <= i < n }",
        "b[i] = if(i > 0, a[i], 2*a[i] + 5) {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def maybe_never() -> lk.Kernel:
    """A loop that has no iterations where another one is empty."""
    return _make(
        "{ [i, j]: 0 <= i < n and i <= j < m }",
        "b[i] = b[i] + 1 {id=s}",
        "b",
        assumptions="n >= 1 and m >= 0",
    )


def scaled() -> lk.Kernel:
    """A scalar argument."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = scale*a[i] {id=s}",
        dtypes={"a, b": "float32"},
        kernel_data=[lk.ValueArg("scale", "int32"), ...],
        assumptions="n >= 1",
    )


def sparse() -> lk.Kernel:
    """Sums over rows whose bounds are loaded."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "[lo, hi] -> { [j]: lo <= j < hi }"],
        """
        for i
            <> lo = start[i] {id=begin}
            <> hi = start[i + 1] {id=end}
            for j
                y[i] = y[i] + x[j] {id=s}
            end
        end
        """,
        dtypes={"x, y": "float32", "start": "int32"},
        kernel_data=[lk.GlobalArg("x", shape=(8,)), ...],
        assumptions="n >= 1",
    ).assume_within("start", 0, 8)


def staged_anywhere() -> lk.Kernel:
    """A temporary array that goes where the threads that use it need it."""
    return _make(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        <> t[i] = a[i] {id=fill}
        b[j] = t[63 - j] {id=drain}
        """,
        "a, b",
    )


def fours() -> lk.Kernel:
    """As many elements as fours."""
    return _make(
        "{ [i]: 0 <= i < n }",
        "b[i] = b[i] + a[i] {id=s}",
        "a, b",
        assumptions="n >= 1 and n mod 4 = 0",
    )


def through_global() -> lk.Kernel:
    """A temporary in global memory."""
    return _make(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        <> t[i] = a[i] {id=fill}
        b[j] = t[63 - j] {id=drain}
        """,
        "a, b",
    ).set_temporary_address_space("t", "global")


def between() -> lk.Kernel:
    """A loop that may be empty, between what writes a temporary and what reads it."""
    return _make(
        [
            "{ [i]: 0 <= i < 64 }",
            "{ [q]: 0 <= q < m }",
            "{ [j]: 0 <= j < 64 }",
        ],
        """
        <> s[i] = a[i] {id=fill}
        for q
            for j
                c[j] = c[j] + s[63 - j] {id=each}
            end
        end
        b[j] = s[63 - j] {id=drain}
        """,
        "a, b, c",
        assumptions="m >= 0",
    )
