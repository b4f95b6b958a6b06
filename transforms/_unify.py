"""Finding a template in an expression."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from typing import Any

import pymbolic.primitives as prim

from loopkit._expression import ExpressionMapper, is_constant
from loopkit._nodes import Expression

Bindings = dict[str, Expression]


def unify(template: Any, expr: Any, parameters: Collection[str]) -> Bindings | None:
    """What ``parameters`` must stand for to make ``template`` equal to ``expr``."""
    found: Bindings = {}
    return found if _unify(template, expr, parameters, found) else None


def _unify(template: Any, expr: Any, parameters: Collection[str], found: Bindings) -> bool:
    if isinstance(template, prim.Variable) and template.name in parameters:
        if template.name in found:
            return bool(found[template.name] == expr)
        found[template.name] = expr
        return True
    if isinstance(template, tuple):
        return (
            isinstance(expr, tuple)
            and len(template) == len(expr)
            and all(_unify(t, e, parameters, found) for t, e in zip(template, expr, strict=True))
        )
    if isinstance(template, prim.Subscript) and isinstance(expr, prim.Subscript):
        return _unify(template.aggregate, expr.aggregate, parameters, found) and _unify(
            _as_tuple(template.index), _as_tuple(expr.index), parameters, found
        )
    if type(template) is not type(expr):
        return False
    if is_constant(template) or not is_dataclass(template):
        return bool(template == expr)
    return all(
        _unify(getattr(template, f.name), getattr(expr, f.name), parameters, found)
        for f in fields(template)
    )


def _as_tuple(index: Any) -> tuple[Expression, ...]:
    return index if isinstance(index, tuple) else (index,)


class TemplateReplacer(ExpressionMapper):
    """Replaces what matches a template; of a longer sum or product, its beginning.

    Sums and products associate to the left, so that their beginning is the only
    part that is an operand by itself.
    """

    def __init__(
        self,
        template: Expression,
        parameters: Collection[str],
        make: Callable[[Bindings], Expression],
    ) -> None:
        super().__init__()
        self.template = template
        self.parameters = parameters
        self.make = make
        self.count = 0

    def rec(self, expr: Expression, *args: Any, **kwargs: Any) -> Expression:
        found = unify(self.template, expr, self.parameters)
        if found is not None:
            self.count += 1
            return self.make(found)
        kind = type(self.template)
        if isinstance(expr, (prim.Sum, prim.Product)) and type(expr) is kind:
            length = len(self.template.children)
            if length < len(expr.children):
                found = unify(self.template, kind(expr.children[:length]), self.parameters)
                if found is not None:
                    self.count += 1
                    rest = tuple(self.rec(c) for c in expr.children[length:])
                    return kind((self.make(found), *rest))
        return super().rec(expr, *args, **kwargs)

    __call__ = rec
