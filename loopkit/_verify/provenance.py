"""How a value came about, as an expression of what the arguments held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymbolic.primitives as prim

from loopkit._arrays import ValueArg
from loopkit._expression import (
    ExpressionMapper,
    evaluate,
    index_tuple,
    is_constant,
    substitute,
    to_text,
    variable_names,
)
from loopkit._make.operations import operations_of
from loopkit._nodes import Expression
from loopkit._verify.example_data import TracedValue
from loopkit._verify.kernel_at_sizes import KernelAtSizes

_LEAVES = 10
_DEPTH = 20
_TERMS = 3
_MORE = prim.Variable("...")


def provenance(at_sizes: KernelAtSizes, entry: TracedValue) -> str:
    """``a[0, 0]*b[0, 0] + a[0, 1]*b[1, 0]``; what is long ends in dots."""
    return to_text(_Renderer(at_sizes).entry(entry))


class _Renderer:
    def __init__(self, at_sizes: KernelAtSizes) -> None:
        self.at_sizes = at_sizes
        self.leaves = _LEAVES
        self.depth = 0

    def entry(self, entry: TracedValue) -> Expression:
        """The expression of a value."""
        if entry.statement is None:
            self.leaves -= 1
            return prim.Variable(self.cell(entry))
        if self.leaves <= 0 or self.depth == _DEPTH:
            return _MORE
        statement = self.at_sizes.kernel.statement_by_id[entry.statement]
        self.depth += 1
        try:
            if statement.operation is not None:
                return self.reduced(entry, statement.operation)
            return _Walker(self, entry)(statement.rhs)
        finally:
            self.depth -= 1

    def cell(self, entry: TracedValue) -> str:
        """The name of a cell that nothing has written."""
        kernel = self.at_sizes.kernel
        argument = kernel.arg_by_name.get(entry.array)
        if isinstance(argument, ValueArg):
            return entry.array
        rooms = len(self.at_sizes.copies.get(entry.array, ()))
        place = entry.place[rooms:]
        name = f"{entry.array}[{', '.join(map(str, place))}]" if place else entry.array
        if argument is None:
            return f"{name} (never written)"
        shape = self.at_sizes.shapes[entry.array]
        if not all(0 <= i < e for i, e in zip(place, shape, strict=True)):
            return f"{name} (outside of the array)"
        return name

    def reduced(self, entry: TracedValue, operation: str) -> Expression:
        """What updates have gathered, the first ones spelled out."""
        kernel = self.at_sizes.kernel
        updates = []
        while entry.statement is not None:
            statement = kernel.statement_by_id[entry.statement]
            if statement.operation != operation:
                break
            updates.append(entry)
            # An update reads what it updates first.
            entry = next(
                e for e in entry.used if isinstance(e, TracedValue) and e.array == entry.array
            )
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
        """Whether a reduction starts from what changes nothing."""
        neutral = operations_of(self.at_sizes.kernel.reductions)[operation].neutral
        dtype = self.at_sizes.dtypes[entry.array]
        return entry.statement is not None and bool(entry.value == neutral(dtype))


class _Walker(ExpressionMapper):
    """Replaces what a statement read by how that came about, in the order of its loads."""

    def __init__(self, renderer: _Renderer, entry: TracedValue) -> None:
        super().__init__()
        self.renderer = renderer
        statement = renderer.at_sizes.kernel.statement_by_id[entry.statement or ""]
        self.values = {**renderer.at_sizes.sizes, **entry.point}
        self.used: Iterator[TracedValue | bool] = iter(entry.used)
        for predicate in statement.predicates:
            self.rec(predicate)
        if statement.operation is not None:
            for index in statement.write[1]:
                self.rec(index)
            next(self.used)

    def rec(self, expr: Expression, *args: Any, **kwargs: Any) -> Expression:
        if is_constant(expr):
            return expr
        if variable_names(expr) <= self.values.keys() and not isinstance(expr, prim.Call):
            # Nothing is loaded or decided in it, and so nothing of it is among what was used.
            try:
                return int(evaluate(expr, self.values))
            except Exception:
                return substitute(expr, self.values)
        return super().rec(expr)

    __call__ = rec

    def load(self) -> Expression:
        entry = next(self.used)
        assert isinstance(entry, TracedValue)
        return self.renderer.entry(entry)

    def map_variable(self, expr: Any) -> Expression:
        return self.load()

    def map_subscript(self, expr: Any) -> Expression:
        for index in index_tuple(expr):
            self.rec(index)
        return self.load()

    def map_if(self, expr: Any) -> Expression:
        self.rec(expr.condition)
        return self.rec(expr.then if next(self.used) else expr.else_)

    def map_logical_and(self, expr: Any) -> Expression:
        for child in expr.children[:-1]:
            found = self.rec(child)
            if not next(self.used):
                return found
        return self.rec(expr.children[-1])

    def map_logical_or(self, expr: Any) -> Expression:
        for child in expr.children[:-1]:
            found = self.rec(child)
            if next(self.used):
                return found
        return self.rec(expr.children[-1])
