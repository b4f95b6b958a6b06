"""The types in which C computes expressions, and what must be defined for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopkit._frozen import dataclass
from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    INTEGERS,
    SMALL_FLOATS,
    DType,
    dtype_name,
    real_of,
)
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.arithmetic import common, converts, in_registers
from loopkit.codegen.c.calls import CONSTANTS, result_of
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import LITERALS, PIECES, TYPES

WHOLE = INTEGERS | {BOOL}
"""The types of whole numbers."""


@dataclass(frozen=True)
class Variable:
    """A declared name: its type, how many subscripts it takes, whether it may change."""

    dtype: DType
    rank: int = 0
    is_place: bool = False


def type_of(expr: c.CExpression, variables: Mapping[str, Variable]) -> DType:
    """The type of an expression; raises :class:`UnreadableError` where C++ has none for it."""
    return Typing(variables.__getitem__, lambda piece: None).of(expr)


class Typing:
    """Types of expressions over names that ``variable`` knows.

    ``need`` is told which pieces of the preamble they need.
    """

    def __init__(self, variable: Callable[[str], Variable], need: Callable[[str], None]) -> None:
        self.variable = variable
        self.need = need

    def of(self, root: c.CExpression) -> DType:
        """The type of an expression."""
        found: list[DType] = []
        for expr in c.postorder(root):
            count = len(c.children(expr))
            parts = found[len(found) - count :]
            del found[len(found) - count :]
            found.append(_RULES[type(expr)](self, expr, parts))
        return found[0]

    def named(self, ctype: str) -> DType:
        """A type that the code names."""
        dtype = TYPES[ctype]
        if dtype in PIECES:
            self.need(PIECES[dtype])
        return dtype

    def number(self, expr: c.Number, _: list[DType]) -> DType:
        return LITERALS[expr.ctype]

    def name(self, expr: c.Name, _: list[DType]) -> DType:
        if expr.name in CONSTANTS:
            self.need(expr.name)
            return FLOAT32
        found = self.variable(expr.name)
        if found.rank:
            raise UnreadableError(f"'{expr.name}' has no subscripts")
        return found.dtype

    def element(self, expr: c.Element, parts: list[DType]) -> DType:
        found = self.variable(expr.array)
        if found.rank != len(parts) or not set(parts) <= WHOLE:
            raise UnreadableError(f"the subscripts of '{expr.array}' are none of an array")
        return found.dtype

    def unary(self, expr: c.Unary, parts: list[DType]) -> DType:
        (dtype,) = parts
        if expr.operator == "!":
            return self.truth(dtype)
        if (expr.operator == "~" and dtype in WHOLE) or expr.operator == "-":
            return in_registers(dtype)
        raise UnreadableError(f"'{expr.operator}' of {dtype_name(dtype)}")

    def binary_of(self, expr: c.Binary, parts: list[DType]) -> DType:
        return self.binary(expr.operator, *parts)

    def binary(self, operator: str, a: DType, b: DType) -> DType:
        """``a operator b``."""
        if operator in ("&&", "||"):
            self.truth(a)
            return self.truth(b)
        both_whole = {a, b} <= WHOLE
        if operator in ("<<", ">>", "%", "&", "|", "^") and not both_whole:
            what = f"'{operator}' of {dtype_name(a)} and {dtype_name(b)}"
            raise UnreadableError(what)
        if operator in ("<<", ">>"):
            return in_registers(a)
        kind = common(a, b)
        if operator in ("<", "<=", ">", ">=", "==", "!="):
            if kind in COMPLEXES and (a != b or operator not in ("==", "!=")):
                raise UnreadableError("complex numbers have no order")
            return BOOL
        if kind in COMPLEXES and not {a, b} <= {kind, real_of(kind)}:
            raise UnreadableError(f"'{operator}' of {dtype_name(a)} and {dtype_name(b)}")
        return kind

    def truth(self, dtype: DType) -> DType:
        """A condition."""
        if dtype in COMPLEXES or dtype in SMALL_FLOATS:
            raise UnreadableError(f"{dtype_name(dtype)} is no condition")
        return BOOL

    def choice(self, _: c.Choice, parts: list[DType]) -> DType:
        condition, then, other = parts
        self.truth(condition)
        return then if then == other else common(then, other)

    def cast(self, expr: c.Cast, parts: list[DType]) -> DType:
        dtype = self.named(expr.ctype)
        if not converts(parts[0], dtype):
            what = f"{dtype_name(parts[0])} is no value of {dtype_name(dtype)}"
            raise UnreadableError(what)
        return dtype

    def member(self, expr: c.Member, parts: list[DType]) -> DType:
        if parts[0] not in COMPLEXES or expr.name not in ("re", "im"):
            raise UnreadableError(f"'.{expr.name}' is not understood")
        return real_of(parts[0])

    def braces(self, expr: c.Braces, parts: list[DType]) -> DType:
        dtype = self.named(expr.ctype)
        # What is in braces is converted where nothing is lost alone.
        if dtype not in COMPLEXES or parts != [real_of(dtype)] * 2:
            raise UnreadableError(f"the parts of a {expr.ctype} are not understood")
        return dtype

    def call(self, expr: c.Call, parts: list[DType]) -> DType:
        dtype, pieces = result_of(expr.function, parts)
        for piece in pieces:
            self.need(piece)
        return dtype


_RULES: dict[type, Callable[[Typing, Any, list[DType]], DType]] = {
    c.Number: Typing.number,
    c.Name: Typing.name,
    c.Element: Typing.element,
    c.Call: Typing.call,
    c.Unary: Typing.unary,
    c.Binary: Typing.binary_of,
    c.Choice: Typing.choice,
    c.Cast: Typing.cast,
    c.Member: Typing.member,
    c.Braces: Typing.braces,
}
