"""The small tree between a kernel and its printed forms."""

from __future__ import annotations

from dataclasses import dataclass, field

import islpy as isl

from loopkit._kernel import Statement
from loopkit._nodes import Expression

Context = tuple[isl.Set, ...]
"""What loops and guards around a node enforce: the intersection of sets."""


@dataclass(frozen=True)
class For:
    """``for iname in range(lower, upper, step)``."""

    iname: str
    lower: Expression
    upper: Expression
    step: int
    unroll: bool
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Let:
    """A loop that runs exactly once: ``iname`` is ``value`` in ``body``."""

    iname: str
    value: Expression
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class If:
    """``body`` where ``condition`` holds."""

    condition: Expression
    body: tuple[Code, ...]
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Do:
    """One statement."""

    statement: Statement
    context: Context = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Barrier:
    """All threads of the block wait, or those of each warp; ``reason`` says for what."""

    reason: str
    of_warp: bool = False


Code = For | Let | If | Do | Barrier
