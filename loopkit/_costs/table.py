"""The tables of costs: first the whole call if it has several launches, then each launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from loopkit._costs.counts import sum_of
from loopkit._costs.texts import Head, Table, table
from loopkit._errors import LoopkitError, counted

if TYPE_CHECKING:
    from loopkit._costs.cost_values import AccessCosts, Footprint
    from loopkit._costs.costs import Costs
    from loopkit._costs.layouts import Layouts


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
        yield from _launches(costs)
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
    columns = ("array", "bytes read", "bytes written", "bytes of sectors requested")
    rows = ((_named(f), f.read, f.written, costs.moved.get(f.array)) for f in costs.footprints)
    yield from table(columns, rows, names=1)
    for space, heads in (
        ("global", ("requests", "sectors", "a request", "at best", "used", "aligned")),
        ("shared", ("requests", "wavefronts", "a request", "at best", "at worst")),
    ):
        yield from _in_space(costs, space, heads, _requests)
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
    rows = [(f.array, what, getattr(f, what)) for f in costs.footprints for what in _WAYS]
    found = [row for row in sorted(rows, key=lambda row: row[:2]) if str(row[2]) != "0"]
    yield from table(("array", "", "bytes"), found, names=3)
    for space, piece in (("global", "sectors"), ("shared", "wavefronts")):
        yield from _in_space(costs, space, (piece,), _pieces, names=3)
    waits = [(f"after {b.after}", f"before {b.before}", b.times) for b in costs.barriers]
    yield from table(("barrier", "", "times"), waits, names=3)
    yield from _needs(costs)


def _operations(costs: Costs) -> Iterator[Table]:
    """How often there is which operation."""
    times = ((kind, dtype, n) for (kind, dtype), n in costs.operations)
    yield from table(("operation", "type", "times"), times, 3 if costs.open_sizes else 2)


Numbers = Callable[["AccessCosts"], Iterable[object]]


def _in_space(
    costs: Costs, space: str, heads: tuple[str, ...], numbers: Numbers, names: int = 2
) -> Iterator[Table]:
    """What accesses to a memory cost."""
    mine = [a for a in costs.accesses if a.space == space]
    return _of_accesses((f"{space} memory", "", *heads), mine, numbers, names)


def _of_accesses(
    columns: tuple[str, ...], found: Sequence[AccessCosts], numbers: Numbers, names: int = 2
) -> Iterator[Table]:
    """A row for each of some accesses."""
    rows = ((access.text, _where(access), *numbers(access)) for access in found)
    return table(columns, rows, names, tuple(access.statement for access in found))


def _needs(costs: Costs) -> Iterator[str]:
    """What to give, that all that data decide is counted."""
    if costs.needs:
        given = ", ".join(f"{name}=..." for name in costs.needs)
        yield f"data decide the rest: costs({given}) counts it"


def _pieces(access: AccessCosts) -> Sequence[object]:
    return (access.why if access.counts is None else access.counts.pieces,)


def _requests(access: AccessCosts) -> Sequence[object]:
    counts, is_shared = access.counts, access.space == "shared"
    if counts is None:
        return access.why, *[""] * (4 if is_shared else 5)
    of_each = (n / max(counts.requests, 1) for n in (counts.pieces, counts.least_pieces))
    used = "" if access.used is None else f"{access.used:.0%}"
    last = (counts.most_pieces,) if is_shared else (used, f"{counts.alignment} B")
    return counts.requests, counts.pieces, *(f"{mean:.4g}" for mean in of_each), *last


def _where(access: AccessCosts) -> str:
    return f"{access.verb}{' at most' if access.at_most else ''}, {access.statement}"


def _collisions(costs: Costs) -> Iterator[Table]:
    """Atomic updates, and those that wait for another one of their warp."""

    def numbers(access: AccessCosts) -> Sequence[object]:
        counts = access.counts
        if counts is None:
            return "", "", access.why
        each = f"{counts.threads / max(counts.elements, 1):.4g}"
        return counts.threads, access.collisions, each

    heads = ("in all", "behind another of the warp", "a cell and request")
    found = [a for a in costs.accesses if a.is_atomic]
    return _of_accesses(("atomic updates", "", *heads), found, numbers)


def _touched_again(costs: Costs) -> Iterator[Table]:
    """How often cells of global memory are touched again, and by whom."""
    again = {a: a.reuse.again for a in costs.accesses if a.reuse is not None}
    found = [access for access, times in again.items() if any(times.values())]
    heads = tuple(again[found[-1]]) if found else ()
    columns = ("touched again by the", "", *heads)
    return _of_accesses(columns, found, lambda access: again[access].values())


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
    rows = (
        (c.statement, c.what, c.times, *(c.total(name) for name in counts))
        for c in costs.combinations
    )
    return table(("combination", "", "times", *counts), rows)


def _barriers(costs: Costs) -> Iterator[Table]:
    """Where threads wait for each other."""
    rows = (
        (
            f"after {b.after}" if b.after else "at first",
            f"before {b.before}" if b.before else "at last",
            b.waiting,
            "data decide" if b.per_block is None else f"{b.per_block:,.10g}",
            b.times,
        )
        for b in costs.barriers
    )
    return table(("barrier", "", "threads", "a block", "in all"), rows)


def _launches(costs: Costs) -> Iterator[Table]:
    rows = []
    for one in costs.launches:
        operations = sum_of(n for _, n in one.operations)
        touched = sum_of(n for f in one.footprints for n in (f.read, f.written))
        counts = one.times, one.blocks, one.threads, operations, touched
        rows.append((one.number + 1, one.kernel, *counts, one.shared_bytes))
    columns = ("launch", "", "times", "blocks", "threads each", "operations")
    return table((*columns, "bytes touched", "shared bytes each"), rows)


_WAYS = ("read", "written")


def _named(footprint: Footprint) -> str:
    return f"{footprint.array}, at most" if footprint.at_most else footprint.array


def _bytes(costs: Costs) -> Iterator[Table]:
    """Bytes that the launches of a call touch of each array."""
    both = [(f, one) for f in costs.footprints for one in costs.by_launch if one.array == f.array]
    if costs.open_sizes:
        each = (
            (f.array, way, *(getattr(b, way) for b in (f, one))) for f, one in both for way in _WAYS
        )
        yield from table(("array", "", "bytes in all", "bytes, launch by launch"), each, names=4)
        return
    rows = (
        (
            _named(f),
            "handed over" if f.array in costs.handed_over else "",
            *(f.read, f.written, one.read, one.written, costs.moved.get(f.array)),
        )
        for f, one in both
    )
    heads = ("bytes read", "bytes written", "read by launches", "written", "sectors requested")
    yield from table(("array", "", *heads), rows)
