"""Loop fusion and fission, and the addition and removal of loops around statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, takewhile

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, NothingToDoError
from loopkit._expression import variable_names
from loopkit._guarded import conjuncts
from loopkit._kernel import Kernel, Statement
from loopkit._match import matching, read_names
from loopkit._relations import grouped
from loopkit._rules import expand_in
from loopkit._tags import GroupAxis, LocalAxis
from loopkit._transform import transform
from loopkit._tree import (
    Entry,
    Key,
    LaunchBarrier,
    Loop,
    Node,
    Path,
    Tree,
    build,
    entries_of,
    statements_in,
)
from loopkit.transforms._common import check_is_loop, inames_in, with_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import settled_tree
from loopkit.transforms._placement import span
from loopkit.transforms.duplicate import chosen_statements
from loopkit.transforms.tag import check_clashes


@transform
def fuse_loops(
    kernel: Kernel, inames: kind.Names, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Fuse adjacent loops over the same iname.

    Before: for i: S(i)  and then  for i: T(i)      After: for i: (S(i); T(i))

    Statements between them are moved in front of the loop if a later loop needs them, and behind it
    otherwise.  Loops over inames of several names need one name first: :func:`rename_inames`.

    :arg inames: whose loops, outermost first; those that are one already stay so.
    :arg within: a match string: only loops around some of these statements.
    :raises IllegalTransformError: where no two such loops stand in one place, or an iteration
        would read what a later one writes.
    """
    new = kernel
    names = _loops(kernel, inames)
    for iname in names:
        new = with_fused_loops(new, iname, chosen_statements(new, [iname], within))
    if new is kernel:
        shown = " or ".join(f"'{i}'" for i in names)
        raise IllegalTransformError(
            f"no two loops over {shown} are in the same place",
            instead="loops can be fused inside the same loops and the same launch: "
            "fuse those around them first, or remove_barrier between them",
        )
    return Change(new)


@transform
def fission(
    kernel: Kernel, inames: kind.Names, within: kind.Within, *, unchecked: bool = False
) -> Change:
    """Distribute loops: the statements that match ``within`` get separate loops.

    Before: for i: (S(i); T(i))
    After (``"i", "id:T"``): for i: S(i)  and then  for i: T(i)

    The loops keep their inames; :func:`duplicate_inames` gives others.  Loops inside of a cut one
    are cut, too.  An accumulator that is carried across the cut gets an axis; a temporary of the
    person's own needs ``privatize_temporaries_with_inames`` first.

    :arg inames: the loops to cut.
    :arg within: a match string.
    :raises IllegalTransformError: where no such loop holds both what matches and what does not,
        or the new order of statements would change a result.
    """
    names = _loops(kernel, inames)
    new = kernel.with_(tree=_parted(kernel.tree, frozenset(names), matching(kernel, within)))
    if new.tree == kernel.tree:
        shown = " or ".join(f"'{i}'" for i in names)
        raise IllegalTransformError(
            f"no loop over {shown} holds both statements that match '{within}' and others"
        )
    return settled(kernel, Change(new))


def _loops(kernel: Kernel, inames: str | Iterable[str]) -> tuple[str, ...]:
    """The inames of loops that are given, one at least."""
    names = inames_in(kernel, inames, "inames")
    for iname in names:
        check_is_loop(kernel, iname)
    return names


