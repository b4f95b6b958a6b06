"""The type of an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _folding
from loopkit import _promotion as dt
from loopkit._device_functions import OwnFunction
from loopkit._errors import TypeInferenceError
from loopkit._expression import parts_of, to_text
from loopkit._functions import call_type
from loopkit._nodes import (
    Component,
    Expression,
    Record,
    Reduction,
    TypeCast,
    TypeName,
    subtrahend,
)
from loopkit._promotion import Choice, DType, RunTime, Typed, Weak

Kind = DType | RunTime
"""The type of an expression; without typed operands one of Python's own."""


def asked_of(expr: Expression) -> Callable[[], str]:
    """What an error about a part of ``expr`` says that was asked: spelled only if it is raised."""
    return lambda: f"in '{to_text(expr)}'"


def dtype_of(expr: Expression, env: Callable[[str], Typed]) -> Kind:
    """The type of ``expr``; ``env`` gives that of a variable, or of an array's elements."""
    return kind_of(Typer(env)(expr))


def kind_of(found: Typed) -> Kind:
    """The type of what is of a type, or of a constant."""
    return found if isinstance(found, np.dtype) else _weak_type_of(found)


def _weak_type_of(value: Weak) -> Kind:
    """The kind of a constant; ``bool`` is a type like NumPy's."""
    return dt.BOOL if _is_truth(value) else dt.run_time(value)


def _is_truth(value: Weak) -> bool:
    if isinstance(value, Choice):
        return _is_truth(value.then) and _is_truth(value.else_)
    return isinstance(value, bool)


def known_types(kernel: Any) -> dict[str, Typed]:
    """The types of a kernel's names, as far as they are known.

    Inames and integer arguments are weak, like Python's own numbers.
    """
    found: dict[str, Typed] = {
        d.name: d.dtype for d in (*kernel.args, *kernel.temporaries) if d.dtype is not None
    }
    found.update((name, dt.INTEGER) for name in kernel.sizes if name in found)
    found.update(dict.fromkeys(kernel.all_inames, dt.INTEGER))
    return found


def concrete(kind: Kind) -> DType:
    """The type of a variable that is given a value of type ``kind``: for weak ones NumPy's."""
    return kind if isinstance(kind, np.dtype) else dt.natural(kind)


def joined_kind(a: Kind, b: Kind) -> Kind:
    """The type of a variable that holds values of both types."""
    if isinstance(a, RunTime) and isinstance(b, RunTime):
        return dt.run_time(Choice(None, a, b))
    return dt.promote(a, b)


def reduction_type(operation: str, operand: DType) -> DType:
    """The type that a reduction over values of type ``operand`` accumulates in.

    Sums and products of integers and booleans are computed in 64 bits, as NumPy's are,
    sums of 16-bit floats in ``float32``; ``any`` and ``all`` give ``bool``.
    """
    if operation in ("any", "all"):
        return dt.BOOL
    if operation in ("sum", "product") and operand.kind in "biu":
        return dt.UINT64 if operand in dt.UNSIGNED else dt.INT64
    if operation == "sum" and operand in dt.SMALL_FLOATS:
        return dt.FLOAT32
    if operation.startswith("bit_") and operand.kind not in "biu":
        raise dt.refuse(f"'{operation}'", operand, "", "bit operations need integers")
    if operation in ("max", "min") and operand in dt.COMPLEXES:
        raise dt.refuse(f"'{operation}'", operand, "", "complex numbers have no order")
    return operand


