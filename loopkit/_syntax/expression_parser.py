"""Expressions: from text to pymbolic trees.

A precedence climbing parser: each infix operator has a binding power, and an operand extends over
all operators that bind at least as strongly as required.  Precedence and associativity are
Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pymbolic.primitives as prim

from loopkit._errors import counted
from loopkit._expression import MOST_NESTED, tagged_uses
from loopkit._nodes import (
    Expression,
    FlatIndex,
    Named,
    SubArray,
    TaggedVariable,
    TypeCast,
    TypeName,
    segmented,
)
from loopkit._promotion import DTYPES
from loopkit._syntax.expression_tokens import COMPARISONS, FOREIGN, KEYWORDS, ExpressionWords
from loopkit._syntax.tokens import PositionOf, T

TERNARY, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, ADD, MULTIPLY, UNARY, POWER = (
    range(1, 14)
)


@lru_cache(maxsize=1 << 13)
def _variable(word: str) -> prim.Variable:
    """The node of a name; names are few and used often, and have one each."""
    name, tagged, tag = word.partition("$")
    return TaggedVariable(name, tag) if tagged else prim.Variable(name)


def parse_expression(
    text: str,
    *,
    position_of: PositionOf | None = None,
    in_instruction: bool = False,
    of_uses: bool = False,
) -> Expression:
    """The tree of an expression, with tags ``of_uses`` if that is said.

    ``position_of(offset, length)`` says where a part of ``text`` stands in what
    the user wrote, if ``text`` is only a piece of that.  A call such as
    ``sum(k, x)`` stays a call: see
    :func:`loopkit._syntax.reduction_calls.resolve_reductions`.
    """
    parser = ExpressionParser(text, position_of)
    expr = parser.expression()
    parser.finish()
    if parser.flat_at and not in_instruction:
        parser.fail(
            parser.flat_at, "flat subscripts are allowed only in instructions and rules of texts"
        )
    if parser.named_at and not in_instruction:
        parser.fail(
            parser.named_at,
            "arguments cannot be named",
            instead="comparing for equality is written '=='",
        )
    if not (of_uses or in_instruction) and tagged_uses(expr):
        at = next(at for at, word in enumerate(parser.words) if "$" in word)
        parser.fail(
            at, "tags are allowed only where arrays and rules are used", instead="leave it out here"
        )
    return expr


class ExpressionParser(ExpressionWords):
    """Reads expressions from the words of a text, one after another."""

    __slots__ = ("depth", "flat_at", "named_at")

    def __init__(self, text: str, position_of: PositionOf | None = None) -> None:
        super().__init__(text, position_of)
        self.depth = 0
        self.flat_at = 0
        self.named_at = 0

    def expression(self, power: int = TERNARY) -> Expression:
        """One expression of operators that bind at least as strongly as ``power``."""
        try:
            return self._expression(power)
        except RecursionError:  # whoever calls is deep in calls already
            self.fail_at_depth()

    def _expression(self, power: int) -> Expression:
        self.depth += 1
        if self.depth > 2 * MOST_NESTED:  # a part of an operation may stand in parentheses
            self.fail_at_depth()
        left = self._operand()
        words = self.words
        infix = _INFIX
        while True:
            entry = infix.get(words[self.at])
            if entry is None or entry[0] < power:
                self.depth -= 1
                return left
            left = entry[1](self, left)

    def _operand(self) -> Expression:
        at = self.at
        word = self.words[at]
        self.at = at + 1
        first = word[:1]
        if first.isalpha() or first == "_":
            special = _PREFIX_WORDS.get(word)
            if special is not None:
                return special(self)
            following = self.words[at + 1]
            if following == "[":
                return self._subscript(word)
            if following == "(":
                return self._call(word)
            if word in KEYWORDS or word in FOREIGN:
                self.fail_expecting("a value", FOREIGN.get(word, ""), at=at)
            if word[2:3] == ".":
                self.fail_at_dotted(at)
            return _variable(word)
        if first.isdigit() or (first == "." and word != "..." and len(word) > 1):
            return self.number(word)
        if word == "-":
            operand = self._expression(UNARY)
            if type(operand) in (int, float, complex):
                return -operand
            return prim.Product((-1, operand))
        if word == "(":
            return self._parenthesis()
        if word == "[" and self._begins_part(at):
            return self._part(at)
        if word == "[" and self.words[at - 1] == "(":
            return self._inames(at)
        if word == "+":
            return self._expression(UNARY)
        if word == "~":
            return prim.BitwiseNot(self._expression(UNARY))
        self.fail_at_operand(at)

    def _parenthesis(self) -> Expression:
        opened = self.at - 1
        items, has_comma = self._list(opened, ")")
        if len(items) == 1 and not has_comma and type(items[0]) is not tuple:
            if self.words[self.at] in ("[", "("):
                self.fail(self.at, "only names can be subscripted or called")
            return items[0]
        # A tuple is no value: it stands only as the first argument of a call or a subscript.
        words = self.words
        if (
            opened == 0
            or words[opened - 1] not in ("(", "[")
            or words[self.at] not in (",", ")", "]")
            or any(type(item) is tuple for item in items)
        ):
            self.fail(
                opened,
                "a tuple is not a value",
                last=self.at - 1,
                instead="inames are given as a tuple in a reduction: sum((k, l), x)",
            )
        return tuple(items)

    def declared_part(self, declaration: Callable[[], T]) -> tuple[Expression, T] | None:
        """``[i]: <> x[i]``, if that is next: the part, and what ``declaration`` reads before it."""
        opened = self.at
        if self.words[opened] != "[" or not self._begins_part(opened):
            return None
        self.at += 1
        found: list[T] = []
        part = self._part(opened, lambda: found.append(declaration()))
        return part, found[0]

    def _begins_part(self, opened: int) -> bool:
        """Whether a bracket begins ``[i]: x[i]``, a part of an array."""
        words = self.words
        if "]" not in words[opened:]:
            return False
        return words[words.index("]", opened) + 1] == ":"

    def _part(self, opened: int, between: Callable[[], None] = lambda: None) -> Expression:
        """``[i, j]: x[i, k, j]``: what a call is given of an array, or gives.

        ``between`` reads what stands in front of the array.
        """
        items, _ = self._list(opened, "]")
        self.at += 1
        between()
        first = self.at
        whole = self._operand()
        names = tuple(item.name for item in items if isinstance(item, prim.Variable))
        if len(names) != len(items) or len({*names}) < len(names) or not names:
            self.fail(opened, "these brackets contain inames, each once", last=first - 2)
        if not isinstance(whole, prim.Subscript) or self.flat_at >= first:
            self.fail(
                first,
                "a part of an array is expected here",
                last=self.at - 1,
                instead="it is written [i]: x[i, j]",
            )
        return SubArray(names, whole)

    def _inames(self, opened: int) -> Expression:
        """``[i, j]`` in front of what is reduced, another spelling of ``(i, j)``."""
        items, _ = self._list(opened, "]")
        if self.words[self.at] != ",":
            self.fail_at_operand(opened)
        return tuple(items)

    def _list(
        self, opened: int, closing: str, *, of_call: bool = False
    ) -> tuple[list[Expression], bool]:
        """Expressions up to ``closing``, and whether there was any comma.

        The last ones ``of_call`` may have names.
        """
        words = self.words
        items: list[Expression] = []
        has_comma = False
        while True:
            if words[self.at] == closing:
                self.at += 1
                return items, has_comma
            if words[self.at] == "dtype" and words[self.at + 1] == "=":
                items.append(self._type_name(closing))
            elif of_call and words[self.at].isidentifier() and words[self.at + 1] == "=":
                items.append(self._named())
            elif items and isinstance(items[-1], Named):
                self.fail(self.at, "an argument without a name follows one that has a name")
            else:
                items.append(self._expression(TERNARY))
            word = words[self.at]
            if word == ",":
                has_comma = True
                self.at += 1
            elif word != closing:
                self.fail_in_list(opened, closing)

    def _named(self) -> Expression:
        """``gain=2``, an argument of a call."""
        name = self.words[self.at]
        self.named_at = self.at + 1
        self.at += 2
        return Named(name, self._expression(TERNARY))

    def _type_name(self, closing: str) -> Expression:
        """``dtype=int32`` at the end of a list."""
        at = self.at
        dtype = self.type_at(at + 2)
        self.at = at + 3
        if closing != ")" or self.words[self.at] != ")":
            self.fail(
                at,
                "'dtype=' comes at the end of a reduction",
                last=at + 2,
                instead="it is written sum(k, x, dtype=int32)",
            )
        return TypeName(dtype)

    def _subscript(self, name: str) -> Expression:
        at = self.at
        if name in KEYWORDS:
            self.fail_expecting("a value", at=at - 1)
        if name[2:3] == ".":
            self.fail_at_dotted(at - 1)
        self.at = at + 1
        is_flat = self.words[at + 1] == "[" and not self._begins_part(at + 1)
        indices, has_comma = ([self._flat_index(at)], True) if is_flat else self._list(at, "]")
        if not indices:
            why = f"the subscript of '{name}' is empty"
            self.fail(at, why, last=at + 1, instead="write a[i], or a[()]")
        following = self.words[self.at]
        if following == "[":
            self.fail(self.at, "one pair of brackets holds all indices", instead="write a[i, j]")
        if following == "(":
            self.fail(self.at, "only names can be called")
        index: tuple[Expression, ...] = tuple(indices)
        if len(index) == 1 and type(index[0]) is tuple and not has_comma:
            index = index[0]  # a[()] and a[(i, j)]
        return prim.Subscript(_variable(name), index)

    def _flat_index(self, opened: int) -> Expression:
        """``[e]]`` of ``a[[e]]``."""
        self.flat_at = opened
        self.at = opened + 2
        if self.words[self.at] == "]":
            why = "this flat subscript is empty"
            self.fail(opened, why, last=self.at, instead="write a[[i]], or a[()]")
        offset = self._expression(TERNARY)
        if self.words[self.at : self.at + 2] != ["]", "]"]:
            self.fail_on_brackets()
            self.fail_expecting("']]', the end of a flat subscript")
        self.at += 2
        return FlatIndex(offset)

    def _call(self, name: str) -> Expression:
        at = self.at
        if name in KEYWORDS and name != "if":
            self.fail_expecting("a value", at=at - 1)
        self.at = at + 1
        special = _CALLS.get(name)
        if special is not None:
            return special(self, name, at)
        arguments, _ = self._list(at, ")", of_call=True)
        if name[2:3] == ".":
            self.fail_at_dotted(at - 1)
        following = self.words[self.at]
        if following in ("[", "("):
            self.fail(self.at, "the result of a call can be neither subscripted nor called")
        return prim.Call(_variable(name), tuple(arguments))

    def _arguments(self, name: str, opened: int, count: int, usage: str) -> list[Expression]:
        arguments, _ = self._list(opened, ")")
        if len(arguments) != count:
            why = f"'{name}' takes {counted(count, 'argument')}, not {len(arguments)}"
            self.fail_at_call(opened, why, f"it is written {usage}")
        return arguments

    def _if_call(self, name: str, opened: int) -> Expression:
        condition, then, else_ = self._arguments(name, opened, 3, "if(condition, then, else)")
        return prim.If(condition, then, else_)

    def _cast_by_name(self, name: str, opened: int) -> Expression:
        short = name.removeprefix("np.")
        (operand,) = self._arguments(name, opened, 1, f"{short}(x)")
        return TypeCast(DTYPES[short], operand)

    def _cast(self, name: str, opened: int) -> Expression:
        dtype = self.type_at(self.at)
        self.at += 1
        if not self.took(","):
            self.fail_in_list(opened, ",")
        arguments, _ = self._list(opened, ")")
        if len(arguments) != 1:
            usage = "it is written cast(float32, x)"
            self.fail_at_call(opened, "'cast' takes a type and one value", usage)
        return TypeCast(dtype, arguments[0])

    def _extremum(self, name: str, opened: int) -> Expression:
        arguments, _ = self._list(opened, ")")
        if arguments and (type(arguments[0]) is tuple or isinstance(arguments[-1], TypeName)):
            return prim.Call(_variable(name), tuple(arguments))
        if len(arguments) < 2:
            why = f"'{name}' takes two values or more, or an iname and an expression"
            self.fail_at_call(opened, why)
        return (prim.Max if name == "max" else prim.Min)(tuple(arguments))

    def _reduce(self, name: str, opened: int) -> Expression:
        """``reduce(sum, k, x)``: a reduction in any case, marked by a tuple of inames."""
        at = self.at
        operation = self.words[at]
        after = at + 1
        is_segmented = operation == "segmented" and self.words[at + 1 : at + 4 : 2] == ["(", ")"]
        if is_segmented:
            operation, after = self.words[at + 2], at + 4
        if not operation.isidentifier() or operation in KEYWORDS or self.words[after] != ",":
            self.fail(
                at,
                f"the first argument of '{name}' is the name of a reduction",
                instead=f"it is written {name}(sum, k, x), or {name}(segmented(sum), k, x, flag)",
            )
        if is_segmented:
            operation = segmented(operation)
        self.at = after + 1
        inames: Expression = ()
        closing = {"[": "]", "(": ")"}.get(self.words[self.at])
        if closing is not None:
            self.at += 1
            inames = tuple(self._list(self.at - 1, closing)[0])
            self.took(",")
        arguments, _ = self._list(opened, ")")
        if arguments and closing is None:
            inames = (arguments.pop(0),)
        if not inames or not arguments or not all(isinstance(i, prim.Variable) for i in inames):
            self.fail_at_call(
                opened,
                f"'{name}' takes a reduction, its inames and an expression",
                f"it is written {name}(sum, k, x) or {name}(sum, (k, l), x)",
            )
        return prim.Call(_variable(operation), (inames, *arguments))

    def _sum(self, left: Expression) -> Expression:
        terms = [left]
        words = self.words
        while True:
            word = words[self.at]
            if word == "+":
                self.at += 1
                terms.append(self._expression(MULTIPLY))
            elif word == "-":
                self.at += 1
                term = self._expression(MULTIPLY)
                # `x - 0` is not `x + 0`: they differ where x is a negative zero.
                if type(term) in (int, float, complex) and term:
                    terms.append(-term)
                else:
                    terms.append(prim.Product((-1, term)))
            else:
                return prim.Sum(tuple(terms))

    def _power(self, left: Expression) -> Expression:
        self.at += 1
        # The exponent may begin with a sign, and `**` groups to the right.
        return prim.Power(left, self._expression(UNARY))

    def _comparison(self, left: Expression) -> Expression:
        words = self.words
        parts = []
        while True:
            word = words[self.at]
            if word not in COMPARISONS:
                break
            self.at += 1
            right = self._expression(BIT_OR)
            parts.append(prim.Comparison(left, word, right))
            left = right
        return parts[0] if len(parts) == 1 else prim.LogicalAnd(tuple(parts))

    def _ternary(self, left: Expression) -> Expression:
        at = self.at
        self.at = at + 1
        condition = self._expression(OR)
        if not self.took("else"):
            if self.words[self.at] in FOREIGN:
                self.fail_at_leftover()
            usage = "a value is written 'a if condition else b'"
            self.fail(at, "this 'if' has no 'else'", instead=usage)
        return prim.If(condition, left, self._expression(TERNARY))

    def _not(self) -> Expression:
        return prim.LogicalNot(self._expression(NOT))

    def _if_operand(self) -> Expression:
        if self.words[self.at] != "(":
            self.fail_expecting("a value", "write if(c, a, b)", at=self.at - 1)
        return self._call("if")


def _binary(power: int, node: Callable[[Expression, Expression], Expression]) -> Any:
    def parse(self: ExpressionParser, left: Expression) -> Expression:
        self.at += 1
        return node(left, self._expression(power + 1))

    return (power, parse)


def _nary(power: int, node: Callable[[tuple[Expression, ...]], Expression]) -> Any:
    def parse(self: ExpressionParser, left: Expression) -> Expression:
        words = self.words
        word = words[self.at]
        children = [left]
        while words[self.at] == word:
            self.at += 1
            children.append(self._expression(power + 1))
        return node(tuple(children))

    return (power, parse)


_INFIX: dict[str, tuple[int, Callable[[ExpressionParser, Expression], Expression]]] = {
    "+": (ADD, ExpressionParser._sum),
    "-": (ADD, ExpressionParser._sum),
    "*": _nary(MULTIPLY, prim.Product),
    "/": _binary(MULTIPLY, prim.Quotient),
    "//": _binary(MULTIPLY, prim.FloorDiv),
    "%": _binary(MULTIPLY, prim.Remainder),
    "**": (POWER, ExpressionParser._power),
    "<<": _binary(SHIFT, prim.LeftShift),
    ">>": _binary(SHIFT, prim.RightShift),
    "&": _nary(BIT_AND, prim.BitwiseAnd),
    "^": _nary(BIT_XOR, prim.BitwiseXor),
    "|": _nary(BIT_OR, prim.BitwiseOr),
    "and": _nary(AND, prim.LogicalAnd),
    "or": _nary(OR, prim.LogicalOr),
    "if": (TERNARY, ExpressionParser._ternary),
    **dict.fromkeys(COMPARISONS, (COMPARE, ExpressionParser._comparison)),
}

_PREFIX_WORDS: dict[str, Callable[[ExpressionParser], Expression]] = {
    "not": ExpressionParser._not,
    "if": ExpressionParser._if_operand,
    "True": lambda self: True,
    "False": lambda self: False,
}

_CALLS: dict[str, Callable[[ExpressionParser, str, int], Expression]] = {
    "if": ExpressionParser._if_call,
    "cast": ExpressionParser._cast,
    "max": ExpressionParser._extremum,
    "min": ExpressionParser._extremum,
    "reduce": ExpressionParser._reduce,
    "simul_reduce": ExpressionParser._reduce,
    **dict.fromkeys(DTYPES, ExpressionParser._cast_by_name),
    **{"np." + name: ExpressionParser._cast_by_name for name in DTYPES},
}
