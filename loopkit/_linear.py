"""Integer expressions as linear forms over names and floor quotients.

Transforms that shift, split and lay out indices need sums with coefficients, and must print
readable text: ``32*r + t//8`` and not ``(256*r + t) // 8``.  This module only handles expressions;
sets are isl's.

Bit operations on integers are sums of quotients and remainders as well, with integers of unlimited
width in two's complement: ``x >> 3`` is ``x // 8`` for every ``x``, and ``x & 24`` is
``8*(x // 8 % 4)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_, xor

import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._intervals import Interval, add, floor_divide, multiply
from loopkit._nodes import Expression, is_integer
from loopkit._same import remembered

MOST_SHIFT = 64
"""Shifts go by fewer bits: those of data give zero from there on."""

_FOLDED = {prim.BitwiseAnd: and_, prim.BitwiseOr: or_, prim.BitwiseXor: xor}


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """The runs of bits that are set in a ``mask`` of 0 or more, as pairs of powers of two.

    ``x & mask`` is the sum of ``low * (x // low % length)`` over all ``(low, length)``.
    """
    low = 1
    while mask >= low:
        if not mask & low:
            low *= 2
            continue
        length = 1
        while mask & (low * length):
            length *= 2
        yield low, length
        low *= length


def arithmetic(expr: Expression) -> Expression | None:
    """A bit operation as a sum of quotients and remainders; None for other expressions.

    One operand may be unknown, the others must be constants.
    """
    if isinstance(expr, prim.BitwiseNot):
        return prim.Sum((-1, prim.Product((-1, expr.child))))
    if isinstance(expr, (prim.LeftShift, prim.RightShift)):
        if not is_integer(expr.shift) or not 0 <= expr.shift < MOST_SHIFT:
            return None
        power = 1 << int(expr.shift)
        if isinstance(expr, prim.LeftShift):
            return prim.Product((power, expr.shiftee))
        return prim.FloorDiv(expr.shiftee, power)
    fold = _FOLDED.get(type(expr))
    if fold is None:
        return None
    unknown = [child for child in expr.children if not is_integer(child)]
    numbers = [int(child) for child in expr.children if is_integer(child)]
    if len(unknown) != 1 or not numbers:
        return None
    (value,), mask = unknown, reduce(fold, numbers)
    common = _masked(value, mask)
    if fold is and_:
        return common
    return prim.Sum((value, mask, prim.Product((-1 if fold is or_ else -2, common))))


def _masked(value: Expression, mask: int) -> Expression:
    """``value & mask``."""
    if mask < 0:
        return prim.Sum((value, prim.Product((-1, _masked(value, ~mask)))))
    parts = [
        prim.Product((low, prim.Remainder(prim.FloorDiv(value, low), length)))
        for low, length in runs(mask)
    ]
    return prim.Sum(tuple(parts)) if parts else 0


Ranges = Mapping[str, Interval]
NO_RANGES: Ranges = {}


class NotAffineError(Exception):
    """An expression is not affine in names (with integer division by constants)."""


def linear_sum(terms: Sequence[tuple[int, Expression]], constant: int) -> Expression:
    """``c0*e0 + c1*e1 + ... + constant``, positive terms first."""
    ordered = [t for t in terms if t[0] > 0] + [t for t in terms if t[0] < 0]
    parts: list[Expression] = [e if c == 1 else prim.Product((c, e)) for c, e in ordered]
    if constant or not parts:
        parts.append(constant)
    return parts[0] if len(parts) == 1 else prim.Sum(tuple(parts))


@dataclass(frozen=True, eq=False, slots=True)
class Linear:
    """``sum(coefficient * atom) + constant``; atoms are names and floor quotients."""

    terms: Mapping[Expression, int]
    constant: int = 0

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        return total((self, other))

    def __mul__(self, factor: int) -> Linear:
        if factor == 0:
            return Linear({})
        return Linear({a: c * factor for a, c in self.terms.items()}, self.constant * factor)

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (other * -1)

    def divided(self, divisor: int) -> Linear:
        """The form divided by ``divisor``, which must divide all its coefficients."""
        return Linear({a: c // divisor for a, c in self.terms.items()}, self.constant // divisor)

    def split(self, divisor: int) -> tuple[Linear, Linear]:
        """``(whole, rest)`` where the form is ``divisor*whole + rest``.

        No coefficient of the rest is a multiple of the divisor; its constant is a remainder.
        """
        quotient, remainder = divmod(self.constant, divisor)
        whole = {a: c // divisor for a, c in self.terms.items() if c % divisor == 0}
        rest = {a: c for a, c in self.terms.items() if c % divisor}
        return Linear(whole, quotient), Linear(rest, remainder)

    def same_terms(self, other: Linear) -> bool:
        """Whether the two differ by a constant."""
        return self.terms == other.terms

    @property
    def is_constant(self) -> bool:
        """Whether no name has a coefficient."""
        return not any(self.terms.values())

    @property
    def names(self) -> frozenset[str]:
        """The names that occur, also inside quotients."""
        return frozenset().union(*(variable_names(a) for a in self.terms))

    @property
    def expression(self) -> Expression:
        """The form as an expression; ``x - m*(x//m)`` is written ``x % m``."""
        terms = dict(self.terms)
        constant = self.constant
        folded: list[tuple[int, Expression]] = []
        for atom, coefficient in self.terms.items():
            remainder = _remainder_of(atom, coefficient, terms)
            if remainder is not None:
                factor, whole, inner = remainder
                for a in inner.terms:
                    del terms[a]
                del terms[atom]
                constant -= inner.constant * factor
                folded.append((factor, whole))
        return linear_sum([(c, a) for a, c in terms.items()] + folded, constant)

    def range(self, ranges: Ranges) -> Interval | None:
        """The smallest and the largest value, given those of the names; None if unknown."""
        result = (self.constant, self.constant)
        for atom, coefficient in self.terms.items():
            known = _atom_range(atom, ranges)
            if known is None:
                return None
            result = add(result, multiply(known, (coefficient, coefficient)))
        return result

    def floor_div(self, divisor: int, ranges: Ranges = NO_RANGES) -> Linear:
        """``floor(self / divisor)``, with what divides evenly drawn out of the quotient.

        ``ranges`` tell how large names get, so that ``(16*t + s) // 128`` with
        ``0 <= s < 16`` becomes ``t // 8``.
        """
        if divisor < 0:
            return (self * -1).floor_div(-divisor, ranges)
        if divisor == 1:
            return self
        whole, rest = self.split(divisor)
        rest, divisor, _ = without_small_terms(rest, divisor, lambda form: form.range(ranges))
        if divisor == 1:
            return whole + rest
        known = rest.range(ranges)
        if known is not None and known[0] // divisor == known[1] // divisor:
            return whole + known[0] // divisor
        [*atoms] = rest.terms
        first = atoms[0]
        if len(atoms) == 1 and isinstance(first, prim.FloorDiv) and rest.terms[first] == 1:
            within: int = first.denominator
            inner = linear(first.numerator) + rest.constant * within
            return whole + inner.floor_div(divisor * within, ranges)
        return whole + Linear({prim.FloorDiv(rest.expression, divisor): 1})

    def remainder(self, divisor: int, ranges: Ranges = NO_RANGES) -> Linear:
        """``self % divisor``."""
        return self - self.floor_div(divisor, ranges) * divisor

    def substitute(self, values: Mapping[str, Linear]) -> Linear:
        """The form with names replaced."""
        result = Linear({}, self.constant)
        for atom, coefficient in self.terms.items():
            if isinstance(atom, prim.Variable):
                part = values.get(atom.name) or Linear({atom: 1})
            else:
                part = linear(atom.numerator).substitute(values).floor_div(atom.denominator)
            result = result + part * coefficient
        return result


def _remainder_of(
    atom: Expression, coefficient: int, terms: Mapping[Expression, int]
) -> tuple[int, Expression, Linear] | None:
    """``(c, x % m, x)`` if ``terms`` hold all of ``c*x`` and ``coefficient*atom`` is
    ``-c*m*(x//m)``.
    """
    if not isinstance(atom, prim.FloorDiv) or atom not in terms or not is_integer(atom.denominator):
        return None
    inner = linear_in_parts(atom.numerator)
    factor, rest = divmod(-coefficient, atom.denominator)
    if not rest and all(terms.get(a) == c * factor for a, c in inner.terms.items()):
        return factor, prim.Remainder(atom.numerator, atom.denominator), inner
    for other, factor in terms.items():
        # (x//n) - m*(x//(m*n)) is (x//n) % m.
        if (
            isinstance(other, prim.FloorDiv)
            and other.numerator == atom.numerator
            and is_integer(other.denominator)
            and atom.denominator % other.denominator == 0
            and coefficient * other.denominator == -factor * atom.denominator
            and other != atom
        ):
            modulus = atom.denominator // other.denominator
            return factor, prim.Remainder(other, modulus), Linear({other: 1})
    return None


def without_small_terms(
    rest: Linear, divisor: int, range_of: Callable[[Linear], Interval | None]
) -> tuple[Linear, int, Linear]:
    """Numerator and denominator of the same floor quotient, with smaller numbers, and what it lost.

    ``(8*t + v) // 32`` is ``t // 4`` where ``range_of`` says that ``v`` has fewer than 8 values
    from 0, and what is left over is ``8*(t % 4) + v``.
    """
    by_size = sorted(rest.terms.items(), key=lambda item: -abs(item[1]))
    common = divisor
    for position, (_, coefficient) in enumerate(by_size):
        step = math.gcd(common, coefficient)
        if step == 1:
            break
        common = step
        small = Linear(dict(by_size[position + 1 :]), rest.constant % step)
        known = range_of(small)
        if known is not None and known[0] >= 0 and known[1] < step:
            large = Linear(dict(by_size[: position + 1]), rest.constant - rest.constant % step)
            return large.divided(step), divisor // step, small
    return rest, divisor, Linear({})


def _atom_range(atom: Expression, ranges: Ranges) -> Interval | None:
    if isinstance(atom, prim.Variable):
        return ranges.get(atom.name)
    inner = linear(atom.numerator).range(ranges)
    divisor = atom.denominator
    return None if inner is None else floor_divide(inner, (divisor, divisor))


def variable(name: str) -> Linear:
    """The form that is one name."""
    return Linear({prim.Variable(name): 1})


def total(parts: Iterable[Linear], *, with_zeros: bool = False) -> Linear:
    """The sum of forms, terms in the order in which they first occur.

    ``with_zeros`` keeps what cancels out among them.
    """
    terms: dict[Expression, int] = {}
    constant = 0
    for part in parts:
        constant += part.constant
        for atom, coefficient in part.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient
    return Linear(terms if with_zeros else {a: c for a, c in terms.items() if c}, constant)


@remembered(1 << 12)
def linear(expr: Expression) -> Linear:
    """``expr`` as a linear form; raises :class:`NotAffineError` where it is none."""
    if is_integer(expr):
        return Linear({}, int(expr))
    if isinstance(expr, prim.Variable):
        return Linear({expr: 1})
    if isinstance(expr, prim.Sum):
        return total(map(linear, expr.children))
    if isinstance(expr, prim.Product):
        return product(map(linear, expr.children), expr)
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
        divisor = linear(expr.denominator)
        if divisor.terms or not divisor.constant:
            raise NotAffineError(expr)
        numerator = linear(expr.numerator)
        if isinstance(expr, prim.FloorDiv):
            return numerator.floor_div(divisor.constant)
        return numerator.remainder(divisor.constant)
    bits = arithmetic(expr)
    if bits is None:
        raise NotAffineError(expr)
    return linear(bits)


def linear_in_parts(expr: Expression) -> Linear:
    """``expr`` as a linear form; what is affine in nothing is an atom of it, such as ``i*n``."""
    if isinstance(expr, prim.Sum):
        return total(map(linear_in_parts, expr.children))
    if isinstance(expr, prim.Product) and sum(not is_integer(f) for f in expr.children) == 1:
        return product(map(linear_in_parts, expr.children), expr)
    try:
        return linear(expr)
    except NotAffineError:
        return Linear({expr: 1})


def plain_terms(expr: Expression) -> frozenset[str]:
    """The names that are added up in an expression, outside of quotients; none where it is no form.

    ``8*i + j // 4`` has ``i``.
    """
    try:
        terms = linear(expr).terms
    except NotAffineError:
        return frozenset()
    divided = frozenset().union(*(variable_names(a) for a in terms if not is_name(a)))
    return frozenset(a.name for a in terms if is_name(a)) - divided


def is_name(atom: Expression) -> bool:
    """Whether an atom of a form is a name."""
    return isinstance(atom, prim.Variable)


def product(parts: Iterable[Linear], expr: Expression) -> Linear:
    """The product of forms, of which one at most has terms; ``expr`` is what it is of."""
    result = Linear({}, 1)
    for part in parts:
        if part.terms and result.terms:
            raise NotAffineError(expr)
        result = part * result.constant if part.terms else result * part.constant
    return result
