"""Costs as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loopkit._costs.on_device import device_lines

if TYPE_CHECKING:
    from loopkit._costs.costs import AccessCosts, Costs
    from loopkit._costs.open_sizes import OpenCosts


def as_text(costs: Costs) -> str:
    """Tables of the launch, operations, bytes and accesses."""
    sizes = ", ".join(f"{name} = {value}" for name, value in costs.sizes)
    launch = f"{costs.blocks:,} blocks of {costs.threads:,} threads"
    lines = [
        costs.kernel + (f" at {sizes}" if sizes else ""),
        f"{launch}, {costs.shared_bytes:,} bytes of shared memory each",
    ]
    if costs.operations:
        lines.append("")
        lines += _table(
            [(kind, dtype, f"{n:,}") for (kind, dtype), n in costs.operations],
            ("operation", "type", "times"),
        )
    if costs.footprints:
        lines.append("")
        lines += _table(
            [
                (f.array, _number(f.read), _number(f.written), _number(costs.moved.get(f.array)))
                for f in costs.footprints
            ],
            ("array", "bytes read", "bytes written", "bytes of sectors requested"),
        )
    for space, columns in (
        ("global", ("requests", "sectors", "a request", "at best", "used", "aligned")),
        ("shared", ("requests", "wavefronts", "a request", "at best", "at worst")),
    ):
        mine = [a for a in costs.accesses if a.space == space]
        if mine:
            lines.append("")
            lines += _table([_row(a) for a in mine], (f"{space} memory", "", *columns))
    lines += _touched_again(costs)
    lines += _paddings(costs)
    lines += _barriers(costs)
    if costs.at_most:
        lines += ["", f"as if conditions on data held: {', '.join(costs.at_most)}"]
    if costs.asked is not None:
        lines += ["", *device_lines(costs)]
    return "\n".join(lines)


def open_text(costs: OpenCosts) -> str:
    """What depends on open sizes: a line for each count."""
    sizes = "".join(f", {name} = {value}" for name, value in costs.sizes)
    lines = [
        f"{costs.kernel}, by {', '.join(costs.open_sizes)}{sizes}",
        f"blocks of {costs.threads:,} threads, {costs.shared_bytes:,} bytes of shared memory each",
        f"blocks: {costs.blocks}",
    ]
    if costs.operations:
        rows = [(kind, dtype, str(n)) for (kind, dtype), n in costs.operations]
        lines += ["", *_table(rows, ("operation", "type"), ("times",))]
    if costs.footprints:
        rows = [(f.array, "read", _open(f.read)) for f in costs.footprints]
        rows += [(f.array, "written", _open(f.written)) for f in costs.footprints]
        rows = [row for row in sorted(rows) if row[2] != "0"]
        lines += ["", *_table(rows, ("array", ""), ("bytes",))]
    for space, piece in (("global", "sectors"), ("shared", "wavefronts")):
        mine = [a for a in costs.accesses if a.space == space]
        if mine:
            rows = [
                (a.text, _where(a), a.why if a.counts is None else str(a.counts.pieces))
                for a in mine
            ]
            lines += ["", *_table(rows, (f"{space} memory", ""), (piece,))]
    if costs.barriers:
        rows = [(f"after {b.after}", f"before {b.before}", _open(b.times)) for b in costs.barriers]
        lines += ["", *_table(rows, ("barrier", ""), ("times",))]
    return "\n".join(lines)


def _open(value: object) -> str:
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
    return f"{'write' if access.is_write else 'read'}, {access.statement}"


def _touched_again(costs: Costs) -> list[str]:
    """How often cells of global memory are touched again, and by whom."""
    found = [a for a in costs.accesses if a.reuse is not None and any(a.reuse.again.values())]
    if not found:
        return []
    rows = []
    for access in found:
        assert access.reuse is not None
        again = access.reuse.again
        rows.append((access.text, _where(access), *(f"{n:,}" for n in again.values())))
    return ["", *_table(rows, ("touched again by the", "", *again))]


def _paddings(costs: Costs) -> list[str]:
    """What would remove bank conflicts."""
    lines = []
    for padding in costs.paddings:
        text = f"{padding.array}: {padding.wavefronts:,} wavefronts, {padding.least:,} at best; "
        if padding.call:
            left = "" if padding.removes_all else f", to {padding.with_it:,}"
            text += f"{padding.call} removes {'the conflicts' if not left else 'some'}{left}"
        lines.append(text + padding.why)
    return ["", *lines] if lines else []


def _barriers(costs: Costs) -> list[str]:
    """Where threads wait for each other."""
    if not costs.barriers:
        return []
    rows = []
    for barrier in costs.barriers:
        each = barrier.per_block
        rows.append(
            (
                f"after {barrier.after}" if barrier.after else "at first",
                f"before {barrier.before}" if barrier.before else "at last",
                f"{barrier.waiting:,}",
                "data decide" if each is None else f"{each:,.10g}",
                _number(barrier.times),
            )
        )
    return ["", *_table(rows, ("barrier", "", "threads", "a block", "in all"))]


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _table(
    rows: Iterable[Sequence[str]], columns: Sequence[str], texts: Sequence[str] = ()
) -> list[str]:
    """Rows under their headings: two columns of names, then numbers; ``texts`` begin left."""
    cells = [(*columns, *texts), *rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    lines = []
    for row in cells:
        adjusted = str.ljust if texts else str.rjust
        numbers = [adjusted(c, w) for c, w in zip(row[2:], widths[2:], strict=True)]
        names = [c.ljust(w) for c, w in zip(row[:2], widths[:2], strict=True)]
        lines.append("  ".join([*names, *numbers]).rstrip())
    return lines
