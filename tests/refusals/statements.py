"""Statements taken away, moved, and done more often than may be."""

from __future__ import annotations

from loopkit import IllegalTransformError, InvalidArgumentError
from refusals import kernels as k
from refusals.case import Case, do, message, pair

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})

CASES = (
    Case(
        "a statement behind what needs it",
        k.scalar,
        do("add_dependency", "make", "use"),
        IllegalTransformError,
        pair("t", (), "make[i=0]", "use[i=0]", n=1),
        (do("add_dependency", "use", "make"),),
        N,
    ),
    Case(
        "a statement behind itself",
        k.scalar,
        do("add_dependency", "use", "writes:b"),
        IllegalTransformError,
        message("'use' cannot come after itself"),
        (do("add_dependency", "use", "make"),),
        N,
        is_wrong=False,
    ),
    Case(
        "statements that have a tag already",
        k.scalar,
        do("tag_instructions", "load", "id:make"),
        IllegalTransformError,
        message("have the tag 'load' already"),
        (do("tag_instructions", "load", "id:make"), do("tag_instructions", "load")),
        N,
        chain=(do("tag_instructions", "load", "writes:t"),),
        is_wrong=False,
    ),
    Case(
        "inames of axes for what stands inside of all",
        k.scalar,
        do("add_inames_for_unused_hw_axes"),
        IllegalTransformError,
        message("no statement that sets a temporary lacks an iname"),
        (
            do("split_iname", "j", 8, inner_tag="l.0"),
            do("add_inames_for_unused_hw_axes"),
        ),
        ({"n": 1, "m": 1}, {"n": 11, "m": 9}),
        is_wrong=False,
        legal_kernel=k.scalar_pair,
    ),
    Case(
        "a result that nobody writes any more",
        k.idle,
        do("remove_instructions", "use"),
        IllegalTransformError,
        message("what 'use' (i=0) leaves in b[0] would not be there at the end"),
        (do("remove_instructions", "make"),),
        N,
        arguments_stay=False,
    ),
    Case(
        "an id that another statement has",
        k.idle,
        do("replace_instruction_ids", {"use": "make"}),
        InvalidArgumentError,
        message("the name 'make' is taken"),
        (do("replace_instruction_ids", {"use": "result"}),),
        N,
        is_wrong=False,
    ),
    Case(
        "inames for what is inside of them",
        k.scalar_pair,
        do("add_inames_to_insn", "j", "id:use"),
        IllegalTransformError,
        message("is inside of 'j' already"),
        (do("add_inames_to_insn", "j", "id:load"),),
        ({"n": 1, "m": 1}, {"n": 5, "m": 3}),
        is_wrong=False,
    ),
    Case(
        "a copy of what changes in a loop, made behind it",
        k.last_value,
        do("remove_inames_from_insn", "i", "id:use"),
        IllegalTransformError,
        pair("b", (0,), "use[i=0]", "tell[i=1]", n=2),
        (do("remove_inames_from_insn", "i", "id:other"),),
        N,
    ),
)
