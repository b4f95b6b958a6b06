"""Operands of C expressions during lowering: typed expressions, and constants without a type.

Conversions are explicit casts, and only those that the arithmetic needs.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._errors import AssumptionError, TypeInferenceError
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.calls import CONVERSIONS
from loopkit.codegen.c.types import C_TYPES, in_registers
from loopkit.codegen.c.types import common as common_type

# C computes in `int` what is narrower.
NARROW = frozenset((dt.BOOL, dt.INT8, dt.INT16, dt.UINT8, dt.UINT16))
# C computes these with signed integers, and leaves open what becomes of an overflow.
SIGNED = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.INT64, dt.UINT8, dt.UINT16))
_CONVERTED = {types: name for name, types in CONVERSIONS.items()}


@dataclass(eq=False, slots=True)
class Value:
    """An expression of C with its type, and what is known of its value.

    An integer is ``wide`` if its value in C must still be reduced to its type: an ``int`` for a
    narrow type, or an unsigned integer if it is ``unsigned``. ``most`` is its largest magnitude,
    if known. An expression of inames and sizes alone is ``weak``: it is computed in ``dtype``, but
    adopts the type of the operand that it is combined with. If a weak value may need more than 64
    bits, the expression holds its lowest 64 bits, and ``beyond`` is the exact expression.
    """

    node: c.CExpression
    dtype: dt.DType
    wide: bool = False
    unsigned: bool = False
    most: int | None = None
    weak: dt.RunTime | None = None
    beyond: Expression = None


Operand = Value | dt.Weak
"""What an expression becomes: a value of C, or a constant that takes the type of what it meets."""


def called(name: str, values: Iterable[Value], dtype: dt.DType, wide: bool = False) -> Value:
    """A call of a function of C."""
    return Value(c.Call(name, tuple(v.node for v in values)), dtype, wide)


def binary(left: Value, operator: str, right: Value, dtype: dt.DType) -> Value:
    """``left operator right``."""
    return Value(c.Binary(operator, left.node, right.node), dtype)


def joined(operator: str, nodes: Iterable[c.CExpression]) -> c.CExpression:
    """``a operator b operator c``, from the left."""
    return reduce(lambda left, right: c.Binary(operator, left, right), nodes)


def integer(value: int, ctype: str = "int") -> c.CExpression:
    """An integer, with its sign; the smallest of a type is one less than what C can spell."""
    if value >= 0:
        return c.Number(value, ctype)
    if -value == 2 ** {"int": 31, "long": 63}.get(ctype, 0):
        return c.Binary("-", integer(value + 1, ctype), c.Number(1, "int"))
    return c.Unary("-", c.Number(-value, ctype))


def literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant as a value of exactly the type ``dtype``, as NumPy converts it."""
    if dtype in dt.COMPLEXES:
        part = dt.real_of(dtype)
        number = complex(value)
        parts = (literal(x, part).node for x in (number.real, number.imag))
        return Value(c.Braces(C_TYPES[dtype], tuple(parts)), dtype)
    if isinstance(value, complex):
        raise TypeInferenceError(
            f"the complex constant {value} is not a value of {dt.dtype_name(dtype)}",
            instead="write real(...)",
        )
    if dtype == dt.BOOL:
        return Value(c.Number(int(bool(value)), "bool"), dtype)
    if dtype in dt.INTEGERS:
        return Value(_integer_literal(value, dtype), dtype)
    if dtype in dt.SMALL_FLOATS:
        with np.errstate(over="ignore"):
            rounded = float(dtype.type(value))
        return called(_CONVERTED[dt.FLOAT32, dtype], [literal(rounded, dt.FLOAT32)], dtype)
    return Value(_float_literal(float(value), dtype), dtype)


def _integer_literal(value: int | float, dtype: dt.DType) -> c.CExpression:
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeInferenceError(f"{value} is not a value of {dt.dtype_name(dtype)}")
    return integer(int(wrapped(int(value), dtype).real), _LITERAL_TYPES.get(dtype, "int"))


_LITERAL_TYPES = {dt.INT64: "long", dt.UINT32: "uint", dt.UINT64: "ulong"}


