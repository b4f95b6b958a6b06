"""Faults in what many make at once: atomic updates, and buffers of partial results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import build, flatten

import loopkit as lk
from faults.planting import Patch, fault
from loopkit import Kernel, Statement

# {{{ kernels


def summed() -> Kernel:
    """All of a vector, in one cell."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "s[0] = s[0] + x[i] {atomic, id=add}",
        dtypes={"s, x": "float32"},
        assumptions="n >= 1",
    )


def counted() -> Kernel:
    """How often each of four numbers occurs."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + 1 {atomic, id=add}",
        [lk.GlobalArg("h", shape=4), ...],
        dtypes={"h, c": "int32"},
        assumptions="n >= 1",
    )
    return kernel.assume_within("c", 0, 4)


def sum_then_product() -> Kernel:
    """Two operations on one cell, one after the other."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 64 }",
        """
        s[0] = s[0] + x[i] {atomic, id=add}
        s[0] = s[0]*x[j] {atomic, id=times}
        """,
        dtypes={"s, x": "float32"},
    )


def numbers(sizes: Any) -> Any:
    return {"c": np.arange(sizes["n"]) % 4, "h": np.zeros(4)}


# }}}

# {{{ buffers of partial results

BLOCKS = (do("split_iname", "i", 4, outer_tag="g.0"),)
BUFFER = do("buffer_array", "s", "i_inner", default_tag=None, partial=True)
COUNTS = do("buffer_array", "h", "i_inner", default_tag=None, partial=True)
Edit = Callable[[Kernel], Kernel]


def made(edit: Edit) -> Patch:
    """The kernel with a buffer, edited."""

    def make(original: Any) -> Any:
        def collect(*arguments: Any) -> Any:
            change = original(*arguments)
            kernel = edit(change.kernel)
            moves = change.moves & kernel.statement_by_id.keys()
            more = {s.id for s in kernel.statements if s.id.startswith("again")}
            return dataclasses.replace(change, kernel=kernel, moves=moves | more)

        return collect

    return Patch("transforms.buffer:_collect", make)


def statement(name: str, change: Callable[[Statement], Statement]) -> Edit:
    def edit(kernel: Kernel) -> Kernel:
        statements = (change(s) if s.id.startswith(name) else s for s in kernel.statements)
        return kernel.with_(statements=tuple(statements))

    return edit


def without(name: str) -> Edit:
    def edit(kernel: Kernel) -> Kernel:
        left = [(s, path) for s, path in flatten(kernel.tree) if not s.startswith(name)]
        statements = tuple(s for s in kernel.statements if not s.id.startswith(name))
        return kernel.with_(statements=statements, tree=build(left))

    return edit


def placed(name: str, where: Callable[[list[Any], Any], int]) -> Edit:
    """A statement at another place of the text, where another one's loops are."""

    def edit(kernel: Kernel) -> Kernel:
        entries = flatten(kernel.tree)
        mine = next(e for e in entries if e[0].startswith(name))
        others = [e for e in entries if e is not mine]
        others.insert(where(others, mine), mine)
        return kernel.with_(tree=build(others))

    return edit


def in_loop_of(name: str, other: str, offset: int) -> Edit:
    """A statement beside another one, in all of its loops."""

    def edit(kernel: Kernel) -> Kernel:
        entries = flatten(kernel.tree)
        mine = next(e for e in entries if e[0].startswith(name))
        others = [e for e in entries if e is not mine]
        at = next(n for n, e in enumerate(others) if e[0] == other)
        path = others[at][1]
        others.insert(at + offset, (mine[0], path))
        inames = frozenset(iname for iname, _ in path)
        moved = statement(name, lambda s: dataclasses.replace(s, inames=s.inames | inames))
        return moved(kernel).with_(tree=build(others))

    return edit


