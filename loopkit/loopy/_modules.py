"""Submodules of Loopy without a file here: each has the names of ``loopkit.loopy``, and its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from pymbolic import parse

from loopkit import _errors, _tags
from loopkit._compat.gone import not_there
from loopkit._expression import variable_names
from loopkit._match import Glob, Joined, Match, Not, parse_match
from loopkit._same import digest_of
from loopkit._syntax.reduction_calls import REDUCTIONS
from loopkit.loopy._instructions import VERSION


def And(children: Iterable[Match]) -> Match:
    """What all of its parts match."""
    return Joined("and", tuple(children))


def Or(children: Iterable[Match]) -> Match:
    """What any of its parts matches."""
    return Joined("or", tuple(children))


def All(kernel: str = "*") -> Match:
    """Every statement: there is one kernel, whatever name is asked for."""
    return Joined("and", ())


def _glob(field: str) -> Callable[[str], Match]:
    """What makes conditions on the names that statements have in a field."""
    return lambda glob: Glob(field, glob)


_ERRORS = {
    "IllegalTransformError": "CannotBranchDomainTree ReductionIsNotTriangularError "
    "UnableToDetermineAccessRangeError UnscheduledInstructionError VariableAccessNotOrdered",
    "InvalidArgumentError": "DependencyCycleFound ExpressionNotAffineError "
    "ExpressionToAffineConversionError StaticValueFindingError",
    "LoopkitError": "AutomaticTestFailure LoopyError",
    "LoopkitWarning": "DirectCallUncachedWarning LoopyAdvisory LoopyWarning LoopyWarningBase "
    "ParameterFinderWarning WriteRaceConditionWarning",
    "OutOfBoundsError": "LoopyIndexError",
    "RaceError": "MissingBarrierError",
    "TypeInferenceError": "DependencyTypeInferenceFailure LoopyTypeError TypeInferenceFailure",
    "UninitializedReadError": "MissingDefinitionError",
}
"""Errors by loopkit's names.

What Loopy warns of is refused here, and what its scheduler cannot do does not arise: such names
stand for the nearest that there is, so that what catches them can be imported.
"""

_PLAIN = """
    auto_test check options preprocess statistics target target.c target.cuda target.ispc
    target.opencl target.pyopencl translation_unit type_inference types kernel kernel.array
    kernel.creation kernel.function_interface kernel.instruction kernel.tools library
    library.function schedule schedule.tools transform transform.add_barrier transform.arithmetic
    transform.batch transform.buffer transform.callable transform.concatenate transform.data
    transform.fusion transform.iname transform.instruction transform.loop_fusion
    transform.pack_and_unpack_args transform.padding transform.parameter transform.precompute
    transform.privatize transform.realize_reduction transform.save transform.subst
""".split()  # noqa: SIM905

MODULES: Mapping[str, Mapping[str, Any]] = {
    **{path: {} for path in _PLAIN},
    "diagnostic": {
        name: getattr(_errors, own) for own, names in _ERRORS.items() for name in names.split()
    },
    "kernel.data": {
        "AutoFitLocalInameTag": _tags.LocalAuto,
        "GroupInameTag": _tags.GroupAxis,
        "IlpBaseTag": _tags.InstructionParallel,
        "InameImplementationTag": _tags.Tag,
        "LocalInameTag": _tags.LocalAxis,
        "UnrollTag": _tags.Unroll,
        "UnrolledIlpTag": _tags.InstructionParallel,
    },
    "library.reduction": {
        f"{'Arg' + name[3:].title() if name.startswith('arg') else name.title()}ReductionOperation":
        # What makes the operation is called, and gives the name that texts have for it.
        (lambda name=name: name)
        for name in REDUCTIONS
    },
    "match": {
        **{made.__name__: made for made in (All, And, Not, Or, parse_match)},
        **{name: _glob(name.lower()) for name in ("Id", "Iname", "Reads", "Writes")},
        "InKernel": All,
        "MatchExpressionBase": Match,
        "Tagged": _glob("tag"),
    },
    "symbolic": {"get_dependencies": variable_names, "parse": parse},
    "tools": {"LoopyKeyBuilder": lambda: digest_of},
    "version": {
        "LOOPY_USE_LANGUAGE_VERSION_2018_1": True,
        "LOOPY_USE_LANGUAGE_VERSION_2018_2": True,
        "VERSION_TEXT": ".".join(map(str, VERSION)),
    },
}
"""Loopy's modules below the package, each with what it has beside the names of the package."""


class Elsewhere(ModuleType):
    """A module whose names are those of the ``package``, and ``more``."""

    def __init__(self, name: str, package: ModuleType, more: Mapping[str, Any]) -> None:
        super().__init__(name, f"What scripts import from ``{name.partition('.')[2]}``.")
        self.__package__ = name
        self.__path__ = []
        self._package = package
        self.__dict__.update(more, __all__=sorted(more))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._package, name)
        except AttributeError:
            raise not_there(f"module '{self.__name__}'", name, dir(self)) from None

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(self._package)})


def install(package: ModuleType) -> None:
    """Make all of them, where imports find them."""
    for path, more in sorted(MODULES.items()):
        name = f"{package.__name__}.{path}"
        parent, _, last = name.rpartition(".")
        sys.modules[name] = Elsewhere(name, package, more)
        setattr(sys.modules[parent], last, sys.modules[name])
