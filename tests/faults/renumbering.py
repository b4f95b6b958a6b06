"""Faults where loops of any length are counted in another way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Chunked, Joined

from faults.making import total, var
from faults.planting import Patch, fault
from loopkit import GlobalArg, Kernel, make_kernel

JOIN = do("join_inames", "i, j", "q")
CHUNK = do("chunk_iname", "i", 3)
SIZES = {"n": 5, "m": 3}


def table() -> Kernel:
    """Each element of a table, told which it is."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = 10*i + j + a[i, j] {id=s}",
        [GlobalArg("a, b", "float32", shape="n, m"), ...],
        assumptions="n, m >= 1",
    )


def chained() -> Kernel:
    """A number that hangs on all elements, the last one most."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[0] = 2*b[0] + a[i, j] {id=s}",
        [GlobalArg("a", "float32", shape="n, m"), GlobalArg("b", "float32", shape="1"), ...],
        assumptions="n, m >= 1",
    )


def values_of(kind: type, wrong: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> Patch:
    """The values of old inames are others, for the transform as for the checker."""

    def make(original: Any) -> Any:
        right = original.fget
        return property(lambda claim: wrong(claim, dict(right(claim))))

    return Patch(f"_change:{kind.__name__}.values", make)


def after_of(kind: type, name: str, value: Any) -> Patch:
    """The new loops are others, for the transform as for the checker."""

    def make(original: Any) -> Any:
        right = original.fget
        return property(lambda claim: right(dataclasses.replace(claim, **{name: value(claim)})))

    return Patch(f"_change:{kind.__name__}.after", make)


fault(
    "renumbering: quotient and remainder exchanged",
    table,
    JOIN,
    values_of(Joined, lambda claim, v: dict(zip(v, reversed(v.values()), strict=True))),
    sizes=SIZES,
)
fault(
    "renumbering: divided by the length of the outer loop",
    table,
    JOIN,
    values_of(
        Joined,
        lambda claim, v: {
            "i": prim.FloorDiv(var("q"), claim.lengths[0]),
            "j": prim.Remainder(var("q"), claim.lengths[1]),
        },
    ),
    sizes=SIZES,
)
fault(
    "renumbering: counted backwards",
    chained,
    JOIN,
    values_of(
        Joined,
        lambda claim, v: v | {"j": total(claim.lengths[1], -1, prim.Product((-1, v["j"])))},
    ),
    sizes=SIZES,
)
fault(
    "renumbering: one element too few",
    table,
    JOIN,
    after_of(Joined, "count", lambda claim: total(claim.count, -1)),
    sizes=SIZES,
)
fault(
    "renumbering: starts of chunks ignore the longer ones",
    table,
    CHUNK,
    values_of(
        Chunked,
        lambda claim, v: {"i": total(*(c for c in v["i"].children if not isinstance(c, prim.Min)))},
    ),
    sizes=SIZES,
)
fault(
    "renumbering: one chunk too few",
    table,
    CHUNK,
    after_of(Chunked, "chunks", lambda claim: claim.chunks - 1),
    sizes=SIZES,
)
