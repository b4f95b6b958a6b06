"""Sizes: evaluating and solving the integer expressions of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pymbolic.primitives as p

from loopkit._expression import BUILTINS, evaluate, python_source, variable_names
from loopkit._linear import Linear, NotAffineError, product, total
from loopkit._program import Expression


def compile_tuple(expressions: Iterable[Expression]) -> Callable[[Mapping[str, int]], Any]:
    """A function from the values of the names to the tuple of the expressions' values."""
    # The names are those of a kernel, and may be words of Python: index the mapping by text.
    body = "".join(f"{python_source(e, lambda name: f'of[{name!r}]')}, " for e in expressions)
    function: Callable[[Mapping[str, int]], Any] = eval(f"lambda of: ({body})", {**BUILTINS})
    return function


def whole_value(expr: Expression, values: Mapping[str, int]) -> int:
    """The value of ``expr``, in numbers of any size; without some name's, a ``KeyError``."""
    return int(evaluate(expr, {name: int(values[name]) for name in variable_names(expr)}))


def affine(expr: Expression, known: Mapping[str, int]) -> Linear | None:
    """``expr`` as a linear form of its unknown names, if it is that simple."""
    if not (variable_names(expr) - known.keys()):
        return Linear({}, whole_value(expr, known))
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
