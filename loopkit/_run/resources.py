"""What a compiled kernel uses, from the assembler's own report; and its machine code."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopkit._errors import CompileError, MissingDependencyError
from loopkit._frozen import dataclass
from loopkit._printed import Printed
from loopkit._program import Program


@dataclass(frozen=True)
class Resources(Printed):
    """Registers a thread; shared memory a block; stack and spills a thread; all in bytes.

    ``shared`` is static and dynamic shared memory together.  Spill bytes are stores
    and loads of registers that did not fit, as they stand in the code.
    """

    arch: str
    registers: int
    static_shared: int
    dynamic_shared: int
    stack: int
    spill_stores: int
    spill_loads: int
    threads: int

    @property
    def shared(self) -> int:
        """Shared memory that a block takes."""
        return self.static_shared + self.dynamic_shared

    def __str__(self) -> str:
        spills = "no spills"
        if self.spill_stores or self.spill_loads:
            spills = f"{self.spill_stores} bytes spilled, {self.spill_loads} reloaded"
        shared = f"{self.shared} bytes of shared memory"
        if self.dynamic_shared:
            shared += f" ({self.dynamic_shared} of them dynamic)"
        parts = [f"{self.registers} registers a thread", f"{shared} a block", spills]
        if self.stack:
            parts.insert(2, f"{self.stack} bytes of stack a thread")
        return f"{self.arch}: {self.threads} threads a block, {', '.join(parts)}"


_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


def from_log(log: str, program: Program, arch: str) -> Resources:
    """Read the report of ``--ptxas-options=-v`` about the program's own function."""
    entry = r"ptxas info\s*: Compiling entry function"
    reports = re.findall(rf"{entry} '{re.escape(program.name)}'.*?(?={entry}|\Z)", log, re.DOTALL)
    report = reports[-1] if reports else ""
    used = _REGISTERS.search(report)
    if used is None:
        raise CompileError(
            f"the compiler did not report what {program.name} uses",
            source=program.source,
            log=log,
        )
    # The frame of a called function is reported first, if any; the entry's own comes last.
    frames = _FRAME.findall(report)
    stack, stores, loads = map(int, frames[-1]) if frames else (0, 0, 0)
    shared = _SHARED.search(report)
    return Resources(
        arch=arch,
        registers=int(used[1]),
        static_shared=sum(int(n) for n in shared.groups() if n) if shared else 0,
        dynamic_shared=program.dynamic_shared,
        stack=stack,
        spill_stores=stores,
        spill_loads=loads,
        threads=program.block[0] * program.block[1] * program.block[2],
    )


#: The disassemblers, and how each is asked for the machine code of a file.
_DISASSEMBLERS = {"nvdisasm": "-c", "cuobjdump": "--dump-sass"}


def find_tool(*names: str) -> str:
    """Where the first of some of CUDA's command line tools is that is installed."""
    for name in names:
        found: Any = shutil.which(name)
        with contextlib.suppress(ImportError, AttributeError):
            from cuda import pathfinder

            found = pathfinder.find_nvidia_binary_utility(name) or found
        if found is not None:
            return str(found)
    raise MissingDependencyError(
        f"{' or '.join(names)} is not installed", instead="pip install 'loopkit[cuda]'"
    )


def disassemble(cubin: bytes, tools: Sequence[str] = tuple(_DISASSEMBLERS)) -> str:
    """The machine code of a binary as text, by the first of ``tools`` that is there."""
    tool = find_tool(*tools)
    return _run_tool(tool, cubin, _DISASSEMBLERS[Path(tool).stem])


def nvdisasm(cubin: bytes, *options: str) -> str:
    """What ``nvdisasm`` prints about a binary."""
    return _run_tool(find_tool("nvdisasm"), cubin, *options)


def _run_tool(tool: str, cubin: bytes, *options: str) -> str:
    with tempfile.TemporaryDirectory(prefix="loopkit-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [tool, *options, str(path)], capture_output=True, text=True, check=False, timeout=300
        )
    if done.returncode:
        raise CompileError(f"{tool} cannot read the binary", log=done.stderr)
    return done.stdout
