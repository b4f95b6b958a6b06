"""Bounds of forms, from bounds of the names in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopkit import _intervals
from loopkit._cached import memoised
from loopkit._intervals import Interval
from loopkit.codegen.proof.forms import (
    Atom,
    Choice,
    Extreme,
    Floor,
    Form,
    Opaque,
    Variable,
    Xor,
    bits_of,
    bitwise,
    exclusive_or,
    floor,
    opaque,
)

FAR = 1 << 200
"""A bound that stands for none."""

_MOST_DIGITS = 16
"""Sets have names for each digit, and slow down with their number."""


class Ranges:
    """What is known of forms where names have bounds."""

    range_of_name: Callable[[str], Interval]
    """Bounds of a name."""

    @memoised
    def range_of(self, form: Form) -> Interval:
        """Bounds of a form by interval arithmetic, in which remainders are less than divisors.

        One remainder after the other is taken out: the order of many makes no difference.
        """
        low, high = _intervals.add(
            *(
                _intervals.multiply((factor, factor), *map(self._range_of_atom, monomial))
                for monomial, factor in form.terms.items()
            )
        )
        found = max(low, -FAR), min(high, FAR)
        for rest, factor, by in _remainders(form):
            left = _intervals.multiply((factor, factor), (0, by - 1))
            return _intervals.intersection(found, _intervals.add(self.range_of(rest), left))
        return found

    def _range_of_atom(self, atom: Atom) -> Interval:
        if isinstance(atom, Variable):
            return self.range_of_name(atom.name)
        if isinstance(atom, Floor):
            return _intervals.floor_divide(self.range_of(atom.of), (atom.by, atom.by))
        if isinstance(atom, Extreme):
            combined = _intervals.least if atom.word == "min" else _intervals.greatest
            return combined(*map(self.range_of, atom.parts))
        if isinstance(atom, Xor):
            # Bits above those that change stay.
            (low, high), rest = self.range_of(atom.left), (1 << atom.bits) - 1
            return low & ~rest, high | rest
        if isinstance(atom, Choice):
            return _intervals.hull(self.range_of(atom.then), self.range_of(atom.other))
        return self._range_of_quotient(atom) if isinstance(atom, Opaque) else (-FAR, FAR)

    def _range_of_quotient(self, atom: Opaque) -> Interval:
        """Bounds of ``a // b`` and ``a % b`` where nothing is negative; both are 0 where b is."""
        match atom:
            case Opaque(word=("//" | "%",), parts=(Form() as of, Form() as by)):
                (low, high), (least, most) = self.range_of(of), self.range_of(by)
                if low >= 0 and least >= 0:
                    return 0, high if atom.word == ("//",) else max(0, min(high, most - 1))
        return -FAR, FAR

    def bits_of(self, form: Form) -> int | None:
        """How many bits hold a form here, if it is known to need no sign."""
        known = bits_of(form)
        if known is not None:
            return known
        low, high = self.range_of(form)
        return high.bit_length() if low >= 0 and high < FAR else None

    def of_bits(self, operator: str, left: Form, right: Form) -> Form:
        """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers.

        Of two unknowns, one of which needs few bits, ``^`` has digits, and the others are made of
        it: ``a + b`` is ``(a ^ b) + 2*(a & b)``.
        """
        found = bitwise(operator, left, right)
        if found is not None:
            return found
        known = left.is_data or right.is_data or left.constant is not None
        has_digits = operator == "^" or (operator in "&|" and not known)
        for one, other in ((left, right), (right, left)) if has_digits else ():
            if (bits := self.bits_of(other)) is None or bits > _MOST_DIGITS:
                continue
            digits = exclusive_or(one, other, bits)
            if operator == "^":
                return digits
            return floor(one.plus(other).plus(digits, -1 if operator == "&" else 1), 2)
        return opaque(operator, left, right)


def _remainders(form: Form) -> Iterator[tuple[Form, int, int]]:
    """``(rest, factor, by)`` where a form is ``rest + factor*(x % by)``, the rest shorter.

    ``x`` may be a quotient: ``x//2 - 2*(x//4)`` is ``x//2 % 2``.
    """
    floors = {m[0]: c for m, c in form.terms.items() if len(m) == 1 and isinstance(m[0], Floor)}
    for atom in sorted(floors, key=lambda floor: -floor.by):
        inner = [f for f in floors if f.of == atom.of and f.by < atom.by and atom.by % f.by == 0]
        inner.sort(key=lambda floor: -floor.by)
        for divided, whole in (*((f.by, Form({(f,): 1})) for f in inner), (1, atom.of)):
            by = atom.by // divided
            if floors[atom] % by == 0:
                factor = -floors[atom] // by
                rest = form.minus(whole.minus(Form({(atom,): by})).scaled(factor))
                if len(rest.terms) < len(form.terms):
                    yield rest, factor, by
