"""Powers and functions of the language as typed terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._functions import call_type, fold_call
from loopkit.codegen.c.types import in_registers
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.terms import Term
from loopkit.codegen.proof.value_operands import Operands, Value, asked, converted, kind_of

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_IDENTITIES = _ROUNDING | {"real", "conj"}
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_POWER = 64


class Functions(Operands):
    """Translates calls whose arguments are translated."""

    def raised(self, base: Value, exponent: Value) -> Value:
        """A power: of a small constant exponent by products, of one half by a root."""
        result = dt.power_type(kind_of(base), kind_of(exponent), asked)
        if not isinstance(result, np.dtype):
            return result
        number: Any = exponent
        if isinstance(number, float) and number.is_integer() and result not in dt.INTEGERS:
            number = int(number)
        if isinstance(base, Term):
            if type(number) is int and abs(number) <= _LARGEST_POWER:
                return self.product_of(self.typed(result, base), number, result)
            if number == 0.5 and result in dt.FLOATS:
                return self.call_of("sqrt", [self.typed(result, base)])
        if result in dt.COMPLEXES or result in dt.INTEGERS:
            sides = (self.typed(result, base), self.typed(result, exponent))
            return ops.call("pow" if result in dt.COMPLEXES else "ipow", result, *sides)
        return self.computed("pow", result, result, [base, exponent])

    def product_of(self, base: Term, exponent: int, result: dt.DType) -> Term:
        if exponent == 0:
            return terms.const(1, result)
        if exponent < 0:
            below = self.product_of(base, -exponent, result)
            return ops.divide(result, *self.operands(result, 1, below))
        if result in dt.SMALL_FLOATS and exponent > 2:
            single = ops.power(dt.FLOAT32, ops.cast(dt.FLOAT32, base), exponent)
            return converted(result, single)
        return ops.power(result, base, exponent)

    def call_of(self, name: str, values: list[Value]) -> Value:
        """A function of the language."""
        if name == "pow":
            return self.raised(values[0], values[1])
        kinds = [kind_of(v) for v in values]
        result = call_type(name, kinds, asked)
        if not isinstance(result, np.dtype):
            return fold_call(name, kinds, asked)  # type: ignore[no-any-return]
        common = kinds[0]
        for kind in kinds[1:]:
            common = dt.promote(common, kind)
        assert isinstance(common, np.dtype)
        if common in dt.COMPLEXES:
            return self._of_complex(name, self.typed(common, values[0]), result)
        if common == dt.BOOL or common in dt.INTEGERS:
            special = self._of_integers(name, common, values)
            if special is not None:
                return special
        if name == "imag":
            return terms.const(0, result)
        if name in ("real", "conj"):
            return self.typed(common, values[0])
        return self.computed(name, common, result, values)

    def computed(self, name: str, common: dt.DType, result: dt.DType, values: list[Value]) -> Term:
        """A function of floating-point numbers, in the type that it computes in."""
        compute = (
            dt.FLOAT32
            if common in dt.SMALL_FLOATS
            else common
            if common in dt.FLOATS
            else dt.FLOAT64
        )
        sides = []
        for value in values:
            if common in dt.FLOATS:
                value = self.typed(common, value)
            sides.append(ops.cast(compute, self.typed(compute, value)))
        name = "abs" if name == "fabs" else name
        if name in _PREDICATES:
            return ops.call(name, dt.BOOL, *sides)
        return converted(result, ops.call(name, compute, *sides))

    def _of_complex(self, name: str, value: Term, result: dt.DType) -> Term:
        if name in ("real", "imag"):
            return ops.part(value, name[:2])
        return ops.call(name, result, value)

    def _of_integers(self, name: str, common: dt.DType, values: list[Value]) -> Term | None:
        if name in _PREDICATES:
            return terms.const(_PREDICATES[name], dt.BOOL)
        first = self.typed(common, values[0])
        if name in ("fmin", "fmax"):
            return self.extremum(name[1:], common, first, self.typed(common, values[1]))
        if name in _IDENTITIES or (name == "abs" and common.kind in "bu"):
            return first
        if name == "imag":
            return terms.const(0, common)
        if name == "abs":
            compute = in_registers(common)
            return ops.cast(common, ops.call(name, compute, ops.cast(compute, first)))
        return ops.call(name, common, first) if name == "sign" else None
