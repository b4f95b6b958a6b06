"""Running a kernel at small sizes, with exact numbers and a memory of how each came about.

Besides the order of the tree, kernels with blocks and threads are run in other
orders that nothing forbids: a schedule with a race shows it in one of them.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from pymbolic.mapper import Mapper

from loopkit import _sets
from loopkit._arrays import ArrayArg, ValueArg
from loopkit._check.model import Model
from loopkit._expression import evaluate, index_tuple, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._make.operations import operations_of
from loopkit._nodes import Expression, TypeCast
from loopkit._reference.places import Axis, copies_of, find_axes
from loopkit._reference.points import TooManyPointsError, points_of
from loopkit._tags import InstructionParallel
from loopkit._tree import Loop, Tree
from loopkit._verify import arithmetic

Place = tuple[int, ...]
Sizes = Mapping[str, int]


class UnsupportedError(Exception):
    """The kernel cannot be run here."""


class DataDecideError(UnsupportedError):
    """Data decide how often some statement runs."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A value and where it comes from.

    ``statement`` wrote it at ``point`` having read ``used``; a statement of
    None stands for what the array held before the kernel.  Truth values in
    ``used`` are decisions that were made on the way.
    """

    value: Any
    array: str
    place: Place
    statement: str | None = None
    point: Mapping[str, int] = field(default_factory=dict)
    used: Sequence[Entry | bool] = ()


@dataclass(frozen=True)
class Order:
    """An order of execution: block after block or statement after statement, and which way.

    With ``at_once``, the threads that run a statement at the same time all read
    before one of them writes.
    """

    by_block: bool = False
    backwards: bool = False
    at_once: bool = False


TREE = Order()
ORDERS = (
    TREE,
    Order(backwards=True),
    Order(by_block=True),
    Order(by_block=True, backwards=True),
    Order(at_once=True),
)


class Data:
    """What arguments hold: small integers, the same for every kernel that is run on them."""

    def __init__(self, trial: int, given: Mapping[str, np.ndarray[Any, Any]] | None = None) -> None:
        self.trial = trial
        self.given = given or {}

    def cell(self, name: str, place: Place, dtype: np.dtype[Any], limit: int) -> Any:
        """The value of one cell; integers stay below ``limit``, as they may be indices."""
        if name in self.given:
            return self.given[name][place].item()
        digest = zlib.crc32(f"{self.trial}|{name}|{place}".encode())
        if dtype.kind == "b":
            return bool(digest & 1)
        if dtype.kind in "iu":
            return digest % max(1, limit)
        number = 1 + digest % 9 if self.trial % 2 == 0 else digest % 13 - 6
        return complex(number, digest // 16 % 5) if dtype.kind == "c" else number


_POINTS = 100_000


class Machine:
    """One kernel, ready to be run at one choice of sizes.

    ``work`` counts the cells that a run reads and writes; there are no more than ``most``.
    """

    def __init__(self, model: Model, sizes: Sizes, most: int) -> None:
        from loopkit._make.infer import infer_types

        self.kernel = infer_types(model.kernel)
        self.sizes = {n: sizes[n] for n in self.kernel.sizes}
        self.axes = find_axes(self.kernel, self.sizes)
        self.copies = {
            t.name: copies_of(self.kernel, t, self.axes) for t in self.kernel.temporaries
        }
        self.dtypes: dict[str, np.dtype[Any]] = {
            d.name: d.dtype
            for d in (*self.kernel.args, *self.kernel.temporaries)
            if d.dtype is not None
        }
        self.shapes = {
            a.name: tuple(max(0, int(evaluate(e, self.sizes))) for e in a.shape or ())
            for a in (*self.kernel.args, *self.kernel.temporaries)
            if not isinstance(a, ValueArg)
        }
        arguments = self.kernel.arg_by_name.keys() & self.shapes.keys()
        extents = [e for name in arguments for e in self.shapes[name] if e > 0]
        self.limit = min(extents, default=1)
        self.numbers = _numbering(self.kernel)
        self.steps: list[_Step] = []
        self.work = 0
        for statement in self.kernel.statements:
            self._add(statement, most)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that are written, in the order of the arguments."""
        return tuple(a.name for a in self.kernel.args if a.name in self.kernel.writers)

    def _add(self, statement: Statement, most: int) -> None:
        domain = self.kernel.statement_domain(statement)
        if _sets.involved_names(domain) - statement.inames - self.sizes.keys():
            raise DataDecideError(f"data decide how often '{statement.id}' runs")
        columns = tuple(i for i in self.kernel.all_inames if i in statement.inames)
        try:
            rows = points_of(domain, columns, self.sizes, _POINTS).tolist()
        except TooManyPointsError:
            raise UnsupportedError("too many instances") from None
        missing = [
            a for a in self.copies.get(statement.written, ()) if a.iname_of(statement) is None
        ]
        instances = len(rows) * math.prod(a.extent for a in missing)
        self.work += instances * (1 + len(statement.reads))
        if self.work > most:
            raise UnsupportedError("too many instances")
        self.steps.append(_Step(self, statement, columns, rows, missing))

    def initial(self, data: Data, name: str, place: Place) -> Entry:
        """What a cell holds that no statement has written."""
        argument = self.kernel.arg_by_name.get(name)
        if argument is None:
            return Entry(math.nan, name, place, None)
        dtype = self.dtypes[name]
        if isinstance(argument, ValueArg):
            if name in self.sizes:
                return Entry(self.sizes[name], name, place)
            return Entry(data.cell(name, (), dtype, self.limit), name, ())
        inside = all(0 <= i < e for i, e in zip(place, self.shapes[name], strict=True))
        if not inside or (isinstance(argument, ArrayArg) and argument.is_input is False):
            return Entry(math.nan, name, place)
        return Entry(data.cell(name, place, dtype, self.limit), name, place)

    def run(self, data: Data, order: Order) -> dict[str, dict[Place, Entry]]:
        """The cells that are written at the end, by array and place."""
        memory: dict[str, dict[Place, Entry]] = {}
        events = []
        for number, step in enumerate(self.steps):
            events += [(step.time(row, order), number, row) for row in step.all_rows()]
        events.sort()

        def load(name: str, place: Place, used: list[Entry | bool]) -> Any:
            cells = memory.setdefault(name, {})
            entry = cells.get(place)
            if entry is None:
                entry = cells[place] = self.initial(data, name, place)
            used.append(entry)
            return entry.value

        for _, group in itertools.groupby(events, lambda e: e[0][:-1] if order.at_once else e):
            written = [self._execute(number, row, load) for _, number, row in group]
            for entry in written:
                if entry is not None:
                    memory.setdefault(entry.array, {})[entry.place] = entry
        return {name: memory.get(name, {}) for name in self.outputs}

    def _execute(self, number: int, row: tuple[int, ...], load: Callable[..., Any]) -> Entry | None:
        """What one instance writes; None where a condition keeps it from running."""
        step = self.steps[number]
        used: list[Entry | bool] = []
        try:
            result = step.function(load, used, *row)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise UnsupportedError(str(error)) from None
        if result is None:
            return None
        place, value = result
        name = step.statement.written
        point = dict(zip(step.columns, row, strict=False))
        value = arithmetic.converted(value, self.dtypes[name])
        return Entry(value, name, place, step.statement.id, point, tuple(used))


