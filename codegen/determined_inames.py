"""Inames that others determine: positions of cells that threads deal out."""

from __future__ import annotations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._linear import linear_sum
from loopkit._nodes import Expression
from loopkit.codegen.bounds import rounded_down


def determined_value(domain: isl.Set, iname: str, hidden: frozenset[str]) -> Expression | None:
    """``x // 8`` for ``iname`` where the domain says ``8*iname + inner = x``, ``0 <= inner < 8``.

    ``hidden`` are the inames that are not known yet, ``inner`` here.  Nothing else
    of the domain is looked at: what leaves out values is for guards to test, where as a
    bound it would make a loop of what is a name for a position.
    """
    basics = domain.compute_divs().get_basic_sets()
    if len(basics) != 1:
        return None
    for constraint in basics[0].get_constraints():
        if constraint.is_equality():
            value = _quotient(domain, constraint, iname, hidden)
            if value is not None:
                return value
    return None


def _quotient(
    domain: isl.Set, constraint: isl.Constraint, iname: str, hidden: frozenset[str]
) -> Expression | None:
    form = _sets.form_of(constraint)
    if not all(isinstance(e, prim.Variable) for e in form.terms):
        return None
    own = form.terms.get(prim.Variable(iname), 0)
    if not own:
        return None
    sign = -1 if own > 0 else 1
    inner = [(-sign * c, e) for e, c in form.terms.items() if e.name in hidden]
    rest = [(sign * c, e) for e, c in form.terms.items() if e.name not in {iname, *hidden}]
    part = linear_sum(inner, 0)
    low, high = _sets.minimum_value(domain, part), _sets.maximum_value(domain, part)
    if low is None or high is None or high - low >= abs(own):
        return None
    return rounded_down(rest, sign * form.constant - low, abs(own))
