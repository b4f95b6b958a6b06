"""Upper bounds of names in sets, as lists of expressions instead of piecewise functions.

The largest value of a name with twelve upper bounds is the minimum of twelve expressions.  As a
piecewise function it would have a piece for each of their orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._expression import to_text
from loopkit._linear import Linear, linear
from loopkit._nodes import Expression
from loopkit._simplify import needed_parts


def extents(graph: isl.Set, name: str, known: isl.Set) -> list[Expression] | None:
    """One more than the largest value of ``name``, for each part of ``graph``, or for all of many.

    Each is exact wherever ``known`` holds and its part has a value, but where no min or max
    says what strides leave: there it is a number, or the end without them, which is enough.
    None where a part has no end.
    """
    if not _sets.involved_names(graph) - {name} and not known.is_empty():
        # Without sizes it is a number, which isl finds sooner than the parts of the set.
        most = _sets.maximum_value(graph, prim.Variable(name))
        return None if most is None else [most + 1]
    found: dict[Expression, None] = {}
    graph = graph.compute_divs()
    if graph.n_basic_set() <= _budget.PIECES**2:
        graph = graph.coalesce()
    pieces = graph.get_basic_sets()
    if len(pieces) > _budget.PIECES:
        pieces = [graph.remove_divs().simple_hull()]
    for piece in pieces:
        where = _sets.project_out(piece.to_set(), [name]) & known
        if where.is_empty():
            continue
        ends = _ends(piece.remove_redundancies(), name)
        extent = _by_cases(piece.to_set(), name, known) if ends is None else least(ends, where)
        if extent is None and ends is None:
            extent = _without_strides(piece, name, where)
        if extent is None:
            return None
        found[extent] = None
    return list(found)


def _ends(piece: isl.BasicSet, name: str) -> list[Expression] | None:
    """The constraints that bound ``name`` from above, as what it stays below.

    None where a quotient of ``name`` is bounded: the constraint alone is not exact.
    """
    variable = prim.Variable(name)
    ends: list[Expression] = []
    for constraint in piece.get_constraints():
        form = _sets.form_of(constraint)
        coefficient = form.terms.get(variable, 0)
        others = form - Linear({variable: coefficient})
        if name in others.names:
            return None
        if coefficient == 0 or (coefficient > 0 and not constraint.is_equality()):
            continue
        sign = 1 if coefficient < 0 else -1
        bound = _sets.affine((others * sign).expression)
        bound = bound.align_params(piece.get_space())
        if abs(coefficient) != 1:
            bound = bound.scale_down_val(_sets.val(abs(coefficient))).floor()
        ends.append(_sets.from_affine(bound.add_constant_val(_sets.val(1))))
    return list(dict.fromkeys(ends))


def _without_strides(piece: isl.BasicSet, name: str, where: isl.Set) -> Expression | None:
    """A sufficient extent that ignores strides; None without an upper bound."""
    ends = _ends(piece.remove_divs().remove_redundancies(), name)
    return least(ends, where) if ends else None


def _by_cases(part: isl.Set, name: str, known: isl.Set) -> Expression | None:
    """One more than the largest value where strides decide; None if nothing short says it."""
    try:
        with _budget.at_most(_budget.EXTENT):  # there may be as many cases as strides have phases
            largest = _sets.maximum(part, name)
    except (_sets.UnboundedError, _budget.SpentError):
        return None
    pieces = ((piece.params() & known, aff) for piece, aff in largest.coalesce().get_pieces())
    cases = [(where, aff) for where, aff in pieces if not where.is_empty()]
    behind = [_sets.from_affine(aff.add_constant_val(_sets.val(1))) for _, aff in cases]
    ends = list(dict.fromkeys(behind))
    if len(ends) == 1:
        return ends[0]
    candidates: list[Expression] = [
        kind(tuple(sorted(ends, key=to_text))) for kind in (prim.Min, prim.Max)
    ]
    around = _around(cases, name, known)
    for candidate in candidates if around is None else [*candidates, around]:
        if all(_is(candidate, end, where) for (where, _), end in zip(cases, behind, strict=True)):
            return candidate
    enough = _sets.maximum_value(part & known, prim.Variable(name))
    return None if enough is None else enough + 1


def _is(extreme: Expression, end: Expression, where: isl.Set) -> bool:
    """Whether a minimum or maximum has a value wherever ``where`` holds, part by part."""
    is_least, parts = _sets.extreme_of(extreme) or (True, (extreme,))
    beyond = "<" if is_least else ">"
    if any(not _sets.is_nowhere(where, [prim.Comparison(p, beyond, end)]) for p in parts):
        return False
    return end in parts or _sets.is_nowhere(where, [prim.Comparison(p, "!=", end) for p in parts])


def _around(
    cases: Sequence[tuple[isl.Set, isl.Aff]], name: str, known: isl.Set
) -> Expression | None:
    """The least upper bound of the convex hull of all cases, for cases that hold for few sizes."""
    graph, sizes = isl.Set.empty(known.get_space()), isl.Set.empty(known.get_space())
    for condition, aff in cases:
        graph = graph | (condition & _sets.equality(name, _sets.from_affine(aff)))
        sizes = sizes | condition
    if any(piece.dim(isl.dim_type.div) for piece in graph.get_basic_sets()):
        return None  # isl knows no hull of these
    ends = _ends(graph.convex_hull(), name)
    return None if ends is None else least(ends, sizes)


def least(ends: Sequence[Expression], where: isl.Set) -> Expression | None:
    """The least of several ends wherever ``where`` holds, without those that never are."""
    if not ends:
        return None
    kept = needed_parts(prim.Min, sorted(ends, key=_complexity), where)
    return kept[0] if len(kept) == 1 else prim.Min(tuple(sorted(kept, key=to_text)))


def largest(ends: Mapping[Expression, Callable[[], isl.Set]]) -> Expression:
    """The maximum of several extents, without those that others cover where they are needed.

    Each comes with a function that says where there is an access that needs it.
    """
    kept = _longest(list(ends))
    if len(kept) == 1:
        return kept[0]
    dropped = [e for e in ends if e not in kept]
    for end in sorted(kept, key=_complexity, reverse=True):
        others = [o for o in kept if o is not end]
        if others and all(
            _sets.is_nowhere(ends[e](), [prim.Comparison(o, "<", e) for o in others])
            for e in [end, *dropped]
        ):
            kept = others
            dropped.append(end)
    return kept[0] if len(kept) == 1 else prim.Max(tuple(sorted(kept, key=to_text)))


def _longest(ends: Sequence[Expression]) -> list[Expression]:
    """``ends`` without those that are smaller than another one by a constant."""
    best: dict[object, tuple[int, Expression]] = {}
    for end in ends:
        try:
            form = linear(end)
        except _sets.NotAffineError:
            best[end] = (0, end)
            continue
        key = frozenset(form.terms.items())
        if key not in best or form.constant > best[key][0]:
            best[key] = (form.constant, end)
    return [end for _, end in best.values()]


def _complexity(expr: Expression) -> tuple[bool, int]:
    """Numbers are left out last of all where others say the same, long expressions first."""
    return (not isinstance(expr, int), len(to_text(expr)))
