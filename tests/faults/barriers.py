"""Faults in where barriers stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Barrier, GuardedLoop
from seams import IrFor as For
from seams import IrIf as If

from faults import kernels, programs
from faults.planting import Patch, fault

Nodes = tuple[Any, ...]

# {{{ barriers


def placed(change: Callable[[Nodes], Nodes]) -> Patch:
    """Barriers end up elsewhere than the pass decided."""
    return Patch("codegen.nest:place_barriers", lambda f: lambda *a: change(f(*a)))


def within(iname: str, change: Callable[[Nodes], Nodes]) -> Callable[[Nodes], Nodes]:
    """The change made in the body of a loop."""

    def apply(nodes: Nodes) -> Nodes:
        return tuple(
            dataclasses.replace(n, body=change(n.body) if n.iname == iname else apply(n.body))
            if isinstance(n, GuardedLoop)
            else n
            for n in nodes
        )

    return apply


def _position(nodes: Nodes, number: int) -> int:
    return [i for i, n in enumerate(nodes) if isinstance(n, Barrier)][number]


def dropped(number: int) -> Callable[[Nodes], Nodes]:
    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        return (*nodes[:at], *nodes[at + 1 :])

    return change


def weak(number: int) -> Callable[[Nodes], Nodes]:
    """Only the threads of each warp wait."""

    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        return (*nodes[:at], dataclasses.replace(nodes[at], of_warp=True), *nodes[at + 1 :])

    return change


def earlier(number: int, by: int) -> Callable[[Nodes], Nodes]:
    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        rest = [*nodes[:at], *nodes[at + 1 :]]
        rest.insert(at - by, nodes[at])
        return tuple(rest)

    return change


def into(number: int, iname: str, *, at_end: bool) -> Callable[[Nodes], Nodes]:
    """A barrier moves into a loop beside it."""

    def change(nodes: Nodes) -> Nodes:
        barrier = nodes[_position(nodes, number)]
        return tuple(
            dataclasses.replace(n, body=(*n.body, barrier) if at_end else (barrier, *n.body))
            if isinstance(n, GuardedLoop) and n.iname == iname
            else n
            for n in nodes
            if n is not barrier
        )

    return change


def out_of(iname: str, number: int, *, before: bool) -> Callable[[Nodes], Nodes]:
    """A barrier moves out of the loop that it stands in."""

    def change(nodes: Nodes) -> Nodes:
        result: list[Any] = []
        for node in nodes:
            if not isinstance(node, GuardedLoop) or node.iname != iname:
                result.append(node)
                continue
            barrier = node.body[_position(node.body, number)]
            loop = dataclasses.replace(node, body=dropped(number)(node.body))
            result += [barrier, loop] if before else [loop, barrier]
        return tuple(result)

    return change


TILED = (
    do("split_iname", "i", 8, outer_tag="g.1", inner_tag="l.1"),
    do("split_iname", "j", 8, outer_tag="g.0", inner_tag="l.0"),
    do("split_iname", "k", 8),
    do("add_prefetch", "a", ["i_inner", "k_inner"]),
    do("add_prefetch", "b", ["k_inner", "j_inner"]),
)
ODD = {"n": 9, "m": 10, "l": 21}
IN_PRODUCT: dict[str, Callable[[Nodes], Nodes]] = {
    "the one after the fetches is dropped": within("k_outer", dropped(0)),
    "the one before the next fetches is dropped": within("k_outer", dropped(1)),
    "the one after the fetches is of a warp": within("k_outer", weak(0)),
    "the one before the next fetches is of a warp": within("k_outer", weak(1)),
    "the one after the fetches stands between them": within("k_outer", earlier(0, 1)),
    "the one after the fetches stands before them": within("k_outer", earlier(0, 2)),
    "the one before the next fetches stands before the use": within("k_outer", earlier(1, 1)),
    "the one after the fetches moves out in front": out_of("k_outer", 0, before=True),
    "the one before the next fetches moves out behind": out_of("k_outer", 1, before=False),
    "the one after the fetches moves in, behind the use": within(
        "k_outer", into(0, "k_inner", at_end=True)
    ),
    "the one before the next fetches moves in, before the use": within(
        "k_outer", into(1, "k_inner", at_end=False)
    ),
}
for name, change in IN_PRODUCT.items():
    fault(f"barriers: {name}", kernels.product, None, placed(change), chain=TILED, sizes=ODD)

ROLLING = (
    do("tag_inames", "i:l.0, j:l.0"),
    do("set_temporary_address_space", "s", "shared"),
)
for number, name in enumerate(("before it is read", "before it is filled again")):
    fault(
        f"barriers: none {name}",
        programs.rolling,
        None,
        placed(within("t", dropped(number))),
        chain=ROLLING,
        sizes={"T": 3},
    )
fault(
    "barriers: one for all iterations",
    programs.rolling,
    None,
    placed(out_of("t", 0, before=True)),
    chain=ROLLING,
    sizes={"T": 3},
)
CROSSWISE = (
    do("tag_inames", "i:l.0, j:l.0, k:l.0"),
    do("set_temporary_address_space", "s, r", "shared"),
)
for number in (0, 1):
    fault(
        f"barriers: number {number} of a sequence is dropped",
        programs.crosswise,
        None,
        placed(dropped(number)),
        chain=CROSSWISE,
    )
fault(
    "barriers: none between the threads of a warp",
    kernels.stencil,
    None,
    placed(dropped(0)),
    chain=(
        do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
        do("add_prefetch", "a", "i_inner"),
    ),
    sizes={"n": 21},
)


def code(change: Callable[[Nodes], Nodes]) -> Patch:
    """The program tree comes out changed."""

    def make(original: Any) -> Any:
        def nest(kernel: Any) -> Any:
            found = original(kernel)
            return dataclasses.replace(found, code=change(found.code))

        return nest

    return Patch("codegen.lower:nest_of", make)


def _under_guard(nodes: Nodes) -> Nodes:
    """A barrier behind a guarded statement comes under the guard."""
    result: list[Any] = []
    for node in nodes:
        if isinstance(node, For):
            node = dataclasses.replace(node, body=_under_guard(node.body))
        if isinstance(node, Barrier) and result and isinstance(result[-1], If):
            result[-1] = If(result[-1].condition, (*result[-1].body, node))
        else:
            result.append(node)
    return tuple(result)


fault(
    "barriers: one comes under a guard",
    kernels.product,
    None,
    code(_under_guard),
    chain=TILED,
    sizes=ODD,
)
fault(
    "barriers: one comes under the guard of fewer and fewer threads",
    programs.shared_triangle,
    None,
    code(_under_guard),
    chain=ROLLING,
)

# }}}

# {{{ more barriers


def _sometimes(nodes: Nodes) -> Nodes:
    """Threads wait in every second iteration only."""
    even = prim.Comparison(prim.Remainder(prim.Variable("t"), 2), "==", 0)
    return tuple(
        If(even, (n,))
        if isinstance(n, Barrier)
        else dataclasses.replace(n, body=_sometimes(n.body))
        if isinstance(n, For)
        else n
        for n in nodes
    )


fault(
    "barriers: in every second iteration",
    programs.rolling,
    None,
    code(_sometimes),
    chain=ROLLING,
    sizes={"T": 3},
)
fault(
    "barriers: one moves into a loop that may be empty",
    programs.between,
    None,
    placed(into(0, "q", at_end=False)),
    chain=(
        do("tag_inames", "i:l.0, j:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sizes={"m": 0},
)
fault(
    "barriers: one moves into a loop, behind what reads",
    programs.between,
    None,
    placed(into(0, "q", at_end=True)),
    chain=(
        do("tag_inames", "i:l.0, j:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sizes={"m": 2},
)

# }}}
