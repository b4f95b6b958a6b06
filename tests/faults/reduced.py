"""Faults in reductions that precompute makes anew, from rules that hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain, build, entries_of, substitute
from seams import sets as _sets

from faults import kernels
from faults.making import var
from faults.planting import Patch, fault

Edit = Callable[[Any, Any], Any]
"""A kernel and its update that is made anew: the faulty kernel."""


def anew(edit: Edit) -> Patch:
    """What is made anew is another thing."""

    def make(original: Any) -> Any:
        def made(*given: Any) -> Any:
            change = original(*given)
            update = change.kernel.statement_by_id["compute_f_update"]
            return dataclasses.replace(change, kernel=edit(change.kernel, update))

        return made

    return Patch("transforms._computed_ahead:made_anew", make)


def changed(kernel: Any, old: Any, **fields: Any) -> Any:
    """The kernel where a statement is another one."""
    new = dataclasses.replace(old, **fields)
    return kernel.with_(statements=tuple(new if s is old else s for s in kernel.statements))


def term(kernel: Any, update: Any) -> Any:
    return changed(kernel, update, rhs=update.rhs.children[0])


def other_row(kernel: Any, update: Any) -> Any:
    return changed(kernel, update, rhs=substitute(update.rhs, {"i": 0}))


def next_term(kernel: Any, update: Any) -> Any:
    later = prim.Remainder(prim.Sum((var("k"), 1)), var("m"))
    return changed(
        kernel,
        update,
        rhs=substitute(update.rhs, {"k": later}).children[0] * update.rhs.children[1],
    )


def operation(kernel: Any, update: Any) -> Any:
    return changed(kernel, update, operation="max")


def condition(kernel: Any, update: Any) -> Any:
    predicates = (*update.predicates, prim.Comparison(var("k"), ">", 0))
    return changed(kernel, update, predicates=predicates)


def start(kernel: Any, update: Any) -> Any:
    return changed(kernel, kernel.statement_by_id["compute_f_init"], rhs=np.float32(1))


def fewer(kernel: Any, update: Any) -> Any:
    less = _sets.condition_set(prim.Comparison(var("k"), "<", prim.Sum((var("m"), -1))))
    return kernel.with_(
        domains=tuple(
            Domain(d.inames, d.set & less) if "k" in d.inames else d for d in kernel.domains
        )
    )


def late_start(kernel: Any, update: Any) -> Any:
    entries = entries_of(kernel.tree)
    place = [leaf for leaf, _ in entries].index("compute_f_init")
    entries[place : place + 2] = entries[place + 1], entries[place]
    return kernel.with_(tree=build(entries))


def start_within(kernel: Any, update: Any) -> Any:
    paths = {**kernel.paths, "compute_f_init": kernel.paths[update.id]}
    entries = [(leaf, paths[leaf]) for leaf, _ in entries_of(kernel.tree)]
    first = kernel.statement_by_id["compute_f_init"]
    return changed(kernel, first, inames=update.inames).with_(tree=build(entries))


EDITS: dict[str, Edit] = {
    "a factor is missing": term,
    "the sum of another row": other_row,
    "another term for a factor": next_term,
    "a maximum": operation,
    "not the first term": condition,
    "it starts at one": start,
    "not the last term": fewer,
    "it starts behind its terms": late_start,
    "each term starts it": start_within,
}

for name, edit in EDITS.items():
    fault(
        f"precompute: made anew, {name}",
        kernels.ruled_sums,
        do("precompute", "f", "j", default_tag=None),
        anew(edit),
        sizes={"n": 3, "m": 4},
    )


def inner_term(kernel: Any, update: Any) -> Any:
    inner = kernel.statement_by_id["compute_f_update_0"]
    return changed(kernel, inner, rhs=substitute(inner.rhs, {"k": 0}))


def inner_start(kernel: Any, update: Any) -> Any:
    return changed(kernel, kernel.statement_by_id["compute_f_init_0"], rhs=np.float32(1))


def inner_start_outside(kernel: Any, update: Any) -> Any:
    first = kernel.statement_by_id["compute_f_init_0"]
    outer = kernel.statement_by_id["compute_f_init"]
    entries = entries_of(kernel.tree)
    entries.remove(next(entry for entry in entries if entry[0] == first.id))
    place = [leaf for leaf, _ in entries].index(outer.id)
    entries.insert(place, (first.id, kernel.paths[outer.id]))
    return changed(kernel, first, inames=outer.inames).with_(tree=build(entries))


def other_place(kernel: Any, update: Any) -> Any:
    value, place = update.rhs.parts
    return changed(kernel, update, rhs=dataclasses.replace(update.rhs, parts=(value, place + 1)))


def other_segments(kernel: Any, update: Any) -> Any:
    negated = prim.LogicalNot(update.rhs.condition)
    return changed(kernel, update, rhs=dataclasses.replace(update.rhs, condition=negated))


def last_term_alone(kernel: Any, update: Any) -> Any:
    return changed(kernel, update, rhs=dataclasses.replace(update.rhs, else_=update.rhs.then))


WHOLE: dict[str, tuple[Callable[[], Any], Edit]] = {
    "another term of an inner sum": (kernels.ruled_products, inner_term),
    "an inner sum starts at one": (kernels.ruled_products, inner_start),
    "an inner sum goes on": (kernels.ruled_products, inner_start_outside),
    "a maximum of sums": (kernels.ruled_products, operation),
    "another place": (kernels.ruled_places, other_place),
    "segments begin elsewhere": (kernels.ruled_segments, other_segments),
    "every term is a segment": (kernels.ruled_segments, last_term_alone),
}

for name, (rule, edit) in WHOLE.items():
    fault(
        f"precompute: made anew, {name}",
        rule,
        do("precompute", "f", "j", default_tag=None),
        anew(edit),
        sizes={"n": 3, "m": 4},
    )
