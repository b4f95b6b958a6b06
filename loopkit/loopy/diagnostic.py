"""What scripts import from ``loopy.diagnostic``: loopkit's errors under Loopy's names.

What Loopy warns of is refused here, and what its scheduler cannot do does not arise: such names
stand for the nearest that there is, so that what catches them can be imported.
"""

from __future__ import annotations

from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    OutOfBoundsError,
    RaceError,
    TypeInferenceError,
    UninitializedReadError,
)
from loopkit._errors import LoopkitError as LoopyError
from loopkit._errors import LoopkitWarning as LoopyWarning

AutomaticTestFailure = LoopyError
LoopyIndexError = OutOfBoundsError
MissingBarrierError = RaceError
MissingDefinitionError = UninitializedReadError

TypeInferenceFailure = TypeInferenceError
DependencyTypeInferenceFailure = TypeInferenceError
LoopyTypeError = TypeInferenceError

DependencyCycleFound = InvalidArgumentError
ExpressionNotAffineError = InvalidArgumentError
ExpressionToAffineConversionError = InvalidArgumentError
StaticValueFindingError = InvalidArgumentError

CannotBranchDomainTree = IllegalTransformError
ReductionIsNotTriangularError = IllegalTransformError
UnableToDetermineAccessRangeError = IllegalTransformError
UnscheduledInstructionError = IllegalTransformError
VariableAccessNotOrdered = IllegalTransformError

DirectCallUncachedWarning = LoopyWarning
LoopyAdvisory = LoopyWarning
LoopyWarningBase = LoopyWarning
ParameterFinderWarning = LoopyWarning
WriteRaceConditionWarning = LoopyWarning

__all__ = [
    "AutomaticTestFailure",
    "CannotBranchDomainTree",
    "DependencyCycleFound",
    "DependencyTypeInferenceFailure",
    "DirectCallUncachedWarning",
    "ExpressionNotAffineError",
    "ExpressionToAffineConversionError",
    "LoopyAdvisory",
    "LoopyError",
    "LoopyIndexError",
    "LoopyTypeError",
    "LoopyWarning",
    "LoopyWarningBase",
    "MissingBarrierError",
    "MissingDefinitionError",
    "ParameterFinderWarning",
    "ReductionIsNotTriangularError",
    "StaticValueFindingError",
    "TypeInferenceFailure",
    "UnableToDetermineAccessRangeError",
    "UnscheduledInstructionError",
    "VariableAccessNotOrdered",
    "WriteRaceConditionWarning",
]
