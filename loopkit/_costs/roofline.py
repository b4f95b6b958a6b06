"""The roofline: how long a launch takes at least on a device, and what sets that.

After Williams, Waterman and Patterson, Roofline: an insightful visual performance model, 2009:
whatever a launch must do of one kind, divided by how fast the device does that, is a time below
which no run of it is.  The largest of these times is the bound.

======================  ==========================================================================
term                    amount / rate
======================  ==========================================================================
memory                  bytes of inputs that are read and of what is written, each once
                        / bandwidth of the device's memory
float32, int32, ...     instructions of a type, a multiplication with an addition being one
                        / results a clock x multiprocessors x clock
special                 divisions, square roots, exponentials: one reciprocal or its like each
issue                   all these instructions together / 4 x 32 threads' a clock
shared memory           bytes that warps read between writes, and write, each once
                        / 128 bytes a clock and multiprocessor
L2 *                    bytes of the sectors that are asked for / what L2 delivers, where known
L1 *                    the same / 128 bytes a clock and multiprocessor
wavefronts *            passes over shared memory's banks / one a clock and multiprocessor
======================  ==========================================================================

Of multiprocessors those count that a block of the launch can be on. Instructions are those of the
text: where it spells a value twice and the compiler computes it once, there are fewer.

Terms with a star say what the text asks for: what the compiler keeps in registers, or loads several
at once, needs less, and what L1 holds does not come from L2. They are told, and set no bound.

The memory term is that of data which are in no cache before: where all of them fit L2, a launch
right after another one may be faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Self

from loopkit._costs.devices import Device
from loopkit._costs.occupancy import SCHEDULERS
from loopkit._costs.texts import bytes_text, number_text, rate_text, seconds_text
from loopkit._costs.warps import SECTOR
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._printed import Printed
from loopkit._spelling import shown
from loopkit._target import CUDA

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs


@dataclass(frozen=True)
class Term:
    """One kind of work: ``amount`` in ``unit``, done at ``rate`` a second.

    ``is_floor`` says that no run does less; else it is what the text asks for.
    """

    name: str
    amount: float
    unit: str
    rate: float
    is_floor: bool = True

    @property
    def seconds(self) -> float:
        """The time that it takes."""
        return self.amount / self.rate

    @property
    def label(self) -> str:
        """Its name, with a star where runs may do less."""
        return self.name if self.is_floor else f"{self.name} *"

    @property
    def amount_text(self) -> str:
        """The amount, with its unit."""
        if self.unit == "bytes":
            return bytes_text(self.amount)
        return f"{number_text(self.amount)} {self.unit}"

    @property
    def work(self) -> str:
        """The amount, and the rate at which it is done."""
        return f"{self.amount_text} at {rate_text(self.rate, self.unit)}"


@dataclass(frozen=True)
class Roofline(Printed):
    """The times that a launch takes at least, by what it does.

    ``moved`` are the bytes that memory must deliver or take, ``operations`` the arithmetic
    operations of all types.  ``measured`` is a time in seconds to show beside the bound.
    ``at_most`` names statements that data decide: their work is counted as if conditions held.
    """

    device: Device
    terms: tuple[Term, ...]
    moved: int
    operations: int
    measured: float | None = None
    at_most: tuple[str, ...] = ()

    @property
    def bound(self) -> Term:
        """The term that takes longest, of those which no run is below."""
        return max((t for t in self.terms if t.is_floor), key=lambda t: t.seconds)

    @property
    def ordered(self) -> list[Term]:
        """The terms that take longest first, those that no run is below before others."""
        return sorted(self.terms, key=lambda term: (not term.is_floor, -term.seconds))

    @property
    def remarks(self) -> list[str]:
        """What a star at a term means, where there is one."""
        has_star = not all(term.is_floor for term in self.terms)
        return ["* as the text asks: what stays in registers or in L1 needs less"] * has_star

    @property
    def set_by(self) -> str:
        """What sets the bound, in words."""
        return self.bound.name

    @property
    def seconds(self) -> float:
        """The time of the bound."""
        return self.bound.seconds

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: operations a byte that must be moved; None where none must."""
        return self.operations / self.moved if self.moved else None

    @property
    def fits_l2(self) -> bool:
        """Whether all data fit L2: a launch may find there what the one before left."""
        return self.moved <= self.device.l2

    @property
    def share(self) -> float | None:
        """The bound's time of the time measured: 1 is as fast as can be."""
        return None if self.measured is None else self.seconds / self.measured

    def beside(self, seconds: float) -> Self:
        """The same with a time measured for the launch."""
        if not isinstance(seconds, int | float) or not seconds > 0:
            raise InvalidArgumentError(
                f"a time is a number of seconds above 0, not {shown(seconds)}"
            )
        return replace(self, measured=float(seconds))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        width = max(len(t.name) for t in self.terms) + 2
        yield f"roofline of {self.device}"
        for term in self.ordered:
            yield f"  {term.label:<{width}}  {seconds_text(term.seconds):>10}  {term.work}"
        yield from (f"  {remark}" for remark in self.remarks)
        yield from self._bound_lines()
        if self.fits_l2 and self.bound.name == "memory":
            yield "all data fit L2: launches that find them there may be faster"
        yield from self._measured_lines()

    def _bound_lines(self) -> Iterator[str]:
        held = " if all conditions on data hold" if self.at_most else ""
        said = f"at least {seconds_text(self.seconds)}{held}, set by {self.set_by}"
        yield said + ("" if self.intensity is None else f"; {self.intensity:.3g} operations a byte")
        if self.at_most:
            yield f"as if conditions on data held: {', '.join(self.at_most)}"

    def _measured_lines(self) -> Iterator[str]:
        if self.measured is not None:
            yield f"measured {seconds_text(self.measured)}: {self.share:.1%} of the roofline"


