"""Counts of data-dependent accesses for given data, by enumeration of their executions.

In sets, a loaded loop bound is a symbolic name, and a loaded subscript is unknown.  Where the
arrays are given, points are enumerated up to the first loaded value; then that value is read, and
the enumeration continues from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from math import prod

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import strides_of, swizzles_of
from loopkit._assertions.follow import followed
from loopkit._cached import memoised, once
from loopkit._costs.accesses import (
    Access,
    conditions_of,
    executed_by,
    lanes_and_blocks,
    requests_around,
)
from loopkit._costs.data_values import Data, Points, truth_of, values_of
from loopkit._costs.traffic import Reuse
from loopkit._costs.warps import Memory, Requests, WarpCosts, costs_of, memory_of
from loopkit._expression import variable_names
from loopkit._guarded import Guards
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._poly.integer_points import Rows, System, Walk, systems
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, between
from loopkit._target import CUDA
from loopkit.codegen.ir import Code, Do, For, If, Let
from loopkit.codegen.nest import nest_of

AT_ONCE = 1 << 16
"""Requests that are looked at together."""


Names = frozenset[str]
NONE: Names = frozenset()


def deciding(model: Model, statement: Statement, expressions: Iterable[Expression]) -> Names | None:
    """The arguments on whose data ``expressions`` of a statement depend.

    None where they depend on values that the kernel itself computes, which no caller can pass.
    """
    found: set[str] = set()
    for expr in expressions:
        names = variable_names(followed(model.kernel, statement, expr)) & model.data
        if names & model.written:
            return None
        found |= names
    return frozenset(found)


@memoised
def loop_begins(kernel: Kernel) -> Mapping[str, Mapping[str, Expression]]:
    """The first values of the loops around each statement; none if it is in the code twice."""
    found: dict[str, Mapping[str, Expression]] = {}

    def visit(nodes: Iterable[Code], around: Mapping[str, Expression]) -> None:
        for node in nodes:
            if isinstance(node, Do):
                found[node.statement.id] = {} if node.statement.id in found else around
            elif isinstance(node, For):
                visit(node.body, {**around, node.iname: node.lower})
            elif isinstance(node, Let | If):
                visit(node.body, around)

    visit(nest_of(kernel).code, {})
    return found


class ByData:
    """Counts data-dependent accesses of a kernel, for given sizes, block extents and data."""

    def __init__(
        self, model: Model, sizes: Mapping[str, int], block: tuple[int, int, int], data: Data
    ) -> None:
        self.model = model
        self.sizes = sizes
        self.block = block
        self.data = data
        self._points: dict[object, Points] = {}
        self._runs: dict[str, Points] = {}

    def wanted(
        self,
        statement: str,
        conditions: Iterable[Expression],
        indices: Iterable[Expression] = (),
    ) -> Names | None:
        """The arguments on which a statement's execution, its conditions and ``indices`` depend."""
        loaded = map(prim.Variable, self.model.bounds_from_data(statement))
        by_data = [c for c in conditions if self.model.condition(c) is None]
        own = self.model.statement[statement]
        wanted = deciding(self.model, own, (*loaded, *by_data, *indices))
        return None if wanted is None or wanted & self.data.written else wanted

    def knows(self, wanted: Names | None) -> bool:
        """Whether something depends on data, all of which are given."""
        return wanted is not None and bool(wanted) and wanted <= self.data.names

    def wanted_by(self, access: Access) -> Names | None:
        """The arguments on whose data an access depends."""
        own = self.model.statement[access.statement]
        return self.wanted(access.statement, conditions_of(own, access), access.indices)

    def missing(self, access: Access) -> tuple[str, ...]:
        """The arguments that are needed to count an access; none if the kernel makes the data."""
        return tuple(sorted((self.wanted_by(access) or NONE) - self.data.names))

    def instances(self, statement: str, conditions: Guards, domain: isl.Set) -> int:
        """How many threads run a statement, each time counted, where all conditions hold."""
        own = self.model.statement[statement]
        return self._where(own, self._in(own, domain), conditions).count

    def points(self, access: Access) -> Points:
        """The executions of an access, by the values of inames and of a thread's places.

        And by iterations: which one of the thread's a loop is in, from 0 on.
        """
        own = self.model.statement[access.statement]
        points = once(self._runs, access.statement, self._with_iterations, own)
        return self._where(own, points, conditions_of(own, access), access.guards)

    def _with_iterations(self, statement: Statement) -> Points:
        """Where a statement runs, and a column for each loop: threads run iterations together."""
        points = self._in(statement, executed_by(self.model, statement.id))
        begins = loop_begins(self.model.kernel).get(statement.id, {})
        found = dict(points.columns)
        for loop in self._loops(statement.id):
            found[hidden("iteration", loop)] = points.columns[loop]
            with suppress(NotAffineError):
                begin = values_of(begins.get(loop, 0), points, self.data)
                found[hidden("iteration", loop)] = points.columns[loop] - begin
        return replace(points, columns=found)

    def _loops(self, statement: str) -> list[str]:
        """The loops around a statement that distinguish its requests."""
        lanes = {block[0] for block in filter(None, lanes_and_blocks(self.model, statement)[1])}
        return [name for name in requests_around(self.model, statement) if name not in lanes]

    def costs(self, access: Access, itemsize: int, space: str) -> tuple[WarpCosts, Reuse | None]:
        """What an access costs, and who touches its cells of global memory again."""
        points = self.points(access)
        addresses = self.addresses(access, points)
        lanes, blocks = lanes_and_blocks(self.model, access.statement)
        thread = _number(points, lanes, self.block)
        block = _column(points, [b for b in blocks if b is not None])
        loops = self._loops(access.statement)
        times = [points.columns[hidden("iteration", loop)] for loop in loops]
        request = _numbers([thread // CUDA.warp, *times, *block.T], points.count)
        memory = memory_of(space, is_write=access.is_write)
        found = _costs(request, thread, addresses * itemsize, itemsize, memory)
        if space != "global":
            return found, None
        return found, Reuse(
            points.count,
            _different(block, thread, addresses),
            _different(block, thread // CUDA.warp, addresses),
            _different(block, addresses),
            _different(addresses),
        )

    def addresses(self, access: Access, points: Points) -> Rows:
        """The place of the touched cell in its array, in elements, for each point."""
        statement = self.model.statement[access.statement]
        array = self.model.array(access.array)
        assert array.shape is not None
        cell = []
        for axis, (index, extent) in enumerate(zip(access.indices, array.shape, strict=True)):
            values = values_of(followed(self.model.kernel, statement, index), points, self.data)
            self.data.check_cell(access.array, axis, values, _sets.value_at(extent, self.sizes))
            cell.append(values)
        along = list(cell)
        for swizzle in swizzles_of(array):
            along[swizzle.axis] = along[swizzle.axis] ^ swizzle.changed(cell[swizzle.by])
        address = np.zeros(points.count, np.int64)
        for place, stride in zip(along, strides_of(array), strict=True):
            address += place * _sets.value_at(stride, self.sizes)
        return address

    def _where(
        self, statement: Statement, points: Points, conditions: Guards, guards: Guards = ()
    ) -> Points:
        """The points at which conditions on data hold, and all those that are ``guards``."""
        for condition in conditions:
            if condition in guards or self.model.condition(condition) is None:
                known = followed(self.model.kernel, statement, condition)
                points = points.where(truth_of(known, points, self.data))
        return points

    def _in(self, statement: Statement, domain: isl.Set) -> Points:
        """``{ inames, axes that it runs all along, loaded bounds }`` as points."""
        return once(self._points, (statement.id, domain), self._enumerated, statement, domain)

    def _enumerated(self, statement: Statement, domain: isl.Set) -> Points:
        kernel, model = self.model.kernel, self.model
        _, everywhere = model.everywhere(Instance(statement.id, ""))
        axes = [v.name for v in everywhere.values()]
        loaded = {
            name: followed(kernel, statement, prim.Variable(name))
            for name in sorted(_sets.involved_names(domain) & model.data)
        }
        points = Points({}, self.sizes, 1)
        left = {*statement.inames}
        while loaded:
            ready = {i for i in left if not self._waits_for(i, loaded)}
            around = kernel.domain_around([*ready, *(statement.inames - left)])
            points = self._continued(points, around & kernel.assumptions.set, sorted(ready))
            left -= ready
            now = {name: expr for name, expr in loaded.items() if not variable_names(expr) & left}
            if not now:
                raise NotAffineError
            values = {name: values_of(expr, points, self.data) for name, expr in now.items()}
            points = replace(points, columns={**points.columns, **values})
            loaded = {name: expr for name, expr in loaded.items() if name not in now}
        return self._continued(points, domain, [*sorted(left), *axes])

    def _waits_for(self, iname: str, loaded: Collection[str]) -> bool:
        """Whether loaded bounds of an iname, or of one that it depends on, are still unknown."""
        kernel = self.model.kernel
        parameters = kernel.domains[kernel.home_domain[iname]].parameters
        return bool(parameters & {*loaded}) or any(
            self._waits_for(outer, loaded) for outer in kernel.parents_of(iname)
        )

    def _continued(self, points: Points, domain: isl.Set, names: Sequence[str]) -> Points:
        """Points extended by the values that further names have in a set."""
        known = [*points.columns]
        for name, values in points.columns.items() if points.count else ():
            domain = domain & between(name, int(values.min()), int(values.max()))
        begin = _column(points, [(name, 0) for name in known])
        found = [self._part(s, known, begin) for s in systems(domain, [*known, *names], self.sizes)]
        rows = np.concatenate([np.zeros((0, len(known) + len(names)), np.int64), *found])
        columns = dict(zip([*known, *names], rows.T, strict=True))
        return Points(columns, self.sizes, len(rows))

    @staticmethod
    def _part(system: System, known: Sequence[str], begin: Rows) -> Rows:
        """Rows in a system that go on from given ones, in the order of its names."""
        walk = Walk(system, [system.names.index(name) for name in known])
        named = [n for n, name in enumerate(system.names) if name]
        if walk.box is None:
            return np.zeros((0, len(named)), np.int64)
        first = walk.order[: len(known)]
        later = [n for n in range(len(system.names)) if n not in first]
        own = walk.constraints[~walk.constraints[:, later].any(axis=1)]
        begin = begin[(begin @ own[:, first].T + own[:, -1] >= 0).all(axis=1)]
        rows = walk.rows(walk.order, begin)
        return rows[:, [walk.order.index(n) for n in named]]


def cells_touched(accesses: Iterable[tuple[ByData, Access]]) -> int:
    """The number of distinct cells of one array that accesses use."""
    found = [counter.addresses(access, counter.points(access)) for counter, access in accesses]
    return len(np.unique(np.concatenate(found)))


def _column(points: Points, names: Sequence[tuple[str, int]]) -> Rows:
    """The columns of some names, side by side."""
    columns = [points.columns[name] for name, _ in names]
    return np.column_stack(columns) if columns else np.zeros((points.count, 0), np.int64)


def _number(
    points: Points, lanes: Sequence[tuple[str, int] | None], block: tuple[int, int, int]
) -> Rows:
    """The number of the thread in its block."""
    thread = np.zeros(points.count, np.int64)
    for axis, lane in enumerate(lanes):
        if lane is not None:
            thread += (points.columns[lane[0]] - lane[1]) * prod(block[:axis])
    return thread


def _numbers(columns: Sequence[Rows], count: int) -> Rows:
    """A number for each different row of columns, the same for equal ones, in order from 0 on.

    Of two rows the one with the larger last column has the larger number.
    """
    if not columns:
        return np.zeros(count, np.int64)
    order = np.lexsort(columns)
    new = reduce(np.logical_or, (np.diff(column[order], prepend=-1) != 0 for column in columns))
    if len(order):
        new[0] = False
    found = np.zeros(len(order), np.int64)
    found[order] = np.cumsum(new)
    return found


def _different(*columns: Rows) -> int:
    """How many different rows there are."""
    flat = [part for column in columns for part in np.atleast_2d(column.T)]
    return int(_numbers(flat, len(flat[0])).max(initial=-1)) + 1


def _costs(
    request: Rows, thread: Rows, addresses: Rows, itemsize: int, memory: Memory
) -> WarpCosts:
    """What requests cost of which each row is one thread's part; addresses in bytes."""
    order = np.argsort(request, kind="stable")
    many = int(request.max(initial=-1)) + 1
    ends = np.searchsorted(request[order], np.arange(0, many + AT_ONCE, AT_ONCE))
    parts = (order[a:b] for a, b in pairwise(ends.tolist()) if a < b)
    each = (
        _some(request[p] - request[p[0]], thread[p], addresses[p], itemsize, memory) for p in parts
    )
    return reduce(_together, each, WarpCosts(alignment=memory.period))


def _some(request: Rows, thread: Rows, addresses: Rows, itemsize: int, memory: Memory) -> WarpCosts:
    shape = int(request.max()) + 1, CUDA.warp
    runs, table = np.zeros(shape, bool), np.zeros(shape, np.int64)
    lane = thread % CUDA.warp
    runs[request, lane], table[request, lane] = True, addresses
    # A thread makes the access once in each request.
    assert len(request) == runs.sum()
    found = Requests(table, runs, np.ones(len(table), np.int64))
    return costs_of(found, itemsize, memory)


def _together(one: WarpCosts, two: WarpCosts) -> WarpCosts:
    return WarpCosts(
        one.requests + two.requests,
        one.threads + two.threads,
        one.elements + two.elements,
        one.pieces + two.pieces,
        one.least_pieces + two.least_pieces,
        max(one.most_pieces, two.most_pieces),
        min(one.alignment, two.alignment),
    )
