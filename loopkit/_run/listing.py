"""Listings of a compiled kernel: machine code and PTX, linked to the lines of CUDA C.

NVRTC generates the line table that debuggers use, which changes no instruction.  Code inlined from
CUDA's headers is attributed to the line of the kernel that called it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from loopkit._errors import CompileError
from loopkit._frozen import dataclass
from loopkit._program import Program
from loopkit._relations import grouped
from loopkit._run import nvrtc


class PtxLine(NamedTuple):
    """A line of PTX, and the line of the source (from 1) that it comes from, if any."""

    text: str
    line: int | None


class SassLine(NamedTuple):
    """A machine instruction, or a label (without an address), as text.

    ``address`` is in bytes from the function's first; ``line`` and ``ptx_line`` (from 1) say
    where it comes from in the source and in the PTX; ``live`` is how many 32-bit general
    registers of a thread are in use there.
    """

    text: str
    address: int | None
    line: int | None
    ptx_line: int | None
    live: int | None

    @property
    def opcode(self) -> str:
        """``FFMA``: the instruction without predicate, modifiers and operands; empty for labels."""
        found = None if self.address is None else _OPCODE.match(self.text)
        return found[1] if found else ""


_OPCODE = re.compile(r"(?:@!?\w+\s+)?(\w+)")


@dataclass(frozen=True)
class Listing:
    """What a program was compiled to for one architecture: source, PTX and SASS, linked.

    The machine code is that of all launches, one after the other, and addresses count anew in
    each; ``resources`` are those of each.
    """

    arch: str
    source: tuple[str, ...]
    ptx: tuple[PtxLine, ...]
    sass: tuple[SassLine, ...]
    resources: tuple[nvrtc.Resources, ...]


def listing_of(program: Program, arch: str) -> Listing:
    """Compile ``program`` for ``arch`` and link its machine code to PTX and source.

    Raises :class:`CompileError` where the compiler rejects it, and
    :class:`MissingDependencyError` where NVRTC or ``nvdisasm`` is not installed.
    """
    compiled = nvrtc.compile_program(program, arch, with_lines=True)
    file = f"{program.name}.cu"
    return Listing(
        arch=arch,
        source=tuple(program.source.splitlines()),
        ptx=tuple(_ptx(compiled.ptx, file)),
        sass=tuple(_sass(compiled.cubin, [part.name for part in program.parts], file)),
        resources=tuple(part.resources for part in compiled.parts),
    )


# `.loc 1 12 5`, or `.loc 2 700 3, function_name $L__info_string0, inlined_at 1 12 5`.
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*\binlined_at\s+(\d+)\s+(\d+)\s)?")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')


def _ptx(text: str, file: str) -> Iterator[PtxLine]:
    """The lines, each with its line of ``file``; every line counts as in the text as it is."""
    lines = text.splitlines()
    found = (_FILE.match(line) for line in lines)
    mine = {f[1] for f in found if f is not None and PurePath(f[2]).name == file}
    here: int | None = None
    for line in lines:
        at = _LOC.match(line)
        if at is not None:
            number = at[2] if at[1] in mine else at[4] if at[3] in mine else None
            here = here if number is None else int(number)
        code = line.strip(" \t{}") and not line.lstrip().startswith((".", "//"))
        yield PtxLine(line, (here or None) if code else None)  # line 0 is none of the source's


_MARK = re.compile(r'\s*//## File "([^"]*)", line (\d+)(?:.*inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"(\.L[\w.]*):")
_LIVE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/.*?//\s*\|\s*(\d*)\s*\|")
_PTX_FILE = ".nv_debug_ptx_txt"


def _sass(cubin: bytes, names: Sequence[str], file: str) -> Iterator[SassLine]:
    """The instructions and labels of functions, each under its name where there are several."""
    listed = nvrtc.nvdisasm(cubin, "-c", "-gi", "-gp")
    counted = nvrtc.nvdisasm(cubin, "-c", "-lrm", "count")
    for name in names:
        if len(names) > 1:
            yield SassLine(f"{name}:", None, None, None, None)
        yield from _instructions(_function(listed, name), _function(counted, name), file)


def _instructions(listed: Iterator[str], counted: Iterator[str], file: str) -> Iterator[SassLine]:
    found = filter(None, map(_LIVE.match, counted))
    live = {int(one[1], 16): int(one[2] or 0) for one in found}
    line: int | None = None
    ptx_line: int | None = None
    for text in listed:
        mark = _MARK.match(text)
        if mark is not None:
            line, ptx_line = _moved(mark, file, line, ptx_line)
        elif (one := _INSTRUCTION.match(text)) is not None:
            address = int(one[1], 16)
            yield SassLine(one[2], address, line, ptx_line, live.get(address))
        elif (label := _LABEL.match(text)) is not None:
            yield SassLine(f"{label[1]}:", None, None, None, None)


def _moved(
    mark: re.Match[str], file: str, line: int | None, ptx_line: int | None
) -> tuple[int | None, int | None]:
    """The lines of source and PTX after a remark of the disassembler's."""
    if mark[1] == _PTX_FILE:
        return line, int(mark[2])
    for path, number in ((mark[1], mark[2]), (mark[3], mark[4])):
        if path is not None and PurePath(path).name == file:
            return int(number), ptx_line
    return line, ptx_line


def _function(text: str, name: str) -> Iterator[str]:
    """The lines of the code section of the function ``name``."""
    inside = False
    seen = False
    for line in text.splitlines():
        if line.startswith("//---"):
            inside = f".text.{name} " in line
            seen = seen or inside
        elif inside:
            yield line
    if not seen:
        raise CompileError(f"the disassembler shows no function {name}", log=text[:2000])


def lines_of(listing: Listing) -> Mapping[int, tuple[int, ...]]:
    """For each line of the source the positions in ``listing.sass`` of what it became."""
    places = enumerate(listing.sass)
    return grouped((one.line, position) for position, one in places if one.line is not None)
