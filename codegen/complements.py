"""Guards of branches: what both ask is asked around them, and what tells them apart inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pymbolic.primitives as prim

from loopkit._collectives import TOGETHER
from loopkit._expression import variable_names
from loopkit._guarded import conjuncts
from loopkit._nodes import Expression
from loopkit.codegen.bounds import conjunction
from loopkit.codegen.ir import Code, Do, For, If, Let

Group = tuple[Expression, list[Code]]


def with_branches(
    groups: Sequence[Group], guarded: Callable[[Expression, Sequence[Code]], Code]
) -> list[Group]:
    """Groups of code with their conditions, two in a row that exclude each other put together.

    Before: ``a and c: S``, ``a and not c: T``   After: ``a: [if c: S, if not c: T]``

    ``guarded`` makes the guards inside.
    """
    found: list[Group] = []
    for condition, code in reversed(groups):
        behind = found[0] if found else None
        apart = None if behind is None else _apart(condition, behind[0])
        both = [*code, *(behind[1] if behind is not None else ())]
        if behind is None or apart is None or not _is_plain(both, condition, behind[0]):
            found.insert(0, (condition, code))
            continue
        common, mine, other = apart
        found[0] = common, [guarded(mine, code), guarded(other, behind[1])]
    return found


def _apart(one: Expression, other: Expression) -> tuple[Expression, Expression, Expression] | None:
    """What two conditions have in common, and that which holds in one of them alone."""
    mine, its = conjuncts(one), conjuncts(other)
    common = [part for part in mine if part in its]
    left, right = ([p for p in side if p not in common] for side in (mine, its))
    if not common or len(left) != 1 or len(right) != 1:
        return None
    (a,), (b,) = left, right
    if prim.LogicalNot(a) != b and prim.LogicalNot(b) != a:
        return None
    return conjunction(*common), a, b


def _is_plain(code: Iterable[Code], *conditions: Expression) -> bool:
    """Whether code leaves conditions as they are, and lets no other thread change them."""
    asked = frozenset[str]().union(*map(variable_names, conditions))
    pending = list(code)
    while pending:
        node = pending.pop()
        if isinstance(node, Do):
            if node.statement.written in asked or node.statement.kind in TOGETHER:
                return False
            continue
        if not isinstance(node, (For, If, Let)):
            return False
        pending += node.body
    return True
