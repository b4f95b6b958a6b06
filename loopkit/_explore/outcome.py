"""The outcome of one choice: the kernel or the error, and further results about the kernel.

Results are computed in stages, quick ones first.  Each stage makes a new value from the one before,
so that a user who changes a control need not wait for the remaining stages.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

from loopkit._costs.costs import Costs
from loopkit._costs.counted import costs_of
from loopkit._costs.devices import Device
from loopkit._errors import LoopkitError, UndecidedError, UnknownNameError, WitnessError
from loopkit._explore.controls import arguments, label
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._spelling import shown

if TYPE_CHECKING:
    from loopkit._measure.measure import Measurement
    from loopkit._pictures.witness import WitnessPicture
    from loopkit.codegen.proof import Proof

MEASURED = 0.25
"""Seconds for which a kernel is measured."""

PRINTED = 4_000
"""Characters of what a schedule's function prints that are kept."""

_LOOPKIT = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Failure:
    """Why something is not there.

    ``error`` is what was raised, ``said`` its message, and ``at`` the line of the user's function
    that led to it.  ``remedies`` are changes that would be legal, once they were looked for.
    """

    error: BaseException = field(compare=False)
    said: str
    at: str = ""
    picture: WitnessPicture | None = field(default=None, compare=False)
    remedies: tuple[str, ...] = ()

    @property
    def is_refusal(self) -> bool:
        """Whether loopkit said no: otherwise the function itself failed."""
        return isinstance(self.error, LoopkitError)

    @property
    def role(self) -> str:
        """The role of what went wrong."""
        return "undecided" if isinstance(self.error, UndecidedError) else "refused"

    @property
    def kind(self) -> str:
        """The class of the error."""
        return type(self.error).__name__


@dataclass(frozen=True)
class Asked:
    """The schedule's function, and what to find out about its kernels beside their source.

    See :func:`loopkit.explore`.
    """

    make: Callable[..., Kernel]
    sizes: Mapping[str, int]
    device: Device | None
    arrays: Mapping[str, Any]
    measure: bool


