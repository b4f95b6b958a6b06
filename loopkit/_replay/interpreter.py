"""Interpretation of a kernel at small sizes, with the provenance of each value.

Statements run as in the reference interpreter, with wide number types: floats are doubles, so that
two orders of one sum differ in the last digits only.  Kernels with blocks and threads are run in
several orders that the schedule allows, so that a data race shows in one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _budget
from loopkit._arrays import AddressSpace, ArrayArg, ConstantTable, ValueArg
from loopkit._collectives import looks_back
from loopkit._device_functions import OwnFunction
from loopkit._errors import LaunchError
from loopkit._expression import Mapped, evaluate, mapped
from loopkit._kernel import Kernel, Statement
from loopkit._launches import is_one_launch, launches_in, launches_of
from loopkit._make.type_inference import infer_types
from loopkit._nodes import Expression, TypeCast
from loopkit._places import space_of
from loopkit._points import TooManyPointsError
from loopkit._poly.model import Model
from loopkit._promotion import components_of, record_of
from loopkit._reference.compile_statement import Compiled, Store
from loopkit._reference.copy_axes import Axis, Key, column_of, copies_of, find_axes, loops_as_tagged
from loopkit._reference.memory import Memory
from loopkit._reference.run import Walker
from loopkit._replay.examples import ExampleData, Place, Sizes
from loopkit._tree import statements_in

Row = tuple[int, ...]

_LARGE = 1e150
"""Beyond that, the next product may be infinite."""


class UnsupportedError(Exception):
    """The kernel cannot be run here."""


@dataclass(frozen=True, eq=False)
class TracedValue:
    """A value and where it comes from.

    ``statement`` wrote it at ``point`` having read ``used``; a statement of None stands for
    what the array held before the kernel.  ``scale`` is the largest magnitude on the way.
    """

    value: Any
    array: str
    place: Place
    statement: str | None = None
    point: Mapping[str, int] = field(default_factory=dict)
    used: Sequence[TracedValue] = ()
    scale: float = 0

    def is_close(self, other: TracedValue, dtype: np.dtype[Any]) -> bool:
        """Whether two results of type ``dtype`` are the same, but for what rounding may do."""
        one, two = self.value, other.value
        if one == two or (one != one and two != two):
            return True
        if dtype.kind in "iub":
            return False
        largest = max(abs(one), abs(two))
        if largest == math.inf:
            return False
        # What should cancel out does so but for a little of what it is made of.
        return bool(abs(one - two) <= max(1e-6 * largest, 1e-13 * max(self.scale, other.scale)))


Stored = tuple[str, Row]
"""An instance: its statement, and the values of its inames in alphabetical order."""

Cells = Mapping[str, Mapping[Place, TracedValue]]
"""What has been written, by array and place."""


@dataclass(frozen=True)
class Order:
    """An order of execution: block after block or statement after statement, and which way.

    With ``at_once``, the threads that run a statement at the same time all read
    before one of them writes.
    """

    by_block: bool = False
    backwards: bool = False
    at_once: bool = False

    def described(self, axes: Iterable[Key]) -> str:
        """What is said of it where a kernel runs along these axes; nothing of the loops' order."""
        if self.at_once:
            return "after, when its threads read before one of them writes"
        blocks = self.by_block and any(axis[0] == "g" for axis in axes)
        parts = ["blocks one after the other"] if blocks else []
        if self.backwards:
            parts.append("the last first" if parts else "the last threads first")
        return f"after, when it runs {', '.join(parts)}" if parts else ""


TREE = Order()
ORDERS = (
    TREE,
    Order(backwards=True),
    Order(by_block=True),
    Order(by_block=True, backwards=True),
    Order(at_once=True),
)


