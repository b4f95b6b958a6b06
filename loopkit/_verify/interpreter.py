"""Running a kernel at small sizes, with exact numbers and a memory of how each came about.

Besides the order of the tree, kernels with blocks and threads are run in other
orders that nothing forbids: a schedule with a race shows it in one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from loopkit import _budget, _sets
from loopkit._kernel import Statement
from loopkit._poly.model import Model
from loopkit._reference.points import TooManyPointsError, points_of
from loopkit._verify import exact_numbers
from loopkit._verify.compile_statement import CompiledStatement
from loopkit._verify.example_data import ExampleData, Place, TracedValue
from loopkit._verify.execution_orders import Order, schedule_positions
from loopkit._verify.kernel_at_sizes import (
    DataDependentError,
    KernelAtSizes,
    Sizes,
    UnsupportedError,
)


class Interpreter(KernelAtSizes):
    """One kernel, ready to be run at one choice of sizes.

    ``work`` counts the cells that a run reads and writes; there are no more than ``most``.
    """

    def __init__(self, model: Model, sizes: Sizes, most: int) -> None:
        super().__init__(model.kernel, sizes)
        self.numbers = schedule_positions(self.kernel)
        self.compiled: list[CompiledStatement] = []
        self.work = 0
        for statement in self.kernel.statements:
            self._add(statement, most)

    def _add(self, statement: Statement, most: int) -> None:
        domain = self.kernel.statement_domain(statement)
        if _sets.involved_names(domain) - statement.inames - self.sizes.keys():
            raise DataDependentError(f"data decide how often '{statement.id}' runs")
        columns = tuple(i for i in self.kernel.all_inames if i in statement.inames)
        try:
            rows = points_of(domain, columns, self.sizes, _budget.EXAMPLE_INSTANCES).tolist()
        except TooManyPointsError:
            raise UnsupportedError("too many instances") from None
        missing = [
            a for a in self.copies.get(statement.written, ()) if a.iname_of(statement) is None
        ]
        instances = len(rows) * math.prod(a.extent for a in missing)
        self.work += instances * (1 + len(statement.reads))
        if self.work > most:
            raise UnsupportedError("too many instances")
        self.compiled.append(
            CompiledStatement(self, statement, self.numbers[statement.id], columns, rows, missing)
        )

    def run(self, data: ExampleData, order: Order) -> dict[str, dict[Place, TracedValue]]:
        """The cells that are written at the end, by array and place."""
        memory: dict[str, dict[Place, TracedValue]] = {}
        events = []
        for number, step in enumerate(self.compiled):
            events += [(step.time(row, order), number, row) for row in step.all_rows()]
        events.sort()

        def load(name: str, place: Place, used: list[TracedValue | bool]) -> Any:
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

    def _execute(
        self, number: int, row: tuple[int, ...], load: Callable[..., Any]
    ) -> TracedValue | None:
        """What one instance writes; None where a condition keeps it from running."""
        step = self.compiled[number]
        used: list[TracedValue | bool] = []
        try:
            result = step.function(load, used, *row)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise UnsupportedError(str(error)) from None
        if result is None:
            return None
        place, value = result
        name = step.statement.written
        point = dict(zip(step.columns, row, strict=False))
        value = exact_numbers.converted(value, self.dtypes[name])
        if exact_numbers.is_unwieldy(value):
            raise UnsupportedError("exact numbers get too large")
        return TracedValue(value, name, place, step.statement.id, point, tuple(used))
