"""Execution of a kernel: choice of the executor, and its options.

Executor modules are imported on first use.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

from loopkit._arguments import flag
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._kernel import Kernel
from loopkit._spelling import shown


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
    chosen = chosen_executor(name)
    checked = _checked(chosen, options)
    from loopkit._executors import make_executor

    return make_executor(kernel, chosen, checked)


def chosen_executor(name: str | None) -> str:
    """The executor with this name, or the best there is for None."""
    chosen = best_executor() if name is None else name
    if not isinstance(chosen, str) or chosen not in EXECUTORS:
        raise UnknownNameError("executor", chosen, EXECUTORS)
    return chosen


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
    """Run the kernel on the best executor there is: arrays and sizes by name.

    Sizes come from shapes.  Outputs that are not passed are made; those that are, are written.
    Returns the output, or a named tuple of several, as the caller's kind of array.  Raises
    :class:`InvalidArgumentError` for arguments that do not fit, :class:`AssumptionError` for sizes
    that break an assumption, and :class:`LaunchError`.
    """
    # The executor replaces ``call`` by a function for the arguments that it saw last.
    return kernel._default_executor.call(*args, **kwargs)


def bind(kernel: Kernel, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Check arguments once; the result is a callable that only launches.

    ``args`` and ``kwargs`` are those of a call, by which the same arrays are used each time.
    Raises what a call raises.
    """
    bound: Callable[..., Any] = kernel._default_executor.bind(*args, **kwargs)
    return bound


def _order(name: str, value: Any) -> str:
    from loopkit._host.launch import ORDERS

    if not isinstance(value, str) or value not in ORDERS:
        raise UnknownNameError(f"thread {name}", value, ORDERS)
    return value


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name} is an integer, and {shown(value)} is none") from None


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "order": _order,
    "seed": _integer,
    "sanitize": flag,
    "check_assertions": flag,
}
_TAKEN = {
    "cuda": ("check_assertions",),
    "host": ("order", "seed", "sanitize", "check_assertions"),
    "reference": ("check_assertions",),
}
#: The names of the executors.
EXECUTORS = tuple(_TAKEN)


def _checked(executor: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given a value, if ``executor`` takes them and they can have it."""
    for option in options:
        if option in _TAKEN[executor]:
            continue
        others = " and ".join(name for name, taken in _TAKEN.items() if option in taken)
        if others:
            raise InvalidArgumentError(
                f"the {executor} executor does not take {option}",
                instead=f"it belongs to the {others} executor",
            )
        raise UnknownNameError(
            "option", option, _TAKEN[executor], asked=f"for the {executor} executor"
        )
    given = {option: value for option, value in options.items() if value is not None}
    return {option: _CHECKS[option](option, value) for option, value in given.items()}
