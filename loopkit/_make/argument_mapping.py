"""The text of a function in the names of who calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit._expression import ExpressionMapper, index_tuple, substitute
from loopkit._frozen import dataclass
from loopkit._make.expressions import with_expressions
from loopkit._nodes import Expression, Reduction, SubArray
from loopkit._syntax.items import RawItem, RawSubstitution


@dataclass(frozen=True)
class Parts:
    """What stands for the names of a function: parts of arrays, values, and other names."""

    arrays: Mapping[str, Any]
    values: Mapping[str, Expression]
    names: Mapping[str, str]


class _Mapper(ExpressionMapper):
    def __init__(self, parts: Parts, bound: Mapping[str, str]) -> None:
        super().__init__()
        self.parts = parts
        self.names = {**parts.names, **bound}
        self.bound = bound

    def map_variable(self, expr: prim.Variable) -> Expression:
        if expr.name not in self.bound:
            if expr.name in self.parts.values:
                return self.parts.values[expr.name]
            if expr.name in self.parts.arrays:
                return self.element(self.parts.arrays[expr.name], ())
        return prim.Variable(self.names.get(expr.name, expr.name))

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        indices = tuple(self.rec(i) for i in index_tuple(expr))
        name = expr.aggregate.name
        if name in self.parts.arrays:
            return self.element(self.parts.arrays[name], indices)
        return prim.Subscript(prim.Variable(self.names.get(name, name)), indices)

    def element(self, given: Any, indices: tuple[Expression, ...]) -> Expression:
        if not isinstance(given, SubArray):
            return given
        return substitute(given.subscript, dict(zip(given.inames, indices, strict=True)))

    def map_call(self, expr: prim.Call) -> Expression:
        function = expr.function
        if function.name in self.parts.names:
            function = prim.Variable(self.parts.names[function.name])
        return prim.Call(function, tuple(self.rec(p) for p in expr.parameters))

    def map_reduction(self, expr: Reduction) -> Expression:
        inames = tuple(self.names.get(i, i) for i in expr.inames)
        return Reduction(expr.operation, inames, self.rec(expr.operand), expr.dtype)

    def map_tuple(self, expr: tuple[Expression, ...]) -> Expression:
        return tuple(self.rec(part) for part in expr)


def mapped(item: RawItem, parts: Parts, fresh: Callable[[str], str]) -> RawItem:
    """An item of a function with what stands for its names; ``fresh`` makes names."""
    bound = {}
    if isinstance(item, RawSubstitution):
        # What a part of an array says could hold a name like that of a rule's argument.
        bound = {name: fresh(name) for name in item.arguments}
    found = with_expressions(item, _Mapper(parts, bound))
    if isinstance(found, RawSubstitution):
        return replace(found, name=parts.names[found.name], arguments=tuple(bound.values()))
    return found
