"""Axes of private arrays along which each thread has one cell: they tell nothing apart.

A private array exists once per thread.  Where each of its accesses has the thread's own
coordinate as subscript, a thread uses one cell along that axis, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, TemporaryVariable, if_distinct
from loopkit._expression import replace_accesses
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._tags import GroupAxis, LocalAxis


def drop_own_axes(kernel: Kernel) -> Kernel:
    """Private arrays without the axes along which each thread, or block, uses one cell alone.

    Before: acc[i_inner, k] with i_inner on l.0       After: acc[k]

    Address spaces must have been decided.
    """
    kept: dict[str, list[int]] = {}
    for temporary in kernel.temporaries:
        if temporary.address_space is not AddressSpace.PRIVATE or not temporary.shape:
            continue
        uses = [
            indices
            for statement in kernel.users(temporary.name)
            for name, indices in statement.accesses
            if name == temporary.name
        ]
        axes = range(len(temporary.shape))
        own = [axis for axis in axes if _is_own(kernel, [indices[axis] for indices in uses])]
        if own and uses:
            kept[temporary.name] = [axis for axis in axes if axis not in own]
    if not kept:
        return kernel

    def access(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        if name not in kept:
            return None
        rest = tuple(indices[axis] for axis in kept[name])
        return prim.Subscript(prim.Variable(name), rest) if rest else prim.Variable(name)

    statements = tuple(
        s.map_expressions(lambda e: replace_accesses(e, access)) for s in kernel.statements
    )
    temporaries = tuple(
        _with_axes(t, kept[t.name]) if t.name in kept else t for t in kernel.temporaries
    )
    return kernel.with_(statements=statements, temporaries=temporaries)


def _is_own(kernel: Kernel, indices: Iterable[Expression]) -> bool:
    """Whether indices are one and the same coordinate of the thread, or block, that runs."""
    inames = {i.name if isinstance(i, prim.Variable) else "" for i in indices}
    tags = {kernel.iname_tags.get(iname) for iname in inames}
    starts = {kernel.range_around(i)[0] for i in inames if i in kernel.home_domain}
    (tag,) = tags if len(tags) == 1 else (None,)
    return isinstance(tag, (GroupAxis, LocalAxis)) and len(starts) == 1 and None not in starts


def _with_axes(temporary: TemporaryVariable, axes: Sequence[int]) -> TemporaryVariable:
    padding = temporary.padding and tuple(temporary.padding[axis] for axis in axes)
    shape = tuple(temporary.shape[axis] for axis in axes)
    names = temporary.dim_names and if_distinct(temporary.dim_names[axis] for axis in axes)
    return replace(
        temporary, shape=shape, dim_tags=None, padding=padding, swizzles=(), dim_names=names
    )
