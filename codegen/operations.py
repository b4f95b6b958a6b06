"""Operations on numbers in CUDA C: sums, products, divisions, bits, shifts, extrema.

What C and NumPy do differently is made explicit: integers narrower than ``int`` are
reduced, operands are cast where C would compute in another type, division and
remainder of possibly negative integers go through helper functions, and so do
``min`` and ``max`` of floating-point numbers, which give NaN if an operand is
one.  Arithmetic of a complex with a real number leaves the imaginary part of
the real one out instead of computing with a zero.  Integers that may overflow
are computed with unsigned ones (:mod:`.wrapping`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import pymbolic.primitives as prim

from loopkit import _folding
from loopkit import _promotion as dt
from loopkit._expression import parts_of
from loopkit._nodes import Expression, subtrahend
from loopkit._types import asked_of
from loopkit.codegen import operands as op
from loopkit.codegen import wrapping
from loopkit.codegen.c.tree import Binary, Call, CExpression, Unary
from loopkit.codegen.operands import Operand, Value


class OperationLowering(ABC):
    """Lowers operations on numbers; a subclass defines the names in them."""

    @abstractmethod
    def dtype_of(self, name: str) -> dt.DType:
        """The type of a variable, or of an array's elements."""

    @abstractmethod
    def named(self, name: str, indices: tuple[Expression, ...] = ()) -> CExpression:
        """A variable in C, or an array's element at index expressions."""

    def is_weak(self, name: str) -> bool:
        """Whether a name is an iname's or a size's: a number without a type of its own."""
        return False

    def is_nonnegative(self, expr: Expression) -> bool:
        """Whether integers are proven nonnegative: then C's ``/`` and ``%`` round as NumPy's do."""
        return False

    def largest(self, expr: Expression) -> int | None:
        """The proven largest magnitude of an integer; if it is small, nothing can overflow."""
        return None

    def holds(self, expr: Expression) -> bool:
        """Whether an integer made of inames and sizes fits into 64 bits."""
        return True

    @abstractmethod
    def rec(self, expr: Expression) -> Operand:
        """``expr`` as a value with its type, or as the constant that it is."""

    def operation(
        self, node: type, a: Operand, b: Operand, of: Expression, asked: Callable[[], str]
    ) -> Operand:
        """Two operands combined; ``of`` is the expression that this is."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return dt.fold(dt.FOLD[node], a, b, asked=asked)  # type: ignore[no-any-return]
        if not (op.is_late(a) and op.is_late(b)):
            common = dt.operation_type(node, op.typed(a), op.typed(b), asked)
            return _OPERATIONS[node](self, node, a, b, common, of)
        weak = dt.run_time(dt.fold(dt.FOLD[node], op.typed(a), op.typed(b), asked=asked))
        common = self.late(weak, (a, b), of)
        return self.late_value(_OPERATIONS[node](self, node, a, b, common, of), weak, of)

    def late(self, kind: dt.Typed, operands: Sequence[Operand], of: Expression) -> dt.DType:
        """The type in which C computes a Python number at run time."""
        if kind != dt.INTEGER:
            return dt.natural(kind)  # type: ignore[arg-type]
        long = any(
            o.dtype.itemsize == 8 if isinstance(o, Value) else not _is_int(o) for o in operands
        )
        most = None if long else self.largest(of)
        return dt.INT64 if most is None or most >= 2**31 else dt.INT32

    def late_value(self, value: Value, weak: dt.RunTime, expr: Expression) -> Value:
        """The value of an expression that is a number of Python's."""
        value.weak = weak
        is_known = value.most is not None and value.most < 2**63
        is_long = weak == dt.INTEGER and value.dtype.itemsize == 8
        if is_long and not is_known and not self.holds(expr):
            value.beyond = expr
        return value

    def sum(self, expr: prim.Sum) -> Operand:
        total = self.rec(expr.children[0])
        for number, child in enumerate(expr.children[1:], 2):
            node, term = self._term(child, total)
            part = prim.Sum(expr.children[:number])
            total = self.operation(node, total, term, part, asked_of(expr))
        return total

    def _term(self, child: Expression, total: Operand) -> tuple[type, Operand]:
        """What a term of a sum adds to those before it, or takes away from them."""
        taken = subtrahend(child)
        if taken is None:
            term = self.rec(child)
            taken = _without_minus(child, term, total)
            if taken is None:
                return prim.Sum, term
        return dt.Subtraction, self.rec(taken)

    def _added(self, node: type, a: Operand, b: Operand, common: dt.DType, of: Expression) -> Value:
        if common == dt.BOOL:
            return op.binary(op.truth_of(a), "||", op.truth_of(b), dt.BOOL)
        if node is prim.Sum and type(b) in (int, float) and b < 0:  # type: ignore[operator]
            return self._arithmetic("-", a, -b, common, of)  # type: ignore[operator]
        return self._arithmetic("+" if node is prim.Sum else "-", a, b, common, of)

    def _arithmetic(
        self, symbol: str, a: Operand, b: Operand, common: dt.DType, of: Expression
    ) -> Value:
        left, right = op.unify(a, b, common)
        if common not in dt.INTEGERS:
            return op.binary(left, symbol, right, common)
        return wrapping.combined(symbol, (left, right), (a, b), common, lambda: self.largest(of))

    def product(self, expr: prim.Product) -> Operand:
        first = expr.children[0]
        if type(first) is int and first == -1 and len(expr.children) > 1:
            negated = self._negated(self.rec(expr.children[1]), asked_of(expr))
            return self._from_left(negated, 2, expr)
        return self.from_left(expr)

    def from_left(self, expr: Any) -> Operand:
        """Operands combined one after another."""
        return self._from_left(self.rec(expr.children[0]), 1, expr)

    def _from_left(self, result: Operand, count: int, expr: Any) -> Operand:
        """``result``, of the first operands, combined with the others."""
        for number, child in enumerate(expr.children[count:], count + 1):
            part = type(expr)(expr.children[:number])
            result = self.operation(type(expr), result, self.rec(child), part, asked_of(expr))
        return result

    def _multiplied(
        self, node: type, a: Operand, b: Operand, common: dt.DType, of: Expression
    ) -> Value:
        if common == dt.BOOL:
            return op.binary(op.truth_of(a), "&&", op.truth_of(b), dt.BOOL)
        return self._arithmetic("*", a, b, common, of)

    @staticmethod
    def _negated(operand: Operand, asked: Callable[[], str]) -> Operand:
        if not isinstance(operand, Value):
            return dt.fold(_folding.negated, operand, asked=asked)  # type: ignore[no-any-return]
        if operand.dtype == dt.BOOL:  # -1 is an integer, and so is the result
            operand = op.cast(operand, dt.INT64)
        dtype, most, weak, beyond = operand.dtype, None, operand.weak, operand.beyond
        if dtype in dt.INTEGERS:
            most = wrapping.magnitude(operand, dtype)
            operand = wrapping.guarded(operand, most, dtype)
        return Value(
            Unary("-", operand.node),
            dtype,
            dtype in op.NARROW or operand.unsigned,
            unsigned=operand.unsigned,
            most=most if dtype in op.SIGNED else None,
            weak=weak,
            beyond=beyond,
        )

    def pair(self, expr: Any) -> Operand:
        """A division or a shift."""
        a, b = map(self.rec, parts_of(expr))
        return self.operation(type(expr), a, b, expr, asked_of(expr))

    def _quotient(
        self, node: type, a: Operand, b: Operand, common: dt.DType, of: Expression
    ) -> Value:
        left, right = op.unify(a, b, common)
        return op.binary(left, "/", right, common)

    def _floored(self, node: type, a: Operand, b: Operand, common: dt.DType, of: Any) -> Value:
        """A quotient that is rounded down, or the remainder of it."""
        is_floor = node is prim.FloorDiv
        name = "lk_floordiv" if is_floor else "lk_mod"
        if op.is_late(a) and op.is_late(b):
            op.whole(a), op.whole(b)
        if common in dt.FLOATS:
            return op.function_of(name, (a, b), common)
        before = (a, b)
        a, b = op.narrowed(a, common), op.narrowed(b, common)
        is_whole = before == (a, b)  # else signs are no longer those of the expressions
        left, right = (op.reduced(x) for x in op.unify(a, b, common))
        most = None
        if type(b) is int and b > 0:
            most = wrapping.magnitude(left, common) // b + 1 if is_floor else b - 1
        if is_whole and self._divides_like_c(of, common, b):
            return Value(Binary("/" if is_floor else "%", left.node, right.node), common, most=most)
        if type(b) is int and b > 0 and b & (b - 1) == 0:
            # Shifting and masking round down for negative numbers, too.
            symbol, by = (">>", b.bit_length() - 1) if is_floor else ("&", b - 1)
            return Value(Binary(symbol, left.node, op.integer(by)), common, most=most)
        wide = common in op.NARROW and common not in dt.UNSIGNED
        return Value(Call(name, (left.node, right.node)), common, wide, most=most)

    def _divides_like_c(self, expr: Any, common: dt.DType, divisor: Operand) -> bool:
        if isinstance(divisor, Value):
            positive = self.is_nonnegative(prim.Sum((expr.denominator, -1)))
        else:
            positive = type(divisor) is int and divisor > 0
        return positive and (common in dt.UNSIGNED or self.is_nonnegative(expr.numerator))

    def _bits(self, node: type, a: Operand, b: Operand, common: dt.DType, of: Expression) -> Value:
        left, right = op.unify(op.narrowed(a, common), op.narrowed(b, common), common)
        wide, unsigned = left.wide or right.wide, left.unsigned or right.unsigned
        bits = Binary(BITWISE[node], left.node, right.node)
        return Value(bits, common, wide, unsigned=unsigned)

    def bitwise_not(self, expr: prim.BitwiseNot) -> Operand:
        operand = self.rec(expr.child)
        if not isinstance(operand, Value):
            return dt.fold(_folding.invert, operand, asked=asked_of(expr))  # type: ignore[no-any-return]
        if operand.dtype == dt.BOOL:
            return Value(Unary("!", operand.node), dt.BOOL)
        if operand.dtype not in dt.INTEGERS:
            raise dt.refuse("'~'", operand.dtype, asked_of(expr)())
        weak = operand.weak
        if weak is not None:
            operand = typed_as_computed(operand, is_wide=True)
        wide = operand.wide or operand.dtype in op.NARROW
        node, unsigned = Unary("~", operand.node), operand.unsigned
        value = Value(node, operand.dtype, wide, unsigned=unsigned)
        return value if weak is None else self.late_value(value, weak, expr)

    def _shifted(
        self, node: type, a: Operand, count: Operand, common: dt.DType, of: Expression
    ) -> Value:
        is_left = node is prim.LeftShift
        if op.is_late(a) and op.is_late(count):
            common = dt.INT64
            op.whole(count if is_left else a), op.whole(count)
        left = op.reduced(op.exact(a, common))
        if type(count) is int and 0 <= count < 8 * common.itemsize:
            shifted = Binary("<<" if is_left else ">>", left.node, op.integer(count))
            return Value(shifted, common, is_left and common in op.NARROW)
        if isinstance(count, Value):
            # A whole number of more bits is the count that its last bits are.
            is_wide = count.weak is not None and count.dtype.itemsize > common.itemsize
            count = op.cast(count, common) if is_wide or count.dtype == dt.BOOL else count
        right = op.reduced(op.beside(op.narrowed(count, common), common))
        return op.called("lk_shl" if is_left else "lk_shr", (left, right), common)

    def extrema(self, expr: Any) -> Operand:
        # Nested to the right, as min(a, min(b, c)).
        result = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = self.operation(type(expr), self.rec(child), result, expr, asked_of(expr))
        return result

    def extremum(
        self, node: type, a: Operand, b: Operand, common: dt.DType, of: Expression = None
    ) -> Value:
        """The larger or smaller of two operands, in the type ``common``."""
        if common == dt.BOOL:
            symbol = "||" if node is prim.Max else "&&"
            return op.binary(op.truth_of(a), symbol, op.truth_of(b), dt.BOOL)
        if op.is_late(a) and op.is_late(b):
            a, b = op.whole(a), op.whole(b)
        name = "max" if node is prim.Max else "min"
        return op.function_of("lk_" + name if common in dt.FLOATS else name, (a, b), common)


