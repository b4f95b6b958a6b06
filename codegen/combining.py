"""How the text of what threads do to combine becomes nodes: one C node for a combination.

Lowering writes such C as text; words in capitals stand in it for expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeGuard

from loopkit import _promotion as dt
from loopkit._frozen import dataclass
from loopkit._promotion import DType
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import OPERATORS, function_of, operator_of
from loopkit.codegen.c.calls import SHUFFLES
from loopkit.codegen.c.lexer import tokens
from loopkit.codegen.c.reader import FunctionReader
from loopkit.codegen.c.types import C_TYPES, in_registers

Words = Mapping[str, c.CExpression]
"""What words of a text stand for."""
Place = c.Name | c.Element


class Text(FunctionReader):
    """Reads statements in which words stand for expressions, and leaves out what does nothing."""

    def __init__(self, text: str, words: Words) -> None:
        found, comments = tokens([*text.split("\n"), "}"], 1)
        super().__init__(found, comments, lambda line, comment: None)
        self.words = dict(words)

    def primary(self) -> c.CExpression:
        if (found := self.words.get(self.peek())) is None:
            return super().primary()
        self.take()
        return found

    def operation(self, operator: str, left: c.CExpression, right: c.CExpression) -> c.CExpression:
        if _NEUTRAL.get(operator) == right:
            return left
        is_passed = operator in ("+", "*") and _NEUTRAL[operator] == left
        return right if is_passed else super().operation(operator, left, right)


_ZERO, _ONE = (c.Number(value, "int") for value in (0, 1))
_NEUTRAL = {"+": _ZERO, "-": _ZERO, "*": _ONE, "/": _ONE}
"""What an operator leaves the other operand with as it is."""


@lru_cache(1 << 10)
def of_number(text: str, number: c.CExpression) -> c.CExpression:
    """The expression of a thread's ``NUMBER`` that a text spells."""
    return Text(text, {"NUMBER": number}).expression()


def statements(text: str, words: Words) -> tuple[c.Node, ...]:
    """The statements that a text spells."""
    return Text(text, words).inside()


@dataclass(frozen=True)
class Operation:
    """What is combined: the operation's name, and the type."""

    name: str
    dtype: DType

    @property
    def atomic(self) -> tuple[str, str] | None:
        """The operator and the function of an atomic update; None where there is none."""
        operator = operator_of(self.name, self.dtype) if self.name in OPERATORS else ""
        function = function_of(operator, self.dtype)
        return None if function is None else (operator, function)


@dataclass(frozen=True, eq=False)
class Combining:
    """What is known where one combination is written, and how its text becomes nodes.

    ``update`` gives the operator and the right side by which a place takes in a value, ``neutral``
    is the value that changes nothing, ``fresh`` makes a name, ``other`` is that of a variable for
    what comes from another lane, ``is_repeated`` says that it may run again, and ``is_ordered``
    that operands have an order.
    """

    target: Place
    operation: Operation
    block: tuple[int, int, int]
    update: Callable[[Place, c.CExpression], tuple[str, c.CExpression]]
    neutral: c.CExpression
    fresh: Callable[[str], str]
    other: str
    is_repeated: bool
    is_ordered: bool = False

    @property
    def ctype(self) -> str:
        """The type of what is combined."""
        return C_TYPES[self.operation.dtype]

    @property
    def again(self) -> str:
        """What keeps a thread from writing what others have yet to read, of the time before."""
        return "__syncthreads();" if self.is_repeated else ""

    def nodes(self, text: str, words: Words, *, keeps_short: bool = False) -> tuple[c.Node, ...]:
        """The nodes of a text, in which names that it declares are fresh ones.

        ``TARGET``, ``OTHER`` and ``NEUTRAL`` are this combination's, and ``place = JOIN(a, b)`` is
        its operation, of the place itself and another value.  A name for what is as short itself
        is left out, unless the text ``keeps_short`` ones.
        """
        own = {"TARGET": self.target, "OTHER": c.Name(self.other), "NEUTRAL": self.neutral}
        return _CombiningText(text, {**words, **own}, self, keeps_short=keeps_short).inside()

    def joined(self, place: Place, left: c.CExpression, right: c.CExpression) -> list[c.Node]:
        """``place = operation(left, right)``, one of which is the place.

        What another lane has every lane asks for, and once.
        """
        if right == place:
            return [self.takes_before(place, left)]
        taken = self.takes(place, right)
        if not any(_is_call(part, SHUFFLES) for part in c.walk(right)):
            return [taken]
        if right in _certain(taken.value) and [*c.walk(taken.value)].count(right) == 1:
            return [taken]
        other = c.Name(self.other)
        return [c.Assign(other, "=", right, None), self.takes(place, other)]

    def takes(self, place: Place, value: c.CExpression) -> c.Assign:
        """``place = operation(place, value)``."""
        return c.Assign(place, *self.update(place, value), None)

    def takes_before(self, place: Place, value: c.CExpression) -> c.Assign:
        """The same with ``value`` on the left, where that is another result."""
        assert isinstance(value, (c.Name, c.Element))
        both = (value, place) if self.is_ordered else (place, value)
        return c.Assign(place, *self.update(*both), None)

    def exchanged(self, call: c.Call) -> c.CExpression:
        """What another lane has; of a record component by component, of complex numbers, too."""
        dtype = self.operation.dtype
        components = dt.components_of(dtype)
        if dtype in dt.COMPLEXES:
            components = dict.fromkeys(("re", "im"), dt.real_of(dtype))
        if not components:
            return call
        mask, value, lane = call.arguments
        parts: list[c.CExpression] = []
        for name, kind in components.items():
            part = c.Call(call.function, (mask, c.Member(value, name), lane))
            parts.append(part if in_registers(kind) == kind else c.Cast(C_TYPES[kind], part))
        return c.Braces(self.ctype, tuple(parts))


