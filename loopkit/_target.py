"""The machine that kernels are made for: its axes, its limits and the keywords of its language."""

from __future__ import annotations

from loopkit._frozen import dataclass

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Target:
    """What a launch may ask of a machine, and how its language says where a thread is.

    ``warp`` threads of consecutive linear indices run together; ``block_extents`` and
    ``grid_extents`` are the longest axes; ``shared`` bytes of shared memory are the most that
    a block has, ``static_shared`` of them without being asked for at the launch.
    """

    warp: int
    block_threads: int
    block_extents: Extents
    grid_extents: Extents
    static_shared: int
    shared: int
    registers: int
    block_index: tuple[str, str, str]
    thread_index: tuple[str, str, str]
    grid_size: tuple[str, str, str]
    block_barrier: str
    warp_barrier: str

    def index(self, kind: str, axis: int) -> str:
        """The word for a thread's place on an axis of the grid (``g``) or of its block (``l``)."""
        return (self.block_index if kind == "g" else self.thread_index)[axis]


CUDA = Target(
    warp=32,
    block_threads=1024,
    block_extents=(1024, 1024, 64),
    grid_extents=(2**31 - 1, 65535, 65535),
    static_shared=48 * 1024,
    shared=227 * 1024,
    registers=65536,
    block_index=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    thread_index=("threadIdx.x", "threadIdx.y", "threadIdx.z"),
    grid_size=("gridDim.x", "gridDim.y", "gridDim.z"),
    block_barrier="__syncthreads",
    warp_barrier="__syncwarp",
)
"""CUDA C++ for GPUs of compute capability 7.0 and later.

The limits are the most that any of them has, those of shared memory those of 9.0 and 10.0
(CUDA C++ Programming Guide, "Compute Capabilities"); a launch asks its own device.
"""
