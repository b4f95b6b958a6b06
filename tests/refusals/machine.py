"""What a schedule may do, by running it: for small sizes, in several orders.

Nothing here asks isl for more than the points of a domain.  An execution is a list of
events, one per statement instance and thread; the threads of a block are taken to
wait for each other after every statement, so that what goes wrong here goes wrong
wherever barriers stand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pymbolic.primitives as prim
from loop_instances import Parts, joined, launches, places, points, value
from seams import (
    GroupAxis,
    InstructionParallel,
    LocalAxis,
    evaluate,
    expand_rules,
    operations_of,
    strides_of,
    variable_names,
)
from seams import sets as _sets

from loopkit import AddressSpace, Instance, Kernel, Statement, TemporaryVariable, ValueArg

Point = dict[str, int]
Cell = tuple[int, ...]
Data = Mapping[str, Mapping[Cell, Any]]
# An execution that takes longer than this many instances is too large for an oracle.
LIMIT = 200_000


@dataclass(frozen=True)
class Touch:
    """One use of a cell; ``place`` says where in which copy of a temporary that is."""

    array: str
    cell: Cell
    place: tuple[Any, ...]
    is_write: bool


@dataclass(eq=False)
class Event:
    """One execution of a statement by one thread."""

    statement: Statement
    point: Point
    time: tuple[int, ...]
    block: tuple[int, ...]
    thread: tuple[int, ...]
    launch: tuple[int, ...] = ()
    touches: list[Touch] = field(default_factory=list)

    def text(self, kernel: Kernel) -> str:
        """The instance, inames in the order of the domains."""
        names = [i for i in kernel.all_inames if i in self.point]
        return str(Instance(self.statement.id, {n: self.point[n] for n in names}))


class Machine:
    """A kernel for given sizes: its events, and what they do to memory."""

    def __init__(self, kernel: Kernel, sizes: Point, data: Data | None = None) -> None:
        self.kernel = _with_spaces(expand_rules(kernel))
        self.sizes = sizes
        self.data = data or {}
        self.axes = sorted({t for _, t in kernel.tags if t.is_parallel}, key=str)
        self.ilp = {i for i, t in kernel.tags if isinstance(t, InstructionParallel)}
        self.lower = {i: self._lowest(i) for i, t in kernel.tags if t.is_parallel}
        self.own_ilp = {t.name: self._ilp_of(t.name) for t in self.kernel.temporaries}
        self.events = list(self._events())

    def _lowest(self, iname: str) -> int:
        domain = self.kernel.domain_around([iname]) & self.kernel.assumptions.set
        found = _sets.minimum_value(domain, prim.Variable(iname))
        return 0 if found is None else found

    def _ilp_of(self, name: str) -> tuple[str, ...]:
        """The ``ilp`` inames for each value of which a temporary exists once."""
        temporary = self.kernel.temporary_by_name[name]
        if temporary.address_space is not AddressSpace.PRIVATE:
            return ()
        found: set[str] = set()
        for writer in self.kernel.writers.get(name, ()):
            indexed = {n for index in writer.write[1] for n in variable_names(index)}
            found |= (writer.inames & self.ilp) - indexed
        return tuple(sorted(found))

    # {{{ events

    def _events(self) -> Iterator[Event]:
        where, launch_of = places(self.kernel.tree), launches(self.kernel.tree)
        points_of = {s.id: self._points(s) for s in self.kernel.statements}
        reach = {axis: self._reach(axis, points_of) for axis in self.axes}
        for statement in self.kernel.statements:
            place = where[statement.id]
            ilp = tuple(p for p in place if p in self.ilp)
            loops = tuple(p for p in place if p not in self.ilp)
            for point in points_of[statement.id]:
                time = tuple(point[p] if isinstance(p, str) else p for p in (*loops, *ilp))
                mine = launch_of[statement.id]
                launch = tuple(point[p] if isinstance(p, str) else p for p in mine)
                for block, thread in self._who(statement, point, reach):
                    yield Event(statement, point, time, block, thread, launch)

    def _points(self, statement: Statement) -> list[Point]:
        names = sorted(statement.inames)
        domain = self.kernel.statement_domain(statement)
        found = points(domain, self.sizes, names) if names else [{}]
        if len(found) > LIMIT:
            raise AssertionError(f"{statement.id} has {len(found)} instances")
        return found

    def _coordinate(self, statement: Statement, axis: object, point: Point) -> int | None:
        for iname in statement.inames:
            if self.kernel.iname_tags.get(iname) == axis:
                return point[iname] - self.lower[iname]
        return None

    def _reach(self, axis: object, points_of: Mapping[str, list[Point]]) -> list[int]:
        found = {0}
        for statement in self.kernel.statements:
            for point in points_of[statement.id]:
                here = self._coordinate(statement, axis, point)
                if here is not None:
                    found.add(here)
        return sorted(found)

    def _who(
        self, statement: Statement, point: Point, reach: Mapping[Any, list[int]]
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The threads that execute an instance: all along an axis that its result is private to."""
        temporary = self.kernel.temporary_by_name.get(statement.written)
        space = AddressSpace.GLOBAL if temporary is None else temporary.address_space
        choices = []
        for axis in self.axes:
            here = self._coordinate(statement, axis, point)
            shared = space is AddressSpace.LOCAL and isinstance(axis, GroupAxis)
            if here is not None:
                choices.append([here])
            elif space is AddressSpace.PRIVATE or shared:
                choices.append(reach[axis])
            else:
                choices.append([0])
        for chosen in itertools.product(*choices):
            pairs = list(zip(self.axes, chosen, strict=True))
            yield (
                tuple(c for a, c in pairs if isinstance(a, GroupAxis)),
                tuple(c for a, c in pairs if isinstance(a, LocalAxis)),
            )

    # }}}

    # {{{ memory

    def place_of(self, name: str, cell: Cell, event: Event) -> tuple[Any, ...]:
        """Where a thread finds a cell: in which copy of ``name``, and at which element."""
        array = self.kernel.temporary_by_name.get(name) or self.kernel.arg_by_name[name]
        at: tuple[Any, ...] = cell
        if not isinstance(array, ValueArg) and array.dim_tags is not None:
            strides = [int(evaluate(s, self.sizes)) for s in strides_of(array)]
            at = (sum(s * i for s, i in zip(strides, cell, strict=True)),)
        return (*self._copy_of(name, event), at)

    def _copy_of(self, name: str, event: Event) -> tuple[Any, ...]:
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is None or temporary.address_space is AddressSpace.GLOBAL:
            return ()
        if temporary.address_space is AddressSpace.LOCAL:
            return (event.launch, event.block)
        return (
            event.launch,
            event.block,
            event.thread,
            *(event.point.get(i) for i in self.own_ilp[name]),
        )

    def initial(self, name: str, cell: Cell) -> Any:
        """What a cell holds that nobody wrote."""
        if name in self.kernel.temporary_by_name:
            return ("never written", name, cell)
        if name in self.data:
            return self.data[name][cell]
        number = sum(ord(c) for c in name)
        for axis, index in enumerate(cell):
            number = (number * 31 + (index + 7) * (axis + 3)) % 1009
        return number

    def run(self, orders: Iterable[list[Event]]) -> dict[tuple[str, Cell], Any]:
        """What is left in the arguments; ``orders`` lists events that read before any writes."""
        memory: dict[tuple[Any, ...], Any] = {}
        left: dict[tuple[str, Cell], Any] = {}
        temporaries = self.kernel.temporary_by_name
        for together in orders:
            written = []
            for event in together:
                found = self._execute(event, memory)
                if found is not None:
                    written.append(found)
            for name, cell, place, new in written:
                memory[name, place] = new
                if name not in temporaries:
                    left[name, cell] = new
        return left

    def _execute(self, event: Event, memory: dict[tuple[Any, ...], Any]) -> Any:
        statement = event.statement
        event.touches = []
        reader = {
            name: _View(self, event, name, memory) for name in {n for n, _ in statement.reads}
        }
        sizes = {n: v for n, v in self.sizes.items() if n in self.kernel.arg_by_name}
        env = {**sizes, **event.point}
        if not all(_computed(p, env, reader) is True for p in statement.predicates):
            return None
        name, indices = statement.write
        cell = tuple(_computed(i, env, reader) for i in indices)
        new = _computed(statement.rhs, env, reader)
        if statement.operation is not None:
            old = _View(self, event, name, memory)[cell]
            new = self._update(statement.operation, old, new)
        place = self.place_of(name, cell, event)
        event.touches.append(Touch(name, cell, place, True))
        return name, cell, place, new

    def _update(self, operation: str, old: Any, new: Any) -> Any:
        if isinstance(old, tuple) or isinstance(new, tuple):
            return ("never written", operation, ())
        if operation == "sum":
            return old + new
        if operation == "product":
            return old * new
        if isinstance(new, Parts):
            return joined(operations_of(self.kernel.reductions)[operation], old, new)
        return {"max": max, "min": min}[operation](old, new)

    # }}}

    # {{{ orders

    def in_order(self, descending: bool = False) -> list[list[Event]]:
        """Block after block, and threads in ascending or descending order."""
        sign = -1 if descending else 1

        def key(e: Event) -> tuple[Any, ...]:
            blocks, threads = ([sign * n for n in at] for at in (e.block, e.thread))
            return e.launch, blocks, e.time, threads

        return [[e] for e in sorted(self.events, key=key)]

    def in_step(self, blocks_too: bool) -> list[list[Event]]:
        """All threads of a block (or of all blocks) read before one of them writes."""

        def key(e: Event) -> tuple[Any, ...]:
            return (e.launch, e.time) if blocks_too else (e.launch, e.block, e.time)

        found = sorted(self.events, key=key)
        if not self.axes:
            return [[e] for e in found]
        groups = [list(group) for _, group in itertools.groupby(found, key)]
        # What is atomic reads and writes at once.
        return [
            part
            for group in groups
            for part in ([[e] for e in group] if group[0].statement.is_atomic else [group])
        ]

    def results(self) -> list[dict[tuple[str, Cell], Any]]:
        """What may be left in the arguments, by order."""
        orders = [self.in_order()]
        if self.axes:
            orders += [self.in_order(True), self.in_step(False), self.in_step(True)]
        return [self.run(order) for order in orders]

    # }}}


