"""Transforms: pure functions from kernel to kernel, one small file per family.

Importing this package makes them known by name (:mod:`loopkit._registry`); the file of a family is
imported when the first of its transforms is used.

What a docstring calls *before* and *after* are loop nests; ``S(i)`` is a statement inside ``i``.
Beside what its docstring says, every transform raises :class:`~loopkit.UnknownNameError` for
what does not exist, :class:`~loopkit.InvalidArgumentError` for what an argument does not take
or what is taken, :class:`~loopkit.IllegalTransformError` with a witness where the kernel would
compute something else, and :class:`~loopkit.UndecidedError` where that is open; with
``unchecked=True`` neither of the last two.
"""

from importlib import import_module
from typing import Any

from loopkit._registry import register

_EAGER = False
if _EAGER:  # for type checkers, which follow what no Python executes
    from loopkit.transforms.affine_maps import affine_map_inames, join_inames, map_domain
    from loopkit.transforms.assertions import (
        assume_disjoint,
        assume_increasing,
        assume_injective,
        assume_within,
    )
    from loopkit.transforms.buffer import buffer_array
    from loopkit.transforms.declarations import (
        add_and_infer_dtypes,
        add_dtypes,
        assume,
        fix_parameters,
    )
    from loopkit.transforms.duplicate import duplicate_inames
    from loopkit.transforms.precomputed import precompute
    from loopkit.transforms.prefetch import add_prefetch
    from loopkit.transforms.privatize import privatize_temporaries_with_inames
    from loopkit.transforms.rename import remove_unused_inames, rename_iname, rename_inames
    from loopkit.transforms.slabs import peel_iname
    from loopkit.transforms.split import chunk_iname, split_iname
    from loopkit.transforms.storage import (
        add_padding,
        pad_temporary,
        set_temporary_address_space,
        tag_array_axes,
    )
    from loopkit.transforms.subst import assignment_to_subst, expand_subst, extract_subst
    from loopkit.transforms.tag import prioritize_loops, tag_inames, untag_inames

_FAMILIES = {
    "assertions": "assume_disjoint assume_increasing assume_injective assume_within",
    "declarations": "add_and_infer_dtypes add_dtypes assume fix_parameters",
    "buffer": "buffer_array",
    "duplicate": "duplicate_inames",
    "affine_maps": "affine_map_inames join_inames map_domain",
    "precomputed": "precompute",
    "prefetch": "add_prefetch",
    "privatize": "privatize_temporaries_with_inames",
    "rename": "remove_unused_inames rename_iname rename_inames",
    "slabs": "peel_iname",
    "split": "chunk_iname split_iname",
    "storage": "add_padding pad_temporary set_temporary_address_space tag_array_axes",
    "subst": "assignment_to_subst expand_subst extract_subst",
    "tag": "prioritize_loops tag_inames untag_inames",
}
"""The transforms of each file."""

__all__ = [
    "add_and_infer_dtypes",
    "add_dtypes",
    "add_padding",
    "add_prefetch",
    "affine_map_inames",
    "assignment_to_subst",
    "assume",
    "assume_disjoint",
    "assume_increasing",
    "assume_injective",
    "assume_within",
    "buffer_array",
    "chunk_iname",
    "duplicate_inames",
    "expand_subst",
    "extract_subst",
    "fix_parameters",
    "join_inames",
    "map_domain",
    "pad_temporary",
    "peel_iname",
    "precompute",
    "prioritize_loops",
    "privatize_temporaries_with_inames",
    "remove_unused_inames",
    "rename_iname",
    "rename_inames",
    "set_temporary_address_space",
    "split_iname",
    "tag_array_axes",
    "tag_inames",
    "untag_inames",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        family = next(file for file, names in _FAMILIES.items() if name in names.split())
        found = globals()[name] = getattr(import_module(f"{__name__}.{family}"), name)
        return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


for _name in __all__:
    register(_name, __getattr__)
