"""Texts that leave an array: index, extent and sizes as enumeration finds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seams import evaluate, parse_expression

import loopkit as lk
from refusals import oracle
from refusals.kernels.making import array, make
from refusals.machine import Machine

SPARE = 40  # How much longer arrays are made, below and above, to see where a text goes.


@dataclass(frozen=True)
class Outside:
    """A text over ``a`` of a declared shape, and the smallest case in which it leaves ``a``."""

    name: str
    domain: str
    text: str
    shape: str
    assumptions: str
    cell: tuple[int, ...]
    instance: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    floats: str = "b"
    legal: str = ""

    def kernel(self, assumptions: str | None = None) -> lk.Kernel:
        """The kernel; by default with the assumptions that do not suffice."""
        given = self.assumptions if assumptions is None else assumptions
        return make(self.domain, self.text, given, self.floats, array("a", self.shape))


def smallest(case: Outside, largest: int = 6) -> tuple[dict[str, int], str, tuple[int, ...]]:
    """The smallest sizes, the first instance and the cell that is outside.

    Looked for in a kernel with an array that is longer at both ends.
    """
    roomy = _roomy(case)
    shape = [parse_expression(part.strip()) for part in case.shape.split(",")]
    for sizes in oracle.smallest_sizes(roomy.sizes, largest):
        if not oracle.admitted(roomy, sizes):
            continue
        limits = [int(evaluate(extent, sizes)) for extent in shape]
        machine = Machine(roomy, sizes)
        machine.run(machine.in_order())
        for [event] in machine.in_order():
            for touch in event.touches:
                cell = tuple(c - SPARE for c in touch.cell)
                inside = all(0 <= c < e for c, e in zip(cell, limits, strict=False))
                if touch.array == "a" and not inside:
                    return sizes, event.text(roomy), cell
    raise AssertionError("never outside")


def _roomy(case: Outside) -> lk.Kernel:
    """The kernel with ``a`` so long that nothing leaves it; its cells begin at ``SPARE``."""
    axes = case.shape.count(",") + 1
    names = [name for name in ("n", "m") if re.search(rf"\b{name}\b", case.domain)]
    extent = " + ".join([*(f"4*{name}" for name in names), str(3 * SPARE)])

    def shifted(found: re.Match[str]) -> str:
        return "a[" + ", ".join(f"{i} + {SPARE}" for i in found[1].split(",")) + "]"

    text = re.sub(r"\ba\[([^\]]*)\]", shifted, case.text)
    room = array("a", ", ".join([extent] * axes))
    return make(case.domain, text, case.assumptions, case.floats, room)


LINE = "{ [i]: 0 <= i < n }"
PLANE = "{ [i, j]: 0 <= i < m and 0 <= j < n }"
SOME = "n >= 1"

CASES: tuple[Outside, ...] = (
    Outside(
        "one past the end", LINE, "b[i] = a[i + 1] {id=s}", "n", SOME, (1,), "s[i=0]", {"n": 1}
    ),
    Outside(
        "a write past the end", LINE, "a[i + 1] = b[i] {id=s}", "n", SOME, (1,), "s[i=0]", {"n": 1}
    ),
    Outside(
        "before the beginning", LINE, "b[i] = a[i - 1] {id=s}", "n", SOME, (-1,), "s[i=0]", {"n": 1}
    ),
    Outside(
        "twice as far",
        LINE,
        "b[i] = a[2*i] {id=s}",
        "n",
        SOME,
        (2,),
        "s[i=1]",
        {"n": 2},
        legal="n = 1",
    ),
    Outside(
        "counted from the end", LINE, "b[i] = a[n - i] {id=s}", "n", SOME, (1,), "s[i=0]", {"n": 1}
    ),
    Outside(
        "a constant length",
        LINE,
        "b[i] = a[i] {id=s}",
        "8",
        SOME,
        (8,),
        "s[i=8]",
        {"n": 9},
        legal="1 <= n <= 8",
    ),
    Outside(
        "rows and columns exchanged",
        PLANE,
        "b[i, j] = a[j, i] {id=s}",
        "m, n",
        "m, n >= 1",
        (1, 0),
        "s[i=0, j=1]",
        {"m": 1, "n": 2},
        legal="m = n and n >= 1",
    ),
    Outside(
        "under a condition that does not suffice",
        LINE,
        "b[i] = a[i - 4] {id=s, if=i >= 3}",
        "n",
        SOME,
        (-1,),
        "s[i=3]",
        {"n": 4},
        legal="1 <= n <= 3",
    ),
)
