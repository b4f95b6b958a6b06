"""``if`` and ``else``: two consecutive guards that are printed, and read, as two branches.

The tree has one guard per branch, each with its own condition. C evaluates the condition of an
``if``/``else`` only once, so two guards may be printed this way only if the first branch cannot
change the condition: it reads nothing that this branch, or another thread, writes.
"""

from __future__ import annotations

from loopkit.codegen.c import tree as c


def negation(condition: c.CExpression) -> c.CExpression:
    """The negated condition, as the second of two branches has it."""
    if isinstance(condition, c.Unary) and condition.operator == "!":
        return condition.operand
    return c.Unary("!", condition)


def may_have_else(first: c.If) -> bool:
    """Whether the body of a guard leaves the value of its condition unchanged."""
    named = (part for part in c.walk(first.condition) if isinstance(part, (c.Name, c.Element)))
    asked = {part.name if isinstance(part, c.Name) else part.array for part in named}
    for node in c.statements(first.body):
        if isinstance(node, c.Assign):
            target = node.target
            if (target.name if isinstance(target, c.Name) else target.array) in asked:
                return False
        elif not isinstance(node, (c.For, c.If, c.Let, c.Block)):
            return False  # barriers, exchanges and exits
    return True


def is_else(first: c.Node | None, second: c.Node) -> bool:
    """Whether ``second`` is the ``else`` branch of ``first``, the guard directly before it."""
    return (
        isinstance(first, c.If)
        and isinstance(second, c.If)
        and second.condition == negation(first.condition)
        and may_have_else(first)
    )
