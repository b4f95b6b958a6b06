"""Costs of several launches as text: all together, then each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopkit._costs.costs import in_all
from loopkit._costs.table import number_or, open_or, open_parts, operation_table, parts
from loopkit._costs.text_table import Head, Table
from loopkit._errors import LoopkitError, counted

if TYPE_CHECKING:
    from loopkit._costs.open_sequence import OpenSequenceCosts
    from loopkit._costs.sequence import SequenceCosts
    from loopkit._costs.values import Footprint


def sequence_parts(costs: SequenceCosts) -> Iterator[Table | str]:
    """The tables, and the remarks between them."""
    sizes = ", ".join(f"{name} = {value}" for name, value in costs.sizes)
    head = costs.kernel + (f" at {sizes}" if sizes else "")
    yield Head(
        f"{head}\n{counted(costs.times, 'launch', 'launches')} in a call, "
        f"{counted(costs.blocks, 'block')}"
    )
    yield _launches(costs)
    if costs.operations:
        yield operation_table(costs.operations)
    yield from _bytes(costs)
    if (whole := costs.must_move) is not None:
        yield f"the whole call must move {whole:,} bytes of its arguments"
    if costs.asked is not None:
        try:
            yield str(costs.roofline)
        except LoopkitError as error:
            yield f"no roofline: {error.why}"
    for one in costs.launches:
        first, *rest = parts(one)
        yield Head(f"==== launch {one.number + 1}: {first}")
        yield from rest


def open_sequence_parts(costs: OpenSequenceCosts) -> Iterator[Table | str]:
    """The tables of counts that depend on open sizes."""
    sizes = "".join(f", {name} = {value}" for name, value in costs.sizes)
    head = f"{costs.kernel}, by {', '.join(costs.open_sizes)}{sizes}"
    yield Head(f"{head}\nlaunches in a call: {costs.times}\nblocks: {costs.blocks}")
    if costs.operations:
        times = tuple((kind, dtype, open_or(n)) for (kind, dtype), n in costs.operations)
        yield Table(("operation", "type", "times"), times, names=3)
    alone = {f.array: f for f in costs.by_launch}
    rows = [
        (f.array, what, open_or(of(f)), open_or(of(alone[f.array])))
        for f in costs.footprints
        for what, of in (("read", _read), ("written", _written))
    ]
    if rows:
        heads = ("array", "", "bytes in all", "bytes, launch by launch")
        yield Table(heads, tuple(rows), names=4)
    if costs.must_move is not None:
        yield f"the whole call must move bytes of its arguments: {costs.must_move}"
    for one in costs.launches:
        first, *rest = open_parts(one)
        yield Head(f"==== launch {one.number + 1}: {first}")
        yield from rest


def _read(footprint: Footprint) -> int | None:
    return footprint.read


def _written(footprint: Footprint) -> int | None:
    return footprint.written


def _launches(costs: SequenceCosts) -> Table:
    rows = []
    for one in costs.launches:
        moved = [n for f in one.footprints for n in (f.read, f.written)]
        known = None if None in moved else sum(n for n in moved if n is not None)
        rows.append(
            (
                f"{one.number + 1}",
                one.kernel,
                f"{one.times:,}",
                f"{one.blocks:,}",
                f"{one.threads:,}",
                number_or(in_all(one.operations)),
                number_or(known),
                f"{one.shared_bytes:,}",
            )
        )
    columns = ("launch", "", "times", "blocks", "threads each", "operations")
    return Table((*columns, "bytes touched", "shared bytes each"), tuple(rows))


def _bytes(costs: SequenceCosts) -> Iterator[Table]:
    alone = {f.array: f for f in costs.by_launch}
    moved = costs.moved
    rows = tuple(
        (
            f"{f.array}, at most" if f.at_most else f.array,
            "handed over" if f.array in costs.handed_over else "",
            number_or(f.read),
            number_or(f.written),
            number_or(alone[f.array].read),
            number_or(alone[f.array].written),
            number_or(moved.get(f.array)),
        )
        for f in costs.footprints
    )
    heads = ("bytes read", "bytes written", "read by launches", "written", "sectors requested")
    if rows:
        yield Table(("array", "", *heads), rows)
