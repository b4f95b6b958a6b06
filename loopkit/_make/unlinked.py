"""Texts that call functions which nobody has given yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from loopkit import _arguments as kind
from loopkit._called import fitting
from loopkit._device_functions import DeviceFunction, tag_of
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._make.kernel_functions import KernelFunction, MissingFunctionError
from loopkit._spelling import shown

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Unlinked:
    """What :func:`make_kernel` or :func:`make_function` gives for a text that calls ``missing``.

    :func:`merge` makes it a kernel; whatever else is asked of it raises the error that says so.
    """

    make: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: MissingFunctionError

    @property
    def missing(self) -> str:
        """The function that is called first and not known."""
        return self.error.name

    def linked(self, functions: Iterable[Any]) -> Any:
        """The same with some functions."""
        return self.make(*self.args, **{**self.kwargs, "functions": tuple(functions)})

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error

    def __str__(self) -> str:
        return f"a text that calls '{self.missing}', which merge([...]) brings"

    __repr__ = __str__


def linkable(make: Callable[P, R]) -> Callable[P, R]:
    """Let a maker of kernels give an :class:`Unlinked` for what it was given no functions."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = kwargs.get("functions")
        if isinstance(given, (list, tuple)) and any(isinstance(f, Unlinked) for f in given):
            kwargs["functions"] = _linked(given)
        try:
            return make(*args, **kwargs)
        except MissingFunctionError as error:
            if kwargs.get("functions"):
                raise
            return cast(R, Unlinked(make, args, kwargs, error))

    return made


@fitting
def merge(kernels: Iterable[Any]) -> Kernel:
    """One kernel of a text that calls functions, and of these, in any order.

    .. code-block:: python

        knl = lk.merge([lk.make_kernel(domains, "[i]: y[i] = f([i]: x[i])"), f])

    The same as ``make_kernel(domains, text, functions=[f])``.

    :arg kernels: what :func:`make_kernel` gave for the text, and what :func:`make_function`,
        or :func:`register_callable`, made.
    :returns: the kernel.
    :raises InvalidArgumentError: where there is no such text, or more than one, where a function
        is missing, or is called by nobody.
    """
    takes = "a list of a text that calls functions, and of these"
    given = kind.items("kernels", kernels, takes)
    kinds = (KernelFunction, DeviceFunction, Unlinked)
    texts = [f for f in given if isinstance(f, Unlinked) and f.make.__name__ == "make_kernel"]
    for other in given:
        if not isinstance(other, kinds):
            raise InvalidArgumentError(
                f"merge takes {takes}, and not {shown(other)}",
                instead="a kernel that calls nothing needs no merge; fuse_kernels joins kernels",
            )
    if len(texts) != 1:
        raise InvalidArgumentError(
            f"merge makes one kernel, of one text that calls functions, and {len(texts) or 'none'} "
            f"{'is' if len(texts) < 2 else 'are'} there",
            instead="merge([make_kernel(domains, '[i]: y[i] = f([i]: x[i])'), f]) brings the f "
            "that is called",
        )
    functions = _linked([f for f in given if f is not texts[0]])
    found: Kernel = texts[0].linked(functions)
    tags = frozenset[str]().union(*(s.tags for s in found.statements))
    called = [f.name for f in functions if isinstance(f, KernelFunction)]
    idle = [name for name in called if tag_of(name) not in tags]
    if idle:
        raise InvalidArgumentError(f"nobody calls '{idle[0]}'", instead="it can be left out")
    return found


def _linked(given: Iterable[Any]) -> list[Any]:
    """Functions, those that call others of them made from their texts."""
    functions = [f for f in given if not isinstance(f, Unlinked)]
    waiting = [f for f in given if isinstance(f, Unlinked)]
    while waiting:
        made = [(one, _tried(one, functions)) for one in waiting]
        done = {one: f for one, f in made if f is not None}
        if not done:
            raise _why_not(waiting)
        functions += done.values()
        waiting = [one for one in waiting if one not in done]
    return functions


def _why_not(waiting: Iterable[Unlinked]) -> InvalidArgumentError | MissingFunctionError:
    """None of them calls only what is there: something is missing, or they call each other."""
    names = [one.kwargs.get("name") for one in waiting]
    for one in waiting:
        if one.missing not in names:
            return one.error
    through = ", ".join(f"'{name}'" for name in names)
    verb = "calls itself" if len(names) == 1 else "call each other, round in a circle"
    return InvalidArgumentError(
        f"{through} {verb}: what a function says stands in the place of its calls, without end",
        instead="a loop does again and again what it holds",
    )


def _tried(one: Unlinked, functions: Iterable[Any]) -> KernelFunction | None:
    """A function of those that it calls, if they are all there."""
    try:
        return cast(KernelFunction, one.linked(functions))
    except MissingFunctionError:
        return None
