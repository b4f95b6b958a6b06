"""Names of Loopy's that do not exist in loopkit, and arguments that have no effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from loopkit._errors import NotThereError, nearest
from loopkit._relations import grouped

_FUNCTION = (
    "f = register_callable('f', {'x': 'float32'}, 'float32', body='return 2*x;') is a function "
    "in C, make_kernel(..., functions=[f]) takes it, and instructions call it"
)
_STATEMENTS = "tag_instructions, add_dependency, replace_instruction_ids and their kin change them"
_ATOMIC = "the option {atomic} makes an instruction an atomic update"
_LAUNCHES = "kernel.launches() gives them, one for each part between global barriers"

_INSTEAD: Mapping[str, str] = {
    _FUNCTION: "CInstruction CallMangleInfo InKernelCallable PreambleInfo ScalarCallable "
    "register_function_manglers register_preamble_generators register_symbol_manglers",
    _STATEMENTS: "map_instructions remove_predicates_from_insn",
    _ATOMIC: "AtomicInit AtomicUpdate MemoryOrdering MemoryScope OrderedAtomic VarAtomicity",
    _LAUNCHES: "find_most_recent_global_barrier get_global_barrier_order get_subkernels "
    "get_subkernel_to_insn_id_map",
    "there are no textures: add_prefetch stages what threads share, and the argument stays "
    "an array": "ImageArg change_arg_to_image",
    "make_kernel takes domains and instructions": "c_preprocess parse_fortran "
    "parse_transformed_fortran",
    "costs(n=...) of a kernel counts what a launch touches": "gather_access_footprint_bytes "
    "gather_access_footprints",
    "a[[e]] in the text of an instruction": "LinearSubscript",
    "x$tag[i] in the text of an instruction": "TaggedVariable",
    "split_iname(..., inner_tag='unr') leaves wide accesses to the compiler": "VectorizeTag",
    "t_unit_to_python(knl) gives the steps as a script": "dump_as_python",
    "generate_code_v2(knl).device_code() begins with the declaration": "generate_header",
    "calls take parts of arrays as they lie": "pack_and_unpack_args_for_call",
    "make_function(..., name=...) gives a function its name": "rename_callable",
    "save_and_reload_temporaries does it for all launches": "save_temporaries_in_loop",
    "get_dot_dependency_graph(knl) gives the graph, print(knl) the nest": "show_dependency_graph",
    "assignment_to_subst(knl, name)": "temporary_to_subst",
}
GONE: Mapping[str, str] = {
    name: instead for instead, names in _INSTEAD.items() for name in names.split()
}
"""Names, each with what to write."""


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

SAME: Mapping[str, str] = {
    "arg_dict": "arg_by_name",
    "id_to_insn": "statement_by_id",
    "instructions": "statements",
    "substitutions": "rule_by_name",
    "temporary_variables": "temporary_by_name",
}
"""Attributes of Loopy's kernels, each with what loopkit's kernels call it."""

ATTRIBUTES: Mapping[str, str] = {
    **{name: f"knl.{own}" for name, own in SAME.items()},
    "all_params": "knl.sizes",
    "copy": "knl.with_(...)",
    "default_entrypoint": "the kernel itself",
    "get_constant_iname_length": "knl.range_of(iname)",
    "get_inames_domain": "knl.domain_of(inames)",
    "get_var_name_generator": "knl.fresh_name(base)",
    "iname_tags_of_type": "knl.iname_tags",
    "insn_inames": "knl.statement(id).inames",
    "reader_map": "knl.readers",
    "writer_map": "knl.writers",
}
"""What Loopy's kernels have, each with what to write of loopkit's."""


def not_there(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for an attribute that does not exist, of a module or of a kernel.

    It says what Loopy's name is called here, or else which of the ``known`` names are like it.
    """
    why = f"{owner} has no attribute '{name}'"
    if name.startswith("_"):  # what libraries look for
        return AttributeError(why)
    instead = NAMES.get(name) or GONE.get(name) or ATTRIBUTES.get(name)
    if name in UNCHANGED:
        instead = f"nothing, {UNCHANGED[name]}"
    if instead:
        return NotThereError(why, instead=f"instead: {instead}")
    for module in ("loopkit", "loopkit.loopy"):
        if name in import_module(module).__all__:  # in this way, as they are made of all else
            return NotThereError(why, instead=f"instead: {module}.{name}")
    return NotThereError(why, instead=nearest(name, known))


_ARRAYS = "ArrayArg GlobalArg TemporaryVariable"
_WHY = {
    "address_space": ("ArrayArg", "an argument is in global memory"),
    "alignment": (_ARRAYS, "arrays bring their address"),
    "approximately": ("ValueArg", "costs are asked at sizes"),
    "count_within_subscripts": ("get_op_map", "code generation decides what they cost"),
    "do_tagged_check": ("chunk_iname split_iname", "splitting a tagged iname is always an error"),
    "entrypoint": ("get_mem_access_map get_op_map get_synchronization_map", "there is one kernel"),
    "expect_completion": ("add_and_infer_dtypes", "a type that does not follow is an error"),
    "for_atomic": (_ARRAYS, "an array is updated atomically where an instruction says so"),
    "force_retain_argument": ("assignment_to_subst", "arguments are always retained"),
    "is_input": ("ValueArg", "a value is an input"),
    "is_output": ("ValueArg", "a value is no output"),
    "lang_version": ("make_kernel", "there is one version of the language"),
    "mem_kind": ("add_barrier", "a barrier for all blocks is one for all memory"),
    "raise_on_domain_mismatch": ("rename_iname rename_inames", "a mismatch is always an error"),
    "rule_name": ("add_prefetch", "fetching needs no rule"),
    "seq_dependencies": ("make_kernel", "the order is that of the text in any case"),
    "tags": (f"{_ARRAYS} ValueArg", "instructions and uses have tags"),
    "target": (f"{_ARRAYS} ValueArg", "there is one target"),
}
"""Arguments, each with the functions that have it in Loopy, and why it changes nothing here."""

_BY_FUNCTION = grouped(
    (function, (argument, why))
    for argument, (functions, why) in _WHY.items()
    for function in functions.split()
)
IGNORED: Mapping[str, Mapping[str, str]] = {f: dict(found) for f, found in _BY_FUNCTION.items()}
"""Arguments by function, each with why it changes nothing."""


def without_ignored(function: str, named: dict[str, Any]) -> dict[str, Any]:
    """The named arguments of a call, less those that change nothing."""
    ignored = IGNORED.get(function, {})
    return {name: value for name, value in named.items() if name not in ignored}


IGNORED_OPTIONS = (
    *("conflicts", "conflicts_grp", "groups", "mem_kind", "nosync", "nosync_query", "priority"),
)
"""Options of instructions that restrict Loopy's scheduler: here the order is that of the text."""