@dataclass(frozen=True)
class SequenceRoofline(Roofline):
    """The times that ``launches`` take at least, by name; each of all the times that it runs.

    Launches follow each other: each takes at least its own time, is a term, and is taken to find
    its data in memory.  ``must_move`` are the bytes that memory must deliver or take for the whole
    call, None where that is not known: a call whose launches find in L2 what others left there may
    take less than the launches alone, and not less than that.
    """

    launches: tuple[tuple[str, Roofline], ...] = ()
    must_move: int | None = None

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
    def at_least(self) -> float | None:
        """Seconds that the call takes even if launches find in a cache what others left there."""
        if self.must_move is None:
            return None
        others = (
            max((t.seconds for t in one.terms if t.is_floor and t.name != "memory"), default=0.0)
            for _, one in self.launches
        )
        return max(self.must_move / self.device.bandwidth, sum(others))

    def _lines(self) -> Iterator[str]:
        yield f"roofline of {self.device}, launch by launch"
        width = max((len(name) for name, _ in self.launches), default=0) + 2
        whole = self.seconds or 1.0
        for name, one in self.launches:
            share = f"{one.seconds / whole:>6.1%}"
            yield f"  {name:<{width}}  {seconds_text(one.seconds):>10}  {share}  {one.bound.name}"
        yield from self._bound_lines()
        if self.at_least is not None and self.must_move is not None and self.must_move < self.moved:
            yield (
                f"launches move {bytes_text(self.moved)}, the whole call must move "
                f"{bytes_text(self.must_move)}: at least {seconds_text(self.at_least)} where "
                "launches find in L2 what others left"
            )
        yield from self._measured_lines()


def sequence_roofline(
    device: Device, launches: tuple[tuple[str, Roofline], ...], must_move: int | None
) -> SequenceRoofline:
    """The roofline of launches that follow each other, from their own."""
    return SequenceRoofline(
        device,
        tuple(replace(one.bound, name=f"{name}: {one.bound.name}") for name, one in launches),
        sum(one.moved for _, one in launches),
        sum(one.operations for _, one in launches),
        at_most=tuple(name for _, one in launches for name in one.at_most),
        launches=launches,
        must_move=must_move,
    )


