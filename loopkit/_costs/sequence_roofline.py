"""The roofline of several launches: each takes at least its own time, and one follows the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopkit._costs.devices import Device
from loopkit._costs.quantities import bytes_text, seconds_text
from loopkit._costs.roofline import Roofline, Term, checked_time
from loopkit._frozen import dataclass
from loopkit._printed import Printed


@dataclass(frozen=True)
class SequenceRoofline(Printed):
    """The times that launches take at least, by name; each of all the times that it runs.

    A launch is taken to find its data in memory.  ``must_move`` are the bytes that memory must
    deliver or take for the whole call, None where that is not known: a call whose launches find
    in L2 what others left there may take less than the launches alone, and not less than that.
    ``measured`` is a time in seconds to show beside the bound.
    """

    device: Device
    launches: tuple[tuple[str, Roofline], ...]
    must_move: int | None
    measured: float | None = None

    @property
    def seconds(self) -> float:
        """The times of all launches together."""
        return sum(one.seconds for _, one in self.launches)

    @property
    def longest(self) -> tuple[str, Roofline] | None:
        """The launch that takes longest, of those that run at all."""
        return max(self.launches, key=lambda pair: pair[1].seconds, default=None)

    @property
    def bound(self) -> Term:
        """What bounds the launch that takes longest."""
        return self.longest[1].bound if self.longest else Term("memory", 0, "bytes", 1.0)

    @property
    def set_by(self) -> str:
        """What sets the bound, in words."""
        if self.longest is None:
            return "nothing"
        name, one = self.longest
        part = one.seconds / self.seconds if self.seconds else 1.0
        return f"{one.bound.name} of {name} for {part:.0%} of it"

    @property
    def moved(self) -> int:
        """Bytes that launches move, each on its own."""
        return sum(one.moved for _, one in self.launches)

    @property
    def operations(self) -> int:
        """Arithmetic operations of all types."""
        return sum(one.operations for _, one in self.launches)

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: operations a byte that launches move; None where none must."""
        return self.operations / self.moved if self.moved else None

    @property
    def terms(self) -> tuple[Term, ...]:
        """The time of each launch, as what sets it."""
        return tuple(
            replace(one.bound, name=f"{name}: {one.bound.name}") for name, one in self.launches
        )

    @property
    def at_most(self) -> tuple[str, ...]:
        """Statements that data decide: their work is counted as if conditions held."""
        return tuple(name for _, one in self.launches for name in one.at_most)

    @property
    def fits_l2(self) -> bool:
        """Whether all that launches move fits L2: each may find there what one before left."""
        return self.moved <= self.device.l2

    @property
    def at_least(self) -> float | None:
        """Seconds that the call takes even if launches find in a cache what others left there."""
        if self.must_move is None:
            return None
        others = (
            max((t.seconds for t in one.terms if t.is_floor and t.name != "memory"), default=0.0)
            for _, one in self.launches
        )
        return max(self.must_move / self.device.bandwidth, sum(others))

    @property
    def share(self) -> float | None:
        """The bound's time of the time measured: 1 is as fast as can be."""
        return None if self.measured is None else self.seconds / self.measured

    def beside(self, seconds: float) -> SequenceRoofline:
        """The same with a time measured for the call."""
        return replace(self, measured=checked_time(seconds))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield f"roofline of {self.device}, launch by launch"
        width = max((len(name) for name, _ in self.launches), default=0) + 2
        whole = self.seconds or 1.0
        for name, one in self.launches:
            share = f"{one.seconds / whole:>6.1%}"
            yield f"  {name:<{width}}  {seconds_text(one.seconds):>10}  {share}  {one.bound.name}"
        held = " if all conditions on data hold" if self.at_most else ""
        said = f"at least {seconds_text(self.seconds)}{held}, set by {self.set_by}"
        yield said + ("" if self.intensity is None else f"; {self.intensity:.3g} operations a byte")
        if self.at_most:
            yield f"as if conditions on data held: {', '.join(self.at_most)}"
        if self.at_least is not None and self.must_move is not None and self.must_move < self.moved:
            yield (
                f"launches move {bytes_text(self.moved)}, the whole call must move "
                f"{bytes_text(self.must_move)}: at least {seconds_text(self.at_least)} where "
                "launches find in L2 what others left"
            )
        if self.measured is not None:
            yield f"measured {seconds_text(self.measured)}: {self.share:.1%} of the roofline"
