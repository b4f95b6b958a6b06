"""Targets that scripts name: the code is CUDA C in any case, and runs on the CPU without a GPU."""

from __future__ import annotations

from typing import Any


class TargetBase:
    """A target, whatever it was made with; it changes nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class CudaTarget(TargetBase):
    """CUDA C, which is what there is."""


class OpenCLTarget(TargetBase):
    """OpenCL in Loopy; CUDA C here."""


class PyOpenCLTarget(OpenCLTarget):
    """OpenCL in Loopy; CUDA C here."""


class CTarget(TargetBase):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ExecutableCTarget(CTarget):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ISPCTarget(TargetBase):
    """ISPC in Loopy; CUDA C here."""
