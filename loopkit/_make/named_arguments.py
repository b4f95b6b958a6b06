"""Arguments of calls that are given by name, ``curve(x[i], gain=2)``: put in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError, SourcePosition, caret_at
from loopkit._make.own_calls import TextMapper, with_expressions
from loopkit._nodes import Expression, Named
from loopkit._syntax.items import RawItem, RawSubstitution

Signatures = Mapping[str, Sequence[tuple[str, ...]]]
"""The names of the arguments that functions take, in order, of each overload."""

_NAMED = re.compile(r"[(,]\s*[A-Za-z_]\w*\s*=(?!=)")


def with_arguments_in_order(items: Iterable[RawItem], taken: Signatures) -> list[RawItem]:
    """A text whose calls give their arguments in order; rules of the text are called so, too.

    Raises :class:`InvalidArgumentError` for names that what is called does not have.
    """
    items = list(items)
    if not any(_NAMED.search(item.text) for item in items):
        return items
    rules = {i.name: [i.arguments] for i in items if isinstance(i, RawSubstitution)}
    found: Signatures = {**taken, **rules}
    return [
        with_expressions(i, _Orderer(found, i.position)) if _NAMED.search(i.text) else i
        for i in items
    ]


class _Orderer(TextMapper):
    def __init__(self, taken: Signatures, position: SourcePosition) -> None:
        super().__init__()
        self.taken = taken
        self.position = position

    def map_call(self, expr: prim.Call) -> Expression:
        values = [self.rec(p.operand if isinstance(p, Named) else p) for p in expr.parameters]
        names = [p.name for p in expr.parameters if isinstance(p, Named)]
        if not names:
            return prim.Call(expr.function, tuple(values))
        name, first = expr.function.name, len(values) - len(names)
        by_name = dict(zip(names, values[first:], strict=True))
        for signature in self.taken.get(name, ()):
            rest = signature[first : len(values)]
            if len(names) == len(rest) and by_name.keys() == {*rest}:
                return prim.Call(expr.function, (*values[:first], *(by_name[n] for n in rest)))
        taken = [f"{name}({', '.join(signature)})" for signature in self.taken.get(name, ())]
        known = {n for signature in self.taken.get(name, ()) for n in signature[first:]}
        strange = [n for n in names if n not in known or names.count(n) > 1]
        raise InvalidArgumentError(
            f"'{name}' takes no arguments by the names {', '.join(strange or names)}",
            asked=caret_at(self.position),
            instead=f"it is {' or '.join(taken)}"
            if taken
            else "those of rules and of functions of one's own have names",
        )
