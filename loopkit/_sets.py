"""Integer sets over names, on top of isl.

Everywhere in loopkit a set is an isl *parameter set*: every name, iname or
size alike, is a parameter of a space without dimensions.  isl aligns
parameters by name, so sets of different kernels' parts intersect, project and
compare without any bookkeeping of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import takewhile

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit._budget import is_spent, kept
from loopkit._hidden import hidden
from loopkit._linear import Linear, linear_sum, total
from loopkit._linear import NotAffineError as NotAffineError
from loopkit._nodes import Expression
from loopkit._same import remembered

PARAM = isl.dim_type.param


class UnboundedError(Exception):
    """A name has no largest or no smallest value, for some values of the others."""


def universe() -> isl.Set:
    """The set without constraints."""
    return isl.Set.universe(isl.Space.params_alloc(isl.DEFAULT_CONTEXT, 0))


def names_of(domain: isl.Set | isl.Aff) -> tuple[str, ...]:
    """The names in ``domain``'s space, used or not."""
    return tuple(domain.get_dim_name(PARAM, i) for i in range(domain.dim(PARAM)))


def project_out(domain: isl.Set, names: Iterable[str]) -> isl.Set:
    """``{ rest : there are values of names }``."""
    for name in names:
        position = domain.find_dim_by_name(PARAM, name)
        if position >= 0:
            domain = domain.project_out(PARAM, position, 1)
    return domain


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
    return frozenset(n for n in names_of(domain) if involves(domain, n))


def rename(domain: isl.Set, names: Mapping[str, str]) -> isl.Set:
    """``domain`` with names replaced, all at once."""
    for position, old in enumerate(names_of(domain)):
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
    if isinstance(expr, (int, np.integer)) and not isinstance(expr, bool):
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
        # isl divides by positive numbers alone: a // -b is -a // b.
        dividend = numerator if below.constant > 0 else _times(numerator, -1)
        quotient = _as_aff(dividend).scale_down_val(val(abs(below.constant))).floor()
        if isinstance(expr, prim.FloorDiv):
            return quotient
        return _aligned_sum(_as_aff(numerator), quotient.scale_val(val(-below.constant)))
    raise NotAffineError(expr)


@remembered(1 << 14)
def affine(expr: Expression) -> isl.Aff:
    """``expr`` as an isl affine function of names; raises :class:`NotAffineError`."""
    return _as_aff(_affine(expr))


def is_affine(expr: Expression) -> bool:
    """Whether :func:`affine` takes ``expr``."""
    try:
        affine(expr)
    except NotAffineError:
        return False
    return True


def is_pw_affine(expr: Expression) -> bool:
    """Whether :func:`pw_affine` takes ``expr``."""
    try:
        pw_affine(expr)
    except NotAffineError:
        return False
    return True


def is_condition(expr: Expression) -> bool:
    """Whether :func:`condition_set` takes ``expr``."""
    try:
        condition_set(expr)
    except NotAffineError:
        return False
    return True


def pw_affine(expr: Expression) -> isl.PwAff:
    """Like :func:`affine`, for ``min``, ``max`` and ``if`` as well."""
    if isinstance(expr, (prim.Min, prim.Max)):
        parts = [pw_affine(c) for c in expr.children]
        result = parts[0]
        for part in parts[1:]:
            result = result.min(part) if isinstance(expr, prim.Min) else result.max(part)
        return result
    if isinstance(expr, prim.If):
        condition = condition_set(expr.condition)
        then = pw_affine(expr.then).intersect_domain(condition)
        return then.union_add(pw_affine(expr.else_).intersect_domain(condition.complement()))
    if isinstance(expr, prim.Sum):
        first, *others = map(pw_affine, expr.children)
        return reduce(isl.PwAff.add, others, first)
    if isinstance(expr, prim.Product) and not is_affine(expr):
        constants = [c for c in expr.children if isinstance(c, (int, np.integer))]
        others = [c for c in expr.children if not isinstance(c, (int, np.integer))]
        if len(others) != 1:
            raise NotAffineError(expr)
        factor = int(np.prod([int(c) for c in constants], dtype=object))
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
    return isl.PwAff.from_aff(affine(expr))


