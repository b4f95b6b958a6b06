"""Mathematical functions and powers as CUDA C text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INTEGERS,
    SMALL_FLOATS,
    UNSIGNED,
    DType,
    call_type,
    fold_call,
    power_type,
    promote,
    real_of,
)
from loopkit.codegen import wrapping
from loopkit.codegen.conversions import Converter, Operand, typed
from loopkit.codegen.texts import MULTIPLY, NARROW, NEEDED_FOR_TYPE, POSTFIX, Text, c_type

_SPELLED = {"abs": "fabs", "round": "rint", "fabs": "fabs"}
"""Functions that C knows by another name; ``round`` rounds halves to even, as NumPy does."""

_INTEGER_IDENTITIES = frozenset(("floor", "ceil", "trunc", "round", "real", "conj"))
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_UNROLLED = 64


def print_call(
    converter: Converter, name: str, operands: Sequence[Operand], asked: Callable[[], str]
) -> Operand:
    """A call of one of the functions that the language knows."""
    types = [typed(o) for o in operands]
    result = call_type(name, types, asked)
    if name == "pow":
        return print_power(converter, operands[0], operands[1], asked)
    if not isinstance(result, np.dtype):
        return cast(Operand, fold_call(name, types, asked))
    common = types[0]
    for other in types[1:]:
        common = promote(common, other)
    assert isinstance(common, np.dtype)
    if common in COMPLEXES:
        return _complex_call(converter, name, operands[0], result)
    if common == BOOL or common in INTEGERS:
        special = _integer_call(converter, name, operands, common)
        if special is not None:
            return special
    if name == "imag":
        return converter.exact(0, result)
    compute = FLOAT32 if common in SMALL_FLOATS else common if common in FLOATS else FLOAT64
    texts = [_argument(converter, operand, common, compute).text for operand in operands]
    if name in ("real", "conj"):
        return converter.exact(operands[0], common)
    if name in _PREDICATES:
        return Text(f"{name}({texts[0]})", POSTFIX, BOOL)
    if name == "sign":
        converter.need("lk_sign")
        return converter.exact(Text(f"lk_sign({texts[0]})", POSTFIX, compute), result)
    c_name = _SPELLED.get(name, name) + ("f" if compute == FLOAT32 else "")
    return converter.exact(Text(f"{c_name}({', '.join(texts)})", POSTFIX, compute), result)


def _argument(converter: Converter, operand: Operand, common: DType, compute: DType) -> Text:
    """An argument in the type that the function computes in, after NumPy's own conversion."""
    if common in FLOATS:
        operand = converter.exact(operand, common)
    return converter.reduced(converter.exact(operand, compute))


def _integer_call(
    converter: Converter, name: str, operands: Sequence[Operand], common: DType
) -> Text | None:
    """A function of integers whose result is no floating-point number."""
    if name in _PREDICATES:
        return converter.exact(_PREDICATES[name], BOOL)
    if name in ("fmin", "fmax"):
        texts = [converter.reduced(converter.exact(o, common)).text for o in operands]
        return Text(f"{name[1:]}({', '.join(texts)})", POSTFIX, common)
    text = converter.exact(operands[0], common)
    if name in _INTEGER_IDENTITIES or (name == "abs" and (common == BOOL or common in UNSIGNED)):
        return text
    if name == "imag":
        return converter.exact(0, common)
    if name == "abs":
        argument = converter.reduced(text)
        if wrapping.overflows(wrapping.magnitude(argument, common), common):
            converter.need("lk_abs")
            return Text(f"lk_abs({argument.text})", POSTFIX, common)
        return Text(f"abs({argument.text})", POSTFIX, common, common in NARROW)
    if name == "sign":
        converter.need("lk_sign")
        return Text(f"lk_sign({converter.reduced(text).text})", POSTFIX, common)
    return None


def _complex_call(converter: Converter, name: str, operand: Operand, result: DType) -> Text:
    assert isinstance(operand, Text)
    converter.need(NEEDED_FOR_TYPE[operand.dtype])
    if name in ("real", "imag"):
        return Text(f"{operand.at(POSTFIX)}.{name[:2]}", POSTFIX, real_of(operand.dtype))
    if name not in ("abs", "conj"):
        converter.need(f"{NEEDED_FOR_TYPE[operand.dtype]}.functions")
    return Text(f"lk_{name}({operand.text})", POSTFIX, result)


def print_power(
    converter: Converter, base: Operand, exponent: Operand, asked: Callable[[], str]
) -> Operand:
    """``base ** exponent``: products for small constant exponents, else a function."""
    types = [typed(o) for o in (base, exponent)]
    result = power_type(types[0], types[1], asked)
    if not isinstance(result, np.dtype):
        return cast(Operand, result)
    number = exponent
    if isinstance(number, float) and number.is_integer() and result not in INTEGERS:
        number = int(number)
    if isinstance(base, Text):
        if type(number) is int and abs(number) <= _LARGEST_UNROLLED:
            return _constant_power(converter, base, number, result)
        if number == 0.5 and result in FLOATS:
            return print_call(converter, "sqrt", [converter.exact(base, result)], asked)
    if result in COMPLEXES:
        converter.need(f"{NEEDED_FOR_TYPE[result]}.functions")
        texts = [converter.exact(x, result).text for x in (base, exponent)]
        return Text(f"lk_pow({texts[0]}, {texts[1]})", POSTFIX, result)
    if result in INTEGERS:
        converter.need("lk_ipow")
        texts = [converter.reduced(converter.exact(x, result)).text for x in (base, exponent)]
        return Text(f"lk_ipow<{c_type(result)}>({texts[0]}, {texts[1]})", POSTFIX, result)
    compute = FLOAT32 if result in SMALL_FLOATS else result
    texts = [_argument(converter, x, result, compute).text for x in (base, exponent)]
    name = "powf" if compute == FLOAT32 else "pow"
    return converter.exact(Text(f"{name}({texts[0]}, {texts[1]})", POSTFIX, compute), result)


def _constant_power(converter: Converter, base: Text, exponent: int, result: DType) -> Operand:
    base = converter.reduced(converter.exact(base, result))
    if exponent == 0:
        return converter.exact(1, result)
    if exponent == 1:
        return base
    if exponent < 0:
        power = _constant_power(converter, base, -exponent, result)
        left, right = converter.unify(1, power, result)
        return Text(f"{left.at(MULTIPLY)} / {right.at(MULTIPLY + 1)}", MULTIPLY, result)
    if result in SMALL_FLOATS and exponent > 2:  # rounded once, not after each multiplication
        single = _constant_power(converter, converter.cast(base, FLOAT32), exponent, FLOAT32)
        return converter.exact(single, result)
    first = base
    if result in INTEGERS:
        most = wrapping.magnitude(base, result) ** exponent
        first = wrapping.guarded(base, most, result)
    wide = result in NARROW or first.unsigned
    if exponent <= 3 and _is_simple(base.text):
        factors = [first, *[base] * (exponent - 1)]
        text = " * ".join(factor.at(MULTIPLY + 1) for factor in factors)
        return Text(text, MULTIPLY, result, wide, unsigned=first.unsigned)
    converter.need("lk_power")
    if result in COMPLEXES:
        converter.need(NEEDED_FOR_TYPE[result])
    text = f"lk_power<{exponent}>({first.text})"
    return Text(text, POSTFIX, result, wide, unsigned=first.unsigned)


def _is_simple(text: str) -> bool:
    """Whether a text may be repeated: a name or an element, without calls and operators outside."""
    return "(" not in text and " " not in text.split("[", 1)[0]
