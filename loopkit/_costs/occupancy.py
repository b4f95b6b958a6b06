"""Occupancy: resident blocks of a multiprocessor, what limits them, and the last wave's idle share.

The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`): registers are allocated
for warps, in units, within each of four parts of a multiprocessor; shared memory for blocks, in
units, with what the driver reserves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopkit._errors import ResourceError, counted
from loopkit._frozen import dataclass
from loopkit._printed import Printed

if TYPE_CHECKING:
    from loopkit._costs.devices import Capability

SCHEDULERS = 4
"""Of a multiprocessor: each has a quarter of the registers, an instruction a clock."""


@dataclass(frozen=True)
class Occupancy(Printed):
    """The resident blocks of one multiprocessor.

    ``limits`` gives the number of ``blocks`` for which each resource suffices; the smallest is the
    limit.  ``registers`` and ``shared`` are the allocation of a block, in registers and in bytes.
    The multiprocessor must be configured for at least ``configured`` bytes of shared memory; the
    rest is L1.
    """

    blocks: int
    block_warps: int
    most_warps: int
    limits: tuple[tuple[str, int], ...]
    registers: int
    shared: int
    configured: int

    @property
    def warps(self) -> int:
        """The number of resident warps."""
        return self.blocks * self.block_warps

    @property
    def share(self) -> float:
        """The resident warps as a share of the maximum."""
        return self.warps / self.most_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that do not suffice for a further block."""
        return tuple(name for name, blocks in self.limits if blocks == self.blocks)

    def __str__(self) -> str:
        room = ", ".join(f"{name} {blocks}" for name, blocks in self.limits)
        return (
            f"{counted(self.blocks, 'block')} a multiprocessor, {self.warps} of {self.most_warps} "
            f"warps ({self.share:.0%}), limited by {' and '.join(self.limited_by)}\n"
            f"  blocks that there is room for: {room}"
        )


def blocks_at_once(capability: Capability, threads: int, registers: int, shared: int) -> Occupancy:
    """Blocks of ``threads``, at once on a multiprocessor.

    :arg registers: of a thread.
    :arg shared: bytes of a block, static and dynamic.
    :raises ResourceError: if not even one block fits.
    """
    warps = -(-threads // 32)
    a_warp = _whole(registers * 32, capability.register_unit)
    a_block = _whole(shared + capability.reserved, capability.shared_unit)
    too_much = {
        f"{threads} threads a block": threads > capability.block_threads,
        f"{registers} registers a thread": registers > capability.registers_thread,
        # Whether a block fits is judged as if each part of a multiprocessor had as many warps.
        f"{registers} registers for each of {threads} threads": (
            a_warp * _whole(warps, SCHEDULERS) > capability.registers
        ),
        f"{shared} bytes of shared memory a block": shared > capability.shared_block,
    }
    for what, is_too_much in too_much.items():
        if is_too_much:
            raise ResourceError(
                f"a multiprocessor of compute capability {capability.name} has no room for {what}",
                instead="make the block smaller, or let it keep less in registers or shared memory",
            )
    limits = {"warps": capability.warps // warps, "blocks": capability.blocks}
    if a_warp:
        in_a_part = capability.registers // SCHEDULERS // a_warp
        limits["registers"] = in_a_part * SCHEDULERS // warps
    if a_block:
        limits["shared memory"] = capability.shared[-1] // a_block
    blocks = min(limits.values())
    return Occupancy(
        blocks=blocks,
        block_warps=warps,
        most_warps=capability.warps,
        limits=tuple(limits.items()),
        registers=a_warp * warps,
        shared=a_block,
        configured=next(size for size in capability.shared if size >= blocks * a_block),
    )


def _whole(number: int, unit: int) -> int:
    """The least multiple of a unit that is no less."""
    return -(-number // unit) * unit


@dataclass(frozen=True)
class Tail(Printed):
    """How the blocks of a grid fill a device, if all take the same time.

    ``at_once`` blocks run together; ``waves`` of them make the grid, the last of ``last`` blocks.
    """

    blocks: int
    multiprocessors: int
    at_once: int

    @property
    def waves(self) -> int:
        """Waves, the last one counted as a whole."""
        return -(-self.blocks // self.at_once)

    @property
    def last(self) -> int:
        """Blocks of the last wave."""
        return self.blocks - self.at_once * (self.waves - 1) if self.blocks else 0

    @property
    def places_lost(self) -> float:
        """The share of places for blocks, in all waves, that stay empty.

        That is the share of the time which is lost if a block takes as long beside others as alone.
        """
        return 1 - self.blocks / (self.waves * self.at_once) if self.blocks else 0.0

    @property
    def time_lost(self) -> float:
        """The share of the multiprocessors' time in which they have nothing to do.

        That is if blocks on one multiprocessor share its time, and are spread evenly.
        """
        if not self.blocks:
            return 0.0
        rounds = -(-self.blocks // self.multiprocessors)
        return 1 - self.blocks / (rounds * self.multiprocessors)

    def __str__(self) -> str:
        if not self.blocks:
            return "no blocks"
        waves = f"all {self.blocks:,} of at most {counted(self.at_once, 'block')} at once"
        if self.waves > 1:
            waves = (
                f"{self.waves:,} waves of {counted(self.at_once, 'block')}, the last of "
                f"{self.last:,}"
            )
        return (
            f"{waves}:\n"
            f"  {self.places_lost:.1%} of the places for blocks stay empty, "
            f"{self.time_lost:.1%} of the multiprocessors' time"
        )
