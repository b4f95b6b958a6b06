"""Expressions that read arrays, as affine expressions of the values that are read.

``perm[i] + 1`` becomes ``v + 1`` with ``v`` a name for the value ``perm[i]``.  What
is not affine for another reason (``i*n``, ``f(i)``) becomes a name as well: one
of a function nobody knows, which gives equal results for equal arguments.

Data that the kernel itself writes may have changed between two instances.  The
expressions of one instance are of one *side*; a varying name has the same value
only within a side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._device_functions import OwnFunction
from loopkit._expression import index_tuple, to_text
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._nodes import Expression, TypeCast
from loopkit._same import key_of

_CONNECTIVES = (prim.LogicalAnd, prim.LogicalOr)


@dataclass(frozen=True)
class Read:
    """``name`` stands for the value of ``function`` at ``arguments``, which are affine.

    ``array`` is the array that is read; None for a function that is none.
    """

    name: str
    function: tuple[Any, ...]
    arguments: tuple[Expression, ...]

    @property
    def array(self) -> str | None:
        """The array that is read, or None."""
        return self.function[1] if self.function[0] == "array" else None


class Reads:
    """Gives names to values while it goes through expressions.

    ``reads`` has each value once: the same array at the same indices has one
    name, in whatever expression it stands.  The values of ``varying`` names
    differ between instances; None stands for all arrays that are not ``known``.
    """

    def __init__(self, varying: frozenset[str] | None, known: frozenset[str]) -> None:
        self._varying = varying
        self._known = known
        self._side = 0
        self._found: dict[tuple[Any, ...], Read] = {}

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
                return self._value(("varying", expr.name, self._side), ())
            return expr
        if isinstance(expr, prim.Subscript):
            array = expr.aggregate.name
            indices = tuple(self.affine(i) for i in index_tuple(expr))
            if self._varies(array, subscripted=True):
                return self._value(("varying", array, self._side), indices)
            return self._value(("array", array), indices)
        if isinstance(expr, prim.Sum):
            return prim.Sum(tuple(self.affine(c) for c in expr.children))
        if isinstance(expr, prim.Product):
            return self._product(expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr)
        if isinstance(expr, (prim.Min, prim.Max)):
            return type(expr)(tuple(self.affine(c) for c in expr.children))
        if isinstance(expr, prim.If):
            condition = self._condition(expr.condition)
            then, otherwise = self.affine(expr.then), self.affine(expr.else_)
            if condition is None:
                return self._unknown(expr)
            return prim.If(condition, then, otherwise)
        return self._unknown(expr)

    def _product(self, expr: prim.Product) -> Expression:
        factor, rest = 1, []
        for child in expr.children:
            if isinstance(child, (int, np.integer)) and not isinstance(child, bool):
                factor *= int(child)
            else:
                rest.append(self.affine(child))
        if not rest:
            return factor
        if len(rest) > 1:
            # Factors in one order, so that i*n and n*i are the same function's value.
            rest = [self._value(("product", len(rest)), tuple(sorted(rest, key=to_text)))]
        return rest[0] if factor == 1 else prim.Product((factor, rest[0]))

    def _division(self, expr: prim.FloorDiv | prim.Remainder) -> Expression:
        numerator, denominator = self.affine(expr.numerator), expr.denominator
        whole = isinstance(denominator, (int, np.integer)) and not isinstance(denominator, bool)
        if whole and denominator != 0 and _sets.is_affine(numerator):
            return type(expr)(numerator, int(denominator))
        kind = type(expr).__name__
        return self._value((kind,), (numerator, self.affine(denominator)))

    def _condition(self, expr: Expression) -> Expression | None:
        """An affine condition over names and values, or None."""
        if isinstance(expr, prim.Comparison):
            return prim.Comparison(self.affine(expr.left), expr.operator, self.affine(expr.right))
        if isinstance(expr, _CONNECTIVES):
            parts = [self._condition(c) for c in expr.children]
            return None if None in parts else type(expr)(tuple(parts))
        if isinstance(expr, prim.LogicalNot):
            part = self._condition(expr.child)
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
            return self._value(("cast", expr.dtype.name), (self.affine(expr.operand),))
        # Equal only to itself, word for word, in one instance: that is all that is known.
        return self._value(("expression", to_text(expr), self._side), ())

    def _value(self, function: tuple[Any, ...], arguments: tuple[Expression, ...]) -> Expression:
        key = (function, tuple(to_text(a) for a in arguments))
        found = self._found.get(key)
        if found is None:
            name = hidden("read", len(self._found))
            found = self._found[key] = Read(name, function, arguments)
        return prim.Variable(found.name)
