"""Forms and conditions as isl sets over one fixed list of names.

All sets of a proof are parameter sets in one space, so that operations need not align parameters.
A set over two or three instances contains numbered copies of the names in which they may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import islpy as isl

from loopkit import _sets
from loopkit._algebra.make import replace_terms
from loopkit._algebra.polynomials import minus, plus, polynomial, scaled, sum_of
from loopkit._algebra.terms import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Term,
    is_constant,
    node,
    number,
    subterms,
)
from loopkit._cached import memoised
from loopkit._hidden import hidden, instance
from loopkit._points import listed
from loopkit.codegen.proof.forms import (
    Form,
    NotAffineError,
    bits_of,
    has_digits,
    is_affine,
    names_of,
    value_at,
    variable,
)
from loopkit.codegen.proof.proof_conditions import (
    Condition,
    comparison,
    joined,
    least,
    negated,
    negated_atom,
)

PARAM = _sets.PARAM


def copy_of(name: str, copy: int) -> str:
    """The name of a variable in another instance; the first instance uses plain names."""
    return instance(name, f"copy{copy}") if copy else name


class Space:
    """Parameter sets over a fixed list of names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.position = {name: i for i, name in enumerate(self.names)}
        space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(self.names))
        for i, name in enumerate(self.names):
            space = space.set_dim_name(PARAM, i, name)
        self.space = space
        self._local = isl.LocalSpace.from_space(space)
        self._zero = isl.Aff.zero_on_domain(self._local)
        self.universe = isl.BasicSet.universe(space)
        self.everything = self.universe.to_set()
        self.nothing = isl.Set.empty(space)

    def aligned(self, domain: isl.Set) -> isl.Set:
        """A set of another space in this one; all its names must be here."""
        missing = [n for n in _sets.names_of(domain) if n not in self.position]
        if missing:
            domain = _sets.project_out(domain, missing)
        return domain.align_params(self.space)

    @memoised
    def aff(self, form: Form) -> isl.Aff:
        """An affine form without extrema; raises :class:`NotAffineError` for others."""
        aff = self._zero
        rest = []
        for monomial, value in polynomial(form).items():
            if not monomial:
                aff = aff.set_constant_val(_sets.val(value))
            elif len(monomial) > 1:
                raise NotAffineError(form)
            elif monomial[0].op == "name":
                position = self.position.get(monomial[0].data[0])
                if position is None:
                    raise NotAffineError(form)
                aff = aff.set_coefficient_val(PARAM, position, _sets.val(value))
            else:
                rest.append((monomial[0], value))
        for atom, value in rest:
            if atom.op != "fdiv" or not is_constant(atom.args[1]):
                raise NotAffineError(form)
            quotient = self.aff(atom.args[0]).scale_down_val(_sets.val(atom.args[1].data)).floor()
            aff = aff.add(quotient.scale_val(_sets.val(value)))
        return aff

    def _piecewise(self, form: Form) -> isl.PwAff:
        """Any affine form: quotients of extrema have pieces."""
        match form.op:
            case "sum":
                parts = zip(form.args, form.data, strict=True)
                scaled_ = (self._piecewise(p).scale_val(_sets.val(c)) for p, c in parts)
                return reduce(isl.PwAff.add, scaled_)
            case "fdiv" if is_constant(form.args[1]):
                by = _sets.val(form.args[1].data)
                return self._piecewise(form.args[0]).scale_down_val(by).floor()
            case "min" | "max":
                combined = isl.PwAff.min if form.op == "min" else isl.PwAff.max
                return reduce(combined, map(self._piecewise, form.args))
        return isl.PwAff.from_aff(self.aff(form))

    def at_least_zero(self, form: Form) -> isl.Set:
        """Where a form is not negative."""
        simple = self._constraint(form)
        if simple is not None:
            return self.universe.add_constraint(simple).to_set()
        if not any(a.op in ("min", "max") for m in polynomial(form) for a in m):
            return self._piecewise(form).ge_set(isl.PwAff.from_aff(self._zero))
        return self.where(_without_extreme(form))

    def _constraint(self, form: Form) -> isl.Constraint | None:
        """``form >= 0`` as one constraint; None where extrema ask for several."""
        try:
            return isl.Constraint.inequality_from_aff(self.aff(form))
        except NotAffineError:
            if is_affine(form) and any(part.op in ("min", "max") for part in subterms(form)):
                return None
            raise

    def _by_digits(self, condition: Condition) -> isl.Set:
        """Where a condition on exclusive ors holds: their binary digits are names for a while."""
        digits = _Digits()
        condition = digits.resolved(condition)
        wide = Space([*self.names, *digits.names])
        found = wide.where(condition) & wide.all_of(digits.conditions)
        return found.project_out(PARAM, len(self.names), len(digits.names))

    @memoised
    def where(self, condition: Condition) -> isl.Set:
        """Where a condition holds; raises :class:`NotAffineError` for unknown ones."""
        atom = negated_atom(condition)
        if has_digits(condition) and (atom is not None or condition.op != "if"):
            return self._by_digits(condition)
        if (form := least(condition)) is not None:
            return self.at_least_zero(form)
        match condition.op:
            case "constant":
                return self.everything if condition.data else self.nothing
            case "eq0":
                return self.all_of([condition])
            case "if":
                if atom is not None:
                    if atom.op != "eq0":
                        raise NotAffineError(condition)
                    apart = (plus(scaled(atom.args[0], sign), number(-1)) for sign in (1, -1))
                    return reduce(isl.Set.union, map(self.at_least_zero, apart))
                atom, yes, no = condition.args
                other = negated(atom)
                if yes is TRUE or no is TRUE:
                    here, left = (atom, no) if yes is TRUE else (other, yes)
                    return self.where(here) | self.where(left)
                if yes is FALSE or no is FALSE:
                    here, left = (other, no) if yes is FALSE else (atom, yes)
                    return self.where(here) & self.where(left)
                sides = (self.where(atom) & self.where(yes), self.where(other) & self.where(no))
                return sides[0] | sides[1]
        raise NotAffineError(condition)

    def all_of(self, parts: Iterable[Condition]) -> isl.Set:
        """Where all conditions hold."""
        basic = self.universe
        others = []
        for part in parts:
            form = part.args[0] if part.op == "eq0" else least(part)
            if form is None or has_digits(part):
                others.append(self.where(part))
            elif (simple := self._constraint(form)) is None:
                others.append(self.at_least_zero(form))
                if part.op == "eq0":
                    others.append(self.at_least_zero(scaled(form, -1)))
            elif part.op == "eq0":
                equality = isl.Constraint.equality_from_aff(self.aff(form))
                basic = basic.add_constraint(equality)
            else:
                basic = basic.add_constraint(simple)
        result = basic.to_set()
        for other in others:
            result = result & other
        return result

    def without(self, domain: isl.Set, names: Iterable[str]) -> isl.Set:
        """The projection along some names, one by one: they become free."""
        for name in names:
            domain = domain.eliminate(PARAM, self.position[name], 1)
        return domain

    def project_onto(self, domain: isl.Set, kept: Iterable[str]) -> isl.Set:
        """The projection to some names, in the same space: others become free."""
        keep = {self.position[n] for n in kept}
        first = None
        for position in range(len(self.names) + 1):
            free = position < len(self.names) and position not in keep
            if free and first is None:
                first = position
            elif not free and first is not None:
                domain = domain.eliminate(PARAM, first, position - first)
                first = None
        return domain

    def renamed(self, domain: isl.Set, name: Callable[[str], str]) -> isl.Set:
        """A set of another space in this one, where its names are others; all are here."""
        for position, old in enumerate(_sets.names_of(domain)):
            if (new := name(old)) != old:
                domain = domain.set_dim_name(PARAM, position, new)
        return domain.align_params(self.space)

    def renaming(self, copy: int) -> Callable[[str], str]:
        """From names to those of another instance, where that has its own."""

        def renamed(name: str) -> str:
            own = copy_of(name, copy)
            return own if own in self.position else name

        return renamed


