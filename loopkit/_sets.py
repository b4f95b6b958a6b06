"""Integer sets over names, on top of isl.

Everywhere in loopkit a set is an isl *parameter set*: every name, iname or
size alike, is a parameter of a space without dimensions.  isl aligns
parameters by name, so sets of different kernels' parts intersect, project and
compare without any bookkeeping of positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from itertools import takewhile
from operator import and_, or_
from typing import Any, TypeVar

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit._budget import is_spent, kept
from loopkit._errors import IllegalTransformError
from loopkit._expression import evaluate, variable_names
from loopkit._hidden import hidden
from loopkit._linear import Linear, arithmetic, is_name, linear_sum, total
from loopkit._linear import NotAffineError as NotAffineError
from loopkit._nodes import Expression, is_integer
from loopkit._relations import grouped
from loopkit._same import remembered

PARAM = isl.dim_type.param
N = TypeVar("N", bound=Hashable)


class UnboundedError(IllegalTransformError):
    """A name has no largest or no smallest value, for some values of the others."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the loop over '{name}' has no end: its domain is unbounded",
            instead="give the iname a lower and an upper bound in its domain",
        )


def universe() -> isl.Set:
    """The set without constraints."""
    return isl.Set.universe(isl.Space.params_alloc(isl.DEFAULT_CONTEXT, 0))


def names_of(domain: isl.Set | isl.Aff) -> tuple[str, ...]:
    """The names in ``domain``'s space, used or not."""
    return tuple(domain.get_dim_name(PARAM, i) for i in range(domain.dim(PARAM)))


def fixed_values(domain: isl.Set, names: Iterable[str]) -> dict[str, int]:
    """The names that plainly have one value in ``domain``, and their values."""
    places = {name: domain.find_dim_by_name(PARAM, name) for name in names}
    values = {n: domain.plain_get_val_if_fixed(PARAM, p) for n, p in places.items() if p >= 0}
    return {name: integer(value) for name, value in values.items() if value.is_int()}


def project_out(domain: isl.Set, names: Iterable[str]) -> isl.Set:
    """``{ rest : there are values of names }``."""
    for name in names:
        position = domain.find_dim_by_name(PARAM, name)
        if position >= 0:
            domain = domain.project_out(PARAM, position, 1)
    return domain


def intersection(sets: Iterable[isl.Set]) -> isl.Set:
    """Where all of some sets hold; everything where there are none."""
    result = universe()
    for one in sets:
        result = result & one
    return result


def at_values(domain: isl.Set, values: Mapping[str, int]) -> isl.Set:
    """``{ rest : domain where these names have these values }``."""
    for name, value in values.items():
        position = domain.find_dim_by_name(PARAM, name)
        if position >= 0:
            domain = domain.fix_val(PARAM, position, val(value)).project_out(PARAM, position, 1)
    return domain


def at(point: Mapping[str, int]) -> isl.Set:
    """``{ names : each has its value }``."""
    return intersection(equality(n, v) for n, v in point.items())


def project_onto(domain: isl.Set, keep: Iterable[str]) -> isl.Set:
    """The projection of ``domain`` to the names in ``keep``."""
    kept = set(keep)
    return project_out(domain, [n for n in names_of(domain) if n not in kept])


def involves(domain: isl.Set, name: str) -> bool:
    """Whether a constraint of ``domain`` mentions ``name``."""
    position = domain.find_dim_by_name(PARAM, name)
    return position >= 0 and bool(domain.involves_dims(PARAM, position, 1))


def involved_names(domain: isl.Set) -> frozenset[str]:
    """The names that constraints of ``domain`` mention."""
    involved = (i for i in range(domain.dim(PARAM)) if domain.involves_dims(PARAM, i, 1))
    return frozenset(domain.get_dim_name(PARAM, i) for i in involved)


def rename(domain: isl.Set, names: Mapping[str, str]) -> isl.Set:
    """``domain`` with names replaced, all at once.

    A name that is new may stand in the space, if no constraint mentions it: it is left out, since
    isl would take two columns of one name for different names.
    """
    taken = {*names.values()} & {*names_of(domain)} - names.keys()
    assert not taken & involved_names(domain), taken
    for position, old in enumerate(names_of(domain := project_out(domain, taken))):
        if old in names:
            domain = domain.set_dim_name(PARAM, position, names[old])
    return domain


