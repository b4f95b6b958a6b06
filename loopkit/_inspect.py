"""Binaries and launches of a kernel, to look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._run.driver import Limits
from loopkit._run.module import check_grid
from loopkit._run.nvrtc import compile_program
from loopkit._run.plan import ArgumentPlan
from loopkit._run.resources import Resources
from loopkit._spelling import shown

DEFAULT_ARCH = "sm_90a"
_ARCH = re.compile(r"sm_[0-9]{2,4}[a-z]?", re.ASCII)


@dataclass(frozen=True)
class LaunchConfig:
    """Grid and block extents (x, y, z), and dynamic shared memory in bytes a block."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


def ptx(kernel: Kernel, arch: str | None = None) -> str:
    """PTX text."""
    return compile_program(kernel.program(), _arch(arch)).ptx


def cubin(kernel: Kernel, arch: str | None = None) -> bytes:
    """The binary."""
    return compile_program(kernel.program(), _arch(arch)).cubin


def sass(kernel: Kernel, arch: str | None = None) -> str:
    """Disassembled machine code."""
    from loopkit._run.resources import disassemble

    return disassemble(cubin(kernel, arch))


def resources(kernel: Kernel, arch: str | None = None) -> Resources:
    """What the binary uses."""
    return compile_program(kernel.program(), _arch(arch)).resources


def _arch(asked: str | None) -> str:
    if asked is None:
        return _here()
    if not isinstance(asked, str) or not _ARCH.fullmatch(asked):
        raise InvalidArgumentError(
            f"{shown(asked)} is no architecture of GPUs", instead=f"for example, '{DEFAULT_ARCH}'"
        )
    return asked


def _here() -> str:
    from loopkit._run.driver import current_arch

    return current_arch() or DEFAULT_ARCH


def launch_config(kernel: Kernel, sizes: Mapping[str, int]) -> LaunchConfig:
    """The launch for given sizes; raises for sizes that are unknown, missing or impossible."""
    program = kernel.program()
    needed: frozenset[str] = frozenset().union(*(variable_names(e) for e in program.grid))
    for name in sizes:
        if name not in kernel.sizes:
            raise UnknownNameError("size", name, kernel.sizes)
    missing = sorted(needed - sizes.keys())
    if missing:
        raise InvalidArgumentError(
            f"launch_config needs the sizes {', '.join(missing)}",
            instead=f"launch_config({', '.join(f'{m}=...' for m in missing)})",
        )
    plan = ArgumentPlan(program)
    grid = plan.grid_of(plan.check_sizes(sizes))
    check_grid(program, grid, Limits())
    return LaunchConfig(grid, program.block, program.dynamic_shared)
