"""What a case says: a kernel, legal steps, one illegal step, and the nearest legal schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loop_instances import change_of
from seams import Change, then
from seams import registered_transforms as transforms

import loopkit as lk
from loopkit import LoopkitError

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Step:
    """A transform with its arguments."""

    transform: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    def apply(self, kernel: lk.Kernel, *, unchecked: bool = False) -> lk.Kernel:
        return transforms[self.transform](kernel, *self.args, unchecked=unchecked, **self.options)

    def change(self, kernel: lk.Kernel) -> Change:
        """What the transform does, and how old instances map to new ones; no check."""
        return change_of(transforms[self.transform], kernel, *self.args, **self.options)

    def __str__(self) -> str:
        given = [repr(a) for a in self.args]
        given += [f"{name}={value!r}" for name, value in self.options.items()]
        return f".{self.transform}({', '.join(given)})"


def do(transform: str, *args: Any, **options: Any) -> Step:
    """A step, as one writes a call."""
    return Step(transform, args, options)


def schedule(kernel: lk.Kernel, steps: tuple[Step, ...]) -> lk.Kernel:
    """The kernel after some steps, each checked."""
    for step in steps:
        kernel = step.apply(kernel)
    return kernel


@dataclass(frozen=True)
class Expected:
    """What the witness must say; instances of the text as they print, ``s[i=1]``.

    All of it comes from enumeration: the smallest sizes (in the order of their names)
    for which a pair is out of order, then the earliest source, then the earliest sink.
    The witness may name the two the other way round: first who overwrites, then who reads.
    ``named`` are words that the message must hold where there is no pair to name.
    """

    array: str | None = None
    cell: tuple[int, ...] | None = None
    source: str | None = None
    sink: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    named: tuple[str, ...] = ()


def pair(array: str, cell: tuple[int, ...], source: str, sink: str, **sizes: int) -> Expected:
    """An expected witness of two instances."""
    return Expected(array, cell, source, sink, sizes)


def message(*named: str) -> Expected:
    """An expected refusal without instances: the message holds these words."""
    return Expected(named=named)


@dataclass(frozen=True)
class Case:
    """One illegal schedule and the nearest legal one.

    ``kernel`` makes the plain kernel, ``chain`` are legal steps, ``illegal`` is the step
    that must be refused with ``error`` and ``expected``.  ``legal`` are the steps, from the
    plain kernel on, of the schedule that must be accepted; it may also begin with another
    kernel, ``legal_kernel``, for the same sizes.  ``sizes`` are ragged sizes for which it
    must be right on the host executor.

    ``data`` gives arrays of integers for sizes: those that decide what is touched;
    ``worst`` gives such arrays for which the illegal step is wrong.  ``largest`` is how far
    sizes are tried.  With ``is_wrong`` False the refusal is about what the transform itself
    cannot do: it does not apply, also where nothing is checked.  With ``arguments_stay``
    False the wrong kernel does not write what the right one does.
    """

    name: str
    kernel: Callable[[], lk.Kernel]
    illegal: Step
    error: type[LoopkitError]
    expected: Expected
    legal: tuple[Step, ...]
    sizes: tuple[Sizes, ...]
    chain: tuple[Step, ...] = ()
    legal_kernel: Callable[[], lk.Kernel] | None = None
    data: Callable[[Sizes], Mapping[str, Any]] | None = None
    worst: Callable[[Sizes], Mapping[str, Any]] | None = None
    largest: int = 6
    is_wrong: bool = True
    arguments_stay: bool = True

    def before(self) -> lk.Kernel:
        """The kernel that the illegal step meets."""
        return schedule(self.kernel(), self.chain)

    def change(self) -> Change:
        """All steps from the text on, the illegal one last, as one change; nothing is checked."""
        change = Change(self.kernel())
        for step in (*self.chain, self.illegal):
            change = then(self.kernel(), change, step.change(change.kernel))
        return change

    def legal_plain(self) -> lk.Kernel:
        """The kernel that the legal steps begin with."""
        return (self.legal_kernel or self.kernel)()
