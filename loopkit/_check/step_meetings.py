"""Whether two accesses to a common cell have the same order before and after a step.

isl decides this on the pairs of instances, if the forms of subscripts and loops do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.step_accesses import AccessPair, StatementPair, StepAccess
from loopkit._expression import variable_names
from loopkit._hidden import BASE, OTHER
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, equal_inames, parts_in
from loopkit._poly.parallel_axes import Axis
from loopkit._poly.program_order import Steps, all_equal, before

Range = tuple[int | None, int | None]


def order_is_same(old: Model, new: Model, pair: AccessPair, changed: Collection[Axis]) -> bool:
    """Whether two accesses come in the order in which they came, wherever they meet.

    They meet on one index of their own axes, and matter in one iteration of the pair's loops alone;
    on other threads of a block, loops and text order them, as they do in other launches, and
    nothing does on others of the ``changed`` axes within one.  False where isl cannot hold a
    subscript.
    """
    one, two, own, itself = pair.one, pair.two, pair.own, pair.itself
    mine, its = one.pair, two.pair
    try:
        meet = _meeting(new, one, two) & equal_inames(pair.loops, BASE, OTHER)
        for axis in own:
            first, second = _coordinates(new, mine, its, axis)
            if first is not None and second is not None:
                meet = meet & _sets.affine_equality(first, second)
        launch = new.order.in_one_launch(mine.new.id, its.new.id, BASE, OTHER)
        blocks = [a for a in changed if launch is not None and a[0] == "g" and a not in own]
        if not all(_is_one_index(new, meet & launch, mine, its, axis) for axis in blocks):
            return False
        was = _times(new, old.order.shared_loops(mine.old.id, its.old.id), mine.values, its.values)
        is_ = _times(new, new.order.shared_loops(mine.new.id, its.new.id), {}, {})
        if itself and one.commutes(two):
            # Sums, in any order, but at one time by one thread.
            at_once = meet & all_equal(is_)
            return all(_is_one_index(new, at_once, mine, its, a) for a in new.axes if a not in own)
        # Of one statement, which may be several from now on, no two come at one time.
        others = mine.old.id != its.old.id
        for first, then, above in ((was, is_, True), (_swapped(was), _swapped(is_), False)):
            earlier, later = before(first), before(_swapped(then))
            if others and old.order.is_above(mine.old.id, its.old.id) is above:
                earlier.append(all_equal(first))
            if itself or new.order.is_above(mine.new.id, its.new.id) is not above:
                later.append(all_equal(then))
            for part in parts_in(meet, earlier):
                if any(True for _ in parts_in(part, later)):
                    return False
        return True
    except _sets.NotAffineError:
        return False


def is_decided_outside(old: Model, new: Model, one: StatementPair, two: StatementPair) -> bool:
    """Whether one of the outermost loops, which stay as they are, has no value for both."""
    if not (one.new.predicates or two.new.predicates):
        return False
    before = old.order.shared_loops(one.old.id, two.old.id)
    after = new.order.shared_loops(one.new.id, two.new.id)
    for iname, its in zip(before, after, strict=False):
        if iname != its or iname in one.values or iname in two.values:
            return False
        if _are_apart(new.range_under(one.new.id, iname), new.range_under(two.new.id, iname)):
            return True
    return False


def _are_apart(one: Range, two: Range) -> bool:
    ends = (one[1], two[0]), (two[1], one[0])
    return any(high is not None and low is not None and high < low for high, low in ends)


def _meeting(new: Model, one: StepAccess, two: StepAccess) -> isl.Set:
    """``{ inames·BASE of one, inames·OTHER of two : they touch one cell }``, a superset."""
    meet = new.domain(Instance(one.pair.new.id, BASE)) & new.domain(
        Instance(two.pair.new.id, OTHER)
    )
    for a, b in zip(one.indices, two.indices, strict=False):
        if variable_names(a) | variable_names(b) <= new.integers:
            meet = meet & _sets.affine_equality(new.named(a, BASE), new.named(b, OTHER))
    return meet


def _coordinates(
    new: Model, one: StatementPair, two: StatementPair, axis: Axis
) -> tuple[Expression | None, Expression | None]:
    first = new.coordinate(Instance(one.new.id, BASE), axis)
    return first, new.coordinate(Instance(two.new.id, OTHER), axis)


def _is_one_index(
    new: Model, meet: isl.Set, one: StatementPair, two: StatementPair, axis: Axis
) -> bool:
    """Whether two instances that meet do so on one index of an axis."""
    first, second = _coordinates(new, one, two, axis)
    if first is None or second is None:
        return False
    other = _sets.condition_set(prim.Comparison(first, "!=", second))
    return bool((meet & other).is_empty())


def _times(
    new: Model,
    loops: Sequence[str],
    one: Mapping[str, Expression],
    two: Mapping[str, Expression],
) -> Steps:
    """The loops that two instances share, each with its values in terms of their inames."""
    values = [(one.get(i, prim.Variable(i)), two.get(i, prim.Variable(i))) for i in loops]
    return [(new.named(a, BASE), new.named(b, OTHER)) for a, b in values]


def _swapped(steps: Steps) -> Steps:
    return [(b, a) for a, b in steps]
