"""Conversions between types in C: explicit casts, and the fewest that arithmetic needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopkit import _promotion as dt
from loopkit._errors import AssumptionError, TypeInferenceError
from loopkit._expression import to_text
from loopkit._nodes import Expression
from loopkit.codegen.c import tree
from loopkit.codegen.c.arithmetic import common as common_type
from loopkit.codegen.c.arithmetic import in_registers
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.operands import (
    NARROW,
    SIGNED,
    Value,
    binary,
    called,
    literal,
    operand_literal,
)

Operand = Value | dt.Weak
"""What an expression becomes: a value of C, or a constant that takes the type of what it meets."""


def typed(operand: Operand) -> dt.Typed:
    """The type of an operand, or the constant itself."""
    if not isinstance(operand, Value):
        return operand
    return operand.dtype if operand.weak is None else operand.weak


def is_late(operand: Operand) -> bool:
    """Whether an operand has no type of its own."""
    return not isinstance(operand, Value) or operand.weak is not None


def whole(operand: Operand) -> Operand:
    """An operand whose value must be known, not only the last 64 bits of it."""
    if isinstance(operand, Value) and operand.beyond is not None:
        raise too_large(operand.beyond)
    return operand


def too_large(expr: Expression) -> AssumptionError:
    """The error for integer arithmetic that 64 bits may not hold."""
    return AssumptionError(
        f"64 bits may not hold '{to_text(expr)}', for the values that its sizes may have",
        instead="assumptions that bound the sizes would show that they do, and float64(...) around "
        "an operand computes with floats",
    )


def converted(value: Value, dtype: dt.DType) -> Value:
    """``(type)value``."""
    return Value(tree.Cast(C_TYPES[dtype], value.node), dtype)


_TO_FLOAT = {dt.FLOAT16: "__half2float", dt.BFLOAT16: "__bfloat162float"}
_FROM_FLOAT = {dt.FLOAT16: "__float2half", dt.BFLOAT16: "__float2bfloat16"}


class Converter:
    """Gives operands a type."""

    # {{{ to one exact type

    def exact(self, operand: Operand, dtype: dt.DType) -> Value:
        """``operand`` as a value whose type in C is ``dtype`` (narrow ones may be wide)."""
        if isinstance(operand, Value):
            return self.cast(operand, dtype)
        return self.weak(operand, dtype, literal)

    def weak(
        self,
        value: dt.Weak,
        dtype: dt.DType,
        make: Callable[[dt.Constant, dt.DType], Value],
    ) -> Value:
        """A constant, or a choice between constants, as a value."""
        if isinstance(value, dt.Choice):
            then = self.weak(value.then, dtype, literal)
            else_ = self.weak(value.else_, dtype, literal)
            return Value(tree.Choice(value.condition, then.node, else_.node), dtype)
        assert not isinstance(value, dt.RunTime), "what is known at run time is a value of C"
        return make(value, dtype)

    def reduced(self, value: Value) -> Value:
        """A wide value reduced to its type."""
        return converted(value, value.dtype) if value.wide else value

    def cast(self, value: Value, dtype: dt.DType) -> Value:
        """``value`` converted as ``astype`` does it."""
        source = value.dtype
        if source == dtype:
            return value
        if dtype not in dt.INTEGERS:
            whole(value)
        if dtype in dt.COMPLEXES:
            return self._to_complex(value, dtype)
        if source in dt.COMPLEXES and dtype == dt.BOOL:
            return self.condition(value)
        if source in dt.COMPLEXES:
            return self.cast(Value(tree.Member(value.node, "re"), dt.real_of(source)), dtype)
        if source in dt.SMALL_FLOATS:
            single = called(_TO_FLOAT[source], [value], dt.FLOAT32)
            return single if dtype == dt.FLOAT32 else self.cast(single, dtype)
        value = self.reduced(value)
        if dtype in dt.SMALL_FLOATS:
            if source == dt.FLOAT64 and dtype == dt.FLOAT16:
                return called("__double2half", [value], dtype)
            single = value if source == dt.FLOAT32 else self.cast(value, dt.FLOAT32)
            return called(_FROM_FLOAT[dtype], [single], dtype)
        return converted(value, dtype)

    def _to_complex(self, value: Value, dtype: dt.DType) -> Value:
        part = dt.real_of(dtype)
        if value.dtype not in dt.COMPLEXES:
            parts = (self.exact(value, part).node, literal(0, part).node)
            return Value(tree.Braces(C_TYPES[dtype], parts), dtype)
        return called(f"lk_to_{dt.dtype_name(dtype)}", [value], dtype)

    # }}}

    # {{{ for arithmetic

    def unify(self, a: Operand, b: Operand, common: dt.DType) -> tuple[Value, Value]:
        """Both operands such that C's arithmetic on them happens in the type ``common``."""
        a, b = (self._strong(x, common) for x in (a, b))
        left, right = self.operand(a, common), self.operand(b, common)
        if common in dt.SMALL_FLOATS:
            return self.exact(left, common), self.exact(right, common)
        if common in dt.COMPLEXES:
            return self._unify_complex(left, right, common)
        # Small floats have no arithmetic with other types.
        left, right = (
            self.cast(t, dt.FLOAT32) if t.dtype in dt.SMALL_FLOATS else t for t in (left, right)
        )
        goal = in_registers(common)
        if common_type(left.dtype, right.dtype) == goal:
            return left, right
        # One cast suffices; an integer that meets a float is the one to convert.
        if goal in dt.FLOATS and left.dtype in dt.FLOATS:
            return left, self.cast(right, common)
        if isinstance(a, Value) or not isinstance(b, Value):
            return self.cast(left, goal), right
        return left, self.cast(right, goal)

    def _strong(self, operand: Operand, common: dt.DType) -> Operand:
        """What is made of inames and sizes in the type of what it meets, unless C sees to that."""
        if not isinstance(operand, Value) or operand.weak is None or common in dt.COMPLEXES:
            return operand
        if common not in dt.INTEGERS:
            whole(operand)
        if operand.dtype in dt.INTEGERS and operand.dtype.itemsize <= max(4, common.itemsize):
            return operand
        return self.exact(operand, in_registers(common))

    def narrowed(self, operand: Operand, common: dt.DType) -> Operand:
        """An operand of what is not computed modulo a power of two.

        There the bits of an iname that a narrow type has no room for would tell.
        """
        if not isinstance(operand, Value) or operand.weak is None or common not in NARROW:
            return operand
        most = operand.most
        if most is not None and common in SIGNED and most < 2 ** (8 * common.itemsize - 1):
            return operand
        return self.exact(operand, common)

    def operand(self, operand: Operand, common: dt.DType) -> Value:
        """An operand as a value; a constant as it is beside an operand of ``common``."""
        if isinstance(operand, Value):
            if operand.wide and operand.dtype != common:
                return self.reduced(operand)
            return operand
        if common in dt.COMPLEXES:
            part = common if dt.is_complex(operand) else dt.real_of(common)
            return self.weak(operand, part, literal)
        return self.weak(operand, common, operand_literal)

    def _unify_complex(self, left: Value, right: Value, common: dt.DType) -> tuple[Value, Value]:
        # The operators take a complex and a real number of the same precision, too.
        part = dt.real_of(common)
        texts = [self.exact(t, common if t.dtype in dt.COMPLEXES else part) for t in (left, right)]
        if all(t.dtype not in dt.COMPLEXES for t in texts):
            texts[0] = self.exact(texts[0], common)
        return texts[0], texts[1]

    # }}}

    # {{{ for a place that has a type, and for a condition

    def stored(self, operand: Operand, dtype: dt.DType) -> Value:
        """An operand as the right side of an assignment to a variable of type ``dtype``."""
        if not isinstance(operand, Value):
            if isinstance(operand, float) and dtype in dt.INTEGERS and np.isfinite(operand):
                operand = int(operand)
            return self.weak(operand, dtype, _stored_literal)
        source = operand.dtype
        if source == dtype:
            return operand
        if dtype not in dt.INTEGERS:
            whole(operand)
        if source in dt.COMPLEXES and dtype not in dt.COMPLEXES:
            raise TypeInferenceError(
                f"a value of type {dt.dtype_name(source)} would lose its imaginary part in a "
                f"variable of type {dt.dtype_name(dtype)}",
                instead="write real(...)",
            )
        if source in dt.SMALL_FLOATS or dtype in dt.SMALL_FLOATS or dtype in dt.COMPLEXES:
            return self.cast(operand, dtype)
        # C converts on assignment; what is narrow is reduced by that, unless it only looks narrow.
        if operand.wide and (dtype == dt.BOOL or dtype not in NARROW):
            return self.reduced(operand)
        if operand.wide and dtype.itemsize > source.itemsize:
            return self.reduced(operand)
        return Value(operand.node, dtype)

    def condition(self, operand: Operand) -> Value:
        """An operand as a condition: what is not zero is true."""
        if not isinstance(operand, Value):
            return self.weak(_truth(operand), dt.BOOL, literal)
        whole(operand)
        if operand.dtype in dt.COMPLEXES:
            return binary(operand, "!=", literal(0, operand.dtype), dt.BOOL)
        if operand.dtype in dt.SMALL_FLOATS:
            single = self.cast(operand, dt.FLOAT32)
            return binary(single, "!=", literal(0, dt.FLOAT32), dt.BOOL)
        return self.reduced(operand)

    # }}}


def _stored_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant that is assigned: integers need no suffix."""
    if dtype in dt.INTEGERS:
        literal(value, dtype)  # whether it fits
        return operand_literal(value, dtype)
    return literal(value, dtype)


def _truth(value: dt.Weak) -> dt.Weak:
    if isinstance(value, dt.Choice):
        return dt.Choice(value.condition, _truth(value.then), _truth(value.else_))
    return bool(value)
