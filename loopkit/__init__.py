"""loopkit: explicit, checked schedules of array programs for CUDA GPUs.

Declare a kernel with :func:`make_kernel`, reshape it with transforms (methods
of the kernel, and functions here), look at it (``print(knl)``, ``knl.cuda()``)
and call it with arrays.
"""

from typing import TYPE_CHECKING, Any

from loopkit._arrays import AUTO as auto
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg
from loopkit._assertions.values import Assertion, Disjoint, Increasing, Injective, Within
from loopkit._compat.names import generate_code_v2, set_loop_priority, set_temporary_scope
from loopkit._errors import (
    AssumptionError,
    CompileError,
    IllegalTransformError,
    Instance,
    InvalidArgumentError,
    LaunchError,
    LoopkitError,
    LoopkitWarning,
    MissingDependencyError,
    OutOfBoundsError,
    ParseError,
    RaceError,
    ResourceError,
    SourcePosition,
    TypeInferenceError,
    UndecidedError,
    UninitializedReadError,
    UnknownNameError,
    Witness,
)
from loopkit._kernel import Kernel, Options, Statement, SubstitutionRule
from loopkit._make import (
    ConstantArg,
    GlobalArg,
    make_einsum,
    make_function,
    make_kernel,
    merge,
)
from loopkit._methods import Methods as _Methods  # noqa: F401 - makes them methods
from loopkit._registry import homes as _transforms
from loopkit._registry import later as _later
from loopkit._transform import replay

if TYPE_CHECKING:
    from loopkit._compare import auto_test_vs_ref
    from loopkit._compat.count_maps import CountGranularity, MemAccess, Op, Sync, ToCountMap
    from loopkit._compat.fusion import get_kennedy_unweighted_fusion_candidates
    from loopkit._compat.padding import (
        add_padding_to_avoid_bank_conflicts,
        find_padding_multiple,
    )
    from loopkit._compat.statistics import (
        get_mem_access_map,
        get_op_map,
        get_synchronization_map,
    )
    from loopkit._costs.devices import Device
    from loopkit._explore.explorer import Explorer, explore
    from loopkit._explore.table import Tried
    from loopkit._measure.compare import Contest, compare
    from loopkit._measure.measure import Measurement, measure
    from loopkit._register import register_callable, register_reduction
    from loopkit._verify import Difference, Verdict, verify
    from loopkit.transforms import *  # noqa: F403
    from loopkit.transforms.batches import to_batched
    from loopkit.transforms.fuse_kernels import fuse_kernels

__version__ = "0.1.0"

_LATER = {
    "auto_test_vs_ref": "loopkit._compare",
    "register_callable": "loopkit._register",
    "register_reduction": "loopkit._register",
    "Device": "loopkit._costs.devices",
    "fuse_kernels": "loopkit.transforms.fuse_kernels",
    "to_batched": "loopkit.transforms.batches",
    "get_kennedy_unweighted_fusion_candidates": "loopkit._compat.fusion",
    **dict.fromkeys(
        ("add_padding_to_avoid_bank_conflicts", "find_padding_multiple"), "loopkit._compat.padding"
    ),
    **dict.fromkeys(
        ("CountGranularity", "MemAccess", "Op", "Sync", "ToCountMap"), "loopkit._compat.count_maps"
    ),
    **dict.fromkeys(
        ("get_mem_access_map", "get_op_map", "get_synchronization_map"),
        "loopkit._compat.statistics",
    ),
    **dict.fromkeys(("Explorer", "explore"), "loopkit._explore.explorer"),
    "Tried": "loopkit._explore.table",
    **dict.fromkeys(("Contest", "compare"), "loopkit._measure.compare"),
    **dict.fromkeys(("Measurement", "measure"), "loopkit._measure.measure"),
    **dict.fromkeys(("Difference", "Verdict", "verify"), "loopkit._verify"),
    **_transforms,
}
"""What is imported when somebody first asks for it, and from where."""

__getattr__ = _later(globals(), _LATER)


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext loopkit``: refusals show their witness, names complete inside of strings.

    The first kernel that is shown in IPython does this, too.
    """
    from loopkit._display.ipython import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext loopkit``."""
    from loopkit._display.ipython import unload

    unload(ipython)


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])


__all__ = [  # noqa: PLE0604 - the transforms have their own table
    "AddressSpace",
    "ArrayArg",
    "Assertion",
    "AssumptionError",
    "CompileError",
    "ConstantArg",
    "Contest",
    "CountGranularity",
    "Device",
    "Difference",
    "Disjoint",
    "Explorer",
    "GlobalArg",
    "IllegalTransformError",
    "Increasing",
    "Injective",
    "Instance",
    "InvalidArgumentError",
    "Kernel",
    "LaunchError",
    "LoopkitError",
    "LoopkitWarning",
    "Measurement",
    "MemAccess",
    "MissingDependencyError",
    "Op",
    "Options",
    "OutOfBoundsError",
    "ParseError",
    "RaceError",
    "ResourceError",
    "SourcePosition",
    "Statement",
    "SubstitutionRule",
    "Sync",
    "TemporaryVariable",
    "ToCountMap",
    "Tried",
    "TypeInferenceError",
    "UndecidedError",
    "UninitializedReadError",
    "UnknownNameError",
    "ValueArg",
    "Verdict",
    "Within",
    "Witness",
    "auto",
    "add_padding_to_avoid_bank_conflicts",
    "auto_test_vs_ref",
    "compare",
    "explore",
    "find_padding_multiple",
    "fuse_kernels",
    "generate_code_v2",
    "get_kennedy_unweighted_fusion_candidates",
    "get_mem_access_map",
    "get_op_map",
    "get_synchronization_map",
    "make_einsum",
    "make_function",
    "make_kernel",
    "merge",
    "measure",
    "register_callable",
    "register_reduction",
    "replay",
    "set_loop_priority",
    "set_temporary_scope",
    "to_batched",
    "verify",
    *_transforms,
]
