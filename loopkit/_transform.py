"""Shared parts of all transforms: argument checks, history, errors, and the call of the checker."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from itertools import takewhile
from typing import Any, Concatenate, ParamSpec

from loopkit import _budget
from loopkit._arguments import Kind, flag, is_plain, kinds_of, plain
from loopkit._assertions.assertion_values import lasting
from loopkit._budget import SpentError, in_turn, within
from loopkit._called import fitting
from loopkit._change import Change
from loopkit._check import check_change
from loopkit._check.instance_maps import Lineage, text_with_names
from loopkit._check.violation import Violation
from loopkit._compat.gone import without_ignored
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    LoopkitError,
    UndecidedError,
)
from loopkit._history import History, Step
from loopkit._kernel import Kernel
from loopkit._registry import transform_named
from loopkit._slabs import used_slabs, without_lost
from loopkit._spelling import shown

P = ParamSpec("P")
Makes = Callable[Concatenate[Kernel, P], Change]
Transform = Callable[Concatenate[Kernel, P], Kernel]


def transform(function: Makes[P]) -> Transform[P]:
    """Make a function ``(kernel, ...) -> Change`` a transform ``(kernel, ...) -> Kernel``.

    Its signature says of each argument what that can be (:mod:`loopkit._arguments`).  The
    transform checks the call's arguments, hands their normal forms to the function, appends a
    step to the history, and names the step in errors.  Every transform takes
    ``unchecked=True``, which skips the proof and is recorded: the function declares it, and
    never sees it.
    """
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "unchecked"][1:]
    if len(parameters) + 2 != len(signature.parameters):
        raise TypeError(f"{function.__name__} does not declare 'unchecked'")
    required = sum(1 for _ in takewhile(_is_required, parameters))
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    @wraps(function)
    @in_turn
    def apply(*args: Any, **kwargs: Any) -> Kernel:
        start = time.perf_counter()
        try:
            bound = signature.bind(*args, **without_ignored(function.__name__, kwargs))
        except TypeError as error:
            names = ", ".join(_declaration(p) for p in parameters)
            raise InvalidArgumentError(
                f"{function.__name__}: {error}", instead=f"it takes ({names})"
            ) from None
        unchecked = bound.arguments.pop("unchecked", False)
        kernel = next(iter(bound.arguments.values()))
        if not isinstance(kernel, Kernel):
            raise InvalidArgumentError(
                f"{function.__name__} takes a kernel as its first argument, "
                f"not {type(kernel).__name__}"
            )
        raw = tuple(list(bound.arguments.items())[1:])
        try:
            unchecked = flag("unchecked", unchecked)
            given = _normal(bound, kinds_of(function), defaults)
        except LoopkitError as error:
            error.step = Step(function.__name__, raw, required=required).call()[1:]
            raise
        step = Step(function.__name__, given, required=required)
        try:
            change = _made(function, bound)
            if lost := _lost_slabs(kernel, change.kernel):
                kernel = without_lost(kernel, lost)
                bound.arguments[next(iter(bound.arguments))] = kernel
                change = _made(function, bound)
        except LoopkitError as error:
            if error.step is None:
                error.step = step.call()[1:]
            _suggest(error, kernel, step)
            raise
        # An assumption is a promise of the user, with nothing to prove.
        verdict = "unchecked" if unchecked else "assumed" if change.assumes else "proven"
        step = replace(step, verdict=verdict)
        lineage = None if unchecked else _proven(kernel, change, step)
        if change.wishes and lineage is not None:
            change, lineage = _with_wishes(kernel, change, lineage)
        if change.is_text and lineage is not None:
            lineage = text_with_names(change.kernel, lineage)
        # Copies, so that a history keeps none of what its kernels remember.
        kernels = replace(kernel), replace(change.kernel, history=kernel.history, lineage=lineage)
        step = replace(step, seconds=time.perf_counter() - start, kernels=kernels)
        new = change.kernel.recorded(History((*kernel.history, step)), lineage)
        if not unchecked:
            _check_code(new, step)
        return new

    apply.__annotations__ = {**function.__annotations__, "return": "Kernel"}
    shown_as = [p.replace(annotation=plain(p.annotation)) for p in signature.parameters.values()]
    apply.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=shown_as, return_annotation=plain("Kernel")
    )
    return apply


def _normal(
    bound: inspect.BoundArguments, kinds: Mapping[str, Kind], defaults: Mapping[str, Any]
) -> tuple[tuple[str, Any], ...]:
    """Convert arguments to their normal forms; also returns the arguments to record."""
    given: list[tuple[str, Any]] = []
    for name in list(bound.arguments)[1:]:
        value, kind = bound.arguments[name], kinds[name]
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            normal: Any = {key: kind(f"'{key}'", one) for key, one in value.items()}
        else:
            is_default = value is defaults.get(name, kinds)
            normal = value if is_default else kind(name, value)
        bound.arguments[name] = normal
        given.append((name, value if is_plain(value) else normal))
    return tuple(given)


def _made(function: Callable[..., Change], bound: inspect.BoundArguments) -> Change:
    """The change that a transform makes."""
    try:
        change = within(_budget.CHANGE, partial(function, *bound.args, **bound.kwargs))
        said = lasting(bound.args[0], change.kernel)
        is_same = said == change.kernel.assertions
        return change if is_same else replace(change, kernel=change.kernel.with_(assertions=said))
    except SpentError:
        raise UndecidedError(
            f"isl did not work out what becomes of the kernel within {_budget.CHANGE:,} operations",
            instead="steps that leave simpler bounds and subscripts may come first",
        ) from None


def _lost_slabs(old: Kernel, new: Kernel) -> list[str]:
    """The inames with slabs that the new kernel has no loops over: they are peeled first."""
    recorded = {i for i, _, _ in new.slabs if i not in new.home_domain}
    return [i for i in used_slabs(old) if i in recorded]


def _with_wishes(kernel: Kernel, change: Change, lineage: Lineage) -> tuple[Change, Lineage]:
    """A proven change, together with those of its wishes that can be proven."""
    for wish in change.wishes:
        more = replace(change, kernel=wish(change.kernel))
        if more.kernel is change.kernel:
            continue
        try:
            lineage = check_change(kernel, more)
        except (IllegalTransformError, UndecidedError):
            continue
        change = more
    return change, lineage


def _check_code(kernel: Kernel, step: Step) -> None:
    """Raise where no code can be generated for the kernel that a step made."""
    from loopkit._check.code_check import check_code

    try:
        check_code(kernel)
    except LoopkitError as error:
        error.step = step.call()[1:]
        asked = f"{error.step} gives a kernel for which no code can be generated:\n{error.asked}"
        error.asked = asked.rstrip()
        raise


def _proven(kernel: Kernel, change: Change, step: Step) -> Lineage:
    """The lineage of a changed kernel that was proven to compute what the text says."""
    try:
        return check_change(kernel, change, partial(_suggestions, kernel, step, change))
    except LoopkitError as error:
        open_ = isinstance(error, UndecidedError)
        if open_:
            from loopkit._check.small_sizes import wrong_for_numbers

            if (wrong := wrong_for_numbers(kernel, change)) is not None:
                error, open_ = wrong, False
        error.step = step.call()[1:]
        verdict = "cannot be proven legal" if open_ else "would break the kernel"
        error.asked = f"{error.step} {verdict}:"
        _suggest(error, kernel, step)
        raise error from None


def _suggest(error: LoopkitError, kernel: Kernel, step: Step) -> None:
    """Attach suggestions to a refusal, which are computed when they are first read."""
    if not isinstance(error, (IllegalTransformError, UndecidedError)):
        return
    # Not `if error.suggestions`, which would look for them.
    if error.suggestions == ():
        error.suggest(_suggestions(kernel, step))


def _suggestions(
    kernel: Kernel,
    step: Step,
    change: Change | None = None,
    wrong: Callable[[], Sequence[Violation]] = tuple,
) -> Sequence[str]:
    """Legal alternatives to a step, computed when they are first read."""
    from loopkit._check.suggest import Suggestions

    return Suggestions(kernel, step, change, wrong)


def _is_required(parameter: inspect.Parameter) -> bool:
    """Whether an argument is always given, and may be given without its name."""
    named = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return named and parameter.default is inspect.Parameter.empty


def _declaration(parameter: inspect.Parameter) -> str:
    """A parameter as a caller sees it: its name and default."""
    if parameter.default is inspect.Parameter.empty:
        return str(parameter).split(":")[0]
    return f"{parameter.name}={parameter.default!r}"


@fitting
def replay(kernel: Kernel, steps: Iterable[Step]) -> Kernel:
    """Apply recorded steps to another kernel, and check each of them.

    :arg steps: a history, or some steps of one.
    :returns: the kernel after the last step.
    :raises LoopkitError: what a step raises that cannot be taken, or would break the kernel.
    """
    if not isinstance(steps, (tuple, list)) or not all(isinstance(s, Step) for s in steps):
        raise InvalidArgumentError(
            f"a history is a sequence of steps, not {shown(steps)}",
            instead="kernel.history is one; step_from_json reads a step that was stored",
        )
    for step in steps:
        arguments = dict(step.arguments)
        if not arguments.keys().isdisjoint(("kernel", "unchecked")):
            raise InvalidArgumentError(f"a step of '{step.transform}' records no such argument")
        unchecked = step.verdict == "unchecked"
        kernel = transform_named(step.transform)(kernel, unchecked=unchecked, **arguments)
    return kernel
