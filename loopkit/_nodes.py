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

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._frozen import dataclass

Expression = Any

SYMBOLS: Mapping[type, str] = {
    prim.Sum: "+",
    prim.Product: "*",
    prim.FloorDiv: "//",
    prim.Remainder: "%",
    prim.LeftShift: "<<",
    prim.RightShift: ">>",
    prim.BitwiseAnd: "&",
    prim.BitwiseOr: "|",
    prim.BitwiseXor: "^",
    prim.LogicalAnd: "and",
    prim.LogicalOr: "or",
    prim.Min: "min",
    prim.Max: "max",
}
"""What operations of integers are written with, in Python as in texts."""


def is_integer(value: object) -> bool:
    """Whether a value is an integer, and no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


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
    Only rules hold these, and kernels under construction: creation turns those of statements into
    loops with an accumulator.
    """

    mapper_method = "map_reduction"

    operation: str
    inames: tuple[str, ...]
    operand: Expression
    dtype: np.dtype[Any] | None = None


def subtrahend(term: Expression) -> Expression | None:
    """``x`` if a term of a sum is ``-1*x``, which is how ``... - x`` is written."""
    if isinstance(term, prim.Product):
        first, *rest = term.children
        if rest and type(first) is int and first == -1:
            return rest[0] if len(rest) == 1 else prim.Product(tuple(rest))
    return None


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
class SubArray(Node):
    """A part of an array that a call is given: ``[i]: x[i, j]``, all elements along ``i``.

    Only texts hold these: creation puts what is called in the place of its calls.
    """

    mapper_method = "map_sub_array"

    inames: tuple[str, ...]
    subscript: Expression


@dataclass(frozen=True)
class Named(Node):
    """An argument that a call gives by its name: ``f(x, gain=2)``.

    Only texts hold these: creation puts the arguments of calls in order.
    """

    mapper_method = "map_named"

    name: str
    operand: Expression


@dataclass(frozen=True)
class FlatIndex(Node):
    """The only index of ``a[[offset]]``: elements are counted in the order of their storage.

    Only texts hold these: creation puts an index per axis in their place.
    """

    mapper_method = "map_flat_index"

    offset: Expression


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


@dataclass(frozen=True)
class TaggedVariable(prim.Variable):  # type: ignore[misc]
    """``x$near``: one use of the array or rule ``x``, which transforms can select by its tag.

    It stands where ``x`` would, and means the same.
    """

    name: str
    tag: str

    __getstate__ = Node.__getstate__
    __setstate__ = Node.__setstate__


def head_of(node: Expression) -> Expression:
    """The name that an access or a call is of; a name alone is that itself, and others None."""
    if isinstance(node, prim.Subscript):
        return node.aggregate
    if isinstance(node, prim.Call):
        return node.function
    return node if isinstance(node, prim.Variable) else None


def tag_of_use(node: Expression) -> str | None:
    """The tag of an access, or of the use of a rule."""
    head = head_of(node)
    return head.tag if isinstance(head, TaggedVariable) else None


def renamed(head: prim.Variable, name: str) -> prim.Variable:
    """Another name in the place of one, for the same use."""
    return TaggedVariable(name, head.tag) if type(head) is TaggedVariable else prim.Variable(name)


def with_head(node: Expression, head: prim.Variable) -> Expression:
    """An access, a call or a name, with another name in its front."""
    if isinstance(node, prim.Subscript):
        return prim.Subscript(head, node.index)
    return prim.Call(head, node.parameters) if isinstance(node, prim.Call) else head


def tagged_like(old: Expression, new: Expression) -> Expression:
    """``new`` with the tag of ``old``, where it has none and both are uses of one name."""
    tag, head = tag_of_use(old), head_of(new)
    if tag is None or type(head) is not prim.Variable or head.name != head_of(old).name:
        return new
    return with_head(new, TaggedVariable(head.name, tag))