class KernelAtSizes:
    """A kernel whose sizes are numbers: the shapes of its arrays, and what they hold at first."""

    def __init__(self, kernel: Kernel, sizes: Sizes) -> None:
        self.kernel = infer_types(kernel)
        self.sizes = {n: sizes[n] for n in self.kernel.sizes}
        data = (*self.kernel.args, *self.kernel.temporaries)
        self.dtypes = {d.name: d.dtype for d in data if d.dtype is not None}
        self.shapes = {
            a.name: tuple(max(0, int(evaluate(e, self.sizes))) for e in a.shape or ())
            for a in data
            if not isinstance(a, ValueArg)
        }
        arguments = self.kernel.arg_by_name.keys() & self.shapes.keys()
        extents = [e for n in arguments for e in self.shapes[n] if e > 0]
        self.limit, self.widest = min(extents, default=1), max(extents, default=1)
        self.has_read_outside = False
        self.outputs = tuple(a.name for a in self.kernel.args if a.name in self.kernel.writers)

    def is_inside(self, name: str, place: Place) -> bool:
        """Whether an array has a cell at a place."""
        return all(0 <= i < e for i, e in zip(place, self.shapes[name], strict=True))

    def initial(self, data: ExampleData, name: str, place: Place) -> TracedValue:
        """What a cell holds that no statement has written."""
        argument = self.kernel.arg_by_name.get(name)
        is_outside = isinstance(argument, ArrayArg) and not self.is_inside(name, place)
        self.has_read_outside |= is_outside
        if argument is None or is_outside:
            nothing: Any = np.float64(math.nan)
            if components_of(self.dtypes[name]):
                nothing = (nothing,) * len(components_of(self.dtypes[name]))
            return TracedValue(nothing, name, place)
        # What a kernel leaves alone keeps what was passed, in outputs too.
        dtype = self.dtypes[name]
        if isinstance(argument, ConstantTable):
            value = argument.array[place]
        else:
            value = data.cell(name, place, dtype, self.limit)
        return TracedValue(_wide(dtype).type(value), name, place, scale=abs(value))

    def given(self, data: ExampleData) -> dict[str, Any]:
        """All arguments, as ``data`` fill them."""
        found: dict[str, Any] = dict(self.sizes)
        for argument in self.kernel.passed:
            name, dtype = argument.name, self.dtypes[argument.name]
            if isinstance(argument, ArrayArg):
                shape = self.shapes[name]
                values = [data.cell(name, p, dtype, self.limit) for p in np.ndindex(shape)]
                found[name] = np.array(values, dtype=object).reshape(shape).astype(dtype)
            elif name not in found:
                found[name] = dtype.type(data.cell(name, (), dtype, self.limit))
        return found


