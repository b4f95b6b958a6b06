"""loopkit: explicit, checked schedules of array programs for CUDA GPUs.

Declare a kernel with :func:`make_kernel`, reshape it with transforms (methods
of the kernel, and functions here), look at it (``print(knl)``, ``knl.cuda()``)
and call it with arrays.
"""

from typing import TYPE_CHECKING, Any

from loopkit._arrays import AUTO as auto
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg
from loopkit._assertions.assertion_values import Assertion, Disjoint, Increasing, Injective, Within
from loopkit._compat.other_names import generate_code_v2, set_loop_priority, set_temporary_scope
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
from loopkit._methods import Methods as _Methods  # noqa: F401 - makes them methods
from loopkit._registry import homes as _transforms
from loopkit._registry import homes_of as _homes_of
from loopkit._registry import later as _later

if TYPE_CHECKING:
    from loopkit._compare import auto_test_vs_ref as auto_test_vs_ref
    from loopkit._compat.advice import (
        add_padding_to_avoid_bank_conflicts as add_padding_to_avoid_bank_conflicts,
    )
    from loopkit._compat.advice import find_padding_multiple as find_padding_multiple
    from loopkit._compat.advice import (
        get_kennedy_unweighted_fusion_candidates as get_kennedy_unweighted_fusion_candidates,
    )
    from loopkit._compat.count_maps import CountGranularity as CountGranularity
    from loopkit._compat.count_maps import MemAccess as MemAccess
    from loopkit._compat.count_maps import Op as Op
    from loopkit._compat.count_maps import Sync as Sync
    from loopkit._compat.count_maps import ToCountMap as ToCountMap
    from loopkit._compat.statistics import get_mem_access_map as get_mem_access_map
    from loopkit._compat.statistics import get_op_map as get_op_map
    from loopkit._compat.statistics import get_synchronization_map as get_synchronization_map
    from loopkit._costs.devices import Device as Device
    from loopkit._explore.choice_table import Tried as Tried
    from loopkit._explore.explorer import Explorer as Explorer
    from loopkit._explore.explorer import explore as explore
    from loopkit._make import ConstantArg as ConstantArg
    from loopkit._make import GlobalArg as GlobalArg
    from loopkit._make import make_einsum as make_einsum
    from loopkit._make import make_function as make_function
    from loopkit._make import make_kernel as make_kernel
    from loopkit._make import merge as merge
    from loopkit._measure.compare import Contest as Contest
    from loopkit._measure.compare import compare as compare
    from loopkit._measure.measure import Measurement as Measurement
    from loopkit._measure.measure import measure as measure
    from loopkit._register import register_callable as register_callable
    from loopkit._register import register_reduction as register_reduction
    from loopkit._transform import replay as replay
    from loopkit._verify import Difference as Difference
    from loopkit._verify import Verdict as Verdict
    from loopkit._verify import verify as verify
    from loopkit.transforms import *  # noqa: F403
    from loopkit.transforms.batches import to_batched as to_batched
    from loopkit.transforms.fuse_kernels import fuse_kernels as fuse_kernels

__version__ = "0.1.0"

_HOMES = {
    "_compare": "auto_test_vs_ref",
    "_compat.advice": "add_padding_to_avoid_bank_conflicts find_padding_multiple "
    "get_kennedy_unweighted_fusion_candidates",
    "_compat.count_maps": "CountGranularity MemAccess Op Sync ToCountMap",
    "_compat.statistics": "get_mem_access_map get_op_map get_synchronization_map",
    "_costs.devices": "Device",
    "_explore.explorer": "Explorer explore",
    "_explore.choice_table": "Tried",
    "_make": "ConstantArg GlobalArg make_einsum make_function make_kernel merge",
    "_measure.compare": "Contest compare",
    "_measure.measure": "Measurement measure",
    "_register": "register_callable register_reduction",
    "_transform": "replay",
    "_verify": "Difference Verdict verify",
    "transforms.batches": "to_batched",
    "transforms.fuse_kernels": "fuse_kernels",
}
_LATER = {**_homes_of(__name__, _HOMES), **_transforms}
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


__all__ = [  # noqa: PLE0604 - what is imported later has its own table
    "AddressSpace",
    "ArrayArg",
    "Assertion",
    "AssumptionError",
    "CompileError",
    "Disjoint",
    "IllegalTransformError",
    "Increasing",
    "Injective",
    "Instance",
    "InvalidArgumentError",
    "Kernel",
    "LaunchError",
    "LoopkitError",
    "LoopkitWarning",
    "MissingDependencyError",
    "Options",
    "OutOfBoundsError",
    "ParseError",
    "RaceError",
    "ResourceError",
    "SourcePosition",
    "Statement",
    "SubstitutionRule",
    "TemporaryVariable",
    "TypeInferenceError",
    "UndecidedError",
    "UninitializedReadError",
    "UnknownNameError",
    "ValueArg",
    "Within",
    "Witness",
    "auto",
    "generate_code_v2",
    "set_loop_priority",
    "set_temporary_scope",
    *_LATER,
]