class _Digits:
    """The names and definitions of the binary digits of exclusive ors."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.conditions: list[Condition] = []

    def resolved(self, term: Term) -> Term:
        """A form, or a condition, with digits in place of exclusive ors."""
        return replace_terms(term, lambda part: self._of(part) if part.op == "xor" else None)

    def _of(self, term: Term) -> Form:
        """``left + right - 2*(both)``, of the digits that may change."""
        result, *others = sorted(term.args, key=lambda part: bits_of(part) is not None)
        result = self.resolved(result)
        for other in others:
            if (bits := bits_of(other)) is None:
                raise NotAffineError(term)
            right = self.resolved(other)
            for bit, (mine, its) in enumerate(
                zip(self._split(result, bits), self._split(right, bits), strict=True)
            ):
                both = self._new()
                rest = plus(its, scaled(both, -2))
                self.conditions += [*_digit(both), *_digit(plus(mine, rest))]
                result = plus(result, scaled(rest, 1 << bit))
        return result

    def _split(self, form: Form, bits: int) -> list[Form]:
        """The lowest digits of a form: what only changes higher ones is left out."""
        form = sum_of({m: c % (1 << bits) for m, c in polynomial(form).items()})
        found, total = [], scaled(self._new(), 1 << bits)
        for bit in range(bits):
            digit = self._new()
            self.conditions += _digit(digit)
            total = plus(total, scaled(digit, 1 << bit))
            found.append(digit)
        self.conditions.append(node("eq0", "B", (minus(form, total),)))
        return found

    def _new(self) -> Form:
        self.names.append(hidden("digit", len(self.names)))
        return variable(self.names[-1])


def _digit(form: Form) -> Iterator[Condition]:
    """What holds of a digit: sets simplify it themselves."""
    return (node("ge0", "B", (end,)) for end in (form, minus(ONE, form)))


def _without_extreme(form: Form) -> Condition:
    """``form >= 0`` with its first extremum resolved: all or any of forms not negative."""
    for part, value in zip(form.args, form.data, strict=True) if form.op == "sum" else ((form, 1),):
        if part.op in ("min", "max"):
            rest = minus(form, scaled(part, value))
            sides = [at_most(ZERO, plus(rest, scaled(p, value))) for p in part.args]
            return joined("and" if (part.op == "min") == (value > 0) else "or", sides)
    raise NotAffineError(form)


def values_in(where: isl.Set, forms: Sequence[Form], most: int) -> list[Any] | None:
    """The values of forms at all points that a set has for their names.

    None where the points are too many, or where data decide.
    """
    order = sorted(frozenset().union(*map(names_of, forms)))
    points = listed(where, order, most)
    if points is None:
        return None
    columns = dict(zip(order, points.T.astype(object), strict=True))
    try:
        return [value_at(form, columns) for form in forms]
    except (KeyError, ValueError):  # what data decide, or has no one value for many points
        return None


def equal(left: Form, right: Form) -> Condition:
    """``left = right``."""
    return comparison("==", left, right)


def unequal(left: Form, right: Form) -> Condition:
    """``left != right``."""
    return comparison("!=", left, right)


def less(left: Form, right: Form) -> Condition:
    """``left < right``."""
    return comparison("<", left, right)


def at_most(left: Form, right: Form) -> Condition:
    """``left <= right``."""
    return comparison("<=", left, right)


def in_range(value: Form, extent: Form) -> Condition:
    """``0 <= value < extent``."""
    return joined("and", [at_most(ZERO, value), less(value, extent)])
