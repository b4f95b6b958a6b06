"""The statement instances that a picture shows: iname values, execution order, block and thread.

They are enumerated exactly, from the sets of :class:`loopkit._poly.model.Model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property
from loopkit._check.instance_maps import lineage_of
from loopkit._errors import InvalidArgumentError, check_known
from loopkit._expression import evaluate, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression, is_integer
from loopkit._points import smallest_point
from loopkit._poly.integer_points import (
    EndlessError,
    Rows,
    TooManyPointsError,
    count,
    enumerated,
    systems,
)
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._spelling import shown

At = Mapping[str, "int | range"]
"""What is known of inames: their value, or the values that they may have."""

POINTS = 200_000
"""Instances that one picture looks at."""

CELLS = 4096
"""Cells that one picture has."""


def check_statement(kernel: Kernel, statement: str | None) -> str:
    """A statement's id; the first of those in the most loops where none is named."""
    if statement is None:
        return max(kernel.statements, key=lambda s: len(s.inames)).id
    return kernel.statement(statement).id


def restricted(where: isl.Set, values: Mapping[str, Expression], at: At) -> isl.Set:
    """``where`` with given values of some names, each of which denotes an expression."""
    check_known("iname", at, values)
    for name, known in at.items():
        value = values[name]
        if isinstance(known, range):
            if not known:
                raise InvalidArgumentError(f"there are no values of '{name}' in {known!r}")
            low, high = _ends(known)
            steps = prim.Remainder(prim.Sum((value, -low)), abs(known.step))
            ends = (value, ">=", low), (value, "<=", high), (steps, "==", 0)
            where = where & _sets.comparisons(ends)
        elif is_integer(known):
            where = where & _sets.comparisons([(value, "==", int(known))])
        else:
            raise InvalidArgumentError(
                f"at says which values '{name}' has: a number or a range, not {shown(known)}"
            )
    return where


def at_texts(at: At) -> tuple[tuple[str, str], ...]:
    """What is known of inames, as text."""
    return tuple(
        (name, "{}..{}".format(*_ends(v)) if isinstance(v, range) else str(v))
        for name, v in at.items()
    )


