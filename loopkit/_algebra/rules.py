"""Rewrite rules for operations, as data.

A line of a table is ``name pattern -> replacement if condition``. Names that begin with ``c``
match numbers, other names any term; repeated names match equal terms. In a replacement, the name
of a number is a Python number, and functions build terms from terms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from loopkit._algebra.terms import Term, is_constant

WHOLE_NUMBERS = """
not                inv(x)     -> plus(scaled(x, -1), number(-1))
shift-left         shl(x, c)  -> scaled(x, 2**c) if 0 <= c < 128
shift-left-below   shl(x, c)  -> number(0) if c < 0
shift-right        shr(x, c)  -> fdiv(x, number(2**c)) if 0 <= c < 128
shift-right-below  shr(x, c)  -> number(0) if c < 0
divide-by-zero     fdiv(x, 0) -> number(0)
divide             fdiv(x, c) -> floor(x, c) if c > 0
divide-by-less     fdiv(x, c) -> floor(scaled(x, -1), -c) if c < 0
remainder-of-zero  mod(x, 0)  -> number(0)
remainder          mod(x, c)  -> minus(x, scaled(fdiv(x, number(c)), c)) if c != 0
remainder-by-name  mod(x, y)  -> minus(x, times(fdiv(x, y), y)) if low(y) > 0
and-ones           and_(x, c) -> mod(x, number(c + 1)) if c > 0 and c & (c + 1) == 0
magnitude          abs(x)     -> max(x, scaled(x, -1))
sign               sign(x)    -> max(number(-1), min(number(1), x))
"""

FLOATS = """
sign-of-number     neg(c) -> K(-c)
number-in-type     cast(c) -> K(c)
whole-in-type      tofloat(c) -> K(c)
twice-negative     neg(neg(x)) -> x
times-one          mul(x, 1) -> x
by-one             div(x, 1) -> x
by-power           div(x, c) -> mul(x, K(1 / c)) if has_inverse(c)
negative-factor    mul(x, neg(y)) -> neg(mul(x, y))
negative-number    mul(x, c) -> neg(mul(x, K(-c))) if is_negative(c)
negative-dividend  div(neg(x), y) -> neg(div(x, y))
negative-divisor   div(x, neg(y)) -> neg(div(x, y))
over-negative      div(x, c) -> neg(div(x, K(-c))) if is_negative(c)
of-negative        div(c, x) -> neg(div(K(-c), x)) if is_negative(c)
twice              add(x, x) -> mul(x, K(2))
once-more          add(x, mul(x, c)) -> mul(x, K(c + 1)) if is_once(c, 1)
like-terms         add(mul(x, c), mul(x, c2)) -> mul(x, K(c + c2)) if is_once(c, c2)
once-less          add(neg(x), neg(mul(x, c))) -> neg(mul(x, K(c + 1))) if is_once(c, 1)
less-and-less      add(neg(mul(x, c)), neg(mul(x, c2))) -> neg(mul(x, K(c + c2))) if is_once(c, c2)
multiple           mul(mul(x, c), c2) -> mul(x, K(c * c2)) if is_multiple(c, c2)
size-of-negative   abs(neg(x)) -> abs(x)
size-of-size       abs(abs(x)) -> abs(x)
sign-of-size       copysign(abs(x), y) -> copysign(x, y)
sign-of-negative   copysign(neg(x), y) -> copysign(x, y)
own-sign           copysign(x, x) -> x
floor-of-floor     floor(floor(x)) -> floor(x)
larger-of-one      max(x, x) -> x
smaller-of-one     min(x, x) -> x
cast-to-itself     cast(x) -> x if R == S
cast-of-cast       cast(cast(x)) -> cast(x) if has_all(R, sort(x))
cast-of-negative   cast(neg(x)) -> neg(cast(x))
cast-of-whole      cast(tofloat(x)) -> tofloat(x) if is_exact_whole(x, R)
round-trip         toint(tofloat(x)) -> x if is_inside(x, T) and is_exact_whole(x, R)
negatives-less     lt(neg(x), neg(y)) -> lt(y, x)
negatives-at-most  le(neg(x), neg(y)) -> le(y, x)
less-than-itself   lt(x, x) -> FALSE
casts-less         lt(cast(x), cast(y)) -> lt(x, y) if sort(x) == sort(y) and has_all(R, sort(x))
casts-at-most      le(cast(x), cast(y)) -> le(x, y) if sort(x) == sort(y) and has_all(R, sort(x))
"""
"""Of floating-point numbers, whatever is NaN, infinite or a zero.

``S`` is the sort of the term, ``R`` that of its first operand, ``T`` the type of a whole number;
``K`` rounds to ``S``.
"""

COMMUTATIVE = frozenset(("and", "or", "xor", "min", "max", "add", "mul"))


class Rule:
    """``pattern -> replacement if condition``."""

    def __init__(self, line: str) -> None:
        left, right = line.split("->", 1)
        self.name, pattern = left.split(None, 1)
        replacement, _, condition = right.partition(" if ")
        self.text = " ".join(line.split())
        self.pattern = _call(pattern)
        self.op = _operation(self.pattern)
        self.replacement = compile(replacement.strip(), self.name, "eval")
        self.condition = compile(condition.strip() or "True", self.name, "eval")

    def rewritten(self, term: Term, words: Mapping[str, Any]) -> Term | None:
        """The term after applying the rule; None if it does not match.  ``words`` make terms."""
        found = _match(self.pattern, term, {})
        if found is None or not eval(self.condition, {"__builtins__": {}}, {**words, **found}):
            return None
        result: Term = eval(self.replacement, {"__builtins__": {}}, {**words, **found})
        return result


def _call(text: str) -> ast.Call:
    tree = ast.parse(text.strip(), mode="eval").body
    assert isinstance(tree, ast.Call)
    return tree


def _operation(pattern: ast.Call) -> str:
    assert isinstance(pattern.func, ast.Name)
    return pattern.func.id.rstrip("_")


def _match(pattern: ast.expr, term: Term, found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The values of names for which a pattern equals a term, in addition to known ones."""
    if isinstance(pattern, ast.Name):
        value = term.data if pattern.id.startswith("c") else term
        if pattern.id.startswith("c") and not is_constant(term):
            return None
        return {**found, pattern.id: value} if found.get(pattern.id, value) == value else None
    if isinstance(pattern, ast.Constant):
        return found if is_constant(term) and term.data == pattern.value else None
    assert isinstance(pattern, ast.Call)
    if term.op != _operation(pattern) or len(term.args) != len(pattern.args):
        return None
    orders = [pattern.args, pattern.args[::-1]]
    for order in orders if term.op in COMMUTATIVE else orders[:1]:
        now: Mapping[str, Any] | None = found
        for part, arg in zip(order, term.args, strict=True):
            now = None if now is None else _match(part, arg, now)
        if now is not None:
            return now
    return None


def rules_in(table: str) -> Iterator[Rule]:
    """The rules of a table."""
    return map(Rule, filter(str.strip, table.splitlines()))


@cache
def rules_of(op: str, *, is_float: bool) -> tuple[Rule, ...]:
    """The rules whose pattern has a given operation."""
    return tuple(rule for rule in rules_in(FLOATS if is_float else WHOLE_NUMBERS) if rule.op == op)
