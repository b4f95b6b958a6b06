"""The assertions as frozen values, and the facts that follow from several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import accesses, substitute, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import instance
from loopkit._history import Step
from loopkit._nodes import Expression
from loopkit._same import Exact, remembered

if TYPE_CHECKING:
    from loopkit._kernel import Kernel


class _Said:
    """Base class: an assertion about the data of one or two index arrays."""

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


@dataclass(frozen=True, eq=False)
class Injective(Exact, _Said):
    """No two cells of ``array`` contain the same value.

    With a condition ``where``, in which ``index`` names the indices of a cell, this is asserted
    only for the cells that satisfy it.
    """

    array: str
    index: tuple[str, ...] = ()
    where: Expression | None = None

    @property
    def told(self) -> str:
        """A name for the part of the array where the condition holds, used like an array."""
        return self.array if self.where is None else instance(self.array, to_text(self.where))

    @property
    def arrays(self) -> tuple[str, ...]:
        read = () if self.where is None else accesses(self.where)
        return tuple(dict.fromkeys((self.array, *(name for name, indices in read if indices))))

    @property
    def use(self) -> str:
        """The array, with the names of its indices where a condition needs them."""
        return self.array if self.where is None else f"{self.array}[{', '.join(self.index)}]"

    @property
    def text(self) -> str:
        where = "" if self.where is None else f" where {to_text(self.where)}"
        return f"the values of {self.use}{where} all differ"

    @property
    def step(self) -> Step:
        where = () if self.where is None else (("where", to_text(self.where)),)
        return Step("assume_injective", (("array", self.use), *where), required=1)


@dataclass(frozen=True)
class Disjoint(_Said):
    """No value is in both ``first`` and ``second``."""

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
    """The values of ``array`` never decrease, or (``strictly``) always increase."""

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
    """The assertions in their canonical order."""
    return tuple(sorted(assertions, key=lambda a: (a.arrays, type(a).__name__, a.text)))


def lasting(before: Kernel, after: Kernel) -> tuple[Assertion, ...]:
    """The assertions that remain valid for a changed kernel, whose arrays still exist as before.

    A temporary may be removed, or get other axes; this also concerns arrays in a condition.
    """

    def lasts(name: str) -> bool:
        ranks = [
            len(kernel.array(name).shape or ()) if kernel.is_array(name) else None
            for kernel in (before, after)
        ]
        return ranks[1] is not None and ranks[0] in (None, ranks[1])

    def is_kept(one: Assertion) -> bool:
        has_condition = isinstance(one, Injective) and one.where is not None
        temporaries = before.temporary_by_name
        return all(lasts(n) for n in one.arrays if has_condition or n in temporaries)

    return tuple(filter(is_kept, after.assertions))


def renamed(one: Assertion, names: Mapping[str, str]) -> Assertion:
    """An assertion about arrays and sizes that have other names."""
    variables = {old: prim.Variable(new) for old, new in names.items()}

    def spelled(part: Any) -> Any:
        if isinstance(part, str):
            return names.get(part, part)
        return substitute(part, variables) if isinstance(part, prim.ExpressionNode) else part

    return replace(one, **{f.name: spelled(getattr(one, f.name)) for f in fields(one)})


def map_bounds(
    assertions: tuple[Assertion, ...], function: Callable[[Expression], Expression]
) -> tuple[Assertion, ...]:
    """The assertions with ``function`` applied to all expressions over sizes."""

    def changed(one: Assertion) -> Assertion:
        if isinstance(one, Within):
            return replace(one, lower=function(one.lower), upper=function(one.upper))
        if isinstance(one, Injective) and one.where is not None:
            return replace(one, where=function(one.where))
        return one

    return in_order(tuple(map(changed, assertions)))


@dataclass(frozen=True)
class Facts:
    """What is known about each array.

    ``strict`` arrays are in ``increasing`` and in ``injective`` as well, and an array that never
    decreases and whose values are distinct is strict. ``bounds`` holds every ``(lower, upper)``.
    ``apart`` maps each array to those with which it shares no value.
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
    """The facts that follow from all ``assertions`` together."""
    injective: set[str] = set()
    increasing: set[str] = set()
    bounds: dict[str, tuple[tuple[Expression, Expression], ...]] = {}
    apart: dict[str, frozenset[str]] = {}
    for assertion in assertions:
        if isinstance(assertion, Injective):
            injective.add(assertion.told)
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
