"""Expressions of the text as typed terms, by C's rules of conversion.

That every operation has a type is known before (:mod:`loopkit.codegen.c.spec`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    INTEGERS,
    DType,
    components_of,
    real_of,
)
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.calls import CONVERSIONS, MATHEMATICAL, ON_BITS, ON_COMPLEX, SPELLED
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import LITERALS, TYPES, common, in_registers
from loopkit.codegen.proof import term_makers as ops
from loopkit.codegen.proof import typed_computations as terms
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.typed_computations import Read, Term

_NUMBERS = {"LK_INFINITY": math.inf, "LK_NAN": math.nan}
COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
"""Operators that give true or false."""
_WORDS = {"&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr", "&&": "all", "||": "any"}
_QUOTIENTS = {"/": "fdiv", "%": "mod", "lk_floordiv": "fdiv", "lk_mod": "mod"}
_ARITHMETIC: dict[str, Callable[[DType, Term, Term], Term]] = {
    "+": ops.add,
    "-": ops.subtract,
    "*": ops.multiply,
    "/": ops.divide,
}


class TextValues:
    """Translates what stands at one point of the text.

    ``at_least`` proves of an integer expression that it is never below a bound there.
    """

    def __init__(self, names: Names, at_least: Callable[[c.CExpression, int], bool]) -> None:
        self.names = names
        self.at_least = at_least
        self._known: dict[int, tuple[c.CExpression, Term]] = {}

    def stands_for(self, expr: c.CExpression, term: Term) -> None:
        """Take an expression, where it stands, for a term."""
        self._known[id(expr)] = expr, term

    def assigned(self, node: c.Assign) -> Term:
        """What an assignment leaves in its target."""
        target = self.value(node.target)
        if components_of(target.dtype):
            return Term("record", target.dtype, ops.components(self.value(node.value)))
        if node.operator in ("max=", "min="):
            value = ops.cast(target.dtype, self.value(node.value))
            return ops.extremum(node.operator[:3], target.dtype, target, value)
        if target.dtype == BOOL and node.operator in ("|=", "&="):
            word = _WORDS[2 * node.operator[0]]
            return ops.logic(word, [target, self.condition(node.value)])
        whole = node.value
        if node.operator != "=":
            whole = c.Binary(node.operator[:-1], node.target, node.value)
        return ops.cast(target.dtype, self.value(whole))

    def value(self, expr: c.CExpression) -> Term:
        """An expression as a term; raises :class:`UnreadableError`."""
        if id(expr) not in self._known:
            # Long sums lean to the left.
            spine: list[c.CExpression] = [expr]
            while isinstance(expr, c.Binary) and expr.operator not in COMPARISONS:
                spine.append(expr := expr.left)
            for part in reversed(spine):
                if id(part) not in self._known:
                    self._known[id(part)] = part, self._value(part)
            expr = spine[0]
        return self._known[id(expr)][1]

    def _value(self, expr: c.CExpression) -> Term:
        dtype = self.names.type_of(expr)
        if isinstance(expr, c.Number):
            return terms.const(expr.value, LITERALS[expr.ctype])
        if isinstance(expr, c.Name):
            if expr.name in _NUMBERS:
                return terms.const(_NUMBERS[expr.name], dtype)
            if self.names.reads_memory(expr):
                return Term("read", dtype, (), Read(expr.name, (), True))
            return Term("name", dtype, (), expr.name)
        if isinstance(expr, c.Element):
            return Term("read", dtype, (), Read(expr.array, expr.indices, True))
        if isinstance(expr, c.Binary):
            return self.binary(expr, dtype)
        if isinstance(expr, c.Choice):
            then, other = (ops.cast(dtype, self.value(x)) for x in (expr.then, expr.other))
            return ops.choice(self.condition(expr.condition), then, other, expr.condition)
        if isinstance(expr, c.Unary):
            if expr.operator == "!":
                return ops.negation(self.condition(expr.operand))
            x = ops.cast(dtype, self.value(expr.operand))
            return ops.neg(dtype, x) if expr.operator == "-" else ops.invert(dtype, x)
        parts = [self.value(x) for x in c.children(expr)]
        if isinstance(expr, c.Cast):
            return ops.cast(dtype, *parts)
        if isinstance(expr, c.Member) and components_of(parts[0].dtype):
            return ops.component(parts[0], expr.name)
        if isinstance(expr, c.Member):
            return ops.part(parts[0], expr.name)
        if isinstance(expr, c.Braces) and components_of(dtype):
            return Term("record", dtype, tuple(parts))
        if isinstance(expr, c.Braces):
            return ops.complex_of(dtype, *parts)
        join = self.names.joins.get((expr.function, dtype))
        if join is not None:
            return _JoinValues(join, *parts).value(join.value)
        if expr.function in self.names.own:
            return ops.own_call(expr.function, dtype, *parts)
        return self.call(expr.function, dtype, parts)

    def condition(self, expr: c.CExpression) -> Term:
        """An expression as a condition."""
        return ops.truth(self.value(expr))

    def binary(self, expr: c.Binary, dtype: DType) -> Term:
        operator, word = expr.operator, _WORDS.get(expr.operator, "")
        if operator in ("&&", "||"):
            sides = [self.condition(expr.left), self.condition(expr.right)]
            return ops.logic(word, sides, [expr.left, expr.right])
        if operator in COMPARISONS:
            return self.comparison(expr)
        a, b = self.value(expr.left), self.value(expr.right)
        if operator in ("<<", ">>"):
            count = ops.value_of(b)
            if count.op != "const":
                raise UnreadableError(f"'{operator}' by what is no constant is not understood")
            if not 0 <= count.data < 8 * dtype.itemsize:
                raise UnreadableError(f"C does not say what a shift by {count.data} bits is")
            return ops.shift(word, dtype, ops.cast(dtype, a), count)
        if word:
            return ops.bits(word, dtype, ops.cast(dtype, a), ops.cast(dtype, b))
        if operator in _QUOTIENTS and dtype in INTEGERS:
            return self.quotient(expr, dtype, a, b)
        return _ARITHMETIC[operator](dtype, self._beside(dtype, a), self._beside(dtype, b))

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
            return ops.quotient(_QUOTIENTS[expr.operator], kind, a, b)
        return ops.call("tdiv" if expr.operator == "/" else "tmod", kind, a, b)

    def comparison(self, expr: c.Binary) -> Term:
        left = expr.left
        if isinstance(left, c.Call) and left.function == "lk_compare":
            if expr.right != c.Number(0, "int"):
                raise UnreadableError("'lk_compare' is compared with something else than 0")
            return ops.compare(expr.operator, *map(self.value, left.arguments))
        a, b = self.value(left), self.value(expr.right)
        kind = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
        return ops.compare(expr.operator, ops.cast(kind, a), ops.cast(kind, b))

    def call(self, name: str, dtype: DType, args: list[Term]) -> Term:
        """A function of CUDA's, or one of the preamble's, that gives a value of a type."""
        plain, _, template = name.partition("<")
        word = name.removeprefix("lk_")
        if name in CONVERSIONS:
            return ops.cast(dtype, ops.cast(CONVERSIONS[name][0], *args))
        if plain == "lk_power" and template != "0>":
            return ops.power(dtype, args[0], int(template.rstrip(">")))
        if (name in ON_COMPLEX or name == "lk_pow") and args[0].dtype in COMPLEXES:
            return ops.call(word, dtype, *args)
        if name in ("lk_shl", "lk_shr"):
            return ops.shift(word, dtype, *args)
        if name in ("abs", "lk_abs"):
            kind = in_registers(dtype)
            return ops.cast(dtype, ops.call("abs", kind, ops.cast(kind, *args)))
        if name in MATHEMATICAL or (name.endswith("f") and name[:-1] in MATHEMATICAL):
            kind = args[0].dtype if name in MATHEMATICAL else FLOAT32
            function = name if name in MATHEMATICAL else name[:-1]
            sides = (ops.cast(kind, x) for x in args)
            return ops.call(SPELLED.get(function, function), dtype, *sides)
        if plain in ON_BITS:
            return ops.call(plain.removeprefix("lk_"), dtype, ops.cast(TYPES[template[:-1]], *args))
        sides = (ops.cast(dtype, x) for x in args)
        if name in _QUOTIENTS:
            make = ops.quotient if dtype in INTEGERS else ops.call
            return make(_QUOTIENTS[name], dtype, *sides)
        if word in ("min", "max"):
            return ops.extremum(word, dtype, *sides)
        if name == "lk_sign" or plain == "lk_ipow":
            return ops.call(plain.removeprefix("lk_"), dtype, *sides)
        raise UnreadableError(f"the function '{name}' is not understood")


class _JoinValues(TextValues):
    """Translates the operation of a function that joins two records."""

    def __init__(self, join: c.Join, a: Term, b: Term) -> None:
        sides = tuple(c.Parameter(name, join.ctype, False, True) for name in ("a", "b"))
        super().__init__(Names(c.Function(join.name, sides, (), 1)), lambda expr, bound: False)
        self.sides = {"a": a, "b": b}

    def _value(self, expr: c.CExpression) -> Term:
        if isinstance(expr, c.Name) and expr.name in self.sides:
            return self.sides[expr.name]
        found = super()._value(expr)
        # Where its conditions hold is asked in the scope of the line, which has no such names.
        is_asked = found.op in ("choice", "all", "any") and found.data is not None
        return replace(found, data=None) if is_asked else found


def _is_unsigned(x: Term) -> bool:
    """Whether a value is never negative, whatever the data."""
    numbers = terms.numbers_in(x)
    if numbers is not None:
        return all(n >= 0 for n in numbers)
    return ops.value_of(x).dtype.kind in "ub"
