"""Formal values: what a cell was computed from, in the place of what it holds.

Numbers agree by chance, and where nobody looks at them.  A formal value is a number for a whole
computation, its operations and the inputs they began with, so that two are equal where one
thing was computed.  Terms of a reduction add up in any order, and nothing is added twice.
Conditions and subscripts are those of the data.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from seams import (
    Component,
    TypeCast,
    access_of,
    evaluate,
    is_constant,
    is_integer_arithmetic,
    is_literal,
    key_of,
    parts_of,
    variable_names,
)

from loopkit import Kernel, Statement

Values = Mapping[str, int]
Row = tuple[int, ...]
_BITS = 64
_ALL = (1 << _BITS) - 1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def mixed(*parts: object) -> int:
    """A number for some parts; other parts have another one."""
    return hash(("formal", *parts)) & _ALL


def cells(name: str, shape: Sequence[int], salt: int = 0) -> Any:
    """Formal values for the cells of an array that nothing was written to."""
    numbers = [mixed(name, salt, number) for number in range(int(np.prod(shape, dtype=int)))]
    return np.array(numbers, dtype=np.uint64).reshape(tuple(shape))


class Formal:
    """The formal values of what statements compute.

    ``place`` gives the cell of an access, copies included, where a statement has some values of
    its inames.
    """

    def __init__(
        self,
        kernel: Kernel,
        sizes: Values,
        numbers: Mapping[str, Any],
        place: Callable[[str, tuple[int, ...], Values], tuple[int, ...]],
    ) -> None:
        self.sizes = sizes
        self.numbers = numbers
        self.place = place
        self.integers = frozenset(kernel.all_inames) | sizes.keys()
        self.data = frozenset(numbers)
        self.sums = {t.name for t in kernel.temporaries if t.accumulates is not None}
        self.held = {name: cells(name, np.shape(data)) for name, data in numbers.items()}
        self.past = {name: np.zeros_like(held) for name, held in self.held.items()}
        """One number for all that stores have replaced in a cell, one after the other."""
        self.seen: dict[tuple[str, Row], int] = {}
        """What each instance of the text has computed, by its statement and inames."""

    def start(self, garbage: Mapping[str, int]) -> None:
        """Begin anew; arrays in ``garbage`` hold nothing that another run finds there."""
        self.seen.clear()
        for name, held in self.held.items():
            held[...] = cells(name, held.shape, garbage.get(name, 0))
            self.past[name][...] = 0

    def computed(self, statement: Statement, values: Values) -> int:
        """What an instance stores, before an update adds it to what is there."""
        is_start = statement.kind == "init" or statement.written in self.sums
        if is_start and statement.operation is None and is_literal(statement.rhs):
            return 0  # the neutral element: no term
        return self.value(statement.rhs, values)

    def note(self, origin: str, values: Mapping[str, Any], at: Values, value: int) -> None:
        """Remember what an instance of the text computes, executed where inames are ``at``."""
        known = {**self.sizes, **at}
        instance = tuple(int(evaluate(values[i], known)) for i in sorted(values))
        self.seen[origin, instance] = value

    def stored(self, statement: Statement, value: int, index: tuple[int, ...]) -> int:
        """What the cell at ``index`` holds when an instance has stored ``value``."""
        if statement.operation is None:
            return value
        return (int(self.held[statement.written][index]) + value) & _ALL

    def store(self, statement: Statement, value: int, index: tuple[Any, ...]) -> None:
        """Let a cell, or all copies of it, hold what :meth:`stored` says."""
        held, past = self.held[statement.written], self.past[statement.written]
        if statement.operation is None:
            old = held[index]
            past[index] = np.where(old == value, past[index], past[index] * _FACTOR + old)
        held[index] = value

    def value(self, expr: Any, values: Values) -> int:
        """The formal value of an expression."""
        if is_constant(expr):
            return mixed(complex(expr))
        if variable_names(expr) <= self.integers and is_integer_arithmetic(expr, calls=False):
            return mixed(complex(evaluate(expr, {**self.sizes, **values})))
        access = access_of(expr, self.data)
        if access is not None:
            name, indices = access
            found = tuple(int(self.number(i, values)) for i in indices)
            return int(self.held[name][self.place(name, found, values)])
        if isinstance(expr, TypeCast):
            return self.value(expr.operand, values)
        if isinstance(expr, prim.If):
            branch = expr.then if self.number(expr.condition, values) else expr.else_
            if variable_names(expr.condition) <= self.integers:
                return self.value(branch, values)
            # What a condition reads is read, too, whichever branch is taken.
            return mixed("if", self.value(expr.condition, values), self.value(branch, values))
        if isinstance(expr, (prim.Sum, prim.Product)):
            return self.joined(expr, values)
        parts = [self.value(part, values) for part in parts_of(expr)]
        if isinstance(expr, Component):
            return mixed(expr.name, *parts)
        if isinstance(expr, prim.Call):
            return mixed(expr.function.name, *parts)
        if isinstance(expr, prim.Comparison):
            return mixed(expr.operator, *parts)
        if isinstance(expr, prim.Variable):
            return mixed(expr.name)
        return mixed(type(expr).__name__, *parts)

    def joined(self, expr: prim.Sum | prim.Product, values: Values) -> int:
        """Numbers of inames and sizes count as one term, wherever they stand."""
        plain: list[Any] = []
        others: list[int] = []
        for part in expr.children:
            is_plain = variable_names(part) <= self.integers if not is_constant(part) else True
            if is_plain and is_integer_arithmetic(part, calls=False):
                plain.append(part)
            else:
                others.append(self.value(part, values))
        is_sum = isinstance(expr, prim.Sum)
        numbers = [evaluate(p, {**self.sizes, **values}) for p in plain]
        number = sum(numbers) if is_sum else reduce(operator.mul, numbers, 1)
        if number == (0 if is_sum else 1) and len(others) == 1:
            return others[0]
        return mixed(is_sum, number, *others)

    def number(self, expr: Any, values: Values) -> Any:
        """The value of an expression of inames, sizes and data, as it is now."""
        if is_constant(expr):
            return expr
        access = access_of(expr, self.data)
        if access is not None:
            name, indices = access
            found = tuple(int(self.number(i, values)) for i in indices)
            return self.numbers[name][self.place(name, found, values)]
        if isinstance(expr, prim.Variable):
            return values[expr.name] if expr.name in values else self.sizes[expr.name]
        if isinstance(expr, TypeCast):
            return np.asarray(self.number(expr.operand, values)).astype(expr.dtype)[()]
        function = _FUNCTIONS.get(type(expr))
        if isinstance(expr, prim.Comparison):
            function = _COMPARED[expr.operator]
        if isinstance(expr, prim.If):
            taken = expr.then if self.number(expr.condition, values) else expr.else_
            return self.number(taken, values)
        if isinstance(expr, (prim.LogicalAnd, prim.LogicalOr)):
            every = all if isinstance(expr, prim.LogicalAnd) else any
            return every(bool(self.number(part, values)) for part in parts_of(expr))
        if function is None:
            raise UnknownError(str(key_of(expr)))
        parts = [self.number(part, values) for part in parts_of(expr)]
        return reduce(function, parts) if len(parts) > 1 else function(parts[0])


class UnknownError(Exception):
    """An expression in a condition or a subscript that is not evaluated here."""


_COMPARED: Mapping[str, Any] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FUNCTIONS: Mapping[type, Any] = {
    prim.Sum: operator.add, prim.Product: operator.mul, prim.Quotient: operator.truediv,
    prim.FloorDiv: operator.floordiv, prim.Remainder: operator.mod,
    prim.LogicalNot: operator.not_, prim.BitwiseNot: operator.invert,
    prim.BitwiseAnd: operator.and_, prim.BitwiseOr: operator.or_, prim.BitwiseXor: operator.xor,
    prim.LeftShift: operator.lshift, prim.RightShift: operator.rshift,
    prim.Min: min, prim.Max: max,
}  # fmt: skip
