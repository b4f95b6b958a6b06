"""What scripts import from ``loopy.kernel.data``."""

from __future__ import annotations

from loopkit import (
    AddressSpace,
    ArrayArg,
    ConstantArg,
    GlobalArg,
    SubstitutionRule,
    TemporaryVariable,
    ValueArg,
    auto,
)
from loopkit._tags import GroupAxis as GroupInameTag
from loopkit._tags import InstructionParallel as IlpBaseTag
from loopkit._tags import LocalAuto as AutoFitLocalInameTag
from loopkit._tags import LocalAxis as LocalInameTag
from loopkit._tags import Tag as InameImplementationTag
from loopkit._tags import Unroll as UnrollTag

UnrolledIlpTag = IlpBaseTag

__all__ = [
    "AddressSpace",
    "ArrayArg",
    "AutoFitLocalInameTag",
    "ConstantArg",
    "GlobalArg",
    "GroupInameTag",
    "IlpBaseTag",
    "InameImplementationTag",
    "LocalInameTag",
    "SubstitutionRule",
    "TemporaryVariable",
    "UnrollTag",
    "UnrolledIlpTag",
    "ValueArg",
    "auto",
]
