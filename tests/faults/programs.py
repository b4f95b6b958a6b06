"""Kernels on which faults of code generation matter."""

from __future__ import annotations

import loopkit as lk
from faults.kernels import make


def rolling() -> lk.Kernel:
    """A temporary array that is filled and read the other way round, over and over."""
    return make(
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
    return make(
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
    return make(
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
    return make(
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
    return make(
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
    return make(
        "{ [i]: 0 <= i < n and i mod 3 = 1 }",
        "b[i] = b[i] + a[i] {id=s}",
        "a, b",
        assumptions="n >= 2",
    )


def below_zero() -> lk.Kernel:
    """A quotient of something negative."""
    return make("{ [i]: 0 <= i < 12 }", "b[i] = a[(i - 5)//2 + 3] {id=s}", "a, b")


def corner() -> lk.Kernel:
    """A loop between the larger of two bounds and the smaller of two others."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m and i - 3 <= j <= i + 3 }",
        "b[i, j] = b[i, j] + a[i, j] {id=s}",
        "a, b",
        assumptions="n, m >= 1",
    )


def large_tiles() -> lk.Kernel:
    """Two temporary arrays that need more than 48 KiB together."""
    return make(
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
    return make("{ [i, j]: 0 <= i < n and 0 <= j < m }", "b[i, j] = 2*a[i, j] {id=s}", "a, b")


def integers() -> lk.Kernel:
    """Sums and products of integers, which wrap around."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        c[i] = c[i] + sum(j, a[i, j]) {id=s}
        b[i, j] = i*j {id=t}
        """,
        dtypes={"a, b, c": "int32"},
        assumptions="n >= 1",
    )


def oblong() -> lk.Kernel:
    """Rows and columns of different number, through a temporary."""
    return make(
        ["{ [i, j]: 0 <= i < 8 and 0 <= j < 16 }", "{ [k, l]: 0 <= k < 8 and 0 <= l < 16 }"],
        """
        <> s[i, j] = a[i, j] {id=one}
        b[k, l] = s[7 - k, 15 - l] {id=two}
        """,
        "a, b",
    )


def late() -> lk.Kernel:
    """Values that do not begin at zero."""
    return make("{ [i]: 3 <= i < 11 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def distributed() -> lk.Kernel:
    """A product of a sum."""
    return make(
        "{ [i]: 0 <= i < n }", "b[i] = a[i]*(a[i] + 1) {id=s}", "a, b", assumptions="n >= 1"
    )


def staged_anywhere() -> lk.Kernel:
    """A temporary array that goes where the threads that use it need it."""
    return make(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        <> t[i] = a[i] {id=fill}
        b[j] = t[63 - j] {id=drain}
        """,
        "a, b",
    )


def fours() -> lk.Kernel:
    """As many elements as fours."""
    return make(
        "{ [i]: 0 <= i < n }",
        "b[i] = b[i] + a[i] {id=s}",
        "a, b",
        assumptions="n >= 1 and n mod 4 = 0",
    )


def through_global() -> lk.Kernel:
    """A temporary in global memory."""
    return make(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        <> t[i] = a[i] {id=fill}
        b[j] = t[63 - j] {id=drain}
        """,
        "a, b",
    ).set_temporary_address_space("t", "global")


def between() -> lk.Kernel:
    """A loop that may be empty, between what writes a temporary and what reads it."""
    return make(
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


def through_matrix() -> lk.Kernel:
    """A temporary in global memory, as large as the sizes say."""
    return make(
        ["{ [i, j]: 0 <= i < n and 0 <= j < m }", "{ [k, l]: 0 <= k < n and 0 <= l < m }"],
        """
        <> t[i, j] = a[i, j] {id=fill}
        b[k, l] = t[k, l] {id=drain}
        """,
        "a, b",
        assumptions="n, m >= 1",
    ).set_temporary_address_space("t", "global")


def steps_between() -> lk.Kernel:
    """A loop that may be empty, whose iterations exchange values of their own."""
    return make(
        [
            "{ [i]: 0 <= i < 64 }",
            "{ [q]: 0 <= q < m }",
            "{ [x]: 0 <= x < 64 }",
            "{ [y]: 0 <= y < 64 }",
            "{ [j]: 0 <= j < 64 }",
        ],
        """
        <> s[i] = a[i] {id=fill}
        for q
            for x
                <> r[x] = d[x] + q {id=put}
            end
            for y
                c[y] = c[y] + r[63 - y] {id=take}
            end
        end
        b[j] = s[63 - j] {id=drain}
        """,
        "a, b, c, d",
        assumptions="m >= 0",
    )
