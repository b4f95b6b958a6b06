"""From the text template of a combination to its C node.

Lowering writes the code with which threads combine as C text, in which words in capitals are
placeholders for expressions.
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
    """Reads statements, replaces placeholders by expressions, drops statements without effect."""

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
    """The operation that combines values, and their type."""

    name: str
    dtype: DType

    @property
    def atomic(self) -> tuple[str, str] | None:
        """The operator and the atomic function of an update; None if there is none."""
        operator = operator_of(self.name, self.dtype) if self.name in OPERATORS else ""
        function = function_of(operator, self.dtype)
        return None if function is None else (operator, function)


@dataclass(frozen=True, eq=False)
class Combining:
    """The context of one combination, with which its text is turned into nodes.

    ``update`` returns the operator and right-hand side with which a place combines a value,
    ``neutral`` is the neutral element, ``fresh`` makes a new name, ``other`` names the variable
    for a value from another lane, ``is_repeated`` says that the combination may execute again, and
    ``is_ordered`` that the operation is not commutative.
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
        """The barrier before scratch memory is reused, if the combination executes repeatedly."""
        return "__syncthreads();" if self.is_repeated else ""

    def nodes(self, text: str, words: Words, *, keeps_short: bool = False) -> tuple[c.Node, ...]:
        """The nodes of a text, with fresh names for its declarations.

        ``TARGET``, ``OTHER`` and ``NEUTRAL`` are those of this combination, and ``place = JOIN(a,
        b)`` applies its operation to the place itself and another value. A declaration whose value
        is as short as a name is replaced by the value, unless ``keeps_short``.
        """
        own = {"TARGET": self.target, "OTHER": c.Name(self.other), "NEUTRAL": self.neutral}
        return _CombiningText(text, {**words, **own}, self, keeps_short=keeps_short).inside()

    def joined(self, place: Place, left: c.CExpression, right: c.CExpression) -> list[c.Node]:
        """``place = operation(left, right)``, where one operand is the place itself.

        A shuffle must be executed by all lanes, exactly once, so it is moved out of conditional
        code.
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
        """``place = operation(value, place)``, for operations that are not commutative."""
        assert isinstance(value, (c.Name, c.Element))
        both = (value, place) if self.is_ordered else (place, value)
        return c.Assign(place, *self.update(*both), None)

    def exchanged(self, call: c.Call) -> c.CExpression:
        """A shuffle of a value; of a record or a complex number component by component."""
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
    """The node of a combination: its parts in sequence, for a thread's number."""
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
    """The subexpressions that are evaluated whenever the expression is."""
    yield expr
    parts = c.children(expr)
    if isinstance(expr, c.Choice) or (isinstance(expr, c.Binary) and expr.operator in ("&&", "||")):
        parts = parts[:1]
    for part in parts:
        yield from _certain(part)


def _expressions(nodes: list[c.Node]) -> Iterator[c.CExpression]:
    """All expressions of some nodes, with their subexpressions."""
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
