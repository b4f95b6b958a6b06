"""Indices that are numbers in mixed radix, and so tell all of their inames."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._linear import linear
from loopkit._nodes import Expression


def told_by(kernel: Kernel, index: Expression) -> frozenset[str]:
    """The inames that an index tells: wherever it has one value, each of them has one.

    ``16*i_outer + i_inner`` tells both, if ``i_inner`` has at most 16 values.  All inames of
    the index are told, or none; none does not say that they are not.
    """
    names = variable_names(index)
    inames = names & kernel.home_domain.keys()
    if not inames or not names - inames <= {*kernel.sizes}:
        return frozenset()
    if isinstance(index, prim.Variable):
        return inames
    try:
        terms = linear(index).terms
    except _sets.NotAffineError:
        return frozenset()
    digits = []
    for atom, coefficient in terms.items():
        if isinstance(atom, prim.Variable):
            if atom.name in inames:
                digits.append((abs(coefficient), atom.name))
        elif variable_names(atom) & inames:
            return frozenset()
    if len(digits) < len(inames):
        return frozenset()
    reach: int | None = 0
    for coefficient, iname in sorted(digits):
        # All smaller digits together must not reach the next larger one.
        if reach is None or coefficient <= reach:
            return frozenset()
        low, high = kernel.range_of(iname)
        reach = None if low is None or high is None else reach + coefficient * (high - low)
    return inames