def canonical_text(domain: isl.Set) -> str:
    """A text that is the same for the same constraints, whatever order names came in."""
    used = sorted(involved_names(domain))
    target = isl.Space.params_alloc(domain.get_ctx(), len(used))
    for position, name in enumerate(used):
        target = target.set_dim_name(PARAM, position, name)
    trimmed = domain.drop_unused_params() if hasattr(domain, "drop_unused_params") else domain
    return str(trimmed.align_params(target).remove_redundancies().coalesce())


@lru_cache(maxsize=1 << 12)
def _space(names: tuple[str, ...]) -> isl.Space:
    return kept(_new_space, names)


def _new_space(names: tuple[str, ...]) -> isl.Space:
    space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(names))
    for position, name in enumerate(names):
        space = space.set_dim_name(PARAM, position, name)
    return space


def val(number: int) -> isl.Val:
    """A number as isl's: of any size."""
    return isl.Val(number) if -(2**62) < number < 2**62 else isl.Val(str(number))


def _aligned_sum(a: isl.Aff, b: isl.Aff) -> isl.Aff:
    # Unlike sets, affine functions do not align their parameters themselves.
    space = a.get_domain_space().align_params(b.get_domain_space())
    return a.align_params(space).add(b.align_params(space))


def _as_aff(value: Linear | isl.Aff) -> isl.Aff:
    if not isinstance(value, Linear):
        return value
    space = _space(tuple(name.name for name in value.terms))
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    aff = aff.set_constant_val(val(value.constant))
    for position, coefficient in enumerate(value.terms.values()):
        aff = aff.set_coefficient_val(PARAM, position, val(coefficient))
    return aff


def _sum(parts: Sequence[Linear | isl.Aff]) -> Linear | isl.Aff:
    forms = list(takewhile(lambda part: isinstance(part, Linear), parts))
    whole = total(forms, with_zeros=True)
    rest = [_as_aff(part) for part in parts[len(forms) :]]
    return reduce(_aligned_sum, rest, _as_aff(whole)) if rest else whole


def _times(value: Linear | isl.Aff, factor: int) -> Linear | isl.Aff:
    return value * factor if isinstance(value, Linear) else value.scale_val(val(factor))


def _affine(expr: Expression) -> Linear | isl.Aff:
    """A form over names alone; isl's where there are quotients, which isl knows better.

    Names that cancel out stay: it is in the order in which names occur that isl keeps constraints.
    """
    if isinstance(expr, prim.Variable):
        return Linear({expr: 1})
    if is_integer(expr):
        return Linear({}, int(expr))
    if isinstance(expr, prim.Sum):
        return _sum([_affine(child) for child in expr.children])
    if isinstance(expr, prim.Product):
        factor, variable = 1, None
        for part in map(_affine, expr.children):
            if isinstance(part, Linear) and part.is_constant:
                factor *= part.constant
            elif variable is None:
                variable = part
            else:
                raise NotAffineError(expr)
        return Linear({}, factor) if variable is None else _times(variable, factor)
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
        numerator, below = _affine(expr.numerator), _affine(expr.denominator)
        if not isinstance(below, Linear) or not below.is_constant or not below.constant:
            raise NotAffineError(expr)
        if isinstance(numerator, Linear) and numerator.is_constant:
            whole, rest = divmod(numerator.constant, below.constant)
            return Linear({}, whole if isinstance(expr, prim.FloorDiv) else rest)
        # isl divides by positive numbers alone: a // -b is -a // b.
        dividend = numerator if below.constant > 0 else _times(numerator, -1)
        quotient = _as_aff(dividend).scale_down_val(val(abs(below.constant))).floor()
        if isinstance(expr, prim.FloorDiv):
            return quotient
        return _aligned_sum(_as_aff(numerator), quotient.scale_val(val(-below.constant)))
    bits = arithmetic(expr)
    if bits is None:
        raise NotAffineError(expr)
    return _affine(bits)


