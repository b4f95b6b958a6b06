"""``knl.view("out.html", n=4096)``: what stands on the page, from the kernel and its steps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from loopkit._costs.costs import Costs
from loopkit._costs.counted import costs_of
from loopkit._costs.devices import capability_of, running
from loopkit._costs.occupancy import blocks_at_once
from loopkit._costs.sizes import check_sizes
from loopkit._display.cost_tables import costs_parts
from loopkit._display.history import call, changed, diffs, milliseconds, verdict
from loopkit._display.markup import Part, drawn, element, fold, table
from loopkit._errors import LoopkitError, ResourceError, counted
from loopkit._files import place_for, write_whole
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._program import Program
from loopkit._run.listing import Listing, listing_of
from loopkit._run.nvrtc import Resources
from loopkit._transform import replay
from loopkit._view.page import (
    Pane,
    Section,
    failed,
    inset,
    nest_pane,
    note,
    page,
    ptx_pane,
    sass_pane,
    source_pane,
)

COMPILED = 6
"""Different sources that are compiled for one page, the last ones: half a second each."""

LINES = 8_000
"""Lines of PTX and of machine code on one page, those of the last step not counted."""

NOT_COMPILED = f"""machine code is shown for the last {COMPILED} different sources of a page, \
and for {LINES:,} lines
history[...].kernel.view(...) shows it for this step"""


def listings_of(programs: Sequence[Program], arch: str) -> Mapping[str, Listing | LoopkitError]:
    """What each source was compiled to, or why it cannot be; not all are, where they are many."""
    last_first = {program.source: program for program in reversed(programs)}
    chosen = list(last_first.values())[:COMPILED]

    def listed(program: Program) -> Listing | LoopkitError:
        try:
            return listing_of(program, arch)
        except LoopkitError as error:
            return error

    held: dict[str, Listing | LoopkitError] = {}
    room = LINES
    # NVRTC and the disassembler leave the interpreter to others while they work.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, COMPILED)) as pool:
        for program, one in zip(chosen, pool.map(listed, chosen), strict=True):
            size = len(one.ptx) + len(one.sass) if isinstance(one, Listing) else 0
            if held and size > room:
                pool.shutdown(wait=False, cancel_futures=True)  # those before it are not shown
                break
            room -= size if held else 0
            held[program.source] = one
    return held


_COLUMNS = ("launch", "threads", "registers", "shared", "stack", "spills", "warps at once", "")


def _in_a_line(listing: Listing) -> Part:
    """Of one launch, what stands above the panes; nothing of several."""
    if len(listing.resources) != 1:
        return None
    (used,) = listing.resources
    held = ", ".join(filter(None, _occupancy(used, listing.arch)))
    return element("div", f"{used}{held and f'; {held}'}", class_="lk-comment")


def _in_a_table(program: Program, listing: Listing) -> Part:
    """Of several launches, a row for each."""
    rows = []
    for part, used in zip(program.parts, listing.resources, strict=True):
        spills = used.spill_stores + used.spill_loads
        counts = used.threads, used.registers, used.shared, used.stack, spills
        held = _occupancy(used, listing.arch)
        rows.append((part.name, *(f"{n:,}" for n in counts), *held))
    return table(_COLUMNS, rows, numbers=range(1, len(_COLUMNS) - 1))


def _occupancy(used: Resources, arch: str) -> tuple[str, str]:
    """Warps of those that there can be, and what sets that; nothing where that is not known."""
    limits = capability_of(arch)
    if limits is None:
        return "", ""
    try:
        held = blocks_at_once(limits, used.threads, used.registers, used.shared)
    except ResourceError as error:
        return "none", error.why
    by = f"limited by {' and '.join(held.limited_by)}"
    return f"{held.warps} of {held.most_warps} warps ({held.share:.0%})", by


def view(kernel: Kernel, path: str | os.PathLike[str], arch: str, sizes: Mapping[str, int]) -> Path:
    """Write the page for a kernel; returns where it is."""
    target = place_for(path, "the page")
    costs = None
    if sizes or not kernel.sizes:
        costs = costs_of(kernel, check_sizes(kernel, sizes, "view"))
    made = page(kernel, list(_sections(kernel, arch, costs)), _facts(kernel, sizes))
    write_whole(target, made.encode())
    return target


def _facts(kernel: Kernel, sizes: Mapping[str, int]) -> str:
    steps = len(kernel.history)
    parts = [counted(steps, "step")]
    parts += [f"{name} = {value:,}" for name, value in sizes.items()]
    return ", ".join(parts)


def _sections(kernel: Kernel, arch: str, costs: Costs | None) -> Iterator[Section]:
    """A section for the text, and one for each step; costs for the last."""
    stages = list(_stages(kernel))
    programs = [_program(made) for _, made in stages]
    listings = listings_of([p for p in programs if isinstance(p, Program)], arch)
    for (step, made), program in zip(stages, programs, strict=True):
        counted = costs if made is stages[-1][1] else None
        found = listings.get(program.source) if isinstance(program, Program) else None
        linked = found if isinstance(found, Listing) else None
        yield Section(
            "text" if step is None else _label(step),
            [_about(step), _in_a_line(linked) if linked is not None else None],
            tuple(_panes(made, program, found, counted)),
            tuple(_below(step, made, linked, counted, arch)),
        )


def _program(kernel: Kernel) -> Program | LoopkitError:
    try:
        return kernel.program()
    except LoopkitError as error:
        return error


def _label(step: Step) -> str:
    """``split_iname i``: the transform and the first name that it is given."""
    values = [value for _, value in step.arguments if isinstance(value, str)]
    first = values[0] if values and len(values[0]) <= 20 else ""
    return f"{step.transform} {first}".rstrip()


def _stages(kernel: Kernel) -> Iterator[tuple[Step | None, Kernel]]:
    """The kernel of the text, and the kernel after each step."""
    steps = kernel.history
    if not steps or steps[-1].kernels is None:  # a kernel that was stored has forgotten them
        root = kernel.lineage.root if kernel.lineage is not None else kernel
        steps = replay(root, steps).history
    yield None, steps[0].before if steps else kernel
    for step in steps:
        yield step, step.kernel


def _about(step: Step | None) -> Part:
    if step is None:
        return "what every schedule must compute"
    took = milliseconds(step)
    return [call(step), "  ", verdict(step), f" in {took}" if took else None, changed(step)]


def _panes(
    kernel: Kernel,
    program: Program | LoopkitError,
    listing: Listing | LoopkitError | None,
    costs: Costs | None,
) -> Iterator[Pane]:
    yield nest_pane(kernel)
    if not isinstance(program, Program):
        yield failed("source", "CUDA C", program)
        return
    linked = listing if isinstance(listing, Listing) else None
    by_line = _costs_by_line(kernel, costs) if costs is not None else {}
    yield source_pane(kernel, by_line, linked)
    if linked is not None:
        yield ptx_pane(linked)
        yield sass_pane(linked)
    elif isinstance(listing, LoopkitError):
        yield failed("sass", "machine code", listing)
    else:
        yield Pane("sass", "machine code", inset(note(NOT_COMPILED)))


_UNITS = {"global": "sectors", "shared": "wavefr."}


def _costs_by_line(kernel: Kernel, costs: Costs) -> dict[str, dict[int, float]]:
    """What a request of a line's statement costs, at worst, for each space of memory."""
    worst: dict[tuple[str, str], float] = {}
    for access in costs.accesses:
        if access.per_request is not None:
            key = access.space, access.statement
            worst[key] = max(worst.get(key, 0.0), access.per_request)
    found: dict[str, dict[int, float]] = {}
    for number, line in enumerate(kernel.program().lines, 1):
        for space, unit in _UNITS.items():
            if line.statement is not None and (space, line.statement) in worst:
                found.setdefault(unit, {})[number] = worst[space, line.statement]
    return found


