"""Expressions of the kernel as typed terms, by the language's rules of promotion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _folding
from loopkit import _promotion as dt
from loopkit._device_functions import OwnFunction
from loopkit._expression import index_tuple, parts_of
from loopkit._functions import call_type
from loopkit._kernel import Kernel, Statement
from loopkit._make.operation import operands
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Component, Expression, Record, TypeCast, subtrahend
from loopkit.codegen.c.types import WHOLE, in_registers
from loopkit.codegen.proof import term_makers as ops
from loopkit.codegen.proof import typed_computations as terms
from loopkit.codegen.proof import value_functions as vf
from loopkit.codegen.proof.typed_computations import Read, Term
from loopkit.codegen.proof.value_functions import Late, Value


class KernelValues:
    """Translates expressions; ``dtypes`` has the types of all names.

    Names that are ``bound`` are replaced by terms.
    """

    def __init__(
        self,
        kernel: Kernel,
        dtypes: Mapping[str, dt.DType],
        bound: Mapping[str, Term] = MappingProxyType({}),
    ) -> None:
        self.kernel = kernel
        self.dtypes = {**dtypes, **{name: term.dtype for name, term in bound.items()}}
        self.operations = operations_of(kernel.reductions)
        self.bound = bound

    def assigned(self, statement: Statement) -> Term:
        """What a statement leaves in the cell that it writes."""
        name, _ = statement.write
        dtype = self.dtypes[name]
        if dt.components_of(dtype):
            return self.record(statement, dtype)
        if statement.operation is None:
            return vf.typed(dtype, self.value(statement.rhs))
        if any(statement.operation == own.name for own in self.kernel.reductions):
            own: Any = self.operations[statement.operation]
            return vf.typed(dtype, self.value(own.combine(statement.lhs, statement.rhs)))
        old = vf.as_term(self.value(statement.lhs), dtype)
        if statement.operation in ("any", "all"):
            parts = [ops.truth(old), self.condition(statement.rhs)]
            return ops.cast(dtype, ops.logic(statement.operation, parts))
        value = self.value(statement.rhs)
        if dtype == dt.BOOL and statement.operation in ("sum", "product"):
            word = "any" if statement.operation == "sum" else "all"
            return ops.logic(word, [old, vf.truth_of(value)])
        new = vf.typed(dtype, value)
        if statement.operation == "sum":
            return ops.add(dtype, old, new)
        if statement.operation == "product":
            return ops.multiply(dtype, old, new)
        if statement.operation.startswith("bit_"):
            return ops.bits(statement.operation.removeprefix("bit_"), dtype, old, new)
        return vf.extremum(statement.operation, dtype, old, new)

    def record(self, statement: Statement, dtype: dt.DType) -> Term:
        """The components that a statement leaves in a record."""
        kinds = dt.components_of(dtype).values()
        rhs = statement.rhs
        if isinstance(rhs, Record):
            given = zip(kinds, rhs.parts, strict=True)
            found = [vf.typed(kind, self.value(part)) for kind, part in given]
        else:
            given = zip(kinds, ops.components(vf.as_term(self.value(rhs), dtype)), strict=True)
            found = [vf.typed(kind, part) for kind, part in given]
        if statement.operation is not None:
            operation = self.operations[statement.operation]
            old = ops.components(vf.as_term(self.value(statement.lhs), dtype))
            names = (v.name for side in operands(operation.components) for v in side)
            bound = dict(zip(names, (*old, *found), strict=True))
            inner = KernelValues(self.kernel, self.dtypes, bound)
            parts = zip(kinds, operation.joined(dtype), strict=True)
            found = [vf.typed(kind, inner.value(part)) for kind, part in parts]
        return Term("record", dtype, tuple(found))

    def component(self, expr: Component) -> Value:
        """One component of a record."""
        found = self.value(expr.operand)
        assert isinstance(found, Term)
        return ops.component(found, expr.name)

    def condition(self, expr: Expression) -> Term:
        """An expression as a condition."""
        return vf.truth_of(self.value(expr))

    def value(self, expr: Expression) -> Value:
        """``expr`` as a term, or as the constant that it is."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            dtype = np.dtype(expr.dtype)
            return terms.const(float(expr) if dtype in dt.SMALL_FLOATS else expr.item(), dtype)
        raise NotImplementedError(f"'{expr}'")

    def constant(self, expr: dt.Weak) -> Value:
        return expr

    def variable(self, expr: prim.Variable) -> Value:
        if expr.name in self.bound:
            return self.bound[expr.name]
        if self.kernel.is_array(expr.name):
            return Term("read", self.dtypes[expr.name], (), Read(expr.name, (), False))
        term = Term("name", self.dtypes[expr.name], (), expr.name)
        return Late(term, dt.INTEGER) if term.dtype in dt.INTEGERS else term

    def subscript(self, expr: Any) -> Value:
        name = expr.aggregate.name
        return Term("read", self.dtypes[name], (), Read(name, index_tuple(expr), False))

    def binary(self, node: type, a: Value, b: Value) -> Value:
        """One operation on two values."""
        if vf.is_late(a, b):
            kind = dt.run_time(dt.fold(dt.FOLD[node], vf.kind_of(a), vf.kind_of(b), asked=vf.asked))
            wide = dt.natural(kind)
            # A real number beside a complex one stays real.
            parts = [dt.COMPLEX128 if vf.has_imaginary(x) else dt.FLOAT64 for x in (a, b)]
            kinds = parts if wide in dt.COMPLEXES else [wide, wide]
            sides = [vf.typed(kind, x) for kind, x in zip(kinds, (a, b), strict=True)]
            return Late(vf.as_term(self.binary(node, *sides), wide), kind)
        if not isinstance(a, Term) and not isinstance(b, Term):
            return dt.fold(dt.FOLD[node], a, b, asked=vf.asked)  # type: ignore[no-any-return]
        common = dt.operation_type(node, vf.kind_of(a), vf.kind_of(b), vf.asked)
        if node in (prim.FloorDiv, prim.Remainder):
            return self.division("fdiv" if node is prim.FloorDiv else "mod", common, a, b)
        if node in _SHIFTS:
            count = b if isinstance(b, Term) else vf.typed(common, b)
            return ops.shift(_SHIFTS[node], common, vf.typed(common, a), count)
        if node in (prim.Min, prim.Max):
            left, right = vf.typed(common, a), vf.typed(common, b)
            return vf.extremum("min" if node is prim.Min else "max", common, left, right)
        if common == dt.BOOL and node in (prim.Sum, prim.Product):
            word = "any" if node is prim.Sum else "all"
            return ops.logic(word, [vf.truth_of(a), vf.truth_of(b)])
        left, right = vf.operands(common, a, b)
        if node in _BITS:
            return ops.bits(_BITS[node], common, left, right)
        return _ARITHMETIC[node](common, left, right)

    def division(self, word: str, common: dt.DType, a: Value, b: Value) -> Term:
        if common in dt.FLOATS:
            compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
            sides = [ops.cast(compute, vf.typed(common, x)) for x in (a, b)]
            return vf.converted(common, ops.call(word, compute, *sides))
        compute = in_registers(common)
        left, right = (ops.cast(compute, vf.typed(common, x)) for x in (a, b))
        return ops.cast(common, ops.quotient(word, compute, left, right))

    def chain(self, expr: Any) -> Value:
        result = self.value(expr.children[0])
        for child in expr.children[1:]:
            result = self.binary(type(expr), result, self.value(child))
        return result

    def extrema(self, expr: Any) -> Value:
        result = self.value(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = self.binary(type(expr), self.value(child), result)
        return result

    def sum(self, expr: prim.Sum) -> Value:
        total = self.value(expr.children[0])
        for child in expr.children[1:]:
            subtracted = subtrahend(child)
            if subtracted is None:
                total = self.binary(prim.Sum, total, self.value(child))
            else:
                total = self.binary(dt.Subtraction, total, self.value(subtracted))
        return total

    def product(self, expr: prim.Product) -> Value:
        first, *rest = expr.children
        if rest and type(first) is int and first == -1:
            result = self.negated(self.value(rest.pop(0)))
        else:
            result = self.value(first)
        for child in rest:
            result = self.binary(prim.Product, result, self.value(child))
        return result

    def negated(self, value: Value) -> Value:
        if isinstance(value, Late):
            wide = dt.natural(value.kind)
            return Late(ops.neg(wide, vf.typed(wide, value)), value.kind)
        if not isinstance(value, Term):
            return dt.fold(_folding.negated, value, asked=vf.asked)  # type: ignore[no-any-return]
        if value.dtype == dt.BOOL:
            value = ops.cast(dt.INT64, value)
        return ops.neg(value.dtype, value)

    def pair(self, expr: Any) -> Value:
        """A division or a shift."""
        return self.binary(type(expr), *map(self.value, parts_of(expr)))

    def inverted(self, expr: prim.BitwiseNot) -> Value:
        value = self.value(expr.child)
        if isinstance(value, Late):
            return Late(ops.invert(dt.INT64, vf.typed(dt.INT64, value)), value.kind)
        if not isinstance(value, Term):
            return dt.fold(_folding.invert, value, asked=vf.asked)  # type: ignore[no-any-return]
        if value.dtype == dt.BOOL:
            return ops.negation(value)
        return ops.invert(value.dtype, value)

    def power(self, expr: prim.Power) -> Value:
        return self.called("pow", [self.value(expr.base), self.value(expr.exponent)])

    def call(self, expr: Any) -> Value:
        if isinstance(expr.function, OwnFunction):
            values = [self.value(p) for p in expr.parameters]
            own = expr.function.overload([vf.kind_of(v) for v in values], vf.asked)
            return ops.own_call(own.c_name, own.result, *map(vf.typed, own.types, values))
        return self.called(expr.function.name, [self.value(p) for p in expr.parameters])

    def called(self, name: str, values: list[Value]) -> Value:
        """A function; of numbers without a type it has none either."""
        if not vf.is_late(*values):
            return vf.call_of(name, values)
        kind = call_type(name, [vf.kind_of(v) for v in values], vf.asked)
        result = vf.call_of(name, [self._strong(v) for v in values])
        if isinstance(kind, np.dtype):
            return result
        return Late(vf.as_term(result, dt.natural(kind)), dt.run_time(kind))

    def _strong(self, value: Value) -> Value:
        return vf.typed(dt.natural(value.kind), value) if isinstance(value, Late) else value

    def comparison(self, expr: prim.Comparison) -> Value:
        a, b, operator = self.value(expr.left), self.value(expr.right), expr.operator
        if vf.is_late(a, b):
            wide = dt.natural(vf.kind_of_both(a, b))
            return ops.compare(operator, vf.typed(wide, a), vf.typed(wide, b))
        a, b = _beside_integer(a, b), _beside_integer(b, a)
        if not isinstance(a, Term) and not isinstance(b, Term):
            return vf.typed(dt.BOOL, dt.fold(dt.COMPARE[operator], a, b, asked=vf.asked))
        for one, two, order in ((a, b, (0, 1)), (b, a, (1, 0))):
            if isinstance(one, Term) and one.dtype in dt.INTEGERS and type(two) is int:
                if not dt.fits(two, one.dtype):  # known, whatever the other is
                    low, high = order if two > 0 else order[::-1]
                    return terms.const(dt.COMPARE[operator](low, high), dt.BOOL)
                return ops.compare(
                    operator,
                    *(x if isinstance(x, Term) else terms.const(x, dt.INT64) for x in (a, b)),
                )
        kinds = [vf.kind_of(a), vf.kind_of(b)]
        if isinstance(a, Term) and isinstance(b, Term) and WHOLE.issuperset(kinds):
            return ops.compare(operator, a, b)
        if type(a) in (bool, int) or type(b) in (bool, int):
            kinds = [dt.INT64 if k == dt.BOOL else k for k in kinds]
        common = dt.promote(*kinds)
        return ops.compare(operator, vf.typed(common, a), vf.typed(common, b))

    def logical(self, expr: Any) -> Value:
        word = "all" if isinstance(expr, prim.LogicalAnd) else "any"
        return ops.logic(word, [self.condition(c) for c in expr.children])

    def logical_not(self, expr: prim.LogicalNot) -> Value:
        return ops.negation(self.condition(expr.child))

    def conditional(self, expr: prim.If) -> Value:
        condition = self.condition(expr.condition)
        then, other = self.value(expr.then), self.value(expr.else_)
        if vf.is_late(then, other):
            kind = vf.kind_of_both(then, other)
            sides = (vf.typed(dt.natural(kind), v) for v in (then, other))
            return Late(ops.choice(condition, *sides), kind)
        if not isinstance(then, (Term, Late)) and not isinstance(other, (Term, Late)):
            return dt.Choice(condition, then, other)
        common = dt.promote(vf.kind_of(then), vf.kind_of(other))
        return ops.choice(condition, vf.typed(common, then), vf.typed(common, other))

    def type_cast(self, expr: TypeCast) -> Value:
        return vf.typed(expr.dtype, self.value(expr.operand))


def _beside_integer(x: Value, other: Value) -> Value:
    """An integer without a type, compared with one that has some, has its value."""
    is_beside = isinstance(other, Term) and other.dtype in dt.INTEGERS
    return x.term if isinstance(x, Late) and x.kind == dt.INTEGER and is_beside else x


_SHIFTS: dict[type, str] = {prim.LeftShift: "shl", prim.RightShift: "shr"}
_BITS: dict[type, str] = {
    prim.BitwiseAnd: "and",
    prim.BitwiseOr: "or",
    prim.BitwiseXor: "xor",
}
_ARITHMETIC: dict[type, Callable[[dt.DType, Term, Term], Term]] = {
    prim.Sum: ops.add,
    dt.Subtraction: ops.subtract,
    prim.Product: ops.multiply,
    prim.Quotient: ops.divide,
}
_RULES: dict[type, Callable[[KernelValues, Any], Value]] = {
    **dict.fromkeys((bool, int, float, complex), KernelValues.constant),
    prim.Variable: KernelValues.variable,
    prim.Subscript: KernelValues.subscript,
    prim.Sum: KernelValues.sum,
    prim.Product: KernelValues.product,
    **dict.fromkeys((prim.Quotient, prim.FloorDiv, prim.Remainder), KernelValues.pair),
    prim.Power: KernelValues.power,
    **dict.fromkeys((prim.LeftShift, prim.RightShift), KernelValues.pair),
    **dict.fromkeys((prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor), KernelValues.chain),
    **dict.fromkeys((prim.Min, prim.Max), KernelValues.extrema),
    prim.BitwiseNot: KernelValues.inverted,
    prim.Comparison: KernelValues.comparison,
    **dict.fromkeys((prim.LogicalAnd, prim.LogicalOr), KernelValues.logical),
    prim.LogicalNot: KernelValues.logical_not,
    prim.If: KernelValues.conditional,
    prim.Call: KernelValues.call,
    TypeCast: KernelValues.type_cast,
    Component: KernelValues.component,
}
