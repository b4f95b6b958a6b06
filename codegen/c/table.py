"""The tree as a table: for people who look for what a pass has made."""

from __future__ import annotations

from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.printer import statement_text
from loopkit.codegen.c.spec import specified
from loopkit.codegen.c.tree import Assign, Function, Node, Wait, nested

_COLUMNS = ("line", "node", "type", "statement", "code")


def table(function: Function) -> str:
    """A line for each statement of C: where it stands, what it computes, and for which statement.

    Where the tree is no C, the types are left out, and the last line says why.
    """
    try:
        types, wrong = specified(function).types, ""
    except ReadError as error:
        types, wrong = {}, str(error)
    rows = [_COLUMNS]
    for node, level in nested(function.body):
        dtype = types.get(node.line)
        code = "  " * level + (statement_text(node) or "{ ... }")
        kind = type(node).__name__
        rows.append((str(node.line), kind, str(dtype or ""), _statement(node), code))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, wrong] if wrong else lines)


def _statement(node: Node) -> str:
    if isinstance(node, Assign):
        return node.statement or "?"
    return node.comment if isinstance(node, Wait) else ""
