"""Sums of products of whole numbers, as polynomials in what arguments hold.

Whole numbers wrap around: what is stored in some bits hangs on these bits of what it is computed
from alone, in whatever wider types that is.  So a sum of products is a sum of products, factors
may leave sums, and ``s = s + e`` is a sum that a loop forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import DType
from loopkit._check.value_types import ValueTypes
from loopkit._expression import Access, access_of, is_constant, variable_names
from loopkit._hidden import copied, hidden
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, TypeCast, subtrahend
from loopkit._poly.dataflow import Dataflow
from loopkit._poly.model import Model
from loopkit._poly.pairs import Undecided, equal
from loopkit._promotion import BOOL, INTEGER, INTEGERS
from loopkit._same import Key, digest_of, key_of, same
from loopkit._types import Kind
from loopkit._verify.term_sets import Slots, TermReader, Terms

_HOPS = 24
_TERMS = 400
"""As many terms may a value have."""
_FACTORS = 128
"""Factors of a term: the sets have names for the indices of each."""
_POWER = 16
_WHOLE: frozenset[Any] = INTEGERS | {BOOL, INTEGER}


@dataclass(frozen=True)
class _Part:
    """A factor that is looked at: an expression in a statement whose inames have a label."""

    expr: Expression
    reader: Statement
    label: str


@dataclass(frozen=True)
class _Product:
    """A number times factors that are known, and others that are still to be looked at."""

    number: int
    known: tuple[_Part, ...]
    waiting: tuple[_Part, ...]
    where: isl.Set
    hops: int = 0


@dataclass(frozen=True)
class _Factor:
    """A factor with slots for its indices in a statement whose inames have a label.

    ``form`` is the factor and its type; None for what is one slot.
    """

    form: tuple[Expression, Kind | None] | None
    indices: tuple[Expression, ...]
    label: str


class WholeTerms(TermReader):
    """The terms that cells of one output have, each with its coefficient."""

    def __init__(self, flow: Dataflow, output: str, dtype: Any) -> None:
        super().__init__(flow)
        self.output = output
        self.dtype: DType = dtype
        self.count = 0
        self.found: dict[tuple[Key, ...], dict[int, isl.Set]] = {}

    def terms(self) -> Terms:
        """The terms: their forms have the coefficient behind them."""
        return {
            (self.output, (*form, key_of(number))): where
            for form, numbers in self.found.items()
            for number, where in numbers.items()
            if number and not where.is_empty()
        }

    def follow(self, writer: Statement, where: isl.Set) -> None:
        """Keep the terms of what a statement stores: ``{ cell··axis, inames·label, sizes }``."""
        todo = [_Product(1, (), (_Part(writer.rhs, writer, copied(0)),), where)]
        while todo:
            product = todo.pop()
            if product.where.is_empty() or not self.reduced(product.number):
                continue
            if not product.waiting:
                self.keep(product)
                continue
            part, *rest = product.waiting
            todo += self.taken_apart(part, replace(product, waiting=tuple(rest)))

    def reduced(self, number: int) -> int:
        """A coefficient as one of as many bits as the output has."""
        return number % (1 << 8 * self.dtype.itemsize)

    def is_whole(self, expr: Expression) -> bool:
        """Whether a value has all bits of the output."""
        kind = self.types.of(expr)
        return kind in INTEGERS and kind.itemsize >= self.dtype.itemsize  # type: ignore[union-attr]

    def taken_apart(self, part: _Part, rest: _Product) -> list[_Product]:
        """A product with what one of its factors is made of."""
        expr = part.expr
        if is_constant(expr):
            if isinstance(expr, bool) or int(expr) != expr:
                raise Undecided(f"'{self.output}' is no sum of whole numbers")
            return [replace(rest, number=rest.number * int(expr))]
        access = access_of(expr, self.model.data)
        if access is not None and access[0] in self.model.kernel.temporary_by_name:
            return self.behind(access, part, rest)
        if self.types.of(expr) == INTEGER and isinstance(expr, (prim.Sum, prim.Product)):
            return self.operands(part, rest)
        if self.is_whole(expr):
            if isinstance(expr, (prim.Sum, prim.Product)):
                return self.operands(part, rest)
            if isinstance(expr, prim.LeftShift) and type(expr.shift) is int:
                bits = 8 * self.types.of(expr).itemsize  # type: ignore[union-attr]
                if 0 <= expr.shift < bits:
                    number = rest.number << expr.shift
                    return [self.with_parts(part, [expr.shiftee], replace(rest, number=number))]
            if isinstance(expr, prim.Power) and expr.exponent in range(1, _POWER):
                return [self.with_parts(part, [expr.base] * int(expr.exponent), rest)]
            if isinstance(expr, prim.BitwiseNot):  # -x - 1
                less = replace(rest, number=-rest.number)
                return [less, self.with_parts(part, [expr.child], less)]
            if isinstance(expr, TypeCast) and self.types.of(expr.operand) in _WHOLE:
                return [self.with_parts(part, [expr.operand], rest)]
        if self.types.of(expr) not in _WHOLE:
            raise Undecided(f"'{self.output}' is no sum of whole numbers")
        return [replace(rest, known=(*rest.known, part))]

    def operands(self, part: _Part, rest: _Product) -> list[_Product]:
        """A product with a factor that is a sum, or a product itself."""
        children = part.expr.children
        if len(children) > 2:
            # From the left: what comes first may have fewer bits than the whole.
            children = (type(part.expr)(children[:-1]), children[-1])
        if isinstance(part.expr, prim.Product):
            return [self.with_parts(part, children, rest)]
        found = [self.with_parts(part, [children[0]], rest)]
        for child in children[1:]:
            subtracted = subtrahend(child)
            if subtracted is None:
                found.append(self.with_parts(part, [child], rest))
            else:
                less = replace(rest, number=-rest.number)
                found.append(self.with_parts(part, [subtracted], less))
        self.count += len(found) - 1
        if self.count > _TERMS:
            raise Undecided(f"what '{self.output}' holds has too many terms")
        return found

    def with_parts(self, part: _Part, exprs: Any, rest: _Product) -> _Product:
        """A product with more factors in the place of one of them."""
        more = tuple(replace(part, expr=expr) for expr in exprs)
        if len(more) + len(rest.waiting) + len(rest.known) > _FACTORS:
            raise Undecided(f"what '{self.output}' holds has too many factors")
        return replace(rest, waiting=(*more, *rest.waiting))

    def behind(self, access: Access, part: _Part, rest: _Product) -> list[_Product]:
        """What a temporary holds: its last store, and updates since."""
        name, indices = access
        self.writers(name)
        self.check_affine(indices)
        kind = self.types.array(name)
        if kind not in INTEGERS or kind.itemsize < self.dtype.itemsize:
            raise Undecided(f"'{name}' has fewer bits than '{self.output}'")
        if rest.hops == _HOPS:
            raise Undecided(f"what '{self.output}' holds is passed on in too many steps")
        found = []
        there = copied(rest.hops + 1)
        for writer, onto in self.behind_read(access, part.reader, rest.where, part.label, there):
            waiting = (_Part(writer.rhs, writer, there), *rest.waiting)
            found.append(replace(rest, waiting=waiting, where=onto, hops=rest.hops + 1))
        return found

    def keep(self, product: _Product) -> None:
        """Add a product of factors over arguments to what is found."""
        factors = sorted(map(self.form_of, product.known), key=lambda one: digest_of(one.form))
        where = product.where
        places: list[list[str]] = []
        for one in factors:
            first = sum(map(len, places))
            places.append([hidden("slot", first + n) for n in range(len(one.indices))])
            self.check_affine(one.indices)
            for name, index in zip(places[-1], one.indices, strict=True):
                value = self.model.named(index, one.label)
                where = where & equal(prim.Variable(name), value)
        keys = tuple(key_of(one.form) for one in factors)
        where = self.once(where)
        for both, cells in self.in_one_order(keys, places, where):
            self.add((*keys, key_of(both)), product.number, cells)

    def form_of(self, part: _Part) -> _Factor:
        """A factor with slots for its indices; a whole number of inames and sizes is one slot."""
        expr = part.expr
        if self.types.of(expr) == INTEGER and _sets.is_affine(expr):
            return _Factor(None, (expr,), part.label)
        slots = Slots(self.model)
        return _Factor((slots(expr), self.types.of(expr)), slots.indices, part.label)

    def in_one_order(
        self, keys: tuple[Key, ...], places: list[list[str]], where: isl.Set
    ) -> list[tuple[str, isl.Set]]:
        """Terms whose factors are alike, in both orders: those that stand there in both, apart."""
        alike = [n for n in range(len(keys) - 1) if keys[n] == keys[n + 1] and places[n]]
        apart = [n for n in alike if not self.are_one(places[n], places[n + 1], where)]
        if not apart:
            return [("", where)]
        if len(apart) > 1:
            raise Undecided(f"factors of '{self.output}' may stand in many orders")
        (at,) = apart
        pairs = dict(zip(places[at], places[at + 1], strict=True))
        swapped = _sets.rename(where, {**pairs, **{b: a for a, b in pairs.items()}})
        both = where & swapped
        once = where - both
        return [("both", both), ("one", once | (swapped - both))]

    def are_one(self, one: list[str], two: list[str], where: isl.Set) -> bool:
        """Whether two factors are of one cell wherever they stand."""
        return all(
            bool(where.is_subset(equal(prim.Variable(a), prim.Variable(b))))
            for a, b in zip(one, two, strict=True)
        )

    def add(self, form: tuple[Key, ...], number: int, where: isl.Set) -> None:
        """Add a coefficient where a term stands, to what there is."""
        parts: list[tuple[int, isl.Set]] = []
        for before, cells in self.found.get(form, {}).items():
            parts += [(before, cells - where), (before + number, cells & where)]
        rest = reduce(isl.Set.subtract, self.found.get(form, {}).values(), where)
        now: dict[int, isl.Set] = {}
        for value, part in (*parts, (number, rest)):
            known = now.get(self.reduced(value))
            now[self.reduced(value)] = part if known is None else known | part
        self.found[form] = now


def as_updates(kernel: Kernel) -> Kernel:
    """A kernel in which ``s = s + e`` of temporaries of whole numbers is an update of a sum."""
    types = ValueTypes(Model(kernel))

    def changed(statement: Statement) -> Statement:
        name, rhs = statement.written, statement.rhs
        is_plain = statement.operation is None and statement.kind == "user"
        if not is_plain or name not in kernel.temporary_by_name or not isinstance(rhs, prim.Sum):
            return statement
        dtype = types.array(name)
        own = [n for n, child in enumerate(rhs.children) if same(child, statement.lhs)]
        rest = [c for n, c in enumerate(rhs.children) if own[:1] != [n]]
        is_sum = len(own) == 1 and not any(name in variable_names(c) for c in rest)
        if dtype not in INTEGERS or not is_sum or types.of(rhs) not in INTEGERS:
            return statement
        value = prim.Sum((0, *(_in_bits(types, term, types.of(rhs)) for term in rest)))
        return replace(statement, rhs=value, operation="sum", kind="update")

    return kernel.with_(statements=tuple(map(changed, kernel.statements)))


def _in_bits(types: ValueTypes, term: Expression, dtype: Any) -> Expression:
    """A term of a sum of some type in that type."""
    subtracted = subtrahend(term)
    if subtracted is not None:
        return prim.Product((-1, _in_bits(types, subtracted, dtype)))
    is_other = isinstance(types.of(term), np.dtype) and types.of(term) != dtype
    return TypeCast(dtype, term) if is_other else term
