"""Sizes: evaluating, printing and solving the integer expressions of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pymbolic.primitives as p

from loopkit._linear import Linear, NotAffineError, product, total
from loopkit._program import Expression


def variables(expr: Expression) -> frozenset[str]:
    """The names in ``expr``."""
    if isinstance(expr, p.Variable):
        return frozenset((str(expr.name),))
    return frozenset().union(*(variables(child) for child in _children(expr)))


def show(expr: Expression) -> str:
    """``expr`` for messages."""
    return str(expr).replace("+ -", "- ")


def _children(expr: Expression) -> tuple[Expression, ...]:
    if isinstance(expr, p.FloorDiv | p.Remainder):
        return (expr.numerator, expr.denominator)
    if isinstance(expr, p.Comparison):
        return (expr.left, expr.right)
    if isinstance(expr, p.LogicalNot):
        return (expr.child,)
    if isinstance(expr, p.Sum | p.Product | p.Min | p.Max | p.LogicalAnd | p.LogicalOr):
        return tuple(expr.children)
    if isinstance(expr, int | np.integer):
        return ()
    raise TypeError(f"not a size expression: {expr!r}")


def python_source(expr: Expression, known: Mapping[str, int] | None = None) -> str:
    """``expr`` as a Python expression over its variables, those in ``known`` replaced."""
    known = known or {}

    def go(e: Expression) -> str:
        return python_source(e, known)

    if isinstance(expr, p.Variable):
        return str(known.get(expr.name, expr.name))
    if isinstance(expr, bool | np.bool_):
        return str(bool(expr))
    if isinstance(expr, int | np.integer):
        return str(int(expr)) if expr >= 0 else f"({int(expr)})"
    parts = [go(child) for child in _children(expr)]
    if isinstance(expr, p.Min | p.Max):
        name = "min" if isinstance(expr, p.Min) else "max"
        return parts[0] if len(parts) == 1 else f"{name}({', '.join(parts)})"
    if isinstance(expr, p.LogicalNot):
        return f"(not {parts[0]})"
    if isinstance(expr, p.Comparison):
        return f"({parts[0]} {expr.operator} {parts[1]})"
    neutral: dict[Any, str] = {
        p.Sum: "0",
        p.Product: "1",
        p.LogicalAnd: "True",
        p.LogicalOr: "False",
    }
    signs: dict[Any, str] = {
        p.Sum: " + ",
        p.Product: "*",
        p.FloorDiv: " // ",
        p.Remainder: " % ",
        p.LogicalAnd: " and ",
        p.LogicalOr: " or ",
    }
    for node, sign in signs.items():
        if isinstance(expr, node):
            return f"({sign.join(parts)})" if parts else neutral[node]
    raise TypeError(f"not a size expression: {expr!r}")


def compile_tuple(expressions: Iterable[Expression]) -> Callable[[Mapping[str, int]], Any]:
    """A function from the values of the names to the tuple of the expressions' values."""
    expressions = tuple(expressions)
    names = sorted(frozenset().union(*(variables(e) for e in expressions)))
    # The names are those of a kernel, and may be words of Python: index the mapping by text.
    known: Any = {name: f"values[{name!r}]" for name in names}
    body = "".join(f"{python_source(e, known)}, " for e in expressions)
    function: Callable[[Mapping[str, int]], Any] = eval(
        f"lambda values: ({body})", {"__builtins__": {}, "min": min, "max": max}
    )
    return function


def evaluate(expr: Expression, values: Mapping[str, int]) -> int:
    """The value of ``expr``; a name without a value is a ``KeyError``."""
    if isinstance(expr, p.Variable):
        return int(values[expr.name])
    known: Any = {name: f"values[{name!r}]" for name in variables(expr)}
    whole = {name: int(values[name]) for name in known}
    of = {"__builtins__": {}, "min": min, "max": max, "values": whole}
    return int(eval(python_source(expr, known), of))


def affine(expr: Expression, known: Mapping[str, int]) -> Linear | None:
    """``expr`` as a linear form of its unknown names, if it is that simple."""
    if not (variables(expr) - known.keys()):
        return Linear({}, evaluate(expr, known))
    if isinstance(expr, p.Variable):
        return Linear({expr: 1})
    if not isinstance(expr, p.Sum | p.Product):
        return None
    parts = []
    for child in expr.children:
        part = affine(child, known)
        if part is None:
            return None
        parts.append(part)
    try:
        return total(parts) if isinstance(expr, p.Sum) else product(parts, expr)
    except NotAffineError:
        return None


def solve(equations: Sequence[tuple[Linear, int]]) -> dict[str, Fraction]:
    """The names that the equations ``form == number`` fix, with their values.

    Equations that contradict each other are left to the caller's comparison of every
    extent afterwards, which has more to say.
    """
    names = sorted(frozenset().union(*(form.names for form, _ in equations)))
    rows = [
        [Fraction(form.terms.get(p.Variable(name), 0)) for name in names]
        + [Fraction(number - form.constant)]
        for form, number in equations
    ]
    done = 0
    for column in range(len(names)):
        pivot = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        lead = rows[done][column]
        rows[done] = [value / lead for value in rows[done]]
        for i, row in enumerate(rows):
            if i != done and row[column]:
                factor = row[column]
                rows[i] = [a - factor * b for a, b in zip(row, rows[done], strict=True)]
        done += 1
    solution = {}
    for row in rows[:done]:
        there = [i for i, value in enumerate(row[:-1]) if value]
        if len(there) == 1:
            solution[names[there[0]]] = row[-1]
    return solution
