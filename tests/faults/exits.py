"""Faults in how loops end that data end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from refusals.case import do
from seams import tree as c

import loopkit as lk
from faults.kernels import make
from faults.planting import Patch, fault
from faults.printing import text

Nodes = tuple[c.Node, ...]
ON_THREADS = (do("split_iname", "i", 32, outer_tag="g.0", inner_tag="l.0"),)
SPLIT = (*ON_THREADS, do("split_iname", "it", 4))
SLABS = (*ON_THREADS, do("split_iname", "it", 4, slabs=(0, 1)))
SIZES = {"n": 40, "m": 11}


def summed() -> lk.Kernel:
    """What stands in front of the first number that is positive, the number itself beside it."""
    return make(
        "{ [i, it]: 0 <= i < n and 0 <= it < m }",
        """
        for i
            <> s = float32(0)
            <> seen = float32(0)
            for it
                seen = seen + 1
                break if x[i, it] > 0 {id=stop}
                s = s + x[i, it] {id=add}
            end
            y[i] = s + 100*seen
        end
        """,
        "x, y",
        assumptions="n, m >= 1",
    )


def joined() -> lk.Kernel:
    """Another loop, which nothing ends."""
    return make(
        "{ [i, it, k]: 0 <= i < n and 0 <= it, k < m }",
        """
        for i
            for it
                break if x[i, it] > 0 {id=stop}
                y[i, it] = x[i, it]
            end
            for k
                z[i, k] = 2*x[i, k] {id=all}
            end
        end
        """,
        "x, y, z",
        assumptions="n, m >= 1",
    )


def numbers(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Each row has a positive number, in another place."""
    found = np.full((sizes["n"], sizes["m"]), -1, np.float32)
    found[np.arange(sizes["n"]), np.arange(sizes["n"]) % sizes["m"]] = 7
    return {"x": found}


def code(change: Callable[[Nodes], Nodes]) -> Patch:
    """The nodes of each body come out changed."""
    return Patch(
        "codegen.functions:BodyLowering.code",
        lambda original: lambda self, nodes: change(original(self, nodes)),
    )


def is_end(node: c.Node) -> bool:
    return isinstance(node, c.If) and isinstance(node.body[0], c.Break)


def moved(by: int) -> Callable[[Nodes], Nodes]:
    """A loop ends that many lines later."""

    def change(nodes: Nodes) -> Nodes:
        at = next((n for n, node in enumerate(nodes) if is_end(node)), None)
        if at is None:
            return nodes
        rest = [*nodes[:at], *nodes[at + 1 :]]
        return (*rest[: at + by], nodes[at], *rest[at + by :])

    return change


def negated(nodes: Nodes) -> Nodes:
    """A loop ends where it is to go on."""
    return tuple(
        dataclasses.replace(n, condition=c.Unary("!", n.condition))
        if isinstance(n, c.If) and is_end(n)
        else n
        for n in nodes
    )


FAULTS_OF_CODE: dict[str, tuple[Any, Patch]] = {
    "the end of a loop is dropped": (
        ON_THREADS,
        code(lambda ns: (*(n for n in ns if not is_end(n)),)),
    ),
    "a loop ends one line late": (ON_THREADS, code(moved(1))),
    "a loop ends one line early": (ON_THREADS, code(moved(-1))),
    "a loop ends where it is to go on": (ON_THREADS, code(negated)),
    "the inner one of two loops ends, the outer one goes on": (
        SPLIT,
        Patch("codegen.nest:_Walker.left_by", lambda f: lambda self, statement: ""),
    ),
    "the flag is not cleared": (SLABS, text(r"= false", "= true")),
    "the flag is never set": (SLABS, text(r"= true", "= false")),
    "the flag is set anew in each iteration": (
        SLABS,
        Patch(
            "codegen.functions:BodyLowering.code",
            lambda original: (
                lambda self, nodes: tuple(
                    dataclasses.replace(
                        n,
                        body=(
                            c.Assign(c.Name("it_goes_on"), "=", c.Number(1, "bool"), None),
                            *n.body,
                        ),
                    )
                    if isinstance(n, c.For) and n.name == "it_outer"
                    else n
                    for n in original(self, nodes)
                )
            ),
        ),
    ),
}
for _name, (_chain, _patch) in FAULTS_OF_CODE.items():
    fault(f"exits: {_name}", summed, None, _patch, chain=_chain, sizes=SIZES, values=numbers)

fault(
    "exits: a loop ends for statements that are to go on",
    joined,
    None,
    Patch("codegen.exits:Flag.guards", lambda f: lambda self, statement: True),
    Patch(
        "codegen.exits:leaves",
        lambda f: lambda node: (s for s in f(node) if s != "all"),
    ),
    chain=(do("rename_iname", "k", "it", existing_ok=True),),
    sizes=SIZES,
    values=numbers,
)
