"""Whether a temporary keeps all of a value, or rounds it."""

from __future__ import annotations

from loopkit._arrays import DType
from loopkit._cached import cached_property
from loopkit._check.model import Model
from loopkit._errors import TypeInferenceError
from loopkit._nodes import Expression
from loopkit._types import INT32, WeakType, dtype_of


class ValueTypes:
    """The types of expressions in one kernel, as far as they are known."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def known(self) -> dict[str, DType]:
        """The types of names."""
        kernel = self.model.kernel
        found = dict.fromkeys(kernel.all_inames, INT32)
        for data in (*kernel.args, *kernel.temporaries):
            if data.dtype is not None:
                found[data.name] = data.dtype
        return found

    def array(self, name: str) -> DType | None:
        """The type of an array's elements."""
        return self.known.get(name)

    def of(self, expr: Expression) -> DType | None:
        """The type of an expression; None where it is unknown, or that of a literal."""
        try:
            found = dtype_of(expr, self.known.__getitem__)
        except (KeyError, TypeInferenceError):
            return None
        return None if isinstance(found, WeakType) else found

    def rounds(self, array: str, expr: Expression) -> str:
        """How a value changes when it is kept in ``array``; empty where it does not."""
        here, there = self.array(array), self.of(expr)
        if here is None or there is None or here == there:
            return ""
        return f"'{array}' holds {here}, and what is kept there is {there}"
