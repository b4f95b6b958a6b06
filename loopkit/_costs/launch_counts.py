"""The launches of a kernel as counted and drawn, and how often each one is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property, memoised
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import inside
from loopkit._poly.projection import distinct
from loopkit._slabs import settled

BLOCKS = tuple(hidden("block", axis) for axis in range(3))


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a launch: ``where`` is ``{ loops, sizes : it is called }``.

    ``loops`` are the inames of loops around it, which the launch knows as sizes; of a launch that
    is called once there are none.
    """

    loops: tuple[str, ...] = ()
    where: isl.Set | None = None

    def among(self, domain: isl.Set) -> isl.Set:
        """The points of a set over sizes and more at which there is a call."""
        return domain if self.where is None else domain & self.where

    @cached_property
    def forms(self) -> tuple[prim.Variable, ...]:
        """The inames of the loops as expressions."""
        return tuple(map(prim.Variable, self.loops))

    def first(self, sizes: Mapping[str, int], at: Mapping[str, Any]) -> dict[str, int]:
        """The values of the loops in the first call, or in the first one of those that are wanted.

        Raises :class:`InvalidArgumentError` where there is no such call.
        """
        wanted = {name: at[name] for name in self.loops if isinstance(at.get(name), int)}
        where = _sets.at_values(self.among(_sets.universe()), {**sizes, **wanted})
        left = tuple(name for name in self.loops if name not in wanted)
        point = smallest_point(where, left)
        if point is None:
            raise InvalidArgumentError("the call does not launch it there")
        return wanted | {name: point[name] for name in left}

    def in_grid(self, grid: Sequence[Expression]) -> isl.Set:
        """``{ blocks, loops, sizes : there is this block in this call }``."""
        domain = self.among(_sets.universe())
        for name, extent in zip(BLOCKS, grid, strict=True):
            domain = domain & inside(prim.Variable(name), extent)
        return domain

    def counted(
        self, grid: Sequence[Expression], sizes: Mapping[str, int]
    ) -> tuple[int, int, tuple[int, int, int]]:
        """The launches, those without blocks left out; their blocks; and the longest axes.

        Raises what :func:`~loopkit._poly.integer_points.count` does.
        """
        if not self.loops:
            x, y, z = (max(_sets.value_at(extent, sizes), 0) for extent in grid)
            return int(x * y * z > 0), x * y * z, (x, y, z)
        blocks = self.in_grid(grid)
        launches = distinct(blocks, self.loops, sizes)
        if not launches:
            return 0, 0, (0, 0, 0)
        here = _sets.at_values(blocks, sizes)
        x, y, z = ((_sets.maximum_value(here, prim.Variable(name)) or 0) + 1 for name in BLOCKS)
        return launches, distinct(blocks, (*self.loops, *BLOCKS), sizes), (x, y, z)


ONCE = Calls()
"""A launch that is called once."""


@dataclass(frozen=True, eq=False)
class Launched:
    """A launch as a kernel, and the iterations of host loops in which it is called.

    ``model`` is of the kernel as it is lowered; ``number`` counts launches in the text, from 0.
    """

    number: int
    kernel: Kernel
    model: Model
    calls: Calls


@memoised
def launched(kernel: Kernel) -> tuple[Launched, ...]:
    """All launches, each once, in the order of the text (memoised).

    Raises what lowering raises.
    """
    from loopkit.codegen.launches import parts_in, parts_of
    from loopkit.codegen.prepare import prepare

    kernel = settled(kernel)
    if is_one_launch(kernel):
        return (Launched(0, kernel, model_of(prepare(kernel)), ONCE),)
    return tuple(
        Launched(
            part.launch.number,
            part.kernel,
            model_of(prepare(part.kernel)),
            Calls(part.launch.loops, part.where),
        )
        for part in parts_in(parts_of(kernel))
    )


def launch_with(kernel: Kernel, statement: str) -> Launched:
    """The launch that executes a statement.

    Raises :class:`UnknownNameError` where no launch does, and what lowering raises.
    """
    every = launched(kernel)
    for one in every:
        if statement in one.model.statement:
            return one
    known = [name for one in every for name in one.model.statement]
    raise UnknownNameError("statement", statement, known)
