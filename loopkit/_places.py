"""Default memory spaces of temporaries, which blocks need them, and where copies run.

A private array exists once per thread.  An axis along which every access has the thread's own
index as subscript is redundant, since each thread uses one cell along it; such axes are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, TemporaryVariable, if_distinct
from loopkit._cached import memoised
from loopkit._collectives import adds_to, combined_axes, scanned_blocks
from loopkit._expression import Access, names_outside_accesses, replace_accesses, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._launches import is_one_launch, launch_of
from loopkit._nodes import Expression
from loopkit._relations import grouped, reachable
from loopkit._rules import expand_rules
from loopkit._simplify import simplify
from loopkit._tags import GroupAxis, InstructionParallel, LocalAxis
from loopkit._tree import Path, rewrite_paths


def decide_address_spaces(kernel: Kernel) -> Kernel:
    """Replace ``AUTO`` by what :func:`space_of` says."""
    if all(t.address_space is not AddressSpace.AUTO for t in kernel.temporaries):
        return kernel
    decided = []
    for temporary in kernel.temporaries:
        if temporary.address_space is AddressSpace.AUTO:
            temporary = replace(temporary, address_space=space_of(kernel, temporary))
        decided.append(temporary)
    return kernel.with_(temporaries=tuple(decided))


def space_of(kernel: Kernel, temporary: TemporaryVariable) -> AddressSpace:
    """The memory space of a temporary; ``AUTO`` follows from the subscripts that write it.

    With a block iname it is global memory, with a thread iname shared memory, else private memory.
    Values that a later launch may read are in global memory, too.  A block iname inside of a data
    lookup (``h[x[b]]``) does not determine the cell: where all accesses are inside blocks of that
    axis, each block has its own copy.  A copy that a step made is shared by all threads, too, if
    the subscripts of its readers are inames on threads.
    """
    space = space_in_launch(kernel, temporary)
    if temporary.address_space is AddressSpace.AUTO and outlives_launch(kernel, temporary.name):
        return AddressSpace.GLOBAL
    return space


def space_in_launch(kernel: Kernel, temporary: TemporaryVariable) -> AddressSpace:
    """Like :func:`space_of`, were no later launch to read the temporary."""
    if temporary.address_space is not AddressSpace.AUTO:
        return temporary.address_space
    kernel = _written_out(kernel)
    writers = kernel.writers.get(temporary.name, ())
    indices = [index for writer in writers for index in writer.write[1]]
    tags = {kernel.iname_tags.get(n) for index in indices for n in variable_names(index)}
    blocks = {tag for tag in tags if isinstance(tag, GroupAxis)}
    plain = {kernel.iname_tags.get(n) for index in indices for n in names_outside_accesses(index)}
    users = kernel.users(temporary.name)
    inside = [{kernel.iname_tags.get(i) for i in statement.inames} for statement in users]
    if blocks & plain or any(not blocks <= axes for axes in inside):
        return AddressSpace.GLOBAL
    if temporary.made_by is not None and all(w.made_by == temporary.made_by for w in writers):
        reads = [indices for s in users for name, indices in s.reads if name == temporary.name]
        # What rules are given may cancel: 4*b + t - 4*b - t is one cell for all threads.
        subscripts = {simplify(index) for indices in reads for index in indices}
        tags |= {kernel.iname_tags.get(n) for index in subscripts for n in variable_names(index)}
    threads = any(isinstance(tag, LocalAxis) for tag in tags)
    return AddressSpace.LOCAL if threads else AddressSpace.PRIVATE


@memoised
def _written_out(kernel: Kernel) -> Kernel:
    """The kernel without rules, whose arguments say which threads read what (memoised)."""
    return expand_rules(kernel)


def one_loop_per_statement(kernel: Kernel) -> Kernel:
    """The kernel where each iname tagged ``ilp`` is the innermost loop of every statement in it."""
    copied = [iname for iname, tag in kernel.tags if isinstance(tag, InstructionParallel)]
    # Numbers that no loop of the tree has.
    numbers = {s.id: -1 - i for i, s in enumerate(kernel.statements)}

    def rewrite(statement: str, path: Path) -> Path:
        mine = [key[0] for key in path if key[0] in copied]
        if not mine:
            return path
        rest = tuple(key for key in path if key[0] not in mine)
        return (*rest, *((i, numbers[statement]) for i in copied if i in mine))

    return kernel.with_(tree=rewrite_paths(kernel.tree, rewrite)) if copied else kernel


@memoised
def outlives_launch(kernel: Kernel, name: str) -> bool:
    """Whether a launch may read in a temporary what an earlier one has written (memoised).

    Not where each reader has a writer of the same cell above it, in loops around both of its
    own launch.
    """
    if is_one_launch(kernel):
        return False
    kernel = _written_out(kernel)
    own = {launch_of(kernel)[s.id] for s in kernel.users(name)}
    if len(own) < 2 and not any(launch.loops for launch in own):
        return False
    return not all(
        is_plainly_written(kernel, reader, access)
        for reader in kernel.readers.get(name, ())
        for access in kernel.reads_of(reader)
        if access[0] == name
    )


def is_plainly_written(
    kernel: Kernel, reader: Statement, access: Access, *, earlier: bool = False
) -> bool:
    """Whether a write of the same cell directly precedes a read, in the same loops.

    The write is in the same launch, or also in an ``earlier`` one.
    """
    launches, paths, place = launch_of(kernel), kernel.paths, _places_of(kernel)
    path = paths[reader.id]
    return any(
        writer.write[1] == access[1]
        and (earlier or launches[writer.id] is launches[reader.id])
        and place[writer.id] < place[reader.id]
        and writer.inames <= reader.inames
        and path[: len(paths[writer.id])] == paths[writer.id]
        and all(p in reader.predicates for p in writer.predicates)
        for writer in reversed(kernel.writers.get(access[0], ()))
    )


@memoised
def _places_of(kernel: Kernel) -> Mapping[str, int]:
    return {id_: number for number, id_ in enumerate(kernel.paths)}


@memoised
def shared_storage(kernel: Kernel) -> Mapping[str, tuple[str, ...]]:
    """For each temporary that shares its storage with others all that do, itself among them."""
    named = [(t.base_storage, t.name) for t in kernel.temporaries if t.base_storage is not None]
    groups = grouped(named).values()
    return {name: names for names in groups if len(names) > 1 for name in names}


@memoised
def first_block_alone(kernel: Kernel) -> Mapping[str, frozenset[int]]:
    """The block axes along which only block 0 looks at what a temporary holds (memoised).

    A statement that has no coordinate on an axis runs in block 0 where it writes
    to global memory.  What it needs for that is private or shared, and no other
    block needs it: then it is computed in block 0, too, and a value that is loaded,
    changed and stored is not loaded by one block while another stores it.

    Address spaces must have been decided.
    """
    on_axis = grouped((tag.axis, i) for i, tag in kernel.tags if isinstance(tag, GroupAxis))
    inside = {t.name for t in kernel.temporaries if t.address_space is not AddressSpace.GLOBAL}
    if not (on_axis and inside):
        return {}
    alone: dict[str, frozenset[int]] = dict.fromkeys(inside, frozenset())
    for axis, inames in on_axis.items():
        for name in inside - _wanted(kernel, inside, frozenset(inames)):
            alone[name] |= {axis}
    return alone


def _wanted(kernel: Kernel, inside: set[str], inames: frozenset[str]) -> frozenset[str]:
    """Those of some temporaries that not block 0 alone looks at, along the axis of ``inames``."""

    def read_by(statements: Iterable[Statement]) -> set[str]:
        return inside & {name for s in statements for name, _ in kernel.reads_of(s)}

    # Every block comes to a loop, and must know its bounds.
    start = (inside & kernel.bounding) | read_by(s for s in kernel.statements if s.inames & inames)
    return reachable(start, lambda name: read_by(kernel.writers.get(name, ())))


def runs_once_along(kernel: Kernel, statement: Statement) -> frozenset[tuple[str, int]]:
    """The hardware axes along which a statement without a coordinate there runs on index 0 alone.

    On all others every thread or block has a copy of its own of what it writes.
    Address spaces must have been decided.
    """
    temporary = kernel.temporary_by_name.get(statement.written)
    if temporary is None or temporary.address_space is AddressSpace.GLOBAL:
        return _BLOCKS | _THREADS
    alone = first_block_alone(kernel).get(temporary.name, frozenset())
    blocks = frozenset(("g", axis) for axis in alone)
    if temporary.address_space is AddressSpace.LOCAL:
        return blocks | _THREADS
    if adds_to(statement, temporary.name) and temporary.name in combined_axes(kernel):
        # One thread alone adds to its partial result.
        blocks |= {("g", axis) for axis in scanned_blocks(kernel, temporary.name)}
        return blocks | {("l", axis) for axis in combined_axes(kernel)[temporary.name]}
    return blocks


_BLOCKS = frozenset(("g", axis) for axis in range(3))
_THREADS = frozenset(("l", axis) for axis in range(3))


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
    """Whether all indices are the same thread or block index of the executing thread."""
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
