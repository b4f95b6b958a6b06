"""What lowering hands to the executors: a source text and its signature.

Expressions in here (shapes, strides, grid) are pymbolic expressions over the
program's integer value parameters only, made of integers, ``Variable``,
``Sum``, ``Product``, ``FloorDiv``, ``Remainder``, ``Min``, ``Max``,
``Comparison``, ``LogicalAnd``, ``LogicalOr`` and ``LogicalNot``.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from loopkit._frozen import dataclass

if TYPE_CHECKING:
    from loopkit.codegen.c.tree import Function

Expression = Any


@dataclass(frozen=True)
class ValueParam:
    """A scalar parameter of the generated function.

    ``role`` is ``"argument"`` for what the caller passes (or what is inferred
    from shapes), ``"stride"`` for the element stride of axis ``axis`` of array
    ``array`` (variants for non-contiguous arrays).
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
    ``"scratch"`` for a temporary in global memory that the executor allocates.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    is_read: bool
    is_written: bool
    role: str = "argument"


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
class Program:
    """CUDA C source and all that a launch needs to know about it.

    ``params`` are in the order of the C signature: ``int`` sizes by value,
    arrays as plain pointers.  ``grid`` has three extents (x, y, z), ``block``
    three constants.  ``static_shared`` and ``dynamic_shared`` are in bytes a
    block; when ``dynamic_shared`` is not 0 the launch must ask for it.
    ``arguments`` is the order in which the kernel's own arguments were
    declared, sizes included: the order of results and of positional display.
    ``lines[i]`` describes source line ``i + 1``.  ``tree`` is what ``source`` was printed from.
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
