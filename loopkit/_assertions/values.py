"""The assertions themselves, as frozen values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._same import Exact


@dataclass(frozen=True)
class Injective:
    """No two cells of ``array`` hold the same value."""

    array: str

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.array,)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        return f"the values of {self.array} all differ"

    @property
    def call(self) -> str:
        """The transform that makes it."""
        return f"assume_injective({self.array!r})"


@dataclass(frozen=True)
class Disjoint:
    """No value stands in both ``first`` and ``second``."""

    first: str
    second: str

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.first, self.second)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        return f"{self.first} and {self.second} have no value in common"

    @property
    def call(self) -> str:
        """The transform that makes it."""
        return f"assume_disjoint({self.first!r}, {self.second!r})"


@dataclass(frozen=True, eq=False)
class Within(Exact):
    """Every value ``v`` of ``array`` has ``lower <= v < upper``, expressions over sizes."""

    array: str
    lower: Expression
    upper: Expression

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.array,)

    @property
    def sizes(self) -> frozenset[str]:
        """The sizes in the bounds."""
        return variable_names(self.lower) | variable_names(self.upper)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        return f"{to_text(self.lower)} <= {self.array}[...] < {to_text(self.upper)}"

    @property
    def call(self) -> str:
        """The transform that makes it."""
        bounds = ", ".join(_argument(bound) for bound in (self.lower, self.upper))
        return f"assume_within({self.array!r}, {bounds})"


@dataclass(frozen=True)
class Increasing:
    """The values of ``array`` never go down, or (``strictly``) always go up."""

    array: str
    strictly: bool = False

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.array,)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        how = "always go up" if self.strictly else "never go down"
        return f"the values of {self.array} {how}"

    @property
    def call(self) -> str:
        """The transform that makes it."""
        strictly = ", strictly=True" if self.strictly else ""
        return f"assume_increasing({self.array!r}{strictly})"


Assertion = Injective | Disjoint | Within | Increasing


def in_order(assertions: tuple[Assertion, ...]) -> tuple[Assertion, ...]:
    """The assertions in the one order that a kernel keeps them in, however they came."""
    return tuple(sorted(assertions, key=lambda a: (a.arrays, type(a).__name__, a.text)))


def map_bounds(
    assertions: tuple[Assertion, ...], function: Callable[[Expression], Expression]
) -> tuple[Assertion, ...]:
    """The assertions with ``function`` applied to all expressions over sizes."""
    changed = (
        replace(a, lower=function(a.lower), upper=function(a.upper)) if isinstance(a, Within) else a
        for a in assertions
    )
    return in_order(tuple(changed))


def _argument(bound: Expression) -> str:
    return str(bound) if isinstance(bound, (int, np.integer)) else repr(to_text(bound))
