"""Faults in steps that say what is known: of sizes, of data, of types. Nothing else may change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain
from seams import sets as _sets

import loopkit as lk
from faults.making import var
from faults.planting import Patch, fault
from loopkit import Kernel


def gathered_where() -> lk.Kernel:
    """Elements that two tables choose, where data say so; and then what is made of them."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            if a[i] < 8
                b[i] = b[i] + a[i]   {id=s}
            end
            c[i] = b[i] + p[i] - q[i] {id=t}
        end
        """,
        dtypes={"a, b, c, p, q": "int32"},
        assumptions="n >= 0",
    )


def comes_out(module: str, edit: Callable[[Kernel], Kernel]) -> Patch:
    """What the steps of a module return is another kernel than they mean."""

    def make(original: Any) -> Any:
        return lambda kernel, **more: original(edit(kernel), **more)

    return Patch(f"transforms.{module}:Change", make)


def with_statement(id_: str, **fields: Any) -> Callable[[Kernel], Kernel]:
    """The edit by which one statement has other fields."""

    def edit(kernel: Kernel) -> Kernel:
        new = dataclasses.replace(kernel.statement_by_id[id_], **fields)
        return kernel.with_(statements=tuple(new if s.id == id_ else s for s in kernel.statements))

    return edit


def _without_last(kernel: Kernel) -> Kernel:
    """The last iteration goes from a kernel that has one."""
    some = _sets.condition_set(prim.Comparison(var("n"), ">=", 1))
    if not kernel.assumptions.set.is_subset(some):
        return kernel
    less = _sets.condition_set(prim.Comparison(var("i"), "<", prim.Sum((var("n"), -1))))
    return kernel.with_(domains=tuple(Domain(d.inames, d.set & less) for d in kernel.domains))


def _turned_round(kernel: Kernel) -> Kernel:
    (loop,) = kernel.tree
    turned = dataclasses.replace(loop, body=loop.body[::-1])  # type: ignore[type-var]
    return kernel.with_(tree=(turned,), statements=kernel.statements[::-1])


ASSERTIONS = "assertions"

fault(
    "assume: the last iteration goes",
    gathered_where,
    do("assume", "n >= 1"),
    comes_out("declarations", _without_last),
    sizes={"n": 3},
)
fault(
    "assume_injective: a condition on data goes",
    gathered_where,
    do("assume_injective", "p"),
    comes_out(ASSERTIONS, with_statement("s", predicates=())),
    sizes={"n": 6},
)
fault(
    "assume_disjoint: statements change places",
    gathered_where,
    do("assume_disjoint", "p", "q"),
    comes_out(ASSERTIONS, _turned_round),
    sizes={"n": 3},
)
fault(
    "assume_increasing: what is above its neighbour is taken for the first",
    gathered_where,
    do("assume_increasing", "p"),
    comes_out(ASSERTIONS, with_statement("t", rhs=var("b")[var("i")] + var("p")[0])),
    sizes={"n": 3},
)
fault(
    "assume_within: an update is taken for an assignment",
    gathered_where,
    do("assume_within", "q", 0, "n"),
    comes_out(ASSERTIONS, with_statement("s", rhs=var("a")[var("i")])),
    sizes={"n": 3},
)


def untyped_row() -> lk.Kernel:
    """A value of a type of its own, between arrays of which one has no type yet."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "<int32> t = 100*a[i] {id=t}\nb[i] = t + 1 {id=out}\nc[i] = 2 {id=other}",
        dtypes={"a, b": "int32"},
    )


def _narrower(kernel: Kernel) -> Kernel:
    small = tuple(dataclasses.replace(t, dtype=np.dtype("int8")) for t in kernel.temporaries)
    return kernel.with_(temporaries=small)


def _also_narrower(original: Any) -> Any:
    """Who gives ``c`` a type gives the temporary one, too."""

    def with_arrays(kernel: Kernel, changed: Any) -> Kernel:
        made: Kernel = original(kernel, changed)
        return _narrower(made) if "c" in changed else made

    return with_arrays


def _inferred_narrower(original: Any) -> Any:
    return lambda kernel: _narrower(original(kernel))


def _small_type(kernel: Kernel) -> str | None:
    """What a run gets wrong; the text alone lacks a type."""
    given = np.arange(16, dtype="int32")
    if all(c.dtype is not None for c in kernel.args):
        found = kernel.executor("host")(a=given).b
        return None if np.array_equal(found, 100 * given + 1) else f"b is {found}"
    return "c has no type"


fault(
    "add_dtypes: another value gets a narrower type, too",
    untyped_row,
    do("add_dtypes", {"c": "int32"}),
    Patch("transforms.declarations:with_arrays", _also_narrower),
    evidence=_small_type,
)
fault(
    "add_and_infer_dtypes: what has a type gets a narrower one",
    untyped_row,
    do("add_and_infer_dtypes", {"c": "int32"}),
    Patch("transforms.declarations:infer_types", _inferred_narrower),
    evidence=_small_type,
)
