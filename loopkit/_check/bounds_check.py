"""Whether accesses lie in their arrays."""

from __future__ import annotations

import numpy as np
import pymbolic.primitives as prim

from loopkit._check.schedule_check import Check
from loopkit._check.violation import Violation
from loopkit._expression import to_text, variable_names
from loopkit._guarded import Guarded, guarded_reads
from loopkit._hidden import BASE
from loopkit._nodes import Expression
from loopkit._poly.in_bounds import outside
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._same import Key, key_of


def check_bounds(check: Check, statement_id: str) -> None:
    """Report accesses of a statement that leave a temporary, or that a copy makes outside.

    Accesses to arguments that stand in the text were judged when the kernel
    was made; those that data decide are for the executors to catch.
    """
    new = check.new
    statement = new.statement[statement_id]
    is_copy = statement_id not in check.lineage.image_of
    at = Instance(statement_id, BASE)
    domain = new.domain(at) & check.lineage.sizes
    accesses: list[Guarded] = [(*statement.write, ())]
    accesses += [g for g in guarded_reads(statement) if g[0] in new.data]
    seen: set[Key] = set()
    for name, indices, guards in accesses:
        temporary = name in new.kernel.temporary_by_name
        key = key_of((name, indices, guards))
        if not indices or not (temporary or is_copy) or key in seen:
            continue
        seen.add(key)
        shape = new.array(name).shape
        if shape is None:
            continue
        where = domain & new.where_evaluated(guards, BASE)
        for index, extent in zip(indices, shape, strict=True):
            if variable_names(index) & new.data or _is_inside(new, index, extent):
                continue
            value = new.named(index, BASE)
            for is_below, there in outside(value, extent):
                bad = where & there
                if not bad.is_empty():
                    named = tuple(new.named(i, BASE) for i in indices)
                    check.report(
                        Violation(
                            "bounds",
                            bad,
                            check.side_of(at),
                            array=name,
                            cell=named,
                            detail="before its first element"
                            if is_below
                            else f"which has {to_text(extent)} elements there",
                        )
                    )
                    return


def _is_inside(new: Model, index: Expression, extent: Expression) -> bool:
    """Whether an index is an iname whose values all lie in an axis of constant length."""
    if not (isinstance(index, prim.Variable) and isinstance(extent, (int, np.integer))):
        return False
    if index.name not in new.kernel.home_domain:
        return False
    low, high = new.kernel.range_of(index.name)
    return low is not None and high is not None and low >= 0 and high < int(extent)
