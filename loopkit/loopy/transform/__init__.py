"""What scripts import from ``loopy.transform``."""

from loopkit.loopy._elsewhere import names_for
from loopkit.loopy.transform import (
    add_barrier,
    arithmetic,
    batch,
    buffer,
    callable,  # noqa: A004 - the name that Loopy has for it
    concatenate,
    data,
    fusion,
    iname,
    instruction,
    loop_fusion,
    pack_and_unpack_args,
    padding,
    parameter,
    precompute,
    privatize,
    realize_reduction,
    save,
    subst,
)

__all__ = [
    "add_barrier",
    "arithmetic",
    "batch",
    "buffer",
    "callable",
    "concatenate",
    "data",
    "fusion",
    "iname",
    "instruction",
    "loop_fusion",
    "pack_and_unpack_args",
    "padding",
    "parameter",
    "precompute",
    "privatize",
    "realize_reduction",
    "save",
    "subst",
]

__getattr__ = names_for(__name__)