def _parted(tree: Tree, inames: Collection[str], ids: Collection[str]) -> Tree:
    """The tree with the loops over ``inames``, and all inside, cut between ``ids`` and the rest.

    A grid-wide barrier ends up between two parts, or inside of one.
    """
    entries: list[Entry] = []
    barriers: list[Entry] = []
    numbers: dict[tuple[Key, int], int] = {}
    around: Path = ()
    is_of: bool | None = None
    part = 0

    def placed(path: Path) -> Path:
        outer = tuple(takewhile(lambda key: key[0] not in inames, path))
        inner = path[len(outer) :]
        return (*outer, *((k[0], numbers.setdefault((k, part), len(numbers))) for k in inner))

    for leaf, path in entries_of(tree):
        outer = tuple(takewhile(lambda key: key[0] not in inames, path))
        is_first = path[: len(outer) + 1] != around
        if is_first:
            around, is_of = path[: len(outer) + 1], None
        is_cut = isinstance(leaf, str) and is_of is (leaf not in ids)
        if is_first or isinstance(leaf, str):
            entries += [(b, outer if is_cut else placed(p)) for b, p in barriers]
            barriers = []
        part += is_cut
        if isinstance(leaf, str):
            is_of = leaf in ids
            entries.append((leaf, placed(path)))
        else:
            barriers.append((leaf, path))
    return build([*entries, *((b, placed(p)) for b, p in barriers)])


def with_fused_loops(kernel: Kernel, iname: str, ids: Collection[str]) -> Kernel:
    """The kernel with one loop over ``iname`` in each place where there are several, one of them
    around ``ids``; ``kernel`` itself where there is no such place."""

    def visit(nodes: Tree) -> Tree:
        inner = [Loop(n.iname, visit(n.body)) if isinstance(n, Loop) else n for n in nodes]
        launches = groupby(inner, lambda n: isinstance(n, LaunchBarrier))
        return tuple(
            node
            for is_barrier, group in launches
            for node in (group if is_barrier else _fused(kernel, list(group), iname, ids))
        )

    tree = visit(kernel.tree)
    return kernel if tree == kernel.tree else kernel.with_(tree=tree)


def fused_where_legal(change: Change, iname: str) -> Change:
    """A change, and the wish that loops over ``iname`` which it brought together are one."""
    ids = frozenset(m.new for m in change.instances)
    wish = partial(with_fused_loops, iname=iname, ids=ids)
    return replace(change, wishes=(*change.wishes, wish))


def _fused(
    kernel: Kernel, nodes: Sequence[Node], iname: str, ids: Collection[str]
) -> Sequence[Node]:
    """The nodes of one place, with one loop over ``iname`` if any of ``ids`` is in one."""
    alike = [n for n, node in enumerate(nodes) if isinstance(node, Loop) and node.iname == iname]
    if len(alike) < 2 or not any(id_ in ids for n in alike for id_ in statements_in(nodes[n])):
        return nodes
    first, last = alike[0], alike[-1]
    body: list[Node] = []
    ahead: list[Node] = []
    behind: list[Node] = []
    for number in range(last, first - 1, -1):
        node = nodes[number]
        if isinstance(node, Loop) and number in alike:
            body[:0] = node.body
        elif _needs(kernel, [*body, *ahead], node):
            ahead.insert(0, node)
        else:
            behind.insert(0, node)
    return [*nodes[:first], *ahead, Loop(iname, tuple(body)), *behind, *nodes[last + 1 :]]


def _needs(kernel: Kernel, later: Sequence[Node], node: Node) -> bool:
    """Whether some later node may touch what ``node`` writes, or write what it touches."""
    wrote, touched = _names(kernel, [node])
    writes, touches = _names(kernel, later)
    return not (wrote.isdisjoint(touches) and touched.isdisjoint(writes))


def _names(kernel: Kernel, nodes: Sequence[Node]) -> tuple[set[str], set[str]]:
    """What the statements in some nodes write, and all names that they and their bounds use."""
    statements = [kernel.statement_by_id[id_] for id_ in statements_in(tuple(nodes))]
    written = {s.written for s in statements}
    return written, written.union(*(read_names(kernel, s) for s in statements))