@remembered(1 << 12)
def condition_set(expr: Expression) -> isl.Set:
    """The set where an affine condition holds; raises :class:`NotAffineError`."""
    if isinstance(expr, (bool, np.bool_)):
        return universe() if expr else isl.Set.empty(_space(()))
    if isinstance(expr, prim.LogicalAnd):
        result = universe()
        for child in expr.children:
            result = result & condition_set(child)
        return result
    if isinstance(expr, prim.LogicalOr):
        result = isl.Set.empty(_space(()))
        for child in expr.children:
            result = result | condition_set(child)
        return result
    if isinstance(expr, prim.LogicalNot):
        return condition_set(expr.child).complement()
    if isinstance(expr, prim.Comparison):
        return _compared(expr.left, expr.operator, expr.right)
    raise NotAffineError(expr)


def is_nowhere(where: isl.Set, conditions: Iterable[Expression]) -> bool:
    """Whether there is no point of ``where`` at which all affine conditions hold."""
    for condition in conditions:
        where = where & condition_set(condition)
        if where.is_empty():
            return True
    return bool(where.is_empty())


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _compared(left: Expression, operator: str, right: Expression) -> isl.Set:
    """``{ left operator right }``.

    A minimum or maximum becomes comparisons of its parts: as a function by cases it has
    a case for each order of them.
    """
    for one, sign, other in ((left, operator, right), (right, _MIRRORED.get(operator), left)):
        extreme = extreme_of(one)
        if extreme is not None and sign is not None:
            return _extreme_compared(*extreme, sign, other)
    a, b = pw_affine(left), pw_affine(right)
    if operator == "<":
        return a.lt_set(b)
    if operator == "<=":
        return a.le_set(b)
    if operator == ">":
        return a.gt_set(b)
    if operator == ">=":
        return a.ge_set(b)
    if operator == "==":
        return a.eq_set(b)
    if operator == "!=":
        return a.ne_set(b)
    raise NotAffineError(prim.Comparison(left, operator, right))


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
    if operator == "==":
        below = _extreme_compared(is_least, parts, "<=", other)
        return below & _extreme_compared(is_least, parts, ">=", other)
    if operator == "!=":
        below = _extreme_compared(is_least, parts, "<", other)
        return below | _extreme_compared(is_least, parts, ">", other)
    sets = [_compared(part, operator, other) for part in parts]
    # The least is below something where any part is, above it where all are.
    any_of = is_least == (operator in ("<", "<="))
    result = sets[0]
    for found in sets[1:]:
        result = result | found if any_of else result & found
    return result


def equality(name: str, expr: Expression) -> isl.Set:
    """``{ name = expr }``; ``expr`` may hold ``min``, ``max`` and ``if``."""
    if not is_affine(expr):
        return condition_set(prim.Comparison(prim.Variable(name), "==", expr))
    left, right = isl.PwAff.from_aff(affine(prim.Variable(name))), isl.PwAff.from_aff(affine(expr))
    return left.eq_set(right)


def affine_equality(a: Expression, b: Expression) -> isl.Set:
    """``{ a = b }``."""
    return isl.PwAff.from_aff(affine(a)).eq_set(isl.PwAff.from_aff(affine(b)))


def value_at(expr: Expression, values: Mapping[str, int]) -> int:
    """The value of an affine expression, names not in ``values`` counting as 0."""
    from loopkit._expression import evaluate, variable_names

    return int(evaluate(expr, {n: values.get(n, 0) for n in variable_names(expr)}))


def sample(domain: isl.Set) -> dict[str, int]:
    """One point of a set that is not empty, with small values where that is easy to have."""
    names = names_of(domain)
    lifted = isl.Set.from_params(domain)
    lifted = lifted.move_dims(isl.dim_type.set, 0, PARAM, 0, len(names))
    point = lifted.lexmin().sample_point() if _is_bounded_below(lifted) else lifted.sample_point()
    return {
        name: integer(point.get_coordinate_val(isl.dim_type.set, i)) for i, name in enumerate(names)
    }


def _is_bounded_below(domain: isl.Set) -> bool:
    return all(
        domain.dim_has_any_lower_bound(isl.dim_type.set, i)
        for i in range(domain.dim(isl.dim_type.set))
    )


