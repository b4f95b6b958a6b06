"""Counts as quasi-polynomials of sizes, interpolated from exact counts and verified at others.

Numbers of integer points are quasi-polynomials (Ehrhart 1962; Clauss 1996): for sizes of one
residue modulo a period, and above some minimum, they are polynomials.  So all numbers of a launch
are counted at sizes of one residue, one period apart.  Newton's differences give the degree in each
size.  The coefficients are those of a product of polynomials in one size each, where that fits all
counts, or else come from a grid of samples.  Each polynomial is then compared with counts at
further sizes, and with counts at other residues, to find all residues for which it is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb

from loopkit import _budget
from loopkit._costs.polynomial import QuasiPolynomial, constant, value_of
from loopkit._frozen import dataclass

Numbers = Sequence[int | None]
Terms = dict[tuple[int, ...], Fraction]
"""The coefficients of a polynomial by exponents."""
Fitted = Mapping[int, Terms]
Sample = Callable[[Mapping[str, int]], Numbers]


class NotPolynomialError(Exception):
    """A count is no quasi-polynomial of the sizes; ``number`` is its index, ``why`` the reason."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number
        self.why = why


class NoLaunchError(Exception):
    """No launch has these sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)
        self.sizes = sizes


@dataclass(frozen=True)
class Lattice:
    """The sizes ``first`` plus multiples of ``period``.

    ``lowest`` are the smallest valid sizes, of any residue.
    """

    names: tuple[str, ...]
    first: tuple[int, ...]
    period: tuple[int, ...]
    lowest: tuple[int, ...]

    def later(self, steps: int) -> Lattice:
        """The same lattice without its smallest sizes."""
        ends = zip(self.first, self.period, strict=True)
        return replace(self, first=tuple(first + steps * period for first, period in ends))

    def at(self, steps: Sequence[int], beside: Sequence[int] | None = None) -> dict[str, int]:
        """The sizes so many steps from the first, and ``beside`` further."""
        more = beside or (0,) * len(self.names)
        ends = zip(self.names, self.first, steps, self.period, more, strict=True)
        return {name: a + n * p + m for name, a, n, p, m in ends}


def interpolated(sample: Sample, lattice: Lattice) -> list[QuasiPolynomial | None]:
    """All numbers of samples as polynomials of sizes; None for those that are never known.

    Raises :class:`NotPolynomialError` where a number is none, and :class:`NoLaunchError`, as
    *sample* does, where there are not enough sizes.
    """
    if not lattice.names:
        return [None if v is None else constant(v) for v in sample({})]
    lines = [_along(sample, lattice, axis) for axis in range(len(lattice.names))]
    first = sample(lattice.at([0] * len(lines)))
    known = [n for n in range(len(first)) if first[n] is not None]
    degrees = [len(line) - 2 for line in lines]
    further = [tuple(d + 1 + (k + axis) % 2 for axis, d in enumerate(degrees)) for k in range(2)]
    # Most numbers are products of one factor per size, found by samples along the axes.
    fitted = {n: _product([[v[n] or 0 for v in line] for line in lines], lattice) for n in known}
    others = {n for steps in further for n in _differs(fitted, sample, lattice.at(steps))}
    if others:
        grid = list(product(*(range(d + 1) for d in degrees)))
        if len(grid) > _budget.SAMPLES:
            raise NotPolynomialError(0, f"{len(grid):,} exact counts would be needed")
        values = {steps: sample(lattice.at(steps)) for steps in grid}
        for n in others:
            fitted[n] = _fit({s: v[n] or 0 for s, v in values.items()}, lattice)
        for steps in further:
            _compare({n: fitted[n] for n in others}, sample, lattice.at(steps))
    told = _residues(sample, lattice, fitted, further[0])
    return [told.get(n) for n in range(len(first))]


def _along(sample: Sample, lattice: Lattice, axis: int) -> list[Numbers]:
    """Samples along one size: two more than the highest degree of any number in it."""
    names = range(len(lattice.names))
    values: list[Numbers] = []
    for step in range(_budget.DEGREE + 2):
        values.append(sample(lattice.at([step if n == axis else 0 for n in names])))
        left = [n for n in range(len(values[0])) if _difference([v[n] for v in values]) != 0]
        if step and not left:
            return values
    name = lattice.names[axis]
    raise NotPolynomialError(
        left[0],
        f"it is no polynomial of '{name}' of a degree up to {_budget.DEGREE}, for {name} % "
        f"{lattice.period[axis]} == {lattice.first[axis] % lattice.period[axis]}",
    )


def _difference(values: Sequence[int | None]) -> int:
    """The highest finite difference of values: 0 if a polynomial of lower degree fits them."""
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return 0
    last = len(known) - 1
    return sum((-1) ** (last - k) * comb(last, k) * v for k, v in enumerate(known))


def _product(lines: Sequence[Sequence[int]], lattice: Lattice) -> Terms:
    """The product of polynomials of one size each that has these values along each."""
    found: Terms = {(): Fraction(lines[0][0])}
    for line, first, period in zip(lines, lattice.first, lattice.period, strict=True):
        parts = _line([Fraction(v, line[0] or 1) for v in line], first, period)
        found = {(*e, n): c * part for e, c in found.items() for n, part in enumerate(parts)}
    return {e: c for e, c in found.items() if c}


def _fit(values: Mapping[tuple[int, ...], int], lattice: Lattice) -> Terms:
    """The polynomial of sizes with these values at steps of a grid: coefficients by exponents."""
    table: Terms = {s: Fraction(v) for s, v in values.items()}
    for axis, (first, period) in enumerate(zip(lattice.first, lattice.period, strict=True)):
        lines: dict[tuple[int, ...], list[Fraction]] = {}
        for steps in sorted(table):
            rest = (*steps[:axis], *steps[axis + 1 :])
            lines.setdefault(rest, []).append(table[steps])
        table = {
            (*rest[:axis], exponent, *rest[axis:]): coefficient
            for rest, line in lines.items()
            for exponent, coefficient in enumerate(_line(line, first, period))
        }
    return {e: c for e, c in table.items() if c}


def _line(values: Sequence[Fraction], first: int, period: int) -> list[Fraction]:
    """Coefficients of the polynomial with these values at first, first + period, ... (Newton)."""
    differences = list(values)
    for order in range(1, len(values)):
        for n in range(len(values) - 1, order - 1, -1):
            differences[n] = (differences[n] - differences[n - 1]) / (order * period)
    found = [Fraction(0)] * len(values)
    for n in range(len(values) - 1, -1, -1):
        # found * (size - node) + difference
        node = first + n * period
        shifted = [Fraction(0), *found[:-1]]
        found = [a - node * b for a, b in zip(shifted, found, strict=True)]
        found[0] += differences[n]
    return found


def _differs(fitted: Fitted, sample: Sample, sizes: Mapping[str, int]) -> set[int]:
    """The numbers whose exact count differs at some sizes; all, if no launch has these sizes."""
    try:
        seen = sample(sizes)
    except NoLaunchError:
        return set(fitted)
    values = [*sizes.values()]
    return {n for n, terms in fitted.items() if value_of(terms.items(), values) != seen[n]}


def _compare(fitted: Fitted, sample: Sample, sizes: Mapping[str, int]) -> None:
    sample(sizes)
    for number in sorted(_differs(fitted, sample, sizes)):
        at = ", ".join(f"{n} = {v}" for n, v in sizes.items())
        raise NotPolynomialError(
            number, f"the polynomial that fits smaller sizes gives another number at {at}"
        )


def _residues(
    sample: Sample, lattice: Lattice, fitted: Fitted, steps: tuple[int, ...]
) -> dict[int, QuasiPolynomial]:
    """Each polynomial for all residues that it holds for, as far as they are whole classes."""
    moduli = {number: list(lattice.period) for number in fitted}
    for axis, period in enumerate(lattice.period):
        for prime, power in _factors(period):
            besides = [
                [period // prime**k if n == axis else 0 for n in range(len(steps))]
                for k in range(1, power + 1)
            ]
            failed = _differs(fitted, sample, lattice.at(steps, besides[-1]))
            # What holds beside by the least there is needs no look at what is in between.
            for number in fitted.keys() - failed:
                moduli[number][axis] //= prime**power
            for beside in besides[:-1]:
                mine = {n: fitted[n] for n in failed}
                failed = failed - _differs(mine, sample, lattice.at(steps, beside))
                for number in failed:
                    moduli[number][axis] //= prime
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, own in moduli.items():
        groups.setdefault(tuple(own), []).append(number)
    for held, members in groups.items():
        # What holds for each size alone is tried for all of them together.
        mixed = [3 * m % p for m, p in zip(held, lattice.period, strict=True)]
        if any(mixed):
            sizes = lattice.at(steps, mixed)
            mine = {n: fitted[n] for n in members}
            for number in _differs(mine, sample, sizes):
                moduli[number] = list(lattice.period)
    large = _not_for_small(sample, lattice, fitted, moduli)
    return {
        n: _told(terms, lattice, moduli[n], small=n not in large) for n, terms in fitted.items()
    }


def _not_for_small(
    sample: Sample,
    lattice: Lattice,
    fitted: Fitted,
    moduli: Mapping[int, Sequence[int]],
) -> set[int]:
    """The numbers whose counts differ at sizes smaller than the first."""
    found: set[int] = set()
    for held in {tuple(m) for m in moduli.values()}:
        mine = {n: fitted[n] for n, m in moduli.items() if tuple(m) == held}
        ends = list(zip(lattice.lowest, lattice.first, held, strict=True))
        low = [lowest + (first - lowest) % m for lowest, first, m in ends]
        next_ = [min(a + m, first) for a, (_, first, m) in zip(low, ends, strict=True)]
        tried = {tuple(low), tuple(next_)}
        if set(held) == {1}:
            tried |= {(*lattice.first[:n], a, *lattice.first[n + 1 :]) for n, a in enumerate(low)}
        for point in sorted(tried - {lattice.first}):
            sizes = dict(zip(lattice.names, point, strict=True))
            found |= _differs(mine, sample, sizes)
    return found


def _told(terms: Terms, lattice: Lattice, moduli: Sequence[int], *, small: bool) -> QuasiPolynomial:
    """A polynomial with the sizes for which it is valid."""
    ends = list(zip(lattice.names, lattice.first, lattice.lowest, moduli, strict=True))
    return QuasiPolynomial(
        lattice.names,
        tuple(sorted(terms.items())),
        tuple((name, m, first % m) for name, first, _, m in ends if m > 1),
        () if small else tuple((name, first) for name, first, low, _ in ends if first > low),
    )


def _factors(number: int) -> list[tuple[int, int]]:
    """Primes and their powers."""
    found = []
    prime = 2
    while number > 1:
        power = 0
        while number % prime == 0:
            number //= prime
            power += 1
        if power:
            found.append((prime, power))
        prime += 1
    return found
