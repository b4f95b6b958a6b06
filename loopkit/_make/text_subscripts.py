"""Subscripts of a text that are written in another form: flat ones, and bits that are sums.

Both are read, and gone when a kernel is made.

A flat subscript ``a[[e]]`` is the element at offset ``e`` in the storage order of ``a``: where rows
have 8 elements, ``a[[8*i + j]]`` is
``a[i, j]`` for ``0 <= j < 8``, and ``a[i + j // 8, j % 8]`` for others.  What is a multiple of an
extent counts whole rows, so that extents may be sizes; where the rest may be no place in a row
then, the check of bounds says so, and nothing else is accepted than what is at that offset.

Bits of several inames in one subscript, ``(i & 1) << 2 | i & 2 | i >> 2``, are a sum: where
operands of ``|`` and ``^`` have no bit in common, they add up, and sums are affine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from math import prod

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import is_zero
from loopkit._algebra.make import make_term
from loopkit._algebra.ranges import INTEGERS
from loopkit._algebra.reading import term_of
from loopkit._algebra.terms import ZERO, Term, UnreadableError, name
from loopkit._arrays import ArrayArg, ConstantTable, Nested, Strided, TemporaryVariable
from loopkit._decide import Proven, decide
from loopkit._errors import InvalidArgumentError, SourcePosition
from loopkit._expression import (
    Mapped,
    index_tuple,
    mapped,
    nodes_of,
    substitute,
    to_text,
    variable_names,
    with_indices,
)
from loopkit._make.making import Making
from loopkit._make.text_names import expressions_of, with_expressions
from loopkit._nodes import Expression, FlatIndex, is_integer
from loopkit._poly.pairs import intersection
from loopkit._syntax.items import RawItem, RawSubstitution


def has_flat_subscripts(item: RawItem) -> bool:
    """Whether a part of a text has a flat subscript."""
    return any(isinstance(n, FlatIndex) for e in expressions_of(item) for n in nodes_of(e))


def with_all_indices(making: Making) -> None:
    """Write one index per axis in the place of flat subscripts.

    Raises :class:`InvalidArgumentError` for arrays whose storage order nothing says, and where no
    indices are known to be those of the offset.
    """
    flat = [item for item in making.items if has_flat_subscripts(item)]
    if flat:
        order = _Order(making)
        making.items = [
            with_expressions(i, partial(mapped, subscript=_Unflattener(order, i).subscript))
            if i in flat
            else i
            for i in making.items
        ]


def _is_flat(expr: prim.Subscript) -> bool:
    return isinstance(index_tuple(expr)[0], FlatIndex) if index_tuple(expr) else False


class _Order:
    """In which order arrays are stored, by their declarations and the axes of ``other`` uses."""

    def __init__(self, making: Making) -> None:
        self.making = making
        self.given = making.given
        self.other = {
            node.aggregate.name: len(index_tuple(node))
            for item in making.items
            for e in expressions_of(item)
            for node in nodes_of(e)
            if isinstance(node, prim.Subscript) and not _is_flat(node)
            if isinstance(node.aggregate, prim.Variable)
        }
        shapes = (a.shape or () for a in self.given.arguments.values() if isinstance(a, ArrayArg))
        self.sizes = {name for shape in shapes for e in shape for name in variable_names(e)}

    def extents(self, name: str) -> tuple[list[int], list[Expression]]:
        """The axes of an array, the fastest first, and their extents (of one axis none is asked).

        Raises :class:`ValueError` with the reason where elements are not numbered by that.
        """
        given = self.given
        data = given.temporaries.get(name) or given.arguments.get(name)
        if not isinstance(data, (ArrayArg, TemporaryVariable)):
            data = None
        shape = None if data is None or name in given.unshaped else data.shape
        tags = () if data is None else data.dim_tags or ()
        one_row = tags == (Strided(1),)
        if name in given.strided or not (one_row or all(isinstance(t, Nested) for t in tags)):
            raise ValueError("its strides are declared")
        if isinstance(data, TemporaryVariable) and (any(data.padding) or data.swizzles):
            raise ValueError("its rows are padded, or its elements swizzled")
        if shape is None or data is None or one_row:
            if self.other.get(name, 1) != 1:
                raise ValueError("its shape is not declared")
            return [0], [1]
        if not shape:
            raise ValueError("it is a scalar")
        axes = list(range(len(shape)))
        is_open = isinstance(data, ArrayArg) and not isinstance(data, ConstantTable)
        if data.dim_tags:
            axes.sort(key=lambda axis: data.dim_tags[axis].level)  # type: ignore[index, union-attr]
        elif given.layouts.get(name, self.making.default_order) == "C" or not is_open:
            axes.reverse()
        return axes, [substitute(shape[axis], self.making.fixed) for axis in axes]


class _Unflattener:
    def __init__(self, order: _Order, item: RawItem) -> None:
        self.order = order
        self.item = item
        self.known = order.making.known.set
        self.domains = domains = order.making.domains
        arguments = item.arguments if isinstance(item, RawSubstitution) else ()
        sizes = {*domains.parameters, *order.sizes} - {*order.given.temporaries}
        self.exact = {*domains.inames, *sizes} - {*arguments}

    def subscript(self, expr: prim.Subscript, inside: Mapped) -> Expression:
        """A rule for the accesses of the item."""
        if not _is_flat(expr):
            return with_indices(expr, inside)
        name = expr.aggregate.name
        offset = inside(index_tuple(expr)[0].offset)
        try:
            axes, extents = self.order.extents(name)
            indices = dict(zip(axes, self._indices(offset, extents), strict=True))
        except ValueError as error:
            position: SourcePosition = self.item.position
            raise InvalidArgumentError(
                f"'{name}[[{to_text(offset)}]]' is no element that is known: {error}",
                asked=position.caret(),
                instead=f"declare the shape of '{name}', or write one index per axis",
            ) from None
        return prim.Subscript(expr.aggregate, tuple(indices[a] for a in range(len(axes))))

    def _indices(self, offset: Expression, extents: list[Expression]) -> list[Expression]:
        """The places of an offset along axes, the fastest first."""
        found: list[Expression] = []
        for extent in extents[:-1]:
            rows, rest = self._divided(offset, extent)
            found.append(rest)
            offset = rows
        return [*found, offset]

    def _divided(self, offset: Expression, extent: Expression) -> tuple[Expression, Expression]:
        """``rows, rest`` with ``rows * extent + rest`` the offset."""
        has_data = not variable_names(offset) <= self.exact
        rows, rest = (0, offset) if has_data else _split(offset, extent)
        if isinstance(extent, int):
            if extent < 1 or (not has_data and self._is_within(rest, extent)):
                return rows, rest
            more = prim.FloorDiv(rest, extent)
            return _added([rows, more]), prim.Remainder(rest, extent)
        if has_data or not _is_affine(rest):
            raise ValueError(f"'{to_text(rest)}' cannot be divided by the size {to_text(extent)}")
        return rows, rest

    def _is_within(self, rest: Expression, extent: int) -> bool:
        if not _is_affine(rest):
            return False
        value, names, mine = _sets.pw_affine(rest), variable_names(rest), []
        for domain in reversed(self.domains.domains):
            if not names.isdisjoint(domain.inames):
                mine.append(domain.set)
                names |= domain.parameters
        around = intersection([self.known, *mine])
        least, end = _sets.pw_affine(0), _sets.pw_affine(extent)
        return bool((around & (value.lt_set(least) | value.ge_set(end))).is_empty())


def _is_affine(expr: Expression) -> bool:
    try:
        _sets.pw_affine(expr)
    except _sets.NotAffineError:
        return False
    return True


def _split(offset: Expression, extent: Expression) -> tuple[Expression, Expression]:
    """What is a multiple of ``extent``, divided by it, and the rest."""
    number, names = _factors(extent)
    if number < 1:
        return 0, offset
    rows: list[Expression] = []
    rest: list[Expression] = []
    for term in _terms(offset):
        count, factors = _factors(term)
        if not factors and not names:
            rows.append(count // number)
            rest.append(count % number)
            continue
        left = list(factors)
        for factor in names:
            if factor in left:
                left.remove(factor)
        if count % number or len(left) + len(names) != len(factors):
            rest.append(term)
        else:
            rows.append(_times(count // number, left))
    return _added(rows), _added(rest)


def _terms(expr: Expression) -> list[Expression]:
    if isinstance(expr, prim.Sum):
        return [term for child in expr.children for term in _terms(child)]
    return [expr]


def _factors(expr: Expression) -> tuple[int, list[Expression]]:
    """The number in a product, and its other factors."""
    if isinstance(expr, int):
        return expr, []
    if not isinstance(expr, prim.Product):
        return 1, [expr]
    parts = [_factors(child) for child in expr.children]
    return prod(n for n, _ in parts), [f for _, several in parts for f in several]


def _times(number: int, factors: Collection[Expression]) -> Expression:
    if not factors or not number:
        return number
    parts = (*factors,) if number == 1 else (number, *factors)
    return parts[0] if len(parts) == 1 else prim.Product(parts)


def _added(terms: Iterable[Expression]) -> Expression:
    parts = tuple(t for t in terms if not (isinstance(t, int) and t == 0))
    return prim.Sum(parts) if len(parts) > 1 else parts[0] if parts else 0


def with_sums_of_bits(making: Making) -> None:
    """Add operands without common bits, in what holds no data."""
    domains, known = making.domains.domains, making.known.set

    def named(expr: Expression) -> Term | None:
        if not isinstance(expr, prim.Variable):
            return None
        home = next((d for d in domains if expr.name in d.inames), None)
        low, high = (None, None) if home is None else home.range_of(expr.name, known)
        least, most = INTEGERS["int64"]
        return name(expr.name, least if low is None else low, most if high is None else high)

    def summed(expr: prim.BitwiseOr | prim.BitwiseXor, inside: Mapped) -> Expression:
        parts = tuple(map(inside, expr.children))
        # A mask of one unknown is affine.
        is_sum = sum(not is_integer(part) for part in parts) > 1 and _are_apart(
            expr.children, named
        )
        return prim.Sum(parts) if is_sum else type(expr)(parts)

    changed = partial(mapped, bitwise_or=summed, bitwise_xor=summed)
    making.items = [with_expressions(item, changed) for item in making.items]


def _are_apart(exprs: Sequence[Expression], named: Callable[[Expression], Term | None]) -> bool:
    """Whether numbers have no bit in common, where no data decide what they are."""
    try:
        terms = [term_of(expr, named) for expr in exprs]
    except UnreadableError:
        return False
    before = ZERO
    for term in terms:
        if term.sort != "Z" or not isinstance(
            decide(is_zero(make_term("and", before, term))), Proven
        ):
            return False
        before = make_term("or", before, term)
    return True