@transform
def add_inames_to_insn(
    kernel: Kernel, inames: kind.Names, insn_match: kind.Within, *, unchecked: bool = False
) -> Change:
    """Put statements inside inames that they do not use: they run once for each value.

    Before: t = x[0]  and then  for i: y[i] = t*a[i]
    After (``"i", "writes:t"``): for i: (t = x[0]; y[i] = t*a[i])

    The repetition must not change a result: the statements are no updates, and each execution
    stores the same value.  A new loop that is adjacent to one over the same iname is fused with it
    where that is legal.

    :arg inames: inames that exist, with those that their bounds depend on.
    :arg insn_match: a match string.
    :raises IllegalTransformError: where the statements are inside of them already, or of others on
        the same axis, or what they do more often could be seen.
    """
    wanted = inames_in(kernel, inames, "inames")
    ids = matching(kernel, insn_match)
    added = {s.id: frozenset(wanted) - s.inames for s in kernel.statements if s.id in ids}
    if not any(added.values()):
        shown = ", ".join(f"'{i}'" for i in wanted)
        raise NothingToDoError(f"what matches '{insn_match}' is inside of {shown} already")
    change = _inside(kernel, {id_: more for id_, more in added.items() if more})
    for iname in wanted:
        tag = kernel.iname_tags.get(iname)
        if isinstance(tag, (GroupAxis, LocalAxis)):
            check_clashes(change.kernel, iname, tag, [i for i, t in kernel.tags if t == tag])
    return change


@transform
def remove_inames_from_insn(
    kernel: Kernel, inames: kind.Names, insn_match: kind.Within, *, unchecked: bool = False
) -> Change:
    """Move statements out of loops whose inames they do not use: they run once for all values.

    Before: for i: (t = x[0]; y[i] = t*a[i])
    After (``"i", "writes:t"``): t = x[0]  and then  for i: y[i] = t*a[i]

    A statement is moved in front of the loop, or behind it if it accesses data of statements before
    it in the loop.  If the loop may have no iterations, the statement gets a guard.

    :arg inames: inames that are around all the statements; ``"i, j"`` or a sequence.
    :arg insn_match: a match string.
    :raises IllegalTransformError: where a statement is not inside of one, needs it for its text or
        the bounds of its other inames, or must run for each value.
    """
    wanted = frozenset(inames_in(kernel, inames, "inames"))
    ids = matching(kernel, insn_match)
    changed = {s.id: _without(kernel, s, wanted) for s in kernel.statements if s.id in ids}
    entries = entries_of(kernel.tree)
    behind = [id_ for id_ in changed if _stands_behind(kernel, id_, wanted, ids)]
    for id_ in (*(i for i in changed if i not in behind), *reversed(behind)):
        _hoist(entries, id_, wanted, id_ in behind)
    new = settled_tree(with_statements(kernel, changed).with_(tree=build(entries)))
    maps = tuple(InstanceMap(id_, id_, every=wanted) for id_ in changed)
    return settled(kernel, Change(new, maps))


def _without(kernel: Kernel, statement: Statement, gone: frozenset[str]) -> Statement:
    """A statement that is inside fewer inames, and runs where it did for some value of these."""
    id_, kept = statement.id, statement.inames - gone
    for iname in sorted(gone):
        if iname not in statement.inames:
            raise IllegalTransformError(f"'{id_}' is not inside of '{iname}'")
        rules = kernel.rule_by_name
        for expression in statement.expressions:
            if iname in variable_names(expand_in(expression, rules)):
                raise IllegalTransformError(
                    f"'{id_}' uses '{iname}', and computes something else for each value",
                    instead=f"duplicate_inames('{iname}', 'id:{id_}') gives it a separate loop",
                )
        inner = [i for i in sorted(kept) if iname in kernel.parents_of(i)]
        if inner:
            raise IllegalTransformError(
                f"'{id_}' cannot be outside of '{iname}': the bounds of '{inner[0]}' depend on it"
            )
    some = _sets.project_out(kernel.domain_of(statement.inames), sorted(gone))
    context = kernel.domain_of(kept) & kernel.assumptions.set
    if context.is_subset(some):
        return replace(statement, inames=kept)
    if _sets.involved_names(some) - kept - {*kernel.sizes}:
        raise IllegalTransformError(
            f"data decide whether '{id_}' runs for some {' and '.join(sorted(gone))}"
        )
    condition = _sets.conditions(some.gist(context))
    predicates = (*conjuncts(condition), *statement.predicates)
    return replace(statement, inames=kept, predicates=predicates)


