"""The results of counting accesses: plain data, frozen and picklable."""

from __future__ import annotations

from loopkit._arrays import AddressSpace
from loopkit._costs.traffic import Reuse
from loopkit._costs.warps import SECTOR, WarpCosts
from loopkit._frozen import dataclass

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "shared"}


@dataclass(frozen=True)
class AccessCosts:
    """One access of a statement to global or shared memory, all threads together.

    ``requests`` are those of warps, ``threads`` single ones; a request touches ``sectors`` of 32
    bytes of global memory, or takes ``wavefronts`` of shared memory: ``pieces``, of which
    ``least_pieces`` would do if the elements of each request lay beside each other.
    ``bytes_used`` are those of different elements in each request.  ``reuse`` says how often cells
    of global memory are touched again, and by whom.  An atomic update (``is_atomic``) is one write:
    the memory reads the cell and changes it.  Where data decide, or there are too many
    cases, they are None, and ``why`` says so.  ``at_most`` says that they are counted as if
    conditions on data held.  ``needs`` are the arguments whose data decide: what these cost is
    known where ``costs`` is given them.
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
    at_most: bool = False
    is_atomic: bool = False
    needs: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """What is done to the element: ``"read"``, ``"write"`` or ``"update"``."""
        return "update" if self.is_atomic else "write" if self.is_write else "read"

    @property
    def collisions(self) -> int | None:
        """Atomic updates that must wait for another one of the same request to the same cell."""
        if self.counts is None or not self.is_atomic:
            return None
        return self.counts.threads - self.counts.elements

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
class Footprint:
    """The number of distinct bytes of an array that a launch accesses: the least traffic.

    ``at_most`` is set if these are the bytes with all data-dependent conditions true, so that it
    may be fewer.
    """

    array: str
    read: int | None
    written: int | None
    at_most: bool = False
