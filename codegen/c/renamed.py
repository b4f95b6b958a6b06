"""Statements of C in which names are others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopkit.codegen.c import tree as c


def renamed(nodes: tuple[c.Node, ...], names: Mapping[str, str]) -> tuple[c.Node, ...]:
    """Statements that use other variables than some; what they declare stays as it is."""
    return tuple(_node(node, names) for node in nodes)


def _node(node: c.Node, names: Mapping[str, str]) -> c.Node:
    if isinstance(node, (c.Let, c.Assign)):
        node = replace(node, value=_expression(node.value, names))
    if isinstance(node, c.For):
        lower, upper = (_expression(end, names) for end in (node.lower, node.upper))
        node = replace(node, lower=lower, upper=upper)
    if isinstance(node, c.If):
        node = replace(node, condition=_expression(node.condition, names))
    if isinstance(node, (c.Assign, c.Combine)):
        target = _expression(node.target, names)
        assert isinstance(target, (c.Name, c.Element))
        node = replace(node, target=target)
    if isinstance(node, (c.For, c.If, c.Block, c.Combine)):
        node = replace(node, body=renamed(node.body, names))
    return node


def _expression(root: c.CExpression, names: Mapping[str, str]) -> c.CExpression:
    """An expression from the inside: long sums lean to the left."""
    if not any(isinstance(part, c.Name) and part.name in names for part in c.walk(root)):
        return root
    made: list[c.CExpression] = []
    for expr in c.postorder(root):
        count = len(c.children(expr))
        parts = tuple(made[len(made) - count :])
        del made[len(made) - count :]
        made.append(_of_parts(expr, parts, names))
    return made[0]


def _of_parts(
    expr: c.CExpression, parts: tuple[c.CExpression, ...], names: Mapping[str, str]
) -> c.CExpression:
    """The same operation of other operands."""
    if isinstance(expr, c.Name):
        return c.Name(names.get(expr.name, expr.name))
    if isinstance(expr, c.Number):
        return expr
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
    return replace(expr, operand=parts[0])
