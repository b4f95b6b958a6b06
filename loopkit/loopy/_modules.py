"""Modules of Loopy's that need no file: they have the names of ``loopkit.loopy``, and some more."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from loopkit import _tags
from loopkit._compat.gone import not_there
from loopkit._same import digest_of

MODULES = """
    auto_test check preprocess statistics tools translation_unit type_inference
    kernel kernel.array kernel.creation kernel.data kernel.function_interface kernel.instruction
    kernel.tools library library.function library.reduction schedule schedule.tools
    target.c target.cuda target.ispc target.opencl target.pyopencl
    transform transform.add_barrier transform.arithmetic transform.batch transform.buffer
    transform.callable transform.concatenate transform.data transform.fusion transform.iname
    transform.instruction transform.loop_fusion transform.pack_and_unpack_args transform.padding
    transform.parameter transform.precompute transform.privatize transform.realize_reduction
    transform.save transform.subst
""".split()  # noqa: SIM905
"""Their paths below the package, each behind the one that it is in."""

OPERATIONS = ("sum", "product", "max", "min", "any", "all", "argmax", "argmin")

MORE: Mapping[str, Mapping[str, Any]] = {
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
        for name in OPERATIONS
    },
    "tools": {"LoopyKeyBuilder": lambda: digest_of},
}
"""Names that such a module has beside those of the package."""


class Elsewhere(ModuleType):
    """A module whose names are those of the ``package``, and ``more``."""

    def __init__(self, name: str, package: ModuleType, more: Mapping[str, Any]) -> None:
        super().__init__(name, f"What scripts import from ``{name.partition('.')[2]}``.")
        self.__package__ = name
        self.__path__ = []
        self._package = package
        self.__dict__.update(more)

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
    for path in MODULES:
        name = f"{package.__name__}.{path}"
        parent, _, last = name.rpartition(".")
        sys.modules[name] = Elsewhere(name, package, MORE.get(path, {}))
        setattr(sys.modules[parent], last, sys.modules[name])
