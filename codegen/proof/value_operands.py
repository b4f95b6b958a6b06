"""Operands of the kernel's operations: terms, and constants without a type of their own."""

from __future__ import annotations

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    SMALL_FLOATS,
    Choice,
    DType,
    Typed,
    Weak,
    is_complex,
    real_of,
)
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.terms import Term

Value = Term | Weak
"""What an expression is: a term, or a constant that takes the type of what it meets."""


def asked() -> str:
    """What an error says was asked; nobody reads it."""
    return "in the proof"


def converted(dtype: DType, x: Term) -> Term:
    """A conversion as the language has it: to small floats by way of ``float32``."""
    if dtype in SMALL_FLOATS and x.dtype != dtype:
        if x.dtype in COMPLEXES:
            x = ops.part(x, "re")
        if x.dtype != FLOAT64 or dtype != FLOAT16:
            return ops.cast(dtype, ops.cast(FLOAT32, x))
    return ops.cast(dtype, x)


class Operands:
    """Gives operands their types."""

    def typed(self, dtype: DType, value: Value) -> Term:
        """A value converted to a type."""
        if isinstance(value, Term):
            return converted(dtype, value)
        if isinstance(value, Choice):
            sides = (self.typed(dtype, value.then), self.typed(dtype, value.else_))
            return ops.choice(value.condition, *sides)
        return terms.const(value, dtype)

    def term(self, value: Value, dtype: DType) -> Term:
        """A value as a term; a constant of type ``dtype``."""
        return value if isinstance(value, Term) else self.typed(dtype, value)

    def true(self, value: Value) -> Term:
        """A value as a condition."""
        if isinstance(value, Term):
            return ops.truth(value)
        if isinstance(value, Choice):
            sides = (self.true(value.then), self.true(value.else_))
            return ops.choice(value.condition, *sides)
        return terms.const(bool(value), BOOL)

    def operands(self, common: DType, *values: Value) -> list[Term]:
        """Operands of an operation in ``common``; real numbers that meet complex ones stay real."""
        if common not in COMPLEXES:
            return [self.typed(common, v) for v in values]
        kinds = [v.dtype in COMPLEXES if isinstance(v, Term) else is_complex(v) for v in values]
        if not any(kinds):
            kinds[0] = True
        return [
            self.typed(common if k else real_of(common), v)
            for k, v in zip(kinds, values, strict=True)
        ]

    def extremum(self, word: str, common: DType, a: Term, b: Term) -> Term:
        """The smaller or larger of two operands of a type."""
        compute = FLOAT32 if common in SMALL_FLOATS else common
        left, right = ops.cast(compute, a), ops.cast(compute, b)
        return converted(common, ops.extremum(word, compute, left, right))


def kind_of(value: Value) -> Typed:
    """An operand's type, or the constant itself."""
    return value.dtype if isinstance(value, Term) else value
