"""What scripts import from ``loopy.kernel.instruction``."""

from loopkit.loopy._instructions import (
    Assignment,
    BarrierInstruction,
    CallInstruction,
    NoOpInstruction,
)

__all__ = ["Assignment", "BarrierInstruction", "CallInstruction", "NoOpInstruction"]
