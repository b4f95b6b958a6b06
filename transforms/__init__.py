"""Transforms: pure functions from kernel to kernel, one small file per family.

Importing this package registers them by name (:mod:`loopkit._registry`); the file of a family is
imported when the first of its transforms is used.

In the docstrings, *before* and *after* show loop nests; ``S(i)`` is a statement inside ``i``.
Beside the errors that its docstring lists, every transform raises
:class:`~loopkit.UnknownNameError` for names that do not exist,
:class:`~loopkit.InvalidArgumentError` for invalid arguments and for new names that are in use,
:class:`~loopkit.IllegalTransformError` with a witness where the kernel would compute something
else, and :class:`~loopkit.UndecidedError` where legality could not be decided.  With
``unchecked=True`` legality is not checked.
"""

from loopkit._registry import homes, homes_of, later

_EAGER = False
if _EAGER:  # for type checkers, which follow what no Python executes
    from loopkit.transforms.affine_maps import affine_map_inames as affine_map_inames
    from loopkit.transforms.affine_maps import join_inames as join_inames
    from loopkit.transforms.affine_maps import map_domain as map_domain
    from loopkit.transforms.arguments import remove_unused_arguments as remove_unused_arguments
    from loopkit.transforms.arguments import rename_argument as rename_argument
    from loopkit.transforms.arguments import set_argument_order as set_argument_order
    from loopkit.transforms.array_axes import concatenate_arrays as concatenate_arrays
    from loopkit.transforms.array_axes import set_array_axis_names as set_array_axis_names
    from loopkit.transforms.array_axes import split_array_dim as split_array_dim
    from loopkit.transforms.assertions import assume_disjoint as assume_disjoint
    from loopkit.transforms.assertions import assume_increasing as assume_increasing
    from loopkit.transforms.assertions import assume_injective as assume_injective
    from loopkit.transforms.assertions import assume_within as assume_within
    from loopkit.transforms.buffer import buffer_array as buffer_array
    from loopkit.transforms.declarations import add_and_infer_dtypes as add_and_infer_dtypes
    from loopkit.transforms.declarations import add_dtypes as add_dtypes
    from loopkit.transforms.declarations import assume as assume
    from loopkit.transforms.declarations import fix_parameters as fix_parameters
    from loopkit.transforms.duplicate import duplicate_inames as duplicate_inames
    from loopkit.transforms.duplicate import (
        make_reduction_inames_unique as make_reduction_inames_unique,
    )
    from loopkit.transforms.duplicate import unroll as unroll
    from loopkit.transforms.factors import (
        collect_common_factors_on_increment as collect_common_factors_on_increment,
    )
    from loopkit.transforms.fusion import (
        add_inames_for_unused_hw_axes as add_inames_for_unused_hw_axes,
    )
    from loopkit.transforms.fusion import add_inames_to_insn as add_inames_to_insn
    from loopkit.transforms.fusion import fission as fission
    from loopkit.transforms.fusion import fuse_loops as fuse_loops
    from loopkit.transforms.fusion import remove_inames_from_insn as remove_inames_from_insn
    from loopkit.transforms.prefetch import add_prefetch as add_prefetch
    from loopkit.transforms.prefetch import precompute as precompute
    from loopkit.transforms.reductions import realize_reduction as realize_reduction
    from loopkit.transforms.reductions import (
        reduction_arg_to_subst_rule as reduction_arg_to_subst_rule,
    )
    from loopkit.transforms.reductions import split_reduction_inward as split_reduction_inward
    from loopkit.transforms.reductions import split_reduction_outward as split_reduction_outward
    from loopkit.transforms.rename import remove_unused_inames as remove_unused_inames
    from loopkit.transforms.rename import rename_iname as rename_iname
    from loopkit.transforms.rename import rename_inames as rename_inames
    from loopkit.transforms.rename import rename_inames_in_batch as rename_inames_in_batch
    from loopkit.transforms.save import (
        save_and_reload_temporaries as save_and_reload_temporaries,
    )
    from loopkit.transforms.slabs import peel_iname as peel_iname
    from loopkit.transforms.split import chunk_iname as chunk_iname
    from loopkit.transforms.split import split_iname as split_iname
    from loopkit.transforms.statements import add_barrier as add_barrier
    from loopkit.transforms.statements import add_dependency as add_dependency
    from loopkit.transforms.statements import inline_callable_kernel as inline_callable_kernel
    from loopkit.transforms.statements import remove_barrier as remove_barrier
    from loopkit.transforms.statements import remove_instructions as remove_instructions
    from loopkit.transforms.statements import (
        replace_instruction_ids as replace_instruction_ids,
    )
    from loopkit.transforms.statements import tag_instructions as tag_instructions
    from loopkit.transforms.storage import add_padding as add_padding
    from loopkit.transforms.storage import pad_temporary as pad_temporary
    from loopkit.transforms.storage import (
        set_temporary_address_space as set_temporary_address_space,
    )
    from loopkit.transforms.storage import swizzle_array as swizzle_array
    from loopkit.transforms.storage import tag_array_axes as tag_array_axes
    from loopkit.transforms.subst import assignment_to_subst as assignment_to_subst
    from loopkit.transforms.subst import expand_subst as expand_subst
    from loopkit.transforms.subst import extract_subst as extract_subst
    from loopkit.transforms.tag import prioritize_loops as prioritize_loops
    from loopkit.transforms.tag import tag_inames as tag_inames
    from loopkit.transforms.tag import untag_inames as untag_inames
    from loopkit.transforms.temporaries import alias_temporaries as alias_temporaries
    from loopkit.transforms.temporaries import (
        privatize_temporaries_with_inames as privatize_temporaries_with_inames,
    )
    from loopkit.transforms.temporaries import (
        unprivatize_temporaries_with_inames as unprivatize_temporaries_with_inames,
    )

_FAMILIES = {
    "affine_maps": "affine_map_inames join_inames map_domain",
    "arguments": "remove_unused_arguments rename_argument set_argument_order",
    "array_axes": "concatenate_arrays set_array_axis_names split_array_dim",
    "assertions": "assume_disjoint assume_increasing assume_injective assume_within",
    "buffer": "buffer_array",
    "declarations": "add_and_infer_dtypes add_dtypes assume fix_parameters",
    "duplicate": "duplicate_inames make_reduction_inames_unique unroll",
    "factors": "collect_common_factors_on_increment",
    "fusion": "add_inames_for_unused_hw_axes add_inames_to_insn fission fuse_loops "
    "remove_inames_from_insn",
    "prefetch": "add_prefetch precompute",
    "reductions": "realize_reduction reduction_arg_to_subst_rule split_reduction_inward "
    "split_reduction_outward",
    "rename": "remove_unused_inames rename_iname rename_inames rename_inames_in_batch",
    "save": "save_and_reload_temporaries",
    "slabs": "peel_iname",
    "split": "chunk_iname split_iname",
    "statements": "add_barrier add_dependency inline_callable_kernel remove_barrier "
    "remove_instructions replace_instruction_ids tag_instructions",
    "storage": "add_padding pad_temporary set_temporary_address_space swizzle_array tag_array_axes",
    "subst": "assignment_to_subst expand_subst extract_subst",
    "tag": "prioritize_loops tag_inames untag_inames",
    "temporaries": "alias_temporaries privatize_temporaries_with_inames "
    "unprivatize_temporaries_with_inames",
}
"""The transforms of each file."""

homes.update(homes_of(__name__, _FAMILIES))

__getattr__ = later(globals(), homes)
