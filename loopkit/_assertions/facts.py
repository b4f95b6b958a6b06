"""Assertions sorted by array, for whoever reasons with them."""

from __future__ import annotations

from loopkit._assertions.values import Assertion, Disjoint, Increasing, Injective, Within
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._same import remembered


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
