"""Reductions: how threads and blocks combine partial results, and splitting of reductions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._change import Change
from loopkit._collectives import LOOKBACK
from loopkit._errors import IllegalTransformError, InvalidArgumentError, NothingToDoError
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._launches import launch_of
from loopkit._make.reduction_operations import OPERATIONS, operations_of
from loopkit._match import matching
from loopkit._simplify import simplify
from loopkit._transform import transform
from loopkit._tree import Entry, LaunchBarrier, build, common_prefix, entries_of
from loopkit.transforms._common import inames_in, new_name, with_arrays, with_statements
from loopkit.transforms._expand import with_axes
from loopkit.transforms._loop_nests import check_nesting, extent_or, offset
from loopkit.transforms._rule_uses import expand_rules_that_use
from loopkit.transforms._scans import with_running


def added_atomically(kernel: Kernel, parts: Iterable[tuple[str, str]]) -> Kernel:
    """A kernel in which partial results are added atomically to accumulators in global memory.

    ``parts`` are the first and the last statement of each partial result: its initialization, and
    the update that adds it.  A launch ends before the first and after the second.
    """
    for start, taking in parts:
        kernel = _with_launches(_in_global_memory(kernel, taking), start, taking)
    return kernel


def _in_global_memory(kernel: Kernel, taking: str) -> Kernel:
    """The accumulator in global memory, with a cell for each value of the inames around its start.

    Iterations of loops around launches share a cell, since they run in sequence.
    """
    update = kernel.statement_by_id[taking]
    accumulator = kernel.temporary_by_name[update.written]
    name = accumulator.name
    every = [s.id for s in kernel.statements]
    kernel = expand_rules_that_use(kernel, name, every, in_reductions=True)
    if operations_of(kernel.reductions)[update.operation or ""].components:
        raise IllegalTransformError(
            f"'{name}' has several components, which nothing changes at once in memory",
            instead="split_reduction_outward, and a launch for the partial results of blocks",
        )
    users = kernel.users(name)
    starts = [s for s in users if s.kind == "init" and s.written == name]
    around = frozenset.intersection(*(s.inames for s in users))
    inames = [
        i for i in kernel.all_inames if i in around and i not in launch_of(kernel)[taking].loops
    ]
    if any(s.inames - around for s in starts):
        raise IllegalTransformError(
            f"what reads '{name}' is outside of loops that its start is in: it has no cell there"
        )
    extents = [
        extent_or(
            kernel,
            iname,
            f"'{name}' would have a cell for each '{iname}', and the number of these does not "
            "follow from the sizes",
        )
        for iname in inames
    ]
    pairs = zip(inames, extents, strict=True)
    cell = tuple(simplify(offset(prim.Variable(iname), low)) for iname, (low, _) in pairs)
    moved = replace(
        accumulator, address_space=AddressSpace.GLOBAL, dim_tags=None, padding=(), swizzles=()
    )
    kernel = with_arrays(kernel, {name: moved})
    if cell:
        lengths = [length for _, length in extents]
        kernel = with_axes(kernel, moved, lengths, dict.fromkeys((s.id for s in users), cell))
    changed = replace(kernel.statement_by_id[taking], kind="atomic")
    return with_statements(kernel, {taking: changed})


def _with_launches(kernel: Kernel, start: str, taking: str) -> Kernel:
    """The kernel with launches that end before ``start`` and after ``taking``.

    The loads of their loop bounds come after the first of these ends.
    """
    around = kernel.paths[taking][: len(launch_of(kernel)[taking].loops)]
    inames = frozenset().union(*(kernel.statement_by_id[id_].inames for id_ in (start, taking)))
    loads = {w.id for name in kernel.loaded_bounds(inames) for w in kernel.writers[name]}
    loads = {id_ for id_ in loads if len(kernel.paths[id_]) > len(around)}
    entries = [e for e in entries_of(kernel.tree) if e[0] not in loads]
    first = [leaf for leaf, _ in entries].index(start)
    entries[first:first] = [e for e in entries_of(kernel.tree) if e[0] in loads]
    ids = [leaf for leaf, _ in entries]
    for at in (ids.index(taking) + 1, first):
        barrier = LaunchBarrier(kernel.fresh_name("gbarrier"))
        if 0 < at < len(entries):
            entries.insert(at, (barrier, around))
        kernel = kernel.with_(tree=build(entries))
    return kernel


@transform
def realize_reduction(
    kernel: Kernel,
    insn_id_filter: kind.Within = None,
    *,
    by: kind.Text = None,
    inames: kind.MaybeNames = None,
    force_scan: kind.Flag = False,
    force_outer_iname_for_scan: kind.Text = None,
    unchecked: bool = False,
) -> Change:
    """Choose how reductions are computed: as scans along a loop, or by threads or blocks.

    Before: ``for i in [0, n)``, inside of it ``acc = 0`` and ``acc += x[j]`` for ``j in [0, i]``.
    After ``realize_reduction(force_scan=True)``: ``acc = 0``, behind it ``for i in [0, n)`` and
    inside of that ``acc += x[i]``: a scan.

    Before: ``combine acc: sum over j_inner: 256 threads, by shuffles and shared memory``.  After
    ``realize_reduction(by="shared")``: ``256 threads, by shared memory``.

    Before: ``scan acc: running sum over i_inner: 256 threads, by shuffles``, in a loop i_outer.
    After ``realize_reduction(by="lookback")``, i_outer may be a block axis: ``running sum over
    i_outer, i_inner: 256 threads, by shuffles, blocks by look-back``.

    With ``inames``, which blocks are to run, each of their values makes a partial result, and adds
    that to an accumulator in global memory, which starts in a launch before, and is read in one
    behind::

        acc = 0
        for i_outer                                 acc = 0
            for i_inner                             ==== launch 2
                acc += x[16*i_outer + i_inner]      for i_outer
        out[0] = acc                                    acc_part = 0
                                                        for i_inner
                                                            acc_part += x[16*i_outer + i_inner]
                                                        acc += acc_part              atomic
                                                    ==== launch 3
                                                    out[0] = acc

    :arg insn_id_filter: a match string; the reductions that these statements make or use.
    :arg by: ``"shuffle"``, within warps, and from warp to warp through shared memory;
        ``"shared"``, a tree in shared memory; ``"atomic"``, one cell of shared memory to which
        all add; ``"lookback"``, for running ones: blocks, each of which looks back at those
        before it (Merrill and Garland 2016); None for what suits the block.
    :arg inames: some of those that the reduction runs over, with ``by="atomic"``: those of blocks.
    :arg force_scan: keep one accumulator through the loop along which a reduction grows.  Without
        ``insn_id_filter``, those that grow along no loop stay as they are, if others do.
    :arg force_outer_iname_for_scan: the iname of that loop; None for the one that bounds it.
    :raises IllegalTransformError: where there is no reduction, or it is so already; where there
        is no such loop.
    :raises InvalidArgumentError: for another ``by``.
    """
    ids = matching(kernel, insn_id_filter)
    touched = {name for s in kernel.statements if s.id in ids for name, _ in s.accesses}
    if inames is not None:
        if by != "atomic" or force_scan or force_outer_iname_for_scan:
            raise InvalidArgumentError(
                "blocks do not wait for each other: inames takes by='atomic'",
                instead="split_reduction_outward, and a launch for the partial results of blocks",
            )
        return _across(kernel, inames_in(kernel, inames), touched)
    chosen = [t for t in kernel.temporaries if t.accumulates is not None and t.name in touched]
    is_scan = bool(force_scan or force_outer_iname_for_scan)
    if by == "atomic":
        _check_atomic(chosen)
    names = [t.name for t in chosen]
    change = Change(kernel)
    if is_scan and names:
        outer = force_outer_iname_for_scan
        if outer is not None:
            kernel.check_iname(outer)
        if_any = insn_id_filter is None and outer is None
        change = with_running(kernel, names, outer, if_any=if_any)
    every = change.kernel.temporaries
    if by == LOOKBACK and chosen:
        names = [t.name for t in every if t.name in names and t.is_running]
        if not names:
            raise IllegalTransformError(
                f"a {chosen[0].accumulates} that is not running has nothing to look back at",
                instead="force_scan=True, for one that grows along a loop; "
                "across blocks, by='atomic' with inames",
            )
    temporaries = tuple(replace(t, combined_by=by) if t.name in names else t for t in every)
    if not chosen or (not is_scan and temporaries == every):
        raise NothingToDoError(
            f"no reduction of these statements is to be combined otherwise than "
            f"{'as it suits the block' if by is None else 'by ' + by!r}",
            instead="statements that make or use a reduction",
        )
    return replace(change, kernel=change.kernel.with_(temporaries=temporaries))


def _check_atomic(accumulators: Sequence[TemporaryVariable]) -> None:
    """Raise where the operation of an accumulator has no atomic update, whatever its type."""
    for accumulator in accumulators:
        if accumulator.accumulates not in OPERATIONS.values():
            raise IllegalTransformError(
                f"'{accumulator.name}' is combined by {accumulator.accumulates}, of which there is "
                "no atomic update",
                instead="by='shared', or insn_id_filter for other statements",
            )


@transform
def split_reduction_inward(
    kernel: Kernel, inames: kind.Names, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Split a reduction into partial results over ``inames``, and a reduction of these.

    Before: ``sum((i, j), f)``        After ``split_reduction_inward("j")``:
    ``sum(i, sum(j, f))``.

    :arg inames: some of those that a reduction runs over.
    :arg within: a match string; the reductions whose updates match.
    :raises IllegalTransformError: where no reduction is over these and other inames, or its
        loops cannot nest so.
    """
    return _split(kernel, inames, within, is_inward=True)


