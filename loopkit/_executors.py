"""Construction of executors by name, and the executor that interprets the kernel in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from loopkit._arrays import ValueArg
from loopkit._errors import InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._make.type_inference import infer_types
from loopkit._program import Program
from loopkit._run.host import CpuExecutor, HostExecutor
from loopkit._run.kinds import info_of
from loopkit._run.plan import ArgumentPlan, Resolved
from loopkit._run.scalars import dtype_of_scalar, dtype_of_weak
from loopkit.codegen.functions import parameters
from loopkit.codegen.lower import checks, computed_checks, program_of
from loopkit.transforms import add_dtypes


def make_executor(kernel: Kernel, name: str, options: dict[str, Any]) -> Any:
    """The executor called ``name``, its options being checked: see `loopkit._execute.executor`."""
    if any(a.dtype is None for a in kernel.args):
        return TypedOnCall(kernel, name, options)
    return _make(kernel, name, options)


def _make(kernel: Kernel, name: str, options: dict[str, Any]) -> Any:
    if name == "reference":
        return ReferenceExecutor(kernel, **options)
    from loopkit._run.executor import CudaExecutor

    own = {option: value for option, value in options.items() if option != "check_assertions"}
    kind: Any = CudaExecutor if name == "cuda" else HostExecutor
    made = kind(partial(program_of, kernel), **own)
    check = options.get("check_assertions")
    if check is None:
        check = bool(own.get("sanitize"))
    if not check or not kernel.assertions:
        return made
    from loopkit._run.asserted import AssertingExecutor

    return AssertingExecutor(made, kernel.assertions)


class TypedOnCall:
    """An executor for a kernel with untyped arguments, which get their types from each call."""

    def __init__(self, kernel: Kernel, name: str, options: dict[str, Any]) -> None:
        self.kernel = kernel
        self.name = name
        self.options = options
        self._typed: dict[frozenset[tuple[str, np.dtype[Any]]], Any] = {}

    def _executor(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            raise InvalidArgumentError(
                f"{self.kernel.name}: pass arguments by name while some have no type",
                instead="give types with make_kernel(..., dtypes={...})",
            )
        dtypes = types_of(self.kernel, kwargs)
        key = frozenset(dtypes.items())
        if key not in self._typed:
            kernel = add_dtypes(self.kernel, dtypes) if dtypes else self.kernel
            self._typed[key] = _make(kernel, self.name, self.options)
        return self._typed[key]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._executor(args, kwargs)(**kwargs)

    call = __call__

    def bind(self, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Check arguments once; the result only launches."""
        bound: Callable[..., Any] = self._executor(args, kwargs).bind(**kwargs)
        return bound


def types_of(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
    """The types that a call's arguments give to those which the kernel left open.

    Numbers of Python's are weak: they take the type that all arrays together would give them.
    """
    given = {a.name: arguments[a.name] for a in kernel.args if arguments.get(a.name) is not None}
    known = {a.name: a.dtype for a in kernel.args if a.dtype is not None}
    values = {a.name for a in kernel.args if isinstance(a, ValueArg)}
    found = {
        name: dtype_of_scalar(value) if name in values else info_of(name, value).dtype
        for name, value in given.items()
        if name not in known
    }
    strong = [t for name, t in (known | found).items() if t is not None and name not in values]
    return {
        name: dtype_of_weak(name, given[name], strong) if dtype is None else dtype
        for name, dtype in found.items()
    }


class ReferenceExecutor(CpuExecutor):
    """Runs the kernel's text, instance by instance, in NumPy."""

    def __init__(self, kernel: Kernel, *, check_assertions: bool = True) -> None:
        if not check_assertions:
            raise InvalidArgumentError(
                "the reference executor always checks what the kernel asserts of its data",
                instead='the host executor does not, unless asked: executor("host")',
            )
        self.kernel = kernel
        typed = infer_types(kernel)
        signature = Program(  # without any lowering
            name=typed.name,
            source="",
            params=tuple(parameters(typed, [])),
            grid=(1, 1, 1),
            block=(1, 1, 1),
            checks=(*checks(typed.assumptions.set), *computed_checks(typed)),
            arguments=tuple(a.name for a in typed.passed),
        )
        self.plan = ArgumentPlan(signature)

    def run(self, resolved: Resolved) -> None:
        """Interpret the text."""
        from loopkit._reference import run_reference

        arrays = resolved.numpy_arrays()
        outputs = run_reference(self.kernel, {**resolved.values, **arrays})
        for name, value in outputs.items():
            if name in arrays and arrays[name] is not value:
                arrays[name][...] = value
