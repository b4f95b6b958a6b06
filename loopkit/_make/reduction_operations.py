"""Reduction operations on scalars: their neutral elements, and how they combine two values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arguments import values_of
from loopkit._errors import InvalidArgumentError, LoopkitError, counted
from loopkit._frozen import dataclass
from loopkit._make.operation import (
    SCALAR,
    FirstExtremum,
    OwnRecord,
    ReductionOperation,
    as_expression,
    as_number,
    highest,
    lowest,
    operands,
)
from loopkit._nodes import Expression
from loopkit._promotion import BOOL, DTYPES, FLOAT64, DType
from loopkit._same import Exact
from loopkit._spelling import check_component, check_function_name, check_identifier, shown
from loopkit._types import Kind, concrete, reduction_type


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalarOperation(ReductionOperation):
    """An operation with one result.

    ``neutral`` gives the value that an empty reduction has, for a type;
    ``combine`` the expression that joins two values; ``reference`` does the
    same to NumPy scalars, and is None where the expression is to be computed.
    ``boolean`` operations work on truth values.
    """

    neutral: Callable[[DType], Any]
    combine: Callable[[Expression, Expression], Expression]
    reference: Callable[[Any, Any], Any] | None = None
    boolean: bool = False

    def start(self, dtype: DType | None) -> Expression:
        """The neutral element."""
        return self.neutral(FLOAT64 if dtype is None else dtype)

    def result_type(self, *kinds: Kind) -> DType:
        """The accumulator's type for operands of one type."""
        return BOOL if self.boolean else reduction_type(self.name, concrete(*kinds))

    def joined(self, dtype: DType) -> tuple[Expression, ...]:
        """The expression that joins two values, as that of the only component."""
        (a,), (b,) = operands(SCALAR)
        return (self.combine(a, b),)


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


def _scalar(
    name: str, neutral: Callable[[DType], Any], node: type, *, boolean: bool = False
) -> ScalarOperation:
    return ScalarOperation(name, neutral=neutral, combine=Joined(node), boolean=boolean)


_BUILT_IN: Mapping[str, ReductionOperation] = {
    operation.name: operation
    for operation in (
        _scalar("sum", Constantly(0), prim.Sum),
        _scalar("product", Constantly(1), prim.Product),
        _scalar("max", lowest, prim.Max),
        _scalar("min", highest, prim.Min),
        _scalar("bit_and", ones, prim.BitwiseAnd),
        _scalar("bit_or", Constantly(0), prim.BitwiseOr),
        _scalar("bit_xor", Constantly(0), prim.BitwiseXor),
        _scalar("any", Constantly(False), prim.LogicalOr, boolean=True),
        _scalar("all", Constantly(True), prim.LogicalAnd, boolean=True),
        FirstExtremum("argmin"),
        FirstExtremum("argmax"),
    )
}


OPERATIONS: Mapping[type, str] = {
    operation.combine.node: name
    for name, operation in _BUILT_IN.items()
    if isinstance(operation, ScalarOperation) and isinstance(operation.combine, Joined)
}
"""The operation that a node of an expression makes: associative and commutative ones."""


def operations_of(own: Iterable[ReductionOperation]) -> Mapping[str, ReductionOperation]:
    """The built-in operations and a kernel's own, by name."""
    own = tuple(own)
    return {**_BUILT_IN, **{o.name: o for o in own}} if own else _BUILT_IN


def check_free_name(name: Any) -> str:
    """The name of a function of users' own, which is none of the language's."""
    word = check_function_name(name)
    if word in _BUILT_IN or word in DTYPES:
        raise InvalidArgumentError(
            f"'{word}' is already a function of the language", instead="another name is free"
        )
    return word


def own_operation(
    name: str,
    neutral: Any,
    combine: Callable[[Any, Any], Any],
    reference: Callable[[Any, Any], Any] | None,
    components: Sequence[str] | None,
    ordered: bool,
) -> ReductionOperation:
    """The operation of a call of :func:`~loopkit.register_reduction`, whose laws are not tested."""
    check_identifier(name, "the name of a reduction")
    for what, given in (("combine", combine), ("reference", reference)):
        if not callable(given) and not (what == "reference" and given is None):
            raise InvalidArgumentError(
                f"{what} is a function of two values, not {shown(given)}",
                instead="lambda a, b: a + b, for one that adds",
            )
    if name in _BUILT_IN:
        raise InvalidArgumentError(
            f"'{name}' is already a reduction", instead="another name is free"
        )
    combining = Given(name, "combine", combine)
    on_values = reference and Given(name, "reference", reference)
    if not isinstance(neutral, tuple):
        if components is not None:
            raise InvalidArgumentError(
                f"the reduction '{name}' has components, and one neutral element",
                instead="neutral is a tuple with one for each",
            )
        made = ScalarOperation(
            name,
            neutral=_neutral(name, neutral),
            combine=replace(combining, check=as_expression),
            reference=on_values and replace(on_values, check=as_number),
            is_ordered=ordered,
        )
        made.joined(FLOAT64)
        return made
    record = OwnRecord(
        name,
        _components(name, len(neutral), components),
        starts=tuple(_neutral(name, one) for one in neutral),
        combine=combining,
        reference=on_values,
        is_ordered=ordered,
    )
    record.joined(FLOAT64)
    return record


def _components(name: str, count: int, given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of a record's components."""
    if count < 2:
        raise InvalidArgumentError(
            f"the reduction '{name}' has a tuple of {counted(count, 'neutral element')}",
            instead="a reduction with one result has a number",
        )
    if given is None:
        return tuple(f"r{place}" for place in range(count))
    found = tuple(map(check_component, values_of("components", given, str)))
    if len(found) != count or len({*found}) != count:
        raise InvalidArgumentError(
            f"the reduction '{name}' has {counted(count, 'neutral element')}, and the components "
            f"{', '.join(found)}",
            instead="give each a different name",
        )
    return found


def _neutral(name: str, given: Any) -> Callable[[DType], Any]:
    """A neutral element as a function of a type."""
    if callable(given):
        return Given(name, "neutral", given, as_number)
    if not isinstance(given, (int, float, complex, np.generic)):
        raise InvalidArgumentError(
            f"neutral is a number, or a function of a type, not {shown(given)}"
        )
    return Constantly(given)


@dataclass(frozen=True, eq=False)
class Given(Exact):
    """A function of the user's; what it raises becomes an error that says whose it was.

    ``check`` looks at what it gives.
    """

    operation: str
    argument: str
    function: Callable[..., Any]
    check: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        try:
            found = self.function(*args)
        except LoopkitError:
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"{self.argument} of the reduction '{self.operation}' raised "
                f"{type(error).__name__}: {error}"
            ) from error
        return (
            found if self.check is None else self.check(found, self.operation, self.argument, args)
        )
