"""Bounds by sizes that are multiples of a number: the same sets over fewer names.

``64*b + t < n`` with ``0 <= t < 64`` bounds ``b`` alone if ``n`` is a multiple of 64. isl finds
that only by a search, which is slow if several such bounds occur together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._linear import Linear
from loopkit._nodes import Expression

Strides = Mapping[Expression, tuple[int, int]]
"""Sizes that are ``remainder`` more than a multiple of ``stride``."""


def tightened(domain: isl.Set, assumed: isl.Set, sizes: Collection[str]) -> isl.Set:
    """``domain``, exactly, where ``assumed`` says of what numbers some ``sizes`` are multiples."""
    strides = _strides(assumed, sizes)
    if not strides:
        return domain
    result = domain - domain
    for piece in domain.compute_divs().get_basic_sets():
        whole = isl.Set.from_basic_set(piece)
        for constraint in piece.get_constraints():
            bound = None if constraint.is_equality() else _bound(constraint, whole, strides)
            if bound is not None:
                whole = whole & _sets.condition_set(prim.Comparison(bound.expression, ">=", 0))
        result = result | whole
    return result


def _strides(assumed: isl.Set, sizes: Collection[str]) -> Strides:
    found: dict[Expression, tuple[int, int]] = {}
    for name in sizes:
        info = _sets.as_dimension(assumed, name).get_stride_info(0)
        stride, offset = _sets.integer(info.get_stride()), info.get_offset()
        if stride > 1 and offset.is_cst():
            found[prim.Variable(name)] = stride, _sets.integer(offset.get_constant_val())
    return found


def _bound(constraint: isl.Constraint, where: isl.Set, strides: Strides) -> Linear | None:
    """What is not negative in ``where`` exactly if a constraint holds, of fewer names; or None."""
    try:
        form = _sets.form_of(constraint)
    except _sets.NotAffineError:
        return None
    steps = {atom: c * strides.get(atom, (1, 0))[0] for atom, c in form.terms.items()}
    of_sizes = math.gcd(*(steps[atom] for atom in form.terms if atom in strides))
    # What divides the sizes' part may leave inames out of the rest, or none.
    divisors = {math.gcd(of_sizes, step) for step in steps.values()}
    for divisor in sorted(divisors - {0, 1}, reverse=True):
        terms = {a: c for a, c in form.terms.items() if steps[a] % divisor == 0}
        rest = Linear({a: c for a, c in form.terms.items() if a not in terms})
        if not rest.terms:
            return None
        beside = form.constant + sum(c * strides[a][1] for a, c in terms.items() if a in strides)
        low, high = _sets.value_range(where, rest.expression)
        if low is None or high is None:
            continue
        # divisor*x + rest >= 0 says x >= -rest/divisor, rounded up.
        least, most = (-((value + beside) // divisor) for value in (high, low))
        if least == most:
            return Linear(terms, form.constant - beside - divisor * least)
    return None
