"""Loop bounds and guards of generated code, derived from integer sets."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import divisions_in, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._linear import Linear, linear_sum
from loopkit._nodes import Expression
from loopkit._sets import UnboundedError
from loopkit._simplify import needed_parts


@dataclass(frozen=True)
class Bounds:
    """``for name in range(lower, upper, step)``, and the set that the loop enforces."""

    lower: Expression
    upper: Expression
    step: int
    enforced: isl.Set
    value: Expression | None = None
    """The one value that the iname can have, where outer names determine it."""


def one_value(name: str, value: Expression) -> Bounds:
    """The bounds of a loop with a single iteration, whose value the outer names determine."""
    return Bounds(value, plus(value, 1), 1, _sets.equality(name, value), value)


_FEW = 4
"""Parts of a union that are compared with each other."""


def single_basic_set(domain: isl.Set) -> isl.BasicSet:
    """``domain``, or a hull of it that is one conjunction."""
    domain = domain.compute_divs().coalesce()
    basics = domain.compute_divs().get_basic_sets()
    if 1 < len(basics) <= _FEW:  # of whole numbers, which coalescing does not go into
        kept: list[isl.BasicSet] = []
        for basic in basics:
            if not any(basic.is_subset(other) for other in kept):
                kept = [other for other in kept if not other.is_subset(basic)] + [basic]
        basics = kept
    basic = basics[0] if len(basics) == 1 else domain.simple_hull()
    # A hull may hold numbers that are no quotients of anything: it is a little larger without.
    return basic.remove_redundancies().remove_unknown_divs()


def implied(context: isl.Set, constraint: isl.Constraint) -> bool:
    """Whether ``context`` has only points that satisfy ``constraint`` (decided over integers)."""
    basic = isl.BasicSet.from_constraint(constraint)
    return bool(context.is_subset(basic.to_set()))


def rounded_down(
    terms: list[tuple[int, Expression]], constant: int, denominator: int
) -> Expression:
    """The sum divided and rounded down, in the form in which a person would write it.

    Multiples of the denominator are taken out, ``4*i + t//32`` for ``(128*i + t)//32``, unless the
    remaining quotient could be of a negative number, which costs more. isl's normal form is not
    used.
    """
    if denominator == 1:
        return linear_sum(terms, constant)
    whole = [(c // denominator, e) for c, e in terms if c % denominator == 0]
    rest = [(c, e) for c, e in terms if c % denominator]
    if not rest:
        return linear_sum(whole, constant // denominator)
    if not whole or constant < 0 or any(c < 0 for c, _ in rest):
        return prim.FloorDiv(linear_sum(terms, constant), denominator)
    quotient = prim.FloorDiv(linear_sum(rest, constant), denominator)
    return linear_sum([*whole, (1, quotient)], 0)


def _extreme(parts: list[Expression], kind: type) -> Expression:
    """The least or greatest of several bounds, constants among them as one."""
    unique = list(dict.fromkeys(parts))
    constants = [p for p in unique if isinstance(p, int)]
    if len(constants) > 1:
        best = min(constants) if kind is prim.Min else max(constants)
        unique = [best, *(p for p in unique if not isinstance(p, int))]
    return unique[0] if len(unique) == 1 else kind(tuple(unique))


def loop_bounds(domain: isl.Set, name: str, context: isl.Set) -> Bounds:
    """The tightest bounds of ``name`` in ``domain`` that one loop can have.

    ``context`` holds where the loop is reached; what it implies is not tested
    again.  Raises :class:`UnboundedError`.
    """
    around = _sets.project_out(context, [name])
    domain = _without_digits(domain, name, around)
    basic = single_basic_set(domain)
    # Names stand in the order of the context, here as in what is simplified by it.
    value = _value_in(basic.align_params(around.get_space()), name)
    if value is not None:
        return one_value(name, value)
    simplified = basic.to_set().gist(around).coalesce()
    pieces = simplified.compute_divs().get_basic_sets()
    if len(pieces) == 1:
        basic = pieces[0].remove_redundancies().remove_unknown_divs()
    try:
        return _bounds(domain, name, basic)
    except UnboundedError:
        pass
    try:
        # Only quotients bound it, or each part of a union by names of its own: without these
        # it passes a few values for nothing.
        loose = single_basic_set(_of_common_names(domain)).remove_divs().remove_redundancies()
        return _bounds(domain, name, loose)
    except UnboundedError:
        return _union_bounds(domain, name, context)


def _without_digits(domain: isl.Set, name: str, around: isl.Set) -> isl.Set:
    """``32*name + digit < K`` as ``32*name < K``, where ``around`` says that 32 divides K."""
    if not any(basic.dim(isl.dim_type.div) for basic in around.get_basic_sets()):
        return domain
    variable, digits = prim.Variable(name), set()
    for basic in domain.get_basic_sets():
        for constraint in basic.remove_unknown_divs().get_constraints():
            terms = _sets.form_of(constraint).terms
            whole = terms.get(variable, 0)
            less = (e for e, c in terms.items() if 0 < c * whole < whole * whole)
            digits |= {e.name for e in less if isinstance(e, prim.Variable)}
    for digit in sorted(digits):
        without = _sets.project_out(domain & around, [digit])
        if (without & around).is_subset(domain):
            domain = without
    return domain


def _value_in(basic: isl.BasicSet, name: str) -> Expression | None:
    """The one value of ``name``, where constraints of ``basic`` leave no other."""
    with suppress(UnboundedError):
        found = _limits(basic, name)
        return _determined(found.lowers, found.uppers)
    return None


def _of_common_names(domain: isl.Set) -> isl.Set:
    """A union without the names that not all of its parts are about."""
    pieces = domain.compute_divs().coalesce().get_basic_sets()
    used = [_sets.involved_names(piece.to_set()) for piece in pieces]
    own = frozenset().union(*used) - frozenset.intersection(*map(frozenset, used))
    return _sets.project_out(domain, sorted(own)).coalesce() if own else domain


@dataclass
class _Limits:
    """What the constraints of one conjunction say about a name: bounds, and the sets they keep."""

    lowers: list[Expression]
    uppers: list[Expression]
    above: isl.BasicSet
    below: isl.BasicSet
    strided: bool = False


def _limits(basic: isl.BasicSet, name: str) -> _Limits:
    """The bounds of ``name`` that the constraints of ``basic`` are; raises if one is missing."""
    everything = isl.BasicSet.universe(basic.get_space())
    found = _Limits([], [], everything, everything)
    for constraint in basic.get_constraints():
        position = constraint.get_space().find_dim_by_name(_sets.PARAM, name)
        if position < 0:
            continue
        coefficient = _sets.integer(constraint.get_coefficient_val(_sets.PARAM, position))
        if name in _floor_names(constraint):
            found.strided = found.strided or constraint.is_equality()
            continue
        if not coefficient:
            continue
        form = _sets.form_of(constraint)
        constant = form.constant
        # coefficient*name >= -rest - constant
        size = abs(coefficient)
        sign = -1 if coefficient > 0 else 1
        signed = [(sign * c, e) for e, c in form.terms.items() if e != prim.Variable(name)]
        if constraint.is_equality() or coefficient > 0:
            found.above = found.above.add_constraint(_half(constraint, coefficient > 0))
            found.lowers.append(rounded_down(signed, sign * constant + size - 1, size))
        if constraint.is_equality() or coefficient < 0:
            found.below = found.below.add_constraint(_half(constraint, coefficient < 0))
            found.uppers.append(rounded_down(signed, sign * constant + size, size))
    if not found.lowers or not found.uppers:
        raise UnboundedError(name)
    return found


def _half(constraint: isl.Constraint, is_positive: bool) -> isl.Constraint:
    """An inequality unchanged; of an equality one of its two inequalities: ``>= 0`` or ``<= 0``.

    A loop from one bound to another may enforce only one of them.
    """
    if not constraint.is_equality():
        return constraint
    aff = constraint.get_aff()
    return isl.Constraint.inequality_from_aff(aff if is_positive else aff.neg())


def _bounds(domain: isl.Set, name: str, basic: isl.BasicSet) -> Bounds:
    """The bounds of ``name`` in ``basic``, a conjunction that contains ``domain``."""
    found = _limits(basic, name)
    value = _determined(found.lowers, found.uppers)
    if value is not None:
        return one_value(name, value)
    lower, upper = _extreme(found.lowers, prim.Max), _extreme(found.uppers, prim.Min)
    step = 1
    result = (found.above & found.below).to_set()
    if found.strided:
        step, lower, aligned = _stride(domain, name, lower)
        if aligned is not None:
            result = result & aligned
    return Bounds(lower, upper, step, result)


def _union_bounds(domain: isl.Set, name: str, context: isl.Set) -> Bounds:
    """The bounds of a union: from the start of its first part to the end of its last one.

    The loop also iterates over the gaps between the parts; guards inside exclude these.
    """
    around = _sets.project_out(context, [name])
    lowers: list[Expression] = []
    uppers: list[Expression] = []
    above = below = isl.Set.empty(domain.get_space())
    for piece in (domain & around).coalesce().remove_divs().get_basic_sets():
        found = _limits(_simplified(piece, around), name)
        lowers.append(_extreme(found.lowers, prim.Max))
        uppers.append(_extreme(found.uppers, prim.Min))
        above, below = above | found.above.to_set(), below | found.below.to_set()
    lower = needed_parts(prim.Min, list(dict.fromkeys(lowers)), around)
    upper = needed_parts(prim.Max, list(dict.fromkeys(uppers)), around)
    return Bounds(
        _extreme(lower, prim.Min), _extreme(upper, prim.Max), 1, (above & below).coalesce()
    )


def loose_end(domain: isl.Set, name: str) -> Expression:
    """An exclusive upper bound of ``name`` in ``domain``, from constraints without quotients."""
    pieces = domain.remove_divs().coalesce().get_basic_sets()
    ends = [_extreme(_limits(p.remove_redundancies(), name).uppers, prim.Min) for p in pieces]
    return _extreme(ends, prim.Max)


def _simplified(piece: isl.BasicSet, context: isl.Set) -> isl.BasicSet:
    """``piece`` without what ``context`` implies, where that still is one conjunction."""
    basics = piece.to_set().gist(context).coalesce().remove_divs().get_basic_sets()
    return (basics[0] if len(basics) == 1 else piece).remove_redundancies()


def plus(expr: Expression, constant: int) -> Expression:
    """``expr + constant``, folded."""
    if isinstance(expr, (prim.Max, prim.Min)):
        return type(expr)(tuple(plus(c, constant) for c in expr.children))
    return _sets.from_affine(_sets.affine(prim.Sum((expr, constant))))


def _determined(lowers: list[Expression], uppers: list[Expression]) -> Expression | None:
    """The only value: a lower bound that is one less than some exclusive upper bound."""
    for low in lowers:
        for high in uppers:
            negated = prim.Product((-1, low))
            gap = _sets.affine(prim.Sum((high, negated)))
            if gap.is_cst() and _sets.integer(gap.get_constant_val()) == 1:
                return low
    return None


def _floor_names(constraint: isl.Constraint) -> frozenset[str]:
    found: set[str] = set()
    for position in range(constraint.dim(isl.dim_type.div)):
        if _sets.integer(constraint.get_coefficient_val(isl.dim_type.div, position)):
            found |= variable_names(_sets.quotient(constraint, position))
    return frozenset(found)


def _stride(
    domain: isl.Set, name: str, lower: Expression
) -> tuple[int, Expression, isl.Set | None]:
    """The step of a strided loop, its first value, and the congruence it enforces."""
    line = _sets.as_dimension(domain, name)
    info = line.get_stride_info(0)
    stride = _sets.integer(info.get_stride())
    if stride == 1:
        return 1, lower, None
    # An integer wherever the loop is reached, also where it is a quotient: of a strided name, say.
    offset = _sets.from_affine(info.get_offset(), floor=True)
    variable = prim.Variable(name)
    congruence = _sets.condition_set(
        prim.Comparison(
            prim.Remainder(prim.Sum((variable, prim.Product((-1, offset)))), stride), "==", 0
        )
    )
    if isinstance(lower, int) and isinstance(offset, int):
        return stride, lower + (offset - lower) % stride, congruence
    if lower == 0:
        return stride, prim.Remainder(offset, stride), congruence
    gap = prim.Remainder(prim.Sum((offset, prim.Product((-1, lower)))), stride)
    return stride, prim.Sum((lower, gap)), congruence


def guard(domain: isl.Set, context: isl.Set) -> tuple[Expression, isl.Set]:
    """What must still be tested for ``domain`` where ``context`` holds.

    Returns a condition (True if nothing is left) and the set it selects.
    """
    left = domain.gist(context).compute_divs().coalesce()
    if left.plain_is_universe():
        return True, _sets.universe()
    pieces = left.compute_divs().get_basic_sets()
    if len(pieces) == 1:
        parts = []
        enforced = _sets.universe()
        equalities = _equalities(context)
        for constraint in pieces[0].remove_redundancies().get_constraints():
            if not implied(context, constraint):
                parts.append(_shortest(constraint, equalities))
                enforced = enforced & isl.BasicSet.from_constraint(constraint).to_set()
        if not parts:
            return True, _sets.universe()
        parts.sort(key=lambda condition: condition.operator != ">=")  # lower bounds first
        return conjunction(*parts), enforced
    if context.is_subset(domain):
        return True, _sets.universe()
    excluded = (context - domain).gist(context).coalesce().get_basic_sets()
    if len(pieces) == 2 and len(excluded) == 1:  # all but one value, say
        holes = excluded[0].remove_redundancies().get_constraints()
        if len(holes) == 1 and holes[0].is_equality():
            hole = _shortest(holes[0], _equalities(context))
            return prim.Comparison(hole.left, "!=", hole.right), left
    return _sets.conditions(left), left


def _equalities(context: isl.Set) -> list[Linear]:
    """The expressions that are zero in ``context``, a conjunction, from its equalities."""
    basics = context.compute_divs().get_basic_sets()
    constraints = basics[0].get_constraints() if len(basics) == 1 else ()
    forms = [_sets.form_of(c) for c in constraints if c.is_equality()]
    return [f for f in forms if all(isinstance(e, prim.Variable) for e in f.terms)]


def _shortest(constraint: isl.Constraint, equalities: list[Linear]) -> Expression:
    """The constraint as a condition, equalities used where that makes it shorter."""
    if not equalities or constraint.is_equality():
        return _sets.constraint_condition(constraint)
    best = _sets.form_of(constraint)
    for equality in equalities:
        for name, coefficient in equality.terms.items():
            factor, rest = divmod(best.terms.get(name, 0), coefficient)
            shorter = best - equality * factor
            if not rest and len(shorter.terms) < len(best.terms):
                best = shorter
    return _sets.inequality_condition(best)


def guard_with_quotients(
    domain: isl.Set, context: isl.Set, quotients: list[Expression]
) -> Expression:
    """Like :func:`guard`, in terms of quotients and remainders that the code computes anyway.

    isl has its own normal form for integer divisions; giving names to those of
    a statement makes its conditions come out as a person would write them.
    """
    condition, _ = guard(domain, context)
    if condition is True or not quotients or not divisions_in(condition):
        return condition
    names: dict[str, Expression] = {}
    for number, quotient in enumerate(quotients):
        name = hidden("quotient", number)
        names[name] = quotient
        graph = _sets.equality(name, quotient)
        domain, context = domain & graph, context & graph
    named, _ = guard(domain, context)
    return substitute(named, names)


def conjunction(*conditions: Expression) -> Expression:
    """``and`` of conditions, True left out."""
    parts: list[Expression] = []
    for condition in conditions:
        if condition is not True:
            is_and = isinstance(condition, prim.LogicalAnd)
            parts += condition.children if is_and else [condition]
    if len(parts) < 2:
        return parts[0] if parts else True
    return prim.LogicalAnd(tuple(parts))


def determined_value(domain: isl.Set, iname: str, hidden: frozenset[str]) -> Expression | None:
    """``x // 8`` for ``iname`` where the domain says ``8*iname + inner = x``, ``0 <= inner < 8``.

    ``hidden`` are the inames that are not known yet, ``inner`` here.  Nothing else
    of the domain is looked at: what leaves out values is for guards to test, where as a
    bound it would make a loop of what is a name for a position.
    """
    for form in _equalities(domain):
        own = form.terms.get(prim.Variable(iname), 0)
        if not own:
            continue
        sign = -1 if own > 0 else 1
        inner = [(-sign * c, e) for e, c in form.terms.items() if e.name in hidden]
        rest = [(sign * c, e) for e, c in form.terms.items() if e.name not in {iname, *hidden}]
        low, high = _sets.value_range(domain, linear_sum(inner, 0))
        if low is not None and high is not None and high - low < abs(own):
            return rounded_down(rest, sign * form.constant - low, abs(own))
    return None
