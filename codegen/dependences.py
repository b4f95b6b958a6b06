"""The dependences between threads that need barriers, and the gaps in which a barrier cuts each.

A dependence belongs to the innermost loop body that contains both accesses: its two instances are
in two nodes of one iteration of that body, or in two iterations of its loop. A barrier in any gap
between them in that body *cuts* the dependence: it orders the two instances. So does a barrier in
a loop between them, for the pairs of instances between which that loop executes;
:mod:`.barrier_conditions` computes these pairs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace

from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit._tree import statements_in
from loopkit.codegen.access_families import Access
from loopkit.codegen.barrier_conditions import BarrierConditions
from loopkit.codegen.conflicts import Conflicts, Order, Reach
from loopkit.codegen.loop_bodies import Bodies, Body

# Which of two accesses write: a read after a write, a write after a read, two writes.
_CLASSES = ((True, False), (False, True), (True, True))


@dataclass(frozen=True)
class Dependence:
    """Pairs of instances of ``before`` and ``after``; a barrier in any one of ``gaps`` orders
    them.

    ``gaps`` is a bit set. If the dependence is loop-carried, ``carried`` is its loop. ``reach``
    says whether the two threads are always in one warp.
    """

    gaps: int
    reach: Reach
    before: Access
    after: Access
    carried: str | None


@dataclass(frozen=True)
class _Use:
    """An access of a statement within node number ``node`` of a body."""

    node: int
    access: Access


class Dependences:
    """All dependences of a kernel between threads, those of inner bodies first.

    A dependence is left out if every placement that cuts the others cuts it as well.
    """

    def __init__(self, conflicts: Conflicts) -> None:
        self.conflicts = conflicts
        self.bodies = Bodies(conflicts)
        self.found: list[Dependence] = []
        self._own: dict[Body, list[Dependence]] = {}
        self._tightest: list[tuple[int, Reach]] = []
        self._body = self.bodies.root
        self._conditions = BarrierConditions(conflicts, self.bodies)
        self._farthest = Reach.BLOCK if conflicts.other_warp else Reach.WARP
        if not conflicts.single_thread:
            for body in self.bodies.all:
                self._visit(body)

    def _visit(self, body: Body) -> None:
        own = self._own[body] = []
        self._body = body
        uses = self._uses(body)
        for found in uses:
            self._within(body, found)
        if body.parent is None:
            self.found += own
            return
        for found in uses:
            self._around(body, found)
        # A later iteration is reached through every gap, unless the loop runs backwards in it.
        elsewhere = ~body.own_gaps
        if not any(n.reach is self._farthest and n.gaps & elsewhere == 0 for n in own):
            for found in uses:
                self._onwards(body, found)
        self.found += own

    def _uses(self, body: Body) -> list[tuple[_Use, ...]]:
        """Groups of the accesses within a body that may touch cells that other threads access."""
        found = grouped(
            (group, _Use(position, access))
            for position, node in enumerate(body.nodes)
            for statement in statements_in(node)
            for access in self.conflicts.accesses[statement]
            if (group := self.conflicts.group(access)) is not None
        )
        return [
            uses
            for uses in found.values()
            if any(use.access.is_write for use in uses)
            and (len(uses) > 1 or body.parent is not None)
        ]

    def _is_active(self, body: Body) -> bool:
        """Whether a dependence of this body or of one inside may place a barrier here."""
        return bool(self._own[body]) or any(map(self._is_active, body.children.values()))

    @memoised
    def _is_sure(self, body: Body) -> bool:
        """Whether every execution of the body executes a barrier of the block."""
        return self.bodies.always_runs(body) and (
            any(
                need.reach is self._farthest and need.gaps & ~self._passed(body) == 0
                for need in self._own[body]
            )
            or any(map(self._is_sure, body.children.values()))
        )

    @memoised
    def _passed(self, body: Body) -> int:
        """The gaps that control passes in each iteration of a body."""
        found = body.own_gaps
        for child in body.children.values():
            if self._is_active(child) and self.bodies.always_runs(child):
                found |= self._passed(child)
        return found

    @memoised
    def _active_nodes(self, body: Body) -> list[int]:
        """The nodes of a body within which a barrier may be placed, in order."""
        return sorted(p for p, child in body.children.items() if self._is_active(child))

    @memoised
    def _sure_nodes(self, body: Body) -> list[int]:
        """The nodes of a body of which every execution executes a barrier of the block."""
        return [p for p in self._active_nodes(body) if self._is_sure(body.children[p])]

    def _within(self, body: Body, uses: tuple[_Use, ...]) -> None:
        """Record the dependences between two nodes in one iteration."""
        if uses[0].node == uses[-1].node:
            return
        sure = self._sure_nodes(body)
        nodes = [use.node for use in uses]
        for before, after in _CLASSES:
            # Dependences that span the one found last are cut with it.
            floor = -1
            for position, later in enumerate(uses):
                if later.access.is_write is not after:
                    continue
                # A dependence across a node with a certain barrier is cut there.
                between = bisect_left(sure, later.node)
                lowest = sure[between - 1] if between else 0
                told = before is after
                for number in range(bisect_left(nodes, later.node, 0, position) - 1, -1, -1):
                    earlier = uses[number]
                    if earlier.node < lowest or earlier.node <= floor:
                        break
                    if earlier.access.is_write is not before:
                        continue
                    # One dependence that is cut anyway is recorded for the comment on the barrier.
                    served = self._is_served(self._gaps_between(body, earlier, later, None))
                    if served and told:
                        break
                    told = True
                    if self._add(body, earlier, later, None):
                        floor = earlier.node

    def _around(self, body: Body, uses: tuple[_Use, ...]) -> None:
        """Record the loop-carried dependences from a node to an earlier node."""
        if uses[0].node == uses[-1].node:
            return
        sure = self._sure_nodes(body)
        loop = body.loops[-1]
        for before, after in _CLASSES:
            laters = [use for use in uses if use.access.is_write is after]
            ceiling = len(body.nodes)
            first_sure, last_sure = (sure[0], sure[-1]) if sure else (ceiling, -1)
            told = before is after
            for earlier in reversed(uses):
                if earlier.access.is_write is not before:
                    continue
                if earlier.node < last_sure:
                    break
                for later in laters:
                    if later.node >= min(earlier.node, ceiling) or later.node > first_sure:
                        break
                    served = self._is_served(self._gaps_between(body, earlier, later, loop))
                    if served and told:
                        break
                    told = True
                    if self._add(body, earlier, later, loop):
                        ceiling = later.node

    def _onwards(self, body: Body, uses: tuple[_Use, ...]) -> None:
        """Record the loop-carried dependences from a node to itself or a later node."""
        sure = self._sure_nodes(body)
        for before, after in _CLASSES:
            for earlier in uses:
                if earlier.access.is_write is not before or (sure and earlier.node < sure[-1]):
                    continue
                for later in uses:
                    if later.access.is_write is not after or later.node < earlier.node:
                        continue
                    if sure and later.node > sure[0]:
                        break
                    if self._add(body, earlier, later, body.loops[-1]):
                        return

    def _add(self, body: Body, earlier: _Use, later: _Use, carried: str | None) -> bool:
        """Record the dependence of two accesses.

        Returns whether gaps of this body alone cut it, for threads at any distance.
        """
        need = Dependence(
            self._gaps_between(body, earlier, later, carried),
            Reach.NOWHERE,
            earlier.access,
            later.access,
            carried,
        )
        own = self._own[body]
        first, last = (earlier.node, later.node) if carried is None else (0, len(body.nodes))
        active = self._active_nodes(body)
        deeper = active[bisect_left(active, first) : bisect_right(active, last)]
        if deeper and self._is_served(need.gaps):
            return False
        shared = frozenset(body.loops if carried is None else body.loops[:-1])
        nearest = Reach.NOWHERE
        if not deeper:
            order = Order(shared, carried, adjacent=carried is not None)
            nearest = self.conflicts.reach(earlier.access, later.access, order)
            if nearest:
                self._record(own, replace(need, reach=nearest))
            if carried is None or nearest is self._farthest:
                return nearest is self._farthest
        # From here on pairs can be cut in part: more than one iteration apart, or further inside.
        order = Order(shared, carried)
        reach = self.conflicts.reach(earlier.access, later.access, order)
        if reach <= nearest:
            return False
        if not deeper and need.gaps == body.own_gaps:
            self._record(own, replace(need, reach=reach))
            return reach is self._farthest
        inside = [inner for node in deeper for inner in self._active_below(body.children[node])]
        for part, gaps in self._conditions.parts(
            body, earlier.access, later.access, order, need.gaps, inside, self._is_served
        ):
            self._record(own, replace(need, reach=part, gaps=gaps))
        return False

    def _is_served(self, gaps: int, reach: Reach = Reach.BLOCK) -> bool:
        """Whether a recorded dependence already forces a barrier into one of ``gaps``."""
        reach = min(reach, self._farthest)
        return any(mine & ~gaps == 0 and its >= reach for mine, its in self._tightest[::-1])

    def _record(self, own: list[Dependence], need: Dependence) -> None:
        """Record a dependence, and update the smallest sets of gaps that need a barrier each.

        A set of gaps that contains another one needs no barrier of its own.
        """
        own.append(need)
        if not self._is_served(need.gaps, need.reach):
            kept = [(g, r) for g, r in self._tightest if need.gaps & ~g or need.reach < r]
            self._tightest = [*kept, (need.gaps, need.reach)]

    def _active_below(self, body: Body) -> Iterator[Body]:
        if self._own[body]:
            yield body
        for child in body.children.values():
            yield from self._active_below(child)

    @staticmethod
    def _gaps_between(body: Body, earlier: _Use, later: _Use, carried: str | None) -> int:
        """The gaps of this body that control surely passes between the two accesses."""
        if carried is None:
            return body.gaps(earlier.node + 1, later.node)
        return body.gaps(earlier.node + 1, len(body.nodes)) | body.gaps(0, later.node)
