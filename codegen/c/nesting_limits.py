"""The limits on the nesting depth of code that the proof analyses."""

from __future__ import annotations

from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import DeepError
from loopkit.codegen.c.printer import is_enclosed

DEEPEST = 60
"""Parentheses, calls and branches inside each other, or loops and guards; sums are no nest."""
LONGEST = 120
"""Conditions that are looked at one after another: each holds where the next one is."""


def check_depth(function: c.Function) -> None:
    """Raise :class:`DeepError` for a tree nested more deeply than :mod:`.reader` accepts."""
    for node, level in c.nested(function.body):
        for expr in c.expressions(node):
            levels, conditions, signs = depths(expr)
            if level + 1 + levels > DEEPEST:
                raise DeepError(node.line, f"nested in more than {DEEPEST} levels")
            if conditions > LONGEST:
                raise DeepError(node.line, f"a condition of more than {LONGEST} parts")
            if signs > DEEPEST:
                raise DeepError(node.line, f"more than {DEEPEST} signs before an operand")


def depths(expr: c.CExpression) -> tuple[int, int, int]:
    """How many parentheses, calls, subscripts and branches stand inside each other at most.

    And how many conditions, and signs, come one after another.
    """
    deepest, longest, most = 1, 0, 0
    pending = [(expr, 1, 0, 0)]
    while pending:
        whole, level, conditions, signs = pending.pop()
        deepest = max(deepest, level)
        if isinstance(whole, (c.Name, c.Number)):
            continue
        if isinstance(whole, c.Binary) and whole.operator in ("&&", "||"):
            conditions += 1
            longest = max(longest, conditions)
        if isinstance(whole, (c.Unary, c.Cast)):
            signs += 1
            most = max(most, signs)
        else:
            signs = 0
        is_inside = isinstance(whole, (c.Call, c.Element, c.Braces))
        for position, part in enumerate(c.children(whole)):
            is_branch = isinstance(whole, c.Choice) and position > 0
            if is_inside or is_branch or is_enclosed(whole, position):
                pending.append((part, level + 1, 0, 0))
            elif position:
                pending.append((part, level, 0, 0))
            else:
                pending.append((part, level, conditions, signs))
    return deepest, longest, most
