"""Reductions across the threads of a block: which accumulators are combined, along which axes.

If an iname that a reduction runs over is tagged as a thread index, each thread holds a partial
result in its private accumulator.  The threads combine these after the updates and before the
first read of the accumulator.  Afterwards each thread has the total, or in a running reduction
(a prefix sum) the result over all threads up to itself.  All of this follows from the tags; the
loop tree has no node for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace
from loopkit._cached import memoised
from loopkit._expression import nodes_of, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._promotion import COMPLEXES, INTEGERS
from loopkit._relations import reachable
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis
from loopkit._tree import Path, common_prefix, path_inames

COMBINE = "combine"
"""The kind of a statement that combines the partial results of threads."""
SCAN = "scan"
"""The kind of a statement that gives each thread what the threads up to it have."""
CARRY = "carry"
"""The kind of a statement that gives the first thread what all have, and the others nothing."""
LOOKBACK = "lookback"
"""The way in which blocks make running results: each looks back at those before it."""
TOGETHER = frozenset((COMBINE, SCAN, CARRY))
"""The kinds of statements that threads run together."""


@memoised
def reduced_inames(kernel: Kernel, update: Statement) -> frozenset[str]:
    """The inames that an update runs over, without those that distinguish cells or threads.

    If an accumulator is initialized on a hardware axis, each index on that axis has its own
    accumulator.
    """
    tags = kernel.iname_tags
    starts = [s for s in kernel.writers.get(update.written, ()) if s.kind == "init"]
    own = {tags[i] for s in starts for i in s.inames if i in tags and tags[i].is_parallel}
    return frozenset(
        i
        for i in kernel.reduced_inames(update)
        if tags.get(i) not in own and i not in variable_names(update.write[1])
    )


def adds_to(statement: Statement, name: str) -> bool:
    """Whether a statement updates an accumulator, in any order or in that of a segmented one."""
    is_update = statement.operation is not None or statement.kind == "update"
    return is_update and statement.written == name


def reduction_text(kernel: Kernel, update: Statement) -> str:
    """What an update adds up: ``sum over j``, or ``running sum over i``, read on the way."""
    reduced = [i for i in kernel.all_inames if i in reduced_inames(kernel, update)]
    mine = kernel.paths.get(update.id, ())
    temporary = kernel.temporary_by_name.get(update.written)  # none where launches hand it on
    readers = [r for r in kernel.readers.get(update.written, ()) if r.kind != "update"]
    running = any(
        iname in reduced
        for reader in readers
        for iname in path_inames(common_prefix((mine, kernel.paths.get(reader.id, ()))))
    )
    if temporary is not None and temporary.is_running:  # also along threads that both are on
        parallel = {i for i, tag in kernel.tags if tag.is_parallel}.intersection(reduced)
        running = running or any(parallel & reader.inames for reader in readers)
    over = f" over {', '.join(reduced)}" if reduced else ""
    return f"{'running ' if running else ''}{operation_text(kernel, update)}{over}"


def operation_text(kernel: Kernel, update: Statement) -> str:
    """What an update's operation is called, also where its terms have an order."""
    held = kernel.temporary_by_name.get(update.written)
    name = update.operation or (held and held.accumulates) or "reduction"
    own = next((o for o in kernel.reductions if o.name == name), None)
    shown = name if own is None else own.shown
    if update.operation is not None:
        return shown
    return f"{'ordered' if own is not None and own.is_ordered else 'segmented'} {shown}"


@memoised
def spread_inames(kernel: Kernel) -> Mapping[str, tuple[str, ...]]:
    """The block and thread inames that the updates of accumulators run over, by accumulator.

    Address spaces must have been decided.
    """
    tags = kernel.iname_tags
    parallel = {i for i, tag in tags.items() if isinstance(tag, (GroupAxis, LocalAxis, LocalAuto))}
    found: dict[str, tuple[str, ...]] = {}
    for temporary in kernel.temporaries if parallel else ():
        if temporary.accumulates is None or temporary.address_space is not AddressSpace.PRIVATE:
            continue
        writers = kernel.writers.get(temporary.name, ())
        starts = [s for s in writers if s.kind == "init"]
        if not starts:
            continue
        # The terms of a segmented one have an order, which is that of a scan.
        updates = [s for s in writers if s.operation is not None or temporary.is_running]
        updates = [s for s in updates if adds_to(s, temporary.name)]
        inames = [i for s in updates for i in kernel.all_inames if i in reduced_inames(kernel, s)]
        inames = [i for i in inames if i in parallel]
        if inames:
            found[temporary.name] = tuple(dict.fromkeys(inames))
    return found


@memoised
def combined_axes(kernel: Kernel) -> Mapping[str, tuple[int, ...]]:
    """The thread axes along which accumulators hold partial results, by accumulator."""
    found: dict[str, tuple[int, ...]] = {}
    for name, inames in spread_inames(kernel).items():
        tags = (kernel.iname_tags[i] for i in inames)
        axes = {tag.axis for tag in tags if isinstance(tag, LocalAxis)}
        if axes or scanned_blocks(kernel, name):
            found[name] = tuple(sorted(axes))
    return found


def scanned_blocks(kernel: Kernel, name: str) -> tuple[int, ...]:
    """The block axes along which blocks look back at running results of those before them."""
    tags = (kernel.iname_tags[i] for i in spread_inames(kernel).get(name, ()))
    axes = {tag.axis for tag in tags if isinstance(tag, GroupAxis)}
    return tuple(sorted(axes)) if axes and looks_back(kernel, name) else ()


