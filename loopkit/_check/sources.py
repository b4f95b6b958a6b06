"""Where the values that a statement reads come from, in the kernel of the text.

For a read, the sources are the last write that surely sets the cell, and the
writes after it that change the cell or may: the updates of a reduction, and
writes under conditions on data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from loopkit import _sets
from loopkit._check.model import Cell, Instance, Model
from loopkit._kernel import Statement
from loopkit._nodes import Expression

WRITER = "__W"
READER = "__R"
_KILLER = "__K"

Access = tuple[str, tuple[Expression, ...]]


@dataclass(frozen=True, eq=False)
class Sources:
    """The writes that a read may see.

    ``writes[id]`` relates inames of writer ``id`` (suffix ``__W``) to those of
    the reader (suffix ``__R``).  ``untouched`` holds the reader's instances
    that may see what the array held before the kernel.
    """

    writes: Mapping[str, isl.Set]
    untouched: isl.Set

    @cached_property
    def readers_of(self) -> Mapping[str, isl.Set]:
        """The reader's instances that see each writer."""
        return {w: _without(s, WRITER) for w, s in self.writes.items()}


def _without(relation: isl.Set, suffix: str) -> isl.Set:
    names = [n for n in _sets.names_of(relation) if n.endswith(suffix)]
    return _sets.project_out(relation, names)


def is_update(statement: Statement) -> bool:
    """Whether a statement adds to what its cell holds, in an order that is free."""
    return statement.operation is not None


class TextOrder:
    """Sources of all reads in one kernel (memoised)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._reads: dict[tuple[str, Access, bool], Sources] = {}
        self._ends: dict[str, tuple[isl.Set, Sources]] = {}

    def of_read(self, statement: str, access: Access) -> Sources:
        """The sources of one read of a statement."""
        own = self.model.statement[statement]
        is_own = is_update(own) and access == own.write
        key = (statement, access, is_own)
        if key not in self._reads:
            at = Instance(statement, READER)
            indices = self.model.indices(at, access[1])
            cell = self.model.cell(access[0], indices, at)
            self._reads[key] = self._sources(at, cell, self.model.domain(at), updates=not is_own)
        return self._reads[key]

    def at_end(self, statement: str) -> tuple[isl.Set, Sources]:
        """Which instances of a write (suffix ``__R``) are left at the end, and what is there then.

        The statement is among its own sources.
        """
        if statement not in self._ends:
            own = Instance(statement, READER)
            written = self.model.write_cell(own)
            domain = self.model.domain(own)
            left = (domain - self._killed(own, written, domain)).coalesce()
            found = self._sources(Instance(None, READER), written, left, updates=True)
            self._ends[statement] = (left, Sources(found.writes, left - left))
        return self._ends[statement]

    def _killed(self, own: Instance, cell: Cell, domain: isl.Set) -> isl.Set:
        """Those instances of a write that another write surely replaces."""
        dead = domain - domain
        for other in self._sure_writers(cell.array):
            at = Instance(other.id, _KILLER)
            both = (
                domain
                & self.model.domain(at)
                & self.model.same_cell(cell, self.model.write_cell(at))
            )
            later = _meet_any(both, self.model.earlier(own, at))
            dead = dead | _without(later, _KILLER)
        return dead

    def _sure_writers(self, array: str) -> list[Statement]:
        model = self.model
        return [w for w in model.writers(array) if not is_update(w) and model.is_exact(w)]

    def _sources(self, at: Instance, cell: Cell, domain: isl.Set, *, updates: bool) -> Sources:
        model = self.model
        writes: dict[str, isl.Set] = {}
        reached: dict[str, isl.Set] = {}
        for writer in model.writers(cell.array):
            if is_update(writer) and not updates:
                continue
            source = Instance(writer.id, WRITER)
            both = domain & model.domain(source) & model.same_cell(model.write_cell(source), cell)
            before = _meet_any(both, model.earlier(source, at))
            if not before.is_empty():
                reached[writer.id] = before
        sure = [w for w in self._sure_writers(cell.array) if w.id in reached]
        for writer_id, before in reached.items():
            own = Instance(writer_id, WRITER)
            written = model.write_cell(own)
            dead = before - before
            for other in sure:
                killer = Instance(other.id, _KILLER)
                between = before & model.domain(killer)
                between = between & self.model.same_cell(written, model.write_cell(killer))
                between = _meet_any(between, model.earlier(own, killer))
                between = _meet_any(between, model.earlier(killer, at))
                dead = dead | _without(between, _KILLER)
            alive = (before - dead).coalesce()
            if not alive.is_empty():
                writes[writer_id] = alive
        untouched = domain
        for writer in sure:
            untouched = untouched - _without(reached[writer.id], WRITER)
        return Sources(writes, untouched.coalesce())


def _meet_any(base: isl.Set, pieces: Sequence[isl.Set]) -> isl.Set:
    result = base - base
    for piece in pieces:
        result = result | (base & piece)
    return result
