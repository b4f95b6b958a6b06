"""Expressions of the text as typed terms, by C's rules of conversion."""

from __future__ import annotations

import math
from collections.abc import Callable

from loopkit._promotion import (
    COMPLEXES,
    FLOAT32,
    INTEGERS,
    SMALL_FLOATS,
    UINT32,
    DType,
    real_of,
)
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import LITERALS, TYPES, common, in_registers
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.terms import Read, Term
from loopkit.codegen.proof.value_calls import Calls

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_BITS = {"&": "and", "|": "or", "^": "xor"}
_ARITHMETIC: dict[str, Callable[[DType, Term, Term], Term]] = {
    "+": ops.add,
    "-": ops.subtract,
    "*": ops.multiply,
}


def exact_types(function: c.Function) -> dict[str, frozenset[DType]]:
    """The types that the text gives each name; loops of one name may differ."""
    found: dict[str, set[DType]] = {}

    for node in (*function.parameters, *c.statements(function.body)):
        if isinstance(node, (c.Parameter, c.Declaration, c.Let, c.For)) and node.ctype in TYPES:
            found.setdefault(node.name, set()).add(TYPES[node.ctype])
    return {name: frozenset(kinds) for name, kinds in found.items()}


class TextValues(Calls):
    """Translates what stands at one point of the text.

    ``at_least`` proves of an integer expression that it is never below a bound there.
    """

    def __init__(
        self,
        names: Names,
        types: dict[str, frozenset[DType]],
        scope: Scope,
        at_least: Callable[[c.CExpression, int], bool],
    ) -> None:
        self.names = names
        self.types = types
        self.scope = scope
        self.at_least = at_least
        self._known: dict[int, tuple[c.CExpression, Term]] = {}

    # {{{ statements

    def assigned(self, node: c.Assign) -> Term:
        """What an assignment leaves in its target."""
        target = self.value(node.target)
        if node.operator == "=":
            return self.converted(target.dtype, self.value(node.value))
        if node.operator in ("max=", "min="):
            value = self.converted(target.dtype, self.value(node.value))
            return ops.extremum(node.operator[:3], target.dtype, target, value)
        whole = self.binary(c.Binary(node.operator[:-1], node.target, node.value))
        return self.converted(target.dtype, whole)

    # }}}

    def type_of_name(self, name: str) -> DType:
        """The type of a variable, or of an array's elements."""
        kinds = self.types.get(name)
        if not kinds:
            if "." in name:
                return UINT32  # threadIdx.x and the like
            raise UnreadableError(f"the type of '{name}' is not understood")
        if len(kinds) > 1:
            for scope in self.scope.chain():
                node = scope.node
                if isinstance(node, (c.For, c.Let)) and node.name == name:
                    return TYPES[node.ctype]
            raise UnreadableError(f"'{name}' has several types")
        return next(iter(kinds))

    def value(self, expr: c.CExpression) -> Term:
        """An expression as a term; raises :class:`UnreadableError`."""
        if id(expr) not in self._known:
            # Long sums lean to the left.
            spine: list[c.CExpression] = [expr]
            while isinstance(expr, c.Binary) and expr.operator not in _COMPARISONS:
                spine.append(expr := expr.left)
            for part in reversed(spine):
                if id(part) not in self._known:
                    self._known[id(part)] = part, self._value(part)
            expr = spine[0]
        return self._known[id(expr)][1]

    def _value(self, expr: c.CExpression) -> Term:
        if isinstance(expr, c.Number):
            return terms.const(expr.value, LITERALS[expr.ctype])
        if isinstance(expr, c.Name):
            return self.name(expr.name)
        if isinstance(expr, c.Element):
            read = Read(expr.array, expr.indices, True)
            return Term("read", self.type_of_name(expr.array), (), read)
        if isinstance(expr, c.Binary):
            return self.binary(expr)
        if isinstance(expr, c.Unary):
            return self.unary(expr)
        if isinstance(expr, c.Cast):
            return self.cast(expr)
        if isinstance(expr, c.Choice):
            condition = self.condition(expr.condition)
            then, other = self.value(expr.then), self.value(expr.other)
            kind = then.dtype
            if kind != other.dtype:
                kind = common(then.dtype, other.dtype)
            sides = (self.converted(kind, then), self.converted(kind, other))
            return ops.choice(condition, *sides, asked=expr.condition)
        if isinstance(expr, c.Call):
            return self.call(expr.function, [self.value(a) for a in expr.arguments])
        if isinstance(expr, c.Member):
            inner = self.value(expr.operand)
            if inner.dtype not in COMPLEXES or expr.name not in ("re", "im"):
                raise UnreadableError(f"'.{expr.name}' is not understood")
            return ops.part(inner, expr.name)
        if (
            isinstance(expr, c.Braces)
            and TYPES.get(expr.ctype) in COMPLEXES
            and len(expr.parts) == 2
        ):
            re, im = (self.value(p) for p in expr.parts)
            return ops.complex_of(TYPES[expr.ctype], re, im)
        raise UnreadableError("an expression is not understood")

    def name(self, name: str) -> Term:
        if name == "LK_INFINITY":
            return terms.const(math.inf, FLOAT32)
        if name == "LK_NAN":
            return terms.const(math.nan, FLOAT32)
        if self.names.places.get(name, "value") != "value":
            return Term("read", self.type_of_name(name), (), Read(name, (), True))
        return Term("name", self.type_of_name(name), (), name)

    def condition(self, expr: c.CExpression) -> Term:
        """An expression as a condition."""
        value = self.value(expr)
        if value.dtype in COMPLEXES or value.dtype in SMALL_FLOATS:
            raise UnreadableError(f"C takes no {value.dtype} for a condition")
        return ops.truth(value)

    # {{{ operators

    def unary(self, expr: c.Unary) -> Term:
        if expr.operator == "!":
            return ops.negation(self.condition(expr.operand))
        x = self.value(expr.operand)
        kind = in_registers(x.dtype)
        x = ops.cast(kind, x)
        if expr.operator == "-":
            return ops.neg(kind, x)
        if expr.operator == "~" and kind in INTEGERS:
            return ops.invert(kind, x)
        raise UnreadableError(f"'{expr.operator}' is not understood")

    def binary(self, expr: c.Binary) -> Term:
        operator = expr.operator
        if operator in ("&&", "||"):
            sides = [self.condition(expr.left), self.condition(expr.right)]
            word = "all" if operator == "&&" else "any"
            return ops.logic(word, sides, [expr.left, expr.right])
        if operator in _COMPARISONS:
            return self.comparison(expr)
        a, b = self.value(expr.left), self.value(expr.right)
        if operator in ("<<", ">>"):
            kind = in_registers(a.dtype)
            count = ops.value_of(b)
            if kind not in INTEGERS or count.op != "const":
                raise UnreadableError(f"'{operator}' by what is no constant is not understood")
            if not 0 <= count.data < 8 * kind.itemsize:
                raise UnreadableError(f"C does not say what a shift by {count.data} bits is")
            word = "shl" if operator == "<<" else "shr"
            return ops.shift(word, kind, ops.cast(kind, a), count)
        kind = common(a.dtype, b.dtype)
        if operator in _BITS:
            if kind not in INTEGERS:
                raise UnreadableError(f"'{operator}' of {kind}")
            return ops.bits(_BITS[operator], kind, ops.cast(kind, a), ops.cast(kind, b))
        if operator in ("/", "%") and kind in INTEGERS:
            return self.quotient(expr, kind, a, b)
        if operator not in _ARITHMETIC and operator != "/":
            raise UnreadableError(f"'{operator}' of {kind}")
        a, b = self._beside(kind, a), self._beside(kind, b)
        if operator == "/":
            return ops.divide(kind, a, b)
        return _ARITHMETIC[operator](kind, a, b)

    def _beside(self, kind: DType, x: Term) -> Term:
        """An operand in the operation's type; a real number beside a complex one stays real."""
        if kind in COMPLEXES and x.dtype not in COMPLEXES:
            return ops.cast(real_of(kind), x)
        return ops.cast(kind, x)

    def quotient(self, expr: c.Binary, kind: DType, a: Term, b: Term) -> Term:
        """C's division: it rounds down where nothing is negative, and no divisor is 0."""
        a, b = ops.cast(kind, a), ops.cast(kind, b)
        known = terms.numbers_in(b)
        positive = all(n > 0 for n in known) if known else self.at_least(expr.right, 1)
        if positive and (kind.kind == "u" or _is_unsigned(a) or self.at_least(expr.left, 0)):
            return ops.quotient("fdiv" if expr.operator == "/" else "mod", kind, a, b)
        return ops.call("tdiv" if expr.operator == "/" else "tmod", kind, a, b)

    def comparison(self, expr: c.Binary) -> Term:
        left = expr.left
        if isinstance(left, c.Call) and left.function == "lk_compare" and len(left.arguments) == 2:
            if expr.right != c.Number(0, "int"):
                raise UnreadableError("'lk_compare' is compared with something else than 0")
            a, b = (self.value(x) for x in left.arguments)
            if not all(x.dtype in INTEGERS for x in (a, b)):
                raise UnreadableError("'lk_compare' of what are no integers")
            return ops.compare(expr.operator, a, b)
        a, b = self.value(left), self.value(expr.right)
        kind = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
        if kind in COMPLEXES:
            if a.dtype != b.dtype or expr.operator not in ("==", "!="):
                raise UnreadableError("complex numbers have no order")
            return ops.compare(expr.operator, a, b)
        return ops.compare(expr.operator, ops.cast(kind, a), ops.cast(kind, b))

    def cast(self, expr: c.Cast) -> Term:
        dtype = TYPES.get(expr.ctype)
        x = self.value(expr.operand)
        if dtype is None:
            raise UnreadableError(f"the type '{expr.ctype}' is not understood")
        if x.dtype == dtype:
            return x
        return self.converted(dtype, x)

    # }}}


def _is_unsigned(x: Term) -> bool:
    """Whether a value is never negative, whatever the data."""
    numbers = terms.numbers_in(x)
    if numbers is not None:
        return all(n >= 0 for n in numbers)
    return ops.value_of(x).dtype.kind in "ub"
