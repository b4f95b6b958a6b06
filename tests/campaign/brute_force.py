"""Looking for an order that makes a schedule wrong, instance by instance.

A kernel is executed as if a barrier stood wherever one can stand: the tree is
walked, and a statement runs for all threads of a block before the next does.
What a schedule leaves open is chosen against it: the order of blocks, whether
blocks take turns, the order of threads, whether threads read before any of them
writes.  Temporaries begin as garbage.  A schedule that comes out
right in all these ways, for many sizes, is probably legal; one that does not is
illegal.  Nothing here is shared with the checker or, but for the reading of
``ilp``, with lowering.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import loopkit as lk
from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._expression import evaluate
from loopkit._make.type_inference import infer_types
from loopkit._places import space_of
from loopkit._reference.compile_statement import Compiled, Store, compile_statement
from loopkit._reference.memory import Memory
from loopkit._reference.places import Axis, column_of, copies_of, find_axes
from loopkit._reference.points import points_of
from loopkit._rules import expand_rules
from loopkit._tree import LaunchBarrier, Loop, Node, Tree, entries_of, statements_in
from loopkit.codegen.prepare import realize_instruction_parallel

from .data import Case

Row = tuple[int, ...]
_GARBAGE = 99  # of any type


class UnsupportedError(Exception):
    """The kernel has something that is not executed here."""


@dataclass(frozen=True)
class Way:
    """One way to fill in what a schedule leaves open.

    ``blocks`` is the order of blocks, or ``"together"``: all of them run statement by
    statement.  ``threads`` is the order of a statement's threads.  With ``at_once``
    all of them read before the first one writes.
    """

    blocks: str
    threads: str
    at_once: bool = False

    def __str__(self) -> str:
        return f"blocks {self.blocks}, threads {self.threads}{', at once' if self.at_once else ''}"


WAYS = (
    Way("descending", "descending"),
    Way("together", "random", at_once=True),
    Way("random", "random"),
    Way("ascending", "descending", at_once=True),
    Way("together", "descending"),
    Way("ascending", "ascending"),
    Way("together", "random"),
    Way("random", "ascending", at_once=True),
)
FEW_WAYS = WAYS[:3]


class _Watched(Memory):
    """Memory whose writes can be held back."""

    held: list[tuple[Callable[..., None], Any, tuple[int, ...]]] | None = None

    def storer(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        store = super().storer(open_axes)

        def hold_or_store(value: Any, *index: int) -> None:
            if self.held is None:
                store(value, *index)
            else:
                self.held.append((store, value, index))

        return hold_or_store


@dataclass
class _Part:
    """A statement with its rows; ``block`` gives the block that a row belongs to.

    A part without a coordinate along a block axis (None there) runs in the first
    block alone, or in all of them where each has its own copy of what it writes.
    """

    compiled: Compiled
    rows: list[Row]
    depth: int
    block: tuple[tuple[int, int] | None, ...]
    everywhere: bool


class Schedule:
    """A kernel with the arguments of one case, ready to be run in several ways."""

    def __init__(self, kernel: lk.Kernel, case: Case) -> None:
        kernel = realize_instruction_parallel(infer_types(expand_rules(kernel)))
        self.kernel = kernel
        self.case = case
        self.sizes = {n: case.sizes[n] for n in kernel.sizes}
        # Where no iname has a value along an axis, there still is one block and one thread.
        axes = find_axes(kernel, self.sizes)
        self.axes = {key: replace(a, extent=max(1, a.extent)) for key, a in axes.items()}
        copies = {t.name: copies_of(kernel, t, self.axes) for t in kernel.temporaries}
        self.memories = {m.name: m for m in self._make_memories(copies)}
        dtypes = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries) if d.dtype}
        values = {
            a.name: np.asarray(self.sizes[a.name]).astype(a.dtype)[()]
            for a in kernel.args
            if isinstance(a, lk.ValueArg)
        }
        store = Store(self.memories, copies, self.sizes, values, dtypes)
        self.parts = {s.id: self._part(s, store) for s in kernel.statements}
        self.group_axes = [a for a in self.axes.values() if a.key[0] == "g"]

    def _make_memories(self, copies: Mapping[str, tuple[Axis, ...]]) -> Iterator[_Watched]:
        for argument in self.kernel.args:
            if isinstance(argument, lk.ArrayArg):
                yield _Watched(argument.name, self.case.given[argument.name].copy(), None)
        for temporary in self.kernel.temporaries:
            shape = [max(0, int(evaluate(extent, self.sizes))) for extent in temporary.shape]
            own = copies[temporary.name]
            whole = (*(a.extent for a in own), *shape)
            yield _Watched(temporary.name, np.zeros(whole, temporary.dtype), None, len(own))

    def _part(self, statement: Any, store: Store) -> _Part:
        kernel = self.kernel
        compiled = compile_statement(kernel, statement, store)
        domain = kernel.domain_around(statement.inames)
        names = _sets.involved_names(domain)
        if names & kernel.temporary_by_name.keys():
            raise UnsupportedError("bounds that are loaded")
        own = [c for c in compiled.columns if c in statement.inames]
        rows = [tuple(row) for row in points_of(domain, own, self.sizes).tolist()]
        if compiled.extra:
            more = list(product(*(range(extent) for _, extent in compiled.extra)))
            rows = [(*row, *m) for row in rows for m in more]
        block: list[tuple[int, int] | None] = []
        for axis in (a for a in self.axes.values() if a.key[0] == "g"):
            iname = axis.iname_of(statement)
            name = iname or column_of(axis)
            if name in compiled.columns:
                block.append((compiled.columns.index(name), axis.first[iname] if iname else 0))
            else:
                block.append(None)
        temporary = kernel.temporary_by_name.get(statement.written)
        # Whoever has a copy of its own fills it.
        everywhere = (
            temporary is not None and space_of(kernel, temporary) is not AddressSpace.GLOBAL
        )
        return _Part(compiled, rows, compiled.depth, tuple(block), everywhere)

    # {{{ running

    def run(self, way: Way, seed: int) -> None:
        """Execute everything; raises what an instance raises."""
        for name, memory in self.memories.items():
            memory.held = None
            if name in self.case.expected:
                memory.data[...] = self.case.given[name]
            elif name not in self.case.given:
                memory.data[...] = _GARBAGE
        r = random.Random(seed)
        if way.blocks == "together" or not self.group_axes:
            walkers = [_Walker(self, {n: p.rows for n, p in self.parts.items()}, way, r)]
        else:
            blocks = list(product(*(range(axis.extent) for axis in self.group_axes)))
            _arrange(blocks, way.blocks, r)
            rows = ({n: self._rows_of(p, block) for n, p in self.parts.items()} for block in blocks)
            walkers = [_Walker(self, mine, way, r) for mine in rows]
        for body, path in _launches(self.kernel.tree, (), walkers):
            for walker in walkers:
                walker.nodes(body, path)

    def _rows_of(self, part: _Part, block: tuple[int, ...]) -> list[Row]:
        rows = part.rows
        for place, value in zip(part.block, block, strict=True):
            if place is not None:
                column, first = place
                rows = [row for row in rows if row[column] - first == value]
            elif not part.everywhere and value != 0:
                return []
        return rows

    def difference(self) -> str:
        """Where results are not those of the text; empty where all are."""
        for name, expected in self.case.expected.items():
            found = self.memories[name].data
            if not np.array_equal(found, expected):
                at = tuple(int(p[0]) for p in np.nonzero(found != expected))
                return f"{name}{list(at)} is {found[at]}, not {expected[at]}"
        return ""

    # }}}


def _launches(tree: Tree, path: Row, walkers: list[_Walker]) -> Iterator[tuple[Tree, Row]]:
    """What runs between two barriers for all blocks, in turn, in all iterations around it."""
    body: list[Node] = []
    for node in (*tree, None):
        is_around = isinstance(node, Loop) and any(
            isinstance(leaf, LaunchBarrier) for leaf, _ in entries_of(node.body)
        )
        if not (node is None or is_around or isinstance(node, LaunchBarrier)):
            body.append(node)
            continue
        if body:
            yield tuple(body), path
            body = []
        if is_around:
            assert isinstance(node, Loop)
            found = set[int]().union(*(w.values.get((id(node), path), set()) for w in walkers))
            for value in sorted(found):
                yield from _launches(node.body, (*path, value), walkers)


def _arrange(items: list[Any], order: str, r: random.Random) -> None:
    if order == "descending":
        items.reverse()
    elif order == "random":
        r.shuffle(items)


class _Walker:
    """One walk down the tree."""

    def __init__(
        self, schedule: Schedule, rows: Mapping[str, list[Row]], way: Way, r: random.Random
    ) -> None:
        self.schedule = schedule
        self.way = way
        self.r = r
        self.groups: dict[str, dict[Row, list[Row]]] = {}
        self.values: dict[tuple[int, Row], set[int]] = {}
        for name, part in schedule.parts.items():
            groups = self.groups[name] = {}
            for row in rows[name]:
                groups.setdefault(row[: part.depth], []).append(row)
        self._find_values(schedule.kernel.tree, 0)

    def _find_values(self, tree: Tree, depth: int) -> None:
        for node in tree:
            if isinstance(node, Loop):
                for name in statements_in(node):
                    for path in self.groups[name]:
                        self.values.setdefault((id(node), path[:depth]), set()).add(path[depth])
                self._find_values(node.body, depth + 1)

    def nodes(self, tree: Tree, path: Row) -> None:
        for node in tree:
            if isinstance(node, Loop):
                for value in sorted(self.values.get((id(node), path), ())):
                    self.nodes(node.body, (*path, value))
            elif isinstance(node, str):
                self.statement(node, path)

    def statement(self, name: str, path: Row) -> None:
        rows = self.groups[name].get(path)
        if not rows:
            return
        function = self.schedule.parts[name].compiled.function
        if len(rows) == 1:
            function(*rows[0])
            return
        rows = list(rows)
        _arrange(rows, self.way.threads, self.r)
        statement = self.schedule.kernel.statement_by_id[name]
        memory = self.schedule.memories[statement.written]
        # Updates of one reduction lose nothing of each other: threads combine what they have.
        memory.held = [] if self.way.at_once and statement.operation is None else None
        for row in rows:
            function(*row)
        held, memory.held = memory.held, None
        for store, value, index in held or ():
            store(value, *index)


def has_dead_code(kernel: lk.Kernel) -> bool:
    """Whether a statement computes what reaches no output: no order can make that wrong."""
    live = {a.name for a in kernel.args}
    statements = list(kernel.statements)
    while True:
        used = [s for s in statements if s.written in live]
        more = live.union(*(name_set(kernel, s.id) for s in used))
        if more == live:
            return len(used) < len(statements)
        live = more


def name_set(kernel: lk.Kernel, statement: str) -> set[str]:
    """The names that a statement reads, those in the bounds of its inames included."""
    found = {name for name, _ in kernel.statement_by_id[statement].reads}
    domain = kernel.domain_of(kernel.statement_by_id[statement].inames)
    return found | set(_sets.involved_names(domain))


@dataclass(frozen=True)
class Broken:
    """A way and sizes for which a schedule's results are not the text's.

    Without ``runs``, lowering refuses the schedule: it has no results at all.
    """

    sizes: dict[str, int]
    way: Way
    what: str
    runs: bool = True


def try_to_break(
    kernel: lk.Kernel, cases: Sequence[Case], seed: int, ways: Sequence[Way] = WAYS
) -> Broken | None:
    """The first way to make ``kernel`` wrong; None where none is found.

    Raises :class:`UnsupportedError` for what cannot be executed here.
    """
    parallel = any(tag.is_parallel for _, tag in kernel.tags)
    if not parallel:
        ways = ways[:1]
    for case in cases:
        try:
            with np.errstate(all="ignore"):
                schedule = Schedule(kernel, case)
                for way in ways:
                    schedule.run(way, seed)
                    what = schedule.difference()
                    if what:
                        return Broken(case.sizes, way, what)
        except lk.LoopkitError as error:
            runs = not isinstance(error, lk.IllegalTransformError)
            return Broken(case.sizes, ways[0], f"{type(error).__name__}: {error.why}", runs)
    return None
