"""Which pairs of statement instances are separated by a barrier in a given gap of the loop nest.

A gap is a position between two nodes of a loop body. A barrier in a gap inside a loop that lies
between two instances separates them if that loop executes at least once. A barrier in a gap of a
loop around an instance separates them if control passes the gap after the first instance, in the
same or in a later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import islpy as isl

from loopkit import _budget, _sets
from loopkit._hidden import BETWEEN, ONE, TWO, instances
from loopkit._poly.pairs import steps, within_any
from loopkit._poly.program_order import before
from loopkit.codegen.access_families import Access
from loopkit.codegen.conflicts import Conflicts, Order, Reach
from loopkit.codegen.loop_bodies import Bodies, Body

# A body, whether its gaps stand behind the first side, and before the second, in the body that
# they share with that side.
_Kind = tuple[Body, bool, bool]


class BarrierConditions:
    """Partitions the pairs of a dependence by the gaps in which a barrier would separate them."""

    def __init__(self, conflicts: Conflicts, bodies: Bodies) -> None:
        self.conflicts = conflicts
        self.bodies = bodies
        self._conditions: dict[tuple[object, ...], isl.Set] = {}

    def parts(
        self,
        body: Body,
        first: Access,
        second: Access,
        order: Order,
        gaps: int,
        inside: Sequence[Body],
        is_served: Callable[[int, Reach], bool],
    ) -> Iterator[tuple[Reach, int]]:
        """For each part of the pairs all gaps that cut it.

        ``body`` is where the sides part, ``gaps`` cut all of them, and ``inside``
        are bodies further inside whose gaps may.  Left out are parts for which
        something else needs a barrier in their gaps, as ``is_served`` knows.
        """
        kinds = self._kinds(body, first, second, order, inside)
        sometimes = []
        for kind, mask in kinds.items():
            if self._always(body, first, second, order, kind):
                gaps |= mask
            else:
                sometimes.append((kind, mask))
        if is_served(gaps, Reach.BLOCK):
            return
        found = [pairs for _, _, pairs in self.conflicts.pairs(first, second, order)]
        for reach in (Reach.BLOCK, Reach.WARP):
            if is_served(gaps, reach):
                continue
            pairs = self._pairs(reach, found)
            parts = [] if pairs.is_empty() else [(pairs, gaps)]
            for kind, mask in sometimes:
                if not parts or len(parts) > _budget.BARRIER_SPLITS:
                    break
                condition = self._condition(body, first, second, order, kind)
                split = []
                for part, known in parts:
                    if not is_served(known | mask, reach):
                        cut = part & condition
                        if not cut.is_empty():
                            split.append((cut, known | mask))
                    rest = part - condition
                    if not rest.is_empty():
                        split.append((rest, known))
                parts = split
            for known in dict.fromkeys(known for _, known in parts):
                yield reach, known

    def _pairs(self, reach: Reach, found: Sequence[isl.Set]) -> isl.Set:
        """The pairs on threads of two warps, or of one."""
        conflicts = self.conflicts
        differ = conflicts.other_warp if reach is Reach.BLOCK else conflicts.other_thread
        result = isl.Set.empty(isl.Space.params_alloc(isl.DEFAULT_CONTEXT, 0))
        for pairs in found:
            inside = pairs & conflicts.same_warp if reach is Reach.WARP else pairs
            for condition in differ:
                result = result | (inside & condition)
        return result.coalesce()

    def _kinds(
        self, body: Body, first: Access, second: Access, order: Order, inside: Iterable[Body]
    ) -> dict[_Kind, int]:
        """The gaps that may cut a pair, by what decides whether they do."""
        found: dict[_Kind, int] = {}
        candidates = [b for b in inside if not self.bodies.data_names(b)]
        if order.carried is not None:
            candidates.append(body)
        for other in candidates:
            for position in range(len(other.nodes) + 1):
                behind = self._is_behind(other, position, first.statement)
                ahead = not self._is_behind(other, position, second.statement)
                if order.carried is None:
                    node = body.child_towards(other)
                    low = self.bodies.position_in(body, first.statement)
                    high = self.bodies.position_in(body, second.statement)
                    if not low <= node <= high:
                        continue
                kind = (other, behind, ahead)
                found[kind] = found.get(kind, 0) | 1 << other.gap(position)
        return found

    def _is_behind(self, body: Body, position: int, statement: str) -> bool:
        """Whether a gap stands behind a statement in the innermost body around both."""
        common = self.bodies.common(body, statement)
        node = self.bodies.position_in(common, statement)
        return node < (position if common is body else common.child_towards(body))

    def _always(self, body: Body, first: Access, second: Access, order: Order, kind: _Kind) -> bool:
        """Whether gaps cut all pairs, as their place alone shows."""
        other, behind, ahead = kind
        if behind and self.bodies.common(other, first.statement) is other:
            return True
        if ahead and self.bodies.common(other, second.statement) is other:
            return True
        if order.carried is not None or not (behind and ahead):
            return False
        if any(self.bodies.common(other, s.statement) is not body for s in (first, second)):
            return False
        return all(map(self.bodies.always_runs, other.chain[len(body.chain) :]))

    def _condition(
        self, body: Body, first: Access, second: Access, order: Order, kind: _Kind
    ) -> isl.Set:
        """The pairs that a kind of gap cuts, by the iterations that they are in (memoised)."""
        other, behind, ahead = kind
        depths = tuple(
            self.bodies.common(other, access.statement).loops for access in (first, second)
        )
        key = (other, behind, ahead, depths, order.shared)
        if key not in self._conditions:
            outer = len(order.shared)
            own = instances(other.loops[outer:], BETWEEN)
            passed = _sets.rename(self.bodies.iterations(other), own)
            passed = passed & _precedes(depths[0][outer:], ONE, BETWEEN, behind)
            passed = passed & _precedes(depths[1][outer:], BETWEEN, TWO, ahead)
            self._conditions[key] = _sets.project_out(passed, own.values()).coalesce()
        return self._conditions[key]


def _precedes(loops: Sequence[str], first: str, second: str, in_body: bool) -> isl.Set:
    """``{ loops·first, loops·second : first is before second }``, exactly.

    In an earlier iteration, or, with ``in_body``, in the same one.
    """
    return within_any(_sets.universe(), before(steps(loops, first, second), or_equal=in_body))
