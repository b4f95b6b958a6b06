"""Which inames some expressions tell, found by computing them: for what no set knows.

``i ^ i >> 1`` is another number for each ``i`` of 0 to 63, and so are ``i // 8`` and
``i % 8 ^ i // 8`` together. Of inames with constant bounds there are few enough to look at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import evaluate, nodes_of, variable_names
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._points import listed

MOST = 1 << 16
"""How many combinations of values are looked at."""

_MANY = 6
"""With how many quotients and masks sets slow down."""

POINTS = (
    "what operations on the bits of several unknowns give is looked at point by point, where the "
    f"inames have constant bounds and at most {MOST} combinations; fix_parameters makes bounds "
    "numbers"
)
"""What would settle an open question of bits."""
OF_BITS = (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor, prim.BitwiseNot)
_OPERATIONS = (*OF_BITS, prim.LeftShift, prim.RightShift, prim.FloorDiv, prim.Remainder)
_KNOWN = (*_OPERATIONS, prim.Sum, prim.Product, prim.Variable, int)
"""What whole numbers are made of; what is affine without these is no question here."""


def told_by_points(
    kernel: Kernel, exprs: Sequence[Expression], known: Collection[str]
) -> frozenset[str]:
    """The inames that some expressions tell together with those that are ``known``.

    Expressions with other names, sizes among them, or with inames without constant bounds
    are left aside. Empty where that is no question of bits, or would take too long.
    """
    inames = kernel.home_domain.keys()
    named = [e for e in exprs if variable_names(e)]
    left = [e for e in named if variable_names(e) <= inames and _is_computed(e)]
    found: set[str] = set()
    for names in _linked(left):
        mine = [e for e in left if variable_names(e) <= names]
        if names <= {*known} or all(_is_easy(e) for e in mine):
            continue
        order = sorted(names)
        domain = kernel.domain_of(names) & kernel.assumptions.set
        points = listed(domain, order, MOST)
        if points is not None:
            columns = dict(zip(order, points.T.astype(object), strict=True))
            given = [prim.Variable(name) for name in order if name in known]
            found |= _told(columns, [evaluate(e, columns) for e in (*mine, *given)])
    return frozenset(found)


def _told(columns: Mapping[str, Any], values: Sequence[Any]) -> frozenset[str]:
    """The names that have one value wherever all of some expressions have theirs."""
    keys = [*zip(*values, strict=True)]
    first = {key: at for at, key in reversed([*enumerate(keys)])}
    back = np.array([first[key] for key in keys], np.int64)
    return frozenset(name for name, column in columns.items() if (column == column[back]).all())


def _is_easy(expr: Expression) -> bool:
    """Whether sets know an expression, and are quick about it."""
    operations = [node for node in nodes_of(expr) if isinstance(node, _OPERATIONS)]
    return len(operations) < _MANY and _sets.is_affine(expr)


def _is_computed(expr: Expression) -> bool:
    """Whether an expression is one of whole numbers whose divisors and shifts are numbers."""
    for node in nodes_of(expr):
        if not isinstance(node, _KNOWN) or isinstance(node, bool):
            return False
        by = getattr(node, "denominator", 1) if not isinstance(node, int) else 1
        shift = getattr(node, "shift", 0)
        if not isinstance(by, int) or by == 0 or not isinstance(shift, int) or shift < 0:
            return False
    return True


def _linked(exprs: Sequence[Expression]) -> list[frozenset[str]]:
    """The names of expressions, those together that stand in one."""
    groups: list[frozenset[str]] = []
    for expr in exprs:
        names = variable_names(expr)
        for group in [g for g in groups if g & names]:
            groups.remove(group)
            names |= group
        groups.append(names)
    return groups