def operand_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant as an operand beside one of type ``dtype``: integers need no suffix.

    The literal has type ``int``, which C converts to the type of the other operand.
    """
    number = wrapped(value, dtype) if isinstance(value, int) else value
    if dtype in dt.INTEGERS and isinstance(number, int) and -(2**31) < number < 2**31:
        return Value(integer(int(number)), dt.INT32, most=abs(number))
    return literal(number, dtype)


def wrapped(value: dt.Constant, dtype: dt.DType) -> dt.Constant:
    """A constant cast to ``dtype``: integers wrap around, as ``astype`` has it."""
    if dtype in dt.INTEGERS and not isinstance(value, complex) and cmath.isfinite(value):
        bits = 8 * dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        return number - (1 << bits) if number >> (bits - 1) and dtype.kind == "i" else number
    return value


def _float_literal(value: float, dtype: dt.DType) -> c.CExpression:
    """The number with its sign, which zeros have, too."""
    if dtype == dt.FLOAT32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    found: c.CExpression = c.Number(abs(value), "float" if dtype == dt.FLOAT32 else "double")
    if not math.isfinite(value):
        name = "LK_NAN" if math.isnan(value) else "LK_INFINITY"
        found = c.Cast("double", c.Name(name)) if dtype == dt.FLOAT64 else c.Name(name)
    is_negative = value < 0 or (value == 0 and math.copysign(1.0, value) < 0)
    return c.Unary("-", found) if is_negative else found


def scalar_value(value: Any) -> tuple[dt.Constant, dt.DType]:
    """A NumPy scalar as a constant of Python's and its type."""
    dtype = value.dtype
    if dtype == dt.BFLOAT16:
        return float(value), dtype
    constant: dt.Constant = value.item()
    return constant, dtype


def typed(operand: Operand) -> dt.Typed:
    """The type of an operand, or the constant itself."""
    if not isinstance(operand, Value):
        return operand
    return operand.dtype if operand.weak is None else operand.weak


def is_late(operand: Operand) -> bool:
    """Whether an operand is weak: it adopts the type of the other operand."""
    return not isinstance(operand, Value) or operand.weak is not None


def whole(operand: Operand) -> Operand:
    """An operand whose exact value is needed, not only its lowest 64 bits."""
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
    return Value(c.Cast(C_TYPES[dtype], value.node), dtype)


def exact(operand: Operand, dtype: dt.DType) -> Value:
    """``operand`` as a value whose type in C is ``dtype`` (narrow ones may be wide)."""
    return cast(operand, dtype) if isinstance(operand, Value) else of_constant(operand, dtype)


def of_type(operand: Operand, dtype: dt.DType) -> c.CExpression:
    """An operand whose type in C is ``dtype``, narrow as it may be."""
    value = reduced(exact(operand, dtype))
    is_narrow = not isinstance(value.node, (c.Cast, c.Name, c.Element, c.Member))
    return converted(value, dtype).node if dtype in NARROW and is_narrow else value.node


def of_constant(
    value: dt.Weak, dtype: dt.DType, make: Callable[[dt.Constant, dt.DType], Value] = literal
) -> Value:
    """A constant, or a choice between constants, as a value."""
    if isinstance(value, dt.Choice):
        branches = (of_constant(v, dtype).node for v in (value.then, value.else_))
        return Value(c.Choice(value.condition, *branches), dtype)
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
        return cast(Value(c.Member(value.node, "re"), dt.real_of(source)), dtype)
    if dtype in dt.COMPLEXES:
        part = dt.real_of(dtype)
        parts = (exact(value, part).node, literal(0, part).node)
        return Value(c.Braces(C_TYPES[dtype], parts), dtype)
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
    """A call of a C function whose arguments and result have one type."""
    arguments = [argument(o, dtype) for o in operands]
    return exact(called(name, arguments, computed_in(dtype)), dtype)


def unify(a: Operand, b: Operand, common: dt.DType) -> tuple[Value, Value]:
    """Both operands, converted where needed so that C computes on them in the type ``common``."""
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
    """A weak operand, converted to the other operand's type unless C does that implicitly."""
    if not isinstance(operand, Value) or operand.weak is None or common in dt.COMPLEXES:
        return operand
    if common not in dt.INTEGERS:
        whole(operand)
    if operand.dtype in dt.INTEGERS and operand.dtype.itemsize <= max(4, common.itemsize):
        return operand
    return exact(operand, in_registers(common))


def narrowed(operand: Operand, common: dt.DType) -> Operand:
    """An operand of an operation that is not modular, reduced to its type.

    Otherwise the high bits of an iname, which a narrow type drops, would change the result.
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


def stored(operand: Operand, dtype: dt.DType) -> Value:
    """An operand as the right side of an assignment to a variable of type ``dtype``."""
    if not isinstance(operand, Value):
        if isinstance(operand, float) and dtype in dt.INTEGERS and np.isfinite(operand):
            operand = int(operand)
        return of_constant(operand, dtype, _stored_literal)
    source = operand.dtype
    if source == dtype:
        return operand
    if dt.components_of(dtype):
        return _record(operand, dtype)
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


def _record(value: Value, dtype: dt.DType) -> Value:
    """A record as one of another type, component by component."""
    sources, kinds = (dt.components_of(t).items() for t in (value.dtype, dtype))
    parts = tuple(
        of_type(Value(c.Member(value.node, name), source), kind)
        for (name, source), (_, kind) in zip(sources, kinds, strict=True)
    )
    return Value(c.Braces(C_TYPES[dtype], parts), dtype)


def _stored_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant that is assigned: integers need no suffix."""
    found = literal(value, dtype)  # whether it fits
    return operand_literal(value, dtype) if dtype in dt.INTEGERS else found


def truth_of(operand: Operand) -> Value:
    """An operand as a condition: true if it is not zero."""
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
