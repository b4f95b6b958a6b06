"""A kernel's tree as text, for tests of how it comes about."""

from __future__ import annotations

from typing import Any

from seams import LaunchBarrier, Loop, to_text

from loopkit import Kernel


def outline(kernel: Kernel) -> str:
    """One line per loop and statement, indented by two blanks a level."""
    lines: list[str] = []

    def visit(nodes: Any, depth: int) -> None:
        pad = "  " * depth
        for node in nodes:
            if isinstance(node, Loop):
                lines.append(f"{pad}{node.iname}:")
                visit(node.body, depth + 1)
                continue
            if isinstance(node, LaunchBarrier):
                lines.append(f"{pad}====")
                continue
            s = kernel.statement_by_id[node]
            symbol = "=" if s.operation is None else f"{s.operation}="
            condition = "".join(f" if {to_text(p)}" for p in s.predicates)
            lines.append(f"{pad}{to_text(s.lhs)} {symbol} {to_text(s.rhs)}{condition}")

    visit(kernel.tree, 0)
    return "\n".join(lines)