def _numbering(kernel: Kernel) -> dict[str, list[int | str]]:
    """Positions among neighbours and inames of loops, from the tree's root to each statement."""
    found: dict[str, list[int | str]] = {}

    def visit(nodes: Tree, prefix: list[int | str]) -> None:
        for position, node in enumerate(nodes):
            if not isinstance(node, Loop):
                found[node] = [*prefix, position]
            elif isinstance(kernel.iname_tags.get(node.iname), InstructionParallel):
                visit(node.body, [*prefix, position])
            else:
                visit(node.body, [*prefix, position, node.iname])

    visit(kernel.tree, [])
    return found


class _Step:
    """A statement as a function of the values of its inames."""

    def __init__(
        self,
        machine: Machine,
        statement: Statement,
        columns: tuple[str, ...],
        rows: list[list[int]],
        missing: list[Axis],
    ) -> None:
        self.statement = statement
        self.columns = columns
        self.rows = rows
        self.missing = missing
        extra = {a.key: f"_axis_{n}" for n, a in enumerate(missing)}
        self.names = (*columns, *extra.values())
        number = {name: n for n, name in enumerate(self.names)}
        self.loops = [
            part if isinstance(part, int) else number[part]
            for part in machine.numbers[statement.id]
        ]
        self.is_value = [isinstance(part, str) for part in machine.numbers[statement.id]]
        self.blocks: list[tuple[int | None, int]] = []
        self.threads: list[tuple[int | None, int]] = []
        for axis in machine.axes.values():
            iname = axis.iname_of(statement)
            column = number[iname] if iname is not None else number.get(extra.get(axis.key, ""))
            first = axis.first[iname] if iname is not None else 0
            if axis.key[0] == "ilp":
                self.loops.append(number.get(iname or "", 0))
                self.is_value.append(iname is not None)
            else:
                (self.blocks if axis.key[0] == "g" else self.threads).append((column, first))
        self.function = _compiled(machine, statement, self.names, extra)

    def all_rows(self) -> list[tuple[int, ...]]:
        """The values of all inames, and of the axes that the statement runs on all of."""
        if not self.missing:
            return [tuple(row) for row in self.rows]
        more = list(itertools.product(*(range(a.extent) for a in self.missing)))
        return [(*row, *m) for row in self.rows for m in more]

    def time(self, row: tuple[int, ...], order: Order) -> tuple[tuple[int, ...], ...]:
        """When the instance runs: tuples in lexicographic order."""
        sign = -1 if order.backwards else 1
        blocks = tuple(0 if c is None else sign * (row[c] - f) for c, f in self.blocks)
        threads = tuple(0 if c is None else sign * (row[c] - f) for c, f in self.threads)
        tree = tuple(
            row[part] if value else part
            for part, value in zip(self.loops, self.is_value, strict=True)
        )
        return (blocks, tree, threads) if order.by_block else (tree, blocks, threads)


