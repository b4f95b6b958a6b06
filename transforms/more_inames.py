"""Statements inside more inames than their text needs, and inside fewer again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

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
from loopkit._tree import Loop, Node, Tree, statements_in
from loopkit.transforms._common import inames_in, with_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import settled_tree
from loopkit.transforms.fusion import fused_where_legal
from loopkit.transforms.tag import check_clashes


@transform
def add_inames_to_insn(
    kernel: Kernel, inames: kind.Names, insn_match: kind.Within, *, unchecked: bool = False
) -> Change:
    """Put statements inside inames that they do not need: they run once for each value.

    Before: t = x[0]  and then  for i: y[i] = t*a[i]
    After (``"i", "writes:t"``): for i: (t = x[0]; y[i] = t*a[i])

    What runs more often must not show: it is no update, and each run stores the same.  A loop
    that stands beside one over the same iname becomes part of that where it is legal.

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
    """Take statements out of inames that they do not use: they run once for all values.

    Before: for i: (t = x[0]; y[i] = t*a[i])
    After (``"i", "writes:t"``): t = x[0]  and then  for i: y[i] = t*a[i]

    A statement comes to stand in front of the loop, or behind it where it touches what stands
    above it in there.  What the loop would run never is not run: where that is not known, a
    condition says so.

    :arg inames: inames that are around all the statements; ``"i, j"`` or a sequence.
    :arg insn_match: a match string.
    :raises IllegalTransformError: where a statement is not inside of one, needs it for its text or
        the bounds of its other inames, or must run for each value.
    """
    wanted = frozenset(inames_in(kernel, inames, "inames"))
    ids = matching(kernel, insn_match)
    changed = {s.id: _without(kernel, s, wanted) for s in kernel.statements if s.id in ids}
    tree = kernel.tree
    behind = [id_ for id_ in changed if _stands_behind(kernel, id_, wanted, ids)]
    for id_ in (*(i for i in changed if i not in behind), *reversed(behind)):
        tree = _hoisted(tree, id_, wanted, id_ in behind)
    new = settled_tree(with_statements(kernel, changed).with_(tree=tree))
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
                    instead=f"duplicate_inames('{iname}', 'id:{id_}') gives it a loop of its own",
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


def _hoisted(nodes: Tree, id_: str, gone: frozenset[str], behind: bool) -> Tree:
    """The tree with a statement beside the outermost of the loops that it leaves."""
    result: list[Node] = []
    for node in nodes:
        if not isinstance(node, Loop) or id_ not in statements_in(node):
            result.append(node)
        elif node.iname in gone:
            alone = _chain(node, id_, gone)
            rest = _left_by((node,), id_)
            result += [*rest, alone] if behind else [alone, *rest]
        else:
            result.append(Loop(node.iname, _hoisted(node.body, id_, gone, behind)))
    return tuple(result)


def _chain(node: Node, id_: str, gone: frozenset[str]) -> Node:
    """A statement inside those of the loops around it that it does not leave."""
    if not isinstance(node, Loop):
        return node
    inner = next(n for n in node.body if id_ in statements_in(n))
    chain = _chain(inner, id_, gone)
    return chain if node.iname in gone else Loop(node.iname, (chain,))


def _left_by(nodes: Tree, id_: str) -> Tree:
    """The nodes without a statement, and without loops that held nothing else."""
    left = (Loop(n.iname, _left_by(n.body, id_)) if isinstance(n, Loop) else n for n in nodes)
    return tuple(n for n in left if n != id_ and not (isinstance(n, Loop) and not n.body))


@transform
def add_inames_for_unused_hw_axes(
    kernel: Kernel, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Put statements inside the parallel inames of the axes that others use, and they do not.

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
