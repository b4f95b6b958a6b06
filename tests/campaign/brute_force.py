"""Looking for an order that makes a schedule wrong, instance by instance.

A kernel is executed as if a barrier stood wherever one can stand: the tree is
walked, and a statement runs for all threads of a block before the next does.
What a schedule leaves open is chosen against it: the order of blocks, whether
blocks take turns, the order of threads, whether threads read before any of them
writes.  Temporaries begin as garbage.  A schedule that comes out
right in all these ways, for many sizes, is probably legal; one that does not is
illegal, and so is one that stores to a cell of global memory in several orders, whatever hides
that in the end.
Numbers that come out right by chance do not count (:mod:`.formal`): what a statement or a condition
in it reads must be what the text reads, and no instances may run beside those of the text. Nor does
count what threads leave behind in memory that ends with a launch, or lies in the place of something
else.
Nothing here is shared with the checker or, but for the reading of
``ilp``, with lowering.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from seams import (
    ConstantTable,
    LaunchBarrier,
    Loop,
    Memory,
    Store,
    column_of,
    combined_axes,
    compile_statement,
    copies_of,
    entries_of,
    evaluate,
    expand_rules,
    find_axes,
    infer_types,
    own_lineage,
    points_of,
    realize_instruction_parallel,
    shared_storage,
    statements_in,
    storage_shape,
    strides_of,
    swizzles_of,
)
from seams import address_space_of as space_of
from seams import sets as _sets

import loopkit as lk
from loopkit import AddressSpace

from .data import Case, in_words_of
from .formal import Formal, cells, mixed

Row = tuple[int, ...]
_GARBAGE = 99  # of any type
_GLOBAL = AddressSpace.GLOBAL


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
    """Memory whose writes can be held back, and are told to others."""

    held: list[tuple[Callable[..., None], Any, tuple[int, ...]]] | None = None
    told: tuple[Any, ...] | None = None
    """Where the last write went to; all copies along axes that are sliced."""
    spoil: Callable[[str, tuple[Any, ...]], None] | None = None
    """Told of each write, where others share the storage."""

    def storer(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        store = super().storer(open_axes)
        axes = range(len(self.shape))

        def where(index: tuple[int, ...]) -> tuple[Any, ...]:
            given = iter(index)
            return tuple(slice(None) if a in open_axes else next(given) for a in axes)

        def put(value: Any, *index: int) -> None:
            store(value, *index)
            if self.spoil is not None:
                self.spoil(self.name, where(index))

        def hold_or_store(value: Any, *index: int) -> None:
            self.told = where(index)
            if self.held is None:
                put(value, *index)
            else:
                self.held.append((put, value, index))

        return hold_or_store


@dataclass
class _Part:
    """A statement with its rows; ``block`` gives the block that a row belongs to.

    A part without a coordinate along a block axis (None there) runs in the first
    block alone, or in all of them where each has its own copy of what it writes.
    """

    compiled: Any
    rows: list[Row]
    depth: int
    block: tuple[tuple[int, int] | None, ...]
    everywhere: bool

    @cached_property
    def by_block(self) -> Mapping[Row, list[Row]]:
        """The rows of each block, by its place on those axes on which the part has one."""
        found: dict[Row, list[Row]] = {}
        own = [place for place in self.block if place is not None]
        for row in self.rows:
            found.setdefault(tuple(row[column] - first for column, first in own), []).append(row)
        return found


class Schedule:
    """A kernel with the arguments of one case, ready to be run in several ways."""

    def __init__(self, kernel: lk.Kernel, case: Case) -> None:
        kernel = realize_instruction_parallel(infer_types(expand_rules(kernel)))
        self.kernel = kernel
        self.case = case
        sizes = kernel.with_computed(case.sizes)
        self.sizes = {n: sizes[n] for n in kernel.sizes}
        # Where no iname has a value along an axis, there still is one block and one thread.
        axes = find_axes(kernel, self.sizes)
        self.axes = {key: self._on_hardware(a) for key, a in axes.items()}
        copies = {t.name: self._copies_of(t) for t in kernel.temporaries}
        self.copies = copies
        self.memories = {m.name: m for m in self._make_memories(copies)}
        self.overlaid = shared_storage(kernel)
        self.places = {n: self._places_of(n) for n in self.overlaid}
        for name, names in self.overlaid.items():
            if len({tuple(axis.key for axis in copies[n]) for n in names}) > 1:
                raise UnsupportedError("storage is shared by arrays that have other copies")
            self.memories[name].spoil = self._spoil
        self.tables = {a.name for a in kernel.args if isinstance(a, ConstantTable)}
        self.formal: Formal | None = None
        self.images: Mapping[str, Any] = {}
        dtypes = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries) if d.dtype}
        values = {
            a.name: np.asarray(self.sizes[a.name]).astype(a.dtype)[()]
            for a in kernel.args
            if isinstance(a, lk.ValueArg)
        }
        store = Store(self.memories, copies, self.sizes, values, dtypes)
        self.parts = {s.id: self._part(s, store) for s in kernel.statements}
        self.group_axes = [a for a in self.axes.values() if a.key[0] == "g"]
        ends = (t.name for t in kernel.temporaries if space_of(kernel, t) is not _GLOBAL)
        self.ends_with_launch = tuple(ends)

    def _copies_of(self, temporary: Any) -> tuple[Any, ...]:
        """The axes along which a temporary exists several times: each block has its own."""
        kernel, found = self.kernel, copies_of(self.kernel, temporary, self.axes)
        if space_of(kernel, temporary) is _GLOBAL or temporary.is_running or temporary.accumulates:
            return found
        return tuple(a for a in self.axes.values() if a in found or a.key[0] == "g")

    def watch_formally(self, lineage: Any | None = None) -> None:
        """From now on formal values are computed beside the numbers.

        By the lineage it is known what is whose of the text, also where no output shows it.
        """
        numbers = {name: memory.data for name, memory in self.memories.items()}

        def place(name: str, index: tuple[int, ...], values: Mapping[str, int]) -> Row:
            return (*self._copy_of(name, values), *index)

        self.formal = Formal(self.kernel, self.sizes, numbers, place)
        self.images = {} if lineage is None else lineage.image_of

    def _places_of(self, name: str) -> Any:
        """Where the cells of a temporary lie that shares its storage, in bytes."""
        temporary = self.kernel.temporary_by_name[name]
        places = places_in_memory(temporary, self.sizes)
        if temporary.dtype is None or places is None:
            raise UnsupportedError("storage of unknown size is shared")
        return places * temporary.dtype.itemsize

    def _spoil(self, name: str, where: tuple[Any, ...]) -> None:
        """What was written to one array is no value of those that lie in the same place."""
        mine = self.memories[name]
        first = self.places[name][where[mine.axes :]]
        for other in self.overlaid[name]:
            its = self.memories[other]
            if other == name:
                continue
            places = self.places[other]
            lost = (places < first + mine.data.itemsize) & (places + its.data.itemsize > first)
            its.data[(*where[: mine.axes], ...)][..., lost] = _GARBAGE
            if self.formal is not None:
                self.formal.held[other][(*where[: mine.axes], ...)][..., lost] = mixed("spoiled")

    def _copy_of(self, name: str, values: Mapping[str, int]) -> Iterator[int]:
        for axis in self.copies.get(name, ()):
            inames = [i for i in axis.first if i in values]
            if inames:
                yield values[min(inames)] - axis.first[min(inames)]
            else:
                yield values.get(column_of(axis), 0)

    def execute(self, part: _Part, row: Row) -> Callable[[], None] | None:
        """Execute an instance; what stores its formal value, if that is watched and it ran."""
        statement = part.compiled.statement
        memory = self.memories[statement.written]
        formal, memory.told = self.formal, None
        value: int | None = None
        if formal is not None:
            try:
                values = dict(zip(part.compiled.columns, row, strict=True))
                value = formal.computed(statement, values)
            except (IndexError, ArithmeticError, ValueError):
                pass  # of no value, and not executed, as the numbers will tell
        part.compiled.function(*row)
        where = memory.told
        if formal is None or where is None:
            return None
        stored = mixed("nothing") if value is None else formal.stored(statement, value, where)
        image = self.images.get(statement.id)
        if image is not None and value is not None:
            formal.note(image.origin, image.value_of, values, value)

        return partial(formal.store, statement, stored, where)

    def _on_hardware(self, axis: Any) -> Any:
        """An axis that index 0 begins, which is the smallest value for all sizes."""
        first = {i: self.kernel.range_around(i)[0] or 0 for i in axis.first}
        more = max((axis.first[i] - first[i] for i in first), default=0)
        return replace(axis, first=first, extent=max(1, axis.extent + more))

    def _make_memories(self, copies: Mapping[str, tuple[Any, ...]]) -> Iterator[_Watched]:
        for argument in self.kernel.args:
            if isinstance(argument, ConstantTable):
                yield _Watched(argument.name, argument.array.copy(), None)
            elif isinstance(argument, lk.ArrayArg):
                given = self.case.given[argument.name]
                if argument.shape is not None and given.ndim != len(argument.shape):
                    raise UnsupportedError("the caller has an array of other axes")
                yield _Watched(argument.name, given.copy(), None)
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
            elif name not in self.case.given and name not in self.tables:
                memory.data[...] = _GARBAGE
        if self.formal is not None:
            temporaries = self.memories.keys() - self.case.given.keys() - self.tables
            self.formal.start(dict.fromkeys(temporaries, 1))
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
            for name in self.ends_with_launch:
                self.memories[name].data[...] = _GARBAGE
                if self.formal is not None:
                    held = self.formal.held[name]
                    held[...] = cells(name, held.shape, 2)

    def _rows_of(self, part: _Part, block: tuple[int, ...]) -> list[Row]:
        places = list(zip(part.block, block, strict=True))
        if not part.everywhere and any(value for place, value in places if place is None):
            return []
        return part.by_block.get(tuple(v for place, v in places if place is not None), [])

    def count(self) -> int:
        """How many instances a run executes; each block that repeats one counts."""
        total = 0
        for part in self.parts.values():
            axes = zip(self.group_axes, part.block, strict=True)
            repeated = [axis.extent for axis, place in axes if place is None and part.everywhere]
            total += len(part.rows) * prod(repeated)
        return total

    def difference(self) -> str:
        """Where results are not those of the text; empty where all are."""
        for name, expected in self.case.expected.items():
            found = self.memories[name].data
            if not np.array_equal(found, expected):
                at = tuple(map(int, np.argwhere(found != expected)[0]))
                return f"{name}{list(at)} is {found[at]}, not {expected[at]}"
        return ""

    def formal_results(self) -> dict[str, Any]:
        """The formal values of all outputs after a run."""
        assert self.formal is not None
        return {name: self.formal.held[name].copy() for name in self.case.expected}

    # }}}


def _launches(tree: Any, path: Row, walkers: list[_Walker]) -> Iterator[tuple[Any, Row]]:
    """What runs between two barriers for all blocks, in turn, in all iterations around it."""
    body: list[Any] = []
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

    def _find_values(self, tree: Any, depth: int) -> None:
        for node in tree:
            if isinstance(node, Loop):
                for name in statements_in(node):
                    for path in self.groups[name]:
                        self.values.setdefault((id(node), path[:depth]), set()).add(path[depth])
                self._find_values(node.body, depth + 1)

    def nodes(self, tree: Any, path: Row) -> None:
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
        part = self.schedule.parts[name]
        if len(rows) == 1:
            _finish(self.schedule.execute(part, rows[0]))
            return
        rows = list(rows)
        _arrange(rows, self.way.threads, self.r)
        statement = self.schedule.kernel.statement_by_id[name]
        memory = self.schedule.memories[statement.written]
        # Of what threads add to sums of their own, which they combine, nothing is lost.
        temporary = self.schedule.kernel.temporary_by_name.get(statement.written)
        adds_up = statement.operation is not None and (
            statement.is_atomic
            or (
                temporary is not None
                and temporary.accumulates is not None
                and space_of(self.schedule.kernel, temporary) is AddressSpace.PRIVATE
            )
        )
        memory.held = [] if self.way.at_once and not adds_up else None
        late = []
        for row in rows:
            finish = self.schedule.execute(part, row)
            if memory.held is None:
                _finish(finish)
            else:
                late.append(finish)
        held, memory.held = memory.held, None
        for store, value, index in held or ():
            store(value, *index)
        for finish in late:
            _finish(finish)


def _finish(store: Callable[[], None] | None) -> None:
    if store is not None:
        store()


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

    Without ``runs``, it has no results, or they are the text's by chance.
    """

    sizes: dict[str, int]
    way: Way
    what: str
    runs: bool = True


