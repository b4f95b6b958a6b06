"""What stands in the tables of costs: of a call of several launches all together, then each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from loopkit._costs.counts import in_all
from loopkit._costs.text_table import Head, Table
from loopkit._errors import LoopkitError, counted

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs
    from loopkit._costs.layouts import Layouts
    from loopkit._costs.values import AccessCosts


def parts(costs: Costs) -> Iterator[Table | str]:
    """The tables, and the remarks between them."""
    sizes = ", ".join(f"{name} = {value}" for name, value in costs.sizes)
    if costs.open_sizes:
        by = f"{costs.kernel}, by {', '.join(costs.open_sizes)}"
        head = f"{by}, {sizes}" if sizes else by
    else:
        head = f"{costs.kernel} at {sizes}" if sizes else costs.kernel
    yield Head(f"{head}\n{_launched(costs)}")
    if costs.launches:
        yield from _of_call(costs)
    elif costs.open_sizes:
        yield from _of_open_launch(costs)
    else:
        yield from _of_launch(costs)
    for one in costs.launches:
        first, *rest = parts(one)
        yield Head(f"==== launch {one.number + 1}: {first}")
        yield from rest


def _launched(costs: Costs) -> str:
    """What is launched, in words."""
    shared = f"{counted(costs.shared_bytes, 'byte')} of shared memory"
    around = f"in a loop over {', '.join(costs.loops)}: "
    if costs.launches and costs.open_sizes:
        return f"launches in a call: {costs.times}\nblocks: {costs.blocks}"
    if costs.launches:
        times = counted(costs.times, "launch", "launches")
        return f"{times} in a call, {counted(costs.blocks, 'block')}"
    threads = counted(costs.threads, "thread")
    if costs.open_sizes:
        said = f"blocks of {threads}, {shared} each\n"
        if costs.loops:
            return f"{said}times, {around}{costs.times}\nblocks in all: {costs.blocks}"
        return f"{said}blocks: {costs.blocks}"
    said = f"{counted(costs.blocks, 'block')} of {threads}"
    if costs.loops:
        said = f"{counted(costs.times, 'time')}, {around}{said} in all"
    return f"{said}, {shared} each"


def _of_call(costs: Costs) -> Iterator[Table | str]:
    """What several launches do together."""
    if not costs.open_sizes:
        yield _launches(costs)
    yield from _operations(costs)
    yield from _bytes(costs)
    whole = costs.must_move
    if whole is not None and costs.open_sizes:
        yield f"the whole call must move bytes of its arguments: {whole}"
    elif whole is not None:
        yield f"the whole call must move {whole:,} bytes of its arguments"
    if costs.asked is not None and not costs.open_sizes:
        yield _roofline(costs)


def _roofline(costs: Costs) -> str:
    try:
        return str(costs.roofline)
    except LoopkitError as error:
        return f"no roofline: {error.why}"


def _of_launch(costs: Costs) -> Iterator[Table | str]:
    """What a launch of known sizes does."""
    yield from _operations(costs)
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
        yield from _accesses(costs, space, heads, _row)
    yield from _collisions(costs)
    yield from _touched_again(costs)
    yield from _layouts(costs)
    yield from _combinations(costs)
    yield from _barriers(costs)
    if costs.at_most:
        yield f"as if conditions on data held: {', '.join(costs.at_most)}"
    yield from _needs(costs)
    if costs.asked is not None:
        yield "\n".join([*_device_lines(costs), "", _roofline(costs)])


def _device_lines(costs: Costs) -> Iterator[str]:
    """What stands of the device in the printed table."""
    for name in ("resources", "occupancy", "tail"):
        try:
            yield f"{name}: {getattr(costs, name)}"
        except LoopkitError as error:
            yield f"{name}: not known: {error.why}"
            break  # the others need it


def _of_open_launch(costs: Costs) -> Iterator[Table | str]:
    """What a launch does, by sizes that are open."""
    yield from _operations(costs)
    rows = [(f.array, "read", number_or(f.read)) for f in costs.footprints]
    rows += [(f.array, "written", number_or(f.written)) for f in costs.footprints]
    if rows:
        found = tuple(row for row in sorted(rows) if row[2] != "0")
        yield Table(("array", "", "bytes"), found, names=3)
    for space, piece in (("global", "sectors"), ("shared", "wavefronts")):
        yield from _accesses(costs, space, (piece,), _open_row, names=3)
    if costs.barriers:
        waits = tuple(
            (f"after {b.after}", f"before {b.before}", number_or(b.times)) for b in costs.barriers
        )
        yield Table(("barrier", "", "times"), waits, names=3)
    yield from _needs(costs)


def _operations(costs: Costs) -> Iterator[Table]:
    """How often there is which operation."""
    times = tuple((kind, dtype, number_or(n)) for (kind, dtype), n in costs.operations)
    if times:
        yield Table(("operation", "type", "times"), times, names=3 if costs.open_sizes else 2)


def _accesses(
    costs: Costs,
    space: str,
    heads: tuple[str, ...],
    row: Callable[[AccessCosts], tuple[str, ...]],
    names: int = 2,
) -> Iterator[Table]:
    """What accesses to a memory cost."""
    mine = [a for a in costs.accesses if a.space == space]
    if mine:
        statements = tuple(a.statement for a in mine)
        yield Table((f"{space} memory", "", *heads), tuple(map(row, mine)), statements, names)


def _needs(costs: Costs) -> Iterator[str]:
    """What to give, that all that data decide is counted."""
    if costs.needs:
        given = ", ".join(f"{name}=..." for name in costs.needs)
        yield f"data decide the rest: costs({given}) counts it"


def _open_row(access: AccessCosts) -> tuple[str, ...]:
    number = access.why if access.counts is None else str(access.counts.pieces)
    return access.text, _where(access), number


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


def number_or(value: Any) -> str:
    """A number or a polynomial, or that it is not known."""
    return f"{value:,}" if isinstance(value, int) else "not known" if value is None else str(value)


def _launches(costs: Costs) -> Table:
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


def _bytes(costs: Costs) -> Iterator[Table]:
    """Bytes that the launches of a call touch of each array."""
    if not costs.footprints:
        return
    alone = {f.array: f for f in costs.by_launch}
    if costs.open_sizes:
        rows = tuple(
            (f.array, what, *(number_or(getattr(one, what)) for one in (f, alone[f.array])))
            for f in costs.footprints
            for what in ("read", "written")
        )
        yield Table(("array", "", "bytes in all", "bytes, launch by launch"), rows, names=4)
        return
    rows = tuple(
        (
            f"{f.array}, at most" if f.at_most else f.array,
            "handed over" if f.array in costs.handed_over else "",
            *(number_or(n) for one in (f, alone[f.array]) for n in (one.read, one.written)),
            number_or(costs.moved.get(f.array)),
        )
        for f in costs.footprints
    )
    heads = ("bytes read", "bytes written", "read by launches", "written", "sectors requested")
    yield Table(("array", "", *heads), rows)
