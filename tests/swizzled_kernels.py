"""Kernels with tiles in shared memory that are read by rows and by columns."""

from __future__ import annotations

import loopkit as lk


def transpose(tile: int = 32, across: int = 32, rows: int = 8, dtype: str = "float32") -> lk.Kernel:
    """A tile of ``tile x across`` elements is written by rows and read by columns."""
    return (
        lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < m }",
            "out[j, i] = a[i, j]",
            name="transpose",
            dtypes={"a, out": dtype},
            assumptions="n, m >= 1",
        )
        .split_iname("i", tile, outer_tag="g.1", inner_tag="l.0")
        .split_iname("j", across, outer_tag="g.0")
        .split_iname("j_inner", rows, outer_tag="unr", inner_tag="l.1")
        .add_prefetch("a", ["i_inner", "j_inner_outer", "j_inner_inner"], default_tag="l.auto")
    )


def product(dtype: str = "float32", tile: int = 16) -> lk.Kernel:
    """A matrix product whose threads read columns of one staged tile."""
    return (
        lk.make_kernel(
            "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
            "c[i, j] = sum(k, a[i, k] * b[k, j])",
            name="product",
            dtypes={"a, b, c": dtype},
            assumptions="n, m, l >= 1",
        )
        .split_iname("i", tile, outer_tag="g.1", inner_tag="l.0")
        .split_iname("j", tile, outer_tag="g.0", inner_tag="l.1")
        .split_iname("k", tile)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def turned(rows: int, columns: int, dtype: str = "float32") -> lk.Kernel:
    """One block: a shared ``t[rows, columns]`` is filled by rows and drained by columns."""
    return lk.make_kernel(
        [
            f"{{ [i, j]: 0 <= i < {rows} and 0 <= j < {columns} }}",
            f"{{ [k, l]: 0 <= k < {rows} and 0 <= l < {columns} }}",
        ],
        """
        for i, j
            <> t[i, j] = a[i, j] {id=fill}
        end
        for l, k
            b[l, k] = t[k, l] {id=drain}
        end
        """,
        [lk.TemporaryVariable("t", shape=(rows, columns)), ...],
        name="turned",
        dtypes={"a, b, t": dtype},
    )


def on_threads(knl: lk.Kernel) -> lk.Kernel:
    """The same with a thread for each row of the drain."""
    return knl.set_temporary_address_space("t", "shared").tag_inames({"k": "l.0"})
