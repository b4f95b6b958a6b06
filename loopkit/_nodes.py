"""Expression nodes that pymbolic does not have, and the vocabulary of all others.

An expression is a pymbolic tree of: Python ``int``, ``float``, ``complex``,
``bool`` and NumPy scalars (constants; Python ones are weakly typed as in
NumPy 2), ``Variable``, ``Subscript`` (``aggregate`` a ``Variable``, index a
tuple), ``Call`` (``function`` a ``Variable``), ``Sum``, ``Product``,
``Quotient``, ``FloorDiv``, ``Remainder``, ``Power``, ``Comparison``,
``LogicalAnd``, ``LogicalOr``, ``LogicalNot``, ``BitwiseAnd``, ``BitwiseOr``,
``BitwiseXor``, ``BitwiseNot``, ``LeftShift``, ``RightShift``, ``If``, ``Min``,
``Max``, and the nodes below.  Subtraction and negation are ``Product((-1, x))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._frozen import dataclass

Expression = Any


class Node(prim.ExpressionNode):  # type: ignore[misc]
    """What pymbolic's own decorator compiles for each class, which takes it milliseconds."""

    __ne__ = object.__ne__

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__match_args__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Reduction(Node):
    """``operation(inames, operand)``, for example ``sum((k, l), a[k] * b[l])``.

    ``dtype`` is the type that it accumulates in, None where that follows from the operand.
    That of a segmented one is a record: its terms, and where it starts anew (:func:`segmented`).
    Only kernels under construction hold these: creation turns them into loops
    with an accumulator.
    """

    mapper_method = "map_reduction"

    operation: str
    inames: tuple[str, ...]
    operand: Expression
    dtype: np.dtype[Any] | None = None


def segmented(operation: str) -> str:
    """The name of a segmented reduction, which no text can spell as that of a call."""
    return f"segmented({operation})"


def segments_of(operation: str) -> str | None:
    """The operation of a segmented reduction, by its name; None for any other."""
    name = operation.removeprefix("segmented(")
    return None if name == operation else name.removesuffix(")")


@dataclass(frozen=True)
class TypeName(Node):
    """The last argument of a call as it is parsed: ``sum(k, x, dtype=int32)``."""

    mapper_method = "map_type_name"

    dtype: np.dtype[Any]


@dataclass(frozen=True)
class TypeCast(Node):
    """The value of ``operand`` converted to ``dtype``, as ``numpy.astype`` would."""

    mapper_method = "map_type_cast"

    dtype: np.dtype[Any]
    operand: Expression


@dataclass(frozen=True)
class Record(Node):
    """A value of several components: what a reduction with several results adds at a time.

    It is the whole right side of an initialisation or update; nothing is computed with it.
    On its way to statements it is also the left side of ``v, k = ...``.
    """

    mapper_method = "map_record"

    names: tuple[str, ...]
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Component(Node):
    """One component of a value that has several, by name."""

    mapper_method = "map_component"

    operand: Expression
    name: str
