"""Loops made one, and cut in two."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel
from loopkit._match import matching, read_names
from loopkit._transform import transform
from loopkit._tree import LaunchBarrier, Loop, Node, Tree, statements_in
from loopkit.transforms._common import check_is_loop, inames_in
from loopkit.transforms._expand import settled
from loopkit.transforms.duplicate import chosen_statements


@transform
def fuse_loops(
    kernel: Kernel, inames: kind.Names, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Make one loop of those over the same iname that stand in one place.

    Before: for i: S(i)  and then  for i: T(i)      After: for i: (S(i); T(i))

    What stands between them goes in front of the loop where a later one needs it, and behind it
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
            f"no two loops over {shown} stand in one place",
            instead="loops can be fused inside the same loops and the same launch: "
            "fuse those around them first, or remove_barrier between them",
        )
    return Change(new)


@transform
def fission(
    kernel: Kernel, inames: kind.Names, within: kind.Within, *, unchecked: bool = False
) -> Change:
    """Cut loops in two: the statements that match ``within`` get loops of their own.

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


def _parted(nodes: Tree, inames: frozenset[str], ids: Collection[str]) -> Tree:
    """The nodes, with loops over ``inames`` cut wherever ``ids`` meet others."""
    result: list[Node] = []
    for node in nodes:
        if not isinstance(node, Loop):
            result.append(node)
        elif node.iname in inames:
            result += _runs(node, ids)
        else:
            result.append(Loop(node.iname, _parted(node.body, inames, ids)))
    return tuple(result)


def _runs(node: Node, ids: Collection[str]) -> list[Node]:
    """A node in parts that hold statements of ``ids`` alone, or none of them, by turns.

    A barrier for all blocks comes to stand between two parts, or stays inside of one.
    """
    if not isinstance(node, Loop):
        return [node]
    result: list[Node] = []
    run: list[Node] = []
    barriers: list[Node] = []
    for inner in (part for child in node.body for part in _runs(child, ids)):
        if isinstance(inner, LaunchBarrier):
            barriers.append(inner)
            continue
        if run and _is_of(run[0], ids) != _is_of(inner, ids):
            result += [Loop(node.iname, tuple(run)), *barriers]
            run, barriers = [], []
        run += [*barriers, inner]
        barriers = []
    return [*result, Loop(node.iname, (*run, *barriers))]


def _is_of(node: Node, ids: Collection[str]) -> bool:
    """Whether the first statement in a node is one of ``ids``."""
    return next(statements_in(node), None) in ids


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
