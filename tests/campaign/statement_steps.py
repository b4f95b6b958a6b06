"""Arguments drawn at random for the transforms of statements."""

from __future__ import annotations

import random
from typing import Any

from loopkit import Kernel

Arguments = dict[str, Any] | None


def _id(r: random.Random, knl: Kernel) -> str:
    return r.choice(knl.statements).id


def _match(r: random.Random, knl: Kernel) -> str:
    ids = [s.id for s in r.sample(knl.statements, min(len(knl.statements), r.choice([1, 1, 2])))]
    return " or ".join(f"id:{id_}" for id_ in ids)


def tag_instructions(r: random.Random, knl: Kernel) -> Arguments:
    return {"new_tag": r.choice(["first", "second"]), "within": _match(r, knl)}


def inline_callable_kernel(r: random.Random, knl: Kernel) -> Arguments:
    return {"function_name": r.choice(["f", "bend"])}


def remove_instructions(r: random.Random, knl: Kernel) -> Arguments:
    idle = [s.id for s in knl.statements if s.written in knl.temporary_by_name]
    return {"insn_ids": [r.choice(idle) if idle and r.random() < 0.8 else _id(r, knl)]}


def replace_instruction_ids(r: random.Random, knl: Kernel) -> Arguments:
    old = _id(r, knl)
    return {"replacements": {old: knl.fresh_name(old)}}


def add_dependency(r: random.Random, knl: Kernel) -> Arguments:
    return {"insn_match": _match(r, knl), "depends_on": f"id:{_id(r, knl)}"}


def add_inames_to_insn(r: random.Random, knl: Kernel) -> Arguments:
    sets = [s for s in knl.statements if s.written in knl.temporary_by_name]
    statement = r.choice(sets if sets and r.random() < 0.8 else knl.statements)
    others = [i for i in knl.all_inames if i not in statement.inames]
    if not others:
        return None
    return {"inames": [r.choice(others)], "insn_match": f"id:{statement.id}"}


def remove_inames_from_insn(r: random.Random, knl: Kernel) -> Arguments:
    some = [s for s in knl.statements if s.inames - s.names]
    statement = r.choice(some if some and r.random() < 0.8 else knl.statements)
    inames = sorted(statement.inames - statement.names or statement.inames)
    if not inames:
        return None
    return {"inames": [r.choice(inames)], "insn_match": f"id:{statement.id}"}


def collect_common_factors_on_increment(r: random.Random, knl: Kernel) -> Arguments:
    added = {s.written for s in knl.statements if s.operation == "sum"}
    names = sorted(added & knl.temporary_by_name.keys()) or [t.name for t in knl.temporaries]
    if not names:
        return None
    found: dict[str, object] = {"var_name": r.choice(names)}
    if r.random() < 0.3:
        found["vary_by_axes"] = [0]
    return found


def add_inames_for_unused_hw_axes(r: random.Random, knl: Kernel) -> Arguments:
    if not any(tag.is_parallel for tag in knl.iname_tags.values()):
        return None
    return {"within": _match(r, knl)} if r.random() < 0.5 else {}
