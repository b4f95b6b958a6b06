"""Kernels and helpers for the tests of the loop transforms."""

from __future__ import annotations

from typing import Any

import pytest
from seams import Loop, to_text

from loopkit import Kernel, LoopkitError, make_kernel


def outline(kernel: Kernel) -> str:
    """Loops and statements, indented."""
    lines: list[str] = []

    def visit(nodes: Any, depth: int) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                lines.append("  " * depth + node.iname)
                visit(node.body, depth + 1)
            else:
                s = kernel.statement_by_id[node]
                condition = "".join(f" if {to_text(p)}" for p in s.predicates)
                operator = "+=" if s.operation else "="
                text = f"{to_text(s.lhs)} {operator} {to_text(s.rhs)}{condition}"
                lines.append("  " * depth + text)

    visit(kernel.tree, 0)
    return "\n".join(lines)


def text(block: str) -> str:
    """A block of lines without the indentation that they share."""
    lines = [line for line in block.split("\n") if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[indent:] for line in lines)


def error_of(function: object, *args: object, **kwargs: object) -> str:
    """The message of the error, without what the checker has tried instead."""
    with pytest.raises(LoopkitError) as caught:
        function(*args, **kwargs)  # type: ignore[operator]
    lines = f"{type(caught.value).__name__}: {caught.value}".split("\n")
    return "\n".join(line for line in lines if not line.startswith("legal "))


def make_product() -> Kernel:
    return make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def make_scalar() -> Kernel:
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <> t = x[i] * 2 {id=load}
            for j
                y[i, j] = t + x[j] {id=inner}
            end
            z[i] = t {id=last}
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n, m >= 1",
    )


def make_triangle() -> Kernel:
    return make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "c[i, j] = a[i] + a[j] {id=s}",
        dtypes={"a, c": "float32"},
        assumptions="n >= 1",
    )


def make_stencil() -> Kernel:
    return make_kernel(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        """
        for t
            for i
                u[t + 1, i] = u[t, i] + u[t, i - 1] {id=u}
            end
            v[t] = 0 {id=v}
        end
        """,
        dtypes={"u, v": "float32"},
        assumptions="steps >= 1 and n >= 2",
    )
