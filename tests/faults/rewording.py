"""Nodes of C in other words: printed, changed as text, and read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from seams import (
    Assign,
    Declaration,
    ExpressionReader,
    expression_text,
    read_function,
    statement_text,
    tokens,
)

_HEAD = 'extern "C" __global__ void __launch_bounds__(1)\nf()\n{\n'
_DYNAMIC = "extern __shared__ unsigned char shared_memory[];\n"


def reworded(node: Any, change: Callable[[str], str]) -> Any:
    """A statement whose text is changed."""
    text = change(statement_text(node))
    is_dynamic = isinstance(node, Declaration) and node.offset is not None
    function = read_function(f"{_HEAD}{_DYNAMIC * is_dynamic}{text}\n}}\n", lambda line, note: None)
    (found,) = function.body
    if isinstance(node, Assign):
        return replace(found, statement=node.statement, comment=node.comment, line=0)
    return replace(found, line=0)


def reworded_expression(expr: Any, change: Callable[[str], str]) -> Any:
    """An expression whose text is changed."""
    found, _ = tokens([change(expression_text(expr))], 1)
    return ExpressionReader(found).expression()