class Typer:
    """Finds types: of each part of an expression a type, or the value of a constant.

    Where it ``checks_literals``, it raises for an integer that meets a type that does not hold it,
    as NumPy does.  That is for texts: numbers that steps put in the place of sizes and inames
    wrap around, as what they stand for would.
    """

    checks_literals = False

    def __init__(self, env: Callable[[str], Typed]) -> None:
        self.env = env

    def __call__(self, expr: Expression) -> Typed:
        """The type of ``expr``, or its value where it is made of constants alone."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            return dt.as_dtype(expr.dtype)
        raise TypeInferenceError(f"'{to_text(expr)}' has no type")

    def constant(self, expr: Typed) -> Typed:
        return expr

    def variable(self, expr: prim.Variable) -> Typed:
        return self.env(expr.name)

    def subscript(self, expr: Any) -> Typed:
        return self.env(expr.aggregate.name)

    def operation(self, expr: Any) -> Typed:
        node = type(expr)
        children = parts_of(expr)
        if node in (prim.Min, prim.Max):  # min(a, b, c) is min(a, min(b, c))
            children = children[::-1]

        asked = asked_of(expr)
        left = self(children[0])
        for child in children[1:]:
            step: type = node
            if node is prim.Sum:
                subtracted = subtrahend(child)
                if subtracted is not None:
                    child, step = subtracted, dt.Subtraction
            right = self(child)
            if isinstance(left, np.dtype) or isinstance(right, np.dtype):
                if self.checks_literals:
                    dt.check_operands(step, left, right, asked)
                left = dt.operation_type(step, left, right, asked)
            else:
                left = dt.fold(dt.FOLD[step], left, right, asked=asked)
        return left

    def bitwise_not(self, expr: prim.BitwiseNot) -> Typed:
        operand = self(expr.child)
        if not isinstance(operand, np.dtype):
            folded: Weak = dt.fold(_folding.invert, operand, asked=asked_of(expr))
            return folded
        if operand != dt.BOOL and operand not in dt.INTEGERS:
            raise dt.refuse("'~'", operand, asked_of(expr)())
        return operand

    def comparison(self, expr: prim.Comparison) -> Typed:
        left, right = self(expr.left), self(expr.right)
        dt.check_comparison(left, expr.operator, right, asked_of(expr))
        return dt.BOOL

    def logical(self, expr: Any) -> Typed:
        for child in parts_of(expr):
            self(child)
        return dt.BOOL

    def conditional(self, expr: prim.If) -> Typed:
        self(expr.condition)
        then, else_ = self(expr.then), self(expr.else_)
        if isinstance(then, np.dtype) or isinstance(else_, np.dtype):
            common = dt.promote(then, else_)
            for branch in (then, else_) if self.checks_literals else ():
                dt.check_constant(branch, common, asked_of(expr))
            return common
        return Choice(None, then, else_)

    def call(self, expr: Any) -> Typed:
        if any(isinstance(parameter, TypeName) for parameter in expr.parameters):
            raise TypeInferenceError(
                f"'{expr.function.name}' takes no dtype",
                asked=f"in '{to_text(expr)}'",
                instead="sum and product over inames take one",
            )
        arguments = [self(parameter) for parameter in expr.parameters]
        if isinstance(expr.function, OwnFunction):
            taken = expr.function.overload(arguments, asked_of(expr))
            pairs = zip(taken.types, arguments, strict=True)
            for dtype, value in pairs if self.checks_literals else ():
                dt.check_constant(value, dtype, asked_of(expr))
            return taken.result
        return call_type(expr.function.name, arguments, asked_of(expr))

    def cast(self, expr: TypeCast) -> Typed:
        self(expr.operand)
        return expr.dtype

    def record(self, expr: Record) -> Typed:
        kinds = (concrete(kind_of(self(part))) for part in expr.parts)
        return dt.record_of(dict(zip(expr.names, kinds, strict=True)))

    def component(self, expr: Component) -> Typed:
        found = dt.components_of(concrete(kind_of(self(expr.operand))))
        if expr.name not in found:
            raise TypeInferenceError(f"'{to_text(expr)}' is no component of a record")
        return found[expr.name]

    def reduction(self, expr: Reduction) -> Typed:
        operand = self(expr.operand)
        if expr.dtype is not None:
            return expr.dtype
        if not isinstance(operand, np.dtype):
            operand = concrete(_weak_type_of(operand))
        return reduction_type(expr.operation, operand)


def not_an_index(expr: Expression, kind: object) -> TypeInferenceError:
    """The error for an index that is no integer, but of another kind."""
    return TypeInferenceError(
        f"the index '{to_text(expr)}' is of type {kind}",
        instead="an index is an integer: a//b rounds down, and int32(x) converts",
    )


_RULES: dict[type, Callable[[Typer, Any], Typed]] = {
    **dict.fromkeys((bool, int, float, complex), Typer.constant),
    prim.Variable: Typer.variable,
    prim.Subscript: Typer.subscript,
    **dict.fromkeys(dt.FOLD, Typer.operation),
    prim.BitwiseNot: Typer.bitwise_not,
    prim.Comparison: Typer.comparison,
    **dict.fromkeys((prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot), Typer.logical),
    prim.If: Typer.conditional,
    prim.Call: Typer.call,
    TypeCast: Typer.cast,
    Record: Typer.record,
    Component: Typer.component,
    Reduction: Typer.reduction,
}
