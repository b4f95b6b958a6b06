"""Expressions as Python source that computes on NumPy scalars."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._device_functions import DeviceFunction, OwnFunction
from loopkit._errors import TypeInferenceError
from loopkit._expression import index_tuple, is_constant, parts_of, python_node, to_text
from loopkit._frozen import dataclass
from loopkit._functions import BITS, call_type
from loopkit._hidden import hidden
from loopkit._nodes import SYMBOLS, Component, Expression, Record, TypeCast, is_integer, subtrahend
from loopkit._promotion import Choice, DType, RunTime, Typed
from loopkit._reference import scalar_functions as functions
from loopkit._types import asked_of, not_an_index

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_IN_COMMON_TYPE = _ROUNDING | {"abs", "sign", "real", "imag", "conj", "fmin", "fmax"} | BITS
_THEMSELVES = frozenset(("abs", "real", "conj"))
_INDEXING = (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder, prim.Min, prim.Max)
_PREDICATES = frozenset(("isnan", "isinf", "isfinite"))


@dataclass(frozen=True)
class Value:
    """Python source of a value, and its type; a constant is its own type."""

    source: str
    kind: Typed


@dataclass(frozen=True)
class Names:
    """The meaning of the names in a statement.

    ``inames`` are Python integers under their own names, ``sizes`` numbers; ``dtypes`` gives the
    types of all other names, and ``load(name, indices)`` the source of an access.  ``own`` gives
    the implementation of a user-defined function.
    """

    inames: frozenset[str]
    sizes: Mapping[str, int]
    dtypes: Mapping[str, DType]
    load: Callable[[str, Sequence[str]], str]
    own: Callable[[DeviceFunction], Callable[..., Any]] | None = None


class Translator:
    """Translates expressions; what their source needs collects in ``space``."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.space: dict[str, Any] = {}
        self._bound: dict[tuple[Any, ...], str] = {}

    def bind(self, value: Any, *key: Any) -> str:
        """A name for ``value`` in the source; the same for the same ``key``."""
        if key and key in self._bound:
            return self._bound[key]
        name = hidden("bound", len(self.space))
        self.space[name] = value
        if key:
            self._bound[key] = name
        return name

    def size(self, name: str) -> str:
        """Source of the value of a size."""
        return self.bind(self.names.sizes[name], "size", name)

    def index(self, expr: Expression) -> str:
        """Source of an index, as a Python integer."""
        if is_integer(expr):
            return repr(int(expr))
        if isinstance(expr, prim.Variable) and expr.name in self.names.inames:
            return str(expr.name)
        if isinstance(expr, prim.Variable) and expr.name in self.names.sizes:
            return self.size(expr.name)
        if isinstance(expr, _INDEXING):
            parts = [self.index(part) for part in parts_of(expr)]
            divisor = getattr(expr, "denominator", 1)
            if not isinstance(divisor, (int, np.integer)) or divisor == 0:
                return self.apply(functions.LATE[type(expr)], *parts)
            return python_node(expr, parts)
        if isinstance(expr, prim.If):
            then, else_ = self.index(expr.then), self.index(expr.else_)
            return f"({then} if {self.condition(expr.condition)} else {else_})"
        value = self.value(expr)
        kind = value.kind if isinstance(value.kind, np.dtype) else dt.natural(value.kind)
        if kind not in dt.INTEGERS and kind != dt.BOOL:
            raise not_an_index(expr, kind)
        return f"int({value.source})"

    def stored(self, expr: Expression, dtype: DType) -> str:
        """Source of ``expr`` as a value of type ``dtype``."""
        if isinstance(expr, Record):
            kinds = dt.components_of(dtype).values()
            parts = (self.stored(p, kind) for p, kind in zip(expr.parts, kinds, strict=True))
            return f"({', '.join(parts)})"
        value = self.value(expr)
        if isinstance(value.kind, np.dtype) and value.kind.kind == "c" and dtype.kind != "c":
            raise TypeInferenceError(
                f"a value of type {value.kind} would lose its imaginary part in a variable of "
                f"type {dtype}",
                instead="write real(...)",
            )
        return self.converted(value, dtype)

    def condition(self, expr: Expression) -> str:
        """Source that is true where ``expr`` is not zero, as Python sees truth."""
        if isinstance(expr, (prim.LogicalAnd, prim.LogicalOr)):
            word = " and " if isinstance(expr, prim.LogicalAnd) else " or "
            return "(" + word.join(self.condition(c) for c in expr.children) + ")"
        if isinstance(expr, prim.LogicalNot):
            return f"(not {self.condition(expr.child)})"
        return self.value(expr).source

    def value(self, expr: Expression) -> Value:
        """``expr`` with its type."""
        if is_constant(expr):
            if isinstance(expr, np.generic):
                return Value(self.bind(expr), expr.dtype)
            return self.constant(expr)
        rule = _RULES.get(type(expr))
        if rule is None:
            raise TypeInferenceError(f"'{to_text(expr)}' cannot be evaluated")
        return rule(self, expr)

    def constant(self, value: Any) -> Value:
        """A number of Python's."""
        return Value(self.bind(value), value)

    def converted(self, value: Value, dtype: DType) -> str:
        """Source of a value in another type."""
        kind = value.kind
        if isinstance(kind, np.dtype):
            if kind == dtype:
                return value.source
            if dt.components_of(dtype):
                return self.apply(_componentwise(kind, dtype), value.source)
            convert = functions.converter(kind, dtype)
            return f"{self.bind(convert, 'convert', kind, dtype)}({value.source})"
        convert = functions.converter(None, dtype)
        if isinstance(kind, (Choice, RunTime)):
            return f"{self.bind(convert, 'convert', None, dtype)}({value.source})"
        return self.bind(convert(kind))

    def apply(self, function: Any, *sources: str) -> str:
        """Source of a call."""
        return f"{self.bind(function, 'function', function)}({', '.join(sources)})"

    def variable(self, expr: prim.Variable) -> Value:
        name = expr.name
        if name in self.names.inames:
            return Value(name, dt.INTEGER)
        if name in self.names.sizes:
            return Value(self.size(name), dt.INTEGER)
        return self.access(name, ())

    def subscript(self, expr: Any) -> Value:
        return self.access(expr.aggregate.name, index_tuple(expr))

    def access(self, name: str, indices: Sequence[Expression]) -> Value:
        dtype = self.names.dtypes.get(name)
        if dtype is None:
            raise TypeInferenceError(f"the type of '{name}' is not known")
        return Value(self.names.load(name, [self.index(i) for i in indices]), dtype)

    def binary(self, node: type, a: Value, b: Value, expr: Expression) -> Value:
        """One operation on two values."""

        asked = asked_of(expr)
        is_root = node is prim.Power and type(b.kind) is float and b.kind == 0.5
        if not isinstance(a.kind, np.dtype) and not isinstance(b.kind, np.dtype):
            kind = dt.fold(dt.FOLD[node], a.kind, b.kind, asked=asked)
            if isinstance(kind, (Choice, RunTime)):
                function = functions.root if is_root else functions.LATE.get(node, dt.FOLD[node])
                return Value(self.apply(function, a.source, b.source), kind)
            return self.constant(kind)
        common = dt.operation_type(node, a.kind, b.kind, asked)
        beside = self._beside_real(node, common, a, b)
        if beside is not None:
            return beside
        left, right = self.converted(a, common), self.converted(b, common)
        if is_root:
            return Value(self.apply(functions.root, left, right), common)
        if common == dt.BOOL and node in (prim.Sum, prim.Product):
            word = "|" if node is prim.Sum else "&"  # both sides are computed, as of all sums
            return Value(f"({left} {word} {right})", dt.BOOL)
        if node not in functions.OPERATORS:
            return Value(f"({left} {_SYMBOLS[node]} {right})", common)
        result = self.apply(functions.OPERATORS[node], left, right)
        if common in dt.SMALL_FLOATS:  # bfloat16 gives float32 in some operations
            result = f"{self.bind(common.type, 'type', common)}({result})"
        return Value(result, common)

    def _beside_real(self, node: type, common: DType, a: Value, b: Value) -> Value | None:
        """A complex number beside a real one, which stays real; None for all other operations."""
        real = [_is_real(x.kind) for x in (a, b)]
        function = functions.BESIDE_REAL.get((_SYMBOLS.get(node, ""), real[0]))
        if common not in dt.COMPLEXES or real[0] == real[1] or function is None:
            return None
        kinds = [dt.real_of(common) if is_real else common for is_real in real]
        sides = [self.converted(x, kind) for x, kind in zip((a, b), kinds, strict=True)]
        return Value(self.apply(function, *sides), common)

    def chain(self, expr: Any) -> Value:
        """Operations with any number of operands, from left to right."""
        node, (first, *rest) = type(expr), expr.children
        if node is prim.Product and rest and type(first) is int and first == -1:
            result = self.negated(self.value(rest.pop(0)))
        else:
            result = self.value(first)
        for number, child in enumerate(rest):
            subtracted = subtrahend(child) if node is prim.Sum else None
            if subtracted is None:
                found = self.binary(node, result, self.value(child), expr)
            else:
                found = self.binary(dt.Subtraction, result, self.value(subtracted), expr)
            result = _flat(result, found) if number else found
        return result

    def negated(self, value: Value) -> Value:
        if isinstance(value.kind, np.dtype) and value.kind == dt.BOOL:
            return Value(f"(-{self.converted(value, dt.INT64)})", dt.INT64)
        return self.unary("-", value, lambda: "")

    def bitwise_not(self, expr: prim.BitwiseNot) -> Value:
        return self.unary("~", self.value(expr.child), asked_of(expr))

    def unary(self, symbol: str, value: Value, asked: Callable[[], str]) -> Value:
        """A sign or a complement."""
        kind = value.kind
        if not isinstance(kind, np.dtype):
            kind = dt.fold(_UNARY[symbol], kind, asked=asked)
            if not isinstance(kind, (Choice, RunTime)):
                return self.constant(kind)
            return Value(self.apply(_UNARY[symbol], value.source), kind)
        return Value(f"({symbol}{value.source})", kind)

    def pair(self, expr: Any) -> Value:
        """An operation of two operands."""
        left, right = (getattr(expr, field) for field in type(expr).__match_args__)
        return self.binary(type(expr), self.value(left), self.value(right), expr)

    def comparison(self, expr: prim.Comparison) -> Value:
        a, b = self.value(expr.left), self.value(expr.right)
        dt.check_comparison(a.kind, expr.operator, b.kind, asked_of(expr))
        bool_ = self.bind(np.bool_, "bool")
        return Value(f"{bool_}({a.source} {expr.operator} {b.source})", dt.BOOL)

    def logical(self, expr: Any) -> Value:
        return Value(f"{self.bind(np.bool_, 'bool')}({self.condition(expr)})", dt.BOOL)

    def conditional(self, expr: prim.If) -> Value:
        condition = self.condition(expr.condition)
        then, else_ = self.value(expr.then), self.value(expr.else_)
        if isinstance(then.kind, np.dtype) or isinstance(else_.kind, np.dtype):
            common = dt.promote(then.kind, else_.kind)
            a, b = self.converted(then, common), self.converted(else_, common)
            return Value(f"({a} if {condition} else {b})", common)
        return Value(
            f"({then.source} if {condition} else {else_.source})",
            Choice(None, then.kind, else_.kind),
        )

    def cast(self, expr: TypeCast) -> Value:
        return Value(self.converted(self.value(expr.operand), expr.dtype), expr.dtype)

    def component(self, expr: Component) -> Value:
        record = self.value(expr.operand)
        kinds = dt.components_of(record.kind)
        return Value(f"{record.source}[{[*kinds].index(expr.name)}]", kinds[expr.name])

    def call(self, expr: Any) -> Value:
        name = expr.function.name
        arguments = [self.value(p) for p in expr.parameters]
        if isinstance(expr.function, OwnFunction):
            own = expr.function.overload([a.kind for a in arguments], asked_of(expr))
            assert self.names.own is not None, "what a function means calls no other"
            given = map(self.converted, arguments, own.types)
            return Value(self.apply(self.names.own(own), *given), own.result)
        if name == "pow" and len(arguments) == 2:
            return self.binary(prim.Power, arguments[0], arguments[1], expr)
        result = call_type(name, [a.kind for a in arguments], asked_of(expr))
        if not any(isinstance(a.kind, np.dtype) for a in arguments) and any(
            isinstance(a.kind, RunTime) for a in arguments
        ):
            kinds = [dt.natural(a.kind) for a in arguments]  # type: ignore[arg-type]
            typed = [
                Value(self.converted(a, kind), kind)
                for a, kind in zip(arguments, kinds, strict=True)
            ]
            strong = self._called(name, typed, expr)
            return (
                strong if isinstance(result, np.dtype) else Value(f"{strong.source}.item()", result)
            )
        return self._called(name, arguments, expr)

    def _called(self, name: str, arguments: Sequence[Value], expr: Any) -> Value:
        result = call_type(name, [a.kind for a in arguments], asked_of(expr))
        if not isinstance(result, np.dtype):
            if isinstance(result, Choice):
                raise TypeInferenceError(
                    f"'{to_text(expr)}' has no type",
                    instead="cast the argument, as in float32(...)",
                )
            return self.constant(result)
        common = arguments[0].kind
        for argument in arguments[1:]:
            common = dt.promote(common, argument.kind)
        assert isinstance(common, np.dtype)
        if common in dt.INTEGERS or common == dt.BOOL:
            if name in _ROUNDING or (name in _THEMSELVES and common == dt.BOOL):
                return Value(self.converted(arguments[0], common), common)
            compute = common if name in _IN_COMMON_TYPE | _PREDICATES else result
        else:
            compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
        sources = []
        for argument in arguments:
            exact = Value(self.converted(argument, common), common)
            sources.append(self.converted(exact, compute))
        source = self.apply(functions.FUNCTIONS[name], *sources)
        convert = functions.converter(None, result)
        return Value(f"{self.bind(convert, 'convert', None, result)}({source})", result)


