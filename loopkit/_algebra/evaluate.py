"""The meaning of terms: their values for given values of names, computed without rewrite rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod
from operator import and_, or_, xor
from typing import Any

from loopkit._algebra.ranges import INTEGERS
from loopkit._algebra.terms import Term


def value_of(term: Term, names: Mapping[str, int]) -> int:
    """The value of a term; that of a condition is ``True`` or ``False``.

    Raises :class:`KeyError` where a name has no value.
    """
    done: dict[Term, int] = {}

    def value(node: Term) -> int:
        if node not in done:
            done[node] = _value(node, value, names)
        return done[node]

    return value(term)


def _value(term: Term, value: Callable[[Term], int], names: Mapping[str, int]) -> int:
    match term.op:
        case "constant":
            return int(term.data) if term.sort == "Z" else bool(term.data)
        case "name":
            return names[term.data[0]]
        case "select" | "if":
            return value(term.args[1] if value(term.args[0]) else term.args[2])
    args = [*map(value, term.args)]
    match term.op:
        case "sum":
            return sum(c * a for c, a in zip(term.data, args, strict=True))
        case "wrap":
            low, high = map(int, INTEGERS[term.data])
            return (args[0] - low) % (high - low + 1) + low
    result: int = OPERATIONS[term.op](*args)
    return result


def _floor(a: int, b: int) -> int:
    return a // b if b else 0


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "inv": lambda a: ~a,
    "product": lambda *args: prod(args),
    "fdiv": _floor,
    "mod": lambda a, b: a % b if b else 0,
    "shl": lambda a, b: a << b if b >= 0 else 0,
    "shr": lambda a, b: a >> b if b >= 0 else 0,
    "and": lambda *args: reduce(and_, args),
    "or": lambda *args: reduce(or_, args),
    "xor": lambda *args: reduce(xor, args),
    "min": min,
    "max": max,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ge0": lambda a: a >= 0,
    "eq0": lambda a: a == 0,
}
"""What operations are, division by 0 included."""
