"""Statements of C in which names, or other expressions, are others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from loopkit.codegen.c import tree as c

Change = Callable[[c.CExpression], c.CExpression]


def renamed(nodes: tuple[c.Node, ...], names: Mapping[str, str]) -> tuple[c.Node, ...]:
    """Statements that use other variables than some; what they declare stays as it is."""

    def change(expr: c.CExpression) -> c.CExpression:
        if isinstance(expr, c.Name) and expr.name in names:
            return c.Name(names[expr.name])
        return expr

    return changed(nodes, change)


def changed(nodes: tuple[c.Node, ...], change: Change) -> tuple[c.Node, ...]:
    """Statements in which each expression is what ``change`` makes of it, parts before wholes."""
    return tuple(_node(node, change) for node in nodes)


def _node(node: c.Node, change: Change) -> c.Node:
    if isinstance(node, (c.Let, c.Assign)):
        node = replace(node, value=_expression(node.value, change))
    if isinstance(node, c.For):
        lower, upper = (_expression(end, change) for end in (node.lower, node.upper))
        node = replace(node, lower=lower, upper=upper)
    if isinstance(node, c.If):
        node = replace(node, condition=_expression(node.condition, change))
    if isinstance(node, (c.Assign, c.Combine)):
        target = _expression(node.target, change)
        assert isinstance(target, (c.Name, c.Element))
        node = replace(node, target=target)
    if isinstance(node, (c.For, c.If, c.Block, c.Combine)):
        node = replace(node, body=changed(node.body, change))
    return node


def _expression(root: c.CExpression, change: Change) -> c.CExpression:
    """An expression from the inside: long sums lean to the left."""
    made: list[c.CExpression] = []
    for expr in c.postorder(root):
        old = c.children(expr)
        count = len(old)
        parts = tuple(made[len(made) - count :])
        del made[len(made) - count :]
        is_same = all(one is two for one, two in zip(old, parts, strict=True))
        made.append(change(expr if is_same else _of_parts(expr, parts)))
    return made[0]


def _of_parts(expr: c.CExpression, parts: tuple[c.CExpression, ...]) -> c.CExpression:
    """The same operation of other operands."""
    if isinstance(expr, c.Element):
        return replace(expr, indices=parts)
    if isinstance(expr, c.Call):
        return replace(expr, arguments=parts)
    if isinstance(expr, c.Braces):
        return replace(expr, parts=parts)
    if isinstance(expr, c.Binary):
        return replace(expr, left=parts[0], right=parts[1])
    if isinstance(expr, c.Choice):
        return c.Choice(*parts)
    assert not isinstance(expr, (c.Name, c.Number))  # they have no parts
    return replace(expr, operand=parts[0])
