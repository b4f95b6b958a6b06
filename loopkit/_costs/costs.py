"""``knl.costs(n=4096)``: what a launch does, counted exactly from the kernel's sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from loopkit._budget import in_turn
from loopkit._cached import cached_property, memoised, once
from loopkit._costs.accesses import Access, accesses_of
from loopkit._costs.barrier_counts import BarrierCosts, barriers_of
from loopkit._costs.by_data import ByData
from loopkit._costs.calls import ONCE, Calls
from loopkit._costs.collectives import CombinationCosts, combinations_of
from loopkit._costs.counting import UNCOUNTED, Counting
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.devices import Device, chosen
from loopkit._costs.layouts import Layouts, layouts_of
from loopkit._costs.on_device import OnDevice
from loopkit._costs.operation_counts import Operation, operations_of
from loopkit._costs.sizes import check_sizes
from loopkit._costs.values import SPACES, AccessCosts, Footprint
from loopkit._costs.warps import SECTOR
from loopkit._errors import counted
from loopkit._frozen import dataclass
from loopkit._guarded import Guards
from loopkit._kernel import Kernel
from loopkit._poly.integer_points import count
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._program import Program
from loopkit._types import known_types

if TYPE_CHECKING:
    from loopkit._costs.text_table import Table

__all__ = ["AccessCosts", "Costs", "Footprint", "costs"]


Operations = tuple[tuple[tuple[str, str], int | None], ...]
"""How often what is done, by kind and type."""


@dataclass(frozen=True)
class Costs(OnDevice):
    """What a launch does.

    ``operations`` counts by kind and type, such as ``("add", "float32")``; ``instances`` says how
    often each statement runs.  All numbers are exact, but where ``at_most`` says for which
    statements data decide: they, or some of their accesses, are counted as if conditions on data
    held.  ``needs`` are the arguments whose data decide that, and what is None: with them, all is
    exact.

    ``resources``, ``occupancy``, ``tail`` and ``roofline`` are of ``device``, and are found when
    they are first asked for: see :class:`OnDevice`.
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

    @property
    def calls(self) -> Calls:
        """How often the launch is called."""
        return ONCE

    @property
    def blocks(self) -> int:
        """The blocks of the grid."""
        return prod(self.grid)

    @property
    def launched(self) -> str:
        """What is launched, in words."""
        return f"{counted(self.blocks, 'block')} of {counted(self.threads, 'thread')}"

    @property
    def grids(self) -> str:
        """What is launched, in short."""
        return f"{self.blocks:,} x {self.threads:,}"

    def on(self, device: Device | None) -> Costs:
        """The same with a device asked for."""
        return replace(self, asked=device)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(self.block)

    @cached_property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads wait for each other, and how often: found when first asked for."""
        return barriers_of(self.source, dict(self.sizes), self.grid, self.block, self.calls)

    @cached_property
    def combinations(self) -> tuple[CombinationCosts, ...]:
        """What threads do to combine partial results of reductions: found when first asked for."""
        return combinations_of(self.source, dict(self.sizes), self.grid, self.block, self.calls)

    @cached_property
    def layouts(self) -> tuple[Layouts, ...]:
        """What would remove bank conflicts, for each shared array that has them.

        Tried, and counted anew, when first asked for.
        """
        return layouts_of(self)

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

    def parts(self) -> Iterator[Table | str]:
        """The tables, and the remarks between them."""
        from loopkit._costs.table import parts

        return parts(self)


@in_turn
def costs(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
    data: Data = NO_DATA,
) -> Costs:
    """What a launch with these sizes does: operations, bytes, sectors and bank conflicts, exactly.

    Counted from the kernel's sets, without a GPU and without enumerating instances: a product
    of 4096 takes no longer than one of 64.  Operations are those of the text: arithmetic of
    subscripts, bounds and guards, which code generation adds or saves, is not among them.

    *sizes* are the kernel's integer parameters, each a number; *data* are arguments that decide
    which cells are touched, and when: what they decide is counted with them.  *device* is what
    ``resources``, ``occupancy``, ``tail`` and ``roofline`` are of (a name, such as ``"H100"``, or
    a :class:`Device`; the GPU here or else an H100 if it is left out), *arch* what its code is
    compiled for.

    Returns a :class:`Costs`, which prints as tables.  Raises
    :class:`~loopkit.InvalidArgumentError` for sizes that are missing or that no call may have,
    :class:`~loopkit.UnknownNameError` for others and for devices, and what lowering raises.
    """
    sizes = check_sizes(kernel, sizes, "costs")
    return costs_of_counts(kernel, sizes, counts_at(kernel, sizes, data), device, arch)


def counts_at(kernel: Kernel, sizes: Mapping[str, int], data: Data = NO_DATA) -> Counts:
    """What a launch with these sizes does, each number counted when it is first asked for."""
    from loopkit.codegen.prepare import prepare

    launch = kernel.launch_config(**sizes)
    assert not isinstance(launch, tuple)
    counter = Counting(model_of(prepare(kernel)), sizes, launch.block, data=data)
    return Counts(counter, launch.grid)


def costs_of_counts(
    kernel: Kernel,
    sizes: Mapping[str, int],
    found: Counts,
    device: Device | str | None = None,
    arch: str | None = None,
) -> Costs:
    """All that was counted of a launch."""
    made: Program = kernel.program()
    return Costs(
        kernel=kernel.name,
        sizes=tuple(sorted(sizes.items())),
        grid=found.grid,
        block=found.counter.block,
        shared_bytes=made.static_shared + made.dynamic_shared,
        source=kernel,
        asked=None if device is None else chosen(device),
        arch=arch,
        **found.fields(),
    )


class Counts:
    """What a launch does: some fields of :class:`Costs`, each found when it is first asked for."""

    def __init__(self, counter: Counting, grid: tuple[int, int, int]) -> None:
        self.counter = counter
        self.grid = grid
        self.known: dict[int, AccessCosts] = {}

    @cached_property
    def _statements(self) -> Mapping[str, tuple[int | None, bool]]:
        """How often each statement runs, and whether that is exact."""
        c = self.counter
        return {
            s.id: instances_at(c.model, s.id, c.sizes, (), c.calls, c.by_data)
            for s in c.model.kernel.statements
        }

    @cached_property
    def instances(self) -> tuple[tuple[str, int | None], ...]:
        """How often each statement runs."""
        return tuple((name, counted) for name, (counted, _) in self._statements.items())

    @cached_property
    def operations(self) -> Operations:
        """How often what is done."""
        c = self.counter
        return operations_at(c.model, dict(self.instances), c.sizes, c.calls, c.by_data)

    @cached_property
    def listed(self) -> tuple[Access, ...]:
        """The accesses that cost something."""
        every = accesses_of(self.counter.model.kernel)
        return tuple(a for a in every if self.counter.space(a) in SPACES.values())

    def requests(self, number: int) -> AccessCosts:
        """What one of them costs, without who touches its cells again."""
        return once(self.known, number, self.counter.without_reuse, self.listed[number])

    @memoised
    def access(self, number: int) -> AccessCosts:
        """What one of them costs."""
        return self.counter.with_reuse(self.listed[number], self.requests(number))

    @cached_property
    def footprints(self) -> tuple[Footprint, ...]:
        """The bytes that are touched of each array in global memory."""
        return tuple(self.counter.footprints(self.listed))

    def fields(self) -> dict[str, Any]:
        """All of it."""
        found = tuple(map(self.access, range(len(self.listed))))
        as_if = {a.statement for a in found if a.at_most}
        return {
            "instances": self.instances,
            "operations": self.operations,
            "accesses": found,
            "footprints": self.footprints,
            "at_most": tuple(
                name
                for name, (counted, exact) in self._statements.items()
                if name in as_if or not (exact or counted is None)
            ),
            "needs": tuple(
                sorted({*missing_of(self.counter.by_data), *(n for a in found for n in a.needs)})
            ),
        }


def missing_of(by_data: ByData) -> Iterator[str]:
    """The arguments that are not at hand, and decide how often statements and operations run."""
    model = by_data.model
    every = [(s.id, ()) for s in model.kernel.statements]
    for name, guards in (*every, *((s, o.guards) for s, o in _operations(model))):
        wanted = by_data.wanted(name, (*model.statement[name].predicates, *guards))
        yield from (wanted or frozenset()) - by_data.data.names


def instances_at(
    model: Model,
    statement: str,
    sizes: Mapping[str, int],
    guards: Guards = (),
    calls: Calls = ONCE,
    by_data: ByData | None = None,
) -> tuple[int | None, bool]:
    """How many threads run a statement, each time counted; and whether that is exact.

    Only those times count at which ``guards`` hold; where data decide that are not at hand, they
    count as true, and it is not known how often a loop runs.
    """
    at = Instance(statement, "")
    bounds, everywhere = model.everywhere(at)
    inames = model.statement[statement].inames
    names = (*calls.loops, *inames, *(v.name for v in everywhere.values()))
    conditions = (*model.statement[statement].predicates, *guards)
    exact = all(model.condition(c) is not None for c in conditions)
    domain = calls.among(model.domain(at) & model.where_evaluated(guards, "") & bounds)
    try:
        if by_data and by_data.knows(by_data.wanted(statement, conditions)):
            return by_data.instances(statement, conditions, domain), True
        if model.bounds_from_data(statement):
            return None, False
        return count(domain, names, sizes), exact
    except UNCOUNTED:
        return None, False


def operations_at(
    model: Model,
    instances: Mapping[str, int | None],
    sizes: Mapping[str, int],
    calls: Calls = ONCE,
    by_data: ByData | None = None,
) -> Operations:
    """How often a launch does what operations; None where that is not known.

    Those of the statements of which ``instances`` says how often they run.
    """
    found: list[tuple[tuple[str, str], int | None]] = []
    for statement, operation in _operations(model):
        if statement not in instances:
            continue
        times = instances[statement]
        if operation.guards:
            times = instances_at(model, statement, sizes, operation.guards, calls, by_data)[0]
        kind = operation.kind, operation.dtype
        found.append((kind, None if times is None else operation.times * times))
    return added(found)


def added(counts: Iterable[tuple[tuple[str, str], int | None]]) -> Operations:
    """Operations of one kind and type as one count; None where one of them is not known."""
    total: dict[tuple[str, str], int | None] = {}
    for kind, times in counts:
        before = total.get(kind, 0)
        total[kind] = None if before is None or times is None else before + times
    return tuple(sorted(total.items()))


def in_all(operations: Operations) -> int | None:
    """How many operations there are of all kinds and types; None where that is not known."""
    found = [n for _, n in operations if n is not None]
    return sum(found) if len(found) == len(operations) else None


def kinds_of_operations(model: Model, ids: Collection[str]) -> list[tuple[str, str]]:
    """The kinds and types of operations that there are in some statements of a kernel."""
    return sorted({(o.kind, o.dtype) for id_, o in _operations(model) if id_ in ids})


def _operations(model: Model) -> Iterator[tuple[str, Operation]]:
    types = known_types(model.kernel)
    for statement in model.kernel.statements:
        by_data = [p for p in statement.predicates if model.condition(p) is None]
        for operation in operations_of(statement, by_data, types.__getitem__):
            yield statement.id, operation
