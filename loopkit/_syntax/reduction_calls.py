"""Recognition of calls that are reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import ParseError, SourcePosition
from loopkit._expression import ExpressionMapper, to_text
from loopkit._nodes import Expression, Record, Reduction, TypeName, segmented, segments_of

Components = Mapping[str, tuple[str, ...]]
"""The reductions that a kernel knows, with their components; none for those with one result."""

REDUCTIONS: Components = {
    **dict.fromkeys(("sum", "product", "max", "min", "any", "all"), ()),
    **dict.fromkeys(("argmax", "argmin"), ("value", "index")),
}
"""The reductions that every kernel knows."""


def with_segmented(reductions: Components) -> Components:
    """Reduction operations, and the segmented forms of those with one result.

    A segmented form takes the terms, and conditions that start a segment.
    """
    segments = {segmented(n): ("value", "restart") for n, c in reductions.items() if not c}
    return {**reductions, **segments}


def resolve_reductions(
    expr: Expression,
    is_iname: Callable[[str], bool],
    *,
    reductions: Components = REDUCTIONS,
    position: SourcePosition | None = None,
) -> Expression:
    """``expr`` with its reductions as :class:`~loopkit._nodes.Reduction` nodes.

    A call of a name in ``reductions`` is one if its first argument is an iname,
    or a tuple of inames, for which ``is_iname`` holds: those that the
    instruction is not yet inside.  Inside a reduction its own inames do not
    count any more.  ``max`` and ``min`` of anything else are the maximum and
    minimum of values; any other name is an error, reported at ``position``.
    """
    if type(expr) in (int, float, complex, bool, prim.Variable):
        return expr
    return _Resolver(is_iname, reductions, position)(expr)


class _Resolver(ExpressionMapper):
    def __init__(
        self,
        is_iname: Callable[[str], bool],
        reductions: Components,
        position: SourcePosition | None,
    ) -> None:
        super().__init__()
        self.is_iname = is_iname
        self.reductions = reductions
        self.position = position
        self.inside: tuple[str, ...] = ()

    def fail(self, why: str, instead: str = "") -> NoReturn:
        raise ParseError(why, position=self.position, instead=instead)

    def free_inames(self, first: Expression) -> tuple[str, ...] | None:
        """The names in a first argument, if all of them are inames to reduce over."""
        items = first if isinstance(first, tuple) else (first,)
        names = tuple(item.name for item in items if isinstance(item, prim.Variable))
        if len(names) != len(items) or not names:
            return None
        if any(name in self.inside or not self.is_iname(name) for name in names):
            return None
        return names

    def reduction(
        self,
        name: str,
        inames: tuple[str, ...],
        operand: Expression,
        dtype: np.dtype[Any] | None = None,
    ) -> Expression:
        if len(set(inames)) != len(inames):
            self.fail(f"'{name}' names an iname twice: {', '.join(inames)}")
        outside = self.inside
        self.inside = outside + inames
        try:
            return Reduction(name, inames, self.rec(operand), dtype)
        finally:
            self.inside = outside

    def map_max(self, expr: prim.Max) -> Expression:
        return self.extremum("max", expr)

    def map_min(self, expr: prim.Min) -> Expression:
        return self.extremum("min", expr)

    def extremum(self, name: str, expr: prim.Max | prim.Min) -> Expression:
        if len(expr.children) == 2 and isinstance(expr.children[0], prim.Variable):
            inames = self.free_inames(expr.children[0])
            if inames is not None:
                return self.reduction(name, inames, expr.children[1])
        return type(expr)(tuple(self.rec(child) for child in expr.children))

    def map_call(self, expr: prim.Call) -> Expression:
        function: Any = expr.function
        name = function.name
        parameters = expr.parameters
        first = parameters[0] if parameters else None
        dtype = None
        if parameters and isinstance(parameters[-1], TypeName):
            dtype, parameters = parameters[-1].dtype, parameters[:-1]
            if name not in self.reductions:
                self.fail(f"'{name}' takes no dtype", "reductions take one")
            if self.reductions[name]:
                self.fail(f"'{name}' takes no dtype", "its operands can be cast: float64(x)")
        if name not in self.reductions:
            if isinstance(first, tuple):
                known = sorted(r for r in self.reductions if segments_of(r) is None)
                self.fail(
                    f"'{name}' is not a reduction, so it takes no tuple of inames",
                    "reductions: " + ", ".join(known),
                )
            return prim.Call(expr.function, tuple(self.rec(p) for p in parameters))
        inames = self.free_inames(first)
        components = self.reductions[name]
        if len(parameters) != 1 + max(1, len(components)):
            many = f"{len(components)} expressions" if components else "one expression"
            self.fail(
                f"the reduction '{name}' takes an iname, or a tuple of inames, and {many}",
                self.written(name),
            )
        if inames is None:
            self.fail_at_first(name, first)
        if segments_of(name) is not None and len(inames) > 1:
            self.fail(
                f"'{name}' runs over one iname, in its order, and not over {', '.join(inames)}",
                self.written(name),
            )
        operand = Record(components, parameters[1:]) if components else parameters[1]
        return self.reduction(name, inames, operand, dtype)

    def written(self, name: str) -> str:
        """How a reduction is written."""
        components = self.reductions[name]
        if segments_of(name) is not None:
            return f"it is written reduce({name}, k, x, flag)"
        if not components:
            return f"it is written {name}(k, x) or {name}((k, l), x)"
        return f"it is written {', '.join(components)} = {name}(k, {', '.join(components)})"

    def fail_at_first(self, name: str, first: Expression) -> NoReturn:
        items = first if isinstance(first, tuple) else (first,)
        for item in items:
            if not isinstance(item, prim.Variable):
                self.fail(
                    f"'{name}' is a reduction, and '{to_text(item)}' is not an iname",
                    self.written(name),
                )
            if item.name in self.inside:
                self.fail(
                    f"'{name}' reduces over '{item.name}' inside a reduction over '{item.name}'",
                    "give the inner one a separate iname",
                )
            if not self.is_iname(item.name):
                self.fail(
                    f"'{name}' cannot reduce over '{item.name}': it is not an iname that the "
                    "instruction is outside of",
                    f"a domain must declare '{item.name}', and neither a 'for' nor the left side "
                    "may use it",
                )
        self.fail(f"'{name}' is a reduction and needs inames")
