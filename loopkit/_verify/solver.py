"""The values of some names of a relation as expressions of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property
from loopkit._expression import substitute, variable_names
from loopkit._hidden import OTHER, instance
from loopkit._linear import Linear
from loopkit._nodes import Expression


class Solver:
    """Solves a relation for ``wanted`` names, where ``known`` ones and sizes are given.

    ``known`` maps names of the relation to those in results.  A name that the
    others leave open gets its smallest value.
    """

    def __init__(
        self,
        relation: isl.Set,
        wanted: Sequence[str],
        known: Mapping[str, str],
        sizes: Sequence[str],
    ) -> None:
        self.relation = relation
        self.wanted = frozenset(wanted)
        self.known = {k: prim.Variable(v) for k, v in known.items()}
        self.given = frozenset(known) | frozenset(sizes)
        self._values: dict[str, Expression | None] = {}
        self._ranges: dict[str, tuple[int, int] | None] = {}

    def value(self, name: str) -> Expression | None:
        """The value of one wanted name; None where none was found."""
        if name not in self._values:
            value = self._by_digits(name)
            if value is None:
                onto = _sets.project_onto(self.relation, [name, *self.given])
                value = _by_equality(onto, name)
                if value is None:
                    value = _smallest(onto, name)
            if value is not None and not variable_names(value) <= self.given:
                value = None
            self._values[name] = None if value is None else substitute(value, self.known)
        return self._values[name]

    def is_undetermined(self, name: str) -> bool:
        """Whether the given names leave several values to ``name``."""
        onto = _sets.project_onto(self.relation, [name, *self.given])
        more = instance(name, OTHER)
        differ = prim.Comparison(prim.Variable(name), "<", prim.Variable(more))
        return not (
            onto & _sets.rename(onto, {name: more}) & _sets.condition_set(differ)
        ).is_empty()

    @cached_property
    def _equations(self) -> list[tuple[dict[str, int], Linear]]:
        """``sum(coefficient * wanted name)``, and what of given names it is equal to."""
        found = []
        known = _sets.project_onto(self.relation, [*self.wanted, *self.given])
        for form in _sets.equalities(known):
            names = [a for a in form.terms if isinstance(a, prim.Variable)]
            left = Linear({a: form.terms[a] for a in names if a.name in self.wanted})
            right = left - form
            if left.terms and not right.names & self.wanted:
                found.append(({a.name: c for a, c in left.terms.items()}, right))
        return found

    def _by_digits(self, name: str) -> Expression | None:
        """A value from ``e = 128*a + 16*b + c`` with ``0 <= b < 8`` and ``0 <= c < 16``.

        The names are then the digits of ``e``.
        """
        for coefficients, value in sorted(self._equations, key=lambda e: len(e[0])):
            if name not in coefficients:
                continue
            if all(c < 0 for c in coefficients.values()):
                coefficients = {n: -c for n, c in coefficients.items()}
                value = value * -1
            if any(c < 0 for c in coefficients.values()):
                continue
            found = self._digit(name, coefficients, value)
            if found is not None:
                return found.expression
        return None

    def _digit(self, name: str, coefficients: dict[str, int], value: Linear) -> Linear | None:
        order = sorted(coefficients, key=lambda n: -coefficients[n])
        for position, digit in enumerate(order):
            factor = coefficients[digit]
            low = high = 0
            for smaller in order[position + 1 :]:
                known = self._range(smaller)
                if known is None:
                    return None
                low += known[0] * coefficients[smaller]
                high += known[1] * coefficients[smaller]
            if high - low >= factor:
                return None
            quotient = (value - low).floor_div(factor)
            if digit == name:
                return quotient
            value = value - quotient * factor
        return None

    def _range(self, name: str) -> tuple[int, int] | None:
        if name not in self._ranges:
            low, high = _sets.value_range(self.relation, prim.Variable(name))
            self._ranges[name] = None if low is None or high is None else (low, high)
        return self._ranges[name]


def _by_equality(relation: isl.Set, name: str) -> Expression | None:
    """The value of ``name`` where an equality with coefficient one gives it."""
    target = prim.Variable(name)
    for form in _sets.equalities(relation):
        own = form.terms.get(target, 0)
        rest = form - Linear({target: own})
        if abs(own) == 1 and name not in rest.names:
            return (rest * -own).expression
    return None


def _smallest(relation: isl.Set, name: str) -> Expression | None:
    """The smallest value of ``name``, by cases where it has some."""
    if not _sets.involves(relation, name):
        return None
    try:
        pieces = _sets.minimum(relation, name).coalesce().get_pieces()
        values = [(where, _sets.from_affine(aff)) for where, aff in pieces]
        if not values or len(values) > 4:
            return None
        result = values[-1][1]
        for where, value in reversed(values[:-1]):
            known = where.remove_redundancies().compute_divs()
            result = prim.If(_sets.conditions(known), value, result)
    except (_sets.UnboundedError, _sets.NotAffineError):
        return None
    return result
