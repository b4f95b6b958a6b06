"""Loopy's names and conventions, for scripts that were written for Loopy.

``import loopkit.loopy as lp`` in the place of ``import loopy as lp``: kernels are translation
units, which are called with a queue and return an event and a tuple; arguments and functions that
say something of OpenCL, of targets or of caches are taken, and change nothing.  All else is
loopkit's: each transform is proven, and ``knl.kernel`` is the kernel with all that it offers.
"""

from __future__ import annotations

from typing import Any

import loopkit
from loopkit._errors import LoopkitError as LoopyError
from loopkit._errors import LoopkitWarning as LoopyWarning
from loopkit.loopy import (
    diagnostic,
    kernel,
    library,
    match,
    options,
    schedule,
    statistics,
    symbolic,
    target,
    transform,
    types,
    version,
)
from loopkit.loopy._functions import (
    CacheMode,
    auto_test_vs_ref,
    clear_in_mem_caches,
    find_instructions,
    find_one_rule_matching,
    find_rules_matching,
    find_unused_axis_tag,
    for_each_kernel,
    generate_body,
    generate_code,
    generate_code_v2,
    get_dot_dependency_graph,
    get_iname_duplication_options,
    has_schedulable_iname_nesting,
    infer_unknown_types,
    make_copy_kernel,
    make_einsum,
    make_kernel,
    merge,
    set_caching_enabled,
    set_options,
    split_arg_axis,
    split_array_axis,
    t_unit_to_python,
)
from loopkit.loopy._gone import not_there
from loopkit.loopy._instructions import (
    Assignment,
    BarrierInstruction,
    CallInstruction,
    NoOpInstruction,
    Optional,
)
from loopkit.loopy._same import NAMES, UNCHANGED, unchanged
from loopkit.loopy._unit import TranslationUnit, wrapped
from loopkit.loopy.options import Options
from loopkit.loopy.symbolic import Reduction, TypeCast
from loopkit.loopy.target import (
    CTarget,
    CudaTarget,
    ExecutableCTarget,
    ISPCTarget,
    OpenCLTarget,
    PyOpenCLTarget,
    TargetBase,
)
from loopkit.loopy.types import NumpyType, to_loopy_type
from loopkit.loopy.version import MOST_RECENT_LANGUAGE_VERSION, VERSION

LoopKernel = TranslationUnit

for _name in UNCHANGED:
    globals()[_name] = unchanged(_name)


def __getattr__(name: str) -> Any:
    """loopkit's own name, or the one that it has for Loopy's; functions take and return units."""
    wanted = NAMES.get(name, name)
    if wanted.startswith("_") or wanted not in loopkit.__all__:
        raise not_there(__name__, name)
    found = getattr(loopkit, wanted)
    made = wrapped(found) if callable(found) and not isinstance(found, type) else found
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *loopkit.__all__, *NAMES})


__all__ = [  # noqa: PLE0604 - what changes nothing has its own table
    "MOST_RECENT_LANGUAGE_VERSION",
    "VERSION",
    "Assignment",
    "BarrierInstruction",
    "CTarget",
    "CacheMode",
    "CallInstruction",
    "CudaTarget",
    "ExecutableCTarget",
    "ISPCTarget",
    "LoopKernel",
    "LoopyError",
    "LoopyWarning",
    "NoOpInstruction",
    "NumpyType",
    "OpenCLTarget",
    "Optional",
    "Options",
    "PyOpenCLTarget",
    "Reduction",
    "TargetBase",
    "TranslationUnit",
    "TypeCast",
    "auto_test_vs_ref",
    "clear_in_mem_caches",
    "diagnostic",
    "find_instructions",
    "find_one_rule_matching",
    "find_rules_matching",
    "find_unused_axis_tag",
    "for_each_kernel",
    "generate_body",
    "generate_code",
    "generate_code_v2",
    "get_dot_dependency_graph",
    "get_iname_duplication_options",
    "has_schedulable_iname_nesting",
    "infer_unknown_types",
    "kernel",
    "library",
    "make_copy_kernel",
    "make_einsum",
    "make_kernel",
    "match",
    "merge",
    "options",
    "schedule",
    "set_caching_enabled",
    "set_options",
    "split_arg_axis",
    "split_array_axis",
    "statistics",
    "symbolic",
    "t_unit_to_python",
    "target",
    "to_loopy_type",
    "transform",
    "types",
    "version",
    *UNCHANGED,
]