@dataclass(frozen=True)
class Outcome:
    """What comes of one choice.

    ``seconds`` is how long the function took, ``printed`` what it printed.  A value that is None
    was not asked for, or is still ``left`` to be found, in this order.
    """

    choice: tuple[tuple[str, Any], ...]
    kernel: Kernel | None = None
    failure: Failure | None = None
    seconds: float = field(default=0.0, compare=False)
    printed: str = ""
    source: str | Failure | None = None
    costs: Costs | Failure | None = None
    proof: Proof | Failure | None = field(default=None, compare=False)
    script: str | Failure | None = None
    measurement: Measurement | Failure | None = field(default=None, compare=False)
    left: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The choice in words."""
        return ", ".join(f"{name} = {label(value)}" for name, value in self.choice)


def made(asked: Asked, choice: Mapping[str, Any]) -> Outcome:
    """Call the function: the first stage, after which all others are left."""
    args, by_name = arguments(asked.make, choice)
    chosen = tuple(choice.items())
    out = io.StringIO()
    kernel: Kernel | None = None
    failure: Failure | None = None
    start = time.perf_counter()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            found: object = asked.make(*args, **by_name)
        except (Exception, SystemExit) as error:
            took = time.perf_counter() - start
            failure = _failure(error, asked.make)
        else:
            took = time.perf_counter() - start
            if isinstance(found, Kernel):
                kernel = found
            else:
                why = f"the function returns {shown(found)}, and no kernel"
                failure = Failure(TypeError(why), why)
    left = ("source", *_questions(kernel, asked)) if kernel is not None else ()
    if failure is not None and isinstance(failure.error, WitnessError):
        left = ("suggestions",)
    text = out.getvalue()
    printed = text[:PRINTED] + "…" * (len(text) > PRINTED)
    return Outcome(chosen, kernel, failure, took, printed, left=left)


def _questions(kernel: Kernel, asked: Asked) -> tuple[str, ...]:
    is_sized = bool(asked.sizes) or not kernel.sizes
    return (
        *(("costs",) if is_sized else ()),
        "proof",
        *(("device",) if is_sized and asked.device is not None else ()),
        *(("measurement",) if asked.measure and (is_sized or asked.arrays) else ()),
        "script",
    )


def _failure(error: BaseException, make: object = None) -> Failure:
    """An error without the frames that it went through, so that nothing in them is kept."""
    code = getattr(make, "__code__", None)
    at = "" if make is None else _place(error.__traceback__, code)
    error.__traceback__ = None
    if not isinstance(error, LoopkitError):
        said = "".join(traceback.format_exception_only(error)).strip()
        return Failure(error, said, at)
    picture = None
    if isinstance(error, WitnessError):
        with contextlib.suppress(LoopkitError):
            picture = error.picture()
        # Suggestions, which the message ends with, are looked for later.
        return Failure(error, LoopkitError.__str__(error), at, picture)
    return Failure(error, str(error), at)


def _place(trace: TracebackType | None, code: CodeType | None) -> str:
    """The innermost line of the user's function, or else the innermost that is not loopkit's."""
    found = ""
    for frame, line in traceback.walk_tb(trace):
        name = frame.f_code.co_filename
        mine = name == code.co_filename if code is not None else not name.startswith(_LOOPKIT)
        if mine:
            text = linecache.getline(name, line, frame.f_globals).strip()
            found = f"line {line}" + (f": {text}" if text else "")
    return found


def further(outcome: Outcome, asked: Asked) -> Outcome:
    """The outcome after the first stage that is left; itself where none is."""
    if not outcome.left:
        return outcome
    stage, *left = outcome.left
    rest = replace(outcome, left=tuple(left))
    if stage == "suggestions":
        return replace(rest, failure=_with_remedies(outcome.failure))
    try:
        found = _FINDERS[stage](outcome, asked)
    except Exception as error:  # even a defect of loopkit's own is shown
        found = _failure(error)
        if stage == "source":  # nothing else can be found without
            rest = replace(rest, left=())
    return replace(rest, **{_FIELD.get(stage, stage): found})


def _with_remedies(failure: Failure | None) -> Failure:
    assert failure is not None and isinstance(failure.error, WitnessError)
    remedies = tuple(failure.error.suggestions)
    return replace(failure, said=str(failure.error), remedies=remedies)


def _kernel(outcome: Outcome) -> Kernel:
    assert outcome.kernel is not None
    return outcome.kernel


def _on_device(outcome: Outcome, asked: Asked) -> Costs | Failure | None:
    """What the device adds, for which the code is compiled."""
    if not isinstance(outcome.costs, Costs):
        return outcome.costs
    found = outcome.costs.on(asked.device)
    str(found)  # remembers what it prints
    return found


def _script(outcome: Outcome, asked: Asked) -> str:
    from loopkit._explore.script import script

    return script(asked.make, dict(outcome.choice), _kernel(outcome))


def _measurement(outcome: Outcome, asked: Asked) -> Measurement:
    from loopkit._measure.measure import measure

    kernel = _kernel(outcome)
    given = {**_given(kernel, asked.sizes), **_given(kernel, asked.arrays)}
    return measure(kernel, given, seconds=MEASURED)


_FINDERS: Mapping[str, Callable[[Outcome, Asked], Any]] = {
    "source": lambda outcome, asked: _kernel(outcome).program().source,
    "costs": lambda outcome, asked: costs_of(
        _kernel(outcome), _given(_kernel(outcome), asked.sizes)
    ),
    "proof": lambda outcome, asked: _kernel(outcome).prove(),
    "device": _on_device,
    "measurement": _measurement,
    "script": _script,
}
_FIELD = {"device": "costs"}


def _given(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """What of sizes and arrays the kernel takes: a step may have fixed a size."""
    root = kernel.lineage.root if kernel.lineage is not None else kernel
    for name in values:
        if name not in root.arg_by_name and name not in kernel.arg_by_name:
            raise UnknownNameError("argument", name, kernel.arg_by_name)
    return {name: value for name, value in values.items() if name in kernel.arg_by_name}