# {{{ back from isl to expressions


def _div_terms(obj: isl.Aff | isl.Constraint, values: list[int]) -> list[tuple[int, Expression]]:
    terms = []
    for position, value in enumerate(values):
        if value:
            terms.append((value, quotient(obj, position)))
    return terms


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


def _folded(terms: list[tuple[int, Expression]], constant: int) -> Expression:
    """``(n - 1)//16 + 1`` as ``(n + 15)//16``: a constant beside one floor goes inside it."""
    floors = [(i, e) for i, (c, e) in enumerate(terms) if c == 1 and isinstance(e, prim.FloorDiv)]
    if constant and len(floors) == 1:
        position, quotient = floors[0]
        shifted = _aligned_sum(affine(quotient.numerator), affine(constant * quotient.denominator))
        terms = [*terms]
        terms[position] = (1, prim.FloorDiv(from_affine(shifted), quotient.denominator))
        constant = 0
    return linear_sum(terms, constant)


def from_affine(aff: isl.Aff, *, floor: bool = False) -> Expression:
    """The expression of an isl affine function with integer values.

    ``floor=True`` rounds a function with a denominator down (isl's divs).
    """
    denominator = integer(aff.get_denominator_val())
    scaled = aff.scale_val(val(denominator)) if denominator != 1 else aff
    terms: list[tuple[int, Expression]] = []
    for position in range(aff.dim(PARAM)):
        value = integer(scaled.get_coefficient_val(PARAM, position))
        if value:
            terms.append((value, prim.Variable(aff.get_dim_name(PARAM, position))))
    divs = [
        integer(scaled.get_coefficient_val(isl.dim_type.div, p))
        for p in range(aff.dim(isl.dim_type.div))
    ]
    terms += _div_terms(aff, divs)
    constant = integer(scaled.get_constant_val())
    if denominator == 1:
        return _folded(terms, constant)
    numerator = linear_sum(terms, constant)
    if not floor:
        raise NotAffineError(str(aff))
    return prim.FloorDiv(numerator, denominator)


def constraint_terms(constraint: isl.Constraint) -> tuple[list[tuple[int, Expression]], int]:
    """The constraint's terms and constant: ``sum + constant >= 0`` or ``= 0``."""
    terms: list[tuple[int, Expression]] = []
    constant = 0
    for key, value in constraint.get_coefficients_by_name().items():
        number = integer(value)
        if key == 1:
            constant = number
        elif number:
            terms.append((number, prim.Variable(key)))
    divs = [
        integer(constraint.get_coefficient_val(isl.dim_type.div, p))
        for p in range(constraint.dim(isl.dim_type.div))
    ]
    terms += _div_terms(constraint, divs)
    return terms, constant


def constraint_form(constraint: isl.Constraint) -> Linear:
    """The form that the constraint says is not negative, or zero."""
    terms, constant = constraint_terms(constraint)
    return total(Linear({atom: coefficient}) for coefficient, atom in terms) + constant


def _halves(terms: list[tuple[int, Expression]], constant: int) -> tuple[Expression, Expression]:
    """Positive and negated negative part, so that conditions read ``a < b``."""
    left = [t for t in terms if t[0] > 0]
    right = [(-c, e) for c, e in terms if c < 0]
    if constant > 0:
        return linear_sum(left, constant), linear_sum(right, 0)
    return linear_sum(left, 0), linear_sum(right, -constant)


def constraint_condition(constraint: isl.Constraint) -> Expression:
    """The constraint as a comparison that a person would write."""
    terms, constant = constraint_terms(constraint)
    if constraint.is_equality():
        modular = _modular(terms, constant)
        if modular is not None:
            return modular
        left, right = _halves(terms, constant)
        return prim.Comparison(left, "==", right)
    return inequality_condition(terms, constant)