class _View(dict[Cell, Any]):
    """An array as a thread reads it; notes what is read."""

    def __init__(self, machine: Machine, event: Event, name: str, memory: Any) -> None:
        super().__init__()
        self.machine, self.event, self.name, self.memory = machine, event, name, memory

    def __getitem__(self, cell: Cell) -> Any:
        place = self.machine.place_of(self.name, cell, self.event)
        self.event.touches.append(Touch(self.name, cell, place, False))
        key = (self.name, place)
        found = self.memory[key] if key in self.memory else self.machine.initial(self.name, cell)
        if isinstance(found, tuple):
            raise NeverWrittenError(found)
        return found


class NeverWrittenError(Exception):
    """A value that depends on what a thread never wrote."""


def _computed(expr: Any, env: Point, memory: Any) -> Any:
    try:
        return value(expr, env, memory)
    except NeverWrittenError as error:
        return error.args[0]


def _with_spaces(kernel: Kernel) -> Kernel:
    """Temporaries are where the parallel inames in the subscripts that write them say.

    What several launches use is in global memory.
    """
    launch_of = launches(kernel.tree)

    def space_of(temporary: TemporaryVariable) -> AddressSpace:
        if temporary.address_space is not AddressSpace.AUTO:
            return temporary.address_space
        writers = kernel.writers.get(temporary.name, ())
        names = {n for w in writers for i in w.write[1] for n in variable_names(i)}
        tags = [kernel.iname_tags.get(name) for name in names]
        if any(isinstance(tag, GroupAxis) for tag in tags):
            return AddressSpace.GLOBAL
        own = {launch_of[s.id] for s in kernel.users(temporary.name)}
        if len(own) > 1 or any(isinstance(p, str) for launch in own for p in launch):
            return AddressSpace.GLOBAL
        local = any(isinstance(tag, LocalAxis) for tag in tags)
        return AddressSpace.LOCAL if local else AddressSpace.PRIVATE

    return kernel.with_(
        temporaries=tuple(replace(t, address_space=space_of(t)) for t in kernel.temporaries)
    )
