"""What a fault is, and the switch that plants it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from refusals.case import Step, schedule

import loopkit as lk

Sizes = Mapping[str, int]
FAULTS: dict[str, Fault] = {}
"""All faults, by name."""


@dataclass(frozen=True)
class Patch:
    """A function of the product (``"transforms.split:rewrite_statements"``) made faulty.

    ``make`` gets what stands there and returns what is to stand there.
    """

    target: str
    make: Callable[[Any], Any]

    def owner(self) -> tuple[Any, str]:
        """The module or class that holds the function, and its name there."""
        module, _, path = self.target.partition(":")
        *parents, name = path.split(".")
        owner: Any = importlib.import_module(f"loopkit.{module}")
        for parent in parents:
            owner = getattr(owner, parent)
        return owner, name


@dataclass(frozen=True)
class Fault:
    """One fault, and a schedule on which it matters.

    ``chain`` is applied to ``kernel`` before the fault is planted, ``step`` while it is.
    Without a step the fault is one of code generation.  ``sizes`` are those for which
    the result is shown to be wrong; ``values`` are given to arrays of these names.
    ``then`` is a step that only the fault makes acceptable.  ``by_running``: only the
    host executor shows what is wrong.  ``sanitize``: it goes out of bounds, so that it
    runs in a process of its own.  ``evidence`` shows what is wrong where running cannot.
    ``strided``: arrays that do not lie contiguously.
    """

    name: str
    patches: tuple[Patch, ...]
    kernel: Callable[[], lk.Kernel]
    sizes: tuple[Sizes, ...]
    step: Step | None = None
    chain: tuple[Step, ...] = ()
    by_running: bool = False
    then: Step | None = None
    sanitize: bool = False
    strided: frozenset[str] = frozenset()
    values: Callable[[Sizes], Mapping[str, Any]] | None = None
    evidence: Callable[[lk.Kernel], str | None] | None = None

    @property
    def part(self) -> str:
        """The transform or pass that the fault is planted in."""
        return self.name.partition(":")[0]

    def before(self) -> lk.Kernel:
        """The kernel that the faulty step (or pass) meets."""
        return schedule(self.kernel(), self.chain)


def fault(
    name: str,
    kernel: Callable[[], lk.Kernel],
    step: Step | None,
    *patches: Patch,
    sizes: Sizes | tuple[Sizes, ...] = (),
    chain: tuple[Step, ...] = (),
    by_running: bool = False,
    then: Step | None = None,
    sanitize: bool = False,
    strided: str = "",
    evidence: Callable[[lk.Kernel], str | None] | None = None,
    values: Callable[[Sizes], Mapping[str, Any]] | None = None,
) -> None:
    """Put a fault on the list."""
    assert name not in FAULTS, name
    several = sizes if isinstance(sizes, tuple) else (sizes,)
    FAULTS[name] = Fault(
        name,
        patches,
        kernel,
        several or ({},),
        step,
        chain,
        by_running,
        then,
        sanitize,
        frozenset(strided),
        values,
        evidence,
    )


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The fault ``name`` is in the product; kernels made meanwhile are faulty."""
    undo: list[Any] = []
    try:
        for patch in FAULTS[name].patches:
            owner, attribute = patch.owner()
            original = owner.__dict__[attribute] if isinstance(owner, type) else None
            if original is None:
                original = getattr(owner, attribute)
            change = mock.patch.object(owner, attribute, patch.make(original))
            change.start()
            undo.append(change)
        yield
    finally:
        for change in reversed(undo):
            change.stop()