@remembered(1 << 14)
def affine(expr: Expression) -> isl.Aff:
    """``expr`` as an isl affine function of names; raises :class:`NotAffineError`."""
    return _as_aff(_affine(expr))


@remembered(1 << 14)
def pw_affine(expr: Expression) -> isl.PwAff:
    """Like :func:`affine`, for ``min``, ``max`` and ``if`` as well."""
    if isinstance(expr, (prim.Min, prim.Max)):
        extreme = isl.PwAff.min if isinstance(expr, prim.Min) else isl.PwAff.max
        return reduce(extreme, map(pw_affine, expr.children))
    if isinstance(expr, prim.If):
        condition = condition_set(expr.condition)
        then = pw_affine(expr.then).intersect_domain(condition)
        return then.union_add(pw_affine(expr.else_).intersect_domain(condition.complement()))
    if isinstance(expr, prim.Sum):
        return reduce(isl.PwAff.add, map(pw_affine, expr.children))
    if isinstance(expr, prim.Product) and not is_affine(expr):
        others = [c for c in expr.children if not isinstance(c, (int, np.integer))]
        if len(others) != 1:
            raise NotAffineError(expr)
        factor = math.prod(int(c) for c in expr.children if c is not others[0])
        return pw_affine(others[0]).scale_val(val(factor))
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)) and not is_affine(expr):
        numerator, denominator = pw_affine(expr.numerator), expr.denominator
        if not isinstance(denominator, (int, np.integer)) or denominator == 0:
            raise NotAffineError(expr)
        dividend = numerator if denominator > 0 else numerator.neg()
        quotient = dividend.scale_down_val(val(abs(int(denominator)))).floor()
        if isinstance(expr, prim.FloorDiv):
            return quotient
        return numerator.sub(quotient.scale_val(val(int(denominator))))
    if not is_affine(expr) and (bits := arithmetic(expr)) is not None:
        return pw_affine(bits)
    return isl.PwAff.from_aff(affine(expr))


@remembered(1 << 12)
def condition_set(expr: Expression) -> isl.Set:
    """The set where an affine condition holds; raises :class:`NotAffineError`."""
    if isinstance(expr, (bool, np.bool_)):
        return universe() if expr else isl.Set.empty(_space(()))
    if isinstance(expr, prim.LogicalAnd):
        return reduce(and_, map(condition_set, expr.children), universe())
    if isinstance(expr, prim.LogicalOr):
        return reduce(or_, map(condition_set, expr.children), isl.Set.empty(_space(())))
    if isinstance(expr, prim.LogicalNot):
        return condition_set(expr.child).complement()
    if isinstance(expr, prim.Comparison):
        return _compared(expr.left, expr.operator, expr.right)
    raise NotAffineError(expr)


def comparisons(relations: Iterable[tuple[Expression, str, Expression]]) -> isl.Set:
    """The set where all of some comparisons hold; :class:`NotAffineError` if one is not affine."""
    return intersection(condition_set(prim.Comparison(*relation)) for relation in relations)


def is_taken_by(function: Callable[[Expression], Any], expr: Expression) -> bool:
    """Whether ``function`` takes ``expr``, as one that is affine enough for it."""
    try:
        function(expr)
    except NotAffineError:
        return False
    return True


def is_affine(expr: Expression) -> bool:
    """Whether :func:`affine` takes ``expr``."""
    return is_taken_by(affine, expr)


def is_pw_affine(expr: Expression) -> bool:
    """Whether :func:`pw_affine` takes ``expr``."""
    return is_taken_by(pw_affine, expr)


def is_condition(expr: Expression) -> bool:
    """Whether :func:`condition_set` takes ``expr``."""
    return is_taken_by(condition_set, expr)


def is_nowhere(where: isl.Set, conditions: Iterable[Expression]) -> bool:
    """Whether there is no point of ``where`` at which all affine conditions hold."""
    for condition in conditions:
        where = where & condition_set(condition)
        if where.is_empty():
            return True
    return bool(where.is_empty())


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_COMPARED: Mapping[str, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    "<": isl.PwAff.lt_set,
    "<=": isl.PwAff.le_set,
    ">": isl.PwAff.gt_set,
    ">=": isl.PwAff.ge_set,
    "==": isl.PwAff.eq_set,
    "!=": isl.PwAff.ne_set,
}


