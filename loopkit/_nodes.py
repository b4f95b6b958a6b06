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

Expression = Any


@prim.expr_dataclass()
class Reduction(prim.ExpressionNode):  # type: ignore[misc]
    """``operation(inames, operand)``, for example ``sum((k, l), a[k] * b[l])``.

    ``dtype`` is the type that it accumulates in, None where that follows from the operand.
    Only kernels under construction hold these: creation turns them into loops
    with an accumulator.
    """

    operation: str
    inames: tuple[str, ...]
    operand: Expression
    dtype: np.dtype[Any] | None = None


@prim.expr_dataclass()
class TypeName(prim.ExpressionNode):  # type: ignore[misc]
    """The last argument of a call as it is parsed: ``sum(k, x, dtype=int32)``."""

    dtype: np.dtype[Any]


@prim.expr_dataclass()
class TypeCast(prim.ExpressionNode):  # type: ignore[misc]
    """The value of ``operand`` converted to ``dtype``, as ``numpy.astype`` would."""

    dtype: np.dtype[Any]
    operand: Expression
