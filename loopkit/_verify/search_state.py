"""What the search for a correspondence has decided, and what it has still to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit._expression import substitute, variable_names
from loopkit._hidden import WRITER, instance, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._verify.kernel_view import Access
from loopkit._verify.solver import Solver

_LONG = 500
"""Of how many parts a value may consist."""


@dataclass(frozen=True, eq=False)
class State:
    """What has been decided.

    ``origin`` and ``where`` hold the origin of each paired statement and how the
    inames relate; ``copies`` only carry values; the operands of ``swapped``
    nodes of the new kernel change places.
    """

    origin: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, isl.Set] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()
    swapped: tuple[Expression, ...] = ()
    later: tuple[MatchWriters, ...] = ()

    def paired(self, new: str, old: str, where: isl.Set) -> State:
        """With one pair more."""
        return replace(self, origin={**self.origin, new: old}, where={**self.where, new: where})

    def related(self, new: str, where: isl.Set) -> State:
        """With more known about how a pair's inames relate."""
        return replace(self, where={**self.where, new: where})


class Reader:
    """A statement in whose inames an expression is written.

    It is one of a pair, or has written what another reader reads; its inames
    are then found from that reader's as they are needed.
    """

    def __init__(
        self,
        statement: Statement,
        label: str,
        *,
        behind: Reader | None = None,
        solver: Solver | None = None,
    ) -> None:
        self.statement = statement
        self.label = label
        self.behind = behind
        self.solver = solver
        self.depth: int = behind.depth + 1 if behind is not None else 0

    def value(self, iname: str) -> Expression | None:
        """An iname's value, over the inames of the pair; None where it is not known."""
        if self.solver is None or self.behind is None:
            return variable(iname, self.label)
        value = self.solver.value(instance(iname, WRITER))
        found = None if value is None else self.behind.over(value)
        return found if _is_short(found) else None

    def over(self, expr: Expression) -> Expression | None:
        """``expr`` over the inames of the pair."""
        values = {}
        for iname in variable_names(expr) & self.statement.inames:
            value = self.value(iname)
            if value is None:
                return None
            values[iname] = value
        return substitute(expr, values)


def _is_short(expr: Expression | None) -> bool:
    """Whether a value is worth following: cases of cases triple with each reader behind another."""
    waiting: list[object] = [expr]
    for _ in range(_LONG):
        if not waiting:
            return True
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif isinstance(part, prim.ExpressionNode):
            waiting += [getattr(part, one.name) for one in fields(part)]
    return False


@dataclass(frozen=True, eq=False)
class ChooseOrigin:
    """Still to do: find an origin for ``new`` among statements, each with the inames' relation.

    ``optional``: it may also turn out to only carry values.
    """

    new: str
    candidates: tuple[tuple[str, isl.Set], ...]
    optional: bool = False


@dataclass(frozen=True, eq=False)
class MatchValues:
    """Still to do: lay two expressions of the pair of ``new`` side by side.

    ``is_bound``: a scalar that decides how often the pair runs.
    """

    new: str
    old_reader: Reader
    new_reader: Reader
    old_expr: Expression
    new_expr: Expression
    is_bound: bool = False


@dataclass(frozen=True, eq=False)
class MatchWriters:
    """Still to do: pair the statements that wrote what the two sides read.

    That waits until the two sides' own expressions have been compared, which
    tells how their inames relate.
    """

    todo: MatchValues
    mine: Access
    its: Access


Obligation = ChooseOrigin | MatchValues | MatchWriters
Pending = tuple[Obligation, "Pending"] | None
Options = Iterator[tuple[State, Pending]]
"""The ways to do one thing, each with what is then still to be done."""
