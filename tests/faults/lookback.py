"""Faults in scans across blocks: what blocks leave for each other, and how they find it.

On the CPU, blocks run one after the other, and most of these show in no result there: the source
is the evidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from refusals.case import do
from seams import PUBLISH, PUBLISH_WORD
from seams import tree as c

import loopkit as lk
from faults.collectives import Nodes, number
from faults.kernels import make
from faults.planting import Patch, fault
from faults.thread_scans import every, made, prefix

CHAIN = (
    do("realize_reduction", force_scan=True, by="lookback"),
    do("split_iname", "i", 64, outer_tag="g.0", inner_tag="l.0"),
)
Change = Callable[[Any], Any]


def wide() -> Any:
    """The running sum of a vector of numbers that leave no room for a flag in one word."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, x[j])",
        dtypes={"x, y": "float64"},
        assumptions="n >= 1",
    )


def nodes_of(kind: type, change: Change) -> Callable[[Nodes], Nodes]:
    """Nodes of a kind are others, wherever they stand; None for those that are left out."""

    def inside(nodes: Nodes) -> Nodes:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, (c.If, c.For)):
                node = dataclasses.replace(node, body=inside(node.body))
            node = change(node) if isinstance(node, kind) else node
            found += [] if node is None else [node]
        return tuple(found)

    return inside


def expressions(old: c.CExpression, new: c.CExpression) -> Callable[[Nodes], Nodes]:
    """An expression is another one, wherever it stands."""
    return every(type(old), lambda expr: new if expr == old else expr)


def flagged_first(node: c.If) -> c.If:
    """What is stored and then published is published and then stored."""
    body = node.body
    if not (isinstance(body[-1], c.Assign) and body[-1].atomic == PUBLISH):
        return node
    return dataclasses.replace(node, body=(*body[:-2], body[-1], body[-2]))


def published(change: Callable[[c.Assign], c.Assign]) -> Callable[[Nodes], Nodes]:
    """What is published is published otherwise."""
    ways = (PUBLISH, PUBLISH_WORD)
    return nodes_of(c.Assign, lambda node: change(node) if node.atomic in ways else node)


def flagged(change: Callable[[c.CExpression, c.CExpression], tuple[c.CExpression, ...]]) -> Any:
    """What is published in a word is another flag, or another value."""

    def changed(node: c.Assign) -> c.Assign:
        assert isinstance(node.value, c.Call)
        arguments = change(*node.value.arguments)
        return dataclasses.replace(node, value=c.Call("lk_flagged", arguments))

    return published(changed)


def uint(value: int) -> c.Number:
    return c.Number(value, "uint")


def at_zero(node: c.Assign) -> c.Assign:
    assert isinstance(node.target, c.Element)
    return dataclasses.replace(node, target=c.Element(node.target.array, (number(0),)))


def shown(kernel: Any) -> str:
    """The lines of the source that differ."""
    return str(kernel.cuda())


READY, PLACE, AT = c.Name("acc_ready"), c.Name("acc_place"), c.Name("acc_at")
FLAG = c.Element("acc_flags", (AT,))
LATER = c.Binary(">", c.Binary(">>", READY, PLACE), uint(1))
PREFIX, AGGREGATE = (c.Element(f"acc_{word}", (AT,)) for word in ("prefixes", "aggregates"))
IS_READY = c.Binary("==", c.Name("acc_flag"), uint(2))
FAULTS: dict[str, Callable[[Nodes], Nodes]] = {
    "a flag is raised before the value is stored": nodes_of(c.If, flagged_first),
    "a flag is raised without release": published(
        lambda node: dataclasses.replace(node, atomic="")
    ),
    "a flag is read without acquire": expressions(
        c.Call("lk_await", (c.Unary("&", FLAG),)), FLAG
    ),
    "an aggregate is published as a prefix": published(
        lambda node: dataclasses.replace(node, value=uint(2))
    ),
    "a prefix is published as an aggregate": published(
        lambda node: dataclasses.replace(node, value=uint(1))
    ),
    "nothing is published before others are awaited": nodes_of(
        c.If, lambda node: None if len(node.body) == 2 else node
    ),
    "all flags are raised in one place": published(at_zero),
    "the nearest tile is left out": expressions(number(32), number(33)),
    "tiles before a prefix are added once more": expressions(
        LATER, c.Binary(">", c.Binary(">>", READY, PLACE), uint(3))
    ),
    "prefixes are taken for aggregates": expressions(
        c.Choice(IS_READY, PREFIX, AGGREGATE), c.Choice(IS_READY, AGGREGATE, PREFIX)
    ),
    "windows overlap": nodes_of(c.For, lambda node: dataclasses.replace(node, step=31)),
    "the loop over windows is never left": nodes_of(
        c.If, lambda node: None if isinstance(node.body[0], c.Break) else node
    ),
    "what tiles before have is added to one thread alone": lambda nodes: (
        *nodes[:-1],
        c.If(c.Binary("==", c.Name("threadIdx.x"), number(0)), (nodes[-1],)),
    ),
    "what tiles before have is read with no barrier": lambda nodes: (*nodes[:-2], nodes[-1]),
}  # fmt: skip
WORD = c.Element("acc_tiles", (AT,))
WORDS: dict[str, Callable[[Nodes], Nodes]] = {
    "a word is stored as others are": published(lambda node: dataclasses.replace(node, atomic="")),
    "a word is read with no wait": expressions(
        c.Call("lk_await_word", (c.Unary("&", WORD),)), WORD
    ),
    "a word's aggregate is flagged as a prefix": flagged(lambda _, value: (uint(2), value)),
    "a word's prefix is flagged as an aggregate": flagged(lambda _, value: (uint(1), value)),
    "a word has a flag and no value": flagged(lambda flag, _: (flag, c.Number(0.0, "float"))),
    "a word has the value of the tile alone": flagged(lambda flag, _: (flag, c.Name("acc"))),
    "words are in one place": published(at_zero),
    "a word is taken for a whole number": every(
        c.Call,
        lambda expr: (
            c.Call("lk_value<int>", expr.arguments) if expr.function == "lk_value<float>" else expr
        ),
    ),
    "the flag is sought in the value": expressions(
        c.Cast("unsigned int", c.Binary(">>", c.Name("acc_word"), number(32))),
        c.Cast("unsigned int", c.Name("acc_word")),
    ),
}  # fmt: skip
PLANTED = [*((wide, *one) for one in FAULTS.items()), *((prefix, *one) for one in WORDS.items())]
for base, name, change in PLANTED:
    patch = made("scan", change)
    sound: list[str] = []

    def evidence(kernel: Any, sound: list[str] = sound) -> str | None:
        """The source of the sound kernel is asked for first."""
        sound.append(shown(kernel))
        return None if sound[-1] == sound[0] else "the source says so"

    fault(
        f"lookback: {name}",
        base,
        None,
        patch,
        chain=CHAIN,
        sizes={"n": 600},
        evidence=evidence,
    )


