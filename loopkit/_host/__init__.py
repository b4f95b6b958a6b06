"""The host executor: generated CUDA C, compiled for the CPU and run there.

Each CUDA thread of a block is a fibre.  Barriers, warp operations and shared memory have the same
semantics as on a GPU.  The order in which threads run between barriers can be reversed or
randomized, to detect missing barriers.
"""

from __future__ import annotations

from loopkit._host.compiler import find_compiler
from loopkit._host.launch import HostModule, compile_host

__all__ = ["HostModule", "compile_host", "find_compiler"]
