"""What costs say of a device: resources, occupancy, tail, roofline, each when first asked for.

Only resources, and what rests on them, need the compiler; nothing needs a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, cast

from loopkit._cached import cached_property
from loopkit._costs.devices import Device
from loopkit._costs.occupancy import Occupancy, Tail, blocks_at_once
from loopkit._costs.roofline import Roofline, roofline_of
from loopkit._costs.shown import ShownCosts
from loopkit._errors import InvalidArgumentError, LoopkitError

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs
    from loopkit._run.resources import Resources


class OnDevice(ShownCosts):
    """The part of :class:`Costs` that depends on a device.

    ``arch`` is what to compile for, None where nothing was said.
    """

    if TYPE_CHECKING:
        arch: str | None
        grid: tuple[int, int, int]

    @cached_property
    def resources(self) -> Resources:
        """Registers, spills and shared memory of the code compiled for the device."""
        from loopkit._run.nvrtc import compile_program

        return compile_program(self.source.program(), arch_for(self.device, self.arch)).resources

    @cached_property
    def occupancy(self) -> Occupancy:
        """Blocks and warps that a multiprocessor holds at once, and what limits that."""
        used = self.resources
        limits = self.device.capability
        return blocks_at_once(limits, used.threads, used.registers, used.shared)

    @cached_property
    def tail(self) -> Tail:
        """The waves of blocks that make the grid, and what the last one loses.

        Of a launch that is called in a loop, with the longest axes that the grid has there.
        """
        if not all(isinstance(extent, int) for extent in self.grid):
            raise InvalidArgumentError(
                f"the waves of {self.kernel} need a grid of a known size",
                instead="give costs(...) all sizes as numbers",
            )
        return self.device.tail(self.occupancy, prod(self.grid))

    @cached_property
    def roofline(self) -> Roofline:
        """The time that a launch takes at least, and what sets it."""
        return roofline_of(cast("Costs", self), self.device)


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


def device_lines(costs: OnDevice) -> list[str]:
    """What stands of the device in the printed table."""
    parts: dict[str, Callable[[], Any]] = {
        "resources": lambda: costs.resources,
        "occupancy": lambda: costs.occupancy,
        "tail": lambda: costs.tail,
    }
    lines = []
    for name, find in parts.items():
        try:
            lines.append(f"{name}: {find()}")
        except LoopkitError as error:
            lines.append(f"{name}: not known: {error.why}")
            break  # the others need it
    try:
        lines += ["", str(costs.roofline)]
    except LoopkitError as error:
        lines += ["", f"no roofline: {error.why}"]
    return lines
