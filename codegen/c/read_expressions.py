"""Reading expressions of C by precedence."""

from __future__ import annotations

from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import DeepError, ReadError
from loopkit.codegen.c.lexer import Token, literal
from loopkit.codegen.c.nesting_limits import DEEPEST, LONGEST
from loopkit.codegen.c.types import TYPES, WORDS, record_called

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


class ExpressionReader:
    """A cursor over tokens that reads expressions."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.tokens[self.at].line

    def peek(self, ahead: int = 0) -> str:
        """The text of a token to come."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1) if ahead else self.at].text

    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.at].kind

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
                raise ReadError(self.line, f"expected '{text}', but found '{self.peek()}'")

    def word(self) -> str:
        """Take a name."""
        if self.kind() != "word":
            raise ReadError(self.line, f"expected a name, but found '{self.peek()}'")
        return self.take()

    def at_type(self, ahead: int = 0) -> bool:
        """Whether a type begins here."""
        text = self.peek(ahead)
        return text in WORDS or record_called(text) is not None

    def at_braces(self, ahead: int) -> bool:
        """Whether a type is followed by its parts: ``lk_complex64{1.0f, 0.0f}``."""
        while self.at_type(ahead):
            ahead += 1
        return self.peek(ahead) == "{"

    def type_name(self) -> str:
        """Take a type such as ``long long``."""
        line, words = self.line, []
        while self.at_type():
            words.append(self.take())
        if not words:
            raise ReadError(line, f"expected a type, but found '{self.peek()}'")
        name = " ".join(words)
        if name not in TYPES and record_called(name) is None:
            raise ReadError(line, f"the type '{name}' is not understood")
        return name

    def integer(self) -> int:
        """Take an integer that is a plain number."""
        line, found = self.line, self.number(self.take())
        if found.ctype != "int":
            raise ReadError(line, "a plain number is expected")
        return int(found.value)

    def enter(self) -> None:
        """Go one level further inside."""
        if self.depth == DEEPEST:
            raise DeepError(self.line, f"nested in more than {DEEPEST} levels")
        self.depth += 1

    def expression(self) -> c.CExpression:
        """A whole expression."""
        self.enter()
        found = self.binary(0)
        if self.accept("?"):
            then = self.expression()
            self.expect(":")
            found = c.Choice(found, then, self.expression())
        self.depth -= 1
        return found

    def binary(self, lowest: int) -> c.CExpression:
        """Operators of ``lowest`` precedence and tighter."""
        left, count = self.unary(), 0
        while True:
            kind, text, _ = self.tokens[self.at]
            if kind != "sign" or _LEVEL.get(text, -1) < lowest:
                return left
            operator = self.take()
            count += operator in ("&&", "||")
            if count > LONGEST:
                raise DeepError(self.line, f"a condition of more than {LONGEST} parts")
            left = self.operation(operator, left, self.binary(_LEVEL[operator] + 1))

    def operation(self, operator: str, left: c.CExpression, right: c.CExpression) -> c.CExpression:
        """An operator with its operands."""
        return c.Binary(operator, left, right)

    def unary(self) -> c.CExpression:
        """Signs, casts, and what they stand before."""
        signs: list[tuple[type[c.Unary] | type[c.Cast], str]] = []
        while self.kind() == "sign":
            text = self.peek()
            if text in ("-", "!", "~", "&"):
                signs.append((c.Unary, self.take()))
            elif text == "(" and self.at_type(1) and not self.at_braces(1):
                self.take()
                signs.append((c.Cast, self.type_name()))
                self.expect(")")
            else:
                break
        if len(signs) > DEEPEST:
            raise DeepError(self.line, f"more than {DEEPEST} signs before an operand")
        expr = self.postfix()
        for node, sign in reversed(signs):
            expr = node(sign, expr)
        return expr

    def postfix(self) -> c.CExpression:
        """Subscripts, calls and members."""
        expr = self.primary()
        while True:
            if isinstance(expr, (c.Name, c.Element)) and self.accept("["):
                if isinstance(expr, c.Name):
                    expr = c.Element(expr.name, ())
                expr = c.Element(expr.array, (*expr.indices, self.expression()))
                self.expect("]")
            elif self.accept("."):
                member = self.word()
                if isinstance(expr, c.Name) and expr.name in ("threadIdx", "blockIdx", "gridDim"):
                    expr = c.Name(f"{expr.name}.{member}")
                else:
                    expr = c.Member(expr, member)
            else:
                return expr

    def primary(self) -> c.CExpression:
        """Literals, names, calls and parentheses."""
        kind, text = self.kind(), self.peek()
        if kind == "number":
            return self.number(self.take())
        if self.accept("("):
            expr = self.expression()
            self.expect(")")
            return expr
        if kind != "word":
            raise ReadError(self.line, f"expected an expression, but found '{text}'")
        if self.at_type():
            ctype = self.type_name()
            self.expect("{")
            return c.Braces(ctype, self.listed("}"))
        self.take()
        if self.accept("("):
            return c.Call(text, self.listed(")"))
        if text in ("true", "false"):
            return c.Number(int(text == "true"), "bool")
        return c.Name(text)

    def listed(self, end: str) -> tuple[c.CExpression, ...]:
        """Expressions between commas, up to ``end``."""
        parts: list[c.CExpression] = []
        while not self.accept(end):
            if parts:
                self.expect(",")
            parts.append(self.expression())
        return tuple(parts)

    def number(self, text: str) -> c.Number:
        """A literal of any type."""
        found = literal(text)
        if found is None:
            raise ReadError(self.line, f"the number '{text}' is not understood")
        return found
