"""Liveness: which computed values reach an output, and on which threads.

A private value that its thread never uses may be undefined: for example a thread without work may
load shared memory that only the threads with work have written. A value that is used in a
subscript is live in any case, since the access must be in bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import islpy as isl

from loopkit._cached import cached_property, memoised
from loopkit._relations import grouped, reachable
from loopkit.codegen.c.tree import Element, expressions, walk
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf


class Liveness:
    """Which arrays are live, and for which threads."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @cached_property
    def used(self) -> frozenset[str]:
        """The arrays whose values reach an output, or determine what executes."""
        leaves = self.subject.leaves
        writers = grouped((name, leaf) for leaf in leaves for name in written_by(leaf))

        def read_by(leaves: Iterable[Leaf]) -> Iterator[str]:
            return (t.array for leaf in leaves for t in leaf.touches if not t.is_write)

        deciding = read_by(leaf for leaf in leaves if not written_by(leaf))
        addressing = (name for leaf in leaves for name in self.addressing(leaf))
        start = (*self.subject.kernel.arg_by_name, *deciding, *addressing)
        return reachable(start, lambda name: read_by(writers.get(name, ())))

    @memoised
    def addressing(self, leaf: Leaf) -> frozenset[str]:
        """The arrays whose values determine which cells a line accesses."""
        parts = (part for expr in expressions(leaf.node) for part in walk(expr))
        elements = (part for part in parts if isinstance(part, Element))
        indices = (index for element in elements for index in element.indices)
        return frozenset().union(*map(self.subject.names.used, indices))

    def is_used(self, leaf: Leaf) -> bool:
        """Whether any output depends on what a line computes."""
        written = written_by(leaf)
        return not written or any(name in self.used for name in written)

    def by_own_thread(self, leaf: Leaf, where: isl.Set, space: Space) -> isl.Set:
        """The given executions of a line whose private result is live in their thread."""
        written = written_by(leaf)
        if not written or any(self.subject.place_of(name) != "private" for name in written):
            return where
        needing = self.subject.space.nothing
        for name in written:
            needing = needing | self.threads.get(name, self.subject.space.nothing)
        return where & space.aligned(needing)

    @cached_property
    def threads(self) -> dict[str, isl.Set]:
        """For each private array the threads, and sizes, for which it is live.

        This is the least solution: an array is live in a thread that reads it to compute what
        other threads may see, control flow, an address, or a private array that is live.
        """
        nothing = self.subject.space.nothing
        found: dict[str, isl.Set] = {}
        # What is read, where, and the private arrays that it goes to.
        onward: list[tuple[str, isl.Set, tuple[str, ...]]] = []
        for leaf in self.subject.leaves:
            written = written_by(leaf)
            needed, addressing = self.is_used(leaf), self.addressing(leaf)
            own = all(self.subject.place_of(name) == "private" for name in written)
            for touch in leaf.touches:
                if touch.is_write or self.subject.place_of(touch.array) != "private":
                    continue
                if not needed and touch.array not in addressing:
                    continue
                where = self._threads_at(touch.scope)
                if written and own and touch.array not in addressing:
                    onward.append((touch.array, where, written))
                else:
                    found[touch.array] = found.get(touch.array, nothing) | where
        changed = True
        while changed:
            changed = False
            for array, where, targets in onward:
                old = found.get(array, nothing)
                for target in targets:
                    more = where & found.get(target, nothing)
                    if not more.is_subset(old):
                        old, changed = (old | more).coalesce(), True
                found[array] = old
        return found

    @memoised
    def _threads_at(self, scope: Scope) -> isl.Set:
        space = self.subject.space
        kept = {*self.subject.shared_names, *self.subject.words} & space.position.keys()
        return space.project_onto(scope.set, kept)


def written_by(leaf: Leaf) -> tuple[str, ...]:
    """The arrays that a line writes; none for guards, loops and constants that read."""
    return tuple(dict.fromkeys(touch.array for touch in leaf.touches if touch.is_write))
