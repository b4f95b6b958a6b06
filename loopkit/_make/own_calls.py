"""Calls of users' functions in a text: names become what was declared by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import pymbolic.primitives as prim

from loopkit._device_functions import OwnFunction, names_of
from loopkit._errors import InvalidArgumentError
from loopkit._expression import ExpressionMapper, is_constant
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._nodes import Expression
from loopkit._syntax.items import RawAssignment, RawItem, RawStatement, RawSubstitution

T = TypeVar("T", RawItem, SubstitutionRule)


class TextMapper(ExpressionMapper):
    """Rebuilds an expression of a text, but for the inames of a reduction."""

    def map_tuple(self, expr: tuple[Expression, ...]) -> Expression:
        return expr  # the inames of a reduction


class _Caller(TextMapper):
    def __init__(self, functions: Mapping[str, OwnFunction]) -> None:
        super().__init__()
        self.functions = functions

    def map_call(self, expr: prim.Call) -> Expression:
        function = self.functions.get(expr.function.name, expr.function)
        return prim.Call(function, tuple(self.rec(p) for p in expr.parameters))


def with_own_calls(item: T, functions: Mapping[str, OwnFunction]) -> T:
    """A part of a text, or a rule, whose calls know the functions that they call."""
    return with_expressions(item, _Caller(functions)) if functions else item


def with_expressions(item: T, called: Callable[[Expression], Expression]) -> T:
    """A part of a text, or a rule, with all of its expressions changed that are no constants."""

    def changed(expr: Expression) -> Expression:
        return expr if is_constant(expr) else called(expr)

    if isinstance(item, (RawSubstitution, SubstitutionRule)):
        return replace(item, expression=changed(item.expression))
    if isinstance(item, RawStatement):
        item = replace(item, predicates=tuple(map(changed, item.predicates)))
    if isinstance(item, RawAssignment):
        item = replace(item, lhs=changed(item.lhs), rhs=changed(item.rhs))
    return item


def expressions_of(item: RawItem) -> list[Expression]:
    """The expressions of a part of a text."""
    found: list[Expression] = []
    if isinstance(item, RawSubstitution):
        found.append(item.expression)
    if isinstance(item, RawStatement):
        found += item.predicates
    if isinstance(item, RawAssignment):
        found += (item.lhs, item.rhs)
    return [e for e in found if not is_constant(e)]


def check_function_names(kernel: Kernel) -> None:
    """Raise where a name of a function is that of something else, too."""
    own = names_of(kernel.functions)
    if not own:
        return
    others = {r.name: "a substitution rule" for r in kernel.substitutions}
    others |= {r.name: "a reduction" for r in kernel.reductions}
    others |= dict.fromkeys(kernel.all_inames, "an iname")
    others |= {a.name: "an argument" for a in kernel.args}
    others |= {t.name: "a temporary" for t in kernel.temporaries}
    others[kernel.name] = "the name of the kernel"
    taken = sorted(own & others.keys())
    if taken:
        raise InvalidArgumentError(
            f"'{taken[0]}' is {others[taken[0]]} and a function, which C calls by that name",
            instead="one of them can have another name",
        )
