"""What an iname is mapped to: blocks, threads, unrolled copies, or a plain loop."""

from __future__ import annotations

import re
from typing import ClassVar

from loopkit._errors import UnknownNameError
from loopkit._frozen import dataclass


@dataclass(frozen=True)
class Tag:
    """The base of all tags; ``str(tag)`` is its spelling in a schedule."""

    spelling: ClassVar[str] = ""
    is_parallel: ClassVar[bool] = False
    """Whether the iname is a hardware coordinate, not a loop."""

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True)
class _HardwareAxis(Tag):
    axis: int
    is_parallel: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{self.spelling}.{self.axis}"


@dataclass(frozen=True)
class GroupAxis(_HardwareAxis):
    """``g.N``: the block index along axis N (0 is x)."""

    spelling = "g"


@dataclass(frozen=True)
class LocalAxis(_HardwareAxis):
    """``l.N``: the thread index along axis N (0 is x)."""

    spelling = "l"


@dataclass(frozen=True)
class LocalAuto(Tag):
    """``l.auto``: to be distributed over the threads of the block, once these are known."""

    spelling = "l.auto"
    is_parallel: ClassVar[bool] = True


@dataclass(frozen=True)
class Unroll(Tag):
    """``unr``: a loop whose copies are all written out by the compiler."""

    spelling = "unr"


@dataclass(frozen=True)
class InstructionParallel(Tag):
    """``ilp``: copies of each statement side by side, each with private temporaries."""

    spelling = "ilp"


_SIMPLE: dict[str, Tag | None] = {
    "for": None,
    "ord": None,
    "unr": Unroll(),
    "ilp": InstructionParallel(),
    "ilp.unr": InstructionParallel(),
    "l.auto": LocalAuto(),
}
SPELLINGS = (
    *(name for name in _SIMPLE if name != "ord"),
    *(f"{kind}.{axis}" for kind in "gl" for axis in range(3)),
)
"""All that :func:`parse_tag` knows, but for "ord", which is Loopy's word for "for"."""

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
        raise UnknownNameError("tag", str(tag), SPELLINGS)
    axis = int(match[2])
    return GroupAxis(axis) if match[1] == "g" else LocalAxis(axis)
