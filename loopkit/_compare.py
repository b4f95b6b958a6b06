"""Comparing two kernels on random data."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg, ValueArg
from loopkit._assertions.assertion_values import Assertion, in_order
from loopkit._assertions.check import obeying_data
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError, LoopkitError, ResourceError, check_known
from loopkit._execute import best_executor, executor
from loopkit._expression import evaluate, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._run.scalars import check_scalar, dtype_of_scalar, dtype_of_weak
from loopkit._spelling import shown


@dataclass(frozen=True)
class Comparison:
    """What :func:`auto_test_vs_ref` saw.

    ``errors`` maps each output to ``|new - reference| / |reference|`` in the
    2-norm; ``seconds`` holds the wall time of the tested kernel's call, first
    compilation included.
    """

    errors: Mapping[str, float]
    seconds: float
    executor: str

    def __str__(self) -> str:
        shown = ", ".join(f"{name}: {error:.1e}" for name, error in self.errors.items())
        return f"same results on the {self.executor} executor ({shown}; {self.seconds:.3f} s)"


@fitting
@in_turn
def auto_test_vs_ref(
    ref_knl: Kernel,
    test_knl: Kernel,
    *,
    parameters: Mapping[str, int] | None = None,
    executor_name: str | None = None,
    ref_executor: str = "reference",
    seed: int = 0,
    tolerance: float | None = None,
) -> Comparison:
    """Run two kernels on the same random data, and compare their outputs.

    Index arrays get data that obeys what both kernels assert of it.

    :arg seed: of the random data.
    :arg parameters: sizes (and other scalar arguments) by name.
    :arg executor_name: where ``test_knl`` runs (default: the best here);
        ``ref_executor`` says the same of ``ref_knl``.
    :arg tolerance: the largest relative error; by default what the coarsest
        type among the outputs allows for sums of this length.
    :returns: a :class:`Comparison`.
    :raises LoopkitError: if an output differs, naming it and its worst element.
    """
    for kernel in (ref_knl, test_knl):
        if not isinstance(kernel, Kernel):
            raise InvalidArgumentError(
                f"auto_test_vs_ref takes two kernels, not {type(kernel).__name__}"
            )
    tolerance = checked_tolerance(tolerance)
    parameters = _checked_parameters(parameters, ref_knl, test_knl)
    rng = generator(seed)
    assertions = in_order((*{*ref_knl.assertions, *test_knl.assertions},))
    first = _arguments(ref_knl, assertions, parameters, rng)
    second = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in first.items()
    }
    expected = named_results(ref_knl, executor(ref_knl, ref_executor)(**first))
    chosen = best_executor() if executor_name is None else executor_name
    start = time.perf_counter()
    got = named_results(test_knl, executor(test_knl, chosen)(**second))
    seconds = time.perf_counter() - start
    if expected.keys() != got.keys():
        raise LoopkitError(
            f"the kernels write different arrays: {', '.join(expected)} and {', '.join(got)}"
        )
    errors = {
        name: check_same(name, np.asarray(expected[name]), np.asarray(got[name]), tolerance)
        for name in expected
    }
    return Comparison(errors, seconds, chosen)


def _checked_parameters(
    parameters: Mapping[str, int] | None, *kernels: Kernel
) -> Mapping[str, Any]:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidArgumentError(f"parameters maps names to values, and {shown(parameters)} not")
    values = {a.name: a for k in kernels for a in k.args if isinstance(a, ValueArg)}
    check_known("size or scalar argument", parameters or {}, values)
    checked = {}
    for name, value in (parameters or {}).items():
        own = values[name].dtype or dtype_of_scalar(value) or dtype_of_weak(name, value, ())
        checked[name] = check_scalar(name, value, own)
    return checked


def checked_tolerance(tolerance: float | None) -> float | None:
    """A tolerance that somebody gave, if it can be one."""
    is_number = isinstance(tolerance, int | float | np.floating) and tolerance >= 0
    if tolerance is not None and not is_number:
        raise InvalidArgumentError(
            f"tolerance is a number that is not negative, and {shown(tolerance)} is none"
        )
    return tolerance


def _arguments(
    kernel: Kernel,
    assertions: tuple[Assertion, ...],
    parameters: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Any]:
    values = [a for a in kernel.args if isinstance(a, ValueArg)]
    for missing in (a.name for a in values if a.name not in parameters and a.default is None):
        raise InvalidArgumentError(
            f"auto_test_vs_ref needs a value for '{missing}'",
            instead=f"parameters={{'{missing}': ...}}",
        )
    arguments: dict[str, Any] = {a.name: parameters[a.name] for a in values if a.name in parameters}
    arrays = [a for a in kernel.passed if isinstance(a, ArrayArg)]
    how = "pass them in parameters={...}"
    return arguments | random_arrays(arrays, assertions, parameters, rng, how)


def named_results(kernel: Kernel, result: Any) -> dict[str, Any]:
    """What a call returned, by name."""
    names = [a.name for a in kernel.args if a.name in kernel.writers]
    if len(names) == 1:
        return {names[0]: result}
    return dict(zip(names, result, strict=True)) if names else {}


def check_same(
    name: str,
    expected: np.ndarray[Any, Any],
    got: np.ndarray[Any, Any],
    tolerance: float | None,
) -> float:
    """The error of an array against what it should hold, ``|got - expected| / |expected|``.

    :raises LoopkitError: if it is above the tolerance; by default what the type allows for.
    """
    if expected.shape != got.shape:
        raise LoopkitError(f"'{name}' has the shape {got.shape}, and should have {expected.shape}")
    wide: Any = np.complex128 if expected.dtype.kind == "c" else np.float64
    exact = expected.dtype.kind in "iub"
    if tolerance is None:
        tolerance = 0.0 if exact else _tolerance_of(expected.dtype)
    a, b = expected.astype(wide), got.astype(wide)
    with np.errstate(all="ignore"):
        same = (expected == got) | (np.isnan(a) & np.isnan(b))
        # Differences of large integers may be below the precision of floats.
        difference = np.where(same, 0, np.maximum(np.abs(a - b), 1.0 if exact else 0.0))
        scale = float(np.linalg.norm(np.where(same & ~np.isfinite(a), 0, a).ravel())) or 1.0
        error = float(np.linalg.norm(difference.ravel())) / scale
    if not error <= tolerance:
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(difference, nan=np.inf))), a.shape)
        cell = ", ".join(str(int(i)) for i in worst)
        raise LoopkitError(
            f"'{name}' differs: relative error {error:.2e} is above {tolerance:.1e}; "
            f"{name}[{cell}] should be {expected[worst]}, but is {got[worst]}"
        )
    return error


def _tolerance_of(dtype: np.dtype[Any]) -> float:
    width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    if width == 2:
        return 0.02
    return 64 * float(np.finfo(np.float32 if width == 4 else np.float64).eps)


Array = np.ndarray[Any, np.dtype[Any]]


def generator(seed: int) -> np.random.Generator:
    """The random number generator for a seed."""
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
