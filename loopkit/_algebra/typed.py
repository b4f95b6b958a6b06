"""Translation of typed expressions to terms: NumPy's promotion, and integers that wrap around."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _folding
from loopkit import _promotion as dt
from loopkit._algebra.conditions import choose, conjunction, disjunction, is_zero, negation
from loopkit._algebra.make import make_term
from loopkit._algebra.reading import OPERATIONS, compared, term_of
from loopkit._algebra.terms import (
    ONE,
    SORTS,
    ZERO,
    Term,
    UnreadableError,
    constant,
    node,
    number,
    truth,
)
from loopkit._device_functions import OwnFunction
from loopkit._errors import TypeInferenceError
from loopkit._expression import MOST_NESTED, access_of, nesting, parts_of
from loopkit._functions import BITS
from loopkit._nodes import Expression, TypeCast, subtrahend
from loopkit._promotion import DType, Typed
from loopkit._same import digest_of
from loopkit._types import Typer

_WHOLE = dt.INTEGERS | {dt.BOOL}
_SORT_OF: Mapping[DType, str] = {
    dt.BOOL: "B",
    **dict.fromkeys(dt.INTEGERS, "Z"),
    **{dtype: sort for sort, dtype in SORTS.items()},
}
_HIGHEST_POWER = 16

Read = Callable[[str, tuple[Expression, ...]], Term]
"""What an array, or a scalar of data, holds at some indices."""


def sort_of(dtype: DType) -> str:
    """The sort of the values of a type; raises :class:`UnreadableError` for records."""
    if (found := _SORT_OF.get(dtype)) is None:
        raise UnreadableError(dtype)
    return found


class TypedReader:
    """Reads expressions: ``types`` are those of names, and ``read`` gives what arrays hold."""

    def __init__(self, types: Mapping[str, Typed], read: Read) -> None:
        self.types = types
        self.read = read

    def kind(self, expr: Expression) -> Typed:
        """The type of an expression, or its value where that is known and has no type."""
        try:
            return Typer(self.types.__getitem__)(expr)
        except (KeyError, TypeInferenceError):
            raise UnreadableError(expr) from None

    def stored(self, expr: Expression, dtype: DType) -> Term:
        """A value as a variable of some type holds it."""
        if nesting(expr, in_pairs=True) > MOST_NESTED:
            raise UnreadableError(expr)
        return self.converted(expr, dtype)

    def converted(self, expr: Expression, dtype: DType) -> Term:
        """The value of an expression, converted to a type."""
        kind = self.kind(expr)
        if isinstance(kind, np.dtype):
            return _converted(self.value(expr, kind), kind, dtype)
        if isinstance(expr, prim.If):
            sides = (self.converted(side, dtype) for side in (expr.then, expr.else_))
            return choose(self.condition(expr.condition), *sides)
        if isinstance(kind, (dt.RunTime, dt.Choice)):
            return _of_whole(self.index(expr), dtype)
        return _known(kind, dtype)

    def index(self, expr: Expression) -> Term:
        """A whole number without a type, as a subscript is: it wraps around nowhere."""
        found = term_of(expr, self._typed_part)
        return choose(found, ONE, ZERO) if found.sort == "B" else found

    def _typed_part(self, expr: Expression) -> Term | None:
        """The value of what has a type, or is a condition."""
        if isinstance(expr, (prim.Comparison, prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot)):
            return self.condition(expr)
        if isinstance(expr, (TypeCast, prim.Call, prim.Subscript, prim.Variable, np.generic)):
            return (
                self._whole(expr, kind) if isinstance(kind := self.kind(expr), np.dtype) else None
            )
        return None

    def _whole(self, expr: Expression, kind: DType) -> Term:
        if kind not in _WHOLE:
            raise UnreadableError(expr)
        value = self.value(expr, kind)
        return choose(value, ONE, ZERO) if kind == dt.BOOL else value

    def condition(self, expr: Expression) -> Term:
        """Where an expression is true."""
        match expr:
            case prim.LogicalNot():
                return negation(self.condition(expr.child))
            case prim.LogicalAnd():
                return conjunction(*map(self.condition, expr.children))
            case prim.LogicalOr():
                return disjunction(*map(self.condition, expr.children))
            case prim.Comparison():
                return self.comparison(expr)
        return self.converted(expr, dt.BOOL)

    def comparison(self, expr: prim.Comparison) -> Term:
        """Where a comparison holds: whole numbers are compared as they are, of whatever types."""
        sides = expr.left, expr.right
        kinds = [self.kind(side) for side in sides]
        if all(_is_whole(kind) for kind in kinds):
            values = (
                self._whole(e, k) if isinstance(k, np.dtype) else self.index(e)
                for e, k in zip(sides, kinds, strict=True)
            )
            return compared(expr.operator, *values)
        if any(isinstance(kind, np.dtype) for kind in kinds):
            common = dt.promote(*kinds)
            return compared(expr.operator, *(self.converted(side, common) for side in sides))
        if any(isinstance(kind, (dt.RunTime, dt.Choice)) for kind in kinds):
            raise UnreadableError(expr)
        return truth(dt.COMPARE[expr.operator](*kinds))

    def value(self, expr: Expression, kind: DType) -> Term:
        """The value of an expression that has a type."""
        match expr:
            case np.generic():
                return _known(expr.item(), kind)
            case prim.Variable() | prim.Subscript():
                access = access_of(expr, self.types)
                assert access is not None
                return self.read(*access)
            case TypeCast():
                return self.converted(expr.operand, kind)
            case prim.If():
                sides = (self.converted(side, kind) for side in (expr.then, expr.else_))
                return choose(self.condition(expr.condition), *sides)
            case prim.Comparison() | prim.LogicalAnd() | prim.LogicalOr() | prim.LogicalNot():
                return self.condition(expr)
            case prim.BitwiseNot():
                value = self.converted(expr.child, kind)
                return negation(value) if kind == dt.BOOL else _wrapped("inv", kind, value)
            case prim.Power():
                return self.power(expr.base, expr.exponent, kind)
            case prim.Call():
                return self.call(expr, kind)
        if type(expr) not in dt.FOLD:
            raise UnreadableError(expr)
        return self.operation(expr, kind)

    def operation(self, expr: Any, kind: DType) -> Term:
        """An operation of two operands, or of many, from left to right."""
        *first, right = parts_of(expr)
        left = first[0] if len(first) == 1 else type(expr)(tuple(first))
        subtracted = subtrahend(right) if isinstance(expr, prim.Sum) else None
        word = _WORDS.get(type(expr)) or OPERATIONS[type(expr)]
        if type(left) is int and left == -1 and word == "mul":
            return _negated(self.converted(right, kind), kind)
        if word in ("shl", "shr") and not isinstance(self.kind(right), np.dtype):
            if not (type(right) is int and 0 <= right < 8 * kind.itemsize):
                raise UnreadableError(expr)
            return _wrapped(word, kind, self.converted(left, kind), number(right))
        one = self.converted(left, self._beside(left, kind))
        other = right if subtracted is None else subtracted
        two = self.converted(other, self._beside(other, kind))
        if subtracted is not None and kind in dt.COMPLEXES:
            return make_term("sub", one, two, sort=sort_of(kind))
        if subtracted is not None:
            two = _negated(two, kind)
        if kind in dt.INTEGERS:
            return _wrapped(word, kind, one, two)
        if kind != dt.BOOL:
            return make_term(word, one, two, sort=sort_of(kind))
        if word not in _OF_TRUTH:
            raise UnreadableError(expr)
        return _OF_TRUTH[word](one, two)

    def _beside(self, expr: Expression, dtype: DType) -> DType:
        """The type of an operand: a real number beside a complex one stays real."""
        if dtype not in dt.COMPLEXES:
            return dtype
        kind = self.kind(expr)
        known = kind in dt.COMPLEXES if isinstance(kind, np.dtype) else dt.is_complex(kind)
        return dtype if known else dt.real_of(dtype)

    def power(self, base: Expression, exponent: Expression, kind: DType) -> Term:
        """A power; squares and roots as they are computed."""
        value, sort = self.converted(base, kind), sort_of(kind)
        if type(exponent) is int and kind in dt.INTEGERS and 0 <= exponent <= _HIGHEST_POWER:
            return _wrapped("mul", kind, *[value] * exponent)
        if type(exponent) is int and exponent == 2 and kind not in dt.INTEGERS:
            return make_term("mul", value, value, sort=sort)
        if type(exponent) is float and exponent == 0.5 and kind not in dt.INTEGERS:
            return make_term("sqrt", value, sort=sort)
        weak = "" if isinstance(self.kind(exponent), np.dtype) else type(exponent).__name__
        found = node("pow", sort, (value, self.converted(exponent, kind)), weak)
        return _wrapped("add", kind, found) if sort == "Z" else found

    def call(self, expr: Any, kind: DType) -> Term:
        """A call of a function of the language, or of a user's."""
        name, sort = expr.function.name, sort_of(kind)
        kinds = [self.kind(p) for p in expr.parameters]
        if isinstance(expr.function, OwnFunction):
            own = expr.function.overload(kinds, lambda: "")
            given = map(self.converted, expr.parameters, own.types)
            return node("call", sort, given, (digest_of(expr.function), kind.name))
        if name == "pow":
            base, exponent = expr.parameters
            return self.power(base, exponent, kind)
        common = reduce(dt.promote, kinds, dt.BOOL)
        values = [self.converted(p, common) for p in expr.parameters]
        if name in BITS:
            return node("call", sort, values, (f"{name} of {common.name}", kind.name))
        if kind in dt.INTEGERS:
            if name in (*_folding.ROUNDING, "conj", "real"):
                return values[0]
            if name not in _OF_WHOLE:
                raise UnreadableError(expr)
            return _wrapped(_OF_WHOLE[name], kind, *values)
        if name not in _folding.PREDICATES and common in _WHOLE:
            values = [_converted(v, common, kind) for v in values]
        return make_term("abs" if name == "fabs" else name, *values, sort=sort)


