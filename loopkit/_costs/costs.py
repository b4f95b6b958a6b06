"""``knl.costs(n=4096)``: the costs of a call, counted exactly from the iteration domains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

from loopkit._cached import cached_property
from loopkit._costs.barrier_counts import (
    BarrierCosts,
    CombinationCosts,
    barriers_of,
    combinations_of,
)
from loopkit._costs.cost_values import AccessCosts, Footprint
from loopkit._costs.counts import Operations, added, sum_of
from loopkit._costs.devices import Device, chosen
from loopkit._costs.launch_counts import ONCE, Calls
from loopkit._costs.layouts import Layouts, layouts_of
from loopkit._costs.occupancy import Occupancy, Tail, blocks_at_once
from loopkit._costs.polynomial import QuasiPolynomial
from loopkit._costs.roofline import Roofline, roofline_of, sequence_roofline
from loopkit._costs.warps import SECTOR
from loopkit._errors import InvalidArgumentError, counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._printed import Printed

if TYPE_CHECKING:
    from loopkit._costs.texts import Table
    from loopkit._pictures.roofline_plot import RooflinePicture


@dataclass(frozen=True)
class Costs(Printed):
    """What a launch does, or a call of several ``launches``.

    ``operations`` counts by kind and type, such as ``("add", "float32")``; ``instances`` says how
    often each statement runs.  All numbers are exact, but where ``at_most`` says for which
    statements data decide: they, or some of their accesses, are counted as if conditions on data
    held.  ``needs`` are the arguments whose data decide that, and what is None: with them, all is
    exact.  Where sizes are left open (``open_sizes``; ``sizes`` are those that were given), each
    number is a :class:`~loopkit._costs.polynomial.QuasiPolynomial` of them.

    A launch of several is counted in all ``times`` that the call runs it: ``grid`` has the longest
    axes that it has in any iteration of the loops around it (``loops``), its footprints are those
    of each time, added up, and ``source``, the launch as a kernel, knows the inames of these loops
    as sizes.  A call of several launches has no grid and no block of its own; its numbers are those
    of all launches together, but ``footprints`` are those of the whole call: a cell counts once
    that several launches touch.  ``from_before`` are bytes of arguments whose values from before
    the call are read; None where that is not known.

    What depends on ``device`` (``resources``, ``occupancy``, ``tail``, ``roofline``) is found when
    it is first asked for.  Only resources, and what rests on them, need the compiler; nothing
    needs a GPU.  ``asked`` is the device that was asked for, ``arch`` what to compile for, None
    where nothing was said.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    instances: tuple[tuple[str, int | None], ...]
    operations: Operations
    accesses: tuple[AccessCosts, ...]
    footprints: tuple[Footprint, ...]
    source: Kernel = field(compare=False, repr=False)
    at_most: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    asked: Device | None = None
    arch: str | None = None
    open_sizes: tuple[str, ...] = ()
    number: int = 0
    times: int = 1
    all_blocks: int | None = None
    waits: tuple[BarrierCosts, ...] | None = None
    calls: Calls = field(default=ONCE, compare=False, repr=False)
    launches: tuple[Costs, ...] = ()
    from_before: tuple[tuple[str, int | None], ...] = ()
    numbers: tuple[tuple[str, Any], ...] = field(default=(), compare=False, repr=False)

    @property
    def loops(self) -> tuple[str, ...]:
        """The inames of the loops around it."""
        return self.calls.loops

    @property
    def blocks(self) -> int:
        """The blocks of the grid, or of all grids."""
        return prod(self.grid) if self.all_blocks is None else self.all_blocks

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(self.block)

    @property
    def grids(self) -> str:
        """What is launched, in short."""
        if self.launches:
            return f"{self.blocks:,} in {counted(self.times, 'launch', 'launches')}"
        return f"{self.blocks:,} x {self.threads:,}"

    def _of_launches(self, what: str) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(getattr(one, what) for one in self.launches))

    @cached_property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads wait for each other, and how often: found when first asked for."""
        if self.launches:
            return self._of_launches("barriers")
        if self.waits is not None:
            return self.waits
        return barriers_of(self.source, dict(self.sizes), self.grid, self.calls)

    @cached_property
    def combinations(self) -> tuple[CombinationCosts, ...]:
        """What threads do to combine partial results of reductions: found when first asked for."""
        if self.launches:
            return self._of_launches("combinations")
        return combinations_of(self.source, dict(self.sizes), self.grid, self.calls)

    @cached_property
    def layouts(self) -> tuple[Layouts, ...]:
        """Layouts without bank conflicts, for each shared array that has conflicts.

        They are found, and their conflicts counted, on first use.
        """
        if self.launches:
            return self._of_launches("layouts")
        if self.open_sizes:
            raise InvalidArgumentError(
                f"which layout helps is only known of numbers, and {', '.join(self.open_sizes)} "
                "were left open",
                instead=f"costs({', '.join(f'{n}=...' for n in self.source.sizes)}).layouts",
            )
        return layouts_of(self)

    @cached_property
    def moved(self) -> Mapping[str, int | None]:
        """Bytes of the sectors that all requests to each array in global memory touch."""
        return added(
            (a.array, None if a.counts is None else a.counts.pieces * SECTOR)
            for a in self.accesses
            if a.space == "global"
        )

    @property
    def by_launch(self) -> tuple[Footprint, ...]:
        """Bytes that launches touch of each array, each launch counted on its own."""
        every = self._of_launches("footprints")
        read = added((f.array, f.read) for f in every)
        written = added((f.array, f.written) for f in every)
        at_most = {f.array for f in every if f.at_most}
        return tuple(Footprint(a, read[a], written[a], a in at_most) for a in read)

    @property
    def handed_over(self) -> tuple[str, ...]:
        """Temporaries by which launches hand values to each other: no argument of the call."""
        return tuple(f.array for f in self.footprints if f.array not in self.source.arg_by_name)

    @property
    def must_move(self) -> int | None:
        """Bytes that memory must deliver or take for a whole call of launches, each cell once.

        Those of arguments: what launches only hand to each other may stay in a cache.
        """
        before = dict(self.from_before)
        mine = [f for f in self.footprints if f.array in before]
        return sum_of(n for f in mine for n in (before[f.array], f.written))

    def at(self, /, **sizes: int) -> dict[str, int]:
        """All counts at sizes that were left open, by what they count.

        Raises :class:`InvalidArgumentError` where one of them says nothing of these sizes.
        """
        return {
            what: value(**sizes) if isinstance(value, QuasiPolynomial) else value
            for what, value in self.numbers
            if value is not None
        }

    def on(self, device: Device | None) -> Costs:
        """The same with a device asked for."""
        return replace(self, asked=device, launches=tuple(one.on(device) for one in self.launches))

    @cached_property
    def device(self) -> Device:
        """The requested device; else the GPU of this machine; else an H100, with a ``note``."""
        return chosen(self.asked)

    @cached_property
    def resources(self) -> Any:
        """Registers, spills and shared memory of the code compiled for the device.

        A :class:`~loopkit._run.nvrtc.Resources`, or one for each of several launches.
        """
        if self.launches:
            return tuple(one.resources for one in self.launches)
        from loopkit._run.nvrtc import compile_program

        return compile_program(self.source.program(), arch_for(self.device, self.arch)).resources

    @cached_property
    def occupancy(self) -> Occupancy:
        """Blocks and warps that a multiprocessor holds at once, and what limits that."""
        self._check_one("occupancy")
        used = self.resources
        limits = self.device.capability
        return blocks_at_once(limits, used.threads, used.registers, used.shared)

    @cached_property
    def tail(self) -> Tail:
        """The waves of blocks that make the grid, and what the last one loses.

        Of a launch that is called in a loop, with the longest axes that the grid has there.
        """
        self._check_one("tail")
        if not all(isinstance(extent, int) for extent in self.grid):
            raise InvalidArgumentError(
                f"the waves of {self.kernel} need a grid of a known size",
                instead="give costs(...) all sizes as numbers",
            )
        return self.device.tail(self.occupancy, prod(self.grid))

    def _check_one(self, what: str) -> None:
        if self.launches:
            raise InvalidArgumentError(
                f"{self.kernel} is several launches, each with its own {what}",
                instead=f"costs(...).launches[0].{what}",
            )

    @cached_property
    def roofline(self) -> Roofline:
        """The time that a launch takes at least, and what sets it; of launches, one after another.

        A :class:`~loopkit._costs.roofline.SequenceRoofline` of several launches.
        """
        if self.launches:
            each = tuple((one.kernel, one.roofline) for one in self.launches)
            return sequence_roofline(self.device, each, self.must_move)
        return roofline_of(self, self.device)

    def plot_roofline(self, *, measured: float | None = None) -> RooflinePicture:
        """The roofline as a picture, with a time in seconds beside it where one was measured."""
        from loopkit._pictures.roofline_plot import roofline_picture

        return roofline_picture(self.source, self.sizes, self.roofline, measured)

    def parts(self) -> Iterator[Table | str]:
        """The tables, and the remarks between them."""
        from loopkit._costs.table import parts

        return parts(self)

    def __str__(self) -> str:
        from loopkit._costs.texts import as_text

        return as_text(self.parts())

    def _html(self) -> Any:
        from loopkit._display.cost_tables import costs_html

        return costs_html(self)


def arch_for(device: Device, arch: str | None) -> str:
    """What to compile for: ``arch`` where it is given, if the device runs it."""
    exactly = device.capability.arch
    if arch is None:
        return exactly
    mine, other = (int(re.sub(r"\D", "", name)) for name in (exactly, arch))
    runs = arch == exactly if arch[-1].isalpha() else mine // 10 == other // 10 and other <= mine
    if not runs:
        raise InvalidArgumentError(
            f"{device.name} does not run what is compiled for {arch}",
            instead=f"leave out arch=, or say '{exactly}'",
        )
    return arch
