"""Kernels of several launches."""

from __future__ import annotations

import loopkit as lk


def full_sum() -> lk.Kernel:
    """A sum in two launches, over partial sums in global memory."""
    return lk.make_kernel(
        "{ [b, i, c]: 0 <= b < m and 0 <= i < 256 and 0 <= c < m }",
        """
        <> p[b] = sum(i, x[256*b + i]) {id=part}
        ... gbarrier
        out[0] = sum(c, p[c]) {id=all}
        """,
        [lk.GlobalArg("x", shape="256*m"), ...],
        name="full_sum",
        dtypes={"x": "float32"},
        assumptions="m >= 0",
    )


def bounded() -> lk.Kernel:
    """A bound that is loaded twice, for loops of one launch and for one of the next."""
    return lk.make_kernel(
        [f"{{ [{i}]: 0 <= {i} < c }}" for i in "ijk"],
        """
        <int32> c = cnt[0]
        y[i] = x[i] {id=first}
        c = cnt[1]
        y[j] = y[j] + x[j] {id=again}
        ... gbarrier
        z[k] = x[k] {id=second}
        """,
        [lk.GlobalArg("x, y, z", "float32", shape="n"), ...],
        name="bounded",
        dtypes={"cnt": "int32"},
    )


def summed() -> lk.Kernel:
    """Partial sums by blocks of threads, the sum of these by one thread."""
    return full_sum().split_iname("b", 4, outer_tag="g.0", inner_tag="l.0")


def looked_back() -> lk.Kernel:
    """Running sums of a vector by blocks that look back at those before them."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, x[j])",
        dtypes={"x, y": "float32"},
        assumptions="n >= 0",
        name="running",
    )
    knl = knl.realize_reduction(force_scan=True, by="lookback")
    return knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


def normalise() -> lk.Kernel:
    """Rows scaled by their largest value: found in one launch, used in the next."""
    return lk.make_kernel(
        "{ [i, j, k, r]: 0 <= i, r < n and 0 <= j, k < m }",
        """
        <> top[i] = max(k, fabs(x[i, k])) {id=find}
        ... gbarrier {id=found}
        y[r, j] = x[r, j] / top[r] {id=scale}
        """,
        name="normalise",
        dtypes={"x": "float32"},
        assumptions="n, m >= 0",
    )


def normalised() -> lk.Kernel:
    """A thread for each row, then one for each element."""
    return (
        normalise()
        .split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .tag_inames("r: g.1")
    )


def jacobi() -> lk.Kernel:
    """Two sweeps in a loop over time, each a launch."""
    return lk.make_kernel(
        "{ [t, i, j]: 0 <= t < steps and 1 <= i, j < n - 1 }",
        """
        for t
            u[i] = 0.5*(v[i - 1] + v[i + 1]) {id=there}
            ... gbarrier
            v[j] = 0.5*(u[j - 1] + u[j + 1]) {id=back}
        end
        """,
        name="jacobi",
        dtypes={"u, v": "float32"},
        assumptions="n >= 3 and steps >= 0",
    )


def swept() -> lk.Kernel:
    """A thread for each cell, in blocks of other lengths for each sweep."""
    return (
        jacobi()
        .split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", 64, outer_tag="g.0", inner_tag="l.0")
    )


def eliminate() -> lk.Kernel:
    """A launch for each step of an elimination, which has fewer rows each time."""
    return lk.make_kernel(
        ["{ [k]: 0 <= k < n - 1 }", "[k, n] -> { [i, j]: k < i < n and k < j < n }"],
        """
        for k
            a[i, j] = a[i, j] - a[i, k]*a[k, j] {id=step}
            ... gbarrier
        end
        """,
        name="eliminate",
        dtypes={"a": "float32"},
        assumptions="n >= 1",
    )


def eliminated() -> lk.Kernel:
    """A thread for each element of the rest."""
    return eliminate().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0").tag_inames("j: g.1")


def in_turn(more: str = "") -> lk.Kernel:
    """Two statements that each exchange neighbours, in one launch each."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n - 1 }",
        f"""
        <> t[i] = 2*x[i] {{id=first}}
        ... gbarrier {{id=gb{more}}}
        y[j] = t[j] + t[j + 1] {{id=second}}
        """,
        name="in_turn",
        dtypes={"x": "int32"},
        assumptions="n >= 1",
    )


def plain_in_turn() -> lk.Kernel:
    """The same with no barrier yet."""
    return in_turn().remove_barrier("gb").with_(history=(), lineage=None)


def through_scalar() -> lk.Kernel:
    """A value that each iteration makes and uses."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<> s = 2*x[i] {id=first}\ny[i] = s {id=second}",
        name="through_scalar",
        dtypes={"x": "int32"},
        assumptions="n >= 1",
    )


def now_and_then() -> lk.Kernel:
    """A loop around launches, some of which run in every third iteration, and of enough cells."""
    return lk.make_kernel(
        "{ [t, i, j, k]: 0 <= t < steps and 0 <= i, j, k < n }",
        """
        for t
            u[i] = u[i] + t {id=always}
            if t % 3 == 1 and n > 4
                ... gbarrier
                v[j] = v[j] + u[n - 1 - j] {id=take}
                ... gbarrier
                u[k] = u[k] + v[n - 1 - k] {id=give}
            end
        end
        """,
        name="now_and_then",
        dtypes={"u, v": "int32"},
        assumptions="n >= 1 and steps >= 0",
    )


def now_and_then_in_blocks() -> lk.Kernel:
    """A thread for each cell."""
    knl = now_and_then()
    for iname, length in (("i", 8), ("j", 16), ("k", 8)):
        knl = knl.split_iname(iname, length, outer_tag="g.0", inner_tag="l.0")
    return knl


def every_third_or_fifth() -> lk.Kernel:
    """A loop around launches whose domain is no range."""
    return lk.make_kernel(
        ["{ [t]: 0 <= t < steps and (t mod 3 = 0 or t mod 5 = 0) }", "{ [i, j]: 0 <= i, j < n }"],
        """
        for t
            u[i] = 2*v[n - 1 - i] + t {id=there}
            ... gbarrier
            v[j] = u[n - 1 - j] - t {id=back}
        end
        """,
        name="every_third_or_fifth",
        dtypes={"u, v": "int32"},
        assumptions="n >= 0 and steps >= 0",
    )


def every_third_or_fifth_in_blocks() -> lk.Kernel:
    """A thread for each cell."""
    knl = every_third_or_fifth()
    for iname in "ij":
        knl = knl.split_iname(iname, 8, outer_tag="g.0", inner_tag="l.0")
    return knl
