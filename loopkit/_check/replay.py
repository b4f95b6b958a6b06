"""Whether a refused schedule computes something else: text and schedule are run and compared.

Violations are found with sets, which ignore values and most data. Text and schedule are executed
on the same data at the sizes of a witness, the schedule in several orders of blocks and threads. A
difference shows in what instances store, or in the final arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal

import islpy as isl

from loopkit import _budget
from loopkit._budget import SpentError, apart_from_kept, within
from loopkit._cached import memoised
from loopkit._check.instance_maps import Lineage
from loopkit._check.schedule_proof import violations_of
from loopkit._check.violation import Aim, Case, Violation, smallest_case
from loopkit._errors import LoopkitError
from loopkit._expression import evaluate
from loopkit._kernel import Kernel
from loopkit._poly.dataflow import is_update
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Undecided
from loopkit._replay.compare_results import Both
from loopkit._replay.examples import (
    ExampleData,
    Sizes,
    TellingData,
    index_data,
    numbers_in,
    sizes_to_try,
)
from loopkit._replay.interpreter import TREE, Stored, TracedValue, UnsupportedError

Answer = Literal["differs", "same", "too large", "not run"]

VALUES = frozenset(
    (
        "order",
        "overwritten",
        "rewritten",
        "place",
        "missing",
        "updates",
        "merged",
        "expression",
    )
)
"""What is wrong with values; all else is wrong with instances, of which sets know all."""

_TRIALS = 6
_TOLD = 8
"""As many violations are looked at in search of one that a run shows."""


class Replay:
    """Runs of a text and of one of its schedules (memoised)."""

    def __init__(self, lineage: Lineage, kernel: Kernel) -> None:
        self.lineage, self.kernel = lineage, kernel
        self.root, self.new = model_of(lineage.root), model_of(kernel)

    def would_be_legal(self, changed: Callable[[Kernel], Kernel]) -> bool:
        """Whether the schedule would be proven if text and schedule were both ``changed``."""
        root, new = changed(self.lineage.root), changed(self.kernel)
        lineage = replace(self.lineage, root=root)
        try:
            check = partial(violations_of, lineage, new, aim=Aim.TRY)
            return not within(_budget.TRY, check)
        except (Undecided, SpentError, LoopkitError, isl.Error):
            return False

    def shows(self, violation: Violation, most: int = _budget.REPLAY_CELLS) -> Answer:
        """What a run shows at the sizes of the smallest case of what is wrong."""
        if violation.kind not in VALUES or (case := self.case(violation)) is None:
            return "not run"
        answer = self.at(case.sizes, most)
        return "not run" if answer == "same" and self.is_certain(violation) else answer

    def is_certain(self, violation: Violation) -> bool:
        """Whether a case does not depend on data, so that the sets are exact.

        Two unordered writes are a race even if a third one overwrites both. Effects of narrow
        types are not seen in a run, which uses wide numbers.
        """
        if violation.kind == "expression":
            arrays = (*self.root.kernel.args, *self.root.kernel.temporaries)
            whole = [a.dtype for a in arrays if a.dtype is not None and a.dtype.kind in "iu"]
            return any(dtype.itemsize < 8 for dtype in whole)
        sides = (violation.sink, violation.source, violation.other)
        names = {name for s in sides if s for name in (s.at and s.at.statement, s.origin)}
        concerned = [
            (model, statement)
            for model in (violation.text or self.root, self.new)
            for statement in model.kernel.statements
            if statement.id in names or statement.written == violation.array
        ]
        if violation.how == "after" and violation.kind in ("overwritten", "rewritten"):
            # Stores may be of one value, and updates are not.
            return any(is_update(statement) for _, statement in concerned)
        return all(model.is_exact(statement) for model, statement in concerned)

    @memoised
    def case(self, violation: Violation) -> Case | None:
        """The smallest case of what is wrong, if isl finds it."""
        with suppress(SpentError), apart_from_kept(_budget.REFUSAL):
            return smallest_case(violation, violation.text or self.root, self.new)
        return None

    def at(self, sizes: Sizes, most: int) -> Answer:
        """What a run shows at sizes, the smallest that there are for those left out.

        ``most`` are the cells that one run may read and write.
        """
        return self._at(tuple(sorted(sizes.items())), most)

    @memoised
    def _at(self, sizes: tuple[tuple[str, int], ...], most: int) -> Answer:
        root, new = self.root.kernel, self.new.kernel
        context = root.assumptions.set & new.assumptions.set & self.lineage.sizes
        try:
            with apart_from_kept(_budget.REFUSAL):
                found = sizes_to_try((root, new), context, [dict(sizes)], only=True)
                if not found:
                    return "not run"
                try:
                    both = _Both(self.root, self.new, found[0], most)
                except UnsupportedError as error:
                    return "too large" if "many" in str(error) else "not run"
                if both.differ(self.lineage):
                    return "differs"
        except (UnsupportedError, LoopkitError, SpentError, ArithmeticError):
            return "not run"
        # Where data decide how often statements run, no order but that of the tree was tried.
        is_told = not (both.two.axes and both.two.is_walked)
        return "same" if is_told else "not run"


def reproduced(
    replay: Replay, found: Sequence[Violation], every: Callable[[], Sequence[Violation]]
) -> Sequence[Violation]:
    """The violations of a schedule, those first that a run reproduces.

    If no run reproduces a violation that is certain by the sets, the schedule may be right.
    """
    certain = [v for v in found if v.exact]
    if not certain or replay.shows(certain[0]) != "same":
        return found
    for violation in every()[:_TOLD]:
        if violation.exact and replay.shows(violation) in ("differs", "not run"):
            return [violation, *found]
    return [replace(v, exact=False, seen=False) for v in found]


class _Both(Both):
    """Both kernels, with data in which values are distinct."""

    def data(self, trial: int) -> ExampleData:
        indices = frozenset(name for one in (self.one, self.two) for name in index_data(one.kernel))
        marks = sorted(numbers_in(self.one.kernel))
        return TellingData(trial, self.given(trial), indices, marks, self.one.widest)

    def differ(self, lineage: Lineage) -> bool:
        """Whether an instance stores something else in some run, or something else is left."""
        is_run = False
        for trial in range(_TRIALS):
            data = self.data(trial)
            expected, due = self.one.run(data, TREE), self.one.seen
            if self.one.strays(expected):
                continue  # nobody has such data
            is_run = True
            for order in self.two.orders:
                found = self.first(data, expected, self.two.run(data, order))
                if found is not None or self.stores_differ(lineage, due):
                    return True
        if not is_run:
            raise UnsupportedError("no data were found that stay inside of all arrays")
        return False

    def stores_differ(self, lineage: Lineage, due: Mapping[Stored, TracedValue]) -> bool:
        """Whether an instance of the schedule has stored what that of the text has not.

        What updates leave depends on how many there were before, in a free order.
        """
        for (name, _), its in self.two.seen.items():
            image = lineage.image_of.get(name)
            statement = self.two.kernel.statement_by_id[name]
            if image is None or statement.operation is not None or lineage.every(image):
                continue
            known = {**self.sizes, **its.point}
            row = tuple(int(evaluate(e, known)) for _, e in sorted(image.value_of.items()))
            mine = due.get((image.origin, row))
            if mine is None or not mine.is_close(its, self.one.dtypes[mine.array]):
                return True
        return False
