"""What all transforms share: arguments, history, errors, and the door to the checker."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from loopkit._budget import SpentError, at_most, in_turn
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    LoopkitError,
    UndecidedError,
)
from loopkit._history import History, Step
from loopkit._kernel import Kernel
from loopkit._nodes import Expression

if TYPE_CHECKING:
    from loopkit._check.lineage import Lineage


@dataclass(frozen=True)
class InstanceMap:
    """How instances of one new statement correspond to instances of an old one.

    ``values[iname]`` gives an old iname as an affine expression of the new
    statement's inames (and sizes); old inames that are missing kept their name.
    """

    new: str
    old: str
    values: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """What a transform returns: the new kernel and how old instances map to new ones.

    Statements of the new kernel that are in no map and keep an old id are
    mapped identically; those in ``moves`` only carry data.  ``fixed`` are sizes
    that became numbers.  ``assumes`` says that the step is a promise about
    sizes or data.
    """

    kernel: Kernel
    instances: tuple[InstanceMap, ...] = ()
    moves: frozenset[str] = frozenset()
    fixed: Mapping[str, int] = field(default_factory=dict)
    assumes: bool = False


F = TypeVar("F", bound=Callable[..., Any])

_transforms: dict[str, Callable[..., Kernel]] = {}


def transform(function: Callable[..., Change]) -> Callable[..., Kernel]:
    """Make a function ``(kernel, ...) -> Change`` a transform ``(kernel, ...) -> Kernel``.

    It checks the call's arguments, appends a step to the history, names the
    step in errors, and becomes a method of :class:`Kernel`.  ``unchecked=True``
    is accepted by every transform and recorded.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    required = sum(1 for _ in takewhile(_is_required, parameters))

    @wraps(function)
    @in_turn
    def apply(kernel: Kernel, *args: Any, unchecked: bool = False, **kwargs: Any) -> Kernel:
        start = time.perf_counter()
        if not isinstance(kernel, Kernel):
            raise InvalidArgumentError(
                f"{function.__name__} takes a kernel as its first argument, "
                f"not {type(kernel).__name__}"
            )
        try:
            bound = signature.bind(kernel, *args, **kwargs)
        except TypeError as error:
            names = ", ".join(_declaration(p) for p in parameters)
            raise InvalidArgumentError(
                f"{function.__name__}: {error}", instead=f"it takes ({names})"
            ) from None
        given = tuple(list(bound.arguments.items())[1:])
        step = Step(function.__name__, given, required=required)
        try:
            change = _made(function, bound)
        except LoopkitError as error:
            if error.step is None:
                error.step = step.call()[1:]
            _suggest(error, kernel, step)
            raise
        step = replace(step, verdict=_verdict(change, unchecked))
        lineage = None if unchecked else _proven(kernel, change, step)
        step = replace(step, seconds=time.perf_counter() - start)
        return change.kernel.recorded(History((*kernel.history, step)), lineage)

    setattr(Kernel, function.__name__, apply)
    _transforms[function.__name__] = apply
    return apply


BUDGET = 1_000_000
"""Operations that isl may spend on making a change, before anything is proven of it."""


def _made(function: Callable[..., Change], bound: inspect.BoundArguments) -> Change:
    """The change that a transform makes."""
    try:
        with at_most(BUDGET):
            return function(*bound.args, **bound.kwargs)
    except SpentError:
        raise UndecidedError(
            f"isl did not work out what becomes of the kernel within {BUDGET:,} operations",
            instead="steps that leave simpler bounds and subscripts may come first",
        ) from None


def _verdict(change: Change, unchecked: bool) -> str:
    """What will be known of a step: an assumption is a promise that somebody made."""
    if unchecked:
        return "unchecked"
    return "assumed" if change.assumes else "proven"


def _proven(kernel: Kernel, change: Change, step: Step) -> Lineage:
    """The lineage of a changed kernel that was proven to compute what the text says."""
    from loopkit._check import check_change

    try:
        return check_change(kernel, change, step)
    except LoopkitError as error:
        error.step = step.call()[1:]
        open_ = isinstance(error, UndecidedError)
        verdict = "cannot be proven legal" if open_ else "would break the kernel"
        error.asked = f"{error.step} {verdict}:"
        _suggest(error, kernel, step)
        raise


def _suggest(error: LoopkitError, kernel: Kernel, step: Step) -> None:
    """Have a refusal say what would be legal, to be found when somebody reads it."""
    if not isinstance(error, (IllegalTransformError, UndecidedError)):
        return
    from loopkit._check.report import with_suggestions
    from loopkit._check.suggest import Suggestions

    # Not `if error.suggestions`, which would look for them.
    if not isinstance(error.suggestions, Suggestions):
        with_suggestions(error, Suggestions(kernel, step))


def _is_required(parameter: inspect.Parameter) -> bool:
    """Whether an argument is always given, and may be given without its name."""
    named = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return named and parameter.default is inspect.Parameter.empty


def _declaration(parameter: inspect.Parameter) -> str:
    """A parameter as a caller sees it: its name and default."""
    if parameter.default is inspect.Parameter.empty:
        return str(parameter).split(":")[0]
    return f"{parameter.name}={parameter.default!r}"


def transform_named(name: str) -> Callable[..., Kernel]:
    """The transform called ``name``, for replaying a history."""
    from loopkit._errors import UnknownNameError

    if name not in _transforms:
        raise UnknownNameError("transform", name, _transforms)
    return _transforms[name]


def replay(kernel: Kernel, steps: tuple[Step, ...]) -> Kernel:
    """Apply recorded steps to another kernel, each checked anew."""
    for step in steps:
        arguments = dict(step.arguments)
        unchecked = step.verdict == "unchecked"
        kernel = transform_named(step.transform)(kernel, unchecked=unchecked, **arguments)
    return kernel
