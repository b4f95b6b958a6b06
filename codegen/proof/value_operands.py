"""Operands of the kernel's operations: terms, and constants without a type of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopkit import _promotion as dt
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.terms import Term


@dataclass(frozen=True)
class Late:
    """A number without a type of its own: it is computed as ``term``, and is of a kind of Python's.

    Integers are computed in 64 bits, which stands for no bound: that nothing overflows is
    shown wherever the text computes in as many or in fewer.
    """

    term: Term
    kind: dt.RunTime


Value = Term | dt.Weak | Late
"""What an expression is: a term, or a number that takes the type of what it meets."""


def asked() -> str:
    """What an error says was asked; nobody reads it."""
    return "in the proof"


def converted(dtype: dt.DType, x: Term) -> Term:
    """A conversion as the language has it: to small floats by way of ``float32``."""
    if dtype in dt.SMALL_FLOATS and x.dtype != dtype:
        if x.dtype in dt.COMPLEXES:
            x = ops.part(x, "re")
        if x.dtype != dt.FLOAT64 or dtype != dt.FLOAT16:
            return ops.cast(dtype, ops.cast(dt.FLOAT32, x))
    return ops.cast(dtype, x)


class Operands:
    """Gives operands their types."""

    def typed(self, dtype: dt.DType, value: Value) -> Term:
        """A value converted to a type."""
        if isinstance(value, Term):
            return converted(dtype, value)
        if isinstance(value, Late):
            return converted(dtype, value.term)
        if isinstance(value, dt.Choice):
            sides = (self.typed(dtype, value.then), self.typed(dtype, value.else_))
            return ops.choice(value.condition, *sides)
        return terms.const(value, dtype)

    def term(self, value: Value, dtype: dt.DType) -> Term:
        """A value as a term; a constant of type ``dtype``."""
        if isinstance(value, Late):
            return value.term
        return value if isinstance(value, Term) else self.typed(dtype, value)

    def true(self, value: Value) -> Term:
        """A value as a condition."""
        if isinstance(value, Late):
            value = value.term
        if isinstance(value, Term):
            return ops.truth(value)
        if isinstance(value, dt.Choice):
            sides = (self.true(value.then), self.true(value.else_))
            return ops.choice(value.condition, *sides)
        return terms.const(bool(value), dt.BOOL)

    def operands(self, common: dt.DType, *values: Value) -> list[Term]:
        """Operands of an operation in ``common``; real numbers that meet complex ones stay real."""
        if common not in dt.COMPLEXES:
            return [self.typed(common, v) for v in values]
        kinds = [has_imaginary(v) for v in values]
        if not any(kinds):
            kinds[0] = True
        return [
            self.typed(common if k else dt.real_of(common), v)
            for k, v in zip(kinds, values, strict=True)
        ]

    def extremum(self, word: str, common: dt.DType, a: Term, b: Term) -> Term:
        """The smaller or larger of two operands of a type."""
        compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
        left, right = ops.cast(compute, a), ops.cast(compute, b)
        return converted(common, ops.extremum(word, compute, left, right))


def kind_of(value: Value) -> dt.Typed:
    """An operand's type, or the constant itself."""
    if isinstance(value, Late):
        return value.kind
    return value.dtype if isinstance(value, Term) else value


def is_late(*values: Value) -> bool:
    """Whether no operand has a type of its own, and one is no constant."""
    late = any(isinstance(v, Late) for v in values)
    return late and not any(isinstance(v, Term) for v in values)


def kind_of_both(a: Value, b: Value) -> dt.RunTime:
    """The kind of number that holds either of two without types."""
    kinds = [kind_of(x) for x in (a, b)]
    one, two = (k for k in kinds if not isinstance(k, np.dtype))
    return dt.run_time(dt.Choice(None, one, two))


def has_imaginary(value: Value) -> bool:
    """Whether a value is a complex number."""
    kind = kind_of(value)
    return kind in dt.COMPLEXES if isinstance(kind, np.dtype) else dt.is_complex(kind)
