"""Faults in the pass that finds out where barriers are needed."""

from __future__ import annotations

from typing import Any

from refusals.case import do

from faults import kernels, programs
from faults.barriers import CROSSWISE, ODD, ROLLING, TILED
from faults.planting import Patch, fault

THREE = {"T": 3}


def nothing(target: str) -> Patch:
    """A method that finds needs finds none."""
    return Patch(f"codegen.dependences:Dependences.{target}", lambda f: lambda *_: None)


fault(
    "placing: back edges of loops are forgotten",
    programs.rolling,
    None,
    nothing("_around"),
    chain=ROLLING,
    sizes=THREE,
)
fault(
    "placing: one iteration alone is looked at",
    programs.overwritten,
    None,
    nothing("_onwards"),
    chain=ROLLING,
)
fault(
    "placing: only what later iterations do is looked at",
    programs.rolling,
    None,
    nothing("_within"),
    chain=ROLLING,
    sizes=THREE,
)


def _only_reads_after_writes(original: Any) -> Any:
    """Of two accesses, the first must write and the second read."""

    def add(self: Any, body: Any, earlier: Any, later: Any, carried: Any) -> Any:
        if not earlier.access.is_write or later.access.is_write:
            return False
        return original(self, body, earlier, later, carried)

    return add


fault(
    "placing: writes after reads are forgotten",
    programs.rolling,
    None,
    Patch("codegen.dependences:Dependences._add", _only_reads_after_writes),
    chain=ROLLING,
    sizes=THREE,
)
fault(
    "placing: writes after writes are forgotten",
    programs.overwritten,
    None,
    Patch("codegen.dependences:Dependences._add", _only_reads_after_writes),
    chain=ROLLING,
)
fault(
    "placing: all threads are taken to be of one warp",
    kernels.product,
    None,
    Patch(
        "codegen.nest:Conflicts",
        lambda f: lambda *a: _of_one_warp(f(*a)),
    ),
    chain=TILED,
    sizes=ODD,
)


fault(
    "placing: families of accesses are taken never to meet",
    kernels.product,
    None,
    Patch("codegen.conflicts:_MANY", lambda f: 0),
    Patch("codegen.conflicts:Conflicts._may_meet", lambda f: lambda *a: False),
    chain=TILED,
    sizes=ODD,
)


def _of_one_warp(conflicts: Any) -> Any:
    conflicts.other_warp = ()
    return conflicts


fault(
    "placing: an array is taken to keep threads apart",
    programs.crosswise,
    None,
    Patch(
        "codegen.conflicts:Conflicts.group",
        lambda f: lambda self, access: None if access.array == "r" else f(self, access),
    ),
    chain=CROSSWISE,
)
fault(
    "placing: loops are taken to run at least once",
    programs.steps_between,
    None,
    Patch("codegen.loop_bodies:Bodies.always_runs", lambda f: lambda self, body: True),
    chain=(
        do("tag_inames", "i:l.0, j:l.0, x:l.0, y:l.0"),
        do("set_temporary_address_space", "s, r", "shared"),
    ),
    sizes={"m": 0},
)


def _without_last(original: Any) -> Any:
    """The cover serves all needs but one."""

    def cover(needs: Any, cost: Any) -> dict[int, bool]:
        return dict(list(original(needs, cost).items())[:-1])

    return cover


fault(
    "placing: one need is not served",
    kernels.product,
    None,
    Patch("codegen.barriers:cheapest_cover", _without_last),
    chain=TILED,
    sizes=ODD,
)


def _one_gap_early(original: Any) -> Any:
    """Gaps between two accesses begin in front of the first one."""

    def gaps(self: Any, first: int, last: int) -> int:
        return int(original(self, max(first - 1, 0), last - 1 if last > first else last))

    return gaps


fault(
    "placing: gaps are counted from one place too early",
    programs.crosswise,
    None,
    Patch("codegen.loop_bodies:Body.gaps", _one_gap_early),
    chain=CROSSWISE,
)
fault(
    "placing: all barriers are of warps",
    kernels.product,
    None,
    Patch(
        "codegen.barriers:choose_gaps",
        lambda f: lambda needs: dict.fromkeys(f(needs), False),
    ),
    chain=TILED,
    sizes=ODD,
)
