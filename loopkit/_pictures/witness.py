"""Pictures of a refusal: two instances in their order in the text, and in the new schedule.

The instances around the two are shown as well, at their positions in the text.  Numbers are ranks
in time among the instances shown: first in the text's order, then in that of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from loopkit import _sets
from loopkit._budget import in_turn
from loopkit._check.instance_maps import Lineage
from loopkit._errors import Instance, InvalidArgumentError, Witness
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._pictures.grid import FILL, Arrow, Cell, Figure, Grid, Key, Outline, seated_at, ticks
from loopkit._pictures.picture import Picture
from loopkit._pictures.shown_instances import Instances, instances_of, known_inames
from loopkit._points import smallest_point
from loopkit._poly.model import Model, model_of
from loopkit._spelling import is_name
from loopkit._tree import Loop, Tree, build

NEAR = 3
"""Instances on each side of the two that are shown."""

HIT = Key("the cell", "series-3", FILL)
NEAR_BY = Key("cells around it", "", FILL, "line")

Values = tuple[tuple[str, int], ...]
Name = tuple[str, Values]
"""A statement, and the values of its inames."""


@dataclass(frozen=True)
class Run:
    """An instance and its turn: its rank in time among those shown.

    ``time`` is None where data decide which others run; ``block`` and ``thread`` are indices
    on x, y and z.
    """

    statement: str
    values: Values
    time: int | None
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)

    @property
    def name(self) -> Name:
        """The statement and the values of its inames."""
        return self.statement, self.values


@dataclass(frozen=True)
class WitnessPicture(Picture):
    """The two instances of a witness among their neighbours, in the text and as scheduled.

    ``first`` comes first in the text, or writes; ``then`` is the other one.  ``in_text`` and
    ``scheduled`` hold neighbours, too.  ``extents`` are those of the array, where they are known.
    Without ``has_words``, the sentences are left to what stands around the picture.
    """

    kernel: Kernel
    said: tuple[str, ...]
    witness: Witness
    sizes: tuple[tuple[str, int], ...]
    first: Name | None
    then: Name | None
    in_text: tuple[Run, ...]
    scheduled: tuple[Run, ...]
    extents: tuple[int, ...] = ()
    has_words: bool = True

    def figure(self) -> Figure:
        """Both orders beside each other, and the cell."""
        grids = []
        if self.in_text:
            grids.append(self._grid("in the text", self.in_text, "ok"))
        if self.scheduled:
            grids.append(self._grid("as scheduled", self.scheduled, "refused"))
        grids += self._cell()
        said = " ".join(self.said)
        return self._figure(
            self.said[0], self.sizes, grids, description=said, has_words=self.has_words
        )

    def _notes(self) -> Sequence[str]:
        return self.said[1:]

    def _grid(self, title: str, runs: Sequence[Run], role: str) -> Grid:
        statements = list(dict.fromkeys(run.statement for run in runs))
        keys = sorted({(statements.index(r.statement), r.values[:-1]) for r in runs}, key=_plain)
        columns, gaps = ticks(r.values[-1][1] if r.values else 0 for r in runs)
        seats = {
            r.name: (
                keys.index((statements.index(r.statement), r.values[:-1])),
                columns.index(r.values[-1][1] if r.values else 0),
            )
            for r in runs
        }
        inames = dict.fromkeys(r.values[-1][0] for r in runs if r.values)
        by_name = {run.name: run for run in runs}
        several = len(statements) > 1
        names = []
        for at, outer in keys:
            words = [statements[at]] if several or not outer else []
            names.append(" ".join([*words, *(f"{n}={v}" for n, v in outer)]))
        return Grid(
            title=title,
            rows=tuple(names),
            columns=tuple(map(str, columns)) if inames else ("",),
            column_name=", ".join(inames),
            cells=tuple(self._run(run, seats[run.name]) for run in by_name.values()),
            outlines=tuple(
                Outline(frozenset({seats[name]}), stroke, _text(name), thick=1.5)
                for name, stroke in self._colours
                if name in seats
            ),
            arrows=tuple(self._arrow(by_name, seats, role)),
            size=38,
            column_gaps=gaps,
            row_gaps=frozenset(
                n for n in range(1, len(keys)) if keys[n][0] != keys[n - 1][0] and len(keys) > 4
            ),
        )

    def _run(self, run: Run, seat: tuple[int, int]) -> Cell:
        fill = dict(self._colours).get(run.name, "")
        where = "" if not (any(run.block) or any(run.thread)) else (
            f", block {run.block}, thread {run.thread}"
        )  # fmt: skip
        time, border = _number(run.time), "" if fill else "line"
        title = f"{_text(run.name)}: turn {time or 'not known'}{where}"
        return Cell(*seat, time, title, fill, FILL, border)

    def _arrow(
        self, runs: Mapping[Name, Run], seats: Mapping[Name, tuple[int, int]], role: str
    ) -> Iterator[Arrow]:
        one, two = (runs.get(name) if name else None for name in (self.first, self.then))
        if one is None or two is None or one == two:
            return
        unordered = role == "refused" and self.witness.kind == "race"
        if one.time is None or two.time is None:
            if role == "refused":
                return
        elif two.time < one.time:
            one, two = two, one
        said = "nothing orders" if unordered else "runs first:"
        title, dash = f"{said} {_text(one.name)}, {_text(two.name)}", "4 3" if unordered else ""
        yield Arrow((seats[one.name], seats[two.name]), role, title, dash, 2, not unordered)

    def _cell(self) -> Iterator[Grid]:
        cell, array = self.witness.cell, self.witness.array
        if not cell or array is None:
            return
        ends = [None] * (len(cell) - len(self.extents)) + [*self.extents]
        is_inside = all(end is None or 0 <= i < end for i, end in zip(cell, ends, strict=True))
        around = [_around(at, end) for at, end in zip(cell, ends, strict=True)][-2:]
        seated = seated_at({place: place for place in product(*around)})
        text = f"{array}[{', '.join(map(str, cell))}]"
        names = [*map(str, cell[:-2]), *"·" * len(around)]
        seats = {seat: place == cell[-2:] for place, seat in seated.seats.items()}
        yield seated.grid(
            title=f"the cell {text}" + ("" if is_inside else ", outside of the array"),
            column_name=f"{array}[{', '.join(names)}]",
            cells=tuple((HIT if is_hit else NEAR_BY).cell(*seat) for seat, is_hit in seats.items()),
            outlines=tuple(
                Outline(frozenset({seat}), "refused", text)
                for seat, is_hit in seats.items()
                if is_hit
            ),
        )

    @property
    def _colours(self) -> list[tuple[Name, str]]:
        """The two instances, each with its colour."""
        both = ((self.first, "series-1"), (self.then, "series-0"))
        return [(name, colour) for name, colour in both if name is not None]

    def _legend(self, figure: Figure) -> Iterator[Key]:
        runs = {run.name: _number(run.time) for run in (self.scheduled or self.in_text)}
        for name, fill in self._colours:
            if not (name == self.first and fill == "series-0"):
                yield Key(_text(name), fill, FILL, label=runs.get(name, "?"))
        if len(runs) > 1:
            yield Key("its turn among the instances shown", label="n")
        if self.first is not None and self.first != self.then:
            if self.in_text:
                yield Key("the order they have", stroke="ok", arrow=True)
            if self.witness.kind == "race":
                yield Key("nothing orders them", "", 0.3, "refused", "4 3", True, False)
            else:
                yield Key("the order they would get", stroke="refused", arrow=True)


def _around(at: int, end: int | None) -> list[int]:
    """An index and its neighbours in the array."""
    near = range(at - NEAR, at + NEAR + 1)
    return [i for i in near if i == at or (i >= 0 and (end is None or i < end))]


def _number(time: int | None) -> str:
    return "" if time is None else str(time)


def _plain(key: tuple[int, Values]) -> tuple[int, tuple[int, ...]]:
    return key[0], tuple(value for _, value in key[1])


def _text(name: Name) -> str:
    values = ", ".join(f"{n}={v}" for n, v in name[1])
    return f"{name[0]}[{values}]" if values else name[0]


@in_turn
def witness_picture(witness: Witness | None, why: str) -> WitnessPicture:
    """The witness of a refusal as a picture; ``why`` says in words what it shows.

    Raises :class:`~loopkit.InvalidArgumentError` where there is none, or it is not one of a step.
    """
    if witness is None or witness.refused is None:
        raise InvalidArgumentError("this error has no two instances that could be drawn")
    lineage, changed = witness.refused
    schedule = changed.recorded(changed.history, lineage)
    sizes = _sizes(witness, lineage, schedule)
    of_text = {**sizes, **dict(lineage.fixed)}
    pair = [_name(i) for i in (witness.source, witness.sink)]
    wanted = [name for name in pair if name is not None]
    text = {s.id: s.id for s in lineage.root.statements}
    of_schedule = {
        s.id: lineage.image_of[s.id].origin if s.id in lineage.image_of else s.id
        for s in schedule.statements
    }
    lines = [line.strip() for line in why.splitlines()]
    shape = schedule.array(witness.array).shape if witness.array else None
    return WitnessPicture(
        kernel=schedule,
        said=(f"{lines[0][:1].upper()}{lines[0][1:]}", *lines[1:]),
        witness=witness,
        sizes=tuple(sorted(witness.parameters.items())),
        first=pair[0],
        then=pair[1],
        in_text=_runs(lineage.root, text, wanted, of_text),
        scheduled=_runs(schedule, of_schedule, wanted, sizes),
        extents=tuple(_sets.value_at(e, of_text) for e in shape or () if _sets.is_affine(e)),
    )


def _name(instance: Instance | None) -> Name | None:
    """How a picture calls an instance; None for what is no statement."""
    if instance is None or not is_name(instance.statement):
        return None
    return instance.statement, tuple(instance.inames.items())


def _sizes(witness: Witness, lineage: Lineage, schedule: Kernel) -> dict[str, int]:
    """The witness's sizes, and the smallest of others for which its instances exist."""
    where = schedule.assumptions.set
    for name, value in witness.parameters.items():
        where = where & _sets.equality(name, value)
    for instance in (witness.source, witness.sink):
        for kernel in (lineage.root, schedule):
            if instance is not None and instance.statement in kernel.statement_by_id:
                domain = kernel.statement_domain(instance.statement)
                for name, value in instance.inames.items():
                    domain = domain & _sets.equality(name, value)
                at = _sets.project_onto(domain, schedule.sizes)
                where = where & at if not (where & at).is_empty() else where
                break
    point = smallest_point(_sets.project_onto(where, schedule.sizes), sorted(schedule.sizes)) or {}
    return {name: point.get(name, 1) for name in schedule.sizes}