@transform
def split_reduction_outward(
    kernel: Kernel, inames: kind.Names, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Split a reduction into a reduction over ``inames`` of partial results over the others.

    Before: ``sum((i, j), f)``        After ``split_reduction_outward("j")``:
    ``sum(j, sum(i, f))``.

    :arg inames: some of those that a reduction runs over.
    :arg within: a match string; the reductions whose updates match.
    :raises IllegalTransformError: where no reduction is over these and other inames, or its
        loops cannot nest so.
    """
    return _split(kernel, inames, within, is_inward=False)


@transform
def reduction_arg_to_subst_rule(
    kernel: Kernel,
    inames: kind.Names,
    insn_match: kind.Within = None,
    subst_rule_name: kind.NewName = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Make a substitution rule of the term of a reduction, with some inames as parameters.

    Before: ``sum(j, x[i, j]**2)``   After (``"j", subst_rule_name="f"``): ``f(j) := x[i, j]**2``,
    ``sum(j, f(j))``.

    :arg inames: some of those that reductions run over, which the rule takes.
    :arg insn_match: a match string: only the reductions whose updates match.
    :arg subst_rule_name: the name of the rule; with several, the others are numbered.
    :raises IllegalTransformError: where no reduction is over these inames.
    """
    arguments = inames_in(kernel, inames)
    default = subst_rule_name or f"red_{'_'.join(arguments)}_arg"
    ids = matching(kernel, insn_match)
    rules: dict[str, SubstitutionRule] = {}
    for update in kernel.statements:
        reduced = kernel.reduced_inames(update)
        if update.id in ids and _is_free(update) and {*arguments} <= {*reduced}:
            taken = [rule.name for rule in rules.values()]
            given = subst_rule_name if not rules else None
            name = new_name(kernel, given, default, taken)
            rules[update.id] = SubstitutionRule(name, arguments, update.rhs)
    if not rules or not arguments:
        listed = ", ".join(f"'{i}'" for i in arguments)
        known = {i for s in kernel.statements if _is_free(s) for i in kernel.reduced_inames(s)}
        raise IllegalTransformError(
            f"no reduction is over {listed or 'no iname'}",
            instead=f"inames of reductions: {', '.join(sorted(known))}" if known else "",
        )
    parameters = tuple(map(prim.Variable, arguments))
    changed = {
        id_: replace(
            kernel.statement_by_id[id_], rhs=prim.Call(prim.Variable(rule.name), parameters)
        )
        for id_, rule in rules.items()
    }
    new = with_statements(kernel, changed)
    return Change(new.with_(substitutions=(*kernel.substitutions, *rules.values())))


def _across(kernel: Kernel, inames: Sequence[str], sums: Collection[str]) -> Change:
    """Make blocks add their partial results of some accumulators atomically."""
    chosen = frozenset(inames)
    over = {s.id: {*kernel.reduced_inames(s)} for s in kernel.statements if s.written in sums}
    updates = [s.id for s in kernel.statements if _is_free(s) and chosen <= over.get(s.id, {*()})]
    whole = [id_ for id_ in updates if chosen == over[id_]]
    change, parts = Change(kernel), [(id_, id_) for id_ in whole]
    if len(whole) < len(updates) or not whole:
        change, split = _parted(kernel, inames, {*updates} - {*whole}, is_inward=False)
        parts += [(part.start.id, part.taking.id) for part in split.values()]
    return replace(change, kernel=added_atomically(change.kernel, parts))


def _is_free(update: Statement) -> bool:
    """Whether a statement updates a reduction whose terms may be added in any order."""
    return update.kind == "update" and update.operation is not None


def _split(kernel: Kernel, inames: Any, within: Any, *, is_inward: bool) -> Change:
    ids = matching(kernel, within)
    return _parted(kernel, inames_in(kernel, inames), ids, is_inward=is_inward)[0]


def _parted(
    kernel: Kernel, inames: Sequence[str], ids: Collection[str], *, is_inward: bool
) -> tuple[Change, Mapping[str, _Partial]]:
    """Split reductions into partial results, and return what these consist of."""
    chosen = frozenset(inames)
    parts: dict[str, _Partial] = {}
    for update in kernel.statements:
        reduced = frozenset(kernel.reduced_inames(update)) - variable_names(update.write[1])
        if update.id in ids and _is_free(update) and chosen < reduced:
            inner = chosen if is_inward else reduced - chosen
            parts[update.id] = _partial(kernel, update, inner, parts)
    if not parts:
        listed = ", ".join(f"'{i}'" for i in sorted(chosen))
        raise IllegalTransformError(
            f"no reduction is over {listed} and other inames",
            instead="some of the inames that one reduction runs over; split_iname makes two of one",
        )
    entries: list[Entry] = []
    for number, (id_, path) in enumerate(entries_of(kernel.tree)):
        part = parts.get(id_) if isinstance(id_, str) else None
        if part is None:
            entries.append((id_, path))
            continue
        outer = tuple(key for key in path if key[0] not in part.inner)
        inside = tuple((iname, -1 - number) for iname, _ in path if iname in part.inner)
        if path[: len(outer)] != outer:
            # In another order, they are other loops.
            shared = common_prefix((outer, path))
            outer = (*shared, *((i, -1 - number) for i, _ in outer[len(shared) :]))
        entries += [(part.start.id, outer), (id_, (*outer, *inside)), (part.taking.id, outer)]
    made = [s for part in parts.values() for s in (part.start, part.update, part.taking)]
    new = kernel.with_(
        statements=(*(s for s in kernel.statements if s.id not in parts), *made),
        tree=build(entries),
        temporaries=(*kernel.temporaries, *(part.temporary for part in parts.values())),
    )
    check_nesting(new)
    moves = (s.id for part in parts.values() for s in (part.start, part.taking))
    return Change(new, moves=frozenset(moves)), parts


@dataclass(frozen=True)
class _Partial:
    """The parts of a reduction of partial results, each of which is over the ``inner`` inames."""

    inner: frozenset[str]
    temporary: TemporaryVariable
    start: Statement
    update: Statement
    taking: Statement


def _partial(
    kernel: Kernel, update: Statement, inner: frozenset[str], others: Mapping[str, _Partial]
) -> _Partial:
    accumulator = kernel.temporary_by_name[update.written]
    taken = (n for p in others.values() for n in (p.temporary.name, p.start.id, p.taking.id))
    fresh = kernel.fresh_names(taken)
    temporary = replace(
        accumulator,
        name=fresh(f"{accumulator.name}_part"),
        shape=(),
        dim_names=None,
        address_space=AddressSpace.PRIVATE,
        dim_tags=None,
        padding=(),
        swizzles=(),
    )
    own = prim.Variable(temporary.name)
    first = next(s for s in kernel.writers[accumulator.name] if s.kind == "init")
    predicates = tuple(p for p in update.predicates if not variable_names(p) & inner)
    outside = replace(update, inames=update.inames - inner, predicates=predicates)
    start = replace(
        outside, id=fresh(f"{update.id}_init"), lhs=own, rhs=first.rhs, kind="init", operation=None
    )
    taking = replace(outside, id=fresh(f"{update.id}_part"), rhs=own)
    return _Partial(inner, temporary, start, replace(update, lhs=own), taking)
