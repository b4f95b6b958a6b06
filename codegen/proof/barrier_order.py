"""The barriers that are executed between two lines of the text, for each order of execution.

Two executions of lines ``a`` and ``b``, the first of them earlier, are either in one iteration of
all common loops, or differ first in the iteration of one of these loops. Each of these *orders* is
*cut* if a barrier is certainly executed in between. The tree alone shows this: there is a barrier
in a node after ``a``, or before ``b``, on the way out to the common loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopkit._algebra.polynomials import plus
from loopkit._algebra.terms import number
from loopkit.codegen.c.tree import For
from loopkit.codegen.proof.forms import variable
from loopkit.codegen.proof.proof_conditions import Condition
from loopkit.codegen.proof.spaces import copy_of, equal, less
from loopkit.codegen.proof.text_tree import Barriers, Group, Leaf

Step = tuple[Group, int]


@dataclass(frozen=True)
class Order:
    """One way in which an execution of ``first`` precedes one of ``second``.

    Both are in the same iteration of the loops ``same``, and ``second`` is in a later iteration of
    the loop ``carried``. ``cut`` is the scope of a barrier that is certainly executed in between:
    ``"block"``, ``"warp"`` or None. With ``adjacent``, barriers for the block cut all pairs of
    iterations of the carried loop but neighbouring ones.
    """

    first: Leaf
    second: Leaf
    same: tuple[For, ...]
    carried: For | None
    cut: str | None
    adjacent: bool = False

    def conditions(self, first: int, second: int) -> list[Condition]:
        """The order as constraints on the copies of names of the two instances."""
        found = [
            equal(variable(copy_of(loop.name, first)), variable(copy_of(loop.name, second)))
            for loop in self.same
        ]
        if self.carried is not None:
            before = variable(copy_of(self.carried.name, first))
            after = variable(copy_of(self.carried.name, second))
            if self.adjacent:
                found.append(equal(after, plus(before, number(self.carried.step))))
            else:
                found.append(less(before, after))
        return found


def route(leaf: Leaf) -> list[Step]:
    """The groups around a leaf, outermost first, each with the position of the next child."""
    steps: list[Step] = []
    index, group = leaf.index, leaf.parent
    while True:
        steps.append((group, index))
        if group.parent is None:
            return steps[::-1]
        index, group = group.index, group.parent


def orders(first: Leaf, second: Leaf) -> Iterator[Order]:
    """All orders in which ``first`` may precede ``second``."""
    one, two = route(first), route(second)
    depth = 0
    while depth + 1 < min(len(one), len(two)) and one[depth] == two[depth]:
        depth += 1
    # `one[depth]` and `two[depth]` lie in one group, at the same position only for one leaf.
    same: tuple[For, ...] = ()
    for level, (group, _) in enumerate(one[: depth + 1]):
        if isinstance(group.node, For):
            cut = _strongest(_behind(one, level) + _ahead(two, level))
            inside = _strongest([group.barriers[-1]])
            yield Order(first, second, same, group.node, cut, inside == "block")
            same = (*same, group.node)
    if first is second:
        yield Order(first, second, same, None, None)
    elif one[depth][1] < two[depth][1]:
        begin, end = one[depth][1] + 1, two[depth][1]
        between = _between(one[depth][0], begin, end)
        cut = _strongest([*_behind(one, depth + 1), between, *_ahead(two, depth + 1)])
        yield Order(first, second, same, None, cut)


def _between(group: Group, begin: int, end: int) -> Barriers:
    """The barriers that are certainly executed when control passes some children of a group."""
    before, after = group.barriers[begin], group.barriers[end]
    return after[0] - before[0], after[1] - before[1]


def _behind(steps: list[Step], level: int) -> list[Barriers]:
    """The barriers certainly executed after a leaf, before the group at ``level`` is left."""
    return [_between(group, i + 1, len(group.children)) for group, i in steps[level:]]


def _ahead(steps: list[Step], level: int) -> list[Barriers]:
    """The barriers certainly executed before a leaf, after the group at ``level`` is entered."""
    return [group.barriers[i] for group, i in steps[level:]]


def _strongest(passed: list[Barriers]) -> str | None:
    if any(block for block, _ in passed):
        return "block"
    return "warp" if any(warp for _, warp in passed) else None
