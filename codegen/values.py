"""Values and assignments of a kernel in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._arrays import AddressSpace, DType, ValueArg
from loopkit._errors import LoopkitError, TypeInferenceError
from loopkit._expression import is_integer_arithmetic, to_text, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._promotion import dtype_name
from loopkit.codegen.c.atomics import function_of, operator_of
from loopkit.codegen.c.tree import Assign, Call, CExpression, Element, Name, join_name
from loopkit.codegen.expressions import ExpressionLowering, concrete_type
from loopkit.codegen.operands import whole
from loopkit.codegen.widths import Ranges

Access = Callable[[str, tuple[Expression, ...]], Name | Element]


class ValueLowering(ExpressionLowering):
    """Lowers typed expressions and whole assignments of one kernel."""

    def __init__(self, kernel: Kernel, ranges: Ranges, access: Access) -> None:
        self.kernel = kernel
        self.ranges = ranges
        self.access = access

    def dtype_of(self, name: str) -> DType:
        """The type of a name in the generated code."""
        kernel = self.kernel
        found = kernel.temporary_by_name.get(name) or kernel.arg_by_name.get(name)
        if found is None or (isinstance(found, ValueArg) and found.dtype is None):
            return self.ranges.dtype_of(name)
        assert found.dtype is not None
        return np.dtype(found.dtype)

    def named(self, name: str, indices: tuple[Expression, ...] = ()) -> CExpression:
        """A bare name is an iname, a size, or a scalar."""
        return self.access(name, indices) if self.kernel.is_array(name) else Name(name)

    def is_weak(self, name: str) -> bool:
        return name in self.kernel.integers

    def is_nonnegative(self, expr: Expression) -> bool:
        return self.ranges.is_nonnegative(expr)

    def holds(self, expr: Expression) -> bool:
        return self.ranges.holds(expr)

    def type_in_c(self, expr: Expression) -> DType:
        """The type in which C computes an integer that data make."""
        return concrete_type(whole(self.rec(expr)))

    def assignment(self, statement: Statement, comment: str) -> Assign:
        """What executes one statement."""
        target = self.access(*statement.write)
        atomic = ""
        try:
            if statement.is_atomic and self.is_shared(statement.written):
                operator, value, atomic = self._atomic(statement)
            else:
                operator, value = self._update(statement, target)
        except LoopkitError as error:
            if not error.asked:
                error.asked = (
                    f"in {statement.id}: {to_text(statement.lhs)} = {to_text(statement.rhs)}"
                )
            raise
        return Assign(target, operator, value, statement.id, atomic, comment=comment)

    def is_shared(self, name: str) -> bool:
        """Whether several threads see what ``name`` holds: of private data each has its own."""
        temporary = self.kernel.temporary_by_name.get(name)
        return temporary is None or temporary.address_space is not AddressSpace.PRIVATE

    def _atomic(self, statement: Statement) -> tuple[str, CExpression, str]:
        """The operator of an atomic update, its right side, and the function that makes it."""
        dtype = self.dtype_of(statement.written)
        assert statement.operation is not None
        operator = operator_of(statement.operation, dtype)
        function = function_of(operator, dtype)
        if function is None:
            raise TypeInferenceError(
                f"nothing updates '{statement.written}' atomically by a {statement.operation} "
                f"of {dtype_name(dtype)}"
            )
        return operator, self(statement.rhs, dtype), function

    def _update(self, statement: Statement, target: CExpression) -> tuple[str, CExpression]:
        """The operator and the right side of a statement's assignment."""
        dtype = self.dtype_of(statement.write[0])
        if statement.operation is None:
            return "=", self(statement.rhs, dtype)
        if dt.components_of(dtype):
            function, value = join_name(statement.operation), self(statement.rhs, dtype)
            return "=", Call(function, (target, value))
        own = {r.name: r for r in self.kernel.reductions}.get(statement.operation)
        if own is not None:
            return "=", self(own.combine(statement.lhs, statement.rhs), dtype)
        return self.update(target, dtype, statement.operation, statement.rhs)

    def combined(
        self, statement: Statement, operation: str, place: Name | Element, value: CExpression
    ) -> tuple[str, CExpression]:
        """What combines a place that holds a value of a statement's target with another."""
        dtype = self.dtype_of(statement.written)
        if dt.components_of(dtype):
            return "=", Call(join_name(operation), (place, value))
        mine, its = (prim.Variable(hidden("operand", number)) for number in range(2))
        given = _Given(self, {mine.name: place, its.name: value}, dtype)
        own: Any = {r.name: r for r in self.kernel.reductions}.get(operation)
        if own is not None:
            return "=", given(own.combine(mine, its), dtype)
        return given.update(place, dtype, operation, its)

    def is_data(self, expr: Expression) -> bool:
        """Whether an expression reads more than inames and sizes, or computes with more."""
        return not is_integer_arithmetic(expr, calls=False) or self.reads_data(expr)

    def reads_data(self, expr: Expression) -> bool:
        """Whether an expression reads more than inames and sizes."""
        names = {n for n in variable_names(expr) if "." not in n}
        return bool(names - self.kernel.integers)

    def largest(self, expr: Expression) -> int | None:
        """The largest magnitude of an expression of inames and sizes."""
        if not is_integer_arithmetic(expr) or self.reads_data(expr):
            return None
        low, high = self.ranges.of(expr)
        if not self.ranges.is_narrow((low, high)):
            low, high = self.ranges.reached(expr)
        return max(-low, high)


class _Given(ValueLowering):
    """A lowering in which some names are replaced by C values."""

    def __init__(
        self, lowering: ValueLowering, given: Mapping[str, CExpression], dtype: DType
    ) -> None:
        super().__init__(lowering.kernel, lowering.ranges, lowering.access)
        self.given = given
        self.dtype = dtype

    def dtype_of(self, name: str) -> DType:
        return self.dtype if name in self.given else super().dtype_of(name)

    def named(self, name: str, indices: tuple[Expression, ...] = ()) -> CExpression:
        return self.given[name] if name in self.given else super().named(name, indices)

    def reads_data(self, expr: Expression) -> bool:
        return not variable_names(expr).isdisjoint(self.given) or super().reads_data(expr)