def typed_as_computed(operand: Value, *, is_wide: bool) -> Value:
    """A weak value in the type in which C computes it; with ``is_wide`` the widest of its kind."""
    assert operand.weak is not None
    value = op.exact(operand, dt.natural(operand.weak)) if is_wide else operand
    unsigned, most = value.unsigned, operand.most
    return Value(value.node, value.dtype, value.wide, unsigned=unsigned, most=most)


def _is_int(value: Operand) -> bool:
    return type(value) in (bool, int) and dt.fits(int(value), dt.INT32)  # type: ignore[arg-type]


def _without_minus(child: Expression, term: Operand, total: Operand) -> Expression | None:
    """``3*x`` for a term ``-3*x`` that may as well be subtracted.

    An integer may not that wraps around in fewer bits than the sum: -128 is an ``int8``, 128 none.
    """
    if not isinstance(child, prim.Product):
        return None
    first = child.children[0]
    if type(first) not in (int, float) or first >= 0:
        return None
    if isinstance(term, Value) and term.dtype in dt.INTEGERS and not op.is_late(term):
        whole = dt.promote(op.typed(total), op.typed(term))
        if whole != term.dtype or not dt.fits(-first, term.dtype):
            return None
    return prim.Product((-first, *child.children[1:]))


BITWISE = {prim.BitwiseAnd: "&", prim.BitwiseOr: "|", prim.BitwiseXor: "^"}
_OPERATIONS: dict[
    type, Callable[[OperationLowering, type, Operand, Operand, dt.DType, Any], Value]
] = {
    prim.Sum: OperationLowering._added,
    dt.Subtraction: OperationLowering._added,
    prim.Product: OperationLowering._multiplied,
    prim.Quotient: OperationLowering._quotient,
    **dict.fromkeys((prim.FloorDiv, prim.Remainder), OperationLowering._floored),
    **dict.fromkeys(BITWISE, OperationLowering._bits),
    **dict.fromkeys((prim.LeftShift, prim.RightShift), OperationLowering._shifted),
    **dict.fromkeys((prim.Min, prim.Max), OperationLowering.extremum),
}
"""How two operands are combined in the type that C computes in."""
