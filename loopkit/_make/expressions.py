"""The expressions of the items of a text, and what changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from loopkit._expression import ExpressionMapper, is_constant
from loopkit._kernel import SubstitutionRule
from loopkit._nodes import Expression
from loopkit._syntax.items import RawAssignment, RawItem, RawStatement, RawSubstitution

T = TypeVar("T", RawItem, SubstitutionRule)


class TextMapper(ExpressionMapper):
    """Rebuilds an expression of a text, but for the inames of a reduction."""

    def map_tuple(self, expr: tuple[Expression, ...]) -> Expression:
        return expr  # the inames of a reduction


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
