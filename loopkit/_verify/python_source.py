"""Expressions as Python source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import PythonPrinter, index_tuple, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Statement
from loopkit._nodes import Expression, TypeCast
from loopkit._verify import exact_numbers
from loopkit._verify.example_data import TracedValue
from loopkit._verify.kernel_at_sizes import KernelAtSizes, UnsupportedError

LOAD, USED = hidden("load"), hidden("used")
"""What a function is given to load with, and where it notes what it used."""
_DECIDE = hidden("decide")


class Printer(PythonPrinter):
    """Expressions as Python source that computes with exact numbers.

    Loads happen from left to right, and every decision is noted beside them.
    """

    def __init__(
        self, at_sizes: KernelAtSizes, statement: Statement, extra: Mapping[Any, str]
    ) -> None:
        super().__init__(self.named)
        self.at_sizes = at_sizes
        self.statement = statement
        self.extra = extra
        self.space: dict[str, Any] = {_DECIDE: _decide}

    def bind(self, value: Any) -> str:
        """A name for a value in the source."""
        name = hidden("bound", len(self.space))
        self.space[name] = value
        return name

    def place(self, name: str, indices: Sequence[Expression]) -> str:
        """Source of the place of a cell: coordinates of its room, then indices."""
        parts = []
        for axis in self.at_sizes.copies.get(name, ()):
            iname = axis.iname_of(self.statement)
            if iname is not None:
                parts.append(f"{iname} - {axis.first[iname]}")
            else:
                parts.append(self.extra.get(axis.key, "0"))
        parts += [f"int({self.rec(i)})" for i in indices]
        return "(" + "".join(f"{p}, " for p in parts) + ")"

    def load(self, name: str, indices: Sequence[Expression]) -> str:
        """Source of a load."""
        return f"{LOAD}({name!r}, {self.place(name, indices)}, {USED})"

    def map_constant(self, expr: Any) -> str:
        if isinstance(expr, np.generic):
            expr = expr.item()
        if isinstance(expr, float) and math.isfinite(expr):
            exact = Fraction(expr)
            expr = int(exact) if exact.denominator == 1 else exact
        return self.bind(expr)

    def named(self, name: str) -> str:
        """Source of what a name stands for."""
        if name in self.statement.inames:
            return name
        if name in self.at_sizes.sizes:
            return self.bind(self.at_sizes.sizes[name])
        return self.load(name, ())

    def map_subscript(self, expr: Any) -> str:
        return self.load(expr.aggregate.name, index_tuple(expr))

    def map_bitwise_and(self, expr: Any) -> str:
        return self.joined(expr, " & ")

    def map_bitwise_or(self, expr: Any) -> str:
        return self.joined(expr, " | ")

    def map_bitwise_xor(self, expr: Any) -> str:
        return self.joined(expr, " ^ ")

    def map_bitwise_not(self, expr: Any) -> str:
        return f"(~{self.rec(expr.child)})"

    def map_left_shift(self, expr: Any) -> str:
        return f"({self.rec(expr.shiftee)} << {self.rec(expr.shift)})"

    def map_right_shift(self, expr: Any) -> str:
        return f"({self.rec(expr.shiftee)} >> {self.rec(expr.shift)})"

    def _call(self, function: Any, *children: Expression) -> str:
        return f"{self.bind(function)}({', '.join(self.rec(c) for c in children)})"

    def map_quotient(self, expr: Any) -> str:
        return self._call(exact_numbers.divide, expr.numerator, expr.denominator)

    def map_floor_div(self, expr: Any) -> str:
        return self._call(exact_numbers.floor_divide, expr.numerator, expr.denominator)

    def map_remainder(self, expr: Any) -> str:
        return self._call(exact_numbers.remainder, expr.numerator, expr.denominator)

    def map_power(self, expr: Any) -> str:
        return self._call(exact_numbers.power, expr.base, expr.exponent)

    def _folded(self, function: Any, expr: Any) -> str:
        name = self.bind(function)
        result: str = self.rec(expr.children[0])
        for child in expr.children[1:]:
            result = f"{name}({result}, {self.rec(child)})"
        return result

    def map_min(self, expr: Any) -> str:
        return self._folded(exact_numbers.minimum, expr)

    def map_max(self, expr: Any) -> str:
        return self._folded(exact_numbers.maximum, expr)

    def is_known(self, expr: Expression) -> bool:
        """Whether an expression reads no data, so that no decision needs to be noted."""
        return variable_names(expr) <= self.statement.inames | self.at_sizes.sizes.keys()

    def map_if(self, expr: Any) -> str:
        if self.is_known(expr):
            parts = (expr.then, expr.condition, expr.else_)
            return "({} if {} else {})".format(*(self.rec(p) for p in parts))
        condition, then = self.rec(expr.condition), self.rec(expr.then)
        return f"({then} if {_DECIDE}({condition}, {USED}) else {self.rec(expr.else_)})"

    def map_logical_and(self, expr: Any) -> str:
        if self.is_known(expr):
            return self.joined(expr, " and ")
        result: str = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = f"({result} if {_DECIDE}({self.rec(child)}, {USED}) else False)"
        return result

    def map_logical_or(self, expr: Any) -> str:
        if self.is_known(expr):
            return self.joined(expr, " or ")
        result: str = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = f"(True if {_DECIDE}({self.rec(child)}, {USED}) else {result})"
        return result

    def map_type_cast(self, expr: TypeCast) -> str:
        convert, dtype = self.bind(exact_numbers.converted), self.bind(expr.dtype)
        return f"{convert}({self.rec(expr.operand)}, {dtype})"

    def map_call(self, expr: prim.Call) -> str:
        function = exact_numbers.function(expr.function.name)
        if function is None:
            raise UnsupportedError(f"'{expr.function.name}' is not known")
        return self._call(function, *expr.parameters)


def _decide(condition: Any, used: list[TracedValue | bool]) -> bool:
    used.append(bool(condition))
    return bool(condition)
