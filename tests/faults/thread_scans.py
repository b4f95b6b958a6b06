"""Faults in scans that the threads of a block make together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from refusals.case import do
from seams import tree as c

import loopkit as lk
from faults.collectives import ALL, Nodes, number, replaced, without
from faults.kernels import make
from faults.planting import Patch, fault


def prefix() -> Any:
    """The running sum of a vector."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, x[j])",
        "x, y",
        assumptions="n >= 1",
    )


def made(kind: str, change: Callable[[Nodes], Nodes]) -> Patch:
    """The nodes of a scan, or of what carries on, come out changed."""

    def make_(original: Any) -> Any:
        def node(*arguments: Any) -> Any:
            found = original(*arguments)
            is_it = found.statement == f"acc_{kind}"
            return dataclasses.replace(found, body=change(found.body)) if is_it else found

        return node

    return Patch("codegen.combinations:combined", make_)


def threads(count: int, **options: Any) -> tuple[Any, ...]:
    """The steps to a scan of so many threads."""
    return (
        do("realize_reduction", force_scan=True, **options),
        do("split_iname", "i", count, inner_tag="l.0"),
    )


def every(old: type, new: Callable[[Any], Any]) -> Callable[[Nodes], Nodes]:
    """All expressions of a kind are others."""

    def inside(expr: Any) -> Any:
        if isinstance(expr, tuple):
            return tuple(map(inside, expr))
        if not dataclasses.is_dataclass(expr) or isinstance(expr, type):
            return expr
        if isinstance(expr, old):
            expr = new(expr)
        fields = {f.name: inside(getattr(expr, f.name)) for f in dataclasses.fields(expr)}
        return type(expr)(**fields)

    return inside


LANE, NUMBER, OWN = c.Name("acc_lane"), c.Name("threadIdx.x"), c.Name("acc")
IN_SCANS: dict[str, tuple[tuple[Any, ...], Callable[[Nodes], Nodes]]] = {
    "a step is left out": (threads(32), without(c.If, 2)),
    "lanes look too near": (
        threads(32),
        replaced(
            c.Call("__shfl_up_sync", (ALL, OWN, number(8))),
            c.Call("__shfl_up_sync", (ALL, OWN, number(7))),
        ),
    ),
    "lanes look up": (
        threads(32),
        every(c.Call, lambda call: c.Call("__shfl_down_sync", call.arguments)),
    ),
    "a lane takes in what nobody gave": (
        threads(64),
        replaced(c.Binary(">=", LANE, number(4)), c.Binary(">=", LANE, number(3))),
    ),
    "no barrier before results of warps are read": (threads(64), without(c.Wait, 0)),
    "what warps before have is left out": (threads(64), without(c.If, -1)),
    "the warp before the last is forgotten": (threads(113), without(c.If, -1)),
    "the last but one lane leaves what a warp has": (
        threads(64),
        replaced(c.Binary("==", LANE, number(31)), c.Binary("==", LANE, number(30))),
    ),
    "warps take in their own once more": (
        threads(256),
        replaced(
            c.Binary("-", c.Name("acc_warp"), number(1)),
            c.Name("acc_warp"),
        ),
    ),
    "no barrier between the steps in shared memory": (
        threads(64, by="shared"),
        without(c.Wait, 2),
    ),
    "a step in shared memory is left out": (threads(64, by="shared"), without(c.If, 3)),
}
IN_CARRIES: dict[str, tuple[tuple[Any, ...], Callable[[Nodes], Nodes]]] = {
    "no barrier before the first thread goes on": (threads(64), without(c.Wait, 0)),
    "all threads go on with everything": (threads(64), every(c.Choice, lambda e: e.then)),
    "nobody goes on with anything": (threads(64), every(c.Choice, lambda e: e.other)),
    "the last thread goes on": (
        threads(32),
        replaced(c.Binary("==", NUMBER, number(0)), c.Binary("==", NUMBER, number(31))),
    ),
    "another lane says what all have": (threads(32), replaced(number(31), number(30))),
}
for kind, faults in {"scan": IN_SCANS, "carry": IN_CARRIES}.items():
    for name, (chain, change) in faults.items():
        fault(
            f"thread scans: {name}",
            prefix,
            None,
            made(kind, change),
            chain=chain,
            sizes={"n": 600},
        )


def segments() -> Any:
    """A running sum that starts anew."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = reduce(segmented(sum), j, x[j], j % 5 == 3)",
        "x, y",
        assumptions="n >= 1",
    )


def lines() -> Any:
    """A linear recurrence: terms that do not commute."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "<>_, y[i] = lines(j, x[j] - 2, x[j] + j)",
        "x, y",
        assumptions="n >= 1",
        reductions=[
            lk.register_reduction(
                "lines", (1, 0), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), ordered=True
            )
        ],
    )


for what, kernel in (("of segments", segments), ("that have an order", lines)):
    fault(
        f"thread scans: {what}, what stands behind comes first",
        kernel,
        None,
        Patch(
            "codegen.combining:Combining.takes_before",
            lambda original: lambda self, place, value: self.takes(place, value),
        ),
        chain=threads(32),
        sizes={"n": 100},
    )


def _moved(is_carry: bool, by: int) -> Patch:
    """A scan, or what carries on, stands elsewhere."""

    def make_(original: Any) -> Any:
        def behind(self: Any, entries: Any, at: int) -> int:
            found: int = original(self, entries, at)
            is_made = any(leaf == "acc_scan" for leaf, _ in entries)
            return found + by if is_made == is_carry else found

        return behind

    return Patch("_scan_places:_Place.behind", make_)


for name, patch in {
    "in front of the updates": _moved(is_carry=False, by=-1),
    "behind what reads": _moved(is_carry=False, by=1),
    "carried on before it is read": _moved(is_carry=True, by=-1),
}.items():
    fault(
        f"thread scans: {name}",
        prefix,
        None,
        patch,
        chain=threads(32),
        sizes={"n": 100},
    )
