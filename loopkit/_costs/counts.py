"""Counts of the launches of a call at given sizes, each computed on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from loopkit._arrays import ArrayArg
from loopkit._cached import cached_property, memoised, once
from loopkit._costs.accesses import Access, accesses_of
from loopkit._costs.barrier_counts import BarrierCosts, barriers_of
from loopkit._costs.by_data import ByData
from loopkit._costs.cost_values import SPACES, AccessCosts, Footprint
from loopkit._costs.counting import UNCOUNTED, Counting, footprints_of
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.launch_counts import ONCE, Calls, Launched, launched
from loopkit._costs.operation_counts import Operation, operations_of
from loopkit._costs.traffic import from_before
from loopkit._guarded import Guards
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._linear import NotAffineError
from loopkit._poly.integer_points import count
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._types import known_types

Operations = tuple[tuple[tuple[str, str], int | None], ...]
"""How often what is done, by kind and type."""

Value = int | None
"""A count; None where it is not known."""


class Counts:
    """What a launch does at sizes, in all calls of it."""

    def __init__(self, launch: Launched, sizes: Mapping[str, int], data: Data) -> None:
        made = launch.kernel.program()
        self.launch = launch
        self.times, self.blocks, self.grid = launch.calls.counted(made.grid, sizes)
        self.counter = Counting(launch.model, sizes, made.block, launch.calls, data)
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
        return tuple(footprints_of((self.counter, access) for access in self.listed))

    @cached_property
    def at_most(self) -> tuple[str, ...]:
        """Statements counted as if data-dependent conditions, also of accesses, were true."""
        as_if = {a.statement for a in map(self.access, range(len(self.listed))) if a.at_most}
        return tuple(
            name
            for name, (counted, exact) in self._statements.items()
            if name in as_if or not (exact or counted is None)
        )

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The arguments whose data decide what is not known."""
        accesses = map(self.access, range(len(self.listed)))
        return tuple(
            sorted({*missing_of(self.counter.by_data), *(n for a in accesses for n in a.needs)})
        )

    @cached_property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads wait for each other, and how often."""
        return barriers_of(self.launch.kernel, self.counter.sizes, self.grid, self.launch.calls)


class CallCounts:
    """What a call does at sizes: each of its launches, and what is counted of all together."""

    def __init__(self, kernel: Kernel, sizes: Mapping[str, int], data: Data = NO_DATA) -> None:
        kernel.launch_config(**sizes)  # refuses what no device can launch
        self.kernel, self.sizes = kernel, sizes
        self.is_one_launch = is_one_launch(kernel)
        if not self.is_one_launch:
            data = replace(data, written=frozenset(kernel.writers))
        self.launches = [Counts(one, sizes, data) for one in launched(kernel)]
        self.parts: tuple[Counts | CallCounts, ...] = (*self.launches, self)

    @cached_property
    def footprints(self) -> tuple[Footprint, ...]:
        """The bytes of each array in global memory that any of the launches touches."""
        touches = ((one.counter, access) for one in self.launches for access in one.listed)
        return tuple(footprints_of(touches, apart=False))

    @cached_property
    def from_before(self) -> tuple[tuple[str, Value], ...]:
        """Bytes of each argument whose values from before the call are read."""
        return tuple(self._from_before())

    def _from_before(self) -> Iterator[tuple[str, Value]]:
        from loopkit.codegen.launches import with_spaces

        for footprint in self.footprints:
            name, read = footprint.array, footprint.read
            if not isinstance(self.kernel.arg_by_name.get(name), ArrayArg):
                continue
            if read and footprint.written:
                try:
                    read = from_before(model_of(with_spaces(self.kernel)), name, self.sizes)
                except NotAffineError:
                    pass  # data decide what is read: as if nothing was written
                except UNCOUNTED:
                    read = None
            yield name, read


Get = Callable[[Any], Sequence[Any]]
"""A question to a launch or a call: numbers that are counted together, or values that hold some."""


class Numbers(Sequence[Value]):
    """The numbers of a call at sizes, those of each question counted when one is first asked for.

    ``places`` say of each number which part of the call is asked, what, and where the answer is.
    """

    def __init__(self, call: CallCounts, places: Sequence[tuple[int, Get, int]]) -> None:
        self.parts, self.places = call.parts, places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: Any) -> Any:
        part, get, place = self.places[number]
        return get(self.parts[part])[place]


class Asked:
    """Questions about the parts of a call, with their answers: numbers or ``polynomials``.

    The polynomials are in the order in which they are asked for.
    """

    def __init__(self, call: CallCounts, polynomials: Iterable[Any] | None = None) -> None:
        self.parts = call.parts
        self.left = None if polynomials is None else iter(polynomials)
        self.numbers: list[list[tuple[str, Any]]] = [[] for _ in self.parts]
        self.places: list[tuple[int, Get, int]] = []

    def of(self, part: int, get: Get, words: Sequence[str]) -> Sequence[Any]:
        """Numbers of a part; ``words`` say what each of them counts."""
        found = get(self.parts[part]) if self.left is None else [*islice(self.left, len(words))]
        self.places += ((part, get, place) for place in range(len(words)))
        self.numbers[part] += zip(words, found, strict=True)
        return found

    def by_key(self, part: int, get: Get, word: Callable[[Any], str]) -> tuple[Any, ...]:
        """Pairs of keys and numbers."""
        keys = [key for key, _ in get(self.parts[part])]
        words = [word(key) for key in keys]
        found = self.of(part, lambda one: [n for _, n in get(one)], words)
        return tuple(zip(keys, found, strict=True))

    def fields(self, part: int, get: Get, where: Sequence[str], **words: str) -> Iterator[Any]:
        """Values of which some fields are counted: ``words`` say what, ``where`` of which value."""
        found = iter(
            self.of(
                part,
                lambda one: [getattr(v, name, None) for v in get(one) for name in words],
                [f"{word} {of}" for of in where for word in words.values()],
            )
        )
        for value in get(self.parts[part]):
            numbers = {name: next(found) for name in words}
            yield None if value is None else replace(value, **numbers)


def missing_of(by_data: ByData) -> Iterator[str]:
    """The arguments that are not at hand, and decide how often statements and operations run."""
    model = by_data.model
    every = [(s.id, ()) for s in model.kernel.statements]
    for name, guards in (*every, *((s, o.guards) for s, o in operations_in(model))):
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

    ``instances`` says how often each statement runs.
    """
    found: list[tuple[tuple[str, str], int | None]] = []
    for statement, operation in operations_in(model):
        times = instances[statement]
        if operation.guards:
            times = instances_at(model, statement, sizes, operation.guards, calls, by_data)[0]
        kind = operation.kind, operation.dtype
        found.append((kind, None if times is None else operation.times * times))
    return tuple(sorted(added(found).items()))


K = TypeVar("K")


def added(counts: Iterable[tuple[K, int | None]]) -> dict[K, int | None]:
    """The sum of the counts of each key; None where one of them is not known."""
    total: dict[K, int | None] = {}
    for key, number in counts:
        before = total.get(key, 0)
        total[key] = None if before is None or number is None else before + number
    return total


def sum_of(counts: Iterable[int | None]) -> int | None:
    """The sum of counts; None where one of them is not known."""
    found = [*counts]
    return None if None in found else sum(n for n in found if n is not None)


def operations_in(model: Model) -> Iterator[tuple[str, Operation]]:
    """The operations of each statement, with its id."""
    types = known_types(model.kernel)
    for statement in model.kernel.statements:
        by_data = model.conditions_on_data(statement)
        for operation in operations_of(statement, by_data, types.__getitem__):
            yield statement.id, operation
