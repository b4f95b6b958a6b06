"""Through arrays: from what is read to the statements that wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import islpy as isl

from loopkit import _sets
from loopkit._hidden import (
    NEW,
    NEW_SOURCE,
    OLD,
    OLD_SOURCE,
    READER,
    WRITER,
    instance,
    label_of,
    labelled,
    plain,
    variable,
)
from loopkit._poly.pairs import Undecided, equal
from loopkit._verify.kernel_view import Access, KernelView, Source
from loopkit._verify.search_context import SearchContext
from loopkit._verify.search_state import ChooseOrigin, MatchValues, Pending, Reader, State

_DEPTH = 12


class SourceMatcher:
    """Follows values through the arrays of two kernels."""

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        self.root = context.root
        self.new = context.new

    def new_sources(self, todo: MatchValues, its: Access) -> tuple[Source, ...]:
        """The statements whose writes the new side may see."""
        return self.new.sources(todo.new_reader.statement.id, its)

    def old_sources(self, todo: MatchValues, mine: Access) -> tuple[Source, ...]:
        """The statements whose writes the root's side may see."""
        return self.root.sources(todo.old_reader.statement.id, mine)

    def follow_new(
        self, todo: MatchValues, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Go on with what the new kernel stored in the temporary that it reads."""
        sources = self.new_sources(todo, its)
        if any(s.writer.operation is not None for s in sources):
            return
        for source in sources:
            writer = source.writer
            if writer.id in state.origin:
                continue
            reader = self.source_reader(self.new, todo.new_reader, its, source)
            if reader is not None:
                further = replace(todo, new_reader=reader, new_expr=writer.rhs)
                yield replace(state, copies=state.copies | {writer.id}), (further, rest)

    def follow_old(
        self, todo: MatchValues, mine: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Go on with what the old kernel stored in the temporary that it reads."""
        sources = self.old_sources(todo, mine)
        if any(s.writer.operation is not None for s in sources):
            return
        for source in sources:
            reader = self.source_reader(self.root, todo.old_reader, mine, source)
            if reader is not None:
                further = replace(todo, old_reader=reader, old_expr=source.writer.rhs)
                yield state, (further, rest)

    def source_reader(
        self, view: KernelView, reader: Reader, access: Access, source: Source
    ) -> Reader | None:
        """A writer as the next reader, its inames over those of the pair."""
        if reader.depth >= _DEPTH:
            return None
        solver = view.solver(reader.statement.id, access, source)
        return Reader(source.writer, reader.label, behind=reader, solver=solver)

    def pair_sources(
        self, todo: MatchValues, mine: Access, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Pair the statements that wrote what the two sides read."""
        where = state.where[todo.new]
        olds = self.old_sources(todo, mine)
        news = self.new_sources(todo, its)
        if not olds or not news:
            return
        pending = rest
        for source in reversed(news):
            known = state.origin.get(source.writer.id)
            if known is not None and any(s.writer.id == known for s in olds):
                continue
            relation = self.placed(source, todo.new_reader, NEW_SOURCE)
            candidates = []
            order = {
                s.id: n
                for n, s in enumerate(
                    self.context.ranked(tuple(s.writer for s in olds), source.writer)
                )
            }
            for old in sorted(olds, key=lambda s: order[s.writer.id]):
                if old.writer.operation != source.writer.operation:
                    continue
                both = where & relation & self.placed(old, todo.old_reader, OLD_SOURCE)
                onto = self.composed(both, OLD_SOURCE, NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((old.writer.id, onto))
            pending = (
                ChooseOrigin(source.writer.id, tuple(candidates), self.new.is_copy(source.writer)),
                pending,
            )
        yield state, pending

    def placed(self, source: Source, reader: Reader, label: str) -> isl.Set:
        """A source's relation, its writer with ``label``, its reader's inames over the pair's."""
        result = self.renamed(source.relation, {WRITER: label})
        for iname in reader.statement.inames:
            value = reader.value(iname)
            if value is None:
                continue
            with suppress(Undecided):
                result = result & equal(variable(iname, READER), value)
        return _sets.project_out(result, labelled(_sets.names_of(result), READER))

    def renamed(self, relation: isl.Set, labels: Mapping[str, str]) -> isl.Set:
        names = {
            name: instance(plain(name), labels[label])
            for name in _sets.names_of(relation)
            if (label := label_of(name)) in labels
        }
        return _sets.rename(relation, names)

    def composed(self, relation: isl.Set, old: str, new: str) -> isl.Set:
        """A relation onto the names with the two labels, which become the pair's."""
        names = _sets.names_of(relation)
        keep = [*self.context.sizes, *labelled(names, old, new)]
        onto = _sets.project_onto(relation, keep)
        return self.renamed(onto, {old: OLD, new: NEW})
