"""Values of temporaries in the place of their names, with the conditions under which they hold.

``t = a``, then ``t = b`` where ``c`` holds, then ``y = t`` is ``y = b if c else a``; and where
``t`` is stored in both branches, each of which asks what the other does not, it is one such choice.
All three stand next to each other in one iteration, and nothing in between changes what they read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace
from loopkit._check.value_types import ValueTypes
from loopkit._expression import (
    Access,
    ExpressionMapper,
    access_of,
    is_constant,
    nodes_of,
    variable_names,
)
from loopkit._guarded import conjuncts
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import shared_storage, space_of
from loopkit._poly.model import Model
from loopkit._same import key_of, same
from loopkit._tags import InstructionParallel
from loopkit._verify.overwritten import common_guards, runs_of
from loopkit._verify.terms import summed

_LONG = 100
"""Of how many parts a value may consist that takes the place of a name."""

Guards = tuple[Expression, ...]


@dataclass(frozen=True)
class _Held:
    """What a cell holds in iterations over some inames, where all guards hold."""

    cell: Access
    value: Expression
    guards: Guards
    inames: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """What it is computed from, its guards among it."""
        return frozenset[str]().union(*map(variable_names, (self.value, *self.guards)))

    def is_of(self, access: Access) -> bool:
        """Whether this is the cell of an access."""
        return key_of(access) == key_of(self.cell)


def with_values(kernel: Kernel, *, is_sequential: bool) -> Kernel:
    """A kernel that stores and asks for values of temporaries instead of naming these."""
    if shared_storage(kernel) or any(isinstance(t, InstructionParallel) for _, t in kernel.tags):
        return kernel
    types = ValueTypes(Model(kernel))
    own = [
        t.name
        for t in kernel.temporaries
        if is_sequential or space_of(kernel, t) is AddressSpace.PRIVATE
    ]
    now: dict[str, Statement] = {}
    for run in runs_of(kernel):
        held: list[_Held] = []
        for name in run:
            now[name] = _Values(types, held, kernel.statement_by_id[name]).statement()
            held = _stored(types, held, now[name], own)
    return kernel.with_(statements=tuple(now.get(s.id, s) for s in kernel.statements))


class _Values(ExpressionMapper):
    """Puts what is held in the place of what a statement reads."""

    def __init__(self, types: ValueTypes, held: Sequence[_Held], reader: Statement) -> None:
        super().__init__()
        self.types, self.held, self.reader = types, held, reader
        self.guards: Guards = ()

    def statement(self) -> Statement:
        """The statement without the names of what is held."""
        if not self.held or self.reader.kind != "user":
            return self.reader
        for predicate in self.reader.predicates:
            self.guards += (self.short(predicate),)
        return replace(self.reader, predicates=self.guards, rhs=self.short(self.reader.rhs))

    def short(self, expr: Expression) -> Expression:
        """An expression with values in it, or as it was where it would be long."""
        if is_constant(expr):
            return expr
        now = self(expr)
        return expr if any(True for _ in islice(nodes_of(now), _LONG, None)) else now

    def read(self, expr: Expression, access: Access) -> Expression:
        for held in self.held:
            is_known = held.is_of(access) and held.inames == self.reader.inames
            if is_known and _all_among(held.guards, self.guards):
                return _where(held.value, self.guards)
        return expr

    def map_variable(self, expr: Any) -> Expression:
        return self.read(expr, (expr.name, ()))

    def map_subscript(self, expr: Any) -> Expression:
        # Its index is computed in other numbers.
        access = access_of(expr, self.types.model.data)
        return expr if access is None else self.read(expr, access)

    def map_sum(self, expr: Any) -> Expression:
        return summed(self.types, expr.children, [self.rec(child) for child in expr.children])


def _where(value: Expression, guards: Guards) -> Expression:
    """A value where some conditions hold."""
    while isinstance(value, prim.If):
        if _all_among(conjuncts(value.condition), guards):
            value = value.then
        elif _all_among(conjuncts(prim.LogicalNot(value.condition)), guards):
            value = value.else_
        else:
            break
    return value


def _all_among(some: Guards, others: Guards) -> bool:
    return all(any(same(a, b) for b in others) for a in some)


def _stored(
    types: ValueTypes, held: Sequence[_Held], writer: Statement, own: Collection[str]
) -> list[_Held]:
    """What is held behind a statement."""
    cell = writer.write
    before = [h for h in held if h.is_of(cell)]
    kept = [h for h in held if h.cell[0] != cell[0] and cell[0] not in h.names]
    is_plain = writer.operation is None and writer.kind == "user" and not writer.is_atomic
    is_whole = is_plain and types.of(writer.rhs) == types.array(writer.written)
    if writer.written not in own or not is_whole:
        return kept
    now = _Held(cell, writer.rhs, writer.predicates, writer.inames)
    for held_before in before:
        if held_before.inames == now.inames:
            now = _both(held_before, now)
    return kept if cell[0] in now.names else [*kept, now]


def _both(before: _Held, now: _Held) -> _Held:
    """What a cell holds behind two stores, as far as they say it."""
    common = common_guards(before.guards, now.guards)
    own, mine, its = now.guards[:common], before.guards[common:], now.guards[common:]
    if its and (not mine or _all_among(conjuncts(prim.LogicalNot(_all(mine))), its)):
        return replace(now, value=prim.If(_all(its), now.value, before.value), guards=own)
    if its and _all_among(conjuncts(prim.LogicalNot(_all(its))), mine):
        return replace(now, value=prim.If(_all(mine), before.value, now.value), guards=own)
    return now


def _all(guards: Guards) -> Expression:
    return guards[0] if len(guards) == 1 else prim.LogicalAnd(guards)
