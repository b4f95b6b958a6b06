"""Array layouts that remove bank conflicts: paddings and swizzles, with exact new counts.

Addresses that differ by multiples of the row of banks are all in one bank.  Padding at the end of
each row shifts rows against each other; a swizzle permutes each row in its own way, and needs no
memory.  The requests to the array are found once, with the cells that they access; the conflicts
of a layout are then computed from these.  The numbers that are reported come from a second count,
of the kernel that the transform makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from loopkit import _sets
from loopkit._arrays import (
    Nested,
    TemporaryVariable,
    last_fastest,
    storage_shape,
    strides_of,
    swizzles_of,
)
from loopkit._costs.accesses import accesses_of, itemsize_of
from loopkit._costs.cost_values import AccessCosts
from loopkit._costs.counting import UNCOUNTED, CellRequests, Counting
from loopkit._costs.warps import BANKS, WORD
from loopkit._errors import LoopkitError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._poly.model import model_of
from loopkit._swizzle import Swizzle
from loopkit._target import CUDA

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs


@dataclass(frozen=True)
class Layout:
    """Another layout of a shared array: ``call`` is the transform that makes it.

    All requests then take ``wavefronts``, and the array ``bytes`` more.  ``transform`` and
    ``numbers`` are the name in that call, and what follows the array.
    """

    call: str
    wavefronts: int
    bytes: int
    transform: str = ""
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Layouts:
    """The effect of other layouts on the bank conflicts of a shared array.

    All requests to it take ``wavefronts``; without conflicts ``least`` would suffice.  ``better``
    are the best swizzle and the best padding that reduce conflicts, sorted by the remaining
    wavefronts, then by memory.  If there are none, ``why`` is the reason.
    """

    array: str
    wavefronts: int
    least: int
    better: tuple[Layout, ...]
    why: str = ""

    @property
    def call(self) -> str:
        """The transform that makes the best layout; empty where none helps."""
        return self.better[0].call if self.better else ""

    @property
    def with_it(self) -> int:
        """The wavefronts that all requests take with the best layout."""
        return self.better[0].wavefronts if self.better else self.wavefronts

    @property
    def removes_all(self) -> bool:
        """Whether no conflict is left."""
        return self.with_it == self.least


def layouts_of(costs: Costs) -> tuple[Layouts, ...]:
    """Better layouts of each shared array that has bank conflicts."""
    arrays = dict.fromkeys(a.array for a in costs.accesses if _conflicts(a))
    return tuple(_better(costs, array) for array in arrays)


def _conflicts(access: AccessCosts) -> bool:
    counts = access.counts
    return access.space == "shared" and counts is not None and counts.pieces > counts.least_pieces


def _better(costs: Costs, array: str) -> Layouts:
    counts = [a.counts for a in costs.accesses if a.array == array and a.counts is not None]
    now, least = sum(c.pieces for c in counts), sum(c.least_pieces for c in counts)
    try:
        tried = _Trial(costs, array)
        found = [
            _best(costs, tried, kind, now, least) for kind in (_swizzled(tried), _padded(tried))
        ]
    except UNCOUNTED:
        return Layouts(array, now, least, (), "not all requests to it can be counted")
    better = sorted((f for f in found if f is not None), key=lambda f: (f.wavefronts, f.bytes))
    why = ""
    if not better:
        why = "no swizzle, and no padding up to the width of all banks, makes conflicts fewer"
    return Layouts(array, now, least, tuple(better), why)


Candidate = tuple[TemporaryVariable, str, tuple[int, ...], dict[str, int]]
"""The array in another layout, and the transform that makes it, with its further arguments."""


def _best(
    costs: Costs, tried: _Trial, kind: Iterable[Candidate], now: int, least: int
) -> Layout | None:
    """The first of those candidates that need the fewest wavefronts."""
    better: list[tuple[int, Candidate]] = []
    for candidate in kind:
        found = tried.wavefronts(candidate[0], better[-1][0] if better else now)
        if found is not None:
            better.append((found, candidate))
            if found == least:
                break
    for found, (array, transform, numbers, options) in reversed(better):
        if _applied(costs, array.name, transform, numbers, options) == found:
            arguments = [f'"{array.name}"', *map(str, numbers)]
            arguments += [f"{name}={value}" for name, value in options.items()]
            more = tried.bytes(array) - tried.bytes(tried.array)
            call = f"{transform}({', '.join(arguments)})"
            return Layout(call, found, more, transform, numbers)
    return None


def _applied(
    costs: Costs, array: str, transform: str, numbers: tuple[int, ...], options: dict[str, int]
) -> int | None:
    """The wavefronts of the kernel that a transform makes; None where it is refused."""
    from loopkit.codegen.prepare import prepare

    try:
        made: Kernel = getattr(costs.source, transform)(array, *numbers, **options)
        model = model_of(prepare(made))
    except LoopkitError:
        return None
    counting = Counting(model, dict(costs.sizes), costs.block, costs.calls)
    counts = [counting.costs(a).counts for a in accesses_of(model.kernel) if a.array == array]
    return sum(c.pieces for c in counts if c is not None)


class _Trial:
    """The requests to one array, counted in other layouts of it."""

    def __init__(self, costs: Costs, name: str) -> None:
        from loopkit.codegen.prepare import prepare

        self.sizes = dict(costs.sizes)
        model = model_of(prepare(costs.source))
        array = model.array(name)
        assert isinstance(array, TemporaryVariable)
        self.array = array
        self.shape = self._values(array.shape)
        self.room = self._values(storage_shape(array))
        self.strides = self._values(strides_of(array))
        self.tags = array.dim_tags or last_fastest(len(array.shape))
        self.itemsize = itemsize_of(model.kernel, name)
        counting = Counting(model, self.sizes, costs.block, costs.calls)
        mine = (a for a in accesses_of(model.kernel) if a.array == name)
        requests = [counting.cells(access, array, self.shape) for access in mine]
        self.requests = sorted(requests, key=self._conflicts, reverse=True)

    def _conflicts(self, requests: CellRequests) -> int:
        return self._taken(requests, self.array)

    def bytes(self, array: TemporaryVariable) -> int:
        """The memory that the array takes."""
        shape, strides = map(self._values, (storage_shape(array), strides_of(array)))
        last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        return (last + 1) * self.itemsize

    def _values(self, expressions: Sequence[Expression]) -> tuple[int, ...]:
        return tuple(_sets.value_at(expr, self.sizes) for expr in expressions)

    def _taken(self, requests: CellRequests, array: TemporaryVariable) -> int:
        """The wavefronts of an access whose array is laid out like another."""
        places = list(requests.cells)
        for swizzle in swizzles_of(array):
            changed = swizzle.changed(requests.cells[swizzle.by])
            places[swizzle.axis] = requests.cells[swizzle.axis] ^ changed
        strides = self._values(strides_of(array))
        elements = sum(place * stride for place, stride in zip(places, strides, strict=True))
        return requests.pieces(np.asarray(elements))

    def wavefronts(self, array: TemporaryVariable, most: int) -> int | None:
        """How many all requests take, if it is less than ``most``, and the array fits."""
        if self.bytes(array) > CUDA.shared:
            return None
        found = 0
        for requests in self.requests:
            found += self._taken(requests, array)
            if found >= most:
                return None
        return found


def _padded(tried: _Trial) -> Iterator[Candidate]:
    """All paddings of one axis, those that take less memory first."""
    array, levels = tried.array, [t.level for t in tried.tags if isinstance(t, Nested)]
    if len(levels) < len(tried.tags):
        return  # its strides are set
    had = array.padding or (0,) * len(levels)
    most = max(BANKS * WORD // tried.itemsize, 1)
    found: list[tuple[int, int, int, TemporaryVariable]] = []
    for axis, level in enumerate(levels):
        if level != max(levels):
            for more in range(had[axis] + 1, had[axis] + most + 1):
                padding = (*had[:axis], more, *had[axis + 1 :])
                padded = replace(array, padding=padding)
                found.append((tried.bytes(padded), axis, more, padded))
    for _, axis, more, padded in sorted(found, key=lambda f: f[:3]):
        yield padded, "pad_temporary", (axis, more), {}


def _swizzled(tried: _Trial) -> Iterator[Candidate]:
    """All swizzles of one axis that stay in it, those that change fewer bits first."""
    array, axes = tried.array, range(len(tried.shape))
    found = [s for axis in axes for by in axes for s in _of_axes(tried, axis, by)]
    for swizzle in sorted(found, key=lambda s: (s.bits, s.base, s.skip, s.axis == s.by, -s.axis)):
        others = [s for s in array.swizzles if s.axis != swizzle.axis]
        swizzles = tuple(sorted([*others, swizzle], key=lambda s: s.axis))
        options = swizzle.arguments(tried.shape)
        yield replace(array, swizzles=swizzles), "swizzle_array", (), options


def _of_axes(tried: _Trial, axis: int, by: int) -> Iterator[Swizzle]:
    """The swizzles of an axis by another one, or by itself, that change the bank of some cell."""
    bits = [(extent - 1).bit_length() for extent in tried.shape]
    step = tried.strides[axis] * tried.itemsize
    mine, its = (np.arange(tried.shape[a]) for a in (axis, by))
    for top in range(1, bits[axis] + 1):
        if (step << (top - 1)) % (BANKS * WORD) == 0:
            return
        for base in range(top):
            for skip in range(bits[by]):
                count = top - base
                if skip + count > bits[by] or (axis == by and skip <= base):
                    continue
                swizzle = Swizzle(axis, by, count, base, skip)
                places = mine ^ swizzle.changed(mine if axis == by else its[:, None])
                if places.max() < tried.room[axis]:
                    yield swizzle
