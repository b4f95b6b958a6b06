"""Reading expressions of C by precedence."""

from __future__ import annotations

import re

from loopkit.codegen.proof.lexer import ReadError, Token
from loopkit.codegen.proof.syntax import (
    Binary,
    Braces,
    Call,
    Cast,
    CExpression,
    Choice,
    Element,
    Member,
    Name,
    Number,
    Unary,
)

_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_TYPE_WORDS = frozenset(
    """
    int long unsigned signed char short float double bool __half __nv_bfloat16
    lk_complex64 lk_complex128
    """.split()  # noqa: SIM905
)
_NUMBER = re.compile(r"([\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)")
_SUFFIXES = {"": "int", "u": "uint", "ll": "long", "ull": "ulong", "l": "long", "ul": "ulong"}


class ExpressionReader:
    """A cursor over tokens that reads expressions."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    # {{{ the cursor

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.tokens[self.at].line

    def peek(self, ahead: int = 0) -> str:
        """The text of a token to come."""
        position = min(self.at + ahead, len(self.tokens) - 1)
        return self.tokens[position].text

    def kind(self, ahead: int = 0) -> str:
        """The kind of a token to come."""
        position = min(self.at + ahead, len(self.tokens) - 1)
        return self.tokens[position].kind

    def take(self) -> str:
        """The next token's text."""
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token.text

    def accept(self, text: str) -> bool:
        """Take the next token if it is ``text``."""
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True

    def expect(self, *texts: str) -> None:
        """Take tokens that must be there."""
        for text in texts:
            if not self.accept(text):
                raise ReadError(self.line, f"'{text}' is expected where '{self.peek()}' stands")

    def word(self) -> str:
        """Take a name."""
        if self.kind() != "word":
            raise ReadError(self.line, f"a name is expected where '{self.peek()}' stands")
        return self.take()

    def at_type(self, ahead: int = 0) -> bool:
        """Whether a type begins here."""
        return self.peek(ahead) in _TYPE_WORDS

    def type_name(self) -> str:
        """Take a type such as ``long long``."""
        words = []
        while self.at_type():
            words.append(self.take())
        if not words:
            raise ReadError(self.line, f"a type is expected where '{self.peek()}' stands")
        return " ".join(words)

    # }}}

    def expression(self) -> CExpression:
        """A whole expression."""
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        then = self.expression()
        self.expect(":")
        return Choice(condition, then, self.expression())

    def binary(self, lowest: int) -> CExpression:
        """Operators of ``lowest`` precedence and tighter."""
        left = self.unary()
        while True:
            level = _LEVEL.get(self.peek(), -1)
            if level < lowest or self.kind() != "sign":
                return left
            operator = self.take()
            left = Binary(operator, left, self.binary(level + 1))

    def unary(self) -> CExpression:
        """Signs, casts, and what they stand before."""
        text = self.peek()
        if self.kind() == "sign":
            if text in ("-", "!", "~", "&", "+"):
                self.take()
                operand = self.unary()
                return operand if text == "+" else Unary(text, operand)
            if text == "(" and self.at_type(1):
                closing = 2
                while self.at_type(closing):
                    closing += 1
                if self.peek(closing) == ")":
                    self.take()
                    ctype = self.type_name()
                    self.expect(")")
                    return Cast(ctype, self.unary())
        return self.postfix()

    def postfix(self) -> CExpression:
        """Subscripts, calls and members."""
        expr = self.primary()
        while self.kind() == "sign":
            if self.peek() == "[" and isinstance(expr, (Name, Element)):
                self.take()
                index = self.expression()
                self.expect("]")
                if isinstance(expr, Name):
                    expr = Element(expr.name, (index,))
                else:
                    expr = Element(expr.array, (*expr.indices, index))
            elif self.accept("."):
                member = self.word()
                if isinstance(expr, Name) and expr.name in ("threadIdx", "blockIdx"):
                    expr = Name(f"{expr.name}.{member}")
                else:
                    expr = Member(expr, member)
            else:
                break
        return expr

    def primary(self) -> CExpression:
        """Literals, names, calls and parentheses."""
        kind, text = self.kind(), self.peek()
        if kind == "number":
            return self.number(self.take())
        if self.accept("("):
            expr = self.expression()
            self.expect(")")
            return expr
        if kind != "word":
            raise ReadError(self.line, f"an expression is expected where '{text}' stands")
        if self.at_type():
            ctype = self.type_name()
            if self.accept("{"):
                return Braces(ctype, self.listed("}"))
            self.expect("(")
            return Cast(ctype, *self.listed(")"))
        self.take()
        if self.accept("("):
            return Call(text, self.listed(")"))
        if text in ("true", "false"):
            return Number(int(text == "true"), "int")
        return Name(text)

    def listed(self, end: str) -> tuple[CExpression, ...]:
        """Expressions between commas, up to ``end``."""
        parts: list[CExpression] = []
        while not self.accept(end):
            if parts:
                self.expect(",")
            parts.append(self.expression())
        return tuple(parts)

    def number(self, text: str) -> Number:
        """A literal of any type."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise ReadError(self.line, f"'{text}' is no number")
        digits, suffix = match[1], match[2].lower()
        if suffix == "f" or any(c in digits for c in ".eE"):
            return Number(float(digits), "float" if suffix == "f" else "double")
        if suffix not in _SUFFIXES:
            raise ReadError(self.line, f"'{text}' has a suffix that is not understood")
        value, ctype = int(digits), _SUFFIXES[suffix]
        if ctype == "int" and value >= 2**31:
            ctype = "long"
        return Number(value, ctype)
