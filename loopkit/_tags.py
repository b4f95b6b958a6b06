"""What an iname is mapped to: blocks, threads, unrolled copies, or a plain loop."""

from __future__ import annotations

import re

from loopkit._errors import UnknownNameError
from loopkit._frozen import dataclass


@dataclass(frozen=True)
class Tag:
    """The base of all tags; ``str(tag)`` is its spelling in a schedule."""

    @property
    def is_parallel(self) -> bool:
        """Whether the iname is a hardware coordinate, not a loop."""
        return False


@dataclass(frozen=True)
class GroupAxis(Tag):
    """``g.N``: the block index along axis N (0 is x)."""

    axis: int

    @property
    def is_parallel(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"g.{self.axis}"


@dataclass(frozen=True)
class LocalAxis(Tag):
    """``l.N``: the thread index along axis N (0 is x)."""

    axis: int

    @property
    def is_parallel(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"l.{self.axis}"


@dataclass(frozen=True)
class LocalAuto(Tag):
    """``l.auto``: to be laid over the threads of the block by whoever makes the iname."""

    def __str__(self) -> str:
        return "l.auto"


@dataclass(frozen=True)
class Unroll(Tag):
    """``unr``: a loop whose copies are all written out by the compiler."""

    def __str__(self) -> str:
        return "unr"


@dataclass(frozen=True)
class InstructionParallel(Tag):
    """``ilp``: copies of each statement side by side, each with private temporaries."""

    def __str__(self) -> str:
        return "ilp"


_SIMPLE: dict[str, Tag | None] = {
    "for": None,
    "unr": Unroll(),
    "ilp": InstructionParallel(),
    "ilp.unr": InstructionParallel(),
    "l.auto": LocalAuto(),
}
_AXIS = re.compile(r"([gl])\.([0-2])")


def parse_tag(tag: str | Tag | None) -> Tag | None:
    """The tag that a string spells; None for a plain sequential loop (``"for"``).

    Raises :class:`UnknownNameError` for anything else.
    """
    if tag is None or isinstance(tag, Tag):
        return tag
    if tag in _SIMPLE:
        return _SIMPLE[tag]
    match = _AXIS.fullmatch(tag)
    if match is None:
        known = [*_SIMPLE, "g.0", "g.1", "g.2", "l.0", "l.1", "l.2"]
        raise UnknownNameError("tag", str(tag), known)
    axis = int(match[2])
    return GroupAxis(axis) if match[1] == "g" else LocalAxis(axis)
