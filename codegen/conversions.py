"""Conversions between types in C: explicit casts, and the fewest that arithmetic needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from loopkit import _promotion as dt
from loopkit._errors import AssumptionError, TypeInferenceError
from loopkit._expression import to_text
from loopkit._nodes import Expression
from loopkit.codegen.c import tree
from loopkit.codegen.c.calls import CONVERSIONS
from loopkit.codegen.c.types import C_TYPES, in_registers
from loopkit.codegen.c.types import common as common_type
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

_CONVERTED = {types: name for name, types in CONVERSIONS.items()}


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


# {{{ to one exact type


def exact(operand: Operand, dtype: dt.DType) -> Value:
    """``operand`` as a value whose type in C is ``dtype`` (narrow ones may be wide)."""
    return cast(operand, dtype) if isinstance(operand, Value) else of_constant(operand, dtype)


def of_constant(
    value: dt.Weak, dtype: dt.DType, make: Callable[[dt.Constant, dt.DType], Value] = literal
) -> Value:
    """A constant, or a choice between constants, as a value."""
    if isinstance(value, dt.Choice):
        branches = (of_constant(v, dtype).node for v in (value.then, value.else_))
        return Value(tree.Choice(value.condition, *branches), dtype)
    assert not isinstance(value, dt.RunTime), "what is known at run time is a value of C"
    return make(value, dtype)


def reduced(value: Value) -> Value:
    """A wide value reduced to its type."""
    return converted(value, value.dtype) if value.wide else value


def cast(value: Value, dtype: dt.DType) -> Value:
    """``value`` converted as ``astype`` does it."""
    source = value.dtype
    if source == dtype:
        return value
    if dtype not in dt.INTEGERS:
        whole(value)
    if (source, dtype) in _CONVERTED:
        return called(_CONVERTED[source, dtype], [value], dtype)
    if source in dt.COMPLEXES and dtype == dt.BOOL:
        return truth_of(value)
    if source in dt.COMPLEXES:
        return cast(Value(tree.Member(value.node, "re"), dt.real_of(source)), dtype)
    if dtype in dt.COMPLEXES:
        part = dt.real_of(dtype)
        parts = (exact(value, part).node, literal(0, part).node)
        return Value(tree.Braces(C_TYPES[dtype], parts), dtype)
    if source in dt.SMALL_FLOATS or dtype in dt.SMALL_FLOATS:
        return cast(cast(value, dt.FLOAT32), dtype)
    return converted(reduced(value), dtype)


def computed_in(dtype: dt.DType) -> dt.DType:
    """The type in which C's functions compute: single precision for floats of 16 bits."""
    return dt.FLOAT32 if dtype in dt.SMALL_FLOATS else dtype


def argument(operand: Operand, dtype: dt.DType) -> Value:
    """An operand, converted to ``dtype`` as NumPy does, for one of C's functions."""
    return reduced(exact(exact(operand, dtype), computed_in(dtype)))


def function_of(name: str, operands: Iterable[Operand], dtype: dt.DType) -> Value:
    """A function of C's that takes and gives what is of one type."""
    arguments = [argument(o, dtype) for o in operands]
    return exact(called(name, arguments, computed_in(dtype)), dtype)


# }}}

# {{{ for arithmetic


def unify(a: Operand, b: Operand, common: dt.DType) -> tuple[Value, Value]:
    """Both operands such that C's arithmetic on them happens in the type ``common``."""
    a, b = (_strong(x, common) for x in (a, b))
    left, right = beside(a, common), beside(b, common)
    if common in dt.SMALL_FLOATS:
        return exact(left, common), exact(right, common)
    if common in dt.COMPLEXES:
        # The operators take a complex and a real number of the same precision, too.
        part = dt.real_of(common)
        left, right = (exact(t, common if t.dtype in dt.COMPLEXES else part) for t in (left, right))
        both_real = left.dtype not in dt.COMPLEXES and right.dtype not in dt.COMPLEXES
        return (exact(left, common) if both_real else left), right
    # Small floats have no arithmetic with other types.
    left, right = (cast(t, dt.FLOAT32) if t.dtype in dt.SMALL_FLOATS else t for t in (left, right))
    goal = in_registers(common)
    if common_type(left.dtype, right.dtype) == goal:
        return left, right
    # One cast suffices; an integer that meets a float is the one to convert.
    if goal in dt.FLOATS and left.dtype in dt.FLOATS:
        return left, cast(right, common)
    if isinstance(a, Value) or not isinstance(b, Value):
        return cast(left, goal), right
    return left, cast(right, goal)


def _strong(operand: Operand, common: dt.DType) -> Operand:
    """What is made of inames and sizes in the type of what it meets, unless C sees to that."""
    if not isinstance(operand, Value) or operand.weak is None or common in dt.COMPLEXES:
        return operand
    if common not in dt.INTEGERS:
        whole(operand)
    if operand.dtype in dt.INTEGERS and operand.dtype.itemsize <= max(4, common.itemsize):
        return operand
    return exact(operand, in_registers(common))


def narrowed(operand: Operand, common: dt.DType) -> Operand:
    """An operand of what is not computed modulo a power of two.

    There the bits of an iname that a narrow type has no room for would tell.
    """
    if not isinstance(operand, Value) or operand.weak is None or common not in NARROW:
        return operand
    most = operand.most
    if most is not None and common in SIGNED and most < 2 ** (8 * common.itemsize - 1):
        return operand
    return exact(operand, common)


def beside(operand: Operand, common: dt.DType) -> Value:
    """An operand as a value; a constant as it is beside an operand of ``common``."""
    if isinstance(operand, Value):
        return reduced(operand) if operand.dtype != common else operand
    if common in dt.COMPLEXES:
        return of_constant(operand, common if dt.is_complex(operand) else dt.real_of(common))
    return of_constant(operand, common, operand_literal)


# }}}

# {{{ for a place that has a type, and for a condition


def stored(operand: Operand, dtype: dt.DType) -> Value:
    """An operand as the right side of an assignment to a variable of type ``dtype``."""
    if not isinstance(operand, Value):
        if isinstance(operand, float) and dtype in dt.INTEGERS and np.isfinite(operand):
            operand = int(operand)
        return of_constant(operand, dtype, _stored_literal)
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
        return cast(operand, dtype)
    # C converts on assignment; what is narrow is reduced by that, unless it only looks narrow.
    keeps_bits = dtype in NARROW and dtype != dt.BOOL and dtype.itemsize <= source.itemsize
    return Value((operand if keeps_bits else reduced(operand)).node, dtype)


def _stored_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant that is assigned: integers need no suffix."""
    found = literal(value, dtype)  # whether it fits
    return operand_literal(value, dtype) if dtype in dt.INTEGERS else found


def truth_of(operand: Operand) -> Value:
    """An operand as a condition: what is not zero is true."""
    if not isinstance(operand, Value):
        return of_constant(_truth(operand), dt.BOOL)
    whole(operand)
    if operand.dtype in dt.COMPLEXES:
        return binary(operand, "!=", literal(0, operand.dtype), dt.BOOL)
    if operand.dtype in dt.SMALL_FLOATS:
        return binary(cast(operand, dt.FLOAT32), "!=", literal(0, dt.FLOAT32), dt.BOOL)
    return reduced(operand)


def _truth(value: dt.Weak) -> dt.Weak:
    if isinstance(value, dt.Choice):
        return dt.Choice(value.condition, _truth(value.then), _truth(value.else_))
    return bool(value)


# }}}
