"""NumPy's names for what the language writes in another way: ``where``, ``clip``, ``arcsin``, ...

They are read, and gone when a kernel is made: ``clip(x, 0, 1)`` is ``min(max(x, 0), 1)``. A rule, a
reduction or a function of the user's own that has such a name is what the name means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError, SourcePosition, counted
from loopkit._expression import accesses, with_numbers
from loopkit._kernel import SubstitutionRule
from loopkit._make.own_calls import TextMapper, with_expressions
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import UINT8
from loopkit._syntax.items import RawAssignment, RawItem, RawSubstitution

T = TypeVar("T", RawItem, SubstitutionRule)


def _call(name: str) -> Callable[..., Expression]:
    return lambda *arguments: prim.Call(prim.Variable(name), arguments)


def _chain(kind: Callable[..., Expression]) -> Callable[..., Expression]:
    return lambda a, b: kind((a, b))


def _compare(operator: str) -> Callable[..., Expression]:
    return lambda a, b: prim.Comparison(a, operator, b)


def _multiplied_by(above: float, below: float) -> Callable[..., Expression]:
    return lambda x: prim.Product((x, prim.Quotient(above, below)))


def _logaddexp(a: Expression, b: Expression) -> Expression:
    apart = _call("abs")(prim.Sum((a, _negated(b))))
    rest = _call("log1p")(_call("exp")(_negated(apart)))
    both = prim.Sum((prim.Max((a, b)), rest))
    return prim.If(prim.Comparison(a, "==", b), prim.Sum((a, _call("log")(2))), both)


def _negated(x: Expression) -> Expression:
    return prim.Product((-1, x))


MEANINGS: dict[str, tuple[int, Callable[..., Expression]]] = {
    "where": (3, prim.If),
    "clip": (3, lambda x, low, high: prim.Min((prim.Max((x, low)), high))),
    "maximum": (2, _chain(prim.Max)),
    "minimum": (2, _chain(prim.Min)),
    "add": (2, _chain(prim.Sum)),
    "subtract": (2, lambda a, b: prim.Sum((a, _negated(b)))),
    "multiply": (2, _chain(prim.Product)),
    **dict.fromkeys(("divide", "true_divide"), (2, prim.Quotient)),
    "floor_divide": (2, prim.FloorDiv),
    **dict.fromkeys(("mod", "remainder"), (2, prim.Remainder)),
    "power": (2, prim.Power),
    "square": (1, lambda x: prim.Power(x, 2)),
    "negative": (1, _negated),
    "positive": (1, lambda x: x),
    "logical_and": (2, _chain(prim.LogicalAnd)),
    "logical_or": (2, _chain(prim.LogicalOr)),
    "logical_xor": (2, lambda a, b: _compare("!=")(prim.LogicalNot(a), prim.LogicalNot(b))),
    "logical_not": (1, prim.LogicalNot),
    "bitwise_and": (2, _chain(prim.BitwiseAnd)),
    "bitwise_or": (2, _chain(prim.BitwiseOr)),
    "bitwise_xor": (2, _chain(prim.BitwiseXor)),
    **dict.fromkeys(("bitwise_not", "bitwise_invert", "invert"), (1, prim.BitwiseNot)),
    **dict.fromkeys(("left_shift", "bitwise_left_shift"), (2, prim.LeftShift)),
    **dict.fromkeys(("right_shift", "bitwise_right_shift"), (2, prim.RightShift)),
    "equal": (2, _compare("==")),
    "not_equal": (2, _compare("!=")),
    "less": (2, _compare("<")),
    "less_equal": (2, _compare("<=")),
    "greater": (2, _compare(">")),
    "greater_equal": (2, _compare(">=")),
    **{
        f"arc{name}": (1, _call(f"a{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "arctan2": (2, _call("atan2")),
    "absolute": (1, _call("abs")),
    "conjugate": (1, _call("conj")),
    "angle": (1, lambda z: _call("atan2")(_call("imag")(z), _call("real")(z))),
    "signbit": (1, lambda x: prim.Comparison(_call("copysign")(1, x), "<", 0)),
    "isposinf": (1, lambda x: prim.Comparison(x, "==", math.inf)),
    "isneginf": (1, lambda x: prim.Comparison(x, "==", -math.inf)),
    **dict.fromkeys(("degrees", "rad2deg"), (1, _multiplied_by(180, math.pi))),
    **dict.fromkeys(("radians", "deg2rad"), (1, _multiplied_by(math.pi, 180))),
    "logaddexp": (2, _logaddexp),
    "rint": (1, _call("round")),
    "fix": (1, _call("trunc")),
    "popc": (1, _call("popcount")),
    # NumPy counts those of the absolute value.
    "bitwise_count": (1, lambda x: TypeCast(UINT8, _call("popcount")(_call("abs")(x)))),
}
"""How many arguments each takes, and what it makes of them."""


class _Reader(TextMapper):
    def __init__(self, own: Collection[str], position: SourcePosition | None) -> None:
        super().__init__()
        self.own = own
        self.position = position

    def map_call(self, expr: prim.Call) -> Expression:
        name = getattr(expr.function, "name", "")
        parameters = tuple(self.rec(p) for p in expr.parameters)
        if name not in MEANINGS or name in self.own or not isinstance(expr.function, prim.Variable):
            return prim.Call(expr.function, parameters)
        count, meaning = MEANINGS[name]
        if len(parameters) != count or any(isinstance(p, tuple) for p in parameters):
            raise InvalidArgumentError(
                f"'{name}' takes {counted(count, 'argument')}, not {len(parameters)}",
                asked=self.position.caret() if self.position is not None else "",
            )
        return meaning(*parameters)


def in_own_words(
    items: Sequence[RawItem],
    rules: Iterable[SubstitutionRule],
    functions: Collection[str],
    declared: Collection[str] = (),
) -> tuple[list[RawItem], tuple[SubstitutionRule, ...]]:
    """A text and more rules, with the language's own words for NumPy's.

    Names of rules, and ``functions``, which are reductions and functions of the user's, mean
    these; ``inf`` and ``nan`` are numbers where nothing is ``declared`` to be called so.
    """
    rules = tuple(rules)
    own = {*functions, *(rule.name for rule in rules)}
    own |= {item.name for item in items if isinstance(item, RawSubstitution)}
    written = {n for item in items if isinstance(item, RawAssignment) for n in _targets(item)}
    names = own.union(declared, written)
    made = tuple(_with_numbers(with_numpy_names(rule, own), names) for rule in rules)
    return [_with_numbers(with_numpy_names(item, own), names) for item in items], made


def _targets(item: RawAssignment) -> Iterable[str]:
    return (accesses(target)[0][0] for target, _ in item.targets)


def _with_numbers(item: T, names: Collection[str]) -> T:
    """A part of a text, or a rule, with its numbers ``inf`` and ``nan``."""
    bound: Collection[str] = getattr(item, "arguments", ())
    return with_expressions(item, lambda expr: with_numbers(expr, {*names, *bound}))


def with_numpy_names(item: T, own: Collection[str]) -> T:
    """A part of a text, or a rule, in the language's own words; ``own`` names mean something else.

    Raises :class:`InvalidArgumentError` where a name has another number of arguments.
    """
    reader = _Reader(own, getattr(item, "position", None))
    return with_expressions(item, reader)