def inequality_condition(terms: list[tuple[int, Expression]], constant: int) -> Expression:
    """``sum + constant >= 0`` as a person would write it."""
    positive = [t for t in terms if t[0] > 0]
    negative = [(-c, e) for c, e in terms if c < 0]
    if negative and not positive:
        return prim.Comparison(linear_sum(negative, 0), "<=", constant)
    if positive and not negative:
        return prim.Comparison(linear_sum(positive, 0), ">=", -constant)
    if constant < 0:
        return prim.Comparison(linear_sum(negative, -constant - 1), "<", linear_sum(positive, 0))
    return prim.Comparison(linear_sum(negative, 0), "<=", linear_sum(positive, constant))


def _modular(terms: list[tuple[int, Expression]], constant: int) -> Expression | None:
    """``e - m*floor(e/m) = r`` as ``e % m == r``; None where the constraint is no such thing."""
    floors = [t for t in terms if isinstance(t[1], prim.FloorDiv)]
    if len(floors) != 1:
        return None
    coefficient, quotient = floors[0]
    modulus = abs(coefficient)
    sign = -1 if coefficient > 0 else 1
    rest = linear_sum([(sign * c, e) for c, e in terms if e is not quotient], 0)
    if quotient.denominator != modulus:
        return None
    offset = _aligned_sum(affine(rest), affine(quotient.numerator).neg())
    if not offset.is_cst():
        return None
    # rest + sign*constant = modulus*floor((rest - offset)/modulus)
    return prim.Comparison(prim.Remainder(rest, modulus), "==", (-sign * constant) % modulus)


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


# }}}


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
    return _extreme(domain, expr, 1)


def minimum_value(domain: isl.Set, expr: Expression) -> int | None:
    """The smallest value of an affine ``expr`` in ``domain``; None if unbounded or empty."""
    return _extreme(domain, expr, -1)


def _extreme(domain: isl.Set, expr: Expression, sign: int) -> int | None:
    if isinstance(expr, prim.Variable) and domain.find_dim_by_name(PARAM, expr.name) >= 0:
        value, graph = expr.name, domain
    else:
        value = hidden("value")
        graph = domain & equality(value, expr)
    line = as_dimension(project_onto(graph, [value]), value)
    if line.is_empty():
        return None
    best = line.max_val(_identity(sign))
    if best.is_infty() or best.is_nan() or best.is_neginfty():
        return None
    return sign * integer(best)


@lru_cache(maxsize=2)
def _identity(sign: int) -> isl.Aff:
    space = isl.LocalSpace.from_space(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, 1))
    return isl.Aff.zero_on_domain(space).set_coefficient_val(isl.dim_type.in_, 0, isl.Val(sign))


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
    owner = {name: name for name in order}

    def root(name: str) -> str:
        while owner[name] != name:
            owner[name] = owner[owner[name]]
            name = owner[name]
        return name

    members: list[tuple[isl.Constraint, frozenset[str]]] = []
    for constraint in basic.get_constraints():
        used = constraint_names(constraint) & set(order)
        members.append((constraint, used))
        first, *rest = sorted(used) or [""]
        for other in rest:
            owner[root(other)] = root(first)
    groups: dict[str, list[str]] = {}
    for name in order:
        groups.setdefault(root(name), []).append(name)
    if len(groups) == 1:
        return [(order, domain)]
    result = []
    everything = isl.BasicSet.universe(basic.get_space())
    parts = dict.fromkeys(groups, everything)
    for constraint, used in members:
        keys = {root(u) for u in used} or set(groups)
        for key in keys:
            parts[key] = parts[key].add_constraint(constraint)
    for key, group in groups.items():
        others = [n for n in order if n not in group]
        result.append((tuple(group), project_out(parts[key].to_set(), others)))
    return result


def constraint_names(constraint: isl.Constraint) -> frozenset[str]:
    """The names that a constraint mentions, also inside integer divisions."""
    terms, _ = constraint_terms(constraint)
    found: set[str] = set()
    for _, expr in terms:
        found |= names_in(expr)
    return frozenset(found)


def names_in(expr: Expression) -> frozenset[str]:
    """The names in an expression that came from isl."""
    if isinstance(expr, prim.Variable):
        return frozenset([expr.name])
    if isinstance(expr, (prim.Sum, prim.Product)):
        return frozenset().union(*(names_in(c) for c in expr.children))
    if isinstance(expr, prim.FloorDiv):
        return names_in(expr.numerator)
    return frozenset()
