"""Functions of Loopy's that loopkit calls otherwise, or has no need for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopkit._errors import InvalidArgumentError
from loopkit._spelling import shown
from loopkit.loopy._unit import TranslationUnit

NAMES: Mapping[str, str] = {
    "ScalarArg": "ValueArg",
    "add_loop_priority": "prioritize_loops",
    "set_array_dim_names": "set_array_axis_names",
    "tag_data_axes": "tag_array_axes",
    "register_reduction_parser": "register_reduction",
}
"""Other names of what loopkit has, each with loopkit's."""

UNCHANGED: Mapping[str, str] = {
    "add_nosync": "what needs no order is computed",
    "allocate_temporaries_for_base_storage": "code generation does",
    "check_kernels": "each step is checked",
    "fold_constants": "the compiler does; subscripts are simplified by each step",
    "generate_loop_schedules": "the loop tree is part of the kernel",
    "get_one_linearized_kernel": "the loop tree is part of the kernel",
    "get_one_scheduled_kernel": "the loop tree is part of the kernel",
    "infer_arg_descr": "a kernel is whole from the start",
    "linearize": "the loop tree is part of the kernel",
    "preprocess_kernel": "a kernel is whole from the start",
    "preprocess_program": "a kernel is whole from the start",
    "set_instruction_priority": "the order is that of the text",
    "simplify_indices": "each step does",
}
"""Functions that return the kernel that they were given, each with why."""


def unchanged(name: str) -> Callable[..., TranslationUnit]:
    """A function that takes a unit, and whatever else, and returns the unit."""

    def same(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> TranslationUnit:
        if not isinstance(kernel, TranslationUnit):
            raise InvalidArgumentError(f"{name} takes a kernel, not {shown(kernel)}")
        return kernel

    same.__name__ = same.__qualname__ = name
    same.__doc__ = f"The kernel as it is: {UNCHANGED[name]}."
    return same
