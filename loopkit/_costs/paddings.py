"""Paddings that remove bank conflicts: tried in the order of the memory that they take.

An access whose addresses lie a multiple of all banks apart meets in one bank; elements that no
one uses, at the end of each row, move rows against each other.  What is told was counted anew
with it: first for the accesses alone, then for the kernel that the transform makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from loopkit import _sets
from loopkit._arrays import Nested, TemporaryVariable, last_fastest, storage_shape
from loopkit._costs.accesses import Access, accesses_of, text_of
from loopkit._costs.counting import UNCOUNTED, Counting
from loopkit._costs.values import AccessCosts
from loopkit._costs.warps import BANKS, WORD, WarpCosts
from loopkit._errors import LoopkitError
from loopkit._frozen import dataclass
from loopkit._poly.model import model_of
from loopkit._target import CUDA

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs


@dataclass(frozen=True)
class Padding:
    """What padding does to the bank conflicts of a shared array.

    All requests to it take ``wavefronts``, of which ``least`` would do without conflicts, and
    ``with_it`` are taken with the best padding: ``call`` is the transform that adds it.  Where no
    padding helps, ``call`` is empty, and ``why`` says so.
    """

    array: str
    wavefronts: int
    least: int
    with_it: int
    call: str
    why: str = ""

    @property
    def removes_all(self) -> bool:
        """Whether no conflict is left."""
        return self.with_it == self.least


Step = tuple[int, int]
"""An axis, and the elements it is padded by."""


def paddings_of(costs: Costs) -> tuple[Padding, ...]:
    """The best padding of each shared array that has bank conflicts."""
    arrays = dict.fromkeys(a.array for a in costs.accesses if _conflicts(a))
    return tuple(_best(costs, array) for array in arrays)


def _conflicts(access: AccessCosts) -> bool:
    counts = access.counts
    return access.space == "shared" and counts is not None and counts.pieces > counts.least_pieces


def _taken(costs: Costs, array: str) -> tuple[int, int]:
    """The wavefronts of all requests to an array, and how many would do."""
    counts = [a.counts for a in costs.accesses if a.array == array and a.counts is not None]
    return sum(c.pieces for c in counts), sum(c.least_pieces for c in counts)


def _best(costs: Costs, array: str) -> Padding:
    now, least = _taken(costs, array)
    declared = costs.source.temporary_by_name.get(array)
    tags = () if declared is None else declared.dim_tags or last_fastest(len(declared.shape))
    if declared is None or not all(isinstance(tag, Nested) for tag in tags):
        why = "its strides are set: tag_array_axes sets others"
        return Padding(array, now, least, now, "", why)
    tried = _Trial(costs, declared)
    better: list[tuple[int, Step]] = []
    for step in tried.steps():
        found = tried.wavefronts(step, better[-1][0] if better else now)
        if found is not None:
            better.append((found, step))
            if found == least:
                break
    for found, (axis, elements) in reversed(better):
        if _applied(costs, array, axis, elements) == found:
            call = f'pad_temporary("{array}", {axis}, {elements})'
            return Padding(array, now, least, found, call)
    why = "no padding of one axis, up to the width of all banks, makes conflicts fewer"
    return Padding(array, now, least, now, "", why)


class _Trial:
    """The accesses to one array, counted with other paddings."""

    def __init__(self, costs: Costs, declared: TemporaryVariable) -> None:
        from loopkit.codegen.prepare import prepare

        self.costs = costs
        self.sizes = dict(costs.sizes)
        self.model = model_of(prepare(costs.source))
        self.counting = Counting(self.model, self.sizes, costs.block)
        array = self.model.array(declared.name)
        assert isinstance(array, TemporaryVariable)
        self.array = array
        most = {
            (a.statement, a.text, a.is_write): -(a.counts or WarpCosts()).pieces
            for a in costs.accesses
        }
        mine = [a for a in accesses_of(self.model.kernel) if a.array == declared.name]
        self.accesses: list[Access] = sorted(
            mine, key=lambda a: most[a.statement, text_of(a), a.is_write]
        )

    def steps(self) -> Iterator[Step]:
        """All paddings of one axis, those that take less memory first."""
        rank = len(self.array.shape)
        tags = self.array.dim_tags or last_fastest(rank)
        levels = [tag.level for tag in tags if isinstance(tag, Nested)]
        had = self.array.padding or (0,) * rank
        assert self.array.dtype is not None  # all types are inferred by now
        most = max(BANKS * WORD // self.array.dtype.itemsize, 1)
        found = [
            (axis, had[axis] + more)
            for axis in range(rank)
            if levels[axis] != max(levels)
            for more in range(1, most + 1)
        ]
        return iter(sorted(found, key=lambda step: (self._elements(step), step)))

    def _padded(self, step: Step) -> TemporaryVariable:
        axis, elements = step
        padding = list(self.array.padding or [0] * len(self.array.shape))
        padding[axis] = elements
        return replace(self.array, padding=tuple(padding))

    def _elements(self, step: Step) -> int:
        return prod(_sets.value_at(e, self.sizes) for e in storage_shape(self._padded(step)))

    def wavefronts(self, step: Step, best: int) -> int | None:
        """How many all requests take with a padding, if it is less than ``best``."""
        itemsize = self.counting.itemsize(self.accesses[0])
        if self._elements(step) * itemsize > CUDA.shared:
            return None
        padded = self._padded(step)
        found = 0
        try:
            for access in self.accesses:
                found += self.counting.wavefronts(access, padded)
                if found >= best:
                    return None
        except UNCOUNTED:
            return None
        return found


def _applied(costs: Costs, array: str, axis: int, elements: int) -> int | None:
    """The wavefronts of the kernel that the transform makes; None where it is refused."""
    from loopkit.codegen.prepare import prepare

    try:
        model = model_of(prepare(costs.source.pad_temporary(array, axis, elements)))
    except LoopkitError:
        return None
    counting = Counting(model, dict(costs.sizes), costs.block)
    counts = [counting.costs(a).counts for a in accesses_of(model.kernel) if a.array == array]
    return sum(c.pieces for c in counts if c is not None)