def twice(kernel: Kernel) -> Kernel:
    """What is added at the end is added again."""
    store = next(s for s in kernel.statements if s.id.startswith("store"))
    again = dataclasses.replace(store, id="again")
    path = dict(flatten(kernel.tree))[store.id]
    tree = build([*flatten(kernel.tree), ("again", path)])
    return kernel.with_(statements=(*kernel.statements, again), tree=tree)


def next_cell(expr: Any) -> Any:
    (index,) = expr.index_tuple
    return prim.Subscript(expr.aggregate, (prim.Remainder(prim.Sum((index, 1)), 4),))


SUMS: dict[str, Edit] = {
    "starts at one": statement("init", lambda s: dataclasses.replace(s, rhs=1)),
    "is not started": without("init"),
    "is not added": without("store"),
    "is added twice": twice,
    "is added by a product": statement(
        "store", lambda s: dataclasses.replace(s, operation="product")
    ),
    "is assigned": statement(
        "store", lambda s: dataclasses.replace(s, operation=None, kind="move")
    ),
    "is added with a plain update": statement(
        "store", lambda s: dataclasses.replace(s, kind="update")
    ),
    "is added and doubled": statement(
        "store", lambda s: dataclasses.replace(s, rhs=prim.Product((2, s.rhs)))
    ),
    "is added before the last update": placed("store", lambda others, mine: 1),
    "is added after each update": in_loop_of("store", "add", 1),
    "starts anew before each update": in_loop_of("init", "add", 0),
    "is added by the first block alone": statement(
        "store", lambda s: dataclasses.replace(s, inames=s.inames - {"i_outer"})
    ),
    "is one for all blocks": lambda kernel: kernel.with_(
        temporaries=tuple(
            dataclasses.replace(t, address_space=lk.AddressSpace.GLOBAL) for t in kernel.temporaries
        )
    ),
}
for what, edit in SUMS.items():
    fault(
        f"buffer_array: a partial sum {what}",
        summed,
        BUFFER,
        made(edit),
        chain=BLOCKS,
        sizes={"n": 6},
    )
for what, edit in {
    "is added to the next cell": statement(
        "store", lambda s: dataclasses.replace(s, lhs=next_cell(s.lhs))
    ),
    "is looked up in the next cell": statement(
        "store", lambda s: dataclasses.replace(s, rhs=next_cell(s.rhs))
    ),
    "goes to the next cell": statement(
        "add", lambda s: dataclasses.replace(s, lhs=next_cell(s.lhs))
    ),
    "is not started in some cells": statement(
        "init",
        lambda s: dataclasses.replace(
            s, predicates=(prim.Comparison(s.lhs.index_tuple[0], ">=", 1),)
        ),
    ),
}.items():
    fault(
        f"buffer_array: a count {what}",
        counted,
        COUNTS,
        made(edit),
        chain=BLOCKS,
        sizes={"n": 6},
        by_running=True,
        values=numbers,
    )

# }}}

# {{{ lowering

THREADS = (do("split_iname", "i", 64, outer_tag="g.0", inner_tag="l.0"),)

fault(
    "atomics: dropped",
    counted,
    None,
    Patch("codegen.values:ValueLowering.is_shared", lambda f: lambda self, name: False),
    chain=THREADS,
    sizes={"n": 100},
    values=numbers,
    evidence=lambda kernel: None if "atomicAdd" in kernel.cuda() else "no update is atomic",
)
fault(
    "atomics: by another function",
    counted,
    None,
    Patch("codegen.values:function_of", lambda f: lambda operator, dtype: "atomicMax"),
    chain=THREADS,
    sizes={"n": 100},
    values=numbers,
    evidence=lambda kernel: None if "atomicAdd" in kernel.cuda() else "it is no sum",
)
fault(
    "atomics: two operations need no order",
    sum_then_product,
    None,
    Patch(
        "codegen.conflicts:Access.commutes",
        lambda f: lambda self, other: bool(self.atomic and other.atomic),
    ),
    chain=(do("tag_inames", "i: l.0, j: l.0"),),
)

# }}}
