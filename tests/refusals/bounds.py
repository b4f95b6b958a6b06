"""Texts that leave an array: index, extent and sizes as enumeration finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import loopkit as lk
from loopkit._expression import evaluate
from refusals import oracle
from refusals.kernels.making import array, make
from refusals.machine import Machine

SPARE = 12  # How much longer arrays are made, below and above, to see where a text goes.


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
    """The smallest sizes, the first instance and the cell that is outside."""
    roomy = make(
        case.domain, case.text, case.assumptions, case.floats, array("a", _roomy(case.shape))
    )
    shape: tuple[Any, ...] = array("a", case.shape).shape or ()
    for sizes in oracle.smallest_sizes(roomy.sizes, largest):
        if not oracle.admitted(roomy, sizes):
            continue
        limits = [int(evaluate(_parsed(s), sizes)) for s in shape]
        machine = Machine(roomy, sizes)
        machine.run(machine.in_order())
        for [event] in machine.in_order():
            for touch in event.touches:
                inside = all(0 <= c < e for c, e in zip(touch.cell, limits, strict=False))
                if touch.array == "a" and not inside:
                    return sizes, event.text(roomy), touch.cell
    raise AssertionError("never outside")


def _roomy(shape: str) -> str:
    return ", ".join(f"{part} + {SPARE}" for part in shape.split(","))


def _parsed(extent: Any) -> Any:
    from loopkit._syntax.expressions import parse_expression

    return parse_expression(extent) if isinstance(extent, str) else extent


LINE = "{ [i]: 0 <= i < n }"
PLANE = "{ [i, j]: 0 <= i < n and 0 <= j < m }"
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
        "n, m",
        "n, m >= 1",
        (0, 1),
        "s[i=1, j=0]",
        {"m": 1, "n": 2},
        legal="n = m and n >= 1",
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