def _compared(left: Expression, operator: str, right: Expression) -> isl.Set:
    """``{ left operator right }``.

    A minimum or maximum becomes comparisons of its parts: as a function by cases it has
    a case for each order of them.
    """
    if operator not in _COMPARED:
        raise NotAffineError(prim.Comparison(left, operator, right))
    for one, sign, other in ((left, operator, right), (right, _MIRRORED[operator], left)):
        extreme = extreme_of(one)
        if extreme is not None:
            return _extreme_compared(*extreme, sign, other)
    return _COMPARED[operator](pw_affine(left), pw_affine(right))


def extreme_of(expr: Expression) -> tuple[bool, tuple[Expression, ...]] | None:
    """Whether ``expr`` is the least of several parts or the greatest, and these; else None."""
    if isinstance(expr, (prim.Min, prim.Max)):
        return isinstance(expr, prim.Min), expr.children
    if isinstance(expr, prim.Sum):
        inner = [c for c in expr.children if isinstance(c, (prim.Min, prim.Max))]
        if len(inner) == 1:
            rest = [c for c in expr.children if c is not inner[0]]
            parts = tuple(prim.Sum((part, *rest)) for part in inner[0].children)
            return isinstance(inner[0], prim.Min), parts
    return None


def _extreme_compared(
    is_least: bool, parts: tuple[Expression, ...], operator: str, other: Expression
) -> isl.Set:
    """Where the least (or the greatest) of ``parts`` compares with ``other`` like that."""
    if operator in ("==", "!="):
        two, join = (("<=", ">="), and_) if operator == "==" else (("<", ">"), or_)
        return join(*(_extreme_compared(is_least, parts, half, other) for half in two))
    # The least is below something where any part is, above it where all are.
    join = or_ if is_least == (operator in ("<", "<=")) else and_
    return reduce(join, [_compared(part, operator, other) for part in parts])


def equality(name: str, expr: Expression) -> isl.Set:
    """``{ name = expr }``; ``expr`` may hold ``min``, ``max`` and ``if``."""
    if not is_affine(expr):
        return condition_set(prim.Comparison(prim.Variable(name), "==", expr))
    return affine_equality(prim.Variable(name), expr)


def affine_equality(a: Expression, b: Expression) -> isl.Set:
    """``{ a = b }``."""
    return isl.PwAff.from_aff(affine(a)).eq_set(isl.PwAff.from_aff(affine(b)))


def value_at(expr: Expression, values: Mapping[str, int]) -> int:
    """The value of an affine expression, names not in ``values`` counting as 0."""
    return int(evaluate(expr, {n: values.get(n, 0) for n in variable_names(expr)}))


def sample(domain: isl.Set) -> dict[str, int]:
    """One point of a set that is not empty, with small values where that is easy to have."""
    names = names_of(domain)
    lifted = isl.Set.from_params(domain)
    lifted = lifted.move_dims(isl.dim_type.set, 0, PARAM, 0, len(names))
    least = lifted
    for i in range(len(names)):
        value = least.dim_min_val(i)
        if value.is_int():
            least = least.fix_val(isl.dim_type.set, i, value)
    point = least.sample_point()
    if point.is_void():  # isl has misjudged a smallest point of many quotients before
        point = lifted.sample_point()
    return {
        name: integer(point.get_coordinate_val(isl.dim_type.set, i)) for i, name in enumerate(names)
    }


def equalities(domain: isl.Set) -> Iterator[Linear]:
    """Forms that are zero everywhere in a set, but for those with numbers that are no quotients."""
    for constraint in domain.affine_hull().get_constraints():
        if constraint.is_equality():
            with suppress(NotAffineError):
                yield form_of(constraint)