class Interpreter(KernelAtSizes):
    """One kernel, ready to be run at one choice of sizes.

    ``seen`` holds what each instance has stored last, by its statement and its inames in order.

    ``work`` counts the cells that a run reads and writes; there are no more than ``most``.
    It is a guess where data decide how often statements run: by the bounds of loops
    (``loads_bounds``), or by when these end. Both run in the order of the tree (``is_walked``).
    """

    def __init__(self, model: Model, sizes: Sizes, most: int) -> None:
        super().__init__(model.kernel, sizes)
        kernel = _on_wide_numbers(self.kernel)
        self.axes = find_axes(kernel, self.sizes)
        # Blocks that look back wait for those before them.
        self.looks_back = any(looks_back(kernel, t.name) for t in kernel.temporaries)
        self.copies = _copies(kernel, self.axes)
        self.data = ExampleData(0)
        self.block: Mapping[Key, int] = {}
        self.used: list[TracedValue] = []
        self.stored: list[tuple[str, Place, Any]] = []
        self.seen: dict[Stored, TracedValue] = {}
        self.memories = {name: _Cells(self, name) for name in self.dtypes}
        dtypes = {name: _wide(dtype) for name, dtype in self.dtypes.items()}
        store = Store(self.memories, self.copies, self.sizes, {}, dtypes)
        try:
            self.walker = Walker(loops_as_tagged(kernel), store, _budget.EXAMPLE_INSTANCES)
        except (TooManyPointsError, LaunchError) as error:
            raise UnsupportedError(getattr(error, "why", "too many instances")) from None
        compiled = self.walker.compiled.values()
        loops, launches = _loops(model), _launches(model)
        self.steps = [
            _Step(self, one, loops[one.statement.id], launches[one.statement.id])
            for one in compiled
        ]
        # What a later launch does not find as an earlier one has left it.
        own = (t.name for t in kernel.temporaries if not model.is_global(t.name))
        self.fleeting = () if is_one_launch(model.kernel) else tuple(own)
        self.loads_bounds = any(one.loaded for one in compiled)
        self.is_walked = self.loads_bounds or bool(self.walker.endings)
        largest = max((*self.sizes.values(), 1))
        self.work = 0
        for one in compiled:
            is_open = one.loaded or one.least >= 0
            instances = largest ** len(one.columns) if is_open else len(one.rows)
            self.work += instances * (1 + len(one.statement.reads))
        if self.work > most:
            raise UnsupportedError("too many instances")

    @property
    def orders(self) -> Sequence[Order]:
        """The orders in which the kernel is run."""
        if not self.axes or self.is_walked:
            return (TREE,)
        return [order for order in ORDERS if not (order.by_block and self.looks_back)]

    def run(self, data: ExampleData, order: Order) -> Cells:
        """The cells that are written at the end, by array and place.

        Where data decide how often statements run, the order is that of the tree.
        """
        self.data = data
        self.seen = {}
        self.has_read_outside = False
        for memory in self.memories.values():
            memory.cells.clear()
        try:
            with np.errstate(all="ignore"):
                if self.is_walked:
                    self.walker.run()
                else:
                    last: Any = None
                    for launch, group in self._at_one_time(order):
                        for name in self.fleeting if launch != last else ():
                            self.memories[name].cells.clear()
                        last = launch
                        for written in [self.execute(*event) for event in group]:
                            self.write(written)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise UnsupportedError(str(error)) from None
        return {name: dict(self.memories[name].cells) for name in self.outputs}

    def _at_one_time(self, order: Order) -> Iterator[tuple[Row, list[tuple[_Step, Row, Row]]]]:
        """The instances in an order, with their launch; several that read before one writes."""
        events = sorted(
            (step.time(row, order, block), n, row, block)
            for n, step in enumerate(self.steps)
            for block in step.blocks(order)
            for row in step.rows
        )

        def moment(event: tuple[Any, int, Row, Row]) -> Any:
            is_whole = self.loses_nothing(self.steps[event[1]].statement)
            return event[0][:-1] if order.at_once and not is_whole else event

        for _, found in itertools.groupby(events, moment):
            members = [*found]
            group = [(self.steps[n], row, block) for _, n, row, block in members]
            yield members[0][0][0], group

    def strays(self, written: Cells) -> bool:
        """Whether the last run, which has ``written`` this, left an array of the caller."""
        return self.has_read_outside or any(
            not self.is_inside(name, place) for name in written for place in written[name]
        )

    def loses_nothing(self, statement: Statement) -> bool:
        """Whether threads add to a cell at one time: atomically, or parts that they combine."""
        own = self.kernel.temporary_by_name.get(statement.written)
        if statement.operation is None or own is None or own.accumulates is None:
            return statement.is_atomic
        return statement.is_atomic or space_of(self.kernel, own) is AddressSpace.PRIVATE

    def execute(self, step: _Step, row: Row, block: Row = ()) -> list[TracedValue]:
        """What one instance writes; nothing where a condition keeps it from running."""
        self.used, self.stored = [], []
        self.block = dict(zip(step.filled, block, strict=False))
        step.function(*row)
        inames = step.statement.inames
        point = {n: v for n, v in zip(step.columns, row, strict=True) if n in inames}
        written = []
        for name, place, value in self.stored:
            size = max(map(abs, value)) if isinstance(value, tuple) else abs(value)
            if _LARGE < size < math.inf:
                raise UnsupportedError("numbers get too large")
            scale = max([size if size < math.inf else 0, *(e.scale for e in self.used)])
            id_ = step.statement.id
            written.append(TracedValue(value, name, place, id_, point, self.used, scale))
            self.seen[id_, tuple(point[i] for i in sorted(point))] = written[-1]
        return written

    def write(self, written: Sequence[TracedValue]) -> None:
        """Put values where they belong."""
        for entry in written:
            self.memories[entry.array].cells[entry.place] = entry


