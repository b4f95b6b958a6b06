"""Ranges of forms, from the ranges of the names in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopkit._algebra.polynomials import plus, scaled
from loopkit._algebra.ranges import computed_range
from loopkit._algebra.terms import is_constant
from loopkit._cached import memoised
from loopkit._intervals import Interval
from loopkit.codegen.proof.forms import (
    Form,
    bits_of,
    bitwise,
    exclusive_or,
    floor,
    is_data,
    of_bits,
)

FAR: Final = 1 << 200
"""A bound that stands for none."""

_MOST_DIGITS = 16
"""Sets have names for each digit, and slow down with their number."""


class Ranges:
    """The ranges of names at one point, and the ranges of forms that follow."""

    range_of_name: Callable[[str], Interval]
    """Bounds of a name."""

    @memoised
    def range_of(self, form: Form) -> Interval:
        """Bounds of a form (memoised: a form of many remainders is asked about each part)."""
        if form.op == "name":
            return self.range_of_name(form.data[0])
        low, high = computed_range(form, self.range_of)
        return int(max(low, -FAR)), int(min(high, FAR))

    def bits_of(self, form: Form) -> int | None:
        """The number of bits of a form that is known to be nonnegative and small; else None."""
        low, high = self.range_of(form)
        known = high.bit_length() if low >= 0 and high.bit_length() <= _MOST_DIGITS else None
        return known if (own := bits_of(form)) is None else own

    def of_bits(self, operator: str, left: Form, right: Form) -> Form:
        """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers.

        Of two unknowns, one of which needs few bits, ``^`` has digits, and the others are made of
        it: ``a + b`` is ``(a ^ b) + 2*(a & b)``.
        """
        found = bitwise(operator, left, right)
        if found is not None:
            return found
        known = is_data(left) or is_data(right) or is_constant(left)
        has_digits = operator == "^" or (operator in "&|" and not known)
        for one, other in ((left, right), (right, left)) if has_digits else ():
            if (bits := self.bits_of(other)) is None:
                continue
            digits = exclusive_or(one, other, bits)
            if operator == "^":
                return digits
            return floor(plus(one, other, scaled(digits, -1 if operator == "&" else 1)), 2)
        return of_bits(operator, left, right)
