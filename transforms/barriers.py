"""Barriers for all blocks: where one launch ends and the next begins."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    check_known,
)
from loopkit._kernel import Kernel
from loopkit._launches import broken_launches
from loopkit._match import matching
from loopkit._relations import reachable
from loopkit._transform import transform
from loopkit._tree import Entry, LaunchBarrier, Path, build, common_prefix, entries_of, path_inames
from loopkit.transforms._common import inames_in


@transform
def add_barrier(
    kernel: Kernel,
    insn_before: kind.Within = None,
    insn_after: kind.Within = None,
    id_based_on: kind.NewName = None,
    tags: kind.MaybeNames = None,
    synchronization_kind: kind.Text = "global",
    *,
    within_inames: kind.MaybeNames = None,
    unchecked: bool = False,
) -> Change:
    """End a launch between two statements, and begin another one.

    Before: for i: A(i)        After: for i: A(i)
            for j: B(j)               ==== launch 2
                                      for j: B(j)

    All instances of what stands above the barrier, in all blocks, come before all of what
    stands below it.  It stands behind the last statement of ``insn_before``, or, without one, in
    front of the first of ``insn_after``, and of the reductions that it takes.  Loops that stay
    around the barrier run launches in each iteration; their bounds depend on sizes alone.
    Private and shared arrays do not outlive a launch.

    :arg insn_before, insn_after: match strings for what is to come first, and then.
    :arg id_based_on: what the barrier's id begins with, ``gbarrier`` if it is left out.
    :arg tags: tags of the barrier.
    :arg synchronization_kind: ``"global"``; barriers within a block follow from what threads share.
    :arg within_inames: the loops that stay around the barrier, all others are parted; those that
        both sides share, if it is left out.
    :raises IllegalTransformError: where no such place is, or a value would be lost.
    """
    _check_kind(synchronization_kind)
    if insn_before is None and insn_after is None:
        raise InvalidArgumentError(
            "add_barrier needs a statement before or after it",
            instead='for example add_barrier("id:first", "id:second")',
        )
    return Change(with_barrier(kernel, insn_before, insn_after, id_based_on, tags, within_inames))


def with_barrier(
    kernel: Kernel,
    insn_before: kind.Within,
    insn_after: kind.Within,
    id_based_on: kind.NewName,
    tags: kind.MaybeNames,
    within_inames: kind.MaybeNames,
) -> Kernel:
    """The kernel with the barrier of :func:`add_barrier`; nothing is proven."""
    entries = entries_of(kernel.tree)
    first = matching(kernel, insn_before) if insn_before is not None else frozenset()
    then = _with_reductions(kernel, matching(kernel, insn_after)) if insn_after is not None else ()
    end, start = _gap(entries, first, then)
    around = None if within_inames is None else inames_in(kernel, within_inames)
    path = _around(entries, end, start, around)
    at = limit = len(entries) if start is None else start
    if end is not None:
        at = end + 1
        while at < limit and _reaches(entries[at][1], entries[end][1], len(path)):
            at += 1  # to the end of the loops that both are in
    names = frozenset(kind.names_in(tags))
    barrier = LaunchBarrier(kernel.fresh_name(id_based_on or "gbarrier"), names)
    new = kernel.with_(tree=build([*entries[:at], (barrier, path), *entries[at:]]))
    if broken := broken_launches(new):
        raise IllegalTransformError(
            broken, instead="within_inames names the loops that stay around the barrier"
        )
    return new


@transform
def remove_barrier(kernel: Kernel, barrier: kind.Name, *, unchecked: bool = False) -> Change:
    """Make one launch of two: the opposite of :func:`add_barrier`.

    Before: A        After: A
            ==== launch 2       B
            B

    Loops that the barrier has parted stay parted.

    :arg barrier: the barrier's id.
    :raises RaceError: where something in one block waits for what another one does.
    """
    entries = entries_of(kernel.tree)
    ids = [leaf.id for leaf, _ in entries if isinstance(leaf, LaunchBarrier)]
    check_known("barrier", [barrier], ids)
    kept = [e for e in entries if not (isinstance(e[0], LaunchBarrier) and e[0].id == barrier)]
    return Change(kernel.with_(tree=build(kept)))


def _check_kind(synchronization_kind: str | None) -> None:
    if synchronization_kind == "global":
        return
    if synchronization_kind == "local":
        raise IllegalTransformError(
            "barriers within a block are placed where threads share data: there is none to add",
            instead="leave the step out",
        )
    raise InvalidArgumentError(
        f"synchronization_kind is 'global' or 'local', not {synchronization_kind!r}"
    )


def _with_reductions(kernel: Kernel, ids: Collection[str]) -> frozenset[str]:
    """Statements, and those that make the sums which they take."""
    sums = {t.name for t in kernel.temporaries if t.accumulates is not None}

    def makers(id_: str) -> list[str]:
        taken = sums & {name for name, _ in kernel.statement_by_id[id_].reads}
        return [w.id for name in taken for w in kernel.writers.get(name, ())]

    return reachable(ids, makers)


def _gap(
    entries: Sequence[Entry], first: Collection[str], then: Collection[str]
) -> tuple[int | None, int | None]:
    """The place of the last statement that comes first, and of the first that comes then."""
    ends = [number for number, (leaf, _) in enumerate(entries) if leaf in first]
    starts = [number for number, (leaf, _) in enumerate(entries) if leaf in then]
    if ends and starts and ends[-1] >= starts[0]:
        raise IllegalTransformError(
            f"'{entries[starts[0]][0]}' stands above '{entries[ends[-1]][0]}', or is the same: no "
            "barrier stands behind the second and in front of the first",
            instead="name statements of which the first stand above the others",
        )
    return (ends[-1] if ends else None), (starts[0] if starts else None)


def _around(
    entries: Sequence[Entry], end: int | None, start: int | None, inames: tuple[str, ...] | None
) -> Path:
    """The loops that stay around a barrier between two places."""
    if inames is None:
        # Without a name for the other side, what stands beside it.
        before = end if end is not None else (start or 0) - 1
        after = start if start is not None else before + 1
        if before < 0 or after >= len(entries):
            return ()
        return common_prefix([entries[before][1], entries[after][1]])
    beside = [entries[number][1] for number in (end, start) if number is not None]
    path = beside[0][: len(inames)]
    if {*path_inames(path)} != {*inames} or any(p[: len(path)] != path for p in beside):
        raise IllegalTransformError(
            f"no loops over {', '.join(inames)} stand around both sides, outermost",
            instead="loops around them, outermost first: "
            + "; ".join(", ".join(path_inames(p)) or "none" for p in beside),
        )
    return path


def _reaches(path: Path, other: Path, depth: int) -> bool:
    """Whether two statements are in one more loop than ``depth``."""
    return len(path) > depth and path[: depth + 1] == other[: depth + 1]
