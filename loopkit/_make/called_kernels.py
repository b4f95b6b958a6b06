"""Kernels that other kernels call, and kernels with calls whose functions are still missing."""

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
from loopkit._make.create import TEXT_PASSES, items_of, make_kernel
from loopkit._make.given_data import read_kernel_data
from loopkit._make.infer_arguments import read_dtypes
from loopkit._make.kernel_functions import KernelFunction, MissingFunctionError
from loopkit._make.making import Making
from loopkit._make.reduction_operations import check_free_name
from loopkit._spelling import shown


@fitting
def make_function(
    domains: Any,
    instructions: Any,
    kernel_data: Any = None,
    *,
    name: str,
    functions: Iterable[Any] = (),
    **more: Any,
) -> KernelFunction:
    """Make a kernel that other kernels can call: ``make_kernel(..., functions=[f])``.

    .. code-block:: python

        f = lk.make_function(
            "{ [i]: 0 <= i < n }", "y[i] = c*x[i]", ["x", "c", ...], name="f")
        knl = lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < m }",
            "[i]: b[i, j] = f([i]: a[i, j], 2)", functions=[f])

    A call means what the function's text says with the parts of arrays that it is given, in its
    place: the kernel holds those statements, tagged ``call.f``.  Arguments are what the function
    reads, in the order of ``kernel_data``; results what it writes.  Sizes that are extents of its
    arrays follow from the parts, unless the call gives all arguments.

    :arg domains: as of :func:`make_kernel`.
    :arg instructions: its text, in which other functions may be called.
    :arg kernel_data: its arguments in the order in which calls give them.
    :arg name: what calls say.
    :arg functions: what its text calls.
    :arg more: other arguments of :func:`make_kernel`.
    :returns: the function, which is a kernel by itself, too: ``f.kernel``.
    :raises LoopkitError: for what :func:`make_kernel` would refuse.
    """
    check_free_name(name)
    kernel = make_kernel(domains, instructions, kernel_data, name=name, functions=functions, **more)
    if more.get("substitutions"):
        raise InvalidArgumentError(
            "a function has no substitutions=", instead="its text can hold them: f(x) := ..."
        )
    making = Making(
        name,
        items_of(instructions),
        domains,
        read_kernel_data(kernel_data, more.get("temporary_variables", ())),
        dict(more.get("fixed_parameters") or {}),
        more.get("assumptions"),
        read_dtypes(more.get("dtypes")),
        default_order=more.get("default_order", "C"),
        reductions=tuple(more.get("reductions", ())),
        given_functions=functions,
    )
    for text_pass in TEXT_PASSES:
        text_pass(making)
    function = KernelFunction(
        name,
        tuple(making.items),
        making.domains,
        kernel,
        tuple(making.given.temporaries.values()),
        making.reductions,
        making.functions,
    )
    if not function.results:
        raise InvalidArgumentError(
            f"the function '{name}' gives nothing: its text writes no argument",
            instead="a call is assigned to what its function writes: [i]: y[i] = f([i]: x[i])",
        )
    return function


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Unlinked:
    """A kernel or a function whose text calls functions that are ``missing``.

    :func:`merge` makes a kernel of it; any other use raises the error about the missing function.
    """

    make: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: MissingFunctionError

    @property
    def missing(self) -> str:
        """The first function in the text that is not known."""
        return self.error.name

    def linked(self, functions: Iterable[Any]) -> Any:
        """The same, linked with some functions."""
        return self.make(*self.args, **{**self.kwargs, "functions": tuple(functions)})

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error

    def __str__(self) -> str:
        return f"a text that calls '{self.missing}', which merge([...]) brings"

    __repr__ = __str__


def linkable(make: Callable[P, R]) -> Callable[P, R]:
    """Let a maker of kernels return an :class:`Unlinked` where called functions are missing."""

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
    """Combine a kernel that calls functions with these functions.

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
    """The error for functions that cannot be linked: one is missing, or they call each other."""
    names = [one.kwargs.get("name") for one in waiting]
    for one in waiting:
        if one.missing not in names:
            return one.error
    through = ", ".join(f"'{name}'" for name in names)
    verb = "calls itself" if len(names) == 1 else "call each other in a cycle"
    return InvalidArgumentError(
        f"{through} {verb}: calls are inlined, and this recursion does not end",
        instead="write the repetition as a loop",
    )


def _tried(one: Unlinked, functions: Iterable[Any]) -> KernelFunction | None:
    """A function of those that it calls, if they are all there."""
    try:
        return cast(KernelFunction, one.linked(functions))
    except MissingFunctionError:
        return None
