"""Expressions that read arrays, as affine expressions over names for the values read.

``perm[i] + 1`` becomes ``v + 1`` with ``v`` naming the value ``perm[i]``. Other expressions that
are not affine (``i*n``, ``f(i)``) get a name as well, as values of a function: equal arguments
give equal values. For products and quotients of integers, more is known (:mod:`.constraints`);
sums of products have a normal form, whatever their order.

Data that the kernel writes may change between two instances. The expressions of one instance form
one *side*; a varying name has the same value only within a side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import gcd, isqrt
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.limits import Limits
from loopkit._device_functions import OwnFunction
from loopkit._expression import index_tuple, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden, is_hidden, plain
from loopkit._intervals import Interval
from loopkit._nodes import Expression, TypeCast
from loopkit._polynomials import (
    Monomial,
    NoPolynomialError,
    Polynomial,
    in_order,
    polynomial,
    times,
)
from loopkit._same import key_of

PRODUCT, QUOTIENT, PART = ("product",), ("quotient",), ("part",)
"""Functions of two whole numbers of which more is known: a factor, and what it multiplies; and
what divides and is divided, by another whole number or by one that is a constant.
"""

_UNKNOWN = Limits()
_CONNECTIVES = (prim.LogicalAnd, prim.LogicalOr)


@dataclass(frozen=True)
class Read:
    """``name`` names the value of ``function`` at ``arguments``, which are affine.

    ``array`` is the array that is read; None for other functions. ``limits`` are bounds of the
    value, if there are any.
    """

    name: str
    function: tuple[Any, ...]
    arguments: tuple[Expression, ...]
    limits: Interval | None = None

    @property
    def array(self) -> str | None:
        """The array that is read, or None."""
        return self.function[1] if self.function[0] == "array" else None


class Reads:
    """Gives names to values while it goes through expressions.

    ``reads`` has each value once: the same array at the same indices has one
    name, in whatever expression it stands.  The values of ``varying`` names
    differ between instances; None stands for all arrays that are not ``known``.  The values of
    ``integers`` are whole numbers; None stands for all names.  ``sizes`` are what products are
    multiples of, where they are.
    """

    def __init__(
        self,
        varying: frozenset[str] | None,
        known: frozenset[str],
        integers: frozenset[str] | None = None,
        sizes: frozenset[str] = frozenset(),
        limits: Limits = _UNKNOWN,
    ) -> None:
        self._varying = varying
        self._known = known
        self._integers = integers
        self._sizes = frozenset(map(prim.Variable, sizes))
        self._limits = limits
        self._own: dict[str, bool] = {}
        self._side = 0
        self._found: dict[tuple[Any, ...], Read] = {}
        self._common: Counter[Expression] = Counter()
        self.from_zero = False
        self._divisors: dict[Expression, None] = {}
        self.scales: dict[Expression, set[int]] = defaultdict(set)
        self._multiples: dict[Expression, set[int]] = defaultdict(set)

    def expect(self, *sides: Iterable[Expression], from_zero: bool = False) -> None:
        """Say what is to come, and will be compared: the expressions of each side.

        What most products have in common is taken out of each, so that they can be compared;
        where a side has none, or with ``from_zero``, with zero.
        """
        factors = [self._factors(side) for side in sides]
        self._common, self.from_zero = sum(factors, Counter()), from_zero
        for name in self._common:
            if from_zero or not all(name in counted for counted in factors):
                self._multiples[name].add(0)

    def _factors(self, expressions: Iterable[Expression]) -> Counter[Expression]:
        """How many products names and the like are factors of."""
        found: Counter[Expression] = Counter()
        for expr in expressions:
            with suppress(NoPolynomialError):
                for factors in polynomial(expr, lambda leaf: leaf):
                    found.update(set(factors) if len(factors) > 1 else ())
        return found

    @property
    def multiples(self) -> Mapping[Expression, set[int]]:
        """The numbers that names are multiplied by where they stand alone."""
        return self._multiples

    @property
    def reads(self) -> tuple[Read, ...]:
        """All values that have a name, inner ones before those that they lead to."""
        return tuple(self._found.values())

    def _varies(self, name: str, *, subscripted: bool) -> bool:
        if self._varying is None:
            return subscripted and name not in self._known
        return name in self._varying

    def side(self, number: int, expr: Expression) -> Expression:
        """:meth:`affine` for an expression of one of several instances."""
        self._side = number
        return self.affine(expr)

    def affine(self, expr: Expression) -> Expression:
        """``expr`` over names and names of values, something that ``_sets.pw_affine`` takes."""
        if isinstance(expr, (bool, np.bool_)) or expr is None:
            return self._value(("constant", repr(expr)), ())
        if isinstance(expr, (int, np.integer)):
            return int(expr)
        if isinstance(expr, prim.Variable):
            if self._varies(expr.name, subscripted=False):
                limits = self._limits.narrow(expr)
                return self._value(("varying", expr.name, self._side), (), limits)
            return expr
        if isinstance(expr, prim.Subscript):
            array = expr.aggregate.name
            indices = tuple(self.affine(i) for i in index_tuple(expr))
            limits = self._limits.narrow(expr)
            if self._varies(array, subscripted=True):
                return self._value(("varying", array, self._side), indices, limits)
            return self._value(("array", array), indices, limits)
        if isinstance(expr, (prim.Sum, prim.Product)):
            return self._polynomial(expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr)
        if isinstance(expr, (prim.Min, prim.Max)):
            return type(expr)(tuple(self.affine(c) for c in expr.children))
        if isinstance(expr, prim.If):
            condition = self.condition(expr.condition)
            then, otherwise = self.affine(expr.then), self.affine(expr.else_)
            if condition is None:
                return self._unknown(expr)
            return prim.If(condition, then, otherwise)
        return self._unknown(expr)

    def _polynomial(self, expr: prim.Sum | prim.Product) -> Expression:
        try:
            return self._linear(polynomial(expr, self.affine, self._divisor))
        except NoPolynomialError:
            return self._nameless(expr)

    def _divisor(self, expr: Expression) -> Expression | None:
        """A sum that is divided by elsewhere, and stays in one piece as a factor."""
        found = self.affine(expr) if self._divisors else None
        return found if found in self._divisors else None

    def _linear(self, terms: Polynomial) -> Expression:
        """A sum of products, each product a name: those that have a factor in common are one."""
        ordered = sorted(terms.items(), key=_text_of_term)
        found: list[Expression] = []
        alone = {factors: number for factors, number in ordered if len(factors) <= 1}
        rest = {factors: number for factors, number in ordered if len(factors) > 1}
        if (part := _root(rest)) is not None:
            most, root = part
            squares, one = times(root, root), self._linear(root)
            rest = {f: n for f, n in rest.items() if f not in squares}
            found.append(_term(most, self._times(one, one)))
        while rest:
            common = self._most_common(rest)
            inside = {f: n for f, n in rest.items() if common in f}
            rest = {f: n for f, n in rest.items() if f not in inside}
            most = gcd(*inside.values())
            most = -most if next(iter(inside.values())) < 0 else most
            if (common,) in alone and alone[common,] % most == 0:
                inside[common,] = alone.pop((common,))
            other = self._linear({_without(f, common): n // most for f, n in inside.items()})
            product = self._times(other, common)
            if {other, common} <= self._sizes:
                self.scales[product].add(abs(most))
            found.append(_term(most, product))
        for factors, number in alone.items():
            if factors:
                self._multiples[factors[0]].add(number)
            found.append(_term(number, factors[0]) if factors else number)
        if not found:
            return 0
        return found[0] if len(found) == 1 else prim.Sum(tuple(found))

    def _most_common(self, terms: Polynomial) -> Expression:
        here = Counter(factor for factors in terms for factor in set(factors))
        divisors = {by: number for number, by in enumerate(self._divisors)}

        def key(of: Expression) -> tuple[Any, ...]:
            place = divisors.get(of, len(divisors))
            return place, of not in self._sizes, -self._common[of], -here[of], to_text(of)

        return min(here, key=key)

    def _times(self, factor: Expression, by: Expression) -> Expression:
        if self._are_whole((factor, by)):
            return self._value(PRODUCT, (factor, by))
        # Factors in one order, so that i*n and n*i are the same function's value.
        return self._value(("times",), tuple(sorted((factor, by), key=to_text)))

    def _are_whole(self, values: Iterable[Expression]) -> bool:
        """Whether values are whole numbers, of which more is known than of floating ones."""
        return all(self._is_integer(n) for value in values for n in variable_names(value))

    def _is_integer(self, name: str) -> bool:
        if name in self._own:
            return self._own[name]
        return self._integers is None or is_hidden(plain(name)) or plain(name) in self._integers

    def _is_of_sizes(self, expr: Expression) -> bool:
        """Whether an expression is a sum of sizes: what is divided may be a factor elsewhere."""
        names = set(map(prim.Variable, variable_names(expr)))
        return bool(names) and names <= self._sizes and _sets.is_affine(expr)

    def _division(self, expr: prim.FloorDiv | prim.Remainder) -> Expression:
        numerator, denominator = self.affine(expr.numerator), self.affine(expr.denominator)
        whole = isinstance(denominator, (int, np.integer))
        if whole and denominator > 0 and self._is_of_sizes(numerator):
            part = self._value(PART, (numerator, int(denominator)))
            self._sizes |= {part}
            if isinstance(expr, prim.FloorDiv):
                return part
            return prim.Sum((numerator, prim.Product((-int(denominator), part))))
        if whole and denominator != 0 and _sets.is_pw_affine(numerator):
            return type(expr)(numerator, int(denominator))
        if whole or not self._are_whole((numerator, denominator)):
            return self._value((type(expr).__name__,), (numerator, denominator))
        self._divisors[denominator] = None
        quotient = self._value(QUOTIENT, (numerator, denominator))
        back = self._times(quotient, denominator)
        if self.from_zero:
            self._multiples[denominator].add(0)
        if isinstance(expr, prim.FloorDiv):
            return quotient
        return prim.Sum((numerator, prim.Product((-1, back))))

    def condition(self, expr: Expression) -> Expression | None:
        """An affine condition over names and values, or None."""
        if isinstance(expr, prim.Comparison):
            return prim.Comparison(self.affine(expr.left), expr.operator, self.affine(expr.right))
        if isinstance(expr, _CONNECTIVES):
            parts = [self.condition(c) for c in expr.children]
            return None if None in parts else type(expr)(tuple(parts))
        if isinstance(expr, prim.LogicalNot):
            part = self.condition(expr.child)
            return None if part is None else prim.LogicalNot(part)
        return None

    def _unknown(self, expr: Expression) -> Expression:
        """A name for something that is not affine at all."""
        if isinstance(expr, prim.Call):
            function, arguments = expr.function, tuple(map(self.affine, expr.parameters))
            if not isinstance(function, OwnFunction):
                return self._value(("call", function.name), arguments)
            if len(function.overloads) == 1:  # else types tell which of them is called
                return self._value(("call", function.name, key_of(function)), arguments)
        if isinstance(expr, TypeCast):
            operand, whole = self.affine(expr.operand), self._limits.of(expr.operand)
            if whole is not None and whole == self._limits.of(expr):
                return operand  # the type holds it
            return self._value(("cast", expr.dtype.name), (operand,), self._limits.narrow(expr))
        return self._nameless(expr)

    def _nameless(self, expr: Expression) -> Expression:
        # Equal only to itself, word for word, in one instance: that is all that is known.
        return self._value(("expression", key_of(expr), self._side), (), self._limits.narrow(expr))

    def _value(
        self,
        function: tuple[Any, ...],
        arguments: tuple[Expression, ...],
        limits: Interval | None = None,
    ) -> Expression:
        key = (function, tuple(to_text(a) for a in arguments))
        found = self._found.get(key)
        if found is None:
            name = hidden("read", len(self._found))
            found = self._found[key] = Read(name, function, arguments, limits)
            self._own[name] = self._is_whole(function)
        return prim.Variable(found.name)

    def _is_whole(self, function: tuple[Any, ...]) -> bool:
        if function in (PRODUCT, QUOTIENT, PART):
            return True
        named = function[0] in ("array", "varying")
        return named and (self._integers is None or function[1] in self._integers)


def _root(terms: Polynomial) -> tuple[int, Polynomial] | None:
    """A sum of names a multiple of whose square is part of a polynomial; None if there is none.

    1 and ``8*o + r`` of ``64*o*o + 16*o*r + r*r + o*m``.
    """
    own = {f[0]: n for f, n in terms.items() if len(f) == 2 and f[0] == f[1]}
    if not own:
        return None
    most = gcd(*own.values())
    most = -most if next(iter(own.values())) < 0 else most
    first = next(iter(own))
    found: dict[Monomial, int] = {}
    for name, number in own.items():
        side = -1 if terms.get(in_order((first, name)), 0) * most < 0 and name != first else 1
        found[name,] = side * isqrt(max(number // most, 0))
    square = times(found, found)
    is_part = all(terms.get(f) == most * n for f, n in square.items())
    return (most, found) if is_part else None


def _term(number: int, factor: Expression) -> Expression:
    return factor if number == 1 else prim.Product((number, factor))


def _text_of_term(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    factors, _ = term
    return len(factors), [to_text(f) for f in factors]


def _without(factors: Monomial, one: Expression) -> Monomial:
    position = factors.index(one)
    return factors[:position] + factors[position + 1 :]
