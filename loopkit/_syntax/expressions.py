"""Expressions: from text to pymbolic trees.

Precedence climbing: each infix operator has a power, and an operand is read as
far as operators reach that bind at least as strongly as asked.  Precedence and
associativity are Python's.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

import pymbolic.primitives as prim

from loopkit._depth import INSTEAD, MOST_NESTED, TOO_DEEP
from loopkit._nodes import Expression, TypeCast, TypeName
from loopkit._promotion import DTYPES, LARGEST_BITS
from loopkit._syntax.lexer import CLOSING, END, OPENING, PositionOf, Words

TERNARY, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, ADD, MULTIPLY, UNARY, POWER = (
    range(1, 14)
)

# `for`, `end` and their kin are words of the language only where a line begins: a loop may well
# run to a size named `end`.
KEYWORDS = frozenset(("and", "or", "not", "if", "else"))
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

# What people write who come from C or C++.
_FOREIGN = {
    "&&": "write 'and'",
    "||": "write 'or'",
    "!": "write 'not'",
    "?": "write 'a if condition else b' or 'if(condition, a, b)'",
    "=": "comparing for equality is written '=='",
    "->": "no such operator in an expression",
    ":": "slices are not part of the language: name an iname for each index",
    "'": "there are no strings in the language",
    '"': "there are no strings in the language",
    ";": "one instruction stands on a line",
    "$": "tagged names are not part of the language",
    "@": "matrix products are written as sums: sum(k, a[i, k] * b[k, j])",
    ".": "names have no dots",
    "lambda": "there are no functions as values; a substitution rule is written f(x) := ...",
}

_LONGEST_NUMBER = 1000
"""How many characters a number may have; no value of any type needs more."""

# Names are few and used often: one node each.
_variable = lru_cache(maxsize=1 << 13)(prim.Variable)


def parse_expression(text: str, *, position_of: PositionOf | None = None) -> Expression:
    """The tree of an expression.

    ``position_of(offset, length)`` says where a part of ``text`` stands in what
    the user wrote, if ``text`` is only a piece of that.  A call such as
    ``sum(k, x)`` stays a call: see
    :func:`loopkit._syntax.reductions.resolve_reductions`.
    """
    parser = ExpressionParser(text, position_of)
    expr = parser.expression()
    if parser.words[parser.at] != END:
        parser.fail_at_leftover()
    return expr


class ExpressionParser(Words):
    """Reads expressions from the words of a text, one after another."""

    __slots__ = ("depth",)

    def __init__(self, text: str, position_of: PositionOf | None = None) -> None:
        super().__init__(text, position_of)
        self.depth = 0

    def expression(self, power: int = TERNARY) -> Expression:
        """One expression of operators that bind at least as strongly as ``power``."""
        try:
            return self._expression(power)
        except RecursionError:  # whoever calls is deep in calls already
            self._fail_at_depth()

    def _expression(self, power: int) -> Expression:
        self.depth += 1
        if self.depth > 2 * MOST_NESTED:  # a part of an operation may stand in parentheses
            self._fail_at_depth()
        left = self._operand()
        words = self.words
        infix = _INFIX
        while True:
            entry = infix.get(words[self.at])
            if entry is None or entry[0] < power:
                self.depth -= 1
                return left
            left = entry[1](self, left)

    def _fail_at_depth(self) -> NoReturn:
        self.fail(min(self.at, len(self.words) - 1), TOO_DEEP, instead=INSTEAD)

    # {{{ operands

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
            if word in KEYWORDS or word in _FOREIGN:
                self.fail(
                    at, f"expected a value but found '{word}'", instead=_FOREIGN.get(word, "")
                )
            if word[2:3] == ".":
                self._fail_at_dotted(at)
            return _variable(word)
        if first.isdigit() or (first == "." and word != "..." and len(word) > 1):
            return self._number(word)
        if word == "-":
            operand = self._expression(UNARY)
            if type(operand) in (int, float, complex):
                return -operand
            return prim.Product((-1, operand))
        if word == "(":
            return self._parenthesis()
        if word == "+":
            return self._expression(UNARY)
        if word == "~":
            return prim.BitwiseNot(self._expression(UNARY))
        self._fail_at_operand(at)

    def _number(self, word: str) -> Expression:
        if len(word) > _LONGEST_NUMBER:
            self.fail(self.at - 1, "this number is larger than all that any type can hold")
        if word[0] == "0" and word.isdigit() and word.strip("0"):
            self.fail(
                self.at - 1,
                f"'{word}' is no number: a 0 stands in front",
                instead=f"write {word.lstrip('0')}",
            )
        try:
            whole = int(word)
        except ValueError:
            pass
        else:
            if whole.bit_length() > LARGEST_BITS:
                self.fail(self.at - 1, "this number is larger than all that any type can hold")
            return whole
        try:
            value = float(word)
        except ValueError:
            pass
        else:
            if math.isinf(value):
                self.fail(self.at - 1, "this number is larger than all that any type can hold")
            return value
        try:
            if word[-1] in "jJ":
                return complex(word)
            return int(word, 0)
        except ValueError:
            pass
        at = self.at - 1
        body, suffix = word.rstrip("fFlLuUhH"), word[-1]
        if suffix in "fF" and body and not word.lower().startswith("0x"):
            self.fail(
                at,
                f"the number '{word}' has a suffix",
                instead=f"write {body}: constants take the type of what they meet; "
                f"float32({body}) has a type of its own",
            )
        self.fail(at, f"'{word}' is neither a number nor a name")

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

    def _list(self, opened: int, closing: str) -> tuple[list[Expression], bool]:
        """Expressions up to ``closing``, and whether there was any comma."""
        words = self.words
        items: list[Expression] = []
        has_comma = False
        while True:
            if words[self.at] == closing:
                self.at += 1
                return items, has_comma
            if words[self.at] == "dtype" and words[self.at + 1] == "=":
                items.append(self._type_name(closing))
            else:
                items.append(self._expression(TERNARY))
            word = words[self.at]
            if word == ",":
                has_comma = True
                self.at += 1
            elif word != closing:
                self._fail_in_list(opened, closing)

    def _type_name(self, closing: str) -> Expression:
        """``dtype=int32`` at the end of a list."""
        at = self.at
        dtype = DTYPES.get(self.words[at + 2].removeprefix("np."))
        if dtype is None:
            self.fail_at_type(at + 2)
        self.at = at + 3
        if closing != ")" or self.words[self.at] != ")":
            self.fail(
                at,
                "'dtype=' stands at the end of a reduction",
                last=at + 2,
                instead="it is written sum(k, x, dtype=int32)",
            )
        return TypeName(dtype)

    def _subscript(self, name: str) -> Expression:
        at = self.at
        if name in KEYWORDS:
            self.fail(at - 1, f"expected a value but found '{name}'")
        if name[2:3] == ".":
            self._fail_at_dotted(at - 1)
        self.at = at + 1
        indices, has_comma = self._list(at, "]")
        if not indices:
            self.fail(
                at,
                f"the subscript of '{name}' is empty",
                last=at + 1,
                instead="write a[i], or a[()]",
            )
        following = self.words[self.at]
        if following == "[":
            self.fail(self.at, "one pair of brackets holds all indices", instead="write a[i, j]")
        if following == "(":
            self.fail(self.at, "only names can be called")
        index: tuple[Expression, ...] = tuple(indices)
        if len(index) == 1 and type(index[0]) is tuple and not has_comma:
            index = index[0]  # a[()] and a[(i, j)]
        return prim.Subscript(_variable(name), index)

    def _call(self, name: str) -> Expression:
        at = self.at
        if name in KEYWORDS and name != "if":
            self.fail(at - 1, f"expected a value but found '{name}'")
        self.at = at + 1
        special = _CALLS.get(name)
        if special is not None:
            return special(self, name, at)
        arguments, _ = self._list(at, ")")
        if name[2:3] == ".":
            self._fail_at_dotted(at - 1)
        following = self.words[self.at]
        if following in ("[", "("):
            self.fail(self.at, "the result of a call can be neither subscripted nor called")
        return prim.Call(_variable(name), tuple(arguments))

    # }}}

    # {{{ calls that are more than calls

    def _arguments(self, name: str, opened: int, count: int, usage: str) -> list[Expression]:
        arguments, _ = self._list(opened, ")")
        if len(arguments) != count:
            self.fail(
                opened - 1,
                f"'{name}' takes {count} argument{'s' * (count != 1)}, not {len(arguments)}",
                instead=f"it is written {usage}",
                last=self.at - 1,
            )
        return arguments

    def _if_call(self, name: str, opened: int) -> Expression:
        condition, then, else_ = self._arguments(name, opened, 3, "if(condition, then, else)")
        return prim.If(condition, then, else_)

    def _cast_by_name(self, name: str, opened: int) -> Expression:
        short = name.removeprefix("np.")
        (operand,) = self._arguments(name, opened, 1, f"{short}(x)")
        return TypeCast(DTYPES[short], operand)

    def _cast(self, name: str, opened: int) -> Expression:
        at = self.at
        word = self.words[at].removeprefix("np.")
        dtype = DTYPES.get(word)
        if dtype is None:
            self.fail_at_type(at)
        self.at += 1
        if self.words[self.at] != ",":
            self._fail_in_list(opened, ",")
        self.at += 1
        arguments, _ = self._list(opened, ")")
        if len(arguments) != 1:
            self.fail(
                opened - 1,
                "'cast' takes a type and one value",
                instead="it is written cast(float32, x)",
                last=self.at - 1,
            )
        return TypeCast(dtype, arguments[0])

    def _extremum(self, name: str, opened: int) -> Expression:
        arguments, _ = self._list(opened, ")")
        if arguments and isinstance(arguments[-1], TypeName):
            self.fail(
                opened - 1,
                f"'{name}' takes no dtype: its result is one of the values",
                instead=f"cast the values, as in {name}(k, float32(x))",
                last=self.at - 1,
            )
        if arguments and type(arguments[0]) is tuple:
            return prim.Call(_variable(name), tuple(arguments))
        if len(arguments) < 2:
            self.fail(
                opened - 1,
                f"'{name}' takes two values or more, or an iname and an expression",
                last=self.at - 1,
            )
        return (prim.Max if name == "max" else prim.Min)(tuple(arguments))

    def _reduce(self, name: str, opened: int) -> Expression:
        """``reduce(sum, k, x)``: a reduction in any case, marked by a tuple of inames."""
        at = self.at
        operation = self.words[at]
        if not operation.isidentifier() or operation in KEYWORDS or self.words[at + 1] != ",":
            self.fail(
                at,
                f"the first argument of '{name}' is the name of a reduction",
                instead=f"it is written {name}(sum, k, x)",
            )
        self.at = at + 2
        listed = self.words[self.at] == "["
        if listed:
            self.at += 1
            inames: Expression = tuple(self._list(self.at - 1, "]")[0])
            if self.words[self.at] == ",":
                self.at += 1
            arguments, _ = self._list(opened, ")")
        else:
            arguments, _ = self._list(opened, ")")
            inames = arguments.pop(0) if arguments else ()
        if not isinstance(inames, tuple):
            inames = (inames,)
        if not inames or not arguments or not all(isinstance(i, prim.Variable) for i in inames):
            self.fail(
                opened - 1,
                f"'{name}' takes a reduction, its inames and an expression",
                instead=f"it is written {name}(sum, k, x) or {name}(sum, (k, l), x)",
                last=self.at - 1,
            )
        return prim.Call(_variable(operation), (inames, *arguments))

    # }}}

    # {{{ operators

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

    def _product(self, left: Expression) -> Expression:
        factors = [left]
        words = self.words
        while words[self.at] == "*":
            self.at += 1
            factors.append(self._expression(UNARY))
        return prim.Product(tuple(factors))

    def _power(self, left: Expression) -> Expression:
        self.at += 1
        # The exponent may begin with a sign, and `**` groups to the right.
        return prim.Power(left, self._expression(UNARY))

    def _comparison(self, left: Expression) -> Expression:
        words = self.words
        parts = []
        while True:
            word = words[self.at]
            if word not in _COMPARISONS:
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
        if self.words[self.at] != "else":
            self.fail(
                at,
                "this 'if' has no 'else'",
                instead="a value is written 'a if condition else b'",
            )
        self.at += 1
        return prim.If(condition, left, self._expression(TERNARY))

    def _not(self) -> Expression:
        return prim.LogicalNot(self._expression(NOT))

    def _if_operand(self) -> Expression:
        if self.words[self.at] != "(":
            self.fail(self.at - 1, "expected a value but found 'if'", instead="write if(c, a, b)")
        return self._call("if")

    # }}}

    # {{{ errors

    def fail_at_leftover(self) -> NoReturn:
        """Report the word after a complete expression."""
        at = self.at
        word = self.words[at]
        if word in OPENING or word in CLOSING:
            self.fail_on_brackets()
        if word in _FOREIGN:
            self.fail(at, f"{self.describe(at)} is not an operator", instead=_FOREIGN[word])
        if word == ",":
            self.fail(at, "a comma stands only inside brackets")
        if word in ("{", "}"):
            self.fail(at, f"'{word}' does not belong in an expression")
        if word[:1].isalnum() or word[:1] == "_" or word in OPENING:
            self.fail(at, f"expected an operator before {self.describe(at)}")
        self.fail(at, f"'{word}' is out of place")

    def fail_at_type(self, at: int) -> NoReturn:
        """Report that word ``at`` does not name a type."""
        near = difflib.get_close_matches(self.words[at], DTYPES, n=2)
        self.fail(
            at,
            f"{self.describe(at)} is not the name of a type",
            instead=f"did you mean {' or '.join(near)}?" if near else "types: " + ", ".join(DTYPES),
        )

    def _fail_at_operand(self, at: int) -> NoReturn:
        word = self.words[at]
        if word == END or word in CLOSING:
            self.fail_on_brackets()
        if word == "[":
            self.fail_on_brackets()
            self.fail(at, "'[' needs the name of an array before it")
        if word in ("*", "**", "/") and self.words[max(at - 1, 0)] in ("*", "/"):
            self.fail(at, f"expected a value but found '{word}'", instead="a power is written a**b")
        self.fail(
            at, f"expected a value but found {self.describe(at)}", instead=_FOREIGN.get(word, "")
        )

    def _fail_in_list(self, opened: int, closing: str) -> NoReturn:
        at = self.at
        word = self.words[at]
        if word == END or word == "=" or word in CLOSING:
            self.fail_on_brackets()
        if word == "=":
            self.fail(
                at, "arguments cannot be named", instead="comparing for equality is written '=='"
            )
        if word in _FOREIGN:
            self.fail(at, f"'{word}' is not an operator", instead=_FOREIGN[word])
        where = self.position(opened)
        wanted = "','" if closing == "," else f"',' or '{closing}'"
        self.fail(
            at,
            f"expected {wanted} but found {self.describe(at)}",
            instead=f"'{self.words[opened]}' opened at line {where.line}, column {where.column}",
        )

    def _fail_at_dotted(self, at: int) -> NoReturn:
        self.fail(at, f"'{self.words[at]}' is not a value", instead="names have no dots")

    # }}}


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
    "*": (MULTIPLY, ExpressionParser._product),
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
    **dict.fromkeys(_COMPARISONS, (COMPARE, ExpressionParser._comparison)),
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
