"""Faults in statements that only carry data, which stand for nothing in the text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Strided, TypeCast, replace_accesses
from seams import sets as _sets

from faults import kernels, programs
from faults.making import RENAME, statement, var
from faults.planting import Patch, fault
from faults.staging import LOOPS, PRIVATE, SHARED, THREADS
from loopkit import AddressSpace

# {{{ the statement


def fetched(change: Callable[[Any], Any]) -> Patch:
    """The statement that fetches is another one."""

    def make(original: Any) -> Any:
        def with_nest(kernel: Any, new: Any, nest: Any, place: Any, entry: int, *_: Any) -> Any:
            return original(kernel, change(new), nest, place, entry)

        return with_nest

    return Patch("transforms._staging:with_nest", make)


def under(condition: Any) -> Callable[[Any], Any]:
    """The statement runs under one condition more."""
    return lambda s: dataclasses.replace(s, predicates=(*s.predicates, condition))


RAGGED = {"n": 10}
fault(
    "copies: fetched where data allow",
    kernels.stencil,
    PRIVATE,
    fetched(under(prim.Comparison(prim.Subscript(var("a"), (0,)), "<", 0))),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "copies: fetched by some blocks",
    kernels.stencil,
    SHARED,
    fetched(under(prim.Comparison(var("i_outer"), "<", 1))),
    chain=THREADS,
    sizes=RAGGED,
)
fault(
    "copies: added to what is there",
    kernels.stencil,
    PRIVATE,
    fetched(lambda s: dataclasses.replace(s, operation="sum")),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "copies: doubled on the way",
    kernels.stencil,
    PRIVATE,
    fetched(lambda s: dataclasses.replace(s, rhs=prim.Product((2, s.rhs)))),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "copies: of another array",
    kernels.two_inputs,
    do("add_prefetch", "a", "i_inner", default_tag=None),
    fetched(
        lambda s: dataclasses.replace(
            s,
            rhs=replace_accesses(
                s.rhs, lambda n, i: prim.Subscript(var("b"), i) if n == "a" else None
            ),
        )
    ),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "copies: of themselves",
    kernels.stencil,
    PRIVATE,
    fetched(lambda s: dataclasses.replace(s, rhs=s.lhs)),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "copies: in the other direction",
    kernels.stencil,
    PRIVATE,
    fetched(lambda s: dataclasses.replace(s, lhs=s.rhs, rhs=s.lhs)),
    chain=LOOPS,
    sizes=RAGGED,
)

# }}}

# {{{ where it puts them


def _declared(**changes: Any) -> Patch:
    """The copy is declared in another way."""
    return Patch(
        "transforms._staging:TemporaryVariable",
        lambda f: lambda *a, **m: dataclasses.replace(f(*a, **m), **changes),
    )


fault(
    "copies: of a narrower type",
    kernels.stencil,
    PRIVATE,
    _declared(dtype=np.dtype("int8")),
    chain=LOOPS,
    sizes=RAGGED,
    by_running=True,
)
fault(
    "copies: of blocks in one place in global memory",
    kernels.stencil,
    SHARED,
    _declared(address_space=AddressSpace.GLOBAL),
    chain=THREADS,
    sizes=RAGGED,
)
fault(
    "copies: cells laid over each other",
    kernels.product,
    do("add_prefetch", "a", ["i_inner", "k_inner"]),
    _declared(dim_tags=(Strided(1), Strided(1))),
    chain=(
        do("split_iname", "i", 2, outer_tag="g.1", inner_tag="l.1"),
        do("split_iname", "j", 2, outer_tag="g.0", inner_tag="l.0"),
        do("split_iname", "k", 2),
    ),
    sizes={"n": 3, "m": 3, "l": 5},
)


def _shared_by_two(original: Any) -> Any:
    """The second array is fetched to where the first one was."""

    def stage(kernel: Any, *rest: Any, **more: Any) -> Any:
        change = original(kernel, *rest, **more)
        found, mine = change.kernel, rest[0].name

        def to_first(expr: Any) -> Any:
            return replace_accesses(
                expr, lambda n, i: prim.Subscript(var("a_s"), i) if n == mine else None
            )

        wrong = found.with_(
            statements=tuple(s.map_expressions(to_first) for s in found.statements),
            temporaries=tuple(t for t in found.temporaries if t.name != mine),
        )
        return dataclasses.replace(change, kernel=wrong)

    return stage


fault(
    "copies: two arrays share one copy",
    kernels.two_inputs,
    do("add_prefetch", "b", "i_inner"),
    Patch("transforms._computed_ahead:stage", _shared_by_two),
    chain=(*THREADS, do("add_prefetch", "a", "i_inner")),
    sizes=RAGGED,
)

# }}}

# {{{ layouts that sizes decide

fault(
    "tag_array_axes: rows as far apart as there are rows",
    programs.through_matrix,
    do("tag_array_axes", "t", "stride:m, stride:1"),
    Patch(
        "transforms.storage:_parse_dim_tags", lambda f: lambda *_: (Strided(var("n")), Strided(1))
    ),
    sizes={"n": 2, "m": 3},
)

# }}}

# {{{ literals


def _not_wrapped(kernel: Any) -> str | None:
    """A product that 32 bits cannot hold."""
    b = np.zeros(3, "i8")
    with np.errstate(over="ignore"):
        kernel.executor("reference")(a=np.full(3, 2**30, "i4"), b=b)
    return None if b[0] == -(2**30) else f"b[0] is {b[0]}"


fault(
    "any: a number becomes a wider one",
    kernels.scaled_integers,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s,
            rhs=prim.Product(
                tuple(
                    TypeCast(np.dtype("int64"), c) if type(c) is int else c for c in s.rhs.children
                )
            ),
        ),
    ),
    chain=(do("fix_parameters", n=3),),
    evidence=_not_wrapped,
)
fault(
    "any: a condition on data is the opposite",
    kernels.conditional_on_data,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s, predicates=tuple(prim.LogicalNot(p) for p in s.predicates)
        ),
    ),
    sizes={"n": 5},
    by_running=True,
    values=lambda sizes: {"a": [1.0, 10.0, 2.0, 20.0, 3.0]},
)

# }}}

# {{{ precompute

fault(
    "precompute: where data allow",
    kernels.ruled_row,
    do("precompute", "f", "j", default_tag=None),
    fetched(under(prim.Comparison(prim.Subscript(var("a"), (0,)), "<", 0))),
    sizes={"n": 3},
)


def _stored(change: Callable[[Any], Any]) -> Patch:
    """The statement that stores a buffer is another one."""

    def make(original: Any) -> Any:
        def with_nest(kernel: Any, new: Any, nest: Any, place: Any, entry: int, *_: Any) -> Any:
            is_store = new.id.startswith("store")
            return original(kernel, change(new) if is_store else new, nest, place, entry)

        return with_nest

    return Patch("transforms._staging:with_nest", make)


BUFFER = do("buffer_array", "c", "j", default_tag=None)
fault(
    "buffer_array: stored where data allow",
    kernels.updated,
    BUFFER,
    _stored(under(prim.Comparison(prim.Subscript(var("a"), (0, 0, 0)), "<", 0))),
    sizes={"n": 2},
)
fault(
    "buffer_array: added to what the array holds",
    kernels.updated,
    BUFFER,
    _stored(lambda s: dataclasses.replace(s, operation="sum")),
    sizes={"n": 2},
)
fault(
    "buffer_array: stored to the next row",
    kernels.updated,
    BUFFER,
    _stored(
        lambda s: dataclasses.replace(
            s,
            lhs=prim.Subscript(
                s.lhs.aggregate,
                (
                    prim.Remainder(prim.Sum((s.lhs.index_tuple[0], 1)), var("n")),
                    *s.lhs.index_tuple[1:],
                ),
            ),
        )
    ),
    sizes={"n": 2},
)
fault(
    "buffer_array: one cell more is stored",
    kernels.half_updated,
    do("buffer_array", "c", "j", default_tag=None),
    Patch(
        "transforms._placement:cells_in_use",
        lambda f: (
            lambda kernel, uses, box, positions, place, **m: (
                _sets.condition_set(
                    prim.LogicalAnd(
                        (
                            prim.Comparison(var(positions[-1]), ">=", 0),
                            prim.Comparison(var(positions[-1]), "<=", box[-1].extent - 1),
                        )
                    )
                )
                if m.get("exact")
                else f(kernel, uses, box, positions, place, **m)
            )
        ),
    ),
    sizes={"n": 2},
)

# }}}


def filled() -> Any:
    """An array that is copied when it is full."""
    return kernels.make(
        "{ [i, k, h]: 0 <= i < n and 0 <= k, h < 8 }",
        "for i\n<> s[k] = c[i, k]\nx[i, h] = s[7 - h]\nend",
        "c, x",
        assumptions="n >= 1",
    )


fault(
    "copies: made again and again, the last before the array is full",
    filled,
    None,
    Patch(
        "codegen.functions:BodyLowering.code",
        lambda f: (
            lambda self, nodes: (
                found[::-1]
                if getattr((found := f(self, nodes))[0], "statement", None) == "insn"
                else found
            )
        ),
    ),
    chain=(do("add_prefetch", "s", ["h"]), do("add_inames_to_insn", "k", "id:fetch_s")),
    sizes={"n": 2},
)