class _CombiningText(Text):
    def __init__(self, text: str, words: Words, combining: Combining, *, keeps_short: bool) -> None:
        super().__init__(text, words)
        self.combining = combining
        self.short = () if keeps_short else (c.Name, c.Number, c.Unary)

    def declared(self, name: str, value: c.CExpression | None = None) -> str:
        if isinstance(value, self.short):
            self.words[name] = value
            return ""
        own = c.Name(self.combining.fresh(name))
        self.words[name] = own
        return own.name

    def primary(self) -> c.CExpression:
        found = super().primary()
        return self.combining.exchanged(found) if _is_call(found, SHUFFLES) else found

    def node(self) -> list[c.Node]:
        (node,) = super().node()
        if isinstance(node, c.Assign) and _is_call(node.value, ("JOIN",)):
            return self.combining.joined(node.target, *node.value.arguments)
        return [] if isinstance(node, c.Let) and not node.name else [node]


def combined(
    combining: Combining,
    parts: Iterable[Callable[[c.CExpression], tuple[c.Node, ...]]],
    statement: str,
    comment: str,
) -> c.Combine:
    """The node of a combination: its parts, one after another, for the number of a thread."""
    body: list[c.Node] = []
    number = thread_number(combining.block)
    let = c.Let("int", combining.fresh("thread"), number)
    number = number if isinstance(number, c.Name) else c.Name(let.name)
    for part in parts:
        body += part(number)
    used = {expr.name for expr in _expressions(body) if isinstance(expr, c.Name)}
    if let.name in used:
        body.insert(0, let)
    if combining.other in used:
        body.append(c.Declaration("private", combining.ctype, combining.other, ()))
    # One thread has it all.
    body = body or [c.Assign(combining.target, "=", combining.target, None)]
    declared = [node for node in body if isinstance(node, c.Declaration)]
    rest = [node for node in body if not isinstance(node, c.Declaration)]
    return c.Combine(combining.target, (*declared, *rest), statement, comment)


def _is_call(expr: c.CExpression, functions: Collection[str]) -> TypeGuard[c.Call]:
    return isinstance(expr, c.Call) and expr.function in functions


def _certain(expr: c.CExpression) -> Iterator[c.CExpression]:
    """What of an expression is computed in any case, on whatever values."""
    yield expr
    parts = c.children(expr)
    if isinstance(expr, c.Choice) or (isinstance(expr, c.Binary) and expr.operator in ("&&", "||")):
        parts = parts[:1]
    for part in parts:
        yield from _certain(part)


def _expressions(nodes: list[c.Node]) -> Iterator[c.CExpression]:
    """All expressions of some nodes, and what they are made of."""
    for node in c.statements(tuple(nodes)):
        for whole in c.expressions(node):
            yield from c.walk(whole)


def thread_number(block: tuple[int, int, int]) -> c.CExpression:
    """The number of a thread in its block."""
    terms, stride = [], 1
    for word, extent in zip(CUDA.thread_index, block, strict=True):
        if extent > 1:
            terms.append(f"{stride} * {word}")
        stride *= extent
    return of_number(" + ".join(terms) or "0", _ZERO)
