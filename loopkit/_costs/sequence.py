"""Costs of a kernel of several launches: those of each, all together, and what all must move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from loopkit._arrays import ArrayArg
from loopkit._budget import in_turn
from loopkit._cached import cached_property
from loopkit._costs.accesses import accesses_of
from loopkit._costs.barrier_counts import BarrierCosts
from loopkit._costs.calls import ONCE, Calls
from loopkit._costs.collectives import CombinationCosts
from loopkit._costs.costs import Costs, Counts, Operations, added
from loopkit._costs.counting import UNCOUNTED, Counting, Touch, bytes_of
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.devices import Device, chosen
from loopkit._costs.launched import Launched, launched
from loopkit._costs.layouts import Layouts
from loopkit._costs.sequence_roofline import SequenceRoofline
from loopkit._costs.shown import ShownCosts
from loopkit._costs.sizes import check_sizes
from loopkit._costs.traffic import from_before
from loopkit._costs.values import AccessCosts, Footprint
from loopkit._errors import counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._poly.model import model_of

if TYPE_CHECKING:
    from loopkit._costs.text_table import Table
    from loopkit._run.resources import Resources


@dataclass(frozen=True)
class LaunchCosts(Costs):
    """What one launch of several does, in all ``times`` that the call runs it.

    ``loops`` are the inames of the loops around it; ``grid`` has the longest axes that it has in
    any of them.  Its footprints are those of each time, added up.  ``source`` is the launch as a
    kernel, which knows those inames as sizes.
    """

    number: int = 0
    times: int = 1
    total_blocks: int = 0
    around: Calls = field(default=ONCE, compare=False, repr=False)

    @property
    def calls(self) -> Calls:
        """In which iterations of the loops around it the launch is called."""
        return self.around

    @property
    def loops(self) -> tuple[str, ...]:
        """The inames of the loops around it."""
        return self.calls.loops

    @property
    def launched(self) -> str:
        """What is launched, in words."""
        if not self.loops:
            return super().launched
        times = counted(self.times, "time")
        return f"{times}, in a loop over {', '.join(self.loops)}: {super().launched} in all"

    @property
    def blocks(self) -> int:
        """The blocks of all its grids."""
        return self.total_blocks


@dataclass(frozen=True)
class SequenceCosts(ShownCosts):
    """What a call of several launches does: ``launches``, in the order of the text, and in all.

    What :class:`~loopkit._costs.costs.Costs` says of a launch this says of all together, each
    counted as often as it runs.  But ``footprints`` are those of the whole call: a cell counts once
    that several launches touch.  ``from_before`` are bytes of arguments whose values from before
    the call are read; None where that is not known.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    launches: tuple[LaunchCosts, ...]
    footprints: tuple[Footprint, ...]
    from_before: tuple[tuple[str, int | None], ...]
    source: Kernel = field(compare=False, repr=False)
    asked: Device | None = None
    arch: str | None = None

    @property
    def times(self) -> int:
        """How many launches a call runs."""
        return sum(one.times for one in self.launches)

    @property
    def blocks(self) -> int:
        """The blocks of all grids."""
        return sum(one.blocks for one in self.launches)

    @property
    def grids(self) -> str:
        """What is launched, in short."""
        return f"{self.blocks:,} in {counted(self.times, 'launch', 'launches')}"

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block has at most."""
        return max((one.shared_bytes for one in self.launches), default=0)

    @property
    def instances(self) -> tuple[tuple[str, int | None], ...]:
        """How often each statement runs."""
        return tuple(pair for one in self.launches for pair in one.instances)

    @property
    def operations(self) -> Operations:
        """How often all launches do what operations; None where that is not known."""
        return added(pair for one in self.launches for pair in one.operations)

    @property
    def accesses(self) -> tuple[AccessCosts, ...]:
        """The accesses of all launches."""
        return tuple(access for one in self.launches for access in one.accesses)

    @property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads of a block wait for each other, in all launches."""
        return tuple(barrier for one in self.launches for barrier in one.barriers)

    @property
    def combinations(self) -> tuple[CombinationCosts, ...]:
        """What threads do to combine partial results of reductions, in all launches."""
        return tuple(combination for one in self.launches for combination in one.combinations)

    @property
    def layouts(self) -> tuple[Layouts, ...]:
        """What would remove bank conflicts, in all launches."""
        return tuple(layout for one in self.launches for layout in one.layouts)

    @property
    def needs(self) -> tuple[str, ...]:
        """The arguments whose data decide what is not known."""
        return tuple(sorted({name for one in self.launches for name in one.needs}))

    @property
    def at_most(self) -> tuple[str, ...]:
        """Statements that data decide, in all launches."""
        return tuple(name for one in self.launches for name in one.at_most)

    @property
    def moved(self) -> Mapping[str, int | None]:
        """Bytes of the sectors that all requests to each array in global memory touch."""
        return _added(one.moved.items() for one in self.launches)

    @property
    def by_launch(self) -> tuple[Footprint, ...]:
        """Bytes that launches touch of each array, each launch counted on its own."""
        all_of = [f for one in self.launches for f in one.footprints]
        read = _added([(f.array, f.read)] for f in all_of)
        written = _added([(f.array, f.written)] for f in all_of)
        at_most = {f.array for f in all_of if f.at_most}
        return tuple(Footprint(a, read[a], written[a], a in at_most) for a in read)

    @property
    def handed_over(self) -> tuple[str, ...]:
        """Temporaries by which launches hand values to each other: no argument of the call."""
        return tuple(f.array for f in self.footprints if f.array not in self.source.arg_by_name)

    @property
    def must_move(self) -> int | None:
        """Bytes that memory must deliver or take for the whole call, each cell once.

        Those of arguments: what launches only hand to each other may stay in a cache.
        """
        before = dict(self.from_before)
        found = [
            n for f in self.footprints if f.array in before for n in (before[f.array], f.written)
        ]
        return None if None in found else sum(n for n in found if n is not None)

    def on(self, device: Device | None) -> SequenceCosts:
        """The same with a device asked for."""
        launches = tuple(replace(one, asked=device) for one in self.launches)
        return replace(self, launches=launches, asked=device)

    @property
    def resources(self) -> tuple[Resources, ...]:
        """Registers, spills and shared memory of each launch."""
        return tuple(one.resources for one in self.launches)

    @cached_property
    def roofline(self) -> SequenceRoofline:
        """The time that all launches take at least, one after the other."""
        each = tuple((one.kernel, one.roofline) for one in self.launches)
        return SequenceRoofline(self.device, each, self.must_move)

    def parts(self) -> Iterator[Table | str]:
        """The tables, and the remarks between them."""
        from loopkit._costs.sequence_table import sequence_parts

        return sequence_parts(self)