def _stands_behind(kernel: Kernel, id_: str, gone: frozenset[str], ids: Collection[str]) -> bool:
    """Whether a statement touches what others do above it, inside a loop that it leaves."""
    statement = kernel.statement_by_id[id_]
    for above in kernel.statements[: kernel.statements.index(statement)]:
        if above.id in ids or not above.inames & gone:
            continue
        mine, its = read_names(kernel, statement), read_names(kernel, above)
        if above.written in mine | {statement.written} or statement.written in its:
            return True
    return False


def _hoist(entries: list[Entry], id_: str, gone: frozenset[str], behind: bool) -> None:
    """Put a statement beside the outermost of the loops that it leaves."""
    at = next(number for number, (leaf, _) in enumerate(entries) if leaf == id_)
    path = entries[at][1]
    outer = tuple(takewhile(lambda key: key[0] not in gone, path))
    if outer == path:
        return
    first, last = span(entries, {id_}, outer)
    del entries[at]
    entries.insert(last if behind else first, (id_, tuple(k for k in path if k[0] not in gone)))


@transform
def add_inames_for_unused_hw_axes(
    kernel: Kernel, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Put statements inside the parallel inames of hardware axes that only other statements use.

    Before: t = x[0]  and  y[threadIdx.x] = t
    After: t = x[0] for each threadIdx.x  and  y[threadIdx.x] = t

    That concerns statements whose results stay in temporaries.  Others run once along an axis
    on which they have no iname, as they should.

    :arg within: a match string: only these statements.
    :raises IllegalTransformError: where every such statement is inside an iname of each axis, or
        several inames are on an axis that one lacks.
    """
    ids = matching(kernel, within)
    on_axis = grouped((t, i) for i, t in kernel.tags if isinstance(t, (GroupAxis, LocalAxis)))
    added: dict[str, frozenset[str]] = {}
    for statement in kernel.statements:
        stays = statement.written in kernel.temporary_by_name and statement.operation is None
        if statement.id not in ids or not stays:
            continue
        mine = {kernel.iname_tags.get(i) for i in statement.inames}
        lacking = [(tag, found) for tag, found in on_axis.items() if tag not in mine]
        for tag, found in lacking:
            if len(found) > 1:
                raise IllegalTransformError(
                    f"'{statement.id}' has no iname on axis {tag}, and {len(found)} are there: "
                    f"{', '.join(found)}",
                    instead=f"say which: add_inames_to_insn('{found[0]}', 'id:{statement.id}')",
                )
        if lacking:
            added[statement.id] = frozenset(found[0] for _, found in lacking)
    if not added:
        raise NothingToDoError(
            "no statement that sets a temporary lacks an iname on an axis that others use"
        )
    return _inside(kernel, added)


def _inside(kernel: Kernel, added: Mapping[str, frozenset[str]]) -> Change:
    """Statements, by their ids, inside more inames."""
    changed = {}
    for id_, more in added.items():
        statement = kernel.statement_by_id[id_]
        inames = statement.inames | more
        for iname in sorted(more):
            missing = sorted(kernel.parents_of(iname) - inames)
            if missing:
                raise IllegalTransformError(
                    f"'{id_}' cannot be inside '{iname}' alone: the bounds of that depend on "
                    f"'{missing[0]}'",
                    instead=f"add_inames_to_insn('{missing[0]}, {iname}', 'id:{id_}')",
                )
        changed[id_] = replace(statement, inames=inames)
    new = settled_tree(with_statements(kernel, changed))
    change = settled(kernel, Change(new, tuple(InstanceMap(id_, id_) for id_ in added)))
    for iname in sorted(frozenset().union(*added.values())):
        change = fused_where_legal(change, iname)
    return change
