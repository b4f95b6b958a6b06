"""The assertions themselves, as frozen values, and what several say together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._history import Step
from loopkit._nodes import Expression
from loopkit._same import Exact, remembered


class _Said:
    """What somebody says of the data of one index array, or of two."""

    array: str

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it is about."""
        return (self.array,)

    @property
    def text(self) -> str:
        """The assertion as a person reads it."""
        raise NotImplementedError

    @property
    def step(self) -> Step:
        """The transform that makes it."""
        raise NotImplementedError

    @property
    def call(self) -> str:
        """:attr:`step` as one writes it."""
        return self.step.call()[1:]


@dataclass(frozen=True)
class Injective(_Said):
    """No two cells of ``array`` hold the same value."""

    array: str

    @property
    def text(self) -> str:
        return f"the values of {self.array} all differ"

    @property
    def step(self) -> Step:
        return Step("assume_injective", (("array", self.array),), required=1)


@dataclass(frozen=True)
class Disjoint(_Said):
    """No value stands in both ``first`` and ``second``."""

    first: str
    second: str

    @property
    def arrays(self) -> tuple[str, ...]:
        return (self.first, self.second)

    @property
    def text(self) -> str:
        return f"{self.first} and {self.second} have no value in common"

    @property
    def step(self) -> Step:
        arguments = (("first", self.first), ("second", self.second))
        return Step("assume_disjoint", arguments, required=2)


@dataclass(frozen=True, eq=False)
class Within(Exact, _Said):
    """Every value ``v`` of ``array`` has ``lower <= v < upper``, expressions over sizes."""

    array: str
    lower: Expression
    upper: Expression

    @property
    def sizes(self) -> frozenset[str]:
        """The sizes in the bounds."""
        return variable_names(self.lower) | variable_names(self.upper)

    @property
    def text(self) -> str:
        return f"{to_text(self.lower)} <= {self.array}[...] < {to_text(self.upper)}"

    @property
    def step(self) -> Step:
        bounds = {"lower": self.lower, "upper": self.upper}
        given = (
            (name, int(bound) if isinstance(bound, (int, np.integer)) else to_text(bound))
            for name, bound in bounds.items()
        )
        return Step("assume_within", (("array", self.array), *given), required=3)


@dataclass(frozen=True)
class Increasing(_Said):
    """The values of ``array`` never go down, or (``strictly``) always go up."""

    array: str
    strictly: bool = False

    @property
    def text(self) -> str:
        how = "always go up" if self.strictly else "never go down"
        return f"the values of {self.array} {how}"

    @property
    def step(self) -> Step:
        strictly = (("strictly", True),) if self.strictly else ()
        return Step("assume_increasing", (("array", self.array), *strictly), required=1)


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


@dataclass(frozen=True)
class Facts:
    """What is known, array by array.

    ``strict`` arrays are in ``increasing`` and in ``injective`` too, and an array
    that never goes down and whose values all differ is strict.  ``bounds`` holds
    every ``(lower, upper)``.  ``apart`` gives for each array those that it shares no value with.
    """

    injective: frozenset[str]
    increasing: frozenset[str]
    bounds: dict[str, tuple[tuple[Expression, Expression], ...]]
    apart: dict[str, frozenset[str]]

    @property
    def strict(self) -> frozenset[str]:
        """The arrays whose values always go up."""
        return self.injective & self.increasing


@remembered(1 << 10)
def facts_of(assertions: tuple[Assertion, ...]) -> Facts:
    """What ``assertions`` say together."""
    injective: set[str] = set()
    increasing: set[str] = set()
    bounds: dict[str, tuple[tuple[Expression, Expression], ...]] = {}
    apart: dict[str, frozenset[str]] = {}
    for assertion in assertions:
        if isinstance(assertion, Injective):
            injective.add(assertion.array)
        elif isinstance(assertion, Increasing):
            increasing.add(assertion.array)
            if assertion.strictly:
                injective.add(assertion.array)
        elif isinstance(assertion, Within):
            known = bounds.get(assertion.array, ())
            bounds[assertion.array] = (*known, (assertion.lower, assertion.upper))
        elif isinstance(assertion, Disjoint):
            for one, other in (assertion.arrays, assertion.arrays[::-1]):
                apart[one] = apart.get(one, frozenset()) | {other}
    return Facts(frozenset(injective), frozenset(increasing), bounds, apart)
