"""Faults in reductions that run along a loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do

from faults.kernels import make
from faults.planting import Patch, fault

Parts = list[Any]
I, J = prim.Variable("i"), prim.Variable("j")
STEP = do("realize_reduction", force_scan=True)


def growing(bounds: str) -> Callable[[], Any]:
    """A sum over what grows with i."""
    return lambda: make(
        ["{ [i]: 0 <= i < n }", f"{{ [j]: {bounds} }}"],
        "y[i] = sum(j, x[j + 1])",
        "x, y",
        assumptions="n >= 1",
    )


def rows() -> Any:
    """The same of each row."""
    return make(
        ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[r, i] = sum(j, x[r, j])",
        "x, y",
        assumptions="n, m >= 1",
    )


def parts(change: Callable[[Parts], Parts]) -> Patch:
    """What is added where comes out changed."""

    def make_(original: Any) -> Any:
        return lambda *arguments: change(original(*arguments))

    return Patch("transforms._scans:_Scan.parts", make_)


def each(**fields: Any) -> Callable[[Parts], Parts]:
    """What an iteration adds comes out changed."""
    return lambda found: [*found[:-1], dataclasses.replace(found[-1], **fields)]


def term(value: Any, *, is_told: bool) -> Callable[[Parts], Parts]:
    """Another term is added, and said to be so."""
    return each(values={"j": value}, **({"of_text": {"j": value}} if is_told else {}))


def in_each_iteration(found: Parts) -> Parts:
    return [dataclasses.replace(found[0], is_ahead=False, values=found[0].of_text), *found[1:]]


def updated(change: Callable[[Any], Any]) -> Patch:
    """The update comes out changed."""

    def make_(original: Any) -> Any:
        def rewrite(kernel: Any, values: Any, new: Any) -> Any:
            statements, rules = original(kernel, values, new)
            return tuple(change(s) if s.id in values else s for s in statements), rules

        return rewrite

    return Patch("transforms._scans:rewrite_statements", make_)


def _outermost(original: Any) -> Any:
    """All loops around are what the accumulator lasts through."""
    return lambda self, outer: tuple(iname for iname, _ in self.path)


BEFORE = prim.Sum((I, -1))
IN_PARTS: dict[str, tuple[str, Callable[[Parts], Parts]]] = {
    "the term before is added": ("0 <= j <= i", term(BEFORE, is_told=False)),
    "the term before is added, and said to be": ("0 <= j <= i", term(BEFORE, is_told=True)),
    "one term is added all the time": ("0 <= j <= i", term(0, is_told=True)),
    "what comes first is left out": ("0 <= j <= i + 2", lambda found: found[1:]),
    "what comes first is all there is": ("0 <= j <= i + 2", lambda found: found[:1]),
    "what comes first is added in each iteration": ("0 <= j <= i + 2", in_each_iteration),
    "a term is added before there is one": ("0 <= j < i", each(predicates=())),
}
for name, (bounds, change) in IN_PARTS.items():
    fault(f"scans: {name}", growing(bounds), STEP, parts(change), sizes={"n": 5})

IN_UPDATES: dict[str, Callable[[Any], Any]] = {
    "by another operation": lambda s: dataclasses.replace(s, operation="max"),
    "twice as much": lambda s: dataclasses.replace(s, rhs=prim.Product((2, s.rhs))),
    "only in even iterations": lambda s: dataclasses.replace(
        s, predicates=(prim.Comparison(prim.Remainder(I, 2), "==", 0),)
    ),
}
for name, update in IN_UPDATES.items():
    fault(f"scans: {name}", growing("0 <= j <= i"), STEP, updated(update), sizes={"n": 5})


def segments() -> Any:
    """A sum that starts anew."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = reduce(segmented(sum), j, x[j], j % 2 == 1)",
        "x, y",
        assumptions="n >= 1",
    )


IN_SEGMENTS: dict[str, Callable[[Any], Any]] = {
    "no segment starts anew": lambda s: dataclasses.replace(s, rhs=s.rhs.else_),
    "a segment starts with nothing": lambda s: dataclasses.replace(
        s, rhs=dataclasses.replace(s.rhs, then=0)
    ),
    "segments start where they do not": lambda s: dataclasses.replace(
        s, rhs=prim.If(s.rhs.condition, s.rhs.else_, s.rhs.then)
    ),
}
for name, update in IN_SEGMENTS.items():
    fault(f"scans: {name}", segments, STEP, updated(update), sizes={"n": 5})

fault(
    "scans: all rows have one accumulator",
    rows,
    STEP,
    Patch("transforms._scans:_Scan.loops", _outermost),
    sizes={"n": 4, "m": 3},
)
