"""Whether a temporary keeps all of a value, or rounds it."""

from __future__ import annotations

import numpy as np

from loopkit._arrays import DType
from loopkit._cached import cached_property
from loopkit._errors import TypeInferenceError
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._promotion import INTEGER, RunTime, Typed
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
