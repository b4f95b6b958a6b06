"""Whether a temporary keeps all of a value, or rounds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import DType
from loopkit._cached import cached_property
from loopkit._errors import TypeInferenceError
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._promotion import INTEGER, INTEGERS, RunTime, Typed
from loopkit._types import Kind, dtype_of, known_types


class ValueTypes:
    """The types of expressions in one kernel, as far as they are known."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def known(self) -> dict[str, Typed]:
        """The types of names."""
        return known_types(self.model.kernel)

    def array(self, name: str) -> DType | None:
        """The type of an array's elements."""
        found = self.known.get(name)
        return found if isinstance(found, np.dtype) else None

    def of(self, expr: Expression) -> Kind | None:
        """The type of an expression; None where it is unknown."""
        try:
            return dtype_of(expr, self.known.__getitem__)
        except (KeyError, TypeInferenceError):
            return None

    def is_negated(self, terms: Sequence[Expression]) -> bool:
        """Whether subtracting the last of some terms, ``-1*x``, is adding ``-x``.

        It is not where ``-x`` wraps around in fewer bits than the sum, or is a zero without a sign.
        """
        _, *factors = terms[-1].children
        whole = self.of(prim.Sum(tuple(terms)))
        return not isinstance(whole, np.dtype) or all(self._is_negated(f, whole) for f in factors)

    def _is_negated(self, factor: Expression, whole: DType) -> bool:
        kind = self.of(factor)
        if kind is None:
            return True  # it is asked again when there are types
        if isinstance(kind, np.dtype):
            return kind == whole
        is_number = type(factor) is float or (type(factor) is int and factor != 0)
        return is_number or (kind == INTEGER and whole in INTEGERS)

    def rounds(self, array: str, expr: Expression) -> str:
        """How a value changes when it is kept in ``array``; empty where it does not."""
        here, there = self.array(array), self.of(expr)
        if here is None or there is None or here == there:
            return ""
        if there == INTEGER:
            return ""  # exact; what it does to the types of a whole line is asked there
        if isinstance(there, RunTime):
            return f"'{array}' holds {here}, and what is kept there is a number without a type"
        return f"'{array}' holds {here}, and what is kept there is {there}"
