"""What compiled launches use, and how many of their blocks a multiprocessor holds at once."""

from __future__ import annotations

from collections.abc import Sequence

from loopkit._costs.devices import Capability, capability_of
from loopkit._costs.occupancy import blocks_at_once
from loopkit._display.markup import Part, element, table
from loopkit._errors import ResourceError
from loopkit._program import Program
from loopkit._run.listing import Listing
from loopkit._run.resources import Resources

_COLUMNS = ("launch", "threads", "registers", "shared", "stack", "spills", "warps at once", "")


def in_a_line(listing: Listing) -> Part:
    """Of one launch, what stands above the panes; nothing of several."""
    if len(listing.resources) != 1:
        return None
    (used,) = listing.resources
    limits = capability_of(listing.arch)
    held = "" if limits is None else f"; {', '.join(_occupancy(used, limits))}"
    return element("div", f"{used}{held}", class_="lk-comment")


def in_a_table(program: Program, listing: Listing) -> Part:
    """Of several launches, a row for each."""
    limits = capability_of(listing.arch)
    parts = zip(program.parts, listing.resources, strict=True)
    rows = [(part.name, *_numbers(used), *_warps(used, limits)) for part, used in parts]
    return table(_COLUMNS, rows, numbers=range(1, len(_COLUMNS) - 1))


def _numbers(used: Resources) -> Sequence[str]:
    spills = used.spill_stores + used.spill_loads
    return [f"{n:,}" for n in (used.threads, used.registers, used.shared, used.stack, spills)]


def _warps(used: Resources, limits: Capability | None) -> tuple[str, str]:
    return ("", "") if limits is None else _occupancy(used, limits)


def _occupancy(used: Resources, limits: Capability) -> tuple[str, str]:
    """Warps of those that there can be, and what sets that."""
    try:
        held = blocks_at_once(limits, used.threads, used.registers, used.shared)
    except ResourceError as error:
        return "none", error.why
    by = f"limited by {' and '.join(held.limited_by)}"
    return f"{held.warps} of {held.most_warps} warps ({held.share:.0%})", by
