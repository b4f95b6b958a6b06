"""Arguments of functions and options of instructions that are accepted and change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_ARRAYS = {
    "alignment": "arrays bring their address",
    "for_atomic": "an array is updated atomically where an instruction says so",
    "tags": "instructions and uses have tags",
    "target": "there is one target",
}

IGNORED: Mapping[str, Mapping[str, str]] = {
    "make_kernel": {
        "lang_version": "there is one version of the language",
        "seq_dependencies": "the order is that of the text in any case",
    },
    "GlobalArg": _OF_ARRAYS,
    "ArrayArg": {**_OF_ARRAYS, "address_space": "an argument is in global memory"},
    "TemporaryVariable": _OF_ARRAYS,
    "ValueArg": {
        "approximately": "costs are asked at sizes",
        "is_input": "a value is an input",
        "is_output": "a value is no output",
        "tags": "instructions and uses have tags",
        "target": "there is one target",
    },
    "add_and_infer_dtypes": {"expect_completion": "a type that does not follow is an error"},
    "add_barrier": {"mem_kind": "a barrier for all blocks is one for all memory"},
    "add_prefetch": {"rule_name": "fetching needs no rule"},
    "assignment_to_subst": {"force_retain_argument": "arguments are always retained"},
    "chunk_iname": {"do_tagged_check": "chunking a tagged iname is always an error"},
    "get_mem_access_map": {"entrypoint": "there is one kernel"},
    "get_op_map": {
        "count_within_subscripts": "arithmetic of subscripts is left to code generation",
        "entrypoint": "there is one kernel",
    },
    "get_synchronization_map": {"entrypoint": "there is one kernel"},
    "rename_iname": {"raise_on_domain_mismatch": "a mismatch is always an error"},
    "rename_inames": {"raise_on_domain_mismatch": "a mismatch is always an error"},
    "split_iname": {"do_tagged_check": "splitting a tagged iname is always an error"},
}
"""Arguments by function, each with why it changes nothing."""


def without_ignored(function: str, named: dict[str, Any]) -> dict[str, Any]:
    """The named arguments of a call, less those that change nothing."""
    ignored = IGNORED.get(function)
    if ignored is None or ignored.keys().isdisjoint(named):
        return named
    return {name: value for name, value in named.items() if name not in ignored}


IGNORED_OPTIONS = (
    *("conflicts", "conflicts_grp", "groups", "mem_kind", "nosync", "nosync_query", "priority"),
)
"""Options of instructions that restrict Loopy's scheduler: here the order is that of the text."""