def values_by_equalities(domain: isl.Set) -> Iterator[tuple[str, Expression]]:
    """Names that equalities give a value, one after the other: none is in values behind its own."""
    left = [*equalities(domain)]
    while left:
        form = left.pop()
        for atom, coefficient in form.terms.items():
            if isinstance(atom, prim.Variable) and abs(coefficient) == 1:
                rest = Linear({a: c for a, c in form.terms.items() if a != atom}, form.constant)
                if atom.name not in rest.names:
                    break
        else:
            continue
        value = rest * -coefficient
        yield atom.name, value.expression
        left = [other.substitute({atom.name: value}) for other in left]


def value_by_equality(where: isl.Set, name: str) -> Expression | None:
    """What ``name`` is everywhere in a set, by an equality without quotients; or None."""
    variable = prim.Variable(name)
    for form in equalities(where):
        mine = form.terms.get(variable, 0)
        if abs(mine) == 1 and all(map(is_name, form.terms)):
            rest = {a: c for a, c in form.terms.items() if a != variable}
            return (Linear(rest, form.constant) * -mine).expression
    return None


def form_of(obj: isl.Aff | isl.Constraint) -> Linear:
    """A whole affine function, or what a constraint says is zero, or not negative.

    Names and quotients are in isl's order.
    """
    terms: dict[Expression, int] = {}
    for position in range(obj.dim(PARAM)):
        value = obj.get_coefficient_val(PARAM, position)
        if not value.is_zero():
            terms[prim.Variable(obj.get_dim_name(PARAM, position))] = integer(value)
    for position in range(obj.dim(isl.dim_type.div)):
        value = obj.get_coefficient_val(isl.dim_type.div, position)
        if not value.is_zero():
            atom = quotient(obj, position)
            terms[atom] = terms.get(atom, 0) + integer(value)
    return Linear(terms, integer(obj.get_constant_val()))


def quotient(obj: isl.Aff | isl.Constraint, position: int) -> Expression:
    """The floor quotient that isl has given a number; raises :class:`NotAffineError`.

    A hull, or what is left of a projection, may hold numbers that are no quotients.
    """
    try:
        div = obj.get_div(position)
    except isl.Error:
        if is_spent():
            raise
        raise NotAffineError(f"number {position} of {obj}") from None
    return from_affine(div, floor=True)


def _folded(form: Linear) -> Linear:
    """``(n - 1)//16 + 1`` as ``(n + 15)//16``: a constant beside one floor goes inside it."""
    floors = [a for a, c in form.terms.items() if c == 1 and isinstance(a, prim.FloorDiv)]
    if not form.constant or len(floors) != 1:
        return form
    (floor,) = floors
    whole = affine(form.constant * floor.denominator)
    inner = from_affine(_aligned_sum(affine(floor.numerator), whole))
    shifted = prim.FloorDiv(inner, floor.denominator)
    return Linear({shifted if a is floor else a: c for a, c in form.terms.items()})


def _sum_of(form: Linear) -> Expression:
    """The form as isl has it: its quotients stay as they are."""
    return linear_sum([(c, a) for a, c in form.terms.items()], form.constant)


def from_affine(aff: isl.Aff, *, floor: bool = False) -> Expression:
    """The expression of an isl affine function with integer values.

    ``floor=True`` rounds a function with a denominator down (isl's divs).
    """
    denominator = integer(aff.get_denominator_val())
    if denominator == 1:
        return _sum_of(_folded(form_of(aff)))
    if not floor:
        raise NotAffineError(str(aff))
    return prim.FloorDiv(_sum_of(form_of(aff.scale_val(val(denominator)))), denominator)


def constraint_condition(constraint: isl.Constraint) -> Expression:
    """The constraint as a comparison that a person would write."""
    form = form_of(constraint)
    if not constraint.is_equality():
        return inequality_condition(form)
    modular = _modular(form)
    if modular is not None:
        return modular
    positive, negative = _halves(form)
    constant = form.constant
    left, right = linear_sum(positive, max(constant, 0)), linear_sum(negative, max(-constant, 0))
    return prim.Comparison(left, "==", right)


