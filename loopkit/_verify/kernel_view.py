"""A kernel as the search for a correspondence sees it: approximate last writers of reads.

Nothing here needs to be exact, since the search's result is proven afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import islpy as isl

from loopkit._check.value_types import ValueTypes
from loopkit._expression import Access, access_of
from loopkit._hidden import READER, WRITER, instance
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, Undecided
from loopkit._verify.solver import Solver


@dataclass(frozen=True, eq=False)
class Source:
    """A statement whose writes a read may see.

    ``relation`` holds inames of the writer (``WRITER``) and of the reader
    (``READER``), for the writes nearest in time.
    """

    writer: Statement
    relation: isl.Set


class KernelView:
    """Questions about one kernel, answered roughly and remembered."""

    def __init__(self, kernel: Kernel) -> None:
        self.model = model_of(kernel)
        self.kernel = self.model.kernel
        self.types = ValueTypes(self.model)
        self._sources: dict[tuple[str, Access], tuple[Source, ...]] = {}
        self._solvers: dict[tuple[str, Access, str], Solver] = {}

    def access(self, expr: Expression) -> Access | None:
        """An expression that is one use of an array or scalar of data."""
        return access_of(expr, self.model.data)

    def is_temporary(self, name: str) -> bool:
        """Whether a name is no argument."""
        return name in self.kernel.temporary_by_name

    def is_copy(self, statement: Statement) -> bool:
        """Whether a statement only copies a value."""
        return statement.operation is None and self.access(statement.rhs) is not None

    def is_input_copy(self, statement: Statement) -> bool:
        """Whether a statement only copies from an array that nothing writes."""
        access = self.access(statement.rhs) if self.is_copy(statement) else None
        return access is not None and access[0] not in self.model.written

    def sources(self, reader: str, access: Access) -> tuple[Source, ...]:
        """The statements whose writes a read may see, the last in the text first."""
        key = (reader, access)
        if key not in self._sources:
            self._sources[key] = tuple(self._find(reader, access))[::-1]
        return self._sources[key]

    def _find(self, reader: str, access: Access) -> Sequence[Source]:
        model = self.model
        at = Instance(reader, READER)
        cell = model.cell(access[0], [model.named(i, READER) for i in access[1]], at)
        found = []
        for writer in model.writers(access[0]):
            source = Instance(writer.id, WRITER)
            both = model.domain(at) & model.domain(source)
            with suppress(Undecided):  # It may be any cell then.
                both = both & model.same_cell(model.write_cell(source), cell)
            for piece in model.order.before(source, at):
                nearest = both & piece
                if not nearest.is_empty():
                    if self.is_copy(writer) and self.is_temporary(access[0]):
                        # Registers that rotate: the last of many writes counts.
                        with suppress(Undecided):
                            last = dataflow_of(self.kernel).of_read(reader, access).writes
                            nearest = last.get(writer.id, nearest)
                    found.append(Source(writer, nearest))
                    break
        return found

    def solver(self, reader: str, access: Access, source: Source) -> Solver:
        """Gives the writer's inames as expressions of the reader's."""
        key = (reader, access, source.writer.id)
        if key not in self._solvers:
            inames = self.model.statement[reader].inames
            self._solvers[key] = Solver(
                source.relation,
                [instance(i, WRITER) for i in source.writer.inames],
                {instance(i, READER): i for i in inames},
                self.kernel.sizes,
            )
        return self._solvers[key]
