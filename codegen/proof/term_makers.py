"""Makes terms in a normal form: operations that are equal for all operands become equal terms.

Floating-point sums and products keep their order and rounding; a sign may move through a product;
integers wrap around modulo their width; value-preserving conversions are dropped where only the
value matters.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from loopkit import _promotion as dt
from loopkit.codegen.proof.typed_computations import Term, const, keeps_values, numbers_in


def cast(dtype: dt.DType, x: Term) -> Term:
    """``x`` converted as an assignment does it."""
    source = x.dtype
    if source == dtype:
        return x
    if dtype == dt.BOOL:
        return truth(x)
    if x.op == "choice":
        condition, then, other = x.args
        return Term("choice", dtype, (condition, cast(dtype, then), cast(dtype, other)), x.data)
    if dtype in dt.COMPLEXES:
        if source in dt.COMPLEXES:
            return const(x.data, dtype) if x.op == "const" else Term("cast", dtype, (x,))
        return complex_of(dtype, x, const(0, dt.real_of(dtype)))
    if source in dt.COMPLEXES:
        return cast(dtype, part(x, "re"))
    if x.op == "const":
        whole = dtype in dt.INTEGERS and isinstance(x.data, float)
        if not whole or (math.isfinite(x.data) and dt.fits(int(x.data), dtype)):
            return const(x.data, dtype)
    if x.op == "cast":
        (inner,) = x.args
        before = inner.dtype
        wraps = dtype in dt.INTEGERS and source in dt.INTEGERS and before in dt.INTEGERS
        if keeps_values(before, source) or (wraps and dtype.itemsize <= source.itemsize):
            return cast(dtype, inner)
    if dtype in dt.INTEGERS and source in dt.INTEGERS and dtype.itemsize <= source.itemsize:
        rule = _WRAPPING.get(x.op)
        if rule is not None:
            return rule(dtype, x)
    return Term("cast", dtype, (x,))


def complex_of(dtype: dt.DType, re: Term, im: Term) -> Term:
    """A complex number from its parts."""
    kind = dt.real_of(dtype)
    re, im = cast(kind, re), cast(kind, im)
    if re.op == im.op == "const":
        return const(complex(re.data, im.data), dtype)
    if re.op == "choice" and im.op == "const":
        condition, then, other = re.args
        sides = (complex_of(dtype, then, im), complex_of(dtype, other, im))
        return Term("choice", dtype, (condition, *sides), re.data)
    return Term("complex", dtype, (re, im))


def part(x: Term, name: str) -> Term:
    """``x.re`` or ``x.im``."""
    if x.op == "complex":
        return x.args[0 if name == "re" else 1]
    return Term("part", dt.real_of(x.dtype), (x,), name)


def components(x: Term) -> tuple[Term, ...]:
    """The components of a record, which come from where it comes from."""
    if x.op == "record":
        return x.args
    if x.op == "choice":
        condition, then, other = x.args
        sides = zip(components(then), components(other), strict=True)
        return tuple(choice(condition, a, b, x.data) for a, b in sides)
    kinds = dt.components_of(x.dtype).items()
    return tuple(Term("part", kind, (x,), name) for name, kind in kinds)


def component(x: Term, name: str) -> Term:
    """One of them."""
    return components(x)[[*dt.components_of(x.dtype)].index(name)]


def value_of(x: Term) -> Term:
    """What has the same value, before conversions that lose nothing."""
    while x.op == "cast" and keeps_values(x.args[0].dtype, x.dtype):
        (x,) = x.args
    if x.op == "choice":
        condition, then, other = x.args
        kind, (then, other) = _exactly(x.dtype, then, other)
        return Term("choice", kind, (condition, then, other), x.data)
    return x


_BY_WIDTH = (dt.INT8, dt.UINT8, dt.INT16, dt.UINT16, dt.INT32, dt.UINT32, dt.INT64, dt.UINT64)


def _exactly(dtype: dt.DType, *operands: Term) -> tuple[dt.DType, list[Term]]:
    """Operands of an operation on values, and the narrowest type that contains their types.

    A result without rounding or wrapping does not depend on the type, up to ``dtype``, in which it
    is computed.
    """
    values = [value_of(x) for x in operands]
    numbers = [numbers_in(x) for x in values]
    kinds = [x.dtype for x, known in zip(values, numbers, strict=True) if known is None]
    if kinds:
        kind = reduce(dt.promote, kinds)
        known = [n for part in numbers if part is not None for n in part]
        if kind in dt.INTEGERS:
            holds = [k for k in _BY_WIDTH if k == kind or keeps_values(kind, k)]
            kind = next((k for k in holds if all(_holds(k, n) for n in known)), kind)
        fit = kind not in dt.INTEGERS or all(_holds(kind, n) for n in known)
        if kind == dt.BOOL and known:
            fit = False
        if kind != dtype and fit and keeps_values(kind, dtype):
            dtype = kind
    return dtype, [
        x if known is None else cast(dtype, x) for x, known in zip(values, numbers, strict=True)
    ]


def _holds(dtype: dt.DType, number: Any) -> bool:
    """Whether an integer type has a number as a value."""
    try:
        return bool(int(number) == number) and dt.fits(int(number), dtype)
    except (OverflowError, ValueError, TypeError):  # infinite, none at all, or complex
        return False


def neg(dtype: dt.DType, x: Term) -> Term:
    """``-x``."""
    if x.op == "const" and dtype not in dt.COMPLEXES:
        return const(-x.data, dtype)
    if x.op == "neg":
        return x.args[0]
    return Term("neg", dtype, (x,))


def add(dtype: dt.DType, a: Term, b: Term) -> Term:
    """``a + b``."""
    if dtype in dt.INTEGERS and a.op == b.op == "const":
        return const(a.data + b.data, dtype)
    return Term("add", dtype, (a, b))


def subtract(dtype: dt.DType, a: Term, b: Term) -> Term:
    """``a - b``, which is ``a + (-b)``."""
    return add(dtype, a, neg(b.dtype, b))


def _unsigned(x: Term) -> tuple[bool, Term]:
    """Whether a factor has a minus, and the factor without it."""
    if x.op == "neg":
        return True, x.args[0]
    if x.op == "const" and x.dtype not in dt.COMPLEXES and math.copysign(1, x.data) < 0:
        return True, const(-x.data, x.dtype)
    # What wraps around is less than nothing as well.
    half = 1 << (8 * x.dtype.itemsize - 1)
    if x.op == "const" and x.dtype in dt.INTEGERS and x.dtype.kind == "u" and x.data > half:
        return True, const(-x.data, x.dtype)
    return False, x


def _signed(word: str) -> Callable[[dt.DType, Term, Term], Term]:
    def make(dtype: dt.DType, a: Term, b: Term) -> Term:
        if dtype in dt.INTEGERS and a.op == b.op == "const":
            return const(a.data * b.data, dtype)
        if a.dtype in dt.COMPLEXES and b.dtype in dt.COMPLEXES:
            return Term(word, dtype, (a, b))  # zeros would change their sign
        if word == "div" and a.dtype not in dt.COMPLEXES and b.dtype in dt.COMPLEXES:
            return Term(word, dtype, (a, b))
        (minus, a), (other, b) = _unsigned(a), _unsigned(b)
        result = Term(word, dtype, (a, b))
        return neg(dtype, result) if minus != other else result

    return make


multiply = _signed("mul")
"""``a * b``."""
divide = _signed("div")
"""``a / b`` of numbers that are no integers."""


def power(dtype: dt.DType, x: Term, exponent: int) -> Term:
    """A product of ``exponent`` equal factors, at least one."""
    if exponent == 1:
        return x
    if dtype in dt.INTEGERS and x.op == "const":
        return const(x.data**exponent, dtype)
    if x.op == "neg" and dtype not in dt.COMPLEXES:
        result = power(dtype, x.args[0], exponent)
        return neg(dtype, result) if exponent % 2 else result
    return Term("power", dtype, (x,), exponent)


def extremum(word: str, dtype: dt.DType, a: Term, b: Term) -> Term:
    """The smaller or larger of two; nested ones are one."""
    if dtype == dt.BOOL:
        return logic("any" if word == "max" else "all", [a, b])
    sides = [value_of(x) for x in (a, b)]
    kind, parts = _exactly(dtype, *(p for x in sides for p in (x.args if x.op == word else (x,))))
    if kind == dt.BOOL:
        return cast(dtype, logic("any" if word == "max" else "all", parts))
    return cast(dtype, Term(word, kind, tuple(parts)))


def quotient(word: str, dtype: dt.DType, a: Term, b: Term) -> Term:
    """``a // b`` (``fdiv``) or ``a % b`` (``mod``) of integers, rounding down."""
    if a.op == b.op == "const" and b.data:
        return const(a.data // b.data if word == "fdiv" else a.data % b.data, dtype)
    if b.op == "const" and b.data > 0 and b.data & (b.data - 1) == 0:
        if word == "mod":
            return bits("and", dtype, a, const(b.data - 1, dtype))
        return shift("shr", dtype, a, const(b.data.bit_length() - 1, dt.INT32))
    kind, parts = _exactly(dtype, a, b)
    # The least value divided by -1 is the one quotient that does not fit.
    fit = word == "mod" or kind.kind == "u" or (b.op == "const" and b.data > 0)
    if kind != dt.BOOL and fit:
        return cast(dtype, Term(word, kind, tuple(parts)))
    return Term(word, dtype, (a, b))


def shift(word: str, dtype: dt.DType, a: Term, count: Term) -> Term:
    """``a << count`` or ``a >> count``, as NumPy has them."""
    count = value_of(count)
    if count.op == "const":
        bits = 8 * dtype.itemsize
        # By as many bits as there are, by more, or by less than none: that is all the same.
        count = const(count.data if 0 <= count.data < bits else bits, dt.INT32)
        if a.op == "const":
            return const(a.data << count.data if word == "shl" else a.data >> count.data, dtype)
    if word == "shr":
        kind, (value,) = _exactly(dtype, a)
        if kind != dt.BOOL:
            return cast(dtype, Term(word, kind, (value, count)))
    return Term(word, dtype, (a, count))


def bits(word: str, dtype: dt.DType, a: Term, b: Term) -> Term:
    """``a & b``, ``a | b`` or ``a ^ b``."""
    if dtype == dt.BOOL:
        return _truths(word, a, b)
    if a.op == b.op == "const":
        return const(_OF_BITS[word](a.data, b.data), dtype)
    truths = [_as_truth(value_of(x)) for x in (a, b)]
    if truths[0] is not None and truths[1] is not None:
        return cast(dtype, _truths(word, truths[0], truths[1]))
    kind, (left, right) = _exactly(dtype, a, b)
    return cast(dtype, Term(word, kind, (left, right)))


def _as_truth(x: Term) -> Term | None:
    """A value as the truth value that it is, or as good as; None for others."""
    if x.op == "const" and x.data in (0, 1):
        return const(bool(x.data), dt.BOOL)
    return x if x.dtype == dt.BOOL else None


def _truths(word: str, a: Term, b: Term) -> Term:
    """Bits of two truth values: a constant decides, or leaves the other one."""
    for one, other in ((a, b), (b, a)):
        if one.op == "const":
            if word == "xor":
                return negation(other) if one.data else other
            return other if bool(one.data) == (word == "and") else one
    if word == "xor":
        return Term("cmp", dt.BOOL, (a, b), "!=")
    return logic("all" if word == "and" else "any", [a, b])


_OF_BITS: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def invert(dtype: dt.DType, x: Term) -> Term:
    """``~x``."""
    return const(~x.data, dtype) if x.op == "const" else Term("inv", dtype, (x,))


def _wrap_both(make: Callable[[dt.DType, Term, Term], Term]) -> Callable[[dt.DType, Term], Term]:
    def wrapped(dtype: dt.DType, x: Term) -> Term:
        # Long sums lean to the left.
        spine = [x]
        while spine[-1].args[0].op == x.op and spine[-1].args[0].dtype == x.dtype:
            spine.append(spine[-1].args[0])
        result = cast(dtype, spine[-1].args[0])
        for whole in reversed(spine):
            result = make(dtype, result, cast(dtype, whole.args[1]))
        return result

    return wrapped


def _wrap_bits(word: str) -> Callable[[dt.DType, Term], Term]:
    return _wrap_both(lambda dtype, a, b: bits(word, dtype, a, b))


def _wrap_shift(dtype: dt.DType, x: Term) -> Term:
    by = x.args[1]
    if by.op != "const" or by.data < 0:
        return Term("cast", dtype, (x,))
    if by.data >= 8 * dtype.itemsize:
        return const(0, dtype)
    return shift("shl", dtype, cast(dtype, x.args[0]), by)


_WRAPPING: dict[str, Callable[[dt.DType, Term], Term]] = {
    "neg": lambda dtype, x: neg(dtype, cast(dtype, x.args[0])),
    "inv": lambda dtype, x: invert(dtype, cast(dtype, x.args[0])),
    "add": _wrap_both(add),
    "mul": _wrap_both(multiply),
    "and": _wrap_bits("and"),
    "or": _wrap_bits("or"),
    "xor": _wrap_bits("xor"),
    "shl": _wrap_shift,
    "power": lambda dtype, x: power(dtype, cast(dtype, x.args[0]), x.data),
}
"""Operations whose low bits hang on the low bits of their operands alone."""


def truth(x: Term) -> Term:
    """Whether a value is not zero."""
    x = value_of(x)
    if x.dtype == dt.BOOL:
        return x
    if x.op == "const":
        return const(x.data != 0, dt.BOOL)
    if x.op == "choice":
        condition, then, other = x.args
        return Term("choice", dt.BOOL, (condition, truth(then), truth(other)), x.data)
    return compare("!=", x, const(0, x.dtype))


_MIRRORED = {">": "<", ">=": "<="}


def compare(operator: str, a: Term, b: Term) -> Term:
    """A comparison of two values, whatever types they are converted to."""
    a, b = (_as_number(value_of(x)) for x in (a, b))
    if operator in _MIRRORED:
        a, b, operator = b, a, _MIRRORED[operator]
    return Term("cmp", dt.BOOL, (a, b), operator)


def _as_number(x: Term) -> Term:
    """A constant that only its value matters of."""
    if x.op == "choice":
        condition, then, other = x.args
        sides = (_as_number(then), _as_number(other))
        return Term("choice", sides[0].dtype, (condition, *sides), x.data)
    if x.op != "const":
        return x
    value = x.data
    if isinstance(value, complex) and value.imag == 0:
        value = value.real
    if isinstance(value, complex):
        return Term("const", dt.COMPLEX128, (), value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    whole = isinstance(value, int)
    return Term("const", dt.INT64 if whole else dt.FLOAT64, (), int(value) if whole else value)


def logic(word: str, parts: list[Term], asked: Any = None) -> Term:
    """``all`` or ``any`` of conditions; ``asked`` is what the text has for each."""
    flat: list[Term] = []
    texts: list[Any] = []
    for position, x in enumerate(parts):
        if x.op == word:
            flat += x.args
            texts += x.data or [None] * len(x.args)
        else:
            flat.append(x)
            texts.append(asked[position] if asked else None)
    return Term(word, dt.BOOL, tuple(flat), tuple(texts))


def negation(x: Term) -> Term:
    """``not x``."""
    if x.op == "const":
        return const(not x.data, dt.BOOL)
    if x.op == "not":
        return x.args[0]
    if x.op == "cmp" and x.data in ("==", "!="):
        return Term("cmp", dt.BOOL, x.args, "!=" if x.data == "==" else "==")
    return Term("not", dt.BOOL, (x,))


def choice(condition: Term, then: Term, other: Term, asked: Any = None) -> Term:
    """``then if condition else other``, both of one type."""
    return Term("choice", then.dtype, (condition, then, other), asked)


def call(name: str, dtype: dt.DType, *args: Term) -> Term:
    """A function that is not looked into."""
    return Term("call", dtype, args, name)


def own_call(name: str, dtype: dt.DType, *args: Term) -> Term:
    """A call of a user's function, which is uninterpreted.

    C++ selects the overload by the types of ``args``.
    """
    return Term("call", dtype, args, f"{OWN}{name}")


OWN = "::"
"""What begins the names of users' functions: no other function is called so."""
