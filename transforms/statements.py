"""Statements: their tags, ids and dependencies, and the barriers that end launches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from loopkit import _arguments as kind
from loopkit._change import Change, InstanceMap
from loopkit._device_functions import called_by, tag_of
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    NothingToDoError,
    UnknownNameError,
    check_known,
)
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._launches import broken_launches
from loopkit._match import Match, matching
from loopkit._relations import reachable
from loopkit._spelling import check_tags
from loopkit._transform import transform
from loopkit._tree import Entry, LaunchBarrier, Path, build, common_prefix, entries_of, path_inames
from loopkit.transforms._common import inames_in, new_name, with_statements, without_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._placement import span
from loopkit.transforms.arguments import Renaming, renamed


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
    """End a launch between two statements by a barrier for all blocks.

    Before: for i: A(i)        After: for i: A(i)
            for j: B(j)               ==== launch 2
                                      for j: B(j)

    All instances of statements before the barrier, in all blocks, come before all instances after
    it.  It is inserted after the last statement of ``insn_before``, or, without one, in front of
    the first of ``insn_after``, and of the reductions that it takes.  Loops that stay around the
    barrier run launches in each iteration; their bounds depend on sizes alone.  Private and shared
    arrays do not outlive a launch.

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
    if end is not None:  # to the end of the loops that both are in
        at = min(limit, span(entries, {entries[end][0]}, path)[1] + 1)
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
    """Merge two launches: the opposite of :func:`add_barrier`.

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
    """Statements, and those that compute the reductions which they use."""
    sums = {t.name for t in kernel.temporaries if t.accumulates is not None}

    def makers(id_: str) -> list[str]:
        taken = sums & {name for name, _ in kernel.statement_by_id[id_].reads}
        return [w.id for name in taken for w in kernel.writers.get(name, ())]

    return reachable(ids, makers)


def _gap(
    entries: Sequence[Entry], first: Collection[str], then: Collection[str]
) -> tuple[int | None, int | None]:
    """The positions of the last statement that comes before, and of the first that follows."""
    ends = [number for number, (leaf, _) in enumerate(entries) if leaf in first]
    starts = [number for number, (leaf, _) in enumerate(entries) if leaf in then]
    if ends and starts and ends[-1] >= starts[0]:
        raise IllegalTransformError(
            f"'{entries[starts[0]][0]}' comes before '{entries[ends[-1]][0]}', or is the same: no "
            "barrier can come after the second and before the first",
            instead="give insn_before statements that come before those of insn_after",
        )
    return (ends[-1] if ends else None), (starts[0] if starts else None)


def _around(
    entries: Sequence[Entry], end: int | None, start: int | None, inames: tuple[str, ...] | None
) -> Path:
    """The loops that stay around a barrier between two positions."""
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
            f"no loops over {', '.join(inames)} are around both sides, outermost",
            instead="loops around them, outermost first: "
            + "; ".join(", ".join(path_inames(p)) or "none" for p in beside),
        )
    return path


@transform
def tag_instructions(
    kernel: Kernel, new_tag: kind.Text, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Add a tag to statements, for match strings.

    Before: S(i)        After ``tag_instructions("load", "id:S")``: S(i), which ``"tag:load"`` finds

    :arg new_tag: the tag, of letters, digits and ``. $ - _``.
    :arg within: a match string: only these statements.
    :raises IllegalTransformError: where no statement matches, or all that do have the tag.
    """
    check_tags((new_tag,))
    ids = matching(kernel, within)
    chosen = [s for s in kernel.statements if s.id in ids and new_tag not in s.tags]
    if not chosen or new_tag is None:
        which = f"that match '{within}' " if within is not None else ""
        raise NothingToDoError(f"all statements {which}have the tag '{new_tag}' already")
    tagged = {s.id: replace(s, tags=s.tags | {new_tag}) for s in chosen}
    return Change(with_statements(kernel, tagged))


@transform
def inline_callable_kernel(
    kernel: Kernel, function_name: kind.Name, *, unchecked: bool = False
) -> Change:
    """Remove the tags that mark statements as inlined from a called kernel.

    Before: S(i), tagged ``call.f``        After (``"f"``): S(i), without the tag

    Calls are inlined when a kernel is made (:func:`loopkit.make_function`); only the tag, and the
    remark in the nest, show the origin of the statements.

    :arg function_name: the name of the function.
    :raises UnknownNameError: where nothing comes from a call of it.
    """
    tag = tag_of(function_name)
    found = {s.id: replace(s, tags=s.tags - {tag}) for s in kernel.statements if tag in s.tags}
    if not found:
        known = sorted({name for s in kernel.statements for name in called_by(s.tags)})
        raise UnknownNameError("called function", function_name, known)
    return Change(with_statements(kernel, found))


@transform
def remove_instructions(kernel: Kernel, insn_ids: kind.Names, *, unchecked: bool = False) -> Change:
    """Remove statements whose results are unused.

    Before: t = 2*a[i]  and then  b[i] = a[i]        After (``"t"``): b[i] = a[i]

    What depended on a statement that goes depends on what that depended on.  Temporaries that
    nothing touches any more go, too.

    :arg insn_ids: ids of statements, ``"s, t"`` or a collection.
    :raises IllegalTransformError: where somebody needs what they write, or it bounds a loop.
    """
    gone = frozenset(kind.names_in(insn_ids))
    if not gone:
        raise InvalidArgumentError("insn_ids names no statement")
    barriers = {leaf.id for leaf, _ in entries_of(kernel.tree) if isinstance(leaf, LaunchBarrier)}
    for id_ in sorted(gone):
        if id_ in barriers:
            raise InvalidArgumentError(f"'{id_}' is a barrier", instead="remove_barrier takes it")
        kernel.statement(id_)
    return Change(_without(kernel, gone))


