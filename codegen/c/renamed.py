"""Substitution of names and expressions in statements of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

from loopkit.codegen.c import tree as c

Change = Callable[[c.CExpression], c.CExpression]


def renamed(nodes: tuple[c.Node, ...], names: Mapping[str, str]) -> tuple[c.Node, ...]:
    """Statements with variables replaced where they are used; their own declarations are
    unchanged.
    """

    def change(expr: c.CExpression) -> c.CExpression:
        if isinstance(expr, c.Name) and expr.name in names:
            return c.Name(names[expr.name])
        return expr

    return changed(nodes, change)


def changed(nodes: tuple[c.Node, ...], change: Change) -> tuple[c.Node, ...]:
    """Statements with ``change`` applied to each expression, operands before operations."""
    return tuple(_node(node, change) for node in nodes)


def _node(node: c.Node, change: Change) -> c.Node:
    fields = ("target",) if isinstance(node, c.Combine) else c.EXPRESSIONS.get(type(node), ())
    made: dict[str, Any] = {field: _expression(getattr(node, field), change) for field in fields}
    assert isinstance(made.get("target"), (c.Name, c.Element, NoneType))
    if isinstance(node, (c.For, c.If, c.Block, c.Combine)):
        made["body"] = changed(node.body, change)
    return replace(node, **made) if made else node


def _expression(root: c.CExpression, change: Change) -> c.CExpression:
    """An expression with ``change`` applied bottom-up, without recursion: long sums nest deeply."""
    made: list[c.CExpression] = []
    for expr in c.postorder(root):
        old = c.children(expr)
        count = len(old)
        parts = tuple(made[len(made) - count :])
        del made[len(made) - count :]
        is_same = all(one is two for one, two in zip(old, parts, strict=True))
        made.append(change(expr if is_same else c.with_children(expr, parts)))
    return made[0]
