"""Which barriers of the text stand between two of its lines, in which order of execution.

Two executions of lines ``a`` and ``b``, the first of them earlier, either lie in
one iteration of all the loops around both, or first differ in the iteration of
one of these loops.  Each of these *orders* is cut where a barrier is certain to
be executed in between.  That is seen from the tree alone: a barrier among the
nodes behind ``a``, or before ``b``, on the way out to the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopkit.codegen.c.tree import Block, For
from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.forms import constant, variable
from loopkit.codegen.proof.spaces import copy_of, equal, less
from loopkit.codegen.proof.tree import Group, Leaf

Step = tuple[Group, int]


@dataclass(frozen=True)
class Order:
    """One way in which an execution of ``first`` comes before one of ``second``.

    ``same`` are loops in whose iteration both are; ``carried`` the loop whose
    iteration is later for ``second``.  ``cut`` says which threads a barrier in
    between orders for certain: ``"block"``, ``"warp"`` or None.  With ``adjacent``,
    all but neighbouring iterations of the carried loop are cut by the block's
    barriers.
    """

    first: Leaf
    second: Leaf
    same: tuple[For, ...]
    carried: For | None
    cut: str | None
    adjacent: bool = False

    def conditions(self, first: int, second: int) -> list[Condition]:
        """The order as constraints on copies of names, by their numbers."""
        found = [
            equal(variable(copy_of(loop.name, first)), variable(copy_of(loop.name, second)))
            for loop in self.same
        ]
        if self.carried is not None:
            before = variable(copy_of(self.carried.name, first))
            after = variable(copy_of(self.carried.name, second))
            if self.adjacent:
                found.append(equal(after, before.plus(constant(self.carried.step))))
            else:
                found.append(less(before, after))
        return found


def route(leaf: Leaf) -> list[Step]:
    """The groups around a leaf, outermost first, each with the position of what leads on."""
    steps: list[Step] = []
    index, group = leaf.index, leaf.parent
    while True:
        steps.append((group, index))
        if group.parent is None:
            return steps[::-1]
        index, group = group.index, group.parent


def orders(first: Leaf, second: Leaf) -> Iterator[Order]:
    """All ways in which ``first`` may come before ``second``."""
    one, two = route(first), route(second)
    depth = 0
    while depth + 1 < min(len(one), len(two)) and one[depth] == two[depth]:
        depth += 1
    # `one[depth]` and `two[depth]` lie in one group, at the same position only for one leaf.
    same: tuple[For, ...] = ()
    for level, (group, _) in enumerate(one[: depth + 1]):
        if isinstance(group.node, For):
            cut = _strongest(_behind(one, level) + _ahead(two, level))
            inside = _strongest(group.children)
            yield Order(first, second, same, group.node, cut, inside == "block")
            same = (*same, group.node)
    if first is second:
        yield Order(first, second, same, None, None)
    elif one[depth][1] < two[depth][1]:
        between = one[depth][0].children[one[depth][1] + 1 : two[depth][1]]
        cut = _strongest(_behind(one, depth + 1) + between + _ahead(two, depth + 1))
        yield Order(first, second, same, None, cut)


def _behind(steps: list[Step], level: int) -> list[Group | Leaf]:
    """The nodes that are passed after a leaf before a group at ``level`` is left."""
    return [c for group, i in steps[level:] for c in group.children[i + 1 :]]


def _ahead(steps: list[Step], level: int) -> list[Group | Leaf]:
    """The nodes that are passed before a leaf once a group at ``level`` is entered."""
    return [c for group, i in steps[level:] for c in group.children[:i]]


def _strongest(nodes: list[Group | Leaf]) -> str | None:
    """The barrier that whoever passes some nodes is certain to execute."""
    found = set()
    for node in nodes:
        if isinstance(node, Leaf):
            found.add(node.barrier)
        elif isinstance(node.node, Block):
            found.add(_strongest(node.children))
    return next((scope for scope in ("block", "warp") if scope in found), None)
