"""What forms and conditions are made of: nodes, compared as nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from loopkit._cached import cached_property


class Node:
    """Equal to the nodes of its kind that are made of the same, and to no others.

    Each node's hash is computed once, from those of its parts.
    """

    @property
    def besides(self) -> Hashable:
        """What tells the node from others of its kind beside the nodes inside of it."""
        return None

    @property
    def inside(self) -> tuple[Node, ...]:
        """The nodes that this one is made of."""
        return ()

    @property
    def made_of(self) -> Hashable:
        """Both; nodes that have no order are in a set."""
        return self.besides, self.inside

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self.made_of))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node) or type(self) is not type(other):
            return False
        return self._hash == other._hash and self.made_of == other.made_of

    def __hash__(self) -> int:
        return self._hash


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes in it."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(part.inside)
