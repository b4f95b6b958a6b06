"""How the threads of a block compute a scan: one C node for the scan, and one for the carry.

A scan gives each thread of a :class:`Group` the combination of the partial results of the threads
up to it, its own included:

- ``lanes``: the group lies within one warp; each lane combines values of lanes 1, 2, 4, ... below
  it (Hillis and Steele, Data parallel algorithms, 1986);
- ``warps``: the group consists of whole warps, or is the whole block; each warp scans, stores its
  last result in shared memory, and combines the results of the preceding warps;
- ``shared``: as within a warp, but through shared memory, for any group.

The carry leaves the last thread's result in the first thread and the neutral element in the
others, so that the next iteration's scan continues from it.
"""

from __future__ import annotations

from loopkit._collectives import CARRY, LOOKBACK, SCAN
from loopkit._errors import IllegalTransformError
from loopkit._target import CUDA
from loopkit.codegen.combine import Group, Ways, halves, in_slots, scratch_of, way_of
from loopkit.codegen.combining import Combining, Operation

_UNROLLED = 4
"""Up to so many warps each thread goes through what the warps have left, one by one."""


def scan_way_of(groups: tuple[Group, ...], operation: Operation, by: str | None) -> str:
    """The method by which a group scans: the one requested, or the one that suits the group.

    Raises :class:`IllegalTransformError` if the requested method is impossible for the group.
    """
    if len(groups) > 1:
        raise IllegalTransformError(
            "the threads that compute running results together are not contiguous: other threads "
            "of the block are between those of one axis and those of the next",
            instead="neighbouring axes for them, such as l.0 and l.1",
        )
    return way_of(groups[0], operation, None if by == LOOKBACK else by)


def elements_of(group: Group, way: str, kind: str) -> int:
    """The number of elements of shared memory that a method needs."""
    if kind == CARRY:
        return 0 if way == "lanes" else group.threads // group.count
    return 2 * group.threads if (kind, way) == (SCAN, "shared") else scratch_of(group, way)


def steps_of(count: int) -> list[int]:
    """The powers of two below ``count``, the smallest first."""
    return sorted(halves(count))


def climbed(lanes: str, count: int, rank: str, *, stride: int = 1, target: str = "TARGET") -> str:
    """Each of ``count`` lanes with distance ``stride`` combines the values of lanes below it."""
    return "".join(
        f"OTHER = __shfl_up_sync({lanes}, {target}, {step * stride});"
        f"if ({rank} >= {step}) {target} = JOIN(OTHER, {target});"
        for step in steps_of(count)
    )


def _lanes(combining: Combining, group: Group) -> str:
    named = "unsigned int const lanes = LANES; int const rank = RANK;"
    return named + climbed("lanes", group.count, "rank", stride=group.stride)


def _warps(combining: Combining, group: Group) -> str:
    warp, count = CUDA.warp, group.warps
    is_whole = group.threads % warp == 0
    found = f"__shared__ {combining.ctype} warps[{scratch_of(group, 'warps')}];"
    found += f"unsigned int const lanes = LANES; int const lane = NUMBER % {warp};"
    found += climbed("lanes", warp, "lane")
    last = f"lane == {warp - 1}" + f" || NUMBER == {group.threads - 1}" * (not is_whole)
    found += f"{combining.again} if ({last}) warps[NUMBER / {warp}] = TARGET; __syncthreads();"
    if not is_whole or count <= _UNROLLED:
        return found + "".join(
            f"if (RANK >= {warp * (before + 1)}) TARGET = JOIN(warps[BASE + {before}], TARGET);"
            for before in reversed(range(count - 1))
        )
    # Each warp makes a scan of what the warps have left.
    slots = 1 << (count - 1).bit_length()
    return f"""{found} {combining.ctype} before; int const slot = NUMBER % {slots};
        before = {in_slots(group, "slot")}; {climbed("lanes", slots, "slot", target="before")}
        int const warp = RANK / {warp};
        OTHER = __shfl_sync(lanes, before, warp > 0 ? warp - 1 : 0);
        if (warp > 0) TARGET = JOIN(OTHER, TARGET);"""


def _shared(combining: Combining, group: Group) -> str:
    found = f"__shared__ {combining.ctype} parts[{elements_of(group, 'shared', SCAN)}];"
    found += f"int const rank = RANK; {combining.again}"
    half = 0  # what a step reads, the next one does not write
    for step in steps_of(group.count):
        away = half - step * group.stride
        below = f"NUMBER {'+' if away > 0 else '-'} {abs(away)}"
        found += f"""parts[NUMBER + {half}] = TARGET; __syncthreads();
            if (rank >= {step}) TARGET = JOIN(parts[{below}], TARGET);"""
        half = group.threads - half
    return found


SCANS: Ways = {"lanes": _lanes, "warps": _warps, "shared": _shared}
"""What threads do to make running results, for each way."""


def _carry_in_lanes(combining: Combining, group: Group) -> str:
    lane = "NUMBER" if group.threads <= CUDA.warp else f"NUMBER % {CUDA.warp}"
    last = f"{(group.count - 1) * group.stride}"
    if group.span < min(group.threads, CUDA.warp):
        last = f"{lane} / {group.span} * {group.span} + {last}"
    if group.stride > 1:
        last += f" + {lane} % {group.stride}"
    found = f"unsigned int const lanes = LANES; OTHER = __shfl_sync(lanes, TARGET, {last});"
    return found + _to_first("OTHER")


def _carry_in_memory(combining: Combining, group: Group) -> str:
    found = f"__shared__ {combining.ctype} all[{elements_of(group, 'shared', CARRY)}];"
    found += f"if (RANK == {group.count - 1}) all[CELL] = TARGET; __syncthreads();"
    return found + _to_first("all[CELL]")


def _to_first(value: str) -> str:
    """The first thread of a group goes on from a value, the others from nothing."""
    return f"TARGET = RANK == 0 ? {value} : NEUTRAL;"


CARRIES: Ways = {"lanes": _carry_in_lanes, "warps": _carry_in_memory, "shared": _carry_in_memory}
"""What threads do to carry on what all of them have, for each way."""
