"""Comparison of the results of two kernels on the same data, at given sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopkit._assertions.assertion_values import in_order
from loopkit._assertions.check import obeying_data
from loopkit._poly.model import Model
from loopkit._replay.examples import ExampleData, Place, Sizes
from loopkit._replay.interpreter import TREE, Cells, Interpreter, Order, TracedValue

Difference = tuple[str, Place, TracedValue, TracedValue]
"""A cell that two kernels leave different, and what each leaves there."""


class Both:
    """Both kernels at some sizes, where a run of each reads and writes ``most`` cells at most.

    ``work`` counts those of one trial.
    """

    def __init__(self, before: Model, after: Model, sizes: Sizes, most: int) -> None:
        self.one, self.two = (Interpreter(model, sizes, most) for model in (before, after))
        self.sizes = sizes
        self.work = self.one.work + len(self.two.orders) * self.two.work

    def differences(self, trials: int) -> Iterator[tuple[ExampleData, Order, Difference]]:
        """For data of each trial, and each order that nothing forbids, the first difference."""
        for trial in range(trials):
            data = self.data(trial)
            expected = self.one.run(data, TREE)
            for order in self.two.orders:
                found = self.first(data, expected, self.two.run(data, order))
                if found is not None:
                    yield data, order, found

    def data(self, trial: int) -> ExampleData:
        """What the arguments hold in a trial."""
        return ExampleData(trial, self.given(trial))

    def first(self, data: ExampleData, expected: Cells, got: Cells) -> Difference | None:
        """The first cell that differs: outputs in the order of the arguments, cells row by row."""
        for name in self.one.outputs:
            mine, its = expected[name], got.get(name, {})
            for place in sorted({*mine, *its}):
                a = mine.get(place) or self.one.initial(data, name, place)
                b = its.get(place) or self.two.initial(data, name, place)
                if not a.is_close(b, self.one.dtypes[name]):
                    return name, place, a, b
        return None

    def given(self, trial: int) -> dict[str, np.ndarray[Any, Any]]:
        """Index arrays that obey what both kernels assert of them.

        Where integers decide how often statements run, they rise, as where rows of a sparse
        matrix begin.
        """
        one, two = self.one, self.two
        arrays = {
            a.name: (one.shapes[a.name], one.dtypes[a.name])
            for a in one.kernel.passed
            if a.name in one.shapes and one.dtypes[a.name].kind in "iu"
        }
        found = {}
        if one.loads_bounds or two.loads_bounds:
            given = one.given(ExampleData(trial))
            found = {n: np.sort(given[n]) for n, (shape, _) in arrays.items() if len(shape) == 1}
        assertions = in_order((*{*one.kernel.assertions, *two.kernel.assertions},))
        if assertions:
            rng = np.random.default_rng(trial)
            found |= obeying_data(assertions, arrays, one.sizes, rng)
        return found
