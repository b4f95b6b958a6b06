"""What ``knl.costs()`` returns: plain data, frozen and picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

from loopkit._arrays import AddressSpace
from loopkit._cached import cached_property
from loopkit._costs.barriers import BarrierCosts, barriers_of
from loopkit._costs.devices import Device
from loopkit._costs.on_device import OnDevice
from loopkit._costs.reuse import Reuse
from loopkit._costs.warps import SECTOR, WarpCosts
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "shared"}


@dataclass(frozen=True)
class AccessCosts:
    """One access of a statement to global or shared memory, all threads together.

    ``requests`` are those of warps, ``threads`` single ones; a request touches ``sectors`` of 32
    bytes of global memory, or takes ``wavefronts`` of shared memory: ``pieces``, of which
    ``least_pieces`` would do if the elements of each request lay beside each other.
    ``bytes_used`` are those of different elements in each request.  ``reuse`` says how often cells
    of global memory are touched again, and by whom.  Where data decide, or there are too many
    cases, they are None, and ``why`` says so.
    """

    statement: str
    text: str
    array: str
    space: str
    is_write: bool
    itemsize: int
    counts: WarpCosts | None
    why: str = ""
    reuse: Reuse | None = None

    @property
    def used(self) -> float | None:
        """The share of the bytes of global sectors that requests touch: 1 where none is wasted."""
        if self.counts is None or self.space != "global" or not self.counts.pieces:
            return None
        return (self.bytes_used or 0) / (self.counts.pieces * SECTOR)

    @property
    def per_request(self) -> float | None:
        """Sectors, or wavefronts, of a request, on average."""
        if self.counts is None or not self.counts.requests:
            return None
        return self.counts.pieces / self.counts.requests

    @property
    def conflicts(self) -> int | None:
        """Wavefronts of shared memory that bank conflicts cost."""
        if self.counts is None or self.space != "shared":
            return None
        return self.counts.pieces - self.counts.least_pieces

    @property
    def bytes_used(self) -> int | None:
        """Bytes of different elements, summed over requests."""
        return None if self.counts is None else self.counts.elements * self.itemsize


@dataclass(frozen=True)
class Padding:
    """What padding does to the bank conflicts of a shared array.

    All requests to it take ``wavefronts``, of which ``least`` would do without conflicts, and
    ``with_it`` are taken with the best padding: ``call`` is the transform that adds it.  Where no
    padding helps, ``call`` is empty, and ``why`` says so.
    """

    array: str
    wavefronts: int
    least: int
    with_it: int
    call: str
    why: str = ""

    @property
    def removes_all(self) -> bool:
        """Whether no conflict is left."""
        return self.with_it == self.least


@dataclass(frozen=True)
class Footprint:
    """The bytes of an array that a launch touches at all: so many must be moved."""

    array: str
    read: int | None
    written: int | None


@dataclass(frozen=True)
class Costs(OnDevice):
    """What a launch does.

    ``operations`` counts by kind and type, such as ``("add", "float32")``; ``instances`` says how
    often each statement runs.  All numbers are exact, but where ``at_most`` says for which
    statements data decide: they are counted as if conditions on data held.

    ``resources``, ``occupancy``, ``tail`` and ``roofline`` are of ``device``, and are found when
    they are first asked for: see :class:`OnDevice`.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    instances: tuple[tuple[str, int | None], ...]
    operations: tuple[tuple[tuple[str, str], int], ...]
    accesses: tuple[AccessCosts, ...]
    footprints: tuple[Footprint, ...]
    source: Kernel = field(compare=False, repr=False)
    at_most: tuple[str, ...] = ()
    asked: Device | None = None
    arch: str | None = None

    @property
    def blocks(self) -> int:
        """The blocks of the grid."""
        return prod(self.grid)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(self.block)

    @cached_property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads wait for each other, and how often: found when first asked for."""
        return barriers_of(self.source, dict(self.sizes), self.grid, self.block)

    @cached_property
    def paddings(self) -> tuple[Padding, ...]:
        """What would remove bank conflicts, for each shared array that has them.

        Tried, and counted anew, when first asked for.
        """
        from loopkit._costs.paddings import paddings_of

        return paddings_of(self)

    @cached_property
    def moved(self) -> Mapping[str, int | None]:
        """Bytes of the sectors that all requests to each array in global memory touch."""
        found: dict[str, int | None] = {}
        for access in self.accesses:
            if access.space == "global":
                before = found.get(access.array, 0)
                counts = access.counts
                known = before is not None and counts is not None
                found[access.array] = before + counts.pieces * SECTOR if known else None  # type: ignore[operator, union-attr]
        return found

    def __str__(self) -> str:
        from loopkit._costs.table import as_text

        return as_text(self)
