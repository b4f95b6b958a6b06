"""Shapes of arrays that nobody declared: as far as the accesses reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._budget import is_spent
from loopkit._errors import Instance, InvalidArgumentError, OutOfBoundsError, Witness
from loopkit._expression import to_text, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._linear import linear
from loopkit._make.arguments import Access
from loopkit._make.scopes import Inames
from loopkit._nodes import Expression
from loopkit._points import smallest_point


class Shapes:
    """Finds the extents of arrays from the accesses to them.

    ``kernel`` has its rules expanded; its arrays may lack shapes.  ``sizes`` are
    the integers among its arguments.
    """

    def __init__(
        self,
        kernel: Kernel,
        inames: Inames,
        temporaries: Collection[str],
        sizes: Collection[str],
    ) -> None:
        self.kernel = kernel
        self.inames = inames
        self.names = frozenset(kernel.all_inames)
        self.temporaries = frozenset(temporaries)
        self.sizes = frozenset(sizes)
        self.assumptions = kernel.assumptions.set
        self._predicates: dict[tuple[Expression, ...], tuple[isl.Set, frozenset[str]]] = {}
        self._extents: dict[object, Expression] = {}

    def shape_of(self, name: str, accesses: Sequence[Access]) -> tuple[Expression, ...]:
        """The smallest shape that holds all accesses, for all sizes that the assumptions allow."""
        axes = len(accesses[0].indices)
        shape = []
        for axis in range(axes):
            extents: dict[Expression, None] = {}
            for access in accesses:
                extents[self._extent(name, axis, access)] = None
            shape.append(self._largest(list(extents)))
        return tuple(shape)

    # {{{ one access

    def _extent(self, name: str, axis: int, access: Access) -> Expression:
        indices, statement = access.indices, access.statement
        index = indices[axis]
        if isinstance(index, int):
            if index < 0:
                self._fail_below(name, axis, indices, statement, _sets.universe())
            return index + 1
        condition, used = self._condition(access.guards)
        mine = variable_names(index) & self.names
        if not mine <= statement.inames:
            mine = mine & statement.inames
        if used:
            mine |= used & statement.inames
        mine = self.inames.closure(frozenset(mine))
        key = (index, mine, access.guards if used else ())
        found = self._extents.get(key)
        if found is None:
            domain = self.kernel.domain_of(mine)
            if used:
                domain = domain & condition
            found = self._extent_in(name, axis, indices, statement, domain)
            self._extents[key] = found
        return found

    def _condition(self, guards: tuple[Expression, ...]) -> tuple[isl.Set, frozenset[str]]:
        """What the affine ones of some conditions say, and about which names."""
        if not guards:
            return _sets.universe(), frozenset()
        found = self._predicates.get(guards)
        if found is None:
            condition = _sets.universe()
            used: frozenset[str] = frozenset()
            for predicate in guards:
                try:
                    part = _sets.condition_set(predicate)
                except _sets.NotAffineError:
                    continue
                names = _sets.involved_names(part)
                if not names <= self.names | self.sizes:
                    continue
                condition = condition & part
                used |= names
            found = (condition, used)
            self._predicates[guards] = found
        return found

    def _extent_in(
        self,
        name: str,
        axis: int,
        indices: tuple[Expression, ...],
        statement: Statement,
        domain: isl.Set,
    ) -> Expression:
        index = indices[axis]
        if isinstance(index, prim.Variable) and index.name in self.names:
            value = index.name
            graph = domain
        else:
            value = hidden("index")
            try:
                meant = _sets.pw_affine(index)
            except _sets.NotAffineError:
                raise self._undeclared(
                    name, f"index {to_text(index)} of {_text(name, indices)} is not affine"
                ) from None
            itself = isl.PwAff.from_aff(_sets.affine(prim.Variable(value)))
            graph = domain & itself.eq_set(meant)
        keep = {value, *(n for n in _sets.names_of(graph) if self._is_size(n))}
        graph = _sets.project_onto(graph, keep)
        if graph.is_empty():
            return 0
        self._check_not_below(name, axis, indices, statement, domain, graph, value)
        try:
            largest = _sets.maximum(graph, value)
            extent = largest_plus_one(largest, self.assumptions)
        except (isl.Error, _sets.NotAffineError):
            if is_spent():
                raise
            extent = None
        if extent is None:
            raise self._undeclared(
                name, f"index {to_text(index)} of {_text(name, indices)} has no upper bound"
            )
        return extent

    def _is_size(self, name: str) -> bool:
        return name in self.sizes

    def _check_not_below(
        self,
        name: str,
        axis: int,
        indices: tuple[Expression, ...],
        statement: Statement,
        domain: isl.Set,
        graph: isl.Set,
        value: str,
    ) -> None:
        negative = _sets.condition_set(prim.Comparison(prim.Variable(value), "<=", -1))
        below = graph & negative
        if below.is_empty():
            return
        below = below & self.assumptions
        if not below.is_empty():
            self._fail_below(name, axis, indices, statement, domain)

    def _fail_below(
        self,
        name: str,
        axis: int,
        indices: tuple[Expression, ...],
        statement: Statement,
        domain: isl.Set,
    ) -> None:
        negative = _sets.pw_affine(indices[axis]).lt_set(_sets.pw_affine(0))
        whole = self.kernel.domain_of(self.inames.closure(statement.inames))
        bad = domain & whole & negative & self.assumptions
        inames = [i for i in self.kernel.all_inames if i in statement.inames]
        sizes = sorted(n for n in _sets.names_of(bad) if self._is_size(n))
        point = smallest_point(bad, [*sizes, *inames]) or {}
        witness = _witness("out of bounds", name, indices, statement, point, inames, sizes)
        cell = f"{name}[{', '.join('?' if c is None else str(c) for c in witness[1])}]"
        raise OutOfBoundsError(
            f"statement '{statement.id}' accesses {_text(name, indices)} at {cell}: "
            f"index {to_text(indices[axis])} of axis {axis} is negative"
            + _for(point, inames, sizes),
            witness=witness[0],
            asked=statement.position.caret() if statement.position else "",
            instead="shift the index, or make the domain start later",
        )

    def _undeclared(self, name: str, why: str) -> InvalidArgumentError:
        declare = (
            f"declare it: temporary_variables=[TemporaryVariable('{name}', shape=...)]"
            if name in self.temporaries
            else f"declare it: kernel_data=[GlobalArg('{name}', shape=...), ...]"
        )
        return InvalidArgumentError(
            f"the shape of '{name}' cannot be inferred: {why}", instead=declare
        )

    # }}}

    def _largest(self, extents: list[Expression]) -> Expression:
        """The maximum of several extents, without those that another always exceeds."""
        if len(extents) == 1:
            return extents[0]
        by_terms: dict[object, Expression] = {}
        constants: dict[object, int] = {}
        for extent in extents:
            try:
                form = linear(extent)
                key: object = frozenset(form.terms.items())
                constant = form.constant
            except _sets.NotAffineError:
                key, constant = extent, 0
            if key not in by_terms or constant > constants[key]:
                by_terms[key], constants[key] = extent, constant
        left = list(by_terms.values())
        if len(left) > 1:
            for extent in list(left):
                # One after the other: of two that are equal, one stays.
                if self._is_exceeded(extent, left):
                    left = [e for e in left if e is not extent]
        if len(left) == 1:
            return left[0]
        return prim.Max(tuple(sorted(left, key=to_text)))

    def _is_exceeded(self, extent: Expression, others: Sequence[Expression]) -> bool:
        mine = _sets.pw_affine(extent)
        for other in others:
            if other is extent:
                continue
            larger = mine.gt_set(_sets.pw_affine(other)) & self.assumptions
            if larger.is_empty():
                return True
        return False


def largest_plus_one(largest: isl.PwAff, assumptions: isl.Set) -> Expression | None:
    """``largest + 1`` as one expression; None where it takes cases that are no min or max."""
    pieces = largest.coalesce().get_pieces()
    if len(pieces) > 1:
        # Cases that the assumptions exclude do not count.
        pieces = [p for p in pieces if not (p[0].params() & assumptions).is_empty()] or pieces
    affs = [piece[1] for piece in pieces]
    expressions = [_sets.from_affine(_plus_one(aff)) for aff in affs]
    distinct = list(dict.fromkeys(expressions))
    if len(distinct) == 1:
        return distinct[0]
    wanted = largest.add_constant_val(isl.Val(1))
    where = wanted.domain() & assumptions
    for kind in (prim.Min, prim.Max):
        candidate = kind(tuple(sorted(distinct, key=to_text)))
        if where.is_subset(_sets.pw_affine(candidate).eq_set(wanted)):
            return candidate
    return None


def _plus_one(aff: isl.Aff) -> isl.Aff:
    return aff.add_constant_val(isl.Val(1))


def _text(name: str, indices: tuple[Expression, ...]) -> str:
    return f"{name}[{', '.join(to_text(i) for i in indices)}]" if indices else name


def _witness(
    kind: str,
    name: str,
    indices: tuple[Expression, ...],
    statement: Statement,
    point: Mapping[str, int],
    inames: Sequence[str],
    sizes: Sequence[str],
) -> tuple[Witness, tuple[int | None, ...]]:
    from loopkit._expression import evaluate

    cell: list[int | None] = []
    for index in indices:
        try:
            cell.append(int(evaluate(index, point)))
        except Exception:
            cell.append(None)
    whole = tuple(c for c in cell if c is not None)
    witness = Witness(
        kind=kind,
        array=name,
        cell=whole if len(whole) == len(cell) else None,
        sink=Instance(statement.id, {i: point[i] for i in inames if i in point}),
        parameters={s: point[s] for s in sizes if s in point},
    )
    return witness, tuple(cell)


def _for(point: Mapping[str, int], inames: Sequence[str], sizes: Sequence[str]) -> str:
    parts = [f"{n}={point[n]}" for n in (*inames, *sizes) if n in point]
    return f" for {', '.join(parts)}" if parts else ""
