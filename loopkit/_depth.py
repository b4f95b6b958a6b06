"""How deeply expressions nest, and how deeply they may.

All that reads expressions calls itself for the parts of what it reads, as Python's own compiler
does.  What is deeper than they go is refused where a kernel is made, once for all of them.
"""

from __future__ import annotations

from typing import Any

import pymbolic.primitives as prim

from loopkit._nodes import Expression
from loopkit._same import fields_of

MOST_NESTED = 100
"""As many operations, subscripts, calls and parentheses may stand inside of each other."""

TOO_DEEP = f"an expression may nest {MOST_NESTED} operations deep"
INSTEAD = "name a part of it: <> t = ..."


def nesting(expr: Expression, *, in_pairs: bool = False) -> int:
    """How many operations stand inside of each other; a sum counts once, however long it is.

    With ``in_pairs`` it counts as the operations of two operands each that it stands for.
    """
    deepest = 0
    waiting: list[tuple[Expression, int]] = [(expr, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, tuple):
            waiting += [(child, depth) for child in node]
        elif isinstance(node, prim.ExpressionNode) and not isinstance(node, prim.Variable):
            is_long = in_pairs and isinstance(node, (prim.Sum, prim.Product))
            step = len(node.children) - 1 if is_long else 1
            kind: Any = type(node)
            waiting += [(getattr(node, name), depth + step) for name in fields_of(kind) or ()]
    return deepest
