"""Values of temporaries in the place of their names, where they are parts of sums and products.

``t = x + x`` and then ``t + x`` is ``x + x + x``, which like terms are collected in.  Only what is
computed of arguments that nobody writes takes the place: it has one value wherever it stands.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import pymbolic.primitives as prim

from loopkit._check.value_types import ValueTypes
from loopkit._expression import (
    Access,
    ExpressionMapper,
    access_of,
    is_constant,
    nodes_of,
    substitute,
    variable_names,
)
from loopkit._hidden import READER, WRITER, instance
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.pairs import Undecided, equal
from loopkit._verify.solver import Solver
from loopkit._verify.terms import summed

_LONG = 200
"""Of how many parts a value may consist that takes the place of a name."""

_ARITHMETIC = (prim.Sum, prim.Product, prim.LeftShift)


def with_forwarded(kernel: Kernel) -> Kernel:
    """A kernel that computes in place what sums and products are made of."""
    forwarder = _Forwarder(kernel)
    for statement in kernel.statements:
        if not is_constant(statement.rhs):
            forwarder.visit(statement)
    now = forwarder.now
    return kernel.with_(statements=tuple(now.get(s.id, s) for s in kernel.statements))


class _Forwarder(ExpressionMapper):
    """Looks at one statement after the other, in the order of the text."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.flow = dataflow_of(kernel)
        self.model = self.flow.model
        self.types = ValueTypes(self.model)
        self.now: dict[str, Statement] = {}
        self.reader: Statement | None = None

    def visit(self, statement: Statement) -> None:
        """Find the value of a statement."""
        self.reader = statement
        rhs = self(statement.rhs)
        if not any(True for _ in islice(nodes_of(rhs), _LONG, None)):
            self.now[statement.id] = replace(statement, rhs=rhs)

    def map_sum(self, expr: Any) -> Expression:
        return summed(self.types, expr.children, [self.operand(child) for child in expr.children])

    def map_product(self, expr: Any) -> Expression:
        return prim.Product(tuple(map(self.operand, expr.children)))

    def map_left_shift(self, expr: Any) -> Expression:
        return prim.LeftShift(self.operand(expr.shiftee), self.rec(expr.shift))

    def map_subscript(self, expr: Any) -> Expression:
        return expr  # an index is computed in other numbers

    def operand(self, expr: Expression) -> Expression:
        """An operand, or the value that it reads."""
        access = access_of(expr, self.model.data)
        if access is None or access[0] not in self.model.kernel.temporary_by_name:
            return self.rec(expr)
        with suppress(Undecided):
            value = self.value(access)
            return expr if value is None else value
        return expr

    def value(self, access: Access) -> Expression | None:
        """What a temporary holds, over the inames of the reader; None where it is not known."""
        reader = self.reader
        assert reader is not None
        sources = self.flow.of_read(reader.id, access)
        if len(sources.writes) != 1 or not sources.untouched.is_empty():
            return None
        ((name, relation),) = sources.writes.items()
        writer = self.now.get(name, self.model.statement[name])
        if not (self.is_value(writer) and sources.is_sure(name)):
            return None
        known = {instance(i, READER): i for i in reader.inames}
        wanted = [instance(i, WRITER) for i in writer.inames]
        solver = Solver(relation, wanted, known, self.model.kernel.sizes)
        values = {}
        for iname in writer.inames:
            value = solver.value(instance(iname, WRITER))
            if value is None:
                return None
            at = prim.Variable(instance(iname, WRITER))
            if not relation.is_subset(equal(at, self.model.named(value, READER))):
                return None
            values[iname] = value
        return substitute(writer.rhs, values)

    def is_value(self, writer: Statement) -> bool:
        """Whether a statement stores arithmetic of what nobody writes, as it was computed."""
        model = self.model
        names = variable_names(writer.rhs) & model.data
        arguments = model.kernel.arg_by_name
        return (
            isinstance(writer.rhs, _ARITHMETIC)
            and writer.operation is None
            and writer.kind == "user"
            and not writer.is_atomic
            and model.is_exact(writer)
            and all(name in arguments and name not in model.written for name in names)
            and self.types.of(writer.rhs) == self.types.array(writer.written)
        )
