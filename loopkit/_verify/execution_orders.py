"""Orders in which instances may run, and when an instance runs in each of them."""

from __future__ import annotations

from dataclasses import dataclass

from loopkit._kernel import Kernel
from loopkit._tags import InstructionParallel
from loopkit._tree import Loop, Tree


@dataclass(frozen=True)
class Order:
    """An order of execution: block after block or statement after statement, and which way.

    With ``at_once``, the threads that run a statement at the same time all read
    before one of them writes.
    """

    by_block: bool = False
    backwards: bool = False
    at_once: bool = False


TREE = Order()
ORDERS = (
    TREE,
    Order(backwards=True),
    Order(by_block=True),
    Order(by_block=True, backwards=True),
    Order(at_once=True),
)


def schedule_positions(kernel: Kernel) -> dict[str, list[int | str]]:
    """Positions among neighbours and inames of loops, from the tree's root to each statement."""
    found: dict[str, list[int | str]] = {}

    def visit(nodes: Tree, prefix: list[int | str]) -> None:
        for position, node in enumerate(nodes):
            if not isinstance(node, Loop):
                found[node] = [*prefix, position]
            elif isinstance(kernel.iname_tags.get(node.iname), InstructionParallel):
                visit(node.body, [*prefix, position])
            else:
                visit(node.body, [*prefix, position, node.iname])

    visit(kernel.tree, [])
    return found
