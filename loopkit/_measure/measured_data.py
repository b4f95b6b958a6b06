"""The arguments of a measurement: those given, and random data for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg
from loopkit._assertions.assertion_values import Assertion, Within, in_order
from loopkit._compare import generator, random_arrays, shape_of
from loopkit._errors import InvalidArgumentError
from loopkit._executors import types_of
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._make.type_inference import infer_types
from loopkit._replay.examples import index_data
from loopkit._run.arrays import HOST
from loopkit._run.plan import ArgumentPlan
from loopkit.transforms import add_dtypes

HOW = "pass sizes by name: measure(knl, n=4096)"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A kernel whose types are known, its arguments by name, and its sizes.

    ``made`` names the arrays that were filled with random numbers.
    """

    kernel: Kernel
    arguments: Mapping[str, Any]
    sizes: Mapping[str, int]
    made: tuple[str, ...]


def prepared(
    kernel: Kernel,
    given: Mapping[str, Any],
    seed: int,
    assertions: tuple[Assertion, ...] = (),
    outputs: bool = False,
) -> Prepared:
    """The arguments of a kernel: arrays that it reads, and that nobody gave, get random numbers.

    Data obey what the kernel, and ``assertions``, say of them.  With ``outputs``, arrays that are
    only written hold what nobody would compute: NaN, or the least number of their type.

    Raises :class:`InvalidArgumentError` for sizes that are not known, and for index arrays of
    which nothing is asserted: random numbers there would lead anywhere.
    """
    types = types_of(kernel, given)
    kernel = add_dtypes(kernel, types) if types else kernel
    kernel = infer_types(kernel)
    plan = ArgumentPlan(kernel.program())
    given = plan.given((), given)
    arrays, known = plan.describe(dict(given), partly=True), plan.passed(given)
    plan.solver.infer(known, arrays)
    values = known.values
    missing = [a for a in kernel.passed if isinstance(a, ArrayArg) and a.name not in arrays]
    read = [a for a in missing if a.name in plan.arrays and plan.arrays[a.name].is_read]
    if read and any(info.location != HOST for info in arrays.values()):
        plan.describe(dict(given))  # says which are missing: random numbers are made on the host
    plan.complete(values)
    sizes = {name: int(values[name]) for name in kernel.sizes if name in values}
    assertions = in_order((*{*kernel.assertions, *assertions},))
    about = {a.array for a in assertions if isinstance(a, Within)}
    if leading := [a.name for a in read if a.name in index_data(kernel) - about]:
        raise InvalidArgumentError(
            f"the values of '{leading[0]}' decide which cells are touched: no random ones will do",
            instead=f"pass {leading[0]}=..., or say "
            f'assume_within("{leading[0]}", lower, upper) of the kernel',
        )
    made = random_arrays(read, assertions, sizes, generator(seed), HOW)
    empty = {
        a.name: _poisoned(shape_of(a, sizes, HOW), plan.arrays[a.name].dtype)
        for a in missing
        if outputs and a.name in plan.outputs and a not in read
    }
    return Prepared(kernel, {**values, **given, **made, **empty}, sizes, tuple(made))


def _poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """An array that holds what nobody would compute: NaN, or the least number of its type."""
    if dtype.kind in "iu":
        return np.full(shape, np.iinfo(dtype).min, dtype)
    return np.full(shape, False if dtype.kind == "b" else np.nan).astype(dtype)
