"""Kernels whose printed text the tests of the proof edit."""

from __future__ import annotations

import functools

from gallery import kernels

import loopkit as lk
from loopkit import Kernel


@functools.cache
def matmul(n: int = 16) -> Kernel:
    """The tiled product, of any size."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
        name="matmul",
    )
    return (
        knl.split_iname("i", n, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", n, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", n)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


@functools.cache
def registers() -> Kernel:
    """The product with register tiles, of any size."""
    return kernels("matmul_registers")["any size"]


@functools.cache
def reversed_rows(length: int) -> Kernel:
    """Each thread reads from shared memory what another one wrote, row by row."""
    shared = lk.TemporaryVariable(
        "s", "float32", shape=(length,), address_space=lk.AddressSpace.LOCAL
    )
    knl = lk.make_kernel(
        f"{{ [t, i, j]: 0 <= t < n and 0 <= i, j < {length} }}",
        f"""
        for t
            s[i] = a[t, i] {{id=put}}
            b[t, j] = s[{length - 1} - j] {{id=get}}
        end
        """,
        [shared, ...],
        dtypes={"a, b": "float32"},
        name="reversed_rows",
    )
    return knl.tag_inames("i:l.0, j:l.0")


@functools.cache
def copy(assumptions: str) -> Kernel:
    """A plain copy of a matrix."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = a[i, j]",
        dtypes={"a, b": "float32"},
        assumptions=assumptions,
        name="copy",
    )


@functools.cache
def row_sums() -> Kernel:
    """A private sum in each thread, and one cell that a single thread writes."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        y[i] = sum(j, x[i, j]) {id=store}
        count[0] = n {id=once}
        """,
        dtypes={"x, y": "float32", "count": "int32"},
        assumptions="n, m >= 1",
        name="row_sums",
    )
    return knl.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")


@functools.cache
def in_place() -> Kernel:
    """Each thread updates its own cells."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = 2*x[i] + y[i]",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
        name="in_place",
    )
    return knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")


@functools.cache
def dynamic() -> Kernel:
    """More shared memory than can be declared statically."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 256 }",
        "b[i, j] = a[i, 255 - j]",
        dtypes={"a, b": "float32"},
        name="dynamic",
    )
    return (
        knl.split_iname("i", 64, outer_tag="g.0")
        .tag_inames("j:l.0")
        .add_prefetch("a", ["i_inner", "j"], default_tag="l.auto")
    )


@functools.cache
def sparse(*, asserted: bool) -> Kernel:
    """A product with a sparse matrix in rows."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: first <= j < last }"],
        """
        for i
            <int32> first = rows[i]
            <int32> last = rows[i + 1]
            y[i] = sum(j, v[j] * x[col[j]]) {id=store}
        end
        """,
        [
            lk.GlobalArg("v", "float32", shape="nonzeros"),
            lk.GlobalArg("x", "float32", shape="m"),
            lk.GlobalArg("col", "int32", shape="nonzeros"),
            lk.GlobalArg("rows", "int32", shape="n + 1"),
            ...,
        ],
        dtypes={"y": "float32"},
        name="sparse",
    )
    if asserted:
        knl = knl.assume_within("rows", 0, "nonzeros + 1").assume_within("col", 0, "m")
    return knl.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")


def peeled_over_blocks() -> Kernel:
    """All blocks run some statements, and those of the last slab run in one of them each."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < n }",
        """
        <> t = a[i] + c[k]
        z[i, k] = t
        """,
        dtypes={"a, c, z": "int32"},
        assumptions="n >= 1",
    )
    return (
        knl.split_iname("k", 2, slabs=(1, 1))
        .peel_iname("k_outer")
        .tag_inames({"k_outer_last": "g.0"}, force=True)
        .split_iname("k_inner_first", 16, outer_tag="g.1", inner_tag="l.1")
    )
