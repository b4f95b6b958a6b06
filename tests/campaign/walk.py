"""One sequence of transforms, drawn step by step on a kernel."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seams import open_lengths

import loopkit as lk

from . import steps
from .steps import Call


@dataclass(frozen=True)
class Refusal:
    """A step that was refused, and what it was tried on."""

    before: lk.Kernel
    calls: tuple[Call, ...]
    call: Call
    error: lk.LoopkitError


@dataclass(frozen=True)
class Crash:
    """Something that is no error of loopkit's own escaped."""

    calls: tuple[Call, ...]
    call: Call | None  # None: at lowering
    error: Exception

    @property
    def where(self) -> str:
        """The kind of exception and the innermost line of loopkit's that it came through."""
        frames = traceback.extract_tb(self.error.__traceback__)
        own = [f for f in frames if "/tests/" not in f.filename and "loopkit" in f.filename]
        own = own or [f for f in frames if "/tests/" not in f.filename] or list(frames)
        name = own[-1].filename.rsplit("/", 2)[-2:]
        return f"{type(self.error).__name__} in {'/'.join(name)}: {own[-1].name}"


@dataclass
class Walk:
    """What became of a sequence: the kernel that it led to, and what happened on the way."""

    kernel: lk.Kernel
    calls: tuple[Call, ...] = ()
    refusals: list[Refusal] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    fixed: dict[str, int] = field(default_factory=dict)
    seconds: list[tuple[str, float]] = field(default_factory=list)


Note = Callable[[Sequence[Call]], None]


def walk(
    r: random.Random, start: Walk, most: int, note: Note | None = None, together: bool = False
) -> Walk:
    """Up to ``most`` more steps, refused ones included; ``note`` hears of each beforehand.

    ``together``: most of them are about what threads do together.
    """
    found = Walk(start.kernel, start.calls, fixed=dict(start.fixed))
    theme = steps.Theme(r, together)
    for _ in range(r.randint(1 if start.calls else 2, most)):
        call = theme.draw(found.kernel)
        if call is not None:
            attempt(found, call, note)
    return found


def attempt(found: Walk, call: Call, note: Note | None = None) -> None:
    """Try one more step."""
    if note is not None:
        note((*found.calls, call))
    start = time.process_time()
    try:
        kernel = call.apply(found.kernel)
    except lk.LoopkitError as error:
        found.refusals.append(Refusal(found.kernel, found.calls, call, error))
    except Exception as error:
        found.crashes.append(Crash(found.calls, call, error))
    else:
        found.kernel = kernel
        found.calls = (*found.calls, call)
        if call.transform == "fix_parameters":
            found.fixed |= call.arguments
    found.seconds.append((call.transform, time.process_time() - start))


def fixed_by(calls: Sequence[Call]) -> dict[str, int]:
    """The sizes that ``calls`` make numbers."""
    fixed: dict[str, int] = {}
    for call in calls:
        if call.transform == "fix_parameters":
            fixed |= call.arguments
    return fixed


_BLANKS = (
    (re.compile(r"'[^']*'"), "'_'"),
    (re.compile(r"\b\w+\[[^\]]*\]+"), "_[_]"),
    (re.compile(r" \((\w+=-?\d+(, )?)+\)"), ""),
    (
        re.compile(r"\b(read|overwrite|write|add to|written|reads|writes) (?!in\b|it\b|to\b)\w+\b"),
        r"\1 _",
    ),
    (re.compile(r"-?\b\d+\b"), "#"),
    (re.compile(r"it has .* (iterations|values)"), r"it has _ \1"),
)


def is_owed(error: lk.LoopkitError, kernel: lk.Kernel) -> bool:
    """Whether lowering refuses a kernel for a length that a later step may settle."""
    return any(error.why == owed.why for owed in open_lengths(kernel))


def blanked(text: str) -> str:
    """The first line of a message without names and numbers, for counting alike ones together."""
    line = text.split("\n", 1)[0]
    for pattern, blank in _BLANKS:
        line = pattern.sub(blank, line)
    return line if len(line) <= 110 else line[:107] + "..."
