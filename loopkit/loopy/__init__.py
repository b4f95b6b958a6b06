"""Loopy's names and conventions, for scripts that were written for Loopy.

``import loopkit.loopy as lp`` replaces ``import loopy as lp``: kernels are translation units, which
are called with a queue and return an event and a tuple.  Arguments and functions that concern
OpenCL, targets or caches are accepted and have no effect.  Everything else is loopkit's: each
transform is proven, and ``knl.kernel`` is the loopkit kernel.
"""

# ruff: noqa: I001 - what is imported as what it is called is for scripts

from __future__ import annotations

import sys
from typing import Any

import loopkit
from loopkit._compat.gone import NAMES, UNCHANGED, not_there
from loopkit._errors import LoopkitError, LoopkitWarning
from loopkit.loopy import _modules
from loopkit.loopy._function_calls import (
    CacheMode as CacheMode,
    auto_test_vs_ref as auto_test_vs_ref,
    clear_in_mem_caches as clear_in_mem_caches,
    find_instructions as find_instructions,
    find_one_rule_matching as find_one_rule_matching,
    find_rules_matching as find_rules_matching,
    find_unused_axis_tag as find_unused_axis_tag,
    for_each_kernel as for_each_kernel,
    generate_body as generate_body,
    generate_code as generate_code,
    generate_code_v2 as generate_code_v2,
    get_dot_dependency_graph as get_dot_dependency_graph,
    get_iname_duplication_options as get_iname_duplication_options,
    has_schedulable_iname_nesting as has_schedulable_iname_nesting,
    infer_unknown_types as infer_unknown_types,
    make_copy_kernel as make_copy_kernel,
    make_einsum as make_einsum,
    make_kernel as make_kernel,
    memoize_on_disk as memoize_on_disk,
    merge as merge,
    set_caching_enabled as set_caching_enabled,
    set_options as set_options,
    split_arg_axis as split_arg_axis,
    split_array_axis as split_array_axis,
    t_unit_to_python as t_unit_to_python,
    unchanged,
)
from loopkit.loopy._instructions import (
    Assignment as Assignment,
    BarrierInstruction as BarrierInstruction,
    CallInstruction as CallInstruction,
    NoOpInstruction as NoOpInstruction,
    Optional as Optional,
)
from loopkit.loopy._instructions import (
    MOST_RECENT_LANGUAGE_VERSION as MOST_RECENT_LANGUAGE_VERSION,
    VERSION as VERSION,
    CTarget as CTarget,
    CudaTarget as CudaTarget,
    ExecutableCTarget as ExecutableCTarget,
    ISPCTarget as ISPCTarget,
    OpenCLTarget as OpenCLTarget,
    Options as Options,
    PyOpenCLTarget as PyOpenCLTarget,
    Reduction as Reduction,
    TargetBase as TargetBase,
    TypeCast as TypeCast,
    to_loopy_type as to_loopy_type,
)
from loopkit.loopy._unit import TranslationUnit as TranslationUnit, wrapped

LoopKernel = TranslationUnit
NumpyType = to_loopy_type
InstructionBase = MultiAssignmentBase = Assignment
LoopyError = LoopkitError
LoopyWarning = LoopkitWarning

for _name in UNCHANGED:
    globals()[_name] = unchanged(_name)
_modules.install(sys.modules[__name__])


def __getattr__(name: str) -> Any:
    """loopkit's own name, or the one that it has for Loopy's; functions take and return units."""
    wanted = NAMES.get(name, name)
    if wanted.startswith("_") or wanted not in loopkit.__all__:
        raise not_there(f"module '{__name__}'", name, __dir__())
    found = getattr(loopkit, wanted)
    made = wrapped(found) if callable(found) and not isinstance(found, type) else found
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *loopkit.__all__, *NAMES})


__all__ = [name for name in __dir__() if not name.startswith("_")]
