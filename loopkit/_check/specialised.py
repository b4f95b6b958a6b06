"""Whether a step only fixes types and sizes, so that the proven schedule remains valid.

A schedule that is correct for all sizes is correct for some, and no order depends on a type. A
type may only change the value kept in a temporary, which may round it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopkit import _sets
from loopkit._assertions.assertion_values import map_bounds
from loopkit._check.compare_statements import StatementComparison
from loopkit._check.instance_maps import Lineage
from loopkit._check.kept_declarations import with_sizes
from loopkit._check.value_types import ValueTypes
from loopkit._expression import substitute
from loopkit._kernel import Statement
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._simplify import simplify

if TYPE_CHECKING:
    from loopkit._change import Change


def is_specialised(old: Model, new: Model, change: Change, lineage: Lineage) -> bool:
    """Whether ``new`` is ``old`` at some sizes, with types where there were none."""
    if change.instances or change.moves or old.integers - change.fixed.keys() != new.integers:
        return False
    before, after = old.kernel, new.kernel
    for field in ("tree", "tags", "reductions", "functions"):
        if getattr(before, field) != getattr(after, field):
            return False
    return (
        _same_data(before.temporaries, after.temporaries, change)
        and _same_data([a for a in before.args if a.name not in change.fixed], after.args, change)
        and _same_sets(old, new, change)
        and _same_statements(old, new, change)
        and _keeps_values(old, new, lineage)
    )


def _same_data(old: Any, new: Any, change: Change) -> bool:
    """Whether declarations differ in their types alone, or by numbers that stand for sizes."""
    mine, its = ([with_sizes(data, change.fixed) for data in all_] for all_ in (old, new))
    return len(mine) == len(its) and all(
        type(a) is type(b) and replace(a, dtype=b.dtype) == b
        for a, b in zip(mine, its, strict=True)
    )


def _same_sets(old: Model, new: Model, change: Change) -> bool:
    """Whether domains are what they were at these sizes, and nothing is forgotten."""
    before, after = old.kernel, new.kernel
    if [d.inames for d in before.domains] != [d.inames for d in after.domains]:
        return False
    for one, two in zip(before.domains, after.domains, strict=True):
        if one is not two and not _sets.at_values(one.set, change.fixed).is_equal(two.set):
            return False
    known = _sets.at_values(before.assumptions.set, change.fixed)
    kept = map_bounds(before.assertions, lambda e: simplify(substitute(e, dict(change.fixed))))
    return bool(after.assumptions.set.is_subset(known)) and (
        set(kept) <= set(map_bounds(after.assertions, simplify))
    )


def _same_statements(old: Model, new: Model, change: Change) -> bool:
    for one, two in zip(old.kernel.statements, new.kernel.statements, strict=True):
        if replace(two, predicates=one.predicates, lhs=one.lhs, rhs=one.rhs) != one:
            return False
        comparison = StatementComparison(change.fixed, new, Instance(two.id, ""))
        comparison.statements(one, two)
        if comparison.changes.more or comparison.changes.reads:
            return False
    return True


def _keeps_values(old: Model, new: Model, lineage: Lineage) -> bool:
    """Whether temporaries that either kernel has alone are of the types of what they hold."""
    before, after = old.kernel, new.kernel
    dtypes = {d.name: d.dtype for d in (*before.args, *before.temporaries)}
    if all(dtypes[d.name] == d.dtype for d in (*after.args, *after.temporaries)):
        return True
    root = model_of(lineage.root)
    held = [
        (root, root.statement[o])
        for o, images in lineage.images_from.items()
        if any(new.statement[i.statement].written != root.statement[o].written for i in images)
        or not images
    ]
    for statement in after.statements:
        image = lineage.image_of.get(statement.id)
        if image is None or root.statement[image.origin].written != statement.written:
            held.append((new, statement))
    types = {id(model): ValueTypes(model) for model in (root, new)}
    return all(_is_kept(types[id(model)], statement) for model, statement in held)


def _is_kept(types: ValueTypes, statement: Statement) -> bool:
    here, there = types.array(statement.written), types.of(statement.rhs)
    return here is None or there is None or here == there
