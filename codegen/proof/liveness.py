"""What becomes of computed values: which reach an output, and on which threads.

A private value that a thread computes and then never looks at may be anything,
such as what a thread without work in a block has made of memory that only the
threads with work have written.  A value in a subscript is looked at in any case:
where the line reads must exist, even if nobody needs what it reads.
"""

from __future__ import annotations

import islpy as isl

from loopkit._cached import cached_property
from loopkit.codegen.c.tree import Assign, Element, walk
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Leaf


class Liveness:
    """Answers, per array, whether anything and which threads depend on what it holds."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._scopes: dict[int, isl.Set] = {}
        self._addressing: dict[Leaf, frozenset[str]] = {}

    @cached_property
    def used(self) -> frozenset[str]:
        """The arrays whose values reach an output, or decide what runs."""
        writers: dict[str, list[Leaf]] = {}
        waiting: list[Leaf] = []
        for leaf in self.subject.leaves:
            written = written_by(leaf)
            for name in written:
                writers.setdefault(name, []).append(leaf)
            if not written or any(name in self.subject.kernel.arg_by_name for name in written):
                waiting.append(leaf)
        used: set[str] = set(self.subject.kernel.arg_by_name)
        for name in frozenset().union(*map(self.addressing, self.subject.leaves)) - used:
            used.add(name)
            waiting += writers.get(name, ())
        while waiting:
            for touch in waiting.pop().touches:
                if touch.array not in used and not touch.is_write:
                    used.add(touch.array)
                    waiting += writers.get(touch.array, ())
        return frozenset(used)

    def addressing(self, leaf: Leaf) -> frozenset[str]:
        """The arrays whose values decide which cells an assignment reads or writes."""
        if leaf not in self._addressing:
            node = leaf.node
            parts = (*walk(node.target), *walk(node.value)) if isinstance(node, Assign) else ()
            self._addressing[leaf] = frozenset(
                name
                for element in parts
                if isinstance(element, Element)
                for index in element.indices
                for name in self.subject.names.used(index)
            )
        return self._addressing[leaf]

    def is_used(self, leaf: Leaf) -> bool:
        """Whether anything depends on what a line computes."""
        written = written_by(leaf)
        return not written or any(name in self.used for name in written)

    def by_own_thread(self, leaf: Leaf, where: isl.Set, space: Space) -> isl.Set:
        """Those of some executions of a line whose private result their thread needs in the end."""
        written = written_by(leaf)
        if not written or any(self.subject.place_of(name) != "private" for name in written):
            return where
        needing = self.subject.space.nothing
        for name in written:
            needing = needing | self.threads.get(name, self.subject.space.nothing)
        return where & space.aligned(needing)

    @cached_property
    def threads(self) -> dict[str, isl.Set]:
        """Per private array the threads, and sizes, where something depends on what it holds.

        The least solution: a thread needs an array if it reads it for what others may see, or
        decides by it what runs or which cells are meant, or for a private array that it needs.
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

    def _threads_at(self, scope: Scope) -> isl.Set:
        if id(scope) not in self._scopes:
            space = self.subject.space
            kept = {*self.subject.shared_names, *self.subject.words} & space.position.keys()
            self._scopes[id(scope)] = space.project_onto(scope.set, kept)
        return self._scopes[id(scope)]


def written_by(leaf: Leaf) -> tuple[str, ...]:
    """The arrays that a line writes; none for guards, loops and constants that read."""
    return tuple(dict.fromkeys(touch.array for touch in leaf.touches if touch.is_write))