@transform
def replace_instruction_ids(
    kernel: Kernel, replacements: kind.NewIds, *, unchecked: bool = False
) -> Change:
    """Rename statements, and update the dependencies on them.

    Before: S(i)  and then  T(i), which depends on S
    After (``{"S": "load"}``): load(i)  and then  T(i), which depends on load

    :arg replacements: new ids by old ones, each a name or a sequence of one; they must be free.
    :raises IllegalTransformError: where a statement has that id already.
    """
    ids: dict[str, str] = {}
    for old, given in replacements.items():
        kernel.statement(old)
        new, *more = kind.names_in(given) or (old,)
        if more:
            raise InvalidArgumentError(f"'{old}' is one statement, which has one id")
        if old == new:
            raise IllegalTransformError(f"'{old}' would keep its id")
        ids[old] = new_name(kernel, new, new, ids.values())
    if not ids:
        raise InvalidArgumentError("replacements names no statement")
    made = renamed(kernel, Renaming({}, ids))
    return Change(made, tuple(InstanceMap(new, old) for old, new in ids.items()))


def _without(kernel: Kernel, gone: Collection[str]) -> Kernel:
    """The kernel without some statements, and without temporaries that only they touched."""
    left = [s for s in kernel.statements if s.id not in gone]
    lost = frozenset().union(*(kernel.statement_by_id[id_].names for id_ in gone))
    used = frozenset().union(*(s.names for s in left), *(d.parameters for d in kernel.domains))
    used = used.union(*(variable_names(rule.expression) for rule in kernel.substitutions))
    for domain in kernel.domains:
        for name in sorted(domain.parameters & kernel.temporary_by_name.keys()):
            writers = kernel.writers.get(name, ())
            if writers and all(w.id in gone for w in writers):
                raise IllegalTransformError(
                    f"'{writers[0].id}' writes '{name}', which bounds the loop over "
                    f"'{domain.inames[0]}'"
                )
    return without_statements(kernel, gone, lost - used)


@transform
def add_dependency(
    kernel: Kernel, insn_match: kind.Within, depends_on: kind.Within, *, unchecked: bool = False
) -> Change:
    """Move statements after others that they are declared to depend on.

    Before: S(i)  and then  T(i)      After (``"id:S", "id:T"``): T(i)  and then  S(i)

    A statement moves behind the last one that it is to come behind, and out of the loops that
    it does not share with that; its own loops are cut where they hold others.

    :arg insn_match: a match string, or the id of a statement or of a barrier of all blocks.
    :arg depends_on: the same, of what they come behind.
    :raises IllegalTransformError: where they depend on each other, all is so already, or the new
        order would change a result.
    """
    later, earlier = (_ids(kernel, given) for given in (insn_match, depends_on))
    both = sorted(later & earlier)
    if both:
        raise IllegalTransformError(f"'{both[0]}' cannot come after itself")
    old = entries = entries_of(kernel.tree)
    added = {}
    for id_ in reversed(_leaves(entries)):
        if id_ not in later:
            continue
        circle = [e for e in sorted(earlier) if id_ in _behind(kernel, e)]
        if circle:
            raise IllegalTransformError(
                f"'{circle[0]}' depends on '{id_}', so '{id_}' cannot come after it"
            )
        entries = _moved(entries, id_, earlier)
        if id_ in kernel.statement_by_id:
            statement = kernel.statement_by_id[id_]
            ids = earlier & kernel.statement_by_id.keys()
            added[id_] = replace(statement, depends_on=statement.depends_on | ids)
    new = with_statements(kernel, added)
    if new == kernel and entries == old:
        raise NothingToDoError("these statements depend on those already")
    return settled(kernel, Change(new.with_(tree=build(entries))))


def _ids(kernel: Kernel, given: str | Match | None) -> frozenset[str]:
    """The statements of a match string, or what has an id, which may end a launch."""
    id_ = given.removeprefix("id:").strip() if isinstance(given, str) else ""
    if id_ in _leaves(entries_of(kernel.tree)):
        return frozenset([id_])
    return matching(kernel, given)


def _leaves(entries: Iterable[Entry]) -> list[str]:
    return [leaf if isinstance(leaf, str) else leaf.id for leaf, _ in entries]


def _behind(kernel: Kernel, id_: str) -> frozenset[str]:
    """What a statement depends on, directly or through others, and itself."""
    known = kernel.statement_by_id
    return reachable([id_], lambda i: known[i].depends_on if i in known else ())


def _moved(entries: list[Entry], id_: str, earlier: Collection[str]) -> list[Entry]:
    """The entries with one statement behind all of ``earlier``, where it is not yet."""
    leaves = _leaves(entries)
    at, last = leaves.index(id_), max(n for n, leaf in enumerate(leaves) if leaf in earlier)
    if at > last:
        return entries
    # The loops of the other that it does not share stay whole.
    shared = common_prefix([entries[at][1], entries[last][1]])
    end = span(entries, {entries[last][0]}, shared)[1] + 1
    return [*entries[:at], *entries[at + 1 : end], entries[at], *entries[end:]]