def _is_real(kind: Typed) -> bool:
    return kind not in dt.COMPLEXES if isinstance(kind, np.dtype) else not dt.is_complex(kind)


def _componentwise(source: DType, target: DType) -> Callable[[Any], Any]:
    """A function that converts records of one type to another."""
    kinds = (dt.components_of(t).values() for t in (source, target))
    convert = [functions.converter(*pair) for pair in zip(*kinds, strict=True)]
    return lambda record: tuple(f(x) for f, x in zip(convert, record, strict=True))


def _flat(before: Value, now: Value) -> Value:
    """``((a + b) + c)`` as ``(a + b + c)``: Python takes 200 nested parentheses at most.

    ``before`` is the same chain without its last operand.
    """
    inner = before.source
    if not inner.startswith("(") or not now.source.startswith(f"({inner} "):
        return now
    return Value(f"{inner[:-1]}{now.source[1 + len(inner) :]}", now.kind)


_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "~": functions.inverted}
_SYMBOLS = {**SYMBOLS, dt.Subtraction: "-", prim.Quotient: "/"}

_RULES: dict[type, Callable[[Translator, Any], Value]] = {
    prim.Variable: Translator.variable,
    prim.Subscript: Translator.subscript,
    **dict.fromkeys((prim.Sum, prim.Product, prim.Min, prim.Max), Translator.chain),
    **dict.fromkeys((prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor), Translator.chain),
    **dict.fromkeys((prim.Quotient, prim.FloorDiv, prim.Remainder), Translator.pair),
    **dict.fromkeys((prim.Power, prim.LeftShift, prim.RightShift), Translator.pair),
    prim.BitwiseNot: Translator.bitwise_not,
    prim.Comparison: Translator.comparison,
    **dict.fromkeys((prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot), Translator.logical),
    prim.If: Translator.conditional,
    prim.Call: Translator.call,
    TypeCast: Translator.cast,
    Component: Translator.component,
}
