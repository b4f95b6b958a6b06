"""Quasi-polynomials of sizes: a polynomial for each residue class of the sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm, prod

from loopkit._costs.sizes import whole
from loopkit._errors import InvalidArgumentError, check_known
from loopkit._frozen import dataclass

Term = tuple[tuple[int, ...], Fraction]
Condition = tuple[str, int, int]
"""A size, a modulus, and the remainder that the size has."""


@dataclass(frozen=True)
class QuasiPolynomial:
    """A count as a polynomial of sizes: ``2*n**3 + n**2 for n % 16 == 0 and n >= 32``.

    ``terms`` give a coefficient for each tuple of exponents of ``names``.  It holds for sizes that
    have the remainders of ``conditions`` and are at least what ``least`` says.  Called with sizes,
    it gives the number.  Sums and products hold where all parts do.
    """

    names: tuple[str, ...]
    terms: tuple[Term, ...]
    conditions: tuple[Condition, ...] = ()
    least: tuple[tuple[str, int], ...] = ()

    def __call__(self, /, **sizes: int) -> int:
        """The number at sizes.

        Raises :class:`InvalidArgumentError` for sizes that are missing, or that this polynomial
        is not for, :class:`UnknownNameError` for others.
        """
        check_known("size", sizes, self.names)
        if missing := [name for name in self.names if name not in sizes]:
            raise InvalidArgumentError(
                f"the value of {self.polynomial_text} needs the sizes {', '.join(missing)}"
            )
        sizes = {name: whole(name, value) for name, value in sizes.items()}
        if not self.holds_at(sizes):
            given = ", ".join(f"{n}={v}" for n, v in sizes.items())
            raise InvalidArgumentError(
                f"{self} has no value for {given}", instead=f"costs({given}) counts just this"
            )
        value = value_of(self.terms, [sizes[name] for name in self.names])
        assert value.denominator == 1  # counts of the sizes it is for are whole
        return int(value)

    evaluate = __call__

    def holds_at(self, sizes: Mapping[str, int]) -> bool:
        """Whether this polynomial is for these sizes."""
        remains = all(sizes[name] % modulus == rest for name, modulus, rest in self.conditions)
        return remains and all(sizes[name] >= low for name, low in self.least)

    @property
    def is_constant(self) -> bool:
        """Whether no size matters."""
        return not any(any(exponents) for exponents, _ in self.terms)

    @property
    def degree(self) -> int:
        """The largest sum of exponents."""
        return max((sum(exponents) for exponents, _ in self.terms), default=0)

    def __add__(self, other: QuasiPolynomial | int) -> QuasiPolynomial:
        one, two = _aligned(self, other)
        return _made(one, two, [*one.terms, *two.terms])

    __radd__ = __add__

    def __mul__(self, other: QuasiPolynomial | int) -> QuasiPolynomial:
        one, two = _aligned(self, other)
        terms = [
            (tuple(map(sum, zip(e, f, strict=True))), c * d)
            for e, c in one.terms
            for f, d in two.terms
        ]
        return _made(one, two, terms)

    __rmul__ = __mul__

    def __sub__(self, other: QuasiPolynomial | int) -> QuasiPolynomial:
        return self + other * -1

    def __rsub__(self, other: int) -> QuasiPolynomial:
        return self * -1 + other

    @property
    def polynomial_text(self) -> str:
        """The polynomial alone, highest powers first."""
        ordered = sorted(self.terms, key=lambda t: (-sum(t[0]), tuple(-e for e in t[0])))
        text = ""
        for exponents, coefficient in ordered:
            factors = [
                name if e == 1 else f"{name}**{e}"
                for name, e in zip(self.names, exponents, strict=True)
                if e
            ]
            size = abs(coefficient)
            if size.numerator != 1 or not factors:
                factors.insert(0, str(size.numerator))
            term = "*".join(factors) + (f"/{size.denominator}" if size.denominator > 1 else "")
            if not text:
                text = f"-{term}" if coefficient < 0 else term
            else:
                text += f" - {term}" if coefficient < 0 else f" + {term}"
        return text or "0"

    @property
    def where(self) -> str:
        """For which sizes it is; empty for all."""
        parts = [f"{name} % {modulus} == {rest}" for name, modulus, rest in self.conditions]
        parts += [f"{name} >= {low}" for name, low in self.least]
        return " and ".join(parts)

    def __str__(self) -> str:
        return f"{self.polynomial_text} for {self.where}" if self.where else self.polynomial_text

    def __format__(self, spec: str) -> str:
        return format(str(self), spec.replace(",", ""))


def constant(value: int) -> QuasiPolynomial:
    """A number that is the same for all sizes."""
    return QuasiPolynomial((), (((), Fraction(value)),) if value else ())


def value_of(terms: Iterable[Term], sizes: Sequence[int]) -> Fraction:
    """The value of a polynomial at sizes, given in the order of the exponents."""
    return sum((c * prod(map(pow, sizes, exponents)) for exponents, c in terms), Fraction(0))


def _aligned(
    one: QuasiPolynomial, other: QuasiPolynomial | int
) -> tuple[QuasiPolynomial, QuasiPolynomial]:
    """The two over the names of both."""
    two = other if isinstance(other, QuasiPolynomial) else constant(other)
    names = tuple(dict.fromkeys((*one.names, *two.names)))

    def over(value: QuasiPolynomial) -> QuasiPolynomial:
        place = {name: n for n, name in enumerate(value.names)}
        terms = tuple(
            (tuple(e[place[n]] if n in place else 0 for n in names), c) for e, c in value.terms
        )
        return QuasiPolynomial(names, terms, value.conditions, value.least)

    return over(one), over(two)


def _made(one: QuasiPolynomial, two: QuasiPolynomial, terms: Iterable[Term]) -> QuasiPolynomial:
    """The polynomial of these terms, where both hold."""
    summed: dict[tuple[int, ...], Fraction] = {}
    for exponents, coefficient in terms:
        summed[exponents] = summed.get(exponents, Fraction(0)) + coefficient
    moduli: dict[str, tuple[int, int]] = {}
    for name, modulus, rest in (*one.conditions, *two.conditions):
        before, remainder = moduli.get(name, (1, 0))
        both = lcm(before, modulus)
        agreed = (r for r in range(both) if r % before == remainder and r % modulus == rest)
        found = next(agreed, None)
        if found is None:
            raise InvalidArgumentError(f"no '{name}' is one that both {one} and {two} are for")
        moduli[name] = both, found
    least: dict[str, int] = {}
    for name, low in (*one.least, *two.least):
        least[name] = max(low, least.get(name, low))
    return QuasiPolynomial(
        one.names,
        tuple(sorted((e, c) for e, c in summed.items() if c)),
        tuple((name, modulus, rest) for name, (modulus, rest) in moduli.items()),
        tuple(least.items()),
    )
