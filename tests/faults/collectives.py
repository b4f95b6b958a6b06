"""Faults in what threads do together for a reduction, and in reductions of partial results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import tree as c

from faults.kernels import make
from faults.planting import Patch, fault

Nodes = tuple[Any, ...]


def rows() -> Any:
    """The sum of each row."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = sum(j, x[i, j])",
        "x, y",
        assumptions="n, m >= 1",
    )


def shares() -> Any:
    """The share of each number in the sum of its row: all threads read it."""
    return make(
        "{ [i, j, l]: 0 <= i < n and 0 <= j, l < m }",
        """
        for i
            <> total = sum(j, x[i, j])
            y[i, l] = x[i, l] / total
        end
        """,
        "x, y",
        assumptions="n, m >= 1",
    )


def combined(change: Callable[[Nodes], Nodes]) -> Patch:
    """The nodes of a combination come out changed."""

    def make_(original: Any) -> Any:
        def node(*arguments: Any) -> Any:
            found = original(*arguments)
            return dataclasses.replace(found, body=change(found.body))

        return node

    return Patch("codegen.combinations:combined", make_)


def without(kind: type, number: int) -> Callable[[Nodes], Nodes]:
    """One node of a kind is left out."""

    def change(nodes: Nodes) -> Nodes:
        at = [i for i, n in enumerate(nodes) if isinstance(n, kind)][number]
        return (*nodes[:at], *nodes[at + 1 :])

    return change


def twice(nodes: Nodes) -> Nodes:
    """The first exchange is made twice."""
    at = next(i for i, n in enumerate(nodes) if isinstance(n, c.Assign))
    return (*nodes[: at + 1], nodes[at], *nodes[at + 1 :])


def replaced(old: c.CExpression, new: c.CExpression) -> Callable[[Nodes], Nodes]:
    """One expression is another, wherever it stands."""

    def inside(expr: Any) -> Any:
        if expr == old:
            return new
        if not dataclasses.is_dataclass(expr):
            return tuple(map(inside, expr)) if isinstance(expr, tuple) else expr
        fields = {f.name: inside(getattr(expr, f.name)) for f in dataclasses.fields(expr)}
        return type(expr)(**fields)

    return inside


def number(value: int, ctype: str = "int") -> c.Number:
    return c.Number(value, ctype)


ALL = c.Unary("~", number(0, "uint"))
BLOCK = (do("split_iname", "j", 64, inner_tag="l.0"), do("tag_inames", "i: g.0"))
LOOP = (do("split_iname", "j", 64, inner_tag="l.0"),)
FIVE = (do("split_iname", "j", 5, inner_tag="l.0"), do("tag_inames", "i: g.0"))
SHARED = (*BLOCK, do("realize_reduction", by="shared"))
SIZES = {"n": 3, "m": 150}
LANE = c.Binary("%", c.Name("threadIdx.x"), number(32))
IN_COMBINATIONS: dict[str, tuple[tuple[Any, ...], Callable[[Nodes], Nodes]]] = {
    "no barrier before results of warps are read": (BLOCK, without(c.Wait, 0)),
    "no barrier between the steps of a tree": (SHARED, without(c.Wait, 2)),
    "a step is left out": (BLOCK, without(c.Assign, 1)),
    "a step of a tree is left out": (SHARED, without(c.If, 1)),
    "a step is made twice": (BLOCK, twice),
    "lanes meet the wrong ones": (BLOCK, replaced(number(8), number(4))),
    "the second lane of a warp stores for all": (
        BLOCK,
        replaced(c.Binary("==", LANE, number(0)), c.Binary("==", LANE, number(40))),
    ),
    "lanes that there are not are taken in": (FIVE, replaced(number(5), number(7))),
}
for name, (chain, change) in IN_COMBINATIONS.items():
    fault(f"combinations: {name}", rows, None, combined(change), chain=chain, sizes=SIZES)

READ_BY_ALL: dict[str, tuple[int, tuple[Any, ...], Callable[[Nodes], Nodes]]] = {
    "no barrier before all read the sum": (
        64,
        (do("realize_reduction", by="shared"),),
        without(c.Wait, -1),
    ),
    "the result stays with the first thread": (5, (), without(c.Assign, -1)),
}
for name, (length, steps, change) in READ_BY_ALL.items():
    fault(
        f"combinations: {name}",
        shares,
        None,
        combined(change),
        chain=(
            do("split_iname", "j", length, inner_tag="l.0"),
            do("split_iname", "l", length, inner_tag="l.0"),
            do("tag_inames", "i: g.0"),
            *steps,
        ),
        sizes=SIZES,
    )


def _other_axes(original: Any) -> Any:
    return lambda kernel: dict.fromkeys(original(kernel), (1,))


fault(
    "combinations: along the other axis",
    rows,
    None,
    Patch("codegen.combinations:combined_axes", _other_axes),
    chain=(
        do("split_iname", "j", 8, inner_tag="l.0"),
        do("split_iname", "i", 4, inner_tag="l.1"),
    ),
    sizes={"n": 7, "m": 30},
)


def partial(**fields: Callable[[Any], Any]) -> Patch:
    """A part of a reduction of partial results comes out changed."""

    def make_(original: Any) -> Any:
        def part(*arguments: Any) -> Any:
            found = original(*arguments)
            return dataclasses.replace(found, **{k: f(found) for k, f in fields.items()})

        return part

    return Patch("transforms.reductions:_partial", make_)


def _started_by_one(found: Any) -> Any:
    return dataclasses.replace(found.start, rhs=1)


def _doubled(found: Any) -> Any:
    return dataclasses.replace(found.taking, rhs=prim.Product((2, found.taking.rhs)))


def _by_maximum(found: Any) -> Any:
    return dataclasses.replace(found.taking, operation="max")


IN_PARTS = {
    "they start from one": partial(start=_started_by_one),
    "they are taken in twice as large": partial(taking=_doubled),
    "they are taken in by another operation": partial(taking=_by_maximum),
}
for name, patch in IN_PARTS.items():
    fault(
        f"partial results: {name}",
        rows,
        do("split_reduction_inward", "j_inner"),
        patch,
        chain=(do("split_iname", "j", 8),),
        sizes={"n": 3, "m": 20},
    )


def cells() -> Any:
    """Rows that add up in pairs, in a buffer of each block."""
    return make(
        "{ [b, i, k]: 0 <= b < n and 0 <= i < 16 and 0 <= k < 4 }",
        "h[i // 2] = h[i // 2] + x[b, i, k] {atomic}",
        "h, x",
        assumptions="n >= 1",
    )


for name, steps in {
    "a cell is combined twice": (),
    "the cells of one line alone": (do("peel_iname", "i", first=1),),
}.items():
    fault(
        f"combinations: {name}",
        cells,
        None,
        Patch("_combined:_Placement.is_once", lambda f: lambda *_: True),
        Patch("_combined:_Placement.is_of_all", lambda f: lambda *_: True),
        chain=(
            do("buffer_array", "h", ["i", "k"], partial=True),
            *steps,
            do("tag_inames", "b: g.0, k: l.0"),
        ),
        sizes={"n": 3},
    )
