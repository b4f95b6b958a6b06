"""The search for a difference: both kernels are run at small sizes and their outputs compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import islpy as isl

from loopkit import _budget
from loopkit._budget import SpentError, at_most
from loopkit._errors import LoopkitError
from loopkit._poly.model import Model
from loopkit._reference import run_reference
from loopkit._replay.compare_results import Both
from loopkit._replay.examples import ExampleData, Place, Sizes, numbers_in, sizes_to_try
from loopkit._replay.interpreter import TREE, UnsupportedError
from loopkit._verify.provenance import provenance
from loopkit._verify.verdict import Difference

_MAKING = 300
"""What making a statement ready counts for."""

_SHARES = 3
_TRIALS = 2
_GLANCES = 4


@dataclass(frozen=True)
class Outcome:
    """A difference, or what was tried; ``ambiguous`` where the first kernel has no one meaning."""

    difference: Difference | None = None
    tried: tuple[Sizes, ...] = ()
    ambiguous: str = ""
    hindrance: str = ""


def look_for_difference(
    before: Model, after: Model, context: isl.Set, witnesses: Iterable[Sizes]
) -> Outcome:
    """Compare at small sizes, and in any case at those of ``witnesses``; the smallest first."""
    kernels = before.kernel, after.kernel
    numbers = frozenset().union(*map(numbers_in, kernels))
    making = _MAKING * sum(len(kernel.statements) for kernel in kernels)
    left = dict.fromkeys((False, True), _budget.EXAMPLE_CELLS)
    tried: list[Sizes] = []
    hindrance = ""
    try:
        with at_most(_budget.EQUIVALENCE_EXAMPLES):
            needed = sizes_to_try(kernels, context, witnesses, only=True)
            for sizes in sizes_to_try(kernels, context, witnesses, numbers):
                special = sizes in needed
                left[special] -= making
                most = left[special] // (_TRIALS * (1 if special else _SHARES))
                if most <= 0:
                    continue
                try:
                    both = _Both(before, after, sizes, most // 2)
                    if both.work > most:
                        raise UnsupportedError("too many instances")
                    left[special] -= _TRIALS * both.work
                    found = both.compare(_TRIALS)
                except (UnsupportedError, LoopkitError) as error:
                    hindrance = hindrance or str(error)
                    continue
                if found is not None:
                    return found
                tried.append(sizes)
    except SpentError:
        limit = f"{_budget.EQUIVALENCE_EXAMPLES:,} operations"
        hindrance = hindrance or f"isl did not find their instances within {limit}"
    return Outcome(None, tuple(tried), hindrance=hindrance)


def quick_difference(before: Model, after: Model, context: isl.Set) -> Difference | None:
    """A difference that shows at the smallest sizes of all, found before anything is proven."""
    for sizes in sizes_to_try((before.kernel, after.kernel), context)[:_GLANCES]:
        try:
            found = _Both(before, after, sizes, _budget.GLANCE_CELLS).compare(trials=1)
        except (UnsupportedError, LoopkitError):
            return None
        if found is not None:
            return found.difference
    return None


class _Both(Both):
    """Both kernels, and how a cell came about in which they differ."""

    def compare(self, trials: int) -> Outcome | None:
        """The first difference, in any legal order of execution."""
        one, two = self.one, self.two
        for data, order, found in self.differences(trials):
            name, place, mine, its = found
            # What is lost between launches, the tree's interpreter keeps.
            is_known = order != TREE or bool(two.fleeting)
            if not (is_known or self.is_confirmed(data, name, place)):
                continue
            for other in one.orders[1:]:
                again = one.run(data, other)[name].get(place) or one.initial(data, name, place)
                if not again.is_close(mine, one.dtypes[name]):
                    shown = f"{name}[{', '.join(map(str, place))}]"
                    return Outcome(ambiguous=f"{shown} depends on the order of its threads")
            words = [provenance(one, mine), provenance(two, its)]
            if words[0] == words[1]:  # as where functions of one name are others
                words = [f"{w} = {v.value}" for w, v in zip(words, (mine, its), strict=True)]
            how = order.described(two.axes)
            return Outcome(Difference(dict(self.sizes), name, place, words[0], words[1], how))
        return None

    def is_confirmed(self, data: ExampleData, name: str, place: Place) -> bool:
        """Whether the kernels differ in a cell when they compute in their own types, too.

        Wide numbers round otherwise.  A cell that one of them reaches through memory that is not
        there, or that nothing wrote, is different, too.
        """
        if not self.one.is_inside(name, place):
            return True
        given = self.one.given(data)
        found = []
        for machine in (self.one, self.two):
            try:
                found.append(run_reference(machine.kernel, given)[name][place])
            except (LoopkitError, TypeError):  # an array may be used with too few subscripts
                found.append(None)
        mine, its = found
        if mine is None or its is None:
            return mine is not its
        return not (mine == its or (mine != mine and its != its))
