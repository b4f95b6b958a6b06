"""Statements as C text: what the expression printer needs to know of a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopkit._arrays import DType, ValueArg
from loopkit._cached import cached_property
from loopkit._errors import LoopkitError
from loopkit._expression import is_integer_arithmetic, to_text, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit.codegen.conversions import whole
from loopkit.codegen.expressions import CExpressionPrinter, c_type, concrete_type
from loopkit.codegen.texts import AND, POSTFIX
from loopkit.codegen.widths import Ranges

__all__ = ["ValuePrinter", "c_type"]

Access = Callable[[str, tuple[Expression, ...]], str]


class ValuePrinter:
    """Prints typed expressions and whole assignments of one kernel."""

    def __init__(self, kernel: Kernel, ranges: Ranges, access: Access) -> None:
        self.kernel = kernel
        self.ranges = ranges
        self.access = access
        self.print = CExpressionPrinter(
            self.dtype_of,
            self.variable,
            access,
            is_weak=self._integers.__contains__,
            is_nonnegative=ranges.is_nonnegative,
            largest=self.largest,
            holds=ranges.holds,
        )

    @property
    def needs(self) -> set[str]:
        """Headers and device functions that the printed texts use."""
        return set(self.print.needs)

    def dtype_of(self, name: str) -> DType:
        """The type of a name in the generated code."""
        kernel = self.kernel
        found = kernel.temporary_by_name.get(name) or kernel.arg_by_name.get(name)
        if found is None or (isinstance(found, ValueArg) and found.dtype is None):
            return self.ranges.dtype_of(name)
        assert found.dtype is not None
        return np.dtype(found.dtype)

    def variable(self, name: str) -> str:
        """A bare name: an iname, a size, or a scalar."""
        return self.access(name, ()) if self.kernel.is_array(name) else name

    def integer(self, expr: Expression) -> str:
        """An element of an index array, or what else integers are computed from."""
        return self.print(expr, level=POSTFIX)

    def computed_in(self, expr: Expression) -> DType:
        """The type of the text of such an integer."""
        return concrete_type(whole(self.print.rec(expr)))

    def condition(self, expr: Expression) -> str:
        """A predicate that reads data, as an operand of ``&&``."""
        return self.print.predicate(expr, level=AND + 1)

    def assignment(self, statement: Statement) -> str:
        """One statement of C."""
        name, indices = statement.write
        target = self.access(name, indices)
        dtype = self.dtype_of(name)
        try:
            if statement.operation is None:
                return f"{target} = {self.print(statement.rhs, dtype)};"
            own = {r.name: r for r in self.kernel.reductions}.get(statement.operation)
            if own is not None:
                combined = own.combine(statement.lhs, statement.rhs)
                return f"{target} = {self.print(combined, dtype)};"
            return self.print.update(target, dtype, statement.operation, statement.rhs)
        except LoopkitError as error:
            if not error.asked:
                error.asked = (
                    f"in {statement.id}: {to_text(statement.lhs)} = {to_text(statement.rhs)}"
                )
            raise

    def is_data(self, expr: Expression) -> bool:
        """Whether an expression reads more than inames and sizes, or computes with more."""
        return not is_integer_arithmetic(expr, calls=False) or self._reads_data(expr)

    def _reads_data(self, expr: Expression) -> bool:
        names = {n for n in variable_names(expr) if "." not in n}
        return bool(names - self._integers)

    def largest(self, expr: Expression) -> int | None:
        """The largest magnitude of an expression of inames and sizes."""
        if not is_integer_arithmetic(expr) or self._reads_data(expr):
            return None
        low, high = self.ranges.of(expr)
        if not self.ranges.is_narrow((low, high)):
            low, high = self.ranges.reached(expr)
        return max(-low, high)

    @cached_property
    def _integers(self) -> frozenset[str]:
        return frozenset({*self.kernel.home_domain, *self.kernel.sizes})
