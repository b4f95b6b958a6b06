"""Inference of the shapes of undeclared arrays from their accesses.

An axis is as long as the largest index requires, for all sizes that satisfy the assumptions and
for which there is an access at all; for other sizes the same expression is used.  So ``x[0]``
beside ``x[i]`` for ``0 <= i < n`` does not give ``max(1, n)``: where ``n`` is 0, nothing is
accessed.

Rows are full: where an index is below a constant, and below a smaller bound only in the last rows
(``256*b + t < n``, ``t < 256``), the extent is the constant, even for sizes without a full row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TypeVar

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, ConstantTable, TemporaryVariable, ValueArg
from loopkit._assertions.check import facts_of_tables
from loopkit._cached import memoised
from loopkit._errors import InvalidArgumentError, OutOfBoundsError
from loopkit._expression import evaluate, substitute, to_text, variable_names
from loopkit._guarded import decided
from loopkit._hidden import hidden
from loopkit._linear import linear
from loopkit._make.check_bounds import out_of_bounds
from loopkit._make.extents import extents, largest
from loopkit._make.infer_arguments import is_integer, other_axes
from loopkit._make.making import Making, Use
from loopkit._nodes import Expression
from loopkit._points import listed
from loopkit._poly.pairs import intersection
from loopkit._poly.smallest_case import smallest_access
from loopkit._promotion import INT32

_FEW_QUOTIENTS, _MOST_POINTS = 3, 1 << 14
"""Where an index has more quotients, and its inames no more values, all values are computed."""

D = TypeVar("D", ArrayArg, TemporaryVariable)


def find_shapes(making: Making) -> None:
    """Fill in the shapes that nobody declared, in the arguments, the temporaries and the kernel."""
    shapes = Shapes(making)
    args, uses, known = making.args, making.uses, making.known
    least = _extents_of_the_call(making, shapes)
    sizes = {a.name for a in args if is_integer(a)} - shapes.names
    inferred: set[str] = set()

    def shaped(data: D, is_open: bool) -> D:
        shape = data.shape
        if is_open and data.name in uses.accesses:
            shape = shapes.shape_of(uses.accesses[data.name])
            inferred.add(data.name)
        if making.fixed and shape is not None:
            shape = tuple(substitute(extent, making.fixed) for extent in shape)
        if others := sorted(frozenset().union(*map(variable_names, shape or ())) - sizes):
            why = f"the shape of '{data.name}' uses {', '.join(others)}"
            raise InvalidArgumentError(why, instead="shapes may use sizes only")
        return data if shape is data.shape else replace(data, shape=shape)

    for position, argument in enumerate(args):
        if isinstance(argument, ArrayArg):
            args[position] = shaped(argument, argument.shape is None)
    for name, temporary in making.temporaries.items():
        axes = uses.axes.get(name)
        is_open = bool(axes) and (name in making.given.unshaped or not temporary.shape)
        if not is_open and axes is not None and len(temporary.shape) != axes:
            raise other_axes(name, len(temporary.shape), axes)
        making.temporaries[name] = shaped(temporary, is_open)
    making.inferred = frozenset(inferred)
    making.kernel = replace(
        making.kernel,
        # Shapes that were declared may have named sizes that are fixed.
        args=tuple(a for a in args if a.name not in making.fixed),
        temporaries=tuple(making.temporaries.values()),
        assumptions=replace(known, set=known.set & least),
        assertions=facts_of_tables(
            a for a in args if isinstance(a, ConstantTable) and a.name in uses.in_indices
        ),
    )


def _extents_of_the_call(making: Making, shapes: Shapes) -> isl.Set:
    """Add arguments for extents that are those of the caller's arrays.

    This includes arrays without a known shape, if the proof of bounds was postponed.  Returns the
    condition on the sizes that keeps all accesses in bounds; data-dependent accesses are ignored.
    """
    args, uses, names = making.args, making.uses, making.given.of_the_call
    least = _sets.universe()
    taken = making.names.union(a.name for a in args)
    for position, argument in enumerate(args):
        name = argument.name
        is_open = name in names or (shapes.owed and getattr(argument, "shape", ()) is None)
        if not isinstance(argument, ArrayArg) or not is_open or name not in uses.accesses:
            continue
        needs, extents = shapes.least_shape(uses.accesses[name]), []
        if name not in names and None not in needs:
            continue
        for axis, need in enumerate(needs):
            own = shapes.kernel.fresh_name(f"{name}_extent{axis}", taken)
            taken.add(own)
            extents.append(prim.Variable(own))
            args.append(ValueArg(own, INT32))
            if need is not None:
                enough = prim.Comparison(extents[-1], ">=", need)
                least = least & _sets.condition_set(enough)
        args[position] = replace(argument, shape=tuple(extents))
    return least


class Shapes:
    """Finds the extents of arrays from the accesses to them.

    ``sizes`` are the integer arguments of the kernel, whose rules are expanded and whose arrays may
    lack shapes.  If the proof of bounds is postponed (``owed``), indices may be negative.
    """

    def __init__(self, making: Making) -> None:
        self.kernel = making.expanded
        self.inames = making.inames
        self.names = frozenset(self.kernel.all_inames)
        self.temporaries = making.temporaries
        self.sizes = frozenset(a.name for a in making.args if is_integer(a))
        self.owed = making.owes_bounds
        self.assumptions = self.kernel.assumptions.set
        self._extents: dict[object, tuple[list[Expression], isl.Set | None]] = {}

    def shape_of(self, uses: Sequence[Use]) -> tuple[Expression, ...]:
        """The smallest shape that holds all accesses, for all sizes that the assumptions allow."""
        return tuple(self.extent_of(uses, axis) for axis in range(len(uses[0].indices)))

    def extent_of(self, uses: Sequence[Use], axis: int) -> Expression:
        """The extent of an axis; raises :class:`InvalidArgumentError` if nothing determines it."""
        needs: dict[Expression, list[Use]] = {}
        for use in uses:
            for extent in self._extents_of(use, axis):
                needs.setdefault(extent, []).append(use)
        where = {extent: partial(self._where, those) for extent, those in needs.items()}
        return largest(where)

    def least_shape(self, uses: Sequence[Use]) -> tuple[Expression | None, ...]:
        """The extents that the accesses need; None for axes with data-dependent accesses only."""
        return tuple(self._least_extent(uses, axis) for axis in range(len(uses[0].indices)))

    def _least_extent(self, uses: Sequence[Use], axis: int) -> Expression | None:
        try:
            return self.extent_of(uses, axis)
        except OutOfBoundsError:
            raise
        except InvalidArgumentError:
            return None

    def _where(self, uses: Sequence[Use]) -> isl.Set:
        """The sizes for which at least one of several accesses happens."""
        closure = self.inames.closure
        return reduce(or_, (self._happens(closure(u.statement.inames), u.guards) for u in uses))

    @memoised
    def _happens(self, inames: frozenset[str], guards: tuple[Expression, ...]) -> isl.Set:
        """``{ sizes : there are values of inames at which all guards of sets hold }``."""
        condition, _ = self._condition(guards)
        happens = self.kernel.domain_of(inames) & condition & self.assumptions
        return _sets.project_onto(happens, self.sizes)

    def _extents_of(self, use: Use, axis: int) -> list[Expression]:
        """Candidates for the extent of an axis for one access: it is the largest of them."""
        index = use.indices[axis]
        if isinstance(index, int):
            if index < 0:
                self._check_not_below(use, axis, _sets.universe())
            return [max(0, index + 1)]
        condition, used = self._condition(use.guards)
        mine = self.inames.closure((variable_names(index) | used) & use.statement.inames)
        elsewhere = use.indices[:axis] + use.indices[axis + 1 :]
        # The inames that stand in other indices alone.
        others = self.names & frozenset[str]().union(*map(variable_names, elsewhere))
        others -= variable_names(index)
        key = (index, mine, use.guards if used else (), others)
        if key not in self._extents:
            domain = self.kernel.domain_of(mine)
            if used:
                domain = domain & condition
            ends = self._ends_at_points(index, domain)
            if ends is not None:
                found, is_below = [ends[1] + 1], ends[0] < 0
            else:
                value, graph = self._graph(use, axis, domain)
                below = graph & self.assumptions & _negative(prim.Variable(value))
                found, is_below = self._extents_in(use, axis, value, graph), not below.is_empty()
            if others and any(map(_least_of_a_number, found)):
                around = self.kernel.domain_of(self.inames.closure(mine | others)) & condition
                found = self._of_full_rows(found, use, axis, around, others)
            self._extents[key] = found, domain if is_below else None
        found, may_be_below = self._extents[key]
        if may_be_below is not None:
            self._check_not_below(use, axis, may_be_below)
        return found

    def _ends_at_points(self, index: Expression, domain: isl.Set) -> tuple[int, int] | None:
        """The ends of an index of many quotients and bits, by its few values; None for others.

        isl takes each quotient for a variable of its own, and tries all.
        """
        try:
            form = linear(index)
        except _sets.NotAffineError:
            return None
        quotients = sum(not isinstance(atom, prim.Variable) for atom in form.terms)
        if quotients <= _FEW_QUOTIENTS or not _sets.involved_names(domain) <= self.names:
            return None
        names = sorted(form.names)
        rows = listed(domain, names, _MOST_POINTS)
        if rows is None or not len(rows):
            return None
        values = evaluate(index, dict(zip(names, rows.T.astype(object), strict=True)))
        return min(values), max(values)

    def _of_full_rows(
        self,
        found: list[Expression],
        use: Use,
        axis: int,
        domain: isl.Set,
        others: frozenset[str],
    ) -> list[Expression]:
        """The extents, but those of full rows where what other axes leave could be less."""
        for position, iname in enumerate(_sets.names_of(domain)):
            if iname in others:
                domain = domain.drop_constraints_involving_dims(_sets.PARAM, position, 1)
        value, graph = self._graph(use, axis, domain)
        full = extents(graph, value, self.assumptions)
        return [full[0] if full == [_least_of_a_number(e)] else e for e in found]

    @memoised
    def _condition(self, guards: tuple[Expression, ...]) -> tuple[isl.Set, frozenset[str]]:
        """What the affine ones of some conditions say, and about which names."""
        parts = [p for g in guards if (p := decided(g, self.names | self.sizes)) is not None]
        used = frozenset[str]().union(*map(_sets.involved_names, parts))
        return intersection(parts), used

    def _graph(self, use: Use, axis: int, domain: isl.Set) -> tuple[str, isl.Set]:
        """A name for the values of an index, and the set of it and the sizes."""
        index = use.indices[axis]
        if isinstance(index, prim.Variable) and index.name in self.names:
            value, graph = index.name, domain
        else:
            value = hidden("index")
            try:
                meant = _sets.pw_affine(index)
            except _sets.NotAffineError:
                raise self._undeclared(use, axis, "is not affine") from None
            itself = isl.PwAff.from_aff(_sets.affine(prim.Variable(value)))
            graph = domain & itself.eq_set(meant)
        keep = {value, *(n for n in _sets.names_of(graph) if n in self.sizes)}
        return value, _sets.project_onto(graph, keep)

    def _extents_in(self, use: Use, axis: int, value: str, graph: isl.Set) -> list[Expression]:
        if graph.is_empty():
            return [0]
        try:
            found = extents(graph, value, self.assumptions)
        except _sets.NotAffineError:
            found = None
        if found is None:
            raise self._undeclared(use, axis, "has no upper bound")
        return found or [0]

    def _check_not_below(self, use: Use, axis: int, domain: isl.Set) -> None:
        """Report an index that is negative where its statement runs."""
        whole = self.kernel.domain_of(self.inames.closure(use.statement.inames))
        bad = domain & whole & _negative(use.indices[axis]) & self.assumptions
        if bad.is_empty() or self.owed:
            return
        sizes = sorted(n for n in _sets.names_of(bad) if n in self.sizes)
        why = f"index {to_text(use.indices[axis])} of axis {axis} is negative"
        instead = "shift the index, or make the domain start later"
        case = smallest_access(
            "out of bounds", self.kernel, use.statement, use.name, use.indices, bad, sizes=sizes
        )
        raise out_of_bounds(use.statement, case, why, instead)

    def _undeclared(self, use: Use, axis: int, why: str) -> InvalidArgumentError:
        declare = (
            f"temporary_variables=[TemporaryVariable('{use.name}', shape=...)]"
            if use.name in self.temporaries
            else f"kernel_data=[GlobalArg('{use.name}', shape=...), ...]"
        )
        access = f"{use.name}[{', '.join(map(to_text, use.indices))}]"
        return InvalidArgumentError(
            f"the shape of '{use.name}' cannot be inferred: "
            f"index {to_text(use.indices[axis])} of {access} {why}",
            instead=f"declare it: {declare}",
        )


def _least_of_a_number(extent: Expression) -> int | None:
    """The constant operand of a minimum."""
    numbers = [c for c in getattr(extent, "children", ()) if isinstance(c, int)]
    return numbers[0] if isinstance(extent, prim.Min) and numbers else None


def _negative(index: Expression) -> isl.Set:
    return _sets.pw_affine(index).lt_set(_sets.pw_affine(0))
