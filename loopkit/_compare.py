"""Comparing two kernels on random data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg, ValueArg
from loopkit._assertions import Assertion, in_order
from loopkit._assertions.generate import obeying_data
from loopkit._budget import in_turn
from loopkit._errors import InvalidArgumentError, LoopkitError
from loopkit._expression import evaluate, variable_names
from loopkit._kernel import Kernel


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
    """Run two kernels on the same random data, and compare all that they write.

    Index arrays get data that obeys what both kernels assert of it.

    :arg parameters: sizes (and other scalar arguments) by name.
    :arg executor_name: where ``test_knl`` runs (default: the best here);
        ``ref_executor`` says the same of ``ref_knl``.
    :arg tolerance: the largest relative error; by default what the coarsest
        type among the outputs allows for sums of this length.
    :returns: a :class:`Comparison`.
    :raises LoopkitError: if an output differs, naming it and its worst element.
    """
    from loopkit._execute import best_executor, executor

    parameters = dict(parameters or {})
    rng = np.random.default_rng(seed)
    assertions = in_order((*{*ref_knl.assertions, *test_knl.assertions},))
    first = _arguments(ref_knl, assertions, parameters, rng)
    second = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in first.items()
    }
    expected = _named(ref_knl, executor(ref_knl, ref_executor)(**first))
    chosen = executor_name or best_executor()
    start = time.perf_counter()
    got = _named(test_knl, executor(test_knl, chosen)(**second))
    seconds = time.perf_counter() - start
    if expected.keys() != got.keys():
        raise LoopkitError(
            f"the kernels write different arrays: {', '.join(expected)} and {', '.join(got)}"
        )
    errors = {
        name: _compare(name, np.asarray(expected[name]), np.asarray(got[name]), tolerance)
        for name in expected
    }
    return Comparison(errors, seconds, chosen)


def _arguments(
    kernel: Kernel,
    assertions: tuple[Assertion, ...],
    parameters: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for argument in kernel.args:
        if isinstance(argument, ValueArg):
            if argument.name in parameters:
                arguments[argument.name] = parameters[argument.name]
            elif argument.default is None:
                raise InvalidArgumentError(
                    f"auto_test_vs_ref needs a value for '{argument.name}'",
                    instead=f"parameters={{'{argument.name}': ...}}",
                )
    for argument in kernel.args:
        if isinstance(argument, ArrayArg):
            arguments[argument.name] = _random(argument, parameters, rng)
    if assertions:
        arrays = {n: (a.shape, a.dtype) for n, a in arguments.items() if hasattr(a, "dtype")}
        whole = {n: v for n, v in arrays.items() if v[1].kind in "iu"}
        arguments.update(obeying_data(assertions, whole, parameters, rng))
    return arguments


def _random(
    argument: ArrayArg, parameters: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    names = frozenset().union(*(variable_names(e) for e in argument.shape or ()))
    missing = sorted(names - parameters.keys())
    if missing:
        raise InvalidArgumentError(
            f"the shape of '{argument.name}' needs {', '.join(missing)}",
            instead="pass them in parameters={...}",
        )
    shape = tuple(int(evaluate(e, parameters)) for e in argument.shape or ())
    dtype = argument.dtype or np.dtype(np.float32)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    values = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return values.astype(dtype)


def _named(kernel: Kernel, result: Any) -> dict[str, Any]:
    names = [a.name for a in kernel.args if a.name in kernel.writers]
    if len(names) == 1:
        return {names[0]: result}
    return dict(zip(names, result, strict=True)) if names else {}


def _compare(
    name: str,
    expected: np.ndarray[Any, Any],
    got: np.ndarray[Any, Any],
    tolerance: float | None,
) -> float:
    wide: Any = np.complex128 if expected.dtype.kind == "c" else np.float64
    if expected.dtype.kind in "iub":
        tolerance = 0.0 if tolerance is None else tolerance
    elif tolerance is None:
        tolerance = 64 * float(
            np.finfo(np.float32).eps if expected.dtype.itemsize == 4 else np.finfo(np.float64).eps
        )
        if expected.dtype.itemsize == 2:
            tolerance = 0.02
    a, b = expected.astype(wide), got.astype(wide)
    same_nan = np.isnan(a) & np.isnan(b)
    difference = np.where(same_nan, 0, np.abs(a - b))
    scale = float(np.linalg.norm(np.where(same_nan, 0, a).ravel())) or 1.0
    error = float(np.linalg.norm(difference.ravel())) / scale
    if not error <= tolerance:
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(difference, nan=np.inf))), a.shape)
        cell = ", ".join(str(int(i)) for i in worst)
        raise LoopkitError(
            f"'{name}' differs: relative error {error:.2e} is above {tolerance:.1e}; "
            f"{name}[{cell}] should be {expected[worst]}, but is {got[worst]}"
        )
    return error


class GeneratedCode:
    """What :func:`generate_code_v2` returns."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def device_code(self) -> str:
        """The CUDA C source."""
        return self._kernel.cuda()


def generate_code_v2(kernel: Kernel) -> GeneratedCode:
    """The generated code, in the form that Loopy's scripts ask for."""
    return GeneratedCode(kernel)
