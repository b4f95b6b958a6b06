"""The hardware axes before and after a step, and which statements it puts elsewhere on them."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit._cached import cached_property, memoised
from loopkit._check.step_accesses import StatementPair
from loopkit._expression import substitute
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import Axis


class StepAxes:
    """A step's kernels, and its statements before and after by their new name, on their axes."""

    def __init__(self, old: Model, new: Model, pairs: Mapping[str, StatementPair]) -> None:
        self.old = old
        self.new = new
        self.pairs = pairs

    @cached_property
    def new_axes(self) -> tuple[Axis, ...]:
        """Hardware axes that nothing was on before."""
        return tuple(a for a in self.new.axes if a not in self.old.axes)

    @cached_property
    def changed_axes(self) -> tuple[Axis, ...]:
        """Hardware axes on which some statement has another coordinate than before."""
        return tuple(
            axis
            for axis in self.new.axes
            if axis in self.new_axes or any(self.moves(t, axis) for t in self.pairs.values())
        )

    @memoised
    def moves(self, pair: StatementPair, axis: Axis) -> bool:
        """Whether a statement's coordinate on an axis is not what it was.

        An iname that has another name now is what it was.
        """
        if axis in self.new_axes:
            return True
        before = self.old.coordinate(Instance(pair.old.id, ""), axis)
        if before is not None and pair.values:
            before = substitute(before, pair.values)
        return before != self.coordinate(pair, axis)

    @memoised
    def coordinate(self, pair: StatementPair, axis: Axis) -> Expression | None:
        """A statement's coordinate on an axis, as :meth:`ParallelAxes.coordinate` gives it."""
        return self.new.coordinate(pair.at, axis)

    @memoised
    def inames_on(self, pair: StatementPair, axis: Axis) -> tuple[str, ...]:
        """The inames of a statement on an axis."""
        return tuple(i for i in self.new.inames_on[axis] if i in pair.new.inames)