def roofline_of(costs: Costs, device: Device) -> Roofline:
    """The terms of a launch on a device.

    Raises :class:`InvalidArgumentError` where counts are not numbers: sizes were left open, or
    data decide what a launch touches.
    """
    from loopkit._costs.traffic import bytes_to_move, wavefronts_at_least

    moved = bytes_to_move(costs)
    terms = [Term("memory", moved, "bytes", device.bandwidth)]
    instructions, operations = _instructions(costs.operations)
    cycles = min(prod(costs.grid), device.multiprocessors) * device.clock or device.cycles
    rates = dict(device.capability.rates)
    terms += [
        Term(kind, n, "instructions", rates[kind] * cycles)
        for kind, n in sorted(instructions.items())
        if n
    ]
    if total := sum(instructions.values()):
        terms.append(Term("issue", total, "instructions", SCHEDULERS * CUDA.warp * cycles))
    if wavefronts := wavefronts_at_least(costs):
        terms.append(Term("shared memory", wavefronts, "wavefronts", cycles))
    terms += _asked(costs, device, cycles)
    return Roofline(device, tuple(terms), moved, operations, at_most=costs.at_most)


def _asked(costs: Costs, device: Device, cycles: float) -> Iterator[Term]:
    """What the text asks of caches and of shared memory; nothing where that is not known."""
    pieces = {"global": 0, "shared": 0}
    for access in costs.accesses:
        if access.counts is None:
            del pieces[access.space]
            break
        pieces[access.space] += access.counts.pieces
    clock = device.capability.shared_clock
    if sectors := pieces.get("global"):
        asked = sectors * SECTOR
        yield Term("L1", asked, "bytes", clock * cycles, False)
        if device.l2_clock is not None:
            yield Term("L2", asked, "bytes", device.l2_clock * device.clock, False)
    if wavefronts := pieces.get("shared"):
        yield Term("wavefronts", wavefronts, "wavefronts", cycles, False)


_TYPES = {
    "float16": ("float16", 1),
    "bfloat16": ("bfloat16", 1),
    "float32": ("float32", 1),
    "float64": ("float64", 1),
    "complex64": ("float32", 2),
    "complex128": ("float64", 2),
    "int64": ("int32", 2),
    "uint64": ("int32", 2),
}
"""Of a type: what does its arithmetic, and how many instructions that are for each at least."""

_SPECIAL = {"div", "sqrt", "rsqrt", "exp", "exp2", "expm1", "tanh", "sigmoid"}
"""Kinds that are at least one instruction of the special function units, in float32."""

_ON_INTEGERS = {"compare", "select", "min", "max", "bitwise", "logical", "shift", "cast"}
"""Kinds that no unit for floating-point numbers is needed for."""


def _instructions(
    operations: Iterable[tuple[tuple[str, str], int | None]],
) -> tuple[Counter[str], int]:
    """The least instructions by what executes them; and the operations there are."""
    sums: Counter[str] = Counter()
    products: Counter[str] = Counter()
    found: Counter[str] = Counter()
    total = 0
    for (kind, dtype), times in operations:
        if times is None:
            raise InvalidArgumentError(f"how often a launch does {kind} of {dtype} is not known")
        total += times
        unit, each = _TYPES.get(dtype, ("int32", 1))
        if kind == "add":
            sums[dtype] += times * each
        elif kind == "mul" and dtype.startswith("complex"):
            sums[dtype] += times * 2
            products[dtype] += times * 4
        elif kind == "mul":
            products[dtype] += times * each
        elif kind in _SPECIAL and unit == "float32":
            found["special"] += times
        elif kind in _ON_INTEGERS:
            found["int32"] += times
        else:
            found[unit] += times * each
    for dtype in sums | products:
        unit, _ = _TYPES.get(dtype, ("int32", 1))
        found[unit] += max(sums[dtype], products[dtype])
    return found, total
