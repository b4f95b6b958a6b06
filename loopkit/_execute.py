"""Running a kernel.  The executors are imported when one is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from loopkit._kernel import Kernel


def executor(kernel: Kernel, name: str | None = None, **options: Any) -> Any:
    """The kernel bound to one executor: ``"cuda"``, ``"host"`` or ``"reference"``.

    ``name`` None picks ``"cuda"`` where there is a GPU, else ``"host"`` where
    there is a C++ compiler, else ``"reference"``.  ``"host"`` takes ``order``
    (``"ascending"``, ``"descending"``, ``"random"``), ``seed`` and ``sanitize``.
    ``check_assertions=True`` compares index arrays with what ``assume_injective``
    and its kin said of them, at every call; the reference always does, the host
    with ``sanitize=True`` unless it is told not to.

    Raises :class:`UnknownNameError` for any other name and for options that there are not,
    :class:`InvalidArgumentError` for those that the executor does not take, and for values
    that they cannot have.
    """
    from loopkit._executors import make_executor

    return make_executor(kernel, best_executor() if name is None else name, options)


def default_executor(kernel: Kernel) -> Any:
    """What calling the kernel runs."""
    return executor(kernel)


def best_executor() -> str:
    """``"cuda"``, ``"host"`` or ``"reference"``: the first that works here."""
    from loopkit._run.driver import has_gpu

    if has_gpu():
        return "cuda"
    from loopkit._host import find_compiler

    if find_compiler() is not None:
        return "host"
    if not _noticed:
        _noticed.append(True)
        print(
            "loopkit: no GPU and no C++ compiler here; kernels run in the reference interpreter, "
            "which is slow (loopkit doctor says what to install)",
            file=sys.stderr,
        )
    return "reference"


_noticed: list[bool] = []


def call(kernel: Kernel, /, *args: Any, **kwargs: Any) -> Any:
    """Run: arrays and sizes by name.  See :meth:`executor`."""
    # The executor replaces ``call`` by a function for the arguments that it saw last.
    return kernel._default_executor.call(*args, **kwargs)


def bind(kernel: Kernel, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Check arguments once; the result is a callable that only launches."""
    bound: Callable[..., Any] = kernel._default_executor.bind(*args, **kwargs)
    return bound
