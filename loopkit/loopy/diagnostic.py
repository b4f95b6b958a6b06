"""What scripts import from ``loopy.diagnostic``: loopkit's errors under Loopy's names.

What Loopy warns of is refused here, and what its scheduler cannot do does not arise: such names
stand for the nearest that there is, so that what catches them can be imported.
"""

from loopkit import _errors

LoopyError = AutomaticTestFailure = _errors.LoopkitError
LoopyIndexError = _errors.OutOfBoundsError
MissingBarrierError = _errors.RaceError
MissingDefinitionError = _errors.UninitializedReadError

TypeInferenceFailure = DependencyTypeInferenceFailure = _errors.TypeInferenceError
LoopyTypeError = _errors.TypeInferenceError

DependencyCycleFound = StaticValueFindingError = _errors.InvalidArgumentError
ExpressionNotAffineError = ExpressionToAffineConversionError = _errors.InvalidArgumentError

CannotBranchDomainTree = ReductionIsNotTriangularError = _errors.IllegalTransformError
UnableToDetermineAccessRangeError = _errors.IllegalTransformError
UnscheduledInstructionError = VariableAccessNotOrdered = _errors.IllegalTransformError

LoopyWarning = LoopyWarningBase = LoopyAdvisory = _errors.LoopkitWarning
DirectCallUncachedWarning = ParameterFinderWarning = _errors.LoopkitWarning
WriteRaceConditionWarning = _errors.LoopkitWarning

__all__ = [name for name in dir() if not name.startswith("_")]
