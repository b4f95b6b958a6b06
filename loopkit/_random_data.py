"""Random arrays for kernels to run on: what they assert of their data holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg
from loopkit._assertions.generate import obeying_data
from loopkit._assertions.values import Assertion
from loopkit._errors import InvalidArgumentError, ResourceError
from loopkit._expression import evaluate, variable_names
from loopkit._spelling import shown

Array = np.ndarray[Any, np.dtype[Any]]


def generator(seed: int) -> np.random.Generator:
    """The source of random numbers that a seed stands for."""
    try:
        return np.random.default_rng(seed)
    except Exception:  # NumPy says it in many ways
        raise InvalidArgumentError(
            f"seed is an integer that is not negative, and {shown(seed)} is none"
        ) from None


def random_arrays(
    arguments: Iterable[ArrayArg],
    assertions: tuple[Assertion, ...],
    sizes: Mapping[str, Any],
    rng: np.random.Generator,
    how: str,
) -> dict[str, Array]:
    """Numbers from -1 to 1, integers below 100, and for index arrays what is asserted of them.

    ``how`` tells how missing sizes are given.
    """
    made = {argument.name: _random(argument, sizes, rng, how) for argument in arguments}
    if assertions:
        whole = {n: (a.shape, a.dtype) for n, a in made.items() if a.dtype.kind in "iu"}
        made.update(obeying_data(assertions, whole, sizes, rng))
    return made


def shape_of(argument: ArrayArg, sizes: Mapping[str, Any], how: str) -> tuple[int, ...]:
    """The shape of an argument at these sizes."""
    names = frozenset().union(*(variable_names(e) for e in argument.shape or ()))
    missing = sorted(names - sizes.keys())
    if missing:
        raise InvalidArgumentError(
            f"the shape of '{argument.name}' needs {', '.join(missing)}", instead=how
        )
    shape = tuple(int(evaluate(e, sizes)) for e in argument.shape or ())
    if min(shape, default=0) < 0:
        raise InvalidArgumentError(
            f"'{argument.name}' would have the shape {shape} for these parameters"
        )
    return shape


def _random(
    argument: ArrayArg, sizes: Mapping[str, Any], rng: np.random.Generator, how: str
) -> Array:
    shape = shape_of(argument, sizes, how)
    try:
        return _values(shape, argument.dtype or np.dtype(np.float32), rng)
    except (MemoryError, ValueError) as error:  # the latter for more than there are addresses
        raise ResourceError(f"there is no memory for '{argument.name}' of shape {shape}") from error


def _values(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    values = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return values.astype(dtype)
