"""Statements: their tags, which of them there are, and what they come behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from loopkit import _arguments as kind
from loopkit._change import Change, InstanceMap
from loopkit._device_functions import called_by, tag_of
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    NothingToDoError,
    UnknownNameError,
)
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._match import Match, matching
from loopkit._relations import reachable
from loopkit._spelling import check_tags
from loopkit._transform import transform
from loopkit._tree import Entry, LaunchBarrier, build, common_prefix, entries_of
from loopkit.transforms._common import new_name, with_statements, without_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._renaming import Renaming, renamed


@transform
def tag_instructions(
    kernel: Kernel, new_tag: kind.Text, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Give statements a tag, by which match strings find them.

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
    """Make the statements that stand for calls of a kernel the caller's own.

    Before: S(i), tagged ``call.f``        After (``"f"``): S(i), without the tag

    What a call says stands in its place from the start (:func:`loopkit.make_function`): the tag
    alone, and the remark in the nest, say where it came from.

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
    """Take statements away whose results nobody needs.

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
    """Give statements other ids, which what depends on them uses, too.

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
    """Have statements come behind others; those that stand in front of them move.

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
        raise IllegalTransformError(f"'{both[0]}' cannot come behind itself")
    old = entries = entries_of(kernel.tree)
    added = {}
    for id_ in reversed(_leaves(entries)):
        if id_ not in later:
            continue
        circle = [e for e in sorted(earlier) if id_ in _behind(kernel, e)]
        if circle:
            raise IllegalTransformError(
                f"'{circle[0]}' depends on '{id_}', which cannot come behind it, too"
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
    path = entries[at][1]
    shared = len(common_prefix([path, entries[last][1]]))
    # The loops of the other that it does not share stay whole.
    around = entries[last][1][: shared + 1]
    end = last + 1
    while end < len(entries) and len(around) > shared and entries[end][1][: shared + 1] == around:
        end += 1
    return [*entries[:at], *entries[at + 1 : end], entries[at], *entries[end:]]