def by_index(original: Any) -> Any:
    def taking(self: Any, block: Any) -> Any:
        *first, let = original(self, block)
        return (*first, dataclasses.replace(let, value=c.Name("blockIdx.x")))

    return taking


def uncleared(original: Any) -> Any:
    def parameters(self: Any, kernel: Any) -> Any:
        return tuple(dataclasses.replace(p, role="state") for p in original(self, kernel))

    return parameters


def too_short(original: Any) -> Any:
    def parameters(self: Any, kernel: Any) -> Any:
        *others, last = original(self, kernel)
        return (*others, dataclasses.replace(last, shape=(1,)))

    return parameters


def roles(kernel: Any) -> str | None:
    """What the launch allocates and clears."""
    state = [p for p in kernel.program().params if getattr(p, "is_state", False)]
    cleared = [p.name for p in state if p.role == "cleared"]
    return None if cleared and state[-1].shape != (1,) else "flags are not cleared, or too few"


def tickets(kernel: Any) -> str | None:
    return None if "tile = ticket;" in kernel.cuda() else "blocks wait for some that wait to begin"


for name, (target, change_, shows) in {
    "blocks take no tickets": ("taking", by_index, tickets),
    "flags are not cleared": ("parameters", uncleared, roles),
    "there is a place for one tile": ("parameters", too_short, roles),
}.items():
    fault(
        f"lookback: {name}",
        prefix,
        None,
        Patch(f"codegen.lookback:Tiles.{target}", change_),
        chain=CHAIN,
        sizes={"n": 600},
        evidence=shows,
    )


def rows() -> Any:
    """The running sums of rows."""
    return make(
        ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[r, i] = sum(j, x[r, j])",
        "x, y",
        assumptions="n >= 1 and m >= 1",
    )


def first_row(original: Any) -> Any:
    return lambda self: "0"


def transposed(original: Any) -> Any:
    return lambda self, row: original(self, row).replace("gridDim.x", "gridDim.y")


def without_row(original: Any) -> Any:
    return lambda self, array, tile: f"{array}[{tile}]"


def of_one_row(original: Any) -> Any:
    def parameters(self: Any, kernel: Any) -> Any:
        return original(dataclasses.replace(self, across=()), kernel)

    return parameters


def places(kernel: Any) -> str | None:
    """Where rows leave what, and how much room there is."""
    source, program = kernel.cuda(), kernel.program()
    found = (
        "&tickets[blockIdx.y]" in source,
        "row = (long long)gridDim.x * blockIdx.y;" in source,
        source.count("[row + tile]") == 2 and source.count("[row + acc_at]") == 1,
        (1,) not in {p.shape for p in program.params if getattr(p, "is_state", False)},
    )
    return None if all(found) else "rows find what other rows have left"


for name, (target, change_) in {
    "rows draw tickets from one counter": ("row_number", first_row),
    "rows leave results in each other's places": ("first_of", transposed),
    "all rows leave results where the first one does": ("cell", without_row),
    "there is a place for one row": ("parameters", of_one_row),
}.items():
    fault(
        f"lookback: {name}",
        rows,
        None,
        Patch(f"codegen.lookback:Tiles.{target}", change_),
        chain=(do("tag_inames", "r: g.1"), *CHAIN),
        sizes={"n": 600, "m": 3},
        evidence=places,
    )