def _copies(kernel: Kernel, axes: Mapping[Key, Axis]) -> dict[str, tuple[Axis, ...]]:
    """The axes along which each temporary exists several times.

    What blocks need to fill copies of their own, they compute each for themselves.
    """
    found = {t.name: copies_of(kernel, t, axes) for t in kernel.temporaries}
    own = {t.name for t in kernel.temporaries if space_of(kernel, t) is not AddressSpace.GLOBAL}
    waiting = [*kernel.statements]
    while waiting:
        statement = waiting.pop()
        for axis in found.get(statement.written, ()):
            if axis.key[0] != "g" or axis.iname_of(statement) is not None:
                continue
            for name in own.intersection(n for n, _ in statement.reads):
                if axis not in found[name]:
                    found[name] += (axis,)
                    waiting += kernel.writers.get(name, ())
    return found


class _Cells(Memory):
    """An array that remembers how its values came about; what nobody wrote is no number."""

    def __init__(self, machine: Interpreter, name: str) -> None:
        self.copies = machine.copies.get(name, ())
        super().__init__(name, None, None, len(self.copies))
        self.machine = machine
        self.cells: dict[Place, TracedValue] = {}

    @property
    def holds_true(self) -> bool:
        return any(entry.value == 1 for entry in self.cells.values())

    def loader(self) -> Callable[..., Any]:
        def load(*place: int) -> Any:
            if block := self.machine.block:
                own = (block.get(a.key, n) for a, n in zip(self.copies, place, strict=False))
                place = (*own, *place[len(self.copies) :])
            entry = self.cells.get(place)
            if entry is None:
                entry = self.machine.initial(self.machine.data, self.name, place)
                self.cells[place] = entry
            self.machine.used.append(entry)
            return entry.value

        return load

    def storer(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        def store(value: Any, *passed: int) -> None:
            rest = iter(passed)
            block = self.machine.block
            places = [
                ((block[axis.key],) if axis.key in block else range(axis.extent))
                if number in open_axes
                else (next(rest),)
                for number, axis in enumerate(self.copies)
            ]
            for place in itertools.product(*places, *((index,) for index in rest)):
                self.machine.stored.append((self.name, place, value))

        return store

    def forgetter(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        """Nothing to do: what nobody wrote is read here, and no error."""
        return lambda *_: None


class _Step:
    """A statement with its instances, as rows of ``columns``, and the time of each.

    The interpreter of the tree runs it by its compiled form, too.  Along the axes in ``filled``,
    of these extents, each block runs it for a copy of its own.
    """

    def __init__(
        self,
        machine: Interpreter,
        compiled: Compiled,
        loops: list[int | str],
        launch: tuple[int, int],
    ) -> None:
        self.statement = compiled.statement
        self.columns = compiled.columns
        self.rows = compiled.rows
        self.function = compiled.function
        compiled.function = lambda *row: machine.write(machine.execute(self, row))
        column = {name: n for n, name in enumerate(self.columns)}
        written = self.statement.written
        self.loops = [(column[p], True) if isinstance(p, str) else (p, False) for p in loops]
        self.launch = [*self.loops[: 2 * launch[0]], (launch[1], False)]
        self.filled: dict[Key, int] = {}
        self.axes: dict[str, list[tuple[int | None, int]]] = {"g": [], "l": [], "ilp": []}
        for axis in machine.axes.values():
            iname = axis.iname_of(self.statement)
            first = 0 if iname is None else axis.first[iname]
            place = column.get(iname or column_of(axis))
            if place is None and axis.key[0] == "g" and axis in machine.copies.get(written, ()):
                place = len(self.columns) + len(self.filled)  # behind those of a row
                self.filled[axis.key] = axis.extent
            self.axes[axis.key[0]].append((place, first))

    def blocks(self, order: Order) -> Iterator[Row]:
        """The blocks that run an instance, each by itself; nothing where all do at one time."""
        return itertools.product(*map(range, self.filled.values() if order.by_block else ()))

    def time(self, row: Row, order: Order, block: Row) -> tuple[tuple[int, ...], ...]:
        """When an instance runs: tuples in lexicographic order, threads last."""
        sign = -1 if order.backwards else 1
        whole = row + (block or (0,) * len(self.filled))
        blocks, threads = (
            tuple(0 if c is None else sign * (whole[c] - first) for c, first in self.axes[kind])
            for kind in "gl"
        )
        launch, tree = (
            tuple(row[part] if is_iname else part for part, is_iname in parts)
            for parts in (self.launch, self.loops)
        )
        rest = (blocks, tree) if order.by_block else (tree, blocks)
        return (launch, *rest, threads)


def _loops(model: Model) -> dict[str, list[int | str]]:
    """For each statement the inames of its loops, before each the place of the loop in the text."""
    places = {s.id: model.order.place(s.id) for s in model.kernel.statements}
    first: dict[object, int] = {}
    for number, path in places.values():
        for loop in path:
            first.setdefault(loop, number)
    return {
        name: [part for loop in path for part in (first[loop], loop[0])] + [number]
        for name, (number, path) in places.items()
    }


def _launches(model: Model) -> dict[str, tuple[int, int]]:
    """For each statement how many loops stand around its launch, and the launch's place."""
    every = launches_in(launches_of(model.kernel))
    ids = [(len(launch.loops), [*statements_in(launch.body)]) for launch in every]
    return {id_: (depth, model.order.place(own[0])[0]) for depth, own in ids for id_ in own}


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that examples are computed in; integers are computed in their own."""
    components = components_of(dtype)
    if components:
        return record_of({name: _wide(kind) for name, kind in components.items()})
    if dtype.kind == "c":
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtype.kind in "fV" else dtype


def _widened(function: OwnFunction) -> OwnFunction:
    """A user's function on wide numbers: that of its meaning."""
    wide = [
        replace(
            one,
            arguments=tuple((name, _wide(dtype)) for name, dtype in one.arguments),
            result=_wide(one.result),
        )
        for one in function.overloads
    ]
    if any(one.meaning is None for one in wide):
        raise UnsupportedError(f"'{function.name}' has no meaning in Python")
    if len({one.types for one in wide}) < len(wide):
        raise UnsupportedError(f"overloads of '{function.name}' differ in precision alone")
    return OwnFunction(function.name, tuple(wide))


def _on_wide_numbers(kernel: Kernel) -> Kernel:
    """The kernel with all floats as doubles."""

    def type_cast(expr: TypeCast, inside: Mapped) -> Expression:
        return TypeCast(_wide(expr.dtype), inside(expr.operand))

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        own = expr.function
        function = _widened(own) if isinstance(own, OwnFunction) else own
        return prim.Call(function, tuple(map(inside, expr.parameters)))

    widened = partial(mapped, type_cast=type_cast, call=call)

    def declared(data: Any) -> Any:
        return data if data.dtype is None else replace(data, dtype=_wide(data.dtype))

    return kernel.with_(
        args=tuple(map(declared, kernel.args)),
        temporaries=tuple(map(declared, kernel.temporaries)),
        statements=tuple(s.map_expressions(widened) for s in kernel.statements),
    )
