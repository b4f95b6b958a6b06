"""What stands in the tables of costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from loopkit._costs.on_device import device_lines
from loopkit._costs.text_table import Head, Table
from loopkit._errors import counted

if TYPE_CHECKING:
    from loopkit._costs.costs import AccessCosts, Costs, Operations
    from loopkit._costs.layouts import Layouts
    from loopkit._costs.open_sizes import OpenCosts


def parts(costs: Costs) -> Iterator[Table | str]:
    """The tables, and the remarks between them."""
    sizes = ", ".join(f"{name} = {value}" for name, value in costs.sizes)
    head = costs.kernel + (f" at {sizes}" if sizes else "")
    yield Head(
        f"{head}\n{costs.launched}, {counted(costs.shared_bytes, 'byte')} of shared memory each"
    )
    if costs.operations:
        yield operation_table(costs.operations)
    if costs.footprints:
        moved = costs.moved
        rows = tuple(
            (
                f"{f.array}, at most" if f.at_most else f.array,
                number_or(f.read),
                number_or(f.written),
                number_or(moved.get(f.array)),
            )
            for f in costs.footprints
        )
        yield Table(
            ("array", "bytes read", "bytes written", "bytes of sectors requested"), rows, names=1
        )
    for space, heads in (
        ("global", ("requests", "sectors", "a request", "at best", "used", "aligned")),
        ("shared", ("requests", "wavefronts", "a request", "at best", "at worst")),
    ):
        mine = [a for a in costs.accesses if a.space == space]
        if mine:
            statements = tuple(a.statement for a in mine)
            yield Table((f"{space} memory", "", *heads), tuple(map(_row, mine)), statements)
    yield from _collisions(costs)
    yield from _touched_again(costs)
    yield from _layouts(costs)
    yield from _combinations(costs)
    yield from _barriers(costs)
    if costs.at_most:
        yield f"as if conditions on data held: {', '.join(costs.at_most)}"
    if costs.needs:
        yield needs_text(costs.needs)
    if costs.asked is not None:
        yield "\n".join(device_lines(costs))


def operation_table(operations: Operations) -> Table:
    """How often there is which operation."""
    times = tuple((kind, dtype, number_or(n)) for (kind, dtype), n in operations)
    return Table(("operation", "type", "times"), times)


def open_parts(costs: OpenCosts) -> Iterator[Table | str]:
    """The tables of counts that depend on open sizes."""
    sizes = "".join(f", {name} = {value}" for name, value in costs.sizes)
    launch = (
        f"blocks of {counted(costs.threads, 'thread')}, "
        f"{counted(costs.shared_bytes, 'byte')} of shared memory"
    )
    head = f"{costs.kernel}, by {', '.join(costs.open_sizes)}{sizes}"
    yield Head(f"{head}\n{launch} each\n{costs.launched_open}")
    if costs.operations:
        times = tuple((kind, dtype, open_or(n)) for (kind, dtype), n in costs.operations)
        yield Table(("operation", "type", "times"), times, names=3)
    if costs.footprints:
        rows = [(f.array, "read", open_or(f.read)) for f in costs.footprints]
        rows += [(f.array, "written", open_or(f.written)) for f in costs.footprints]
        found = tuple(row for row in sorted(rows) if row[2] != "0")
        yield Table(("array", "", "bytes"), found, names=3)
    for space, piece in (("global", "sectors"), ("shared", "wavefronts")):
        mine = [a for a in costs.accesses if a.space == space]
        if mine:
            counts = [a.why if a.counts is None else str(a.counts.pieces) for a in mine]
            found = tuple((a.text, _where(a), n) for a, n in zip(mine, counts, strict=True))
            statements = tuple(a.statement for a in mine)
            yield Table((f"{space} memory", "", piece), found, statements, names=3)
    if costs.barriers:
        waits = tuple(
            (f"after {b.after}", f"before {b.before}", open_or(b.times)) for b in costs.barriers
        )
        yield Table(("barrier", "", "times"), waits, names=3)
    if costs.needs:
        yield needs_text(costs.needs)


def needs_text(needs: Iterable[str]) -> str:
    """What to give, that all that data decide is counted."""
    return f"data decide the rest: costs({', '.join(f'{name}=...' for name in needs)}) counts it"


def open_or(value: object) -> str:
    """A polynomial, or that it is not known."""
    return "not known" if value is None else str(value)


def _row(access: AccessCosts) -> tuple[str, ...]:
    counts = access.counts
    more = 6 if access.space == "global" else 5
    if counts is None:
        return access.text, _where(access), access.why, *[""] * (more - 1)
    requests = max(counts.requests, 1)
    row = (
        access.text,
        _where(access),
        f"{counts.requests:,}",
        f"{counts.pieces:,}",
        f"{counts.pieces / requests:.4g}",
        f"{counts.least_pieces / requests:.4g}",
    )
    if access.space == "shared":
        return *row, f"{counts.most_pieces}"
    return *row, "" if access.used is None else f"{access.used:.0%}", f"{counts.alignment} B"


def _where(access: AccessCosts) -> str:
    return f"{access.verb}{' at most' if access.at_most else ''}, {access.statement}"


def _collisions(costs: Costs) -> Iterator[Table]:
    """Atomic updates, and those that wait for another one of their warp."""
    found = [a for a in costs.accesses if a.is_atomic]
    rows = []
    for access in found:
        each = access.why
        if access.counts is not None:
            each = f"{access.counts.threads / max(access.counts.elements, 1):.4g}"
        threads = "" if access.counts is None else f"{access.counts.threads:,}"
        waiting = "" if access.collisions is None else f"{access.collisions:,}"
        rows.append((access.text, _where(access), threads, waiting, each))
    if rows:
        columns = (
            "atomic updates",
            "",
            "in all",
            "behind another of the warp",
            "a cell and request",
        )
        yield Table(columns, tuple(rows), tuple(a.statement for a in found))


def _touched_again(costs: Costs) -> Iterator[Table]:
    """How often cells of global memory are touched again, and by whom."""
    found = [a for a in costs.accesses if a.reuse is not None and any(a.reuse.again.values())]
    rows: list[tuple[str, ...]] = []
    columns: tuple[str, ...] = ()
    for access in found:
        assert access.reuse is not None
        columns = tuple(access.reuse.again)
        numbers = (f"{n:,}" for n in access.reuse.again.values())
        rows.append((access.text, _where(access), *numbers))
    if rows:
        statements = tuple(access.statement for access in found)
        yield Table(("touched again by the", "", *columns), tuple(rows), statements)


def _layouts(costs: Costs) -> Iterator[str]:
    """What would remove bank conflicts."""
    lines = []
    for found in costs.layouts:
        text = f"{found.array}: {counted(found.wavefronts, 'wavefront')}, {found.least:,} at best; "
        lines.append(text + found.why + "; ".join(_better(found)))
    if lines:
        yield "\n".join(lines)


def _better(found: Layouts) -> Iterator[str]:
    """What the best layouts of an array do, the one that takes less memory first."""
    for layout in found.better:
        if layout.wavefronts > found.with_it:
            continue
        left = layout.wavefronts - found.least
        text = f"{layout.call} removes " + (f"all but {left:,}" if left else "the conflicts")
        yield text + (f" for {counted(layout.bytes, 'byte')}" if layout.bytes else "")
    if found.better and not found.removes_all:
        yield "no padding or swizzle of one axis removes all"


def _combinations(costs: Costs) -> Iterator[Table]:
    """What threads do together for reductions."""
    counts = ("operations", "shuffles", "wavefronts", "barriers")
    rows = tuple(
        (c.statement, c.what, number_or(c.times), *(number_or(c.total(name)) for name in counts))
        for c in costs.combinations
    )
    if rows:
        yield Table(("combination", "", "times", *counts), rows)


def _barriers(costs: Costs) -> Iterator[Table]:
    """Where threads wait for each other."""
    rows = []
    for barrier in costs.barriers:
        each = barrier.per_block
        rows.append(
            (
                f"after {barrier.after}" if barrier.after else "at first",
                f"before {barrier.before}" if barrier.before else "at last",
                f"{barrier.waiting:,}",
                "data decide" if each is None else f"{each:,.10g}",
                number_or(barrier.times),
            )
        )
    if rows:
        yield Table(("barrier", "", "threads", "a block", "in all"), tuple(rows))


def number_or(value: int | None) -> str:
    """A number, or that it is not known."""
    return "not known" if value is None else f"{value:,}"
