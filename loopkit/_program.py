"""What lowering hands to the executors: a source text and its signature.

Expressions in here (shapes, strides, grid) are pymbolic expressions over the
program's integer value parameters only, made of integers, ``Variable``,
``Sum``, ``Product``, ``FloorDiv``, ``Remainder``, ``Min``, ``Max``,
``Comparison``, ``LogicalAnd``, ``LogicalOr`` and ``LogicalNot``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from loopkit._cached import cached_property
from loopkit._errors import ResourceError
from loopkit._frozen import dataclass
from loopkit._target import Target
from loopkit._tree import nodes_in

if TYPE_CHECKING:
    from loopkit.codegen.c.tree import Function

Expression = Any


@dataclass(frozen=True)
class ValueParam:
    """A scalar parameter of the generated function.

    ``role`` is ``"argument"`` for what the caller passes (or what is inferred
    from shapes), ``"stride"`` for the element stride of axis ``axis`` of array
    ``array``, which is ``default``, an expression, where the call makes that array.
    """

    name: str
    dtype: np.dtype[Any]
    role: str = "argument"
    array: str | None = None
    axis: int | None = None
    default: Any = None


@dataclass(frozen=True)
class ArrayParam:
    """A pointer parameter of the generated function.

    ``shape`` is in elements, ``strides`` in elements (not bytes), as the
    generated code computes addresses.  ``role`` is ``"argument"``, or
    ``"scratch"`` for a temporary in global memory that the executor allocates;
    ``"state"`` for what blocks of one launch leave for each other, and ``"cleared"`` where
    that holds zeros when the launch begins.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    is_read: bool
    is_written: bool
    role: str = "argument"

    @property
    def is_scratch(self) -> bool:
        """Whether the executor allocates it as scratch memory."""
        return self.role == "scratch" or self.is_state

    @property
    def is_state(self) -> bool:
        """Whether the blocks of one launch communicate through it."""
        return self.role in ("state", "cleared")


def cleared_in(params: Iterable[ValueParam | ArrayParam]) -> list[str]:
    """The names of arrays that hold zeros when a launch begins."""
    return [p.name for p in params if isinstance(p, ArrayParam) and p.role == "cleared"]


@dataclass(frozen=True)
class Check:
    """A condition on the sizes that every call must meet, and how to say it."""

    condition: Expression
    text: str


@dataclass(frozen=True)
class SourceLine:
    """Where one line of the source comes from."""

    statement: str | None
    step: str | None


@dataclass(frozen=True)
class ProgramLoop:
    """A loop that the call runs: launches, once for each value of ``iname``, in order.

    ``lower``, ``upper`` (beyond the last) and ``step`` are over sizes and the inames of loops
    around it.  The inames are arguments of the launches, of type ``dtype``.
    """

    iname: str
    dtype: np.dtype[Any]
    lower: Expression
    upper: Expression
    step: int
    body: Launches


@dataclass(frozen=True)
class ProgramIf:
    """Launches that the call runs where ``condition`` holds, of sizes and the loops around it."""

    condition: Expression
    body: Launches


@dataclass(frozen=True)
class Program:
    """CUDA C source and all that a launch needs to know about it.

    ``params`` are in the order of the C signature: ``int`` sizes by value,
    arrays as plain pointers.  ``grid`` has three extents (x, y, z), ``block``
    three constants.  ``static_shared`` and ``dynamic_shared`` are in bytes a
    block; when ``dynamic_shared`` is not 0 the launch must ask for it.
    ``arguments`` is the order in which the kernel's own arguments were
    declared, sizes included: the order of results and of positional display.
    ``lines[i]`` describes source line ``i + 1``.  ``tree`` is what ``source`` was printed from.

    A program of several ``launches`` holds a program for each, in the order in which one call
    runs them, perhaps in loops, or where conditions hold.  Its source holds the functions of all,
    its parameters are those of all, arrays that launches hand to each other among them; grid, block
    and shared memory are those of the launches, and it has no tree of its own.
    """

    name: str
    source: str
    params: tuple[ValueParam | ArrayParam, ...]
    grid: tuple[Expression, Expression, Expression]
    block: tuple[int, int, int]
    static_shared: int = 0
    dynamic_shared: int = 0
    checks: tuple[Check, ...] = ()
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    lines: tuple[SourceLine, ...] = ()
    tree: Function | None = field(default=None, compare=False, repr=False)
    launches: Launches = ()

    @cached_property
    def parts(self) -> tuple[Program, ...]:
        """The programs of all launches, each once: this one, if it is a single launch."""
        nodes = nodes_in(self.launches, Program)
        return tuple(node for node in nodes if isinstance(node, Program)) or (self,)

    @cached_property
    def extents(self) -> tuple[Expression, ...]:
        """What sizes must be known for: all grids, and the loops and conditions around launches."""
        grids = (extent for part in self.parts for extent in part.grid)
        return (*grids, *_around(self.launches))


Launches = tuple[Program | ProgramLoop | ProgramIf, ...]


def _around(launches: Launches) -> Iterator[Expression]:
    """What decides which launches run: bounds of loops, and conditions."""
    for one in nodes_in(launches, Program):
        if isinstance(one, ProgramLoop):
            yield from (one.lower, one.upper)
        elif isinstance(one, ProgramIf):
            yield one.condition


def check_resources(program: Program, target: Target, where: str) -> None:
    """Refuse, before compiling, what no launch on this device could have."""
    x, y, z = program.block
    threads = x * y * z
    if threads > target.block_threads:
        raise ResourceError(
            f"{program.name} has blocks of {x} x {y} x {z} = {threads} threads, "
            f"but {where} has at most {target.block_threads} threads a block",
            instead="make the inames tagged l.0, l.1 and l.2 shorter",
        )
    for axis, (have, most) in enumerate(zip(program.block, target.block_extents, strict=True)):
        if have > most:
            raise ResourceError(
                f"{program.name} has blocks of {have} threads along axis {axis}, "
                f"but {where} has at most {most} there",
                instead=f"make the iname tagged l.{axis} shorter",
            )
    shared = program.static_shared + program.dynamic_shared
    if shared > target.shared:
        raise ResourceError(
            f"{program.name} uses {shared} bytes of shared memory a block, "
            f"but {where} has at most {target.shared}",
            instead="make the tiles in shared memory smaller",
        )


def check_grid(program: Program, grid: tuple[int, int, int], target: Target) -> None:
    """Refuse a grid with more blocks along an axis than a device can count."""
    for axis, (have, most) in enumerate(zip(grid, target.grid_extents, strict=True)):
        if have > most:
            raise ResourceError(
                f"{program.name} needs {have} blocks along axis {axis} for these sizes, "
                f"but there can be at most {most}",
                instead=f"tag the longest iname g.0, which may have {target.grid_extents[0]}, "
                f"or make each block do more along axis {axis}",
            )
