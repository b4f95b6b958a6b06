"""Projections of numbers that threads and rounds spell: ``256*round + 16*y + x = 20*row + column``.

Which cells a block has dealt out is said over its threads.  Where these are projected out, isl
keeps them as unknowns, one for each, and what is asked then takes it a hundred times as long.
As digits of one number, of which each has all its values, they leave that number, and its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import permutations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._linear import Linear, NotAffineError, total, variable

Rows = list[tuple[Linear, bool]]
"""What is not negative, or where the second is true, zero."""


def project_onto(domain: isl.Set, keep: Iterable[str]) -> isl.Set:
    """The projection of ``domain`` to the names in ``keep``."""
    kept = {*keep}
    gone = [n for n in _sets.names_of(domain) if n not in kept]
    if len(gone) > 1:
        domain = merged(domain, gone)
    return _sets.project_onto(domain, kept)


def merged(domain: isl.Set, gone: Collection[str]) -> isl.Set:
    """A set with the same projection: of the names ``gone``, some stand for several."""
    result = domain - domain
    is_changed = False
    for piece in domain.get_basic_sets():
        whole = isl.Set.from_basic_set(piece)
        rows = _rows(piece)
        fewer = None if rows is None else _merged(rows, gone)
        if fewer is not None:
            is_changed = True
            whole = _set_of(fewer)
        result = result | whole
    return result if is_changed else domain


def _rows(piece: isl.BasicSet) -> Rows | None:
    constraints = piece.get_constraints()
    if not any(c.is_equality() for c in constraints):
        return None
    try:
        return [(_sets.form_of(c), bool(c.is_equality())) for c in constraints]
    except NotAffineError:
        return None


def _set_of(rows: Rows) -> isl.Set:
    values = ((_sets.pw_affine(form.expression), is_zero) for form, is_zero in rows)
    return _sets.intersection(v.zero_set() if is_zero else v.nonneg_set() for v, is_zero in values)


def _merged(rows: Rows, gone: Collection[str]) -> Rows | None:
    """The constraints with a name for each two that are digits, as long as there are any."""
    is_changed = False
    while (fewer := _one_less(rows, gone)) is not None:
        rows, is_changed = fewer, True
    return rows if is_changed else None


def _one_less(rows: Rows, gone: Collection[str]) -> Rows | None:
    for form, is_zero in rows:
        if not is_zero:
            continue
        digits = [a for a in form.terms if isinstance(a, prim.Variable) and a.name in gone]
        for low, high in permutations(digits, 2):
            ratio, rest = divmod(form.terms[high], form.terms[low])
            if ratio > 1 and not rest:
                fewer = _as_one([_without(*r, low, form) for r in rows], low, high, ratio)
                if fewer is not None:
                    return fewer
    return None


def _without(
    form: Linear, is_zero: bool, low: prim.Variable, number: Linear
) -> tuple[Linear, bool]:
    """What isl may have said by the lower digit, said of the higher one: ``number`` is zero."""
    mine, its = form.terms.get(low, 0), number.terms[low]
    if is_zero or not mine or len(form.terms) == 1 or mine % its:
        return form, is_zero
    other = form - number * (mine // its)
    other = Linear({a: c for a, c in other.terms.items() if c}, other.constant)
    step = math.gcd(*other.terms.values())
    if step < 2:
        return form, is_zero
    # What is a multiple of a step, and not less than a constant, is not less rounded up.
    return Linear({a: c // step for a, c in other.terms.items()}, other.constant // step), is_zero


def _as_one(rows: Rows, low: prim.Variable, high: prim.Variable, ratio: int) -> Rows | None:
    """The constraints with ``high`` in the place of ``low + ratio*high``; None if there are others.

    ``low`` must have all values from 0 to ``ratio - 1``, wherever ``high`` has one.
    """
    ends: set[tuple[int, int]] = set()
    found: Rows = []
    for form, is_zero in rows:
        one, two = form.terms.get(low, 0), form.terms.get(high, 0)
        rest = {a: c for a, c in form.terms.items() if a not in (low, high)}
        others = Linear(rest, form.constant)
        if {low.name, high.name} & others.names:
            return None
        if not (one or two):
            found.append((form, is_zero))
        elif one and not two and not is_zero and not rest:
            ends.add((one, form.constant))
        elif one and two == ratio * one:
            found.append((others + variable(high.name) * one, is_zero))
        elif one or is_zero or abs(two) != 1:
            return None
        else:
            # high >= a says low + ratio*high >= ratio*a, and high <= b that it is no more
            # than ratio*b + ratio - 1.
            most = 0 if two > 0 else ratio - 1
            found.append((total((others * ratio, variable(high.name) * two)) + most, False))
    return found if ends == {(1, 0), (-1, ratio - 1)} else None
