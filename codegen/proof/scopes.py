"""What holds at a point of the text: the loops, guards and constants around it."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit._algebra.terms import ZERO
from loopkit._cached import cached_property, memoised
from loopkit._intervals import Interval
from loopkit.codegen.c.tree import CExpression, For, If, Let
from loopkit.codegen.proof.form_ranges import FAR, Ranges
from loopkit.codegen.proof.forms import Form, NotAffineError
from loopkit.codegen.proof.proof_conditions import Condition
from loopkit.codegen.proof.spaces import Space, less


class Scope(Ranges):
    """The names and conditions in force inside one loop, guard or constant.

    ``conditions`` are what the scope itself adds, ``unknown`` what only data
    decides.  ``set`` is over all names of the proof; it leaves unknown
    conditions out, and so may be larger than what really runs.  ``ranges``
    bound the names in force, those around included; ``forms`` are of expressions that
    were looked at here.
    """

    def __init__(
        self,
        space: Space,
        parent: Scope | None,
        node: For | If | Let | None,
        conditions: tuple[Condition, ...],
        unknown: tuple[Condition, ...] = (),
        ranges: dict[str, Interval] | None = None,
        base: isl.Set | None = None,
    ) -> None:
        self.space = space
        self.parent = parent
        self.node = node
        self.conditions = conditions
        self.own_unknown = unknown
        own = ranges or {}
        self.ranges: dict[str, Interval] = own if parent is None else {**parent.ranges, **own}
        self._base = base
        self.forms: dict[int, tuple[CExpression, Form]] = {}

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    @cached_property
    def frame(self) -> Scope:
        """The innermost loop, guard or body around, without the constants in it."""
        if self.parent is None or not isinstance(self.node, Let):
            return self
        return self.parent.frame

    @cached_property
    def set(self) -> isl.Set:
        """All values of all names for which the point is reached."""
        if self.parent is None:
            assert self._base is not None
            return self._base & self.space.all_of(self.conditions)
        if not self.conditions:
            return self.parent.set
        return self.parent.set & self.space.all_of(self.conditions)

    @cached_property
    def all_conditions(self) -> tuple[Condition, ...]:
        """The conditions of this scope and all around it, outermost first."""
        outer = self.parent.all_conditions if self.parent is not None else ()
        return (*outer, *self.conditions)

    @cached_property
    def unknown(self) -> tuple[Condition, ...]:
        """What only data decides, here and around."""
        outer = self.parent.unknown if self.parent is not None else ()
        return (*outer, *self.own_unknown)

    @cached_property
    def loops(self) -> tuple[For, ...]:
        """The loops around, outermost first."""
        outer = self.parent.loops if self.parent is not None else ()
        return (*outer, self.node) if isinstance(self.node, For) else outer

    @cached_property
    def lets(self) -> tuple[Let, ...]:
        """The constants in force, outermost first."""
        outer = self.parent.lets if self.parent is not None else ()
        return (*outer, self.node) if isinstance(self.node, Let) else outer

    def is_inside(self, loop: For) -> bool:
        """Whether a loop is one of the enclosing ones, by identity."""
        return any(other is loop for other in self.loops)

    def range_of_name(self, name: str) -> Interval:
        """Bounds of a name, from the bounds of the loop or constant that made it."""
        return self.ranges.get(name, (-FAR, FAR))

    @memoised
    def never_below_zero(self, form: Form) -> bool:
        """Whether a form is proven not to be negative here."""
        if self.range_of(form)[0] >= 0:
            return True
        try:
            negative = self.space.where(less(form, ZERO))
        except NotAffineError:
            return False
        return bool((self.set & negative).is_empty())
