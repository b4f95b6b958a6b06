"""The meaning of the tag ``ilp``: every value of the iname has private cells of its own.

Statements execute for all values side by side: each has a loop of its own over the iname, inside
all its other loops.
"""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._expression import replace_accesses, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._tags import InstructionParallel
from loopkit._tree import Entry, build, entries_of


def with_private_copies(kernel: Kernel) -> Kernel:
    """The kernel with these cells and loops spelled out."""
    for iname, tag in kernel.tags:
        if isinstance(tag, InstructionParallel):
            kernel = _side_by_side(_spread(kernel, iname), iname)
    return kernel


def _side_by_side(kernel: Kernel, iname: str) -> Kernel:
    """The iname is the innermost loop of each statement, shared by none."""
    entries: list[Entry] = []
    for number, (leaf, path) in enumerate(entries_of(kernel.tree)):
        if isinstance(leaf, str) and iname in kernel.statement_by_id[leaf].inames:
            others = tuple(key for key in path if key[0] != iname)
            path = (*others, (iname, -1 - number))
        entries.append((leaf, path))
    return kernel.with_(tree=build(entries))


def _spread(kernel: Kernel, iname: str) -> Kernel:
    """Private temporaries that the iname's statements write have an axis for it."""
    spread = {t.name: t for t in kernel.temporaries if _has_copies(kernel, t, iname)}
    if not spread:
        return kernel
    domain = kernel.domain_around([iname]) & kernel.assumptions.set
    found = _sets.counted(domain, iname, kernel.sizes)
    if found is None:
        return kernel
    inside, count = found

    def copied(statement: Statement) -> Statement:
        # What runs for no value of the iname has the last cell.
        mine = inside if iname in statement.inames else count

        def cell(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            if name not in spread:
                return None
            return prim.Subscript(prim.Variable(name), (*indices, mine))

        return statement.map_expressions(lambda e: replace_accesses(e, cell))

    def longer(temporary: TemporaryVariable) -> TemporaryVariable:
        if temporary.name not in spread:
            return temporary
        others = any(iname not in s.inames for s in kernel.users(temporary.name))
        shape = (*temporary.shape, count + others)
        return replace(
            temporary, shape=shape, dim_tags=None, padding=(), swizzles=(), dim_names=None
        )

    return kernel.with_(
        statements=tuple(copied(s) for s in kernel.statements),
        temporaries=tuple(longer(t) for t in kernel.temporaries),
    )


def _has_copies(kernel: Kernel, temporary: TemporaryVariable, iname: str) -> bool:
    """Whether a temporary needs a copy per value of the iname, since its subscripts lack it."""
    if temporary.address_space is not AddressSpace.PRIVATE:
        return False
    writers = [s for s in kernel.writers.get(temporary.name, ()) if iname in s.inames]
    named = any(iname in variable_names(i) for s in writers for i in s.write[1])
    return bool(writers) and not named
