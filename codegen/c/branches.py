"""``if`` and ``else``: two guards in a row that are printed, and read, as the branches of one.

The tree has a guard for each branch. As one statement C asks the condition once, so it must not
change in between: nothing that the first branch writes, and no other thread, may stand in it.
"""

from __future__ import annotations

from loopkit.codegen.c import tree as c


def negation(condition: c.CExpression) -> c.CExpression:
    """What holds in the other branch."""
    if isinstance(condition, c.Unary) and condition.operator == "!":
        return condition.operand
    return c.Unary("!", condition)


def may_have_else(first: c.If) -> bool:
    """Whether the condition of a guard is after its body what it was before."""
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
    """Whether ``second`` is the other branch of the guard ``first``, which stands before it."""
    return (
        isinstance(first, c.If)
        and isinstance(second, c.If)
        and second.condition == negation(first.condition)
        and may_have_else(first)
    )