_WORDS: Mapping[type, str] = {prim.Quotient: "div"}
_OF_WHOLE = {"abs": "abs", "fabs": "abs", "sign": "sign", "fmin": "min", "fmax": "max"}
_OF_TRUTH: Mapping[str, Callable[[Term, Term], Term]] = {
    **dict.fromkeys(("add", "or", "max"), disjunction),
    **dict.fromkeys(("mul", "and", "min"), conjunction),
    "xor": lambda a, b: choose(a, negation(b), b),
}


def _is_whole(kind: Typed) -> bool:
    if isinstance(kind, np.dtype):
        return kind in _WHOLE
    return dt.run_time(kind) == dt.INTEGER


def _known(value: Any, dtype: DType) -> Term:
    """A number of Python's in a type."""
    sort = sort_of(dtype)
    if sort == "B":
        return truth(value != 0)
    if sort != "Z":
        return constant(value, sort)
    if isinstance(value, complex) or value != value or abs(value) == float("inf"):
        raise UnreadableError(value)
    return make_term("wrap", number(int(value)), data=dtype.name)


def _wrapped(word: str, dtype: DType, *values: Term) -> Term:
    return make_term("wrap", make_term(word, *values), data=dtype.name)


def _negated(value: Term, dtype: DType) -> Term:
    if dtype == dt.BOOL:
        raise UnreadableError("a negative truth value")
    return (
        _wrapped("neg", dtype, value)
        if dtype in dt.INTEGERS
        else make_term("neg", value, sort=value.sort)
    )


def _of_whole(value: Term, dtype: DType) -> Term:
    """A whole number in a type."""
    sort = sort_of(dtype)
    if sort == "Z":
        return make_term("wrap", value, data=dtype.name)
    return negation(is_zero(value)) if sort == "B" else make_term("tofloat", value, sort=sort)


def _converted(value: Term, source: DType, target: DType) -> Term:
    """A value of one type in another."""
    if source == target:
        return value
    here, there = sort_of(source), sort_of(target)
    if here == "B":
        return choose(value, _known(1, target), _known(0, target))
    if here == "Z":
        return _of_whole(value, target)
    if there == "B":
        return negation(make_term("eq", value, constant(0, here), sort="B"))
    if there != "Z":
        return make_term("cast", value, sort=there)
    if here[0] == "C":
        raise UnreadableError("a complex number as a whole one")
    return make_term("toint", value, data=target.name)
