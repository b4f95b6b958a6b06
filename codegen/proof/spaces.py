"""Forms and conditions as isl sets over one fixed list of names.

All sets of a proof are parameter sets in one space, so that no operation has
to align anything.  A set that speaks of two or three instances at once has
copies of the names in which they may differ, labelled by numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import islpy as isl

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._hidden import hidden, instance
from loopkit.codegen.proof import conditions
from loopkit.codegen.proof.conditions import Compare, Condition, Joined
from loopkit.codegen.proof.forms import (
    ONE,
    ZERO,
    Extreme,
    Floor,
    Form,
    Monomial,
    NotAffineError,
    Variable,
    Xor,
    constant,
    extreme,
    floor,
    variable,
)

PARAM = _sets.PARAM


def copy_of(name: str, copy: int) -> str:
    """The name of another instance's variable: the first has the names themselves."""
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
        for monomial, value in form.terms.items():
            if not monomial:
                aff = aff.set_constant_val(_sets.val(value))
            elif len(monomial) > 1:
                raise NotAffineError(form)
            elif isinstance(monomial[0], Variable):
                position = self.position.get(monomial[0].name)
                if position is None:
                    raise NotAffineError(form)
                aff = aff.set_coefficient_val(PARAM, position, _sets.val(value))
            else:
                rest.append((monomial[0], value))
        for atom, value in rest:
            if not isinstance(atom, Floor):
                raise NotAffineError(form)
            quotient = self.aff(atom.of).scale_down_val(_sets.val(atom.by)).floor()
            aff = aff.add(quotient.scale_val(_sets.val(value)))
        return aff

    def _piecewise(self, form: Form) -> isl.PwAff:
        """Any affine form: quotients of extrema have pieces."""
        total = isl.PwAff.from_aff(self._zero)
        for monomial, value in form.terms.items():
            atom = monomial[0] if monomial else None
            if isinstance(atom, Floor):
                inner = self._piecewise(atom.of).scale_down_val(_sets.val(atom.by)).floor()
                part = inner.scale_val(_sets.val(value))
            elif isinstance(atom, Extreme):
                part, *rest = (self._piecewise(p) for p in atom.parts)
                for other in rest:
                    part = part.min(other) if atom.word == "min" else part.max(other)
                part = part.scale_val(_sets.val(value))
            else:
                part = isl.PwAff.from_aff(self.aff(Form({monomial: value})))
            total = total.add(part)
        return total

    def at_least_zero(self, form: Form) -> isl.Set:
        """Where a form is not negative."""
        if form.has_digits:
            return self._by_digits(Compare(">=", form))
        simple = self._constraint(form)
        if simple is not None:
            return self.universe.add_constraint(simple).to_set()
        if not any(isinstance(a, Extreme) for m in form.terms for a in m):
            return self._piecewise(form).ge_set(isl.PwAff.from_aff(self._zero))
        return self.where(_without_extreme(form))

    def _constraint(self, form: Form) -> isl.Constraint | None:
        """``form >= 0`` as one constraint; None where extrema ask for several."""
        try:
            return isl.Constraint.inequality_from_aff(self.aff(form))
        except NotAffineError:
            if form.is_affine and any(isinstance(a, Extreme) for a in form.atoms):
                return None
            raise

    def _by_digits(self, condition: Compare) -> isl.Set:
        """Where a condition on exclusive ors holds: their binary digits are names for a while."""
        digits = _Digits()
        form = digits.resolved(condition.form)
        wide = Space([*self.names, *digits.names])
        found = wide.where(Compare(condition.operator, form)) & wide.all_of(digits.conditions)
        return found.project_out(PARAM, len(self.names), len(digits.names))

    def where(self, condition: Condition) -> isl.Set:
        """Where a condition holds; raises :class:`NotAffineError` for unknown ones."""
        if isinstance(condition, Joined):
            result = self.everything if condition.word == "and" else self.nothing
            for part in condition.parts:
                piece = self.where(part)
                result = result & piece if condition.word == "and" else result | piece
            return result
        if not isinstance(condition, Compare):
            raise NotAffineError(condition)
        form = condition.form
        if form.has_digits:
            return self._by_digits(condition)
        if condition.operator == ">=":
            return self.at_least_zero(form)
        if condition.operator == "==":
            return self.all_of([condition])
        minus_one = constant(-1)
        above = self.at_least_zero(form.plus(minus_one))
        return above | self.at_least_zero(form.scaled(-1).plus(minus_one))

    def all_of(self, parts: Iterable[Condition]) -> isl.Set:
        """Where all conditions hold."""
        basic = self.universe
        others = []
        for part in parts:
            if not isinstance(part, Compare) or part.operator == "!=" or part.form.has_digits:
                others.append(self.where(part))
                continue
            simple = self._constraint(part.form)
            if simple is None:
                others.append(self.at_least_zero(part.form))
                if part.operator == "==":
                    others.append(self.at_least_zero(part.form.scaled(-1)))
            elif part.operator == "==":
                equality = isl.Constraint.equality_from_aff(self.aff(part.form))
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
    """Names for the binary digits of exclusive ors, and what they are."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.conditions: list[Condition] = []

    def resolved(self, form: Form) -> Form:
        """A form with digits in place of exclusive ors, also inside of quotients and extrema."""
        found = ZERO
        for monomial, value in form.terms.items():
            atom = monomial[0] if len(monomial) == 1 else None
            part = Form({monomial: value})
            if isinstance(atom, Xor):
                part = self._of(atom).scaled(value)
            elif isinstance(atom, Floor):
                part = floor(self.resolved(atom.of), atom.by).scaled(value)
            elif isinstance(atom, Extreme):
                part = extreme(atom.word, map(self.resolved, atom.parts)).scaled(value)
            found = found.plus(part)
        return found

    def _of(self, atom: Xor) -> Form:
        """``left + right - 2*(both)``, of the digits that may change."""
        left, right = self.resolved(atom.left), self.resolved(atom.right)
        result = left
        for bit, (mine, its) in enumerate(
            zip(self._split(left, atom.bits), self._split(right, atom.bits), strict=True)
        ):
            both = self._new()
            sum_ = mine.plus(its).minus(both.scaled(2))
            self.conditions += [*_digit(both), *_digit(sum_)]
            result = result.plus(its.minus(both.scaled(2)), 1 << bit)
        return result

    def _split(self, form: Form, bits: int) -> list[Form]:
        """The lowest digits of a form."""
        found, total = [], self._new().scaled(1 << bits)
        for bit in range(bits):
            digit = self._new()
            self.conditions += _digit(digit)
            total = total.plus(digit, 1 << bit)
            found.append(digit)
        self.conditions.append(equal(form, total))
        return found

    def _new(self) -> Form:
        self.names.append(hidden("digit", len(self.names)))
        return variable(self.names[-1])


def _digit(form: Form) -> tuple[Condition, Condition]:
    return at_most(ZERO, form), at_most(form, ONE)


def _without_extreme(form: Form) -> Condition:
    """``form >= 0`` with its first extremum resolved: all or any of forms not negative."""
    for monomial, value in form.terms.items():
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Extreme):
            rest: dict[Monomial, int] = {m: c for m, c in form.terms.items() if m != monomial}
            parts = [Compare(">=", Form(rest).plus(p, value)) for p in atom.parts]
            return Joined("and" if (atom.word == "min") == (value > 0) else "or", tuple(parts))
    raise NotAffineError(form)


def equal(left: Form, right: Form) -> Condition:
    """``left = right``."""
    return conditions.comparison("==", left, right, is_integer=True)


def less(left: Form, right: Form) -> Condition:
    """``left < right``."""
    return conditions.comparison("<", left, right, is_integer=True)


def at_most(left: Form, right: Form) -> Condition:
    """``left <= right``."""
    return conditions.comparison("<=", left, right, is_integer=True)


def in_range(value: Form, extent: Form) -> Condition:
    """``0 <= value < extent``."""
    return conditions.joined("and", [at_most(constant(0), value), less(value, extent)])
