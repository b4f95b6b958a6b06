"""Integer expressions of the text and the kernel, as terms of the algebra (*forms*).

A form does not depend on the ranges of its names: an expression is the same form at all points of
the text, and each point has its own ranges (:mod:`.form_ranges`). Affine forms become sets.
Products of sizes, which occur in flattened subscripts, are compared as polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from loopkit._algebra.conditions import choose
from loopkit._algebra.evaluate import value_of
from loopkit._algebra.make import make_term, replace_terms
from loopkit._algebra.polynomials import Monomial, minus, plus, polynomial, scaled
from loopkit._algebra.ranges import range_of
from loopkit._algebra.terms import INF, Term, UnreadableError, is_constant, name, node, number
from loopkit._linear import runs

Form = Term

variable: Final = name

DATA: Final = frozenset(("read", "call", "select"))
"""Operations whose values only data decides: names inside of them are not looked at."""

_BITS: Final = {"<<": "shl", ">>": "shr", "&": "and", "|": "or", "^": "xor"}
_MOST_BITS = 64
_MOST_DIGITS = 16
"""Bits of an exclusive or that sets hold; no more tell the cells of a block's arrays apart."""


class NotAffineError(Exception):
    """A form is not affine in names, or a condition is not one on such forms."""

    def __init__(self, node: Term) -> None:
        super().__init__(node)
        self.node = node


def number_in(form: Form) -> int | None:
    """The value of a form that is a number."""
    return form.data if is_constant(form) else None


@lru_cache(1 << 14)
def names_of(form: Form) -> frozenset[str]:
    """The names of all variables, also inside quotients and extrema."""
    if form.op == "name":
        return frozenset((form.data[0],))
    return frozenset() if form.op in DATA else frozenset().union(*map(names_of, form.args))


@lru_cache(1 << 14)
def is_affine(form: Form) -> bool:
    """Whether isl can represent the form."""
    if form.op == "fdiv":
        return is_constant(form.args[1]) and is_affine(form.args[0])
    if form.op == "xor" and sum(bits_of(part) is None for part in form.args) > 1:
        return False
    is_simple = form.op in ("constant", "name", "sum", "min", "max", "xor")
    return is_simple and all(map(is_affine, form.args))


@lru_cache(1 << 14)
def is_data(form: Form) -> bool:
    """Whether the form depends on loaded values."""
    return form.op in DATA or any(map(is_data, form.args))


@lru_cache(1 << 14)
def has_digits(term: Term) -> bool:
    """Whether a form contains an exclusive or, for which sets name the binary digits."""
    return term.op == "xor" or (term.op not in DATA and any(map(has_digits, term.args)))


def renamed(term: Term, rename: Callable[[str], str]) -> Term:
    """A form or a condition with names replaced, except within values that depend on data."""

    def other(part: Term) -> Term | None:
        if part.op == "name":
            return variable(rename(part.data[0]))
        return part if part.op in DATA else None

    return replace_terms(term, other)


class _Values(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0


def value_at(form: Form, values: Mapping[str, int]) -> int:
    """The form's value, names without one being 0; raises KeyError for loaded values."""
    return value_of(form, _Values(values))


def values_of(forms: Iterable[Form], values: Mapping[str, int]) -> tuple[int, ...] | None:
    """The values of several forms; None where data enter one."""
    try:
        return tuple(value_at(form, values) for form in forms)
    except KeyError:
        return None


def monomial_of(atoms: Iterable[Term]) -> Monomial:
    """The product of atoms."""
    return tuple(sorted(atoms, key=lambda atom: atom.key))


def choice(condition: Term, then: Form, other: Form) -> Form:
    """``then`` where ``condition`` holds, else ``other``."""
    try:
        return choose(condition, then, other)
    except UnreadableError:
        return opaque("choice", condition, then, other)


def loaded(array: str, offset: Form, dtype: str = "") -> Form:
    """An element of an array, by its offset."""
    return node("read", "Z", (offset,), (array, dtype))


def opaque(word: Hashable, *parts: Term, sort: str = "Z") -> Form:
    """An uninterpreted value, identified by ``word``."""
    return node("call", sort, parts, word if isinstance(word, tuple) else (word,))


def floor(form: Form, by: int) -> Form:
    """``floor(form / by)``, Python's quotient."""
    return make_term("fdiv", form, number(by))


def remainder(form: Form, by: int) -> Form:
    """The remainder of such a quotient."""
    return make_term("mod", form, number(by))


def bitwise(operator: str, left: Form, right: Form) -> Form | None:
    """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers without end; None where it is no form."""
    known = number_in(right)
    if known is None or (operator in ("<<", ">>") and not 0 <= known < _MOST_BITS):
        return None
    is_mask = operator == "&" and known > 0 and known & (known + 1) == 0
    if operator in ("<<", ">>") or is_constant(left) or is_mask:
        return make_term(_BITS[operator], left, right)
    if is_data(left):
        return None
    common = _masked(left, known)
    if operator == "&":
        return common
    return plus(left, right, scaled(common, -1 if operator == "|" else -2))


def of_bits(operator: str, left: Form, right: Form) -> Form:
    """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers without end."""
    found = bitwise(operator, left, right)
    return make_term(_BITS[operator], left, right) if found is None else found


def _masked(form: Form, mask: int) -> Form:
    """``form & mask`` as remainders of quotients, one for each run of bits set in the mask."""
    if mask < 0:
        return minus(form, _masked(form, ~mask))
    parts = (scaled(remainder(floor(form, low), length), low) for low, length in runs(mask))
    return plus(*parts)


def exclusive_or(left: Form, right: Form, bits: int) -> Form:
    """``left ^ right % 2**bits``."""
    rest = remainder(right, 1 << bits)
    if rest is remainder(left, 1 << bits):
        return minus(left, rest)
    return of_bits("^", left, rest)


def bits_of(form: Form) -> int | None:
    """The number of bits of a form that is known to be nonnegative and small; else None."""
    low, high = range_of(form)
    bits = int(high).bit_length() if low >= 0 and high < INF else _MOST_DIGITS + 1
    return bits if bits <= _MOST_DIGITS else None


def coefficient(form: Form, name: str) -> int:
    """The coefficient of a name in the linear part of a form."""
    return polynomial(form).get((variable(name),), 0)


def without_number(form: Form) -> tuple[Form, int]:
    """A form without its constant summand, and that summand."""
    by = polynomial(form).get((), 0)
    return minus(form, number(by)), by
