"""Arguments of functions and options of instructions that are accepted and change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopkit._relations import grouped

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
