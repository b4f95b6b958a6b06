"""Indices that are numbers in mixed radix, and so tell all of their inames."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._linear import linear
from loopkit._nodes import Expression


def told_by(kernel: Kernel, index: Expression) -> frozenset[str]:
    """The inames that an index tells: wherever it has one value, each of them has one.

    ``16*i_outer + i_inner`` tells both, if ``i_inner`` has at most 16 values.  All inames of
    the index are told, or none; none does not say that they are not.
    """
    if isinstance(index, prim.Variable):
        return frozenset((index.name,)) & kernel.home_domain.keys()
    return told_by_all(kernel, (index,))


def told_by_all(kernel: Kernel, indices: Iterable[Expression]) -> frozenset[str]:
    """The inames that several indices tell together, as :func:`told_by`.

    ``lane // 4`` and ``2*(lane % 4) + r`` tell ``lane`` and ``r``: an iname in quotients
    counts as the numbers that it is made of, ``4*(lane // 4) + lane % 4``.
    """
    forms = [form for index in indices if (form := _form(kernel, index)) is not None]
    divisors: dict[str, set[int]] = {}
    for form in forms:
        for (iname, divisor), _ in form:
            divisors.setdefault(iname, {1}).add(divisor)
    told: set[tuple[str, int]] = set()
    for form in forms:
        told |= _told_digits(kernel, form, divisors)
    return frozenset(i for i, mine in divisors.items() if all((i, d) in told for d in mine))


Quotient = tuple[str, int]
"""An iname and a divisor: ``("i", 4)`` stands for ``i // 4``, or for the digit above 4."""


def _form(kernel: Kernel, index: Expression) -> list[tuple[Quotient, int]] | None:
    """An index as a sum of quotients of inames with coefficients, and sizes; None if it is not."""
    names = variable_names(index)
    if not names - kernel.home_domain.keys() <= {*kernel.sizes}:
        return None
    try:
        terms = linear(index).terms
    except _sets.NotAffineError:
        return None
    form = []
    for atom, coefficient in terms.items():
        divided = isinstance(atom, prim.FloorDiv)
        inner = atom.numerator if divided else atom
        if isinstance(inner, prim.Variable) and inner.name in kernel.home_domain:
            form.append(((inner.name, int(atom.denominator) if divided else 1), coefficient))
        elif variable_names(atom) & kernel.home_domain.keys():
            return None
    found = {iname for (iname, _), _ in form}
    return form if found >= names & kernel.home_domain.keys() else None


def _told_digits(
    kernel: Kernel, form: list[tuple[Quotient, int]], divisors: dict[str, set[int]]
) -> set[Quotient]:
    """The digits that one index tells: all that it is made of, or none."""
    weights: dict[Quotient, int] = {}
    for (iname, divisor), coefficient in form:
        chain = sorted(divisors[iname])
        if any(large % small for small, large in pairwise(chain)):
            return set()
        for digit in chain:
            if digit >= divisor:
                weight = coefficient * (digit // divisor)
                weights[iname, digit] = weights.get((iname, digit), 0) + weight
    reach: int | None = 0
    used = {quotient: weight for quotient, weight in weights.items() if weight}
    for (iname, digit), weight in sorted(used.items(), key=lambda item: abs(item[1])):
        # All smaller digits together must not reach the next larger one.
        if reach is None or abs(weight) <= reach:
            return set()
        above = min((d for d in divisors[iname] if d > digit), default=None)
        low, high = kernel.range_of(iname)
        if above is not None:
            reach += abs(weight) * (above // digit - 1)
        elif low is None or high is None:
            reach = None
        else:
            reach += abs(weight) * (high // digit - low // digit)
    return set(used)