def _ends(values: range) -> tuple[int, int]:
    """The least and the greatest value, of however many."""
    low, high = sorted((values[0], values[-1]))
    return low, high


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances of one statement, a row each, in the order in which they run.

    ``rows`` has a column for each of ``names``, which are the statement's inames in the schedule.
    ``values`` says what each iname stands for: those of the schedule for themselves, those of the
    text for expressions over these.  ``text`` are the latter, in the order of its loops.
    """

    model: Model
    statement: str
    sizes: Mapping[str, int]
    names: tuple[str, ...]
    loops: tuple[str, ...]
    rows: Rows
    values: Mapping[str, Expression]
    text: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Rows:
        """The value of an iname of the schedule or of the text in each row."""
        return evaluated(self.values[name], self.names, self.rows, self.sizes)

    @cached_property
    def time(self) -> Rows:
        """The turn of each row: its rank; rows of one turn differ in parallel inames alone."""
        if not len(self.rows):
            return np.zeros(0, np.int64)
        steps = self.rows[:, [self.names.index(name) for name in self.loops]]
        return np.unique(steps, axis=0, return_inverse=True)[1].reshape(-1)

    def coordinates(self, kind: str) -> tuple[str, ...]:
        """The inames that are coordinates on the block (``g``) or thread (``l``) axes, x first."""
        found = [(axis, iname) for iname in self.names if (axis := self.model.axis_of(iname))]
        return tuple(iname for axis, iname in sorted(found, key=str) if axis[0] == kind)

    def index(self, kind: str) -> Rows:
        """The block or the thread of each row: indices on x, y and z; 0 where there is none."""
        found = np.zeros((len(self.rows), 3), np.int64)
        for iname in self.coordinates(kind):
            axis = self.model.axis_of(iname)
            if axis is not None and isinstance(axis[1], int):
                place = self.rows[:, self.names.index(iname)]
                found[:, axis[1]] = place - self.model.lower(iname)
        return found


def evaluated(expr: Expression, names: Sequence[str], rows: Rows, sizes: Mapping[str, int]) -> Rows:
    """An expression over names and sizes, in each row."""
    known: dict[str, Any] = dict(sizes)
    known |= {name: rows[:, column] for column, name in enumerate(names)}
    used = sorted(variable_names(expr))
    if _sets.is_affine(expr):
        value = evaluate(expr, {n: known[n] for n in used})
    else:  # minima and choices are of single numbers
        columns = [np.broadcast_to(known[n], len(rows)).tolist() for n in used]
        each = zip(*columns, strict=True) if used else [()] * len(rows)
        value = [evaluate(expr, dict(zip(used, numbers, strict=True))) for numbers in each]
    return np.broadcast_to(np.asarray(value, np.int64), (len(rows),))


def text_inames(kernel: Kernel, statement: str, sizes: Mapping[str, int]) -> dict[str, Expression]:
    """The inames of the original text around a statement, outermost first, with their values."""
    lineage = lineage_of(kernel)
    image = lineage.image_of.get(statement)
    values: dict[str, Expression] = {}
    if image is not None:
        of_text = dict(image.values)
        outer = [iname for iname, _ in lineage.root.paths[image.origin]]
        inames = dict.fromkeys((*(i for i in outer if i in of_text), *of_text))
        values |= {name: substitute(of_text[name], sizes) for name in inames}
    return values


def _own(model: Model, statement: str) -> tuple[str, ...]:
    """The inames of a statement in the schedule: blocks, then loops, then threads, x last."""
    loops = model.order.loops(statement)
    mine = model.statement[statement].inames - set(loops)
    side = sorted(mine, key=lambda name: str(model.axis_of(name)), reverse=True)
    blocks = [name for name in side if (model.axis_of(name) or "l")[0] == "g"]
    return (*blocks, *loops, *(name for name in side if name not in blocks))


def first_values(
    kernel: Kernel, statement: str, sizes: Mapping[str, int], at: At, *, keep: int
) -> dict[str, int]:
    """Of more inames than a picture has axes, what all but the last few are in the first instance.

    None where ``at`` leaves open no more than three.
    """
    model = model_of(kernel)
    text = text_inames(kernel, statement, sizes)
    own = _own(model, statement)
    values = text | {n: prim.Variable(n) for n in own}
    left = [n for n in text or own if isinstance(at.get(n, range(1)), range)]
    if len(left) <= 3 or model.bounds_from_data(statement):
        return {}
    where = _sets.at_values(model.domain(Instance(statement, "")), sizes)
    point = smallest_point(restricted(where, values, at), own)
    if point is None:
        return dict.fromkeys(left[:-keep], 0)
    return {
        n: int(evaluate(values[n], {v: point[v] for v in variable_names(values[n])}))
        for n in left[:-keep]
    }


def known_inames(kernel: Kernel, statement: str, sizes: Mapping[str, int]) -> frozenset[str]:
    """The inames that identify instances of a statement, those of the text among them."""
    return frozenset({*text_inames(kernel, statement, sizes), *_own(model_of(kernel), statement)})


def instances_of(
    kernel: Kernel, statement: str, sizes: Mapping[str, int], at: At, most: int = POINTS
) -> Instances:
    """The instances of a statement at these sizes, those alone that ``at`` leaves.

    Raises :class:`~loopkit.InvalidArgumentError` where there are more than ``most``, or where data
    decide how far its loops go.
    """
    model = model_of(kernel)
    if loaded := model.bounds_from_data(statement):
        raise InvalidArgumentError(
            f"how far the loops around '{statement}' go, data say ({', '.join(loaded)}): "
            "its instances are not known before it runs"
        )
    names = _own(model, statement)
    values = text_inames(kernel, statement, sizes)
    text = tuple(values)
    values |= {name: prim.Variable(name) for name in names}
    where = restricted(model.domain(Instance(statement, "")), values, at)
    try:
        found = count_to(most, where, names, sizes)
    except EndlessError as error:
        raise InvalidArgumentError(
            f"'{statement}' has endlessly many instances: '{error.name}' has no end",
            instead=f"at={{'{error.name}': range(16)}} shows some of them",
        ) from None
    if found > most:
        raise InvalidArgumentError(
            f"'{statement}' has {found:,} instances here, and a picture looks at {most:,} at most",
            instead=f"smaller sizes, or {fixing([n for n in names if n not in at])}",
        )
    rows = rows_of(where, names, sizes)
    loops = model.order.loops(statement)
    side = [n for n in names if n not in loops]
    order = [rows[:, names.index(n)] for n in (*loops, *side)]
    if order:
        rows = rows[np.lexsort(order[::-1])]
    return Instances(model, statement, dict(sizes), names, loops, rows, values, text)


def count_to(most: int, where: isl.Set, names: Sequence[str], sizes: Mapping[str, int]) -> int:
    """How many points a set has over names; one more than ``most`` where those are too many."""
    try:
        return count(where, names, sizes)
    except TooManyPointsError:
        return most + 1


def rows_of(where: isl.Set, names: Sequence[str], sizes: Mapping[str, int]) -> Rows:
    """The points of a set over names, a row each."""
    parts = [enumerated(system)[:, : len(names)] for system in systems(where, names, sizes)]
    return np.concatenate([np.zeros((0, len(names)), np.int64), *parts])


def fixing(names: Iterable[str]) -> str:
    """How to show less of some inames."""
    some = list(names)[:2]
    values = ", ".join(f"'{name}': 0" for name in some) or "'i': 0"
    ranges = f"'{some[0] if some else 'i'}': range(16)"
    return f"less of the loops: at={{{values}}}, or at={{{ranges}}}"
