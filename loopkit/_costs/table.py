"""Costs as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loopkit._costs.on_device import device_lines

if TYPE_CHECKING:
    from loopkit._costs.costs import AccessCosts, Costs


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
    for space, piece in (("global", "sectors"), ("shared", "wavefronts")):
        mine = [a for a in costs.accesses if a.space == space]
        if mine:
            lines.append("")
            columns = (f"{space} memory", "", "requests", piece, "a request", "at best")
            lines += _table([_row(a) for a in mine], columns)
    if costs.at_most:
        lines += ["", f"as if conditions on data held: {', '.join(costs.at_most)}"]
    if costs.asked is not None:
        lines += ["", *device_lines(costs)]
    return "\n".join(lines)


def _row(access: AccessCosts) -> tuple[str, ...]:
    verb = "write" if access.is_write else "read"
    counts = access.counts
    if counts is None:
        return access.text, f"{verb}, {access.statement}", access.why, "", "", ""
    requests = max(counts.requests, 1)
    return (
        access.text,
        f"{verb}, {access.statement}",
        f"{counts.requests:,}",
        f"{counts.pieces:,}",
        f"{counts.pieces / requests:.4g}",
        f"{counts.least_pieces / requests:.4g}",
    )


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _table(rows: Iterable[Sequence[str]], columns: Sequence[str]) -> list[str]:
    cells = [columns, *rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(columns))]
    lines = []
    for row in cells:
        numbers = [c.rjust(w) for c, w in zip(row[2:], widths[2:], strict=True)]
        names = [c.ljust(w) for c, w in zip(row[:2], widths[:2], strict=True)]
        lines.append("  ".join([*names, *numbers]).rstrip())
    return lines
