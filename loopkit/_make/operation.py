"""What every reduction's operation says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopkit._frozen import dataclass
from loopkit._hidden import variable
from loopkit._nodes import Expression
from loopkit._promotion import DType
from loopkit._same import Exact
from loopkit._types import Kind


@dataclass(frozen=True, eq=False)
class ReductionOperation(Exact):
    """An associative, commutative operation that a reduction may use.

    One with ``components`` works on records of these; it gives as many results.  All functions
    that it holds must be importable, so that kernels can be pickled.
    """

    name: str
    components: tuple[str, ...] = ()

    def start(self, dtype: DType | None) -> Expression:
        """What a reduction starts from: of an accumulator's type, or of one not yet known."""
        raise NotImplementedError

    def result_type(self, *kinds: Kind) -> DType:
        """The accumulator's type for operands of some types, or for one record."""
        raise NotImplementedError

    @property
    def shown(self) -> str:
        """What notes call it."""
        return self.name

    @property
    def is_ordered(self) -> bool:
        """Whether it is not commutative: its operands come in their order."""
        return False

    @property
    def has_values(self) -> bool:
        """Whether :meth:`on_values` is there; else expressions say what is meant."""
        return True

    def joined(self, dtype: DType) -> tuple[Expression, ...]:
        """The components of what joins two records, in terms of :func:`operands`."""
        raise NotImplementedError

    def on_values(self, a: Any, b: Any) -> Any:
        """The operation on values of NumPy's; records are tuples."""
        raise NotImplementedError


def operands(components: Sequence[str]) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Variables for the components of the two records that an operation joins."""
    left, right = (tuple(variable(name, side) for name in components) for side in ("a", "b"))
    return left, right