def _compiled(
    machine: Machine, statement: Statement, names: tuple[str, ...], extra: Mapping[Any, str]
) -> Callable[..., Any]:
    printer = _Printer(machine, statement, extra)
    conditions = [printer(p) for p in statement.predicates]
    value = printer(statement.rhs)
    name, indices = statement.write
    if statement.operation is not None:
        own = printer.load(name, indices)
        operation = statement.operation
        combine = arithmetic.REDUCTIONS.get(operation)
        if combine is None:
            combine = operations_of(machine.kernel.reductions)[operation].reference
        value = f"{printer.bind(combine)}({own}, {value})"
    place = printer.place(name, indices)
    lines = [f"def run(_load, _used, {', '.join(names)}):"]
    lines += [f"    if not {c}: return None" for c in conditions]
    lines.append(f"    _value = {value}")
    lines.append(f"    return {place}, _value")
    space = dict(printer.space)
    exec(compile("\n".join(lines), f"<{statement.id}>", "exec"), space)
    function: Callable[..., Any] = space["run"]
    return function


class _Printer(Mapper):  # type: ignore[misc]
    """Expressions as Python source that computes with exact numbers.

    Loads happen from left to right, and every decision is noted beside them.
    """

    def __init__(self, machine: Machine, statement: Statement, extra: Mapping[Any, str]) -> None:
        super().__init__()
        self.machine = machine
        self.statement = statement
        self.extra = extra
        self.space: dict[str, Any] = {"_decide": _decide}

    def bind(self, value: Any) -> str:
        """A name for a value in the source."""
        name = f"_{len(self.space)}"
        self.space[name] = value
        return name

    def place(self, name: str, indices: Sequence[Expression]) -> str:
        """Source of the place of a cell: coordinates of its room, then indices."""
        parts = []
        for axis in self.machine.copies.get(name, ()):
            iname = axis.iname_of(self.statement)
            if iname is not None:
                parts.append(f"{iname} - {axis.first[iname]}")
            else:
                parts.append(self.extra.get(axis.key, "0"))
        parts += [f"int({self.rec(i)})" for i in indices]
        return "(" + "".join(f"{p}, " for p in parts) + ")"

    def load(self, name: str, indices: Sequence[Expression]) -> str:
        """Source of a load."""
        return f"_load({name!r}, {self.place(name, indices)}, _used)"

    def map_constant(self, expr: Any) -> str:
        if isinstance(expr, np.generic):
            expr = expr.item()
        if isinstance(expr, float) and math.isfinite(expr):
            exact = Fraction(expr)
            expr = int(exact) if exact.denominator == 1 else exact
        return self.bind(expr)

    def map_variable(self, expr: Any) -> str:
        if expr.name in self.statement.inames:
            return str(expr.name)
        if expr.name in self.machine.sizes:
            return repr(self.machine.sizes[expr.name])
        return self.load(expr.name, ())

    def map_subscript(self, expr: Any) -> str:
        return self.load(expr.aggregate.name, index_tuple(expr))

    def _joined(self, expr: Any, symbol: str) -> str:
        return "(" + symbol.join(self.rec(c) for c in expr.children) + ")"

    def map_sum(self, expr: Any) -> str:
        return self._joined(expr, " + ")

    def map_product(self, expr: Any) -> str:
        return self._joined(expr, " * ")

    def map_bitwise_and(self, expr: Any) -> str:
        return self._joined(expr, " & ")

    def map_bitwise_or(self, expr: Any) -> str:
        return self._joined(expr, " | ")

    def map_bitwise_xor(self, expr: Any) -> str:
        return self._joined(expr, " ^ ")

    def map_bitwise_not(self, expr: Any) -> str:
        return f"(~{self.rec(expr.child)})"

    def map_left_shift(self, expr: Any) -> str:
        return f"({self.rec(expr.shiftee)} << {self.rec(expr.shift)})"

    def map_right_shift(self, expr: Any) -> str:
        return f"({self.rec(expr.shiftee)} >> {self.rec(expr.shift)})"

    def _call(self, function: Any, *children: Expression) -> str:
        return f"{self.bind(function)}({', '.join(self.rec(c) for c in children)})"

    def map_quotient(self, expr: Any) -> str:
        return self._call(arithmetic.divide, expr.numerator, expr.denominator)

    def map_floor_div(self, expr: Any) -> str:
        return self._call(arithmetic.floor_divide, expr.numerator, expr.denominator)

    def map_remainder(self, expr: Any) -> str:
        return self._call(arithmetic.remainder, expr.numerator, expr.denominator)

    def map_power(self, expr: Any) -> str:
        return self._call(arithmetic.power, expr.base, expr.exponent)

    def _folded(self, function: Any, expr: Any) -> str:
        name = self.bind(function)
        result: str = self.rec(expr.children[0])
        for child in expr.children[1:]:
            result = f"{name}({result}, {self.rec(child)})"
        return result

    def map_min(self, expr: Any) -> str:
        return self._folded(arithmetic.minimum, expr)

    def map_max(self, expr: Any) -> str:
        return self._folded(arithmetic.maximum, expr)

    def map_comparison(self, expr: Any) -> str:
        return f"({self.rec(expr.left)} {expr.operator} {self.rec(expr.right)})"

    def is_known(self, expr: Expression) -> bool:
        """Whether an expression reads no data, so that no decision needs to be noted."""
        return variable_names(expr) <= self.statement.inames | self.machine.sizes.keys()

    def map_if(self, expr: Any) -> str:
        if self.is_known(expr):
            parts = (expr.then, expr.condition, expr.else_)
            return "({} if {} else {})".format(*(self.rec(p) for p in parts))
        condition, then = self.rec(expr.condition), self.rec(expr.then)
        return f"({then} if _decide({condition}, _used) else {self.rec(expr.else_)})"

    def map_logical_and(self, expr: Any) -> str:
        if self.is_known(expr):
            return self._joined(expr, " and ")
        result: str = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = f"({result} if _decide({self.rec(child)}, _used) else False)"
        return result

    def map_logical_or(self, expr: Any) -> str:
        if self.is_known(expr):
            return self._joined(expr, " or ")
        result: str = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = f"(True if _decide({self.rec(child)}, _used) else {result})"
        return result

    def map_logical_not(self, expr: Any) -> str:
        return f"(not {self.rec(expr.child)})"

    def map_type_cast(self, expr: TypeCast) -> str:
        return (
            f"{self.bind(arithmetic.converted)}({self.rec(expr.operand)}, {self.bind(expr.dtype)})"
        )

    def map_call(self, expr: prim.Call) -> str:
        function = arithmetic.function(expr.function.name)
        if function is None:
            raise UnsupportedError(f"'{expr.function.name}' is not known")
        return self._call(function, *expr.parameters)


def _decide(condition: Any, used: list[Entry | bool]) -> bool:
    used.append(bool(condition))
    return bool(condition)
