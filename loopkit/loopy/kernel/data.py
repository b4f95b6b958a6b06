"""What scripts import from ``loopy.kernel.data``."""

from loopkit import (
    AddressSpace,
    ArrayArg,
    ConstantArg,
    GlobalArg,
    SubstitutionRule,
    TemporaryVariable,
    ValueArg,
)

__all__ = [
    "AddressSpace",
    "ArrayArg",
    "ConstantArg",
    "GlobalArg",
    "SubstitutionRule",
    "TemporaryVariable",
    "ValueArg",
]
