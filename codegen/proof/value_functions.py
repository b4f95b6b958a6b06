"""Powers and functions of the language as typed terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INTEGERS,
    SMALL_FLOATS,
    DType,
    call_type,
    fold_call,
    power_type,
    promote,
)
from loopkit.codegen.c.arithmetic import in_registers
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
        result = power_type(kind_of(base), kind_of(exponent), asked)
        if not isinstance(result, np.dtype):
            return result
        number: Any = exponent
        if isinstance(number, float) and number.is_integer() and result not in INTEGERS:
            number = int(number)
        if isinstance(base, Term):
            if type(number) is int and abs(number) <= _LARGEST_POWER:
                return self.product_of(self.typed(result, base), number, result)
            if number == 0.5 and result in FLOATS:
                return self.call_of("sqrt", [self.typed(result, base)])
        if result in COMPLEXES or result in INTEGERS:
            sides = (self.typed(result, base), self.typed(result, exponent))
            return ops.call("pow" if result in COMPLEXES else "ipow", result, *sides)
        return self.computed("pow", result, result, [base, exponent])

    def product_of(self, base: Term, exponent: int, result: DType) -> Term:
        if exponent == 0:
            return terms.const(1, result)
        if exponent < 0:
            below = self.product_of(base, -exponent, result)
            return ops.divide(result, *self.operands(result, 1, below))
        if result in SMALL_FLOATS and exponent > 2:
            single = ops.power(FLOAT32, ops.cast(FLOAT32, base), exponent)
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
            common = promote(common, kind)
        assert isinstance(common, np.dtype)
        if common in COMPLEXES:
            return self._of_complex(name, self.typed(common, values[0]), result)
        if common == BOOL or common in INTEGERS:
            special = self._of_integers(name, common, values)
            if special is not None:
                return special
        if name == "imag":
            return terms.const(0, result)
        if name in ("real", "conj"):
            return self.typed(common, values[0])
        return self.computed(name, common, result, values)

    def computed(self, name: str, common: DType, result: DType, values: list[Value]) -> Term:
        """A function of floating-point numbers, in the type that it computes in."""
        compute = FLOAT32 if common in SMALL_FLOATS else common if common in FLOATS else FLOAT64
        sides = []
        for value in values:
            if common in FLOATS:
                value = self.typed(common, value)
            sides.append(ops.cast(compute, self.typed(compute, value)))
        name = "abs" if name == "fabs" else name
        if name in _PREDICATES:
            return ops.call(name, BOOL, *sides)
        return converted(result, ops.call(name, compute, *sides))

    def _of_complex(self, name: str, value: Term, result: DType) -> Term:
        if name in ("real", "imag"):
            return ops.part(value, name[:2])
        return ops.call(name, result, value)

    def _of_integers(self, name: str, common: DType, values: list[Value]) -> Term | None:
        if name in _PREDICATES:
            return terms.const(_PREDICATES[name], BOOL)
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