def _added(several: Iterable[Iterable[tuple[str, int | None]]]) -> dict[str, int | None]:
    """Numbers by name, added; None where one of them is."""
    total: dict[str, int | None] = {}
    for some in several:
        for name, number in some:
            before = total.get(name, 0)
            total[name] = None if before is None or number is None else before + number
    return total


@in_turn
def sequence_costs(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
    data: Data = NO_DATA,
) -> SequenceCosts:
    """What a call of several launches with these sizes does.

    Arguments and errors are those of :func:`~loopkit._costs.costs.costs`.
    """
    sizes = check_sizes(kernel, sizes, "costs")
    return costs_of_call(kernel, sizes, call_at(kernel, sizes, data), device, arch)


@dataclass(frozen=True, eq=False)
class CountedLaunch:
    """One launch of several: how often it runs, with how many blocks, and what else it does."""

    launch: Launched
    times: int
    blocks: int
    counts: Counts


def call_at(
    kernel: Kernel, sizes: Mapping[str, int], data: Data = NO_DATA
) -> tuple[CountedLaunch, ...]:
    """What all launches do with these sizes, each number counted when it is first asked for."""
    kernel.launch_config(**sizes)  # says what no device can launch
    data = replace(data, written=frozenset(kernel.writers))
    found = []
    for one in launched(kernel):
        made = one.kernel.program()
        times, blocks, grid = one.calls.counted(made.grid, sizes)
        counter = Counting(one.model, sizes, made.block, one.calls, data)
        found.append(CountedLaunch(one, times, blocks, Counts(counter, grid)))
    return tuple(found)


def costs_of_call(
    kernel: Kernel,
    sizes: Mapping[str, int],
    call: Sequence[CountedLaunch],
    device: Device | str | None = None,
    arch: str | None = None,
) -> SequenceCosts:
    """All that was counted of a call."""
    asked = None if device is None else chosen(device)
    launches = []
    for one_call in call:
        one, counts = one_call.launch, one_call.counts
        made = one.kernel.program()
        launches.append(
            LaunchCosts(
                kernel=one.kernel.name,
                sizes=tuple(sorted(sizes.items())),
                grid=counts.grid,
                block=made.block,
                shared_bytes=made.static_shared + made.dynamic_shared,
                source=one.kernel,
                asked=asked,
                arch=arch,
                number=one.number,
                times=one_call.times,
                total_blocks=one_call.blocks,
                around=one.calls,
                **counts.fields(),
            )
        )
    footprints = footprints_of_call(call)
    return SequenceCosts(
        kernel=kernel.name,
        sizes=tuple(sorted(sizes.items())),
        launches=tuple(launches),
        footprints=footprints,
        from_before=tuple(bytes_from_before(kernel, footprints, sizes)),
        source=kernel,
        asked=asked,
        arch=arch,
    )


def footprints_of_call(call: Iterable[CountedLaunch]) -> tuple[Footprint, ...]:
    """The bytes of each array in global memory that any of the launches touches."""
    return tuple(_together(one.counts.counter for one in call))


def _together(counters: Iterable[Counting]) -> Iterator[Footprint]:
    """The bytes of each array in global memory that any of the launches touches."""
    found: dict[str, tuple[list[Touch], list[Touch]]] = {}
    for counter in counters:
        for access in accesses_of(counter.model.kernel):
            if counter.space(access) == "global":
                both = found.setdefault(access.array, ([], []))
                touch = counter, access
                both[access.is_write].append(touch)
                if access.is_atomic:
                    both[False].append(touch)
    for name, both in found.items():
        (read, once), (written, too) = (bytes_of(touches, apart=False) for touches in both)
        yield Footprint(name, read, written, once or too)


def bytes_from_before(
    kernel: Kernel, footprints: Iterable[Footprint], sizes: Mapping[str, int]
) -> Iterator[tuple[str, int | None]]:
    """Bytes of each argument whose values from before the call are read."""
    from loopkit.codegen.launches import with_spaces

    for footprint in footprints:
        name, read = footprint.array, footprint.read
        if not isinstance(kernel.arg_by_name.get(name), ArrayArg):
            continue
        if read and footprint.written:
            try:
                read = from_before(model_of(with_spaces(kernel)), name, sizes)
            except NotAffineError:
                pass  # data decide what is read: as if nothing was written
            except UNCOUNTED:
                read = None
        yield name, read
