"""The host executor: generated CUDA C, compiled for the CPU and run there.

Each CUDA thread of a block is a fibre; barriers, warp operations and shared
memory mean what they mean on a GPU, and the order in which threads run between
barriers can be turned around or shuffled, so that a missing barrier shows.
"""

from __future__ import annotations

from loopkit._host.compiler import find_compiler
from loopkit._host.launch import HostModule, compile_host

__all__ = ["HostModule", "compile_host", "find_compiler"]
