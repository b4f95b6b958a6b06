"""Names of Loopy's that there are not, each with what a script says in its place."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit._errors import LoopkitError

_FUNCTION = (
    "f = register_callable('f', {'x': 'float32'}, 'float32', body='return 2*x;') is a function "
    "in C, make_kernel(..., functions=[f]) takes it, and instructions call it"
)
_STATEMENTS = "tag_instructions, add_dependency, replace_instruction_ids and their kin change them"
_ATOMIC = "the option {atomic} makes an instruction an atomic update"
_LAUNCHES = "kernel.launches() gives them, one for each part between global barriers"

GONE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("CInstruction", "CallMangleInfo", "InKernelCallable", "PreambleInfo"),
            *("ScalarCallable", "register_function_manglers", "register_preamble_generators"),
            "register_symbol_manglers",
        ),
        _FUNCTION,
    ),
    **dict.fromkeys(("map_instructions", "remove_predicates_from_insn"), _STATEMENTS),
    **dict.fromkeys(
        (
            *("AtomicInit", "AtomicUpdate", "MemoryOrdering", "MemoryScope", "OrderedAtomic"),
            "VarAtomicity",
        ),
        _ATOMIC,
    ),
    **dict.fromkeys(
        (
            *("find_most_recent_global_barrier", "get_global_barrier_order", "get_subkernels"),
            "get_subkernel_to_insn_id_map",
        ),
        _LAUNCHES,
    ),
    **dict.fromkeys(
        ("ImageArg", "change_arg_to_image"),
        "there are no textures: add_prefetch stages what threads share, and the argument stays "
        "an array",
    ),
    **dict.fromkeys(
        ("c_preprocess", "parse_fortran", "parse_transformed_fortran"),
        "make_kernel takes domains and instructions",
    ),
    **dict.fromkeys(
        ("gather_access_footprint_bytes", "gather_access_footprints"),
        "knl.kernel.costs(n=...) counts what a launch touches",
    ),
    "LinearSubscript": "a[[e]] in the text of an instruction",
    "TaggedVariable": "x$tag[i] in the text of an instruction",
    "VectorizeTag": "split_iname(..., inner_tag='unr') leaves wide accesses to the compiler",
    "dump_as_python": "t_unit_to_python(knl) gives the steps as a script",
    "generate_header": "generate_code_v2(knl).device_code() begins with the declaration",
    "pack_and_unpack_args_for_call": "calls take parts of arrays as they lie",
    "rename_callable": "make_function(..., name=...) gives a function its name",
    "save_temporaries_in_loop": "save_and_reload_temporaries does it for all launches",
    "show_dependency_graph": "get_dot_dependency_graph(knl) gives the graph, print(knl) the nest",
    "temporary_to_subst": "assignment_to_subst(knl, name)",
}
"""Names, each with what to write."""


class NotThereError(LoopkitError, AttributeError):
    """A name of Loopy's that there is not here: the error says what to write in its place."""


def not_there(module: str, name: str) -> AttributeError:
    """The error for a name of a module."""
    if name in GONE:
        return NotThereError(f"{module} has no '{name}'", instead=f"instead: {GONE[name]}")
    return AttributeError(f"module '{module}' has no attribute '{name}'")