def try_to_break(
    kernel: lk.Kernel,
    cases: Sequence[Case],
    seed: int,
    ways: Sequence[Way] = WAYS,
    text: lk.Kernel | None = None,
    lineage: Any | None = None,
) -> Broken | None:
    """The first way to make ``kernel`` wrong; None where none is found.

    With ``text``, what it is a schedule of, results that are right by chance are wrong, too;
    with the lineage from there, also values that nobody looks at in the end.
    Raises :class:`UnsupportedError` for what cannot be executed here, and where nothing is found
    in what time there is, of which cases with many instances get none.
    """
    text = None if text is None else in_words_of(text, kernel)
    if any(t.is_running for t in kernel.temporaries) and combined_axes(kernel):
        raise UnsupportedError("a scan that threads make: what each of them sees is told by none")
    parallel = any(tag.is_parallel for _, tag in kernel.tags)
    tags = {str(tag) for _, tag in kernel.tags}
    if not parallel:
        ways = ways[:1]
    was_skipped = False
    for is_formal in (False, True) if text is not None else (False,):
        left = _MOST_INSTANCES
        for case in cases:
            try:
                with np.errstate(all="ignore"):
                    root = text if is_formal else None
                    schedule = Schedule(kernel, case)
                    count = schedule.count()
                    some = ways[: left // max(1, count)]
                    was_skipped |= len(some) < len(ways)
                    left -= len(some) * count
                    broken = _broken(schedule, case, seed, some, root, lineage) if some else None
            except lk.LoopkitError as error:
                if isinstance(error, lk.OutOfBoundsError) and "l.auto" in tags:
                    # A scalar of threads that were not found is read beside their loop.
                    raise UnsupportedError("threads that are still to be found") from None
                runs = not isinstance(error, lk.IllegalTransformError)
                return Broken(case.sizes, ways[0], f"{type(error).__name__}: {error.why}", runs)
            if broken is not None:
                return broken
    if was_skipped:
        raise UnsupportedError(f"more than {_MOST_INSTANCES:,} instances")
    return None


_MOST_INSTANCES = 1 << 19  # some 10 s, and with formal values 30 s


def _broken(
    schedule: Schedule,
    case: Case,
    seed: int,
    ways: Sequence[Way],
    text: lk.Kernel | None,
    lineage: Any | None,
) -> Broken | None:
    """The first of some ways in which one case goes wrong; formally, with a text."""
    shared = one_place_twice(schedule.kernel, schedule.sizes)
    if shared:
        return Broken(case.sizes, ways[0], shared, runs=False)
    meant: Mapping[str, Any] = {}
    due: Mapping[tuple[str, Row], int] = {}
    if text is not None:
        root = Schedule(text, case)
        root.watch_formally(own_lineage(root.kernel))
        root.run(_IN_ORDER, seed)
        meant = root.formal_results()
        assert root.formal is not None
        due = root.formal.seen
        schedule.watch_formally(lineage)
    past: Mapping[str, Any] = {}
    for number, way in enumerate(ways):
        schedule.run(way, seed + number)
        what = schedule.difference()
        if what:
            return Broken(case.sizes, way, what)
        for name, found in schedule.formal_results().items() if text is not None else ():
            if not np.array_equal(found, meant[name]):
                at = [*map(int, np.argwhere(found != meant[name])[0])]
                what = f"{name}{at} is right by chance: it was computed otherwise"
                return Broken(case.sizes, way, what, runs=False)
        if schedule.formal is None:
            continue
        what = _unseen(due, schedule.formal.seen)
        its = {n: p for n, p in schedule.formal.past.items() if n not in schedule.ends_with_launch}
        past = past or {name: found.copy() for name, found in its.items()}
        for name, found in its.items():
            if not np.array_equal(found, past[name]):
                what = what or f"nothing orders writes of '{name}', which others hide"
        if what:
            return Broken(case.sizes, way, what, runs=False)
    return None


def _unseen(due: Mapping[tuple[str, Row], int], seen: Mapping[tuple[str, Row], int]) -> str:
    """In words, which instance of the text computes something else, or is left out, or is added."""
    for instance in seen:
        if instance not in due:
            return f"{instance} is executed, which the text does not"
    executed = {name for name, _ in seen}
    for instance, value in due.items():
        if instance[0] in executed and seen.get(instance) != value:
            return f"{instance} computes something else, which nobody looks at"
    return ""


_IN_ORDER = Way("ascending", "ascending")


def one_place_twice(kernel: lk.Kernel, sizes: Mapping[str, int]) -> str:
    """In words, which array has two cells in one place in memory, or one in none; else empty."""
    for array in (*kernel.args, *kernel.temporaries):
        if isinstance(array, lk.ValueArg) or not array.shape:
            continue
        try:
            places = places_in_memory(array, sizes)
        except lk.OutOfBoundsError:
            return f"a cell of '{array.name}' has no place"
        if places is not None and np.unique(places).size < places.size:
            return f"two cells of '{array.name}' lie in one place"
    return ""


def places_in_memory(array: Any, sizes: Mapping[str, int]) -> Any:
    """How many elements from the first each cell of an array lies; None where that is not known.

    Raises :class:`~loopkit.OutOfBoundsError` where a cell has no place.
    """
    shape, stored = (
        [max(0, int(evaluate(e, sizes))) for e in extents]
        for extents in (array.shape, storage_shape(array))
    )
    if not 0 < np.prod(shape, dtype=object) <= _MOST_CELLS:
        return None
    along = list(np.indices(shape))
    for swizzle in swizzles_of(array):
        along[swizzle.axis] = along[swizzle.axis] ^ swizzle.changed(np.indices(shape)[swizzle.by])
        if along[swizzle.axis].max() >= stored[swizzle.axis]:
            raise lk.OutOfBoundsError("a cell has no place")
    try:
        strides = [int(evaluate(s, sizes)) for s in strides_of(array)]
    except KeyError:
        return None
    found = np.zeros(shape, int)  # of one cell, if there are no axes
    return sum((a * s for a, s in zip(along, strides, strict=True)), start=found)


_MOST_CELLS = 1 << 16
