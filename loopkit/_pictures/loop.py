"""Pictures of loop iterations over time: copies, work and barriers, and the live ranges of shared
arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._budget import in_turn
from loopkit._costs.accesses import accesses_of, space_of
from loopkit._costs.launch_counts import Launched, launched
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError, counted
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._pictures.chosen_access import in_block
from loopkit._pictures.footprint import cells_of, points_of
from loopkit._pictures.grid import FILL, Cell, Figure, Grid, Key, Outline
from loopkit._pictures.picture import Picture
from loopkit._pictures.shown_instances import At, at_texts, restricted
from loopkit._poly.integer_points import TooManyPointsError, count, systems
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Let, walk
from loopkit.codegen.nest import nest_of

AHEAD = 2
"""Iterations behind those that are shown in which a read may keep a copy alive."""

VALUES = 10_000
"""Iterations of a loop that are counted one by one."""

COPY = Key("a copy", "copy", FILL, label="⇐")
OTHERS = Key("other statements", "series-0", FILL, label="●")
WAIT = Key("all threads of the block wait", "barrier", label="┆")
LIFE = Key(
    "shared memory, from its write to the last read of it", "shared", 0.25, "shared", label="─"
)


@dataclass(frozen=True)
class Event:
    """What happens in one column: statements together, or a barrier.

    ``iteration`` is the value of the loop's iname; None before and after the loop.  ``statements``
    are those that run, each with the number of its instances in the block, all threads together;
    those of an inner loop take turns.  ``barriers`` stand inside of that loop, or are it alone.
    """

    iteration: int | None
    statements: tuple[tuple[str, int], ...] = ()
    barriers: tuple[str, ...] = ()
    loop: str = ""

    @property
    def is_barrier(self) -> bool:
        """Whether threads wait here, and do nothing else."""
        return bool(self.barriers) and not self.statements


@dataclass(frozen=True)
class Life:
    """A live range of cells of a shared array: from a write in one event to the last read.

    ``read`` is at least the number of events if that read is in an iteration that is not shown.
    """

    array: str
    written: int
    read: int
    cells: int


@dataclass(frozen=True)
class LoopPicture(Picture):
    """Iterations of a loop in one block; see ``knl.plot_loop``."""

    kernel: Kernel
    iname: str
    sizes: tuple[tuple[str, int], ...]
    where: tuple[tuple[str, str], ...]
    iterations: int
    events: tuple[Event, ...]
    lives: tuple[Life, ...]
    texts: tuple[tuple[str, str], ...]

    def figure(self) -> Figure:
        """Statements and shared arrays by rows, events by columns."""
        title = f"{self.kernel.name}: the loop over {self.iname}"
        facts = (*self.sizes, *self.where)
        return self._figure(title, facts, (self._grid(),) if self.events else ())

    def _grid(self) -> Grid:
        tracks = self._tracks()
        first = len(self.texts)
        rows = [name for name, _ in self.texts] + [array for array, _ in tracks]
        cells = [*self._statements(rows)]
        for at, (_, lives) in enumerate(tracks, start=first):
            cells += [self._life(life, at) for life in lives]
        outlines, heads = list[Outline](), list[str]()
        for iteration, events in groupby(enumerate(self.events), lambda each: each[1].iteration):
            columns = [column for column, _ in events]
            heads += ["" if iteration is None else str(iteration), *[""] * (len(columns) - 1)]
            if iteration is not None:
                around = frozenset((r, c) for r in range(len(rows)) for c in columns)
                title = f"{self.iname} = {iteration}"
                outlines.append(Outline(around, "line", title, thick=1.5))
        return Grid(
            rows=tuple(rows),
            columns=tuple(heads),
            column_name=self.iname,
            cells=tuple(cells),
            outlines=tuple(outlines),
        )

    def _statements(self, rows: Sequence[str]) -> Iterator[Cell]:
        of = {s.id: (n, s) for n, s in enumerate(self.kernel.statements)}
        texts = dict(self.texts)
        for column, event in enumerate(self.events):
            for name, times in event.statements:
                position, statement = of.get(name, (None, None))
                key = COPY if statement is not None and statement.kind == "move" else OTHERS
                when = "" if event.iteration is None else f" at {self.iname} = {event.iteration}"
                inner = f", in the loop over {event.loop}" if event.loop else ""
                title = f"{name}{when}: {counted(times, 'instance')} in the block{inner}"
                title += f"\n{texts[name]}"
                yield key.cell(rows.index(name), column, title=title, statement=position)
            if event.is_barrier:
                title = f"barrier: {event.barriers[0]}"
                yield WAIT.cell(0, column, down=len(rows), title=title)

    def _tracks(self) -> list[tuple[str, list[Life]]]:
        """Lives in rows, so that none lies over another."""
        tracks: list[tuple[str, list[Life]]] = []
        for life in sorted(self.lives, key=lambda life: (life.array, life.written)):
            for array, lives in tracks:
                if array == life.array and lives[-1].read < life.written:
                    lives.append(life)
                    break
            else:
                tracks.append((life.array, [life]))
        return tracks

    def _life(self, life: Life, row: int) -> Cell:
        last = min(life.read, len(self.events) - 1)
        beyond = life.read >= len(self.events)
        end = "in a later iteration" if beyond else "there"
        title = f"{life.array}: {counted(life.cells, 'cell')}, written here and last read {end}"
        span, label = last - life.written + 1, "→" if beyond else ""
        return LIFE.cell(row, life.written, span=span, label=label, title=title)

    def _legend(self, figure: Figure) -> Iterator[Key]:
        used = {cell.fill for grid in figure.grids for cell in grid.cells}
        return (key for key in (COPY, OTHERS, WAIT, LIFE) if key.fill in used)

    def _notes(self) -> Iterator[str]:
        shown = len({e.iteration for e in self.events if e.iteration is not None})
        yield (
            f"{shown} of {counted(self.iterations, 'iteration')} of one block, in the "
            "order in which each "
            "of its threads runs them."
        )
        inside = [(e.loop, len(e.barriers)) for e in self.events if e.statements and e.barriers]
        for loop, barriers in dict.fromkeys(inside):
            yield f"The loop over {loop} holds {counted(barriers, 'more barrier')}."
        for name, text in self.texts:
            yield f"{name}: {text}"


@in_turn
def loop_picture(
    kernel: Kernel,
    iname: str,
    iterations: int,
    block: Sequence[int] | int | None,
    at: At | None,
    sizes: Mapping[str, int],
) -> LoopPicture:
    """See ``knl.plot_loop``."""
    from loopkit._show import statement_text

    sizes = check_sizes(kernel, sizes, "plot_loop")
    kernel.check_iname(iname)
    if isinstance(iterations, bool) or not isinstance(iterations, int) or not 1 <= iterations <= 64:
        raise InvalidArgumentError(f"between 1 and 64 iterations can be shown, not {iterations!r}")
    one = _launch(kernel, iname)
    model, own = one.model, one.calls.first(sizes, at or {})
    known, sizes = sizes, {**sizes, **own}
    found = _find(nest_of(model.kernel).code, iname)
    if found is None:
        tag = kernel.iname_tags.get(iname)
        raise InvalidArgumentError(
            f"'{iname}' is no loop" + (f": it is tagged {tag}" if tag is not None else ""),
            instead="loops: "
            + ", ".join(dict.fromkeys(i for path in kernel.paths.values() for i, _ in path)),
        )
    before, loop, after = found
    place = (block,) if isinstance(block, int) else tuple((0, 0, 0) if block is None else block)
    reader = _Reader(model, sizes, place, at or {}, iname)
    values = reader.values(_statements((loop,)))
    events = list(reader.events(before, None))
    for value in values[:iterations]:
        events += reader.events(loop.body, value)
    if len(values) <= iterations:
        events += reader.events(after, None)
    shown = len(events)
    for value in values[iterations : iterations + AHEAD]:
        events += reader.events(loop.body, value)
    lives = tuple(reader.lives(events, shown))
    names = dict.fromkeys(name for event in events[:shown] for name, _ in event.statements)
    texts = [(s.id, statement_text(s)) for s in model.kernel.statements if s.id in names]
    return LoopPicture(
        kernel=kernel,
        iname=iname,
        sizes=tuple(sorted(known.items())),
        where=((("block", str(place)),) if any(a[0] == "g" for a in model.axes) else ())
        + at_texts({**(at or {}), **own}),
        iterations=len(values),
        events=tuple(events[:shown]),
        lives=lives,
        texts=tuple(texts),
    )


def _launch(kernel: Kernel, iname: str) -> Launched:
    """The first launch that has a loop; the first one, where none does."""
    every = launched(kernel)
    if any(iname in one.calls.loops for one in every):
        raise InvalidArgumentError(
            f"the call runs the loop over '{iname}': its iterations are launches",
            instead="plot a loop of a launch",
        )
    having = (one for one in every if _find(nest_of(one.model.kernel).code, iname) is not None)
    return next(having, every[0])


def _find(
    nodes: Sequence[Code], iname: str
) -> tuple[tuple[Code, ...], For | Let, tuple[Code, ...]] | None:
    """The first loop over an iname, and what stands before and behind it in the same body."""
    for number, node in enumerate(nodes):
        if isinstance(node, (For, Let)) and node.iname == iname:
            return tuple(nodes[:number]), node, tuple(nodes[number + 1 :])
        if isinstance(node, (For, Let, If)):
            inner = _find(node.body, iname)
            if inner is not None:
                return inner
    return None


def _statements(nodes: tuple[Code, ...]) -> list[str]:
    return [node.statement.id for node in walk(nodes) if isinstance(node, Do)]


@dataclass(frozen=True)
class _Reader:
    """What runs of statements in one block, in the iterations of a loop."""

    model: Model
    sizes: Mapping[str, int]
    block: tuple[int, ...]
    at: At
    iname: str

    def domain(self, name: str) -> tuple[isl.Set, tuple[str, ...]]:
        """``{ inames, indices of threads : an instance runs in the block }``, and these names."""
        at = Instance(name, "")
        statement = self.model.statement[name]
        bounds, everywhere = self.model.everywhere(at)
        where = _sets.at_values(self.model.domain(at) & bounds, self.sizes)
        values = {iname: prim.Variable(iname) for iname in sorted(statement.inames)}
        where = restricted(where, values, {n: v for n, v in self.at.items() if n in values})
        where = in_block(where, self.model, name, self.block)
        return where, (*statement.inames, *(v.name for v in everywhere.values()))

    def values(self, statements: Sequence[str]) -> list[int]:
        """The values of the loop's iname in the block, in order."""
        found, iname = set[tuple[int, ...]](), self.iname
        for name in statements:
            if iname not in self.model.statement[name].inames:
                continue
            where = _sets.project_onto(self.domain(name)[0], [iname])
            if any(count(s.domain, [iname], {}) > VALUES for s in systems(where, [iname], {})):
                raise InvalidArgumentError(
                    f"the loop over '{iname}' has more than {VALUES:,} iterations",
                    instead=f"at={{'{iname}': range(4)}} shows some of them",
                )
            found |= points_of(where, [iname])
        return sorted(value for (value,) in found)

    def events(self, nodes: Sequence[Code], value: int | None) -> Iterator[Event]:
        """What happens in a body: an event for each statement, inner loop and barrier."""
        for node in nodes:
            if isinstance(node, If):
                if self.may_hold(node.condition, value):
                    yield from self.events(node.body, value)
            elif isinstance(node, Barrier):
                yield Event(value, barriers=(node.reason,))
            else:
                inside = (node,)
                reasons = tuple(n.reason for n in walk(inside) if isinstance(n, Barrier))
                counted = [(s, self.count(s, value)) for s in _statements(inside)]
                runs = tuple((s, times) for s, times in counted if times)
                loop = node.iname if isinstance(node, (For, Let)) else ""
                if runs:
                    yield Event(value, runs, reasons, loop)

    def may_hold(self, condition: Expression, value: int | None) -> bool:
        """Whether a condition holds for a thread of the block in an iteration; or data decide."""
        try:
            where = _sets.condition_set(condition)
        except NotAffineError:
            return True
        known = dict(self.sizes) if value is None else {**self.sizes, self.iname: value}
        for axis, inames in self.model.inames_on.items():
            if axis[0] == "g" and isinstance(axis[1], int):
                index = (*self.block, 0, 0)[axis[1]]
                known |= {name: index + self.model.lower(name) for name in inames}
        return not _sets.at_values(where, known).is_empty()

    def count(self, name: str, value: int | None) -> int:
        """How many instances of a statement run in an iteration."""
        where, names = self.domain(name)
        try:
            return count(self.iteration(where, name, value), names, {})
        except TooManyPointsError:
            return 0 if where.is_empty() else VALUES

    def iteration(self, where: isl.Set, name: str, value: int | None) -> isl.Set:
        """The part of a statement's instances that is in an iteration."""
        if value is None or self.iname not in self.model.statement[name].inames:
            return where
        return where & _sets.equality(self.iname, value)

    def lives(self, events: Sequence[Event], shown: int) -> Iterator[Life]:
        """For each event that writes a shared array: until when what it writes is read."""
        temporaries = sorted(self.model.kernel.temporaries, key=lambda t: t.name)
        for array in (t.name for t in temporaries if t.shape):
            if space_of(self.model.kernel, array) is not AddressSpace.LOCAL:
                continue
            writer: dict[tuple[int, ...], int] = {}
            last: dict[int, int] = {}
            cells: dict[int, set[tuple[int, ...]]] = {}
            for number, event in enumerate(events):
                for cell in self.touched(event, array, is_write=False):
                    if cell in writer:
                        last[writer[cell]] = number
                for cell in self.touched(event, array, is_write=True):
                    writer[cell] = number
                    cells.setdefault(number, set()).add(cell)
            for number, read in last.items():
                if number < shown:
                    yield Life(array, number, read, len(cells[number]))

    def touched(self, event: Event, array: str, *, is_write: bool) -> set[tuple[int, ...]]:
        """The cells of an array that an event reads or writes."""
        found: set[tuple[int, ...]] = set()
        running = dict(event.statements)
        for access in accesses_of(self.model.kernel):
            if access.statement not in running or access.array != array:
                continue
            if access.is_write is not is_write:
                continue
            where, _ = self.domain(access.statement)
            where = self.iteration(where, access.statement, event.iteration)
            where = where & self.model.where_evaluated(access.guards, "")
            indices = [substitute(index, self.sizes) for index in access.indices]
            image = cells_of(_sets.at_values(where, self.sizes), indices)
            found |= points_of(image, [hidden("cell", n) for n in range(len(indices))])
        return found
