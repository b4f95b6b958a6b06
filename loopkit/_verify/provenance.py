"""How a value was computed, as an expression over the initial contents of arguments."""

from __future__ import annotations

from typing import Any

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._arrays import ValueArg
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression, Record
from loopkit._reference.compile_statement import conditions_in_order, evaluator
from loopkit._reference.python_source import Names, Translator
from loopkit._replay.interpreter import Interpreter, TracedValue

_LEAVES = 10
_DEPTH = 20
_TERMS = 3
_MORE = prim.Variable("...")


def provenance(machine: Interpreter, entry: TracedValue) -> str:
    """``a[0, 0]*b[0, 0] + a[0, 1]*b[1, 0]``; long expressions are abbreviated with dots."""
    return _expression.to_text(_Renderer(machine).entry(entry))


class _Renderer:
    def __init__(self, machine: Interpreter) -> None:
        self.machine = machine
        self.leaves = _LEAVES
        self.depth = 0

    def entry(self, entry: TracedValue) -> Expression:
        """The expression of a value."""
        if entry.statement is None:
            self.leaves -= 1
            return prim.Variable(self.cell(entry))
        if self.leaves <= 0 or self.depth == _DEPTH:
            return _MORE
        statement = self.machine.kernel.statement_by_id[entry.statement]
        self.depth += 1
        try:
            if statement.operation is not None:
                return self.reduced(entry, statement.operation)
            return _Walker(self, entry)(statement.rhs)
        finally:
            self.depth -= 1

    def cell(self, entry: TracedValue) -> str:
        """The name of a cell that nothing has written."""
        kernel = self.machine.kernel
        argument = kernel.arg_by_name.get(entry.array)
        if isinstance(argument, ValueArg):
            return entry.array
        rooms = len(self.machine.copies.get(entry.array, ()))
        place = entry.place[rooms:]
        name = f"{entry.array}[{', '.join(map(str, place))}]" if place else entry.array
        if argument is None:
            return f"{name} (never written)"
        is_inside = self.machine.is_inside(entry.array, place)
        return name if is_inside else f"{name} (outside of the array)"

    def reduced(self, entry: TracedValue, operation: str) -> Expression:
        """What updates have gathered, the first ones spelled out."""
        kernel = self.machine.kernel
        updates = []
        while entry.statement is not None:
            statement = kernel.statement_by_id[entry.statement]
            if statement.operation != operation:
                break
            updates.append(entry)
            # An update reads what it updates first.
            entry = next(e for e in entry.used if e.array == entry.array)
        terms = []
        if not self.is_neutral(entry, operation):
            terms.append(self.entry(entry))
        for update in reversed(updates):
            if len(terms) >= _TERMS or self.leaves <= 0:
                terms.append(_MORE)
                break
            assert update.statement is not None
            statement = kernel.statement_by_id[update.statement]
            terms.append(_Walker(self, update)(statement.rhs))
        if len(terms) == 1:
            return terms[0]
        if operation == "sum":
            return prim.Sum(tuple(terms))
        if operation == "product":
            return prim.Product(tuple(terms))
        return prim.Call(prim.Variable(operation), tuple(terms))

    def is_neutral(self, entry: TracedValue, operation: str) -> bool:
        """Whether a reduction starts from the neutral element."""
        start = operations_of(self.machine.kernel.reductions)[operation].start
        neutral = start(self.machine.dtypes[entry.array])
        if isinstance(neutral, Record):
            neutral = neutral.parts
        return entry.statement is not None and bool(entry.value == neutral)


class _Walker(_expression.ExpressionMapper):
    """Replaces what a statement read by how that came about, in the order of its loads.

    With ``as_values``, by what it was.
    """

    def __init__(self, renderer: _Renderer, entry: TracedValue) -> None:
        super().__init__()
        self.renderer = renderer
        self.as_values = False
        statement = renderer.machine.kernel.statement_by_id[entry.statement or ""]
        self.values = {**renderer.machine.sizes, **entry.point}
        self.used = entry.used
        self.at = 0
        for condition in conditions_in_order(statement, self.values):
            self.holds(condition)
        if statement.operation is not None:
            self.rec(statement.lhs)

    def rec(self, expr: Expression, *args: Any, **kwargs: Any) -> Expression:
        if _expression.is_constant(expr):
            return expr
        if _expression.variable_names(expr) <= self.values.keys() and not isinstance(
            expr, prim.Call
        ):
            # Nothing is loaded in it, and so nothing of it is among what was used.
            try:
                return int(_expression.evaluate(expr, self.values))
            except Exception:
                return _expression.substitute(expr, self.values)
        return super().rec(expr)

    __call__ = rec

    def load(self) -> Expression:
        entry = self.used[self.at]
        self.at += 1
        return entry.value if self.as_values else self.renderer.entry(entry)

    def holds(self, condition: Expression) -> bool:
        """Whether a condition was true; what follows from its first parts was not looked at."""
        if isinstance(condition, prim.LogicalAnd):
            return all(map(self.holds, condition.children))
        if isinstance(condition, prim.LogicalOr):
            return any(map(self.holds, condition.children))
        if isinstance(condition, prim.LogicalNot):
            return not self.holds(condition.child)
        outside, self.as_values = self.as_values, True
        known = self.rec(condition)
        self.as_values = outside
        translator = Translator(Names(frozenset(), {}, {}, lambda name, _: name, evaluator))
        source = translator.condition(known)
        return bool(eval(source, translator.space))

    def map_variable(self, expr: Any) -> Expression:
        return self.load()

    def map_subscript(self, expr: Any) -> Expression:
        for index in _expression.index_tuple(expr):
            self.rec(index)
        return self.load()

    def map_if(self, expr: Any) -> Expression:
        return self.rec(expr.then if self.holds(expr.condition) else expr.else_)

    def map_logical(self, expr: Any) -> Expression:
        """The part that decided."""
        for child in expr.children[:-1]:
            start = self.at
            if self.holds(child) != isinstance(expr, prim.LogicalAnd):
                self.at = start
                return self.rec(child)
        return self.rec(expr.children[-1])

    map_logical_and = map_logical_or = map_logical
