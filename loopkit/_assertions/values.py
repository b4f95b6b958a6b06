"""The assertions themselves, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from loopkit._expression import to_text
from loopkit._nodes import Expression


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
        return f"no two cells of {self.array} hold the same value"


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


@dataclass(frozen=True)
class Within:
    """Every value ``v`` of ``array`` has ``lower <= v < upper``, expressions over sizes."""

    array: str
    lower: Expression
    upper: Expression

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.array,)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        return f"{to_text(self.lower)} <= {self.array} < {to_text(self.upper)}"


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


Assertion = Injective | Disjoint | Within | Increasing