def _runs(
    kernel: Kernel, origins: Mapping[str, str], wanted: Sequence[Name], sizes: Mapping[str, int]
) -> tuple[Run, ...]:
    """The instances of some statements around the wanted ones, with their turns."""
    model = model_of(kernel)
    stamps = _places(model)
    found: dict[Name, tuple[tuple[int, ...], Instances, int]] = {}
    runs = []
    for name, values in wanted:
        for statement in [s for s, origin in origins.items() if origin == name]:
            # Of an instance that is one for several, the text's inames say more.
            known = known_inames(kernel, statement, sizes)
            near = {
                iname: value if n < len(values) - 2 else range(value - NEAR, value + NEAR + 1)
                for n, (iname, value) in enumerate(values)
                if iname in known
            }
            try:
                some = instances_of(kernel, statement, sizes, near)
            except InvalidArgumentError:  # data decide how many instances there are
                runs.append(Run(name, values, None))
                continue
            columns = [
                some.column(iname).tolist() if iname in known else [value] * len(some)
                for iname, value in values
            ]
            for row in range(len(some)):
                own = tuple((n, c[row]) for (n, _), c in zip(values, columns, strict=True))
                loops = dict(zip(some.names, some.rows[row].tolist(), strict=True))
                time = tuple(loops[p] if isinstance(p, str) else p for p in stamps[statement])
                found.setdefault((name, own), (time, some, row))
    turns = {time: n for n, time in enumerate(sorted({time for time, _, _ in found.values()}))}
    for (statement, values), (time, some, row) in found.items():
        block, thread = (tuple(some.index(kind)[row].tolist()) for kind in "gl")
        runs.append(Run(statement, values, turns[time], block, thread))
    return tuple(sorted(runs, key=lambda run: (run.time or 0, run.statement, run.values)))


def _places(model: Model) -> Mapping[str, tuple[str | int, ...]]:
    """For each statement the places in the tree and the loops down to it: its time."""
    entries = sorted(
        ((s.id, model.order.place(s.id)) for s in model.kernel.statements),
        key=lambda entry: entry[1][0],
    )
    found: dict[str, tuple[str | int, ...]] = {}

    def visit(nodes: Tree, outer: tuple[str | int, ...]) -> None:
        for number, node in enumerate(nodes):
            if isinstance(node, Loop):
                visit(node.body, (*outer, number, node.iname))
            elif isinstance(node, str):
                found[node] = (*outer, number)

    visit(build([(name, path) for name, (_, path) in entries]), ())
    return found