def looks_back(kernel: Kernel, name: str) -> bool:
    """Whether the running results of an accumulator are asked for across blocks."""
    temporary = kernel.temporary_by_name[name]
    return temporary.is_running and temporary.combined_by == LOOKBACK


@memoised
def is_alike_in_all(kernel: Kernel, name: str) -> bool:
    """Whether all threads hold the same value after they have combined an accumulator.

    Each thread may combine the partial results with operands in another order.  This makes no
    difference for the operations listed here.  It does for products of complex numbers, which are
    rounded differently, and for a maximum of zeros of either sign, if the sign is used.
    """
    temporary = kernel.temporary_by_name[name]
    operation, dtype = temporary.accumulates, temporary.dtype
    if temporary.is_running or any(operation == own.name for own in kernel.reductions):
        return False
    if operation == "product":
        return dtype is not None and dtype not in COMPLEXES
    if operation in ("max", "min"):
        return dtype in INTEGERS or not _shows_signs(kernel, name)
    return operation in ("sum", "any", "all")


def _shows_signs(kernel: Kernel, name: str) -> bool:
    """Whether something computed from a value may differ between positive and negative zero."""
    readers = kernel.readers
    names = reachable([name], lambda n: (s.written for s in readers.get(n, ())))
    return any(
        isinstance(node, (prim.Quotient, prim.FloorDiv, prim.Remainder, prim.Power))
        or (isinstance(node, prim.Call) and node.function.name != "abs")
        for n in names
        for statement in readers.get(n, ())
        for expr in (statement.rhs, *statement.predicates)
        for node in nodes_of(expr)
    )


def is_collective(kernel: Kernel, statement: Statement) -> bool:
    """Whether all threads execute a statement, whatever its domain.

    Such statements initialize or combine partial results.
    """
    return statement.kind in TOGETHER or (
        statement.kind == "init" and statement.written in combined_axes(kernel)
    )


@dataclass(frozen=True)
class ThreadScan:
    """Running reductions that the threads of a block compute together.

    ``accumulators`` are their accumulators.  ``inames`` are the thread inames, highest axis first,
    preceded by the block inames of a decoupled look-back.  ``updates`` and ``readers`` are
    statements in the loops ``path``.  In each iteration of these, a reader sees the updates of all
    threads up to its own.
    """

    accumulators: tuple[str, ...]
    inames: tuple[str, ...]
    updates: frozenset[str]
    readers: frozenset[str]
    path: Path

    @property
    def statements(self) -> frozenset[str]:
        """The updates and the readers."""
        return self.updates | self.readers


@memoised
def thread_scans(kernel: Kernel) -> tuple[ThreadScan, ...]:
    """The running reductions that threads make together; those that share a statement are one.

    Where updates follow what reads them, another scan begins.  Address spaces must have been
    decided.
    """
    found: list[ThreadScan] = []
    for name in spread_inames(kernel):
        for mine in _scans_of_one(kernel, name):
            for other in [o for o in found if o.statements & mine.statements]:
                if other.inames != mine.inames:
                    continue
                found.remove(other)
                updates = other.updates | mine.updates
                mine = replace(
                    mine,
                    accumulators=(*other.accumulators, *mine.accumulators),
                    updates=updates,
                    readers=(other.readers | mine.readers) - updates,
                )
            found.append(mine)
    paths = kernel.paths
    return tuple(
        replace(s, path=common_prefix([paths[id_] for id_ in s.statements])) for s in found
    )


def _scans_of_one(kernel: Kernel, name: str) -> list[ThreadScan]:
    """The scans of one accumulator, in the order of the text; none where threads make none."""
    tags, threads = kernel.iname_tags, spread_inames(kernel)[name]
    axes = {i: tags[i] for i in threads if isinstance(tags[i], (LocalAxis, LocalAuto))}
    if looks_back(kernel, name):
        axes.update((i, tags[i]) for i in threads if isinstance(tags[i], GroupAxis))
    blocks = {tag for tag in axes.values() if isinstance(tag, GroupAxis)}
    found: list[ThreadScan] = []
    if not (kernel.temporary_by_name[name].is_running and axes):
        return found
    users = [s for s in kernel.users(name) if s.kind not in ("init", *TOGETHER)]
    ids = {s.id for s in users}
    for statement in (s for s in kernel.statements if s.id in ids):
        mine = statement.inames & axes.keys()
        own = tuple(sorted(mine, key=lambda i: (axes[i] in blocks, str(axes[i]))))[::-1]
        is_update = adds_to(statement, name)
        if is_update and not own:
            continue  # the first thread adds it
        if {axes[i] for i in own} != {*axes.values()}:
            return []
        if is_update and (not found or found[-1].readers):
            found.append(ThreadScan((name,), own, frozenset(), frozenset(), ()))
        if not found or found[-1].inames != own:
            return []
        last, more = found[-1], frozenset((statement.id,))
        found[-1] = (
            replace(last, updates=last.updates | more)
            if is_update
            else replace(last, readers=last.readers | more)
        )
    return found if found and found[-1].readers else []


def scans_of(kernel: Kernel, name: str) -> tuple[ThreadScan, ...]:
    """The scans of an accumulator that threads make."""
    return tuple(s for s in thread_scans(kernel) if name in s.accumulators)
