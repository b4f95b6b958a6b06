"""Reduction operations: what they start from and how they combine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError, LoopkitError
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._promotion import BOOL, DType
from loopkit._same import Exact
from loopkit._spelling import check_identifier, shown
from loopkit._types import concrete, reduction_type


@dataclass(frozen=True, eq=False)
class ReductionOperation(Exact):
    """An associative, commutative operation that a reduction may use.

    ``neutral`` gives the value that an empty reduction has, for a type;
    ``combine`` the expression that joins two values; ``reference`` does the
    same to NumPy scalars.  ``boolean`` operations work on truth values.
    All functions must be importable, so that kernels can be pickled.
    """

    name: str
    neutral: Callable[[DType], Any]
    combine: Callable[[Expression, Expression], Expression]
    reference: Callable[[Any, Any], Any]
    boolean: bool = False

    def result_type(self, operand: Any) -> DType:
        """The accumulator's type for operands of one type."""
        return BOOL if self.boolean else reduction_type(self.name, concrete(operand))


def lowest(dtype: DType) -> Any:
    """What a maximum starts from."""
    if dtype == BOOL:
        return False
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -math.inf


def highest(dtype: DType) -> Any:
    """What a minimum starts from."""
    if dtype == BOOL:
        return True
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else math.inf


def ones(dtype: DType) -> Any:
    """What a conjunction of bits starts from: all of them."""
    if dtype == BOOL:
        return True
    return int(np.iinfo(dtype).max) if dtype.kind == "u" else -1


@dataclass(frozen=True, eq=False)
class Constantly(Exact):
    """A function that gives the same value for every type."""

    value: Any

    def __call__(self, dtype: DType) -> Any:
        return self.value


@dataclass(frozen=True, eq=False)
class Joined(Exact):
    """A function that joins two values in a node of one kind."""

    node: type

    def __call__(self, a: Expression, b: Expression) -> Expression:
        return self.node((a, b))


_BUILT_IN: Mapping[str, ReductionOperation] = {
    operation.name: operation
    for operation in (
        ReductionOperation("sum", Constantly(0), Joined(prim.Sum), np.add),
        ReductionOperation("product", Constantly(1), Joined(prim.Product), np.multiply),
        ReductionOperation("max", lowest, Joined(prim.Max), np.maximum),
        ReductionOperation("min", highest, Joined(prim.Min), np.minimum),
        ReductionOperation("bit_and", ones, Joined(prim.BitwiseAnd), np.bitwise_and),
        ReductionOperation("bit_or", Constantly(0), Joined(prim.BitwiseOr), np.bitwise_or),
        ReductionOperation("bit_xor", Constantly(0), Joined(prim.BitwiseXor), np.bitwise_xor),
        ReductionOperation(
            "any", Constantly(False), Joined(prim.LogicalOr), np.logical_or, boolean=True
        ),
        ReductionOperation(
            "all", Constantly(True), Joined(prim.LogicalAnd), np.logical_and, boolean=True
        ),
    )
}
_NOT_YET = frozenset(("argmax", "argmin"))


def operations_of(own: Iterable[ReductionOperation]) -> Mapping[str, ReductionOperation]:
    """The built-in operations and a kernel's own, by name."""
    own = tuple(own)
    return {**_BUILT_IN, **{o.name: o for o in own}} if own else _BUILT_IN


def register_reduction(
    name: str,
    neutral: Any,
    combine: Callable[[Expression, Expression], Expression],
    reference: Callable[[Any, Any], Any],
) -> ReductionOperation:
    """An operation of one's own, to be passed as ``make_kernel(..., reductions=[...])``.

    Nothing is registered anywhere: the operation travels with the kernels made with it.

    :arg name: what the text calls it, ``name(k, ...)``.
    :arg neutral: a number, or a function that gives one for a type.
    :arg combine: of two expressions makes the one that combines them; associative and commutative.
    :arg reference: the same of two values, for the reference executor.
    :returns: the operation.
    :raises InvalidArgumentError: for a name that is taken, and for what is none of that.
    """
    check_identifier(name, "the name of a reduction")
    for what, given in (("combine", combine), ("reference", reference)):
        if not callable(given):
            raise InvalidArgumentError(f"{what} is a function of two values, not {shown(given)}")
    if name in _BUILT_IN or name in _NOT_YET:
        raise InvalidArgumentError(f"'{name}' is already a reduction")
    if not callable(neutral) and not isinstance(neutral, (int, float, complex, np.generic)):
        raise InvalidArgumentError(
            f"neutral is a number, or a function of a type, not {shown(neutral)}"
        )
    function = Given(name, "neutral", neutral) if callable(neutral) else Constantly(neutral)
    both_given = Given(name, "combine", combine), Given(name, "reference", reference)
    return ReductionOperation(name, function, *both_given)


@dataclass(frozen=True, eq=False)
class Given(Exact):
    """A function of the user's; what it raises becomes an error that says whose it was."""

    operation: str
    argument: str
    function: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        try:
            return self.function(*args)
        except LoopkitError:
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"{self.argument} of the reduction '{self.operation}' raised "
                f"{type(error).__name__}: {error}"
            ) from error