def _below(
    step: Step | None,
    kernel: Kernel,
    listing: Listing | None,
    costs: Costs | None,
    arch: str,
) -> Iterator[tuple[str, Part]]:
    """What folds out under the panes: what the step changed, what all costs, and pictures."""
    if step is not None:
        yield "what the step changed", list(diffs(step))
    if listing is not None and len(listing.resources) > 1:
        yield "resources of each launch", _in_a_table(kernel.program(), listing)
    if costs is not None:
        yield "costs", list(costs_parts(costs))
        yield "roofline", drawn(lambda: costs.on(running(arch)).plot_roofline())
        yield from _pictures(kernel, costs)


def _pictures(kernel: Kernel, costs: Costs) -> Iterator[tuple[str, Part]]:
    """What the first warp touches in the first request of each access."""
    parts: list[Part] = []
    for access in costs.accesses:
        if access.per_request is None:
            continue
        title = f"{access.statement} {access.verb}s {access.text}"
        draw = kernel.plot_banks if access.space == "shared" else kernel.plot_access
        which, sizes = (access.array, access.statement), dict(costs.sizes)
        shown = drawn(partial(draw, *which, access=access.text, sizes=sizes))
        parts.append(fold(title, shown, is_open=False))
    if parts:
        yield "which threads touch what", parts
