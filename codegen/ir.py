"""The small tree between a kernel and its printed forms."""

from __future__ import annotations

from dataclasses import dataclass

from loopkit._kernel import Statement
from loopkit._nodes import Expression


@dataclass(frozen=True)
class For:
    """``for iname in range(lower, upper, step)``."""

    iname: str
    lower: Expression
    upper: Expression
    step: int
    unroll: bool
    body: tuple[Code, ...]


@dataclass(frozen=True)
class Let:
    """A loop that runs exactly once: ``iname`` is ``value`` in ``body``."""

    iname: str
    value: Expression
    body: tuple[Code, ...]


@dataclass(frozen=True)
class If:
    """``body`` where ``condition`` holds."""

    condition: Expression
    body: tuple[Code, ...]


@dataclass(frozen=True)
class Do:
    """One statement."""

    statement: Statement


@dataclass(frozen=True)
class Barrier:
    """All threads of the block wait, or those of each warp; ``reason`` says for what."""

    reason: str
    of_warp: bool = False


Code = For | Let | If | Do | Barrier