def _halves(form: Linear) -> tuple[list[tuple[int, Expression]], list[tuple[int, Expression]]]:
    """The positive terms, and the negated negative ones."""
    terms = form.terms.items()
    return [(c, a) for a, c in terms if c > 0], [(-c, a) for a, c in terms if c < 0]


def inequality_condition(form: Linear) -> Expression:
    """``form >= 0`` as a person would write it."""
    (positive, negative), constant = _halves(form), form.constant
    if negative and not positive:
        return prim.Comparison(linear_sum(negative, 0), "<=", constant)
    if positive and not negative:
        return prim.Comparison(linear_sum(positive, 0), ">=", -constant)
    if constant < 0:
        return prim.Comparison(linear_sum(negative, -constant - 1), "<", linear_sum(positive, 0))
    return prim.Comparison(linear_sum(negative, 0), "<=", linear_sum(positive, constant))


def _modular(form: Linear) -> Expression | None:
    """``e - m*floor(e/m) = r`` as ``e % m == r``; None where the form is no such thing."""
    floors = [(a, c) for a, c in form.terms.items() if isinstance(a, prim.FloorDiv)]
    if len(floors) != 1:
        return None
    ((floor, coefficient),) = floors
    modulus = abs(coefficient)
    sign = -1 if coefficient > 0 else 1
    if floor.denominator != modulus:
        return None
    rest = linear_sum([(sign * c, a) for a, c in form.terms.items() if a is not floor], 0)
    offset = _aligned_sum(affine(rest), affine(floor.numerator).neg())
    if not offset.is_cst():
        return None
    # rest + sign*constant = modulus*floor((rest - offset)/modulus)
    return prim.Comparison(prim.Remainder(rest, modulus), "==", (-sign * form.constant) % modulus)


def conditions(domain: isl.Set) -> Expression:
    """A condition, over names, that holds exactly in ``domain``.

    True for the universe, False for the empty set, else a conjunction of
    comparisons (a disjunction of them for a union).
    """
    domain = domain.coalesce().remove_redundancies()
    pieces = []
    for basic in domain.compute_divs().get_basic_sets():
        parts = [constraint_condition(c) for c in basic.get_constraints()]
        if not parts:
            return True
        pieces.append(parts[0] if len(parts) == 1 else prim.LogicalAnd(tuple(parts)))
    if not pieces:
        return False
    return pieces[0] if len(pieces) == 1 else prim.LogicalOr(tuple(pieces))


def as_dimension(domain: isl.Set, name: str) -> isl.Set:
    """``domain`` with ``name`` as its only set dimension; free where it has no such name."""
    position = domain.find_dim_by_name(PARAM, name)
    lifted = isl.Set.from_params(domain).insert_dims(isl.dim_type.set, 0, 1)
    if position < 0:
        return lifted
    return lifted.move_dims(isl.dim_type.set, 1, PARAM, position, 1).project_out(
        isl.dim_type.set, 0, 1
    )


def maximum(domain: isl.Set, name: str) -> isl.PwAff:
    """The largest value of ``name`` as a function of the other names.

    Exact; defined where ``domain`` has a point.  Raises :class:`UnboundedError`.
    """
    return _end(as_dimension(domain, name).dim_max, name)


def minimum(domain: isl.Set, name: str) -> isl.PwAff:
    """The smallest value of ``name`` as a function of the other names, like :func:`maximum`."""
    return _end(as_dimension(domain, name).dim_min, name)


def _end(of_dimension: Callable[[int], isl.PwAff], name: str) -> isl.PwAff:
    try:
        return of_dimension(0)
    except isl.Error:
        if is_spent():
            raise
        raise UnboundedError(name) from None


def integer(value: isl.Val) -> int:
    """A whole number of isl's.

    Writing it out, as islpy does, counts as work that a budget bounds: it gives nothing
    where none is left.
    """
    try:
        number = int(value.get_num_si())
        if number or value.is_zero():
            return number
    except isl.Error:
        pass
    text = value.to_str()  # beyond 64 bits, where isl gives 0
    if text is None:
        raise isl.Error("maximal number of operations exceeded")
    return int(text)


def maximum_value(domain: isl.Set, expr: Expression) -> int | None:
    """The largest value of an affine ``expr`` in ``domain``; None if unbounded or empty."""
    return _whole(_values(domain, expr).dim_max_val(0))


