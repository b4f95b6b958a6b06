"""The intermediate tree between a kernel and its printed forms: loops, guards and statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import islpy as isl
import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._nodes import Expression, Node

Context = tuple[isl.Set, ...]
"""What loops and guards around a node enforce: the intersection of sets."""


@dataclass(frozen=True)
class Whole(Node, prim.Comparison):  # type: ignore[misc]
    """A condition of a domain, which compares integers without regard to types of data.

    A condition in a statement, such as ``if t + 1 < n``, is computed in the types of its data.
    """

    mapper_method = "map_comparison"


def of_whole_numbers(condition: Expression) -> Expression:
    """A condition that a domain asks for."""
    if isinstance(condition, (prim.LogicalAnd, prim.LogicalOr)):
        return type(condition)(tuple(map(of_whole_numbers, condition.children)))
    if isinstance(condition, prim.Comparison):
        return Whole(condition.left, condition.operator, condition.right)
    return condition


@dataclass(frozen=True)
class For:
    """``for iname in range(lower, upper, step)``; ``flags`` are those whose clearing leaves it."""

    iname: str
    lower: Expression
    upper: Expression
    step: int
    unroll: bool
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Let:
    """A loop that runs exactly once: ``iname`` is ``value`` in ``body``."""

    iname: str
    value: Expression
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class If:
    """``body`` where ``condition`` holds."""

    condition: Expression
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Do:
    """One statement."""

    statement: Statement
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Leave:
    """A statement that ends a loop: the one whose flag it clears.

    ``loop`` is the iname of that loop if it is not the innermost one, else "".
    """

    statement: Statement
    context: Context = field(default=(), compare=False, repr=False)
    loop: str = ""


@dataclass(frozen=True)
class Barrier:
    """A barrier of the block, or of each warp; ``reason`` is the text for its comment."""

    reason: str
    of_warp: bool = False


Code = For | Let | If | Do | Leave | Barrier


def walk(nodes: tuple[Code, ...]) -> Iterator[Code]:
    """All nodes of code in pre-order."""
    for node in nodes:
        yield node
        if isinstance(node, (For, Let, If)):
            yield from walk(node.body)


def names_of(node: Code) -> frozenset[str]:
    """The names that a node itself uses."""
    if isinstance(node, Do):
        return node.statement.names
    if isinstance(node, For):
        return variable_names(node.lower) | variable_names(node.upper)
    if isinstance(node, (If, Let)):
        return variable_names(node.condition if isinstance(node, If) else node.value)
    return frozenset()
