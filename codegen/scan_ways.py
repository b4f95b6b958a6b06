"""How the threads of a block make running results: one C node for a scan, and one to carry on.

A scan gives each thread of a :class:`Group` what the threads up to it have, its own included:

- ``lanes``: all of a group are in one warp: each lane takes in what a lane below it has, which is
  1, 2, 4, ... lanes away (Hillis and Steele, Data parallel algorithms, 1986);
- ``warps``: a group is whole warps, or the whole block: each warp makes a scan of its own, leaves
  its last result in shared memory, and takes in those of the warps before it;
- ``shared``: the same as within a warp, but through shared memory, for any group.

What carries on leaves the result of the last thread in the first one, and nothing in the others:
then all that the next scan adds to it comes behind.
"""

from __future__ import annotations

from dataclasses import replace

from loopkit._collectives import CARRY, LOOKBACK, SCAN
from loopkit._errors import IllegalTransformError
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.combine import (
    Combining,
    Group,
    Operation,
    Ways,
    binary,
    cell_of,
    first_warp,
    halves,
    in_slots,
    integer,
    lanes_of,
    rank_of,
    scratch_of,
    way_of,
)

_UNROLLED = 4
"""Up to so many warps each thread goes through what the warps have left, one by one."""


def scan_way_of(groups: tuple[Group, ...], operation: Operation, by: str | None) -> str:
    """The way in which a group makes running results, as it was asked for, or as it suits.

    Raises :class:`IllegalTransformError` for what cannot be had as it was asked for.
    """
    if len(groups) > 1:
        raise IllegalTransformError(
            "threads that make running results together are numbered in steps: other threads of "
            "the block lie between those of one axis and those of the next",
            instead="neighbouring axes for them, such as l.0 and l.1",
        )
    return way_of(groups[0], operation, None if by == LOOKBACK else by)


def elements_of(group: Group, way: str, kind: str) -> int:
    """How many elements of shared memory a way takes, for a statement of a kind."""
    if kind == CARRY:
        return 0 if way == "lanes" else group.threads // group.count
    return 2 * group.threads if (kind, way) == (SCAN, "shared") else scratch_of(group, way)


def steps_of(count: int) -> list[int]:
    """The powers of two below ``count``, the smallest first."""
    return sorted(halves(count))


def climbed(
    combining: Combining,
    mask: c.CExpression,
    steps: list[tuple[int, int]],
    rank: c.CExpression,
) -> list[c.Node]:
    """Each lane takes in what lanes below it have; ``steps`` in ranks and in lanes."""
    other = c.Name(combining.other)
    found: list[c.Node] = []
    for step, lanes in steps:
        found.append(combining.stores(combining.shuffle("_up", mask, integer(lanes)), other))
        found.append(c.If(binary(">=", rank, step), (combining.takes_before(other),)))
    return found


def _lanes(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    found, mask = combining.named("unsigned int", "lanes", lanes_of(group, number))
    more, rank = combining.named("int", "rank", rank_of(group, number))
    steps = [(step, step * group.stride) for step in steps_of(group.count)]
    return [*found, *more, *climbed(combining, mask, steps, rank)]


def _warps(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    warp, count = CUDA.warp, group.warps
    is_whole = group.threads % warp == 0
    scratch = combining.scratch("warps", scratch_of(group, "warps"))
    found, mask = combining.named("unsigned int", "lanes", lanes_of(group, number))
    more, lane = combining.named("int", "lane", binary("%", number, warp))
    found = [scratch, *found, *more]
    found += climbed(combining, mask, [(s, s) for s in steps_of(warp)], lane)
    is_last: c.CExpression = binary("==", lane, warp - 1)
    if not is_whole:
        is_last = c.Binary("||", is_last, binary("==", number, group.threads - 1))
    own = c.Element(scratch.name, (binary("/", number, warp),))
    found += combining.again()
    found += [c.If(is_last, (combining.stores(combining.target, own),)), c.Wait("block")]
    first, rank = first_warp(group, number), rank_of(group, number)
    if not is_whole or count <= _UNROLLED:
        for before in reversed(range(count - 1)):
            taken = combining.takes_before(c.Element(scratch.name, (binary("+", first, before),)))
            found.append(c.If(binary(">=", rank, warp * (before + 1)), (taken,)))
        return found
    # Each warp makes a scan of what the warps have left.
    slots = 1 << (count - 1).bit_length()
    sums = c.Declaration("private", combining.ctype, combining.fresh("before"), ())
    before_ = replace(combining, target=c.Name(sums.name))
    more, slot = combining.named("int", "slot", binary("%", number, slots))
    value = in_slots(combining, scratch, group, first, slot)
    found += [sums, *more, combining.stores(value, before_.target)]
    found += climbed(before_, mask, [(s, s) for s in steps_of(slots)], slot)
    lets, mine = combining.named("int", "warp", binary("/", rank, warp))
    source = c.Choice(binary(">", mine, 0), binary("-", mine, 1), integer(0))
    other = c.Name(combining.other)
    found += [*lets, combining.stores(before_.shuffle("", mask, source), other)]
    return [*found, c.If(binary(">", mine, 0), (combining.takes_before(other),))]


def _shared(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    scratch = combining.scratch("parts", elements_of(group, "shared", SCAN))
    found, rank = combining.named("int", "rank", rank_of(group, number))
    found = [scratch, *found, *combining.again()]
    half = 0  # what a step reads, the next one does not write
    for step in steps_of(group.count):
        own = c.Element(scratch.name, (binary("+", number, half),))
        found += [combining.stores(combining.target, own), c.Wait("block")]
        away = half - step * group.stride
        at = binary("+", number, away) if away > 0 else binary("-", number, -away)
        taken = combining.takes_before(c.Element(scratch.name, (at,)))
        found.append(c.If(binary(">=", rank, step), (taken,)))
        half = group.threads - half
    return found


SCANS: Ways = {"lanes": _lanes, "warps": _warps, "shared": _shared}
"""What threads do to make running results, for each way: the nodes for one group."""


def _carry_in_lanes(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    found, mask = combining.named("unsigned int", "lanes", lanes_of(group, number))
    lane = number if group.threads <= CUDA.warp else binary("%", number, CUDA.warp)
    last: c.CExpression = integer((group.count - 1) * group.stride)
    if group.span < min(group.threads, CUDA.warp):
        start = binary("*", binary("/", lane, group.span), group.span)
        last = c.Binary("+", start, last)
    if group.stride > 1:
        last = c.Binary("+", last, binary("%", lane, group.stride))
    other = c.Name(combining.other)
    found.append(combining.stores(combining.shuffle("", mask, last), other))
    return [*found, _to_first(combining, group, number, other)]


def _carry_in_memory(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    scratch = combining.scratch("all", elements_of(group, "shared", CARRY))
    cell = c.Element(scratch.name, (cell_of(group, number),))
    is_last = binary("==", rank_of(group, number), group.count - 1)
    stored = c.If(is_last, (combining.stores(combining.target, cell),))
    return [scratch, stored, c.Wait("block"), _to_first(combining, group, number, cell)]


def _to_first(
    combining: Combining, group: Group, number: c.CExpression, value: c.CExpression
) -> c.Assign:
    """The first thread of a group goes on from a value, the others from nothing."""
    is_first = binary("==", rank_of(group, number), 0)
    return combining.stores(c.Choice(is_first, value, combining.neutral))


CARRIES: Ways = {"lanes": _carry_in_lanes, "warps": _carry_in_memory, "shared": _carry_in_memory}
"""What threads do to carry on what all of them have, for each way: the nodes for one group."""