def minimum_value(domain: isl.Set, expr: Expression) -> int | None:
    """The smallest value of an affine ``expr`` in ``domain``; None if unbounded or empty."""
    return _whole(_values(domain, expr).dim_min_val(0))


def value_range(domain: isl.Set, expr: Expression) -> tuple[int | None, int | None]:
    """The smallest and the largest value of an affine ``expr`` in ``domain``, like these two."""
    values = _values(domain, expr)
    return _whole(values.dim_min_val(0)), _whole(values.dim_max_val(0))


def counted(domain: isl.Set, name: str, sizes: Collection[str]) -> tuple[Expression, int] | None:
    """``name`` counted from its first value, and how many numbers there are up to its last.

    The first value is a number, or else affine in ``sizes``; None where it is neither, or the
    last may be any number of steps away.
    """
    variable = prim.Variable(name)
    low, high = value_range(domain, variable)
    if low is not None and high is not None:
        return prim.Sum((variable, -low)) if low else variable, high - low + 1
    for _, piece in minimum(domain, name).coalesce().get_pieces():
        first = from_affine(piece)
        number = prim.Sum((variable, prim.Product((-1, first))))
        least, most = value_range(domain, number)
        if least == 0 and most is not None and variable_names(first) <= set(sizes):
            return number, most + 1
    return None


def bounds(domain: isl.Set, expr: Expression, otherwise: tuple[int, int]) -> tuple[int, int]:
    """The same, where it has ends, and else those of ``otherwise``; 0 and 0 for no value."""
    if domain.is_empty():
        return 0, 0
    low, high = value_range(domain, expr)
    return otherwise[0] if low is None else low, otherwise[1] if high is None else high


def _values(domain: isl.Set, expr: Expression) -> isl.Set:
    """``{ [expr] : domain }`` exactly, as one set dimension."""
    if isinstance(expr, prim.Variable) and domain.find_dim_by_name(PARAM, expr.name) >= 0:
        value, graph = expr.name, domain
    else:
        value = hidden("value")
        graph = domain & equality(value, expr)
    return as_dimension(project_onto(graph, [value]), value)


def _whole(value: isl.Val) -> int | None:
    """A number; None for what isl says of values without an end, and where there are none."""
    return integer(value) if value.is_int() else None


def factors(domain: isl.Set, inames: Iterable[str]) -> list[tuple[tuple[str, ...], isl.Set]]:
    """Split ``domain`` into sets over inames that no constraint links.

    Returns ``[(inames, set), ...]`` in the order of ``inames``; their
    intersection is ``domain``.  Constraints on sizes alone stay with every
    factor.  A union of several basic sets is not split.
    """
    order = tuple(inames)
    basics = domain.coalesce().compute_divs().get_basic_sets()
    if len(order) <= 1 or len(basics) != 1:
        return [(order, domain)]
    basic = basics[0]
    members = [(c, form_of(c).names & set(order)) for c in basic.get_constraints()]
    groups = linked(order, [used for _, used in members])
    if len(groups) == 1:
        return [(order, domain)]
    home = {name: number for number, group in enumerate(groups) for name in group}
    parts = [isl.BasicSet.universe(basic.get_space())] * len(groups)
    for constraint, used in members:
        for number in {home[u] for u in used} or range(len(groups)):
            parts[number] = parts[number].add_constraint(constraint)
    return [
        (group, project_out(part.to_set(), [n for n in order if n not in group]))
        for group, part in zip(groups, parts, strict=True)
    ]


def linked(names: Iterable[N], links: Iterable[Iterable[N]]) -> list[tuple[N, ...]]:
    """``names`` in groups, each in order: those that a link holds together are in one."""
    owner = {name: name for name in names}

    def root(name: N) -> N:
        while owner[name] != name:
            owner[name] = owner[owner[name]]
            name = owner[name]
        return name

    for first, *rest in filter(None, map(tuple, links)):
        for other in rest:
            owner[root(other)] = root(first)
    return list(grouped((root(name), name) for name in owner).values())
