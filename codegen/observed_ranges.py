"""Values that variables take beyond the domains of their inames."""

from __future__ import annotations

from loopkit._intervals import contains
from loopkit.codegen.hardware import Coordinate
from loopkit.codegen.ir import Code, For, If, Let
from loopkit.codegen.widths import Ranges


def observe_ranges(ranges: Ranges, nodes: tuple[Code, ...]) -> None:
    """Let ``ranges`` know all values that the code's variables take.

    Launches, loops and names for one value may pass more than a domain, with guards inside of
    them, which compute with that.  A counter also takes its first value where its loop is empty,
    and one that ends the loop.
    """
    ranges.enter(())
    for coordinate in ranges.hardware.coordinates:
        _launched(ranges, coordinate)
    _note(ranges, nodes)


def _note(ranges: Ranges, nodes: tuple[Code, ...]) -> None:
    for node in nodes:
        if isinstance(node, For):
            ranges.enter(node.context)
            _looped(ranges, node)
        elif isinstance(node, Let):
            ranges.enter(node.context)
            values = ranges.of(node.value)
            if not contains(ranges.of_name(node.iname), values):
                ranges.add(node.iname, ranges.reached(node.value))
        if isinstance(node, (For, Let, If)):
            _note(ranges, node.body)


def _launched(ranges: Ranges, coordinate: Coordinate) -> None:
    """A grid has one block at least, and as many as the longest of several domains."""
    known, lower = ranges.of_name(coordinate.iname), coordinate.lower
    least = 0 if coordinate.is_exact else 1
    count = max(least, ranges.of(coordinate.extent)[1])
    if not contains(known, (lower, lower + count - 1)):
        count = max(least, ranges.reached(coordinate.extent)[1])
        if count > 0:
            ranges.add(coordinate.iname, (lower, lower + count - 1))


def _looped(ranges: Ranges, loop: For) -> None:
    """What a loop passes, and what its counter holds before and after that."""
    first, end = ranges.of(loop.lower), ranges.of(loop.upper)
    if not (
        contains(ranges.of_name(loop.iname), (first[0], end[1] - 1))
        and ranges.is_narrow((first[0], max(first[1], end[1] - 1 + loop.step)))
    ):
        first, end = ranges.reached(loop.lower), ranges.reached(loop.upper)
    if first[0] < end[1]:
        ranges.add(loop.iname, (first[0], end[1] - 1))
    # Whatever does not fit is compared and counted on in 64 bits.
    ranges.hold(loop.iname, (first[0], max(first[1], end[1] - 1 + loop.step)))
