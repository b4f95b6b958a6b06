"""Conditions of reductions in a branch of a choice: kept where they keep an access in its array.

What a branch computes that is not taken, nobody reads.  So its terms may be computed all the same,
unless they touch what is not there, or might.
"""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import ArrayArg
from loopkit._expression import is_constant, nodes_of, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._make.check_bounds import outside_accesses
from loopkit._rules import expand_rules


def without_needless_guards(kernel: Kernel) -> Kernel:
    """The kernel, updates having no conditions beside those that start their accumulators.

    Except those that may fail without.
    """
    changed: dict[str, Statement] = {}
    for statement in kernel.statements:
        if statement.kind != "update":
            continue
        starts = [s for s in kernel.writers[statement.written] if s.kind == "init"]
        if len(starts) != 1 or len(starts[0].predicates) == len(statement.predicates):
            continue
        bare = replace(statement, predicates=starts[0].predicates)
        if not _may_fail(kernel, bare):
            changed[statement.id] = bare
    if not changed:
        return kernel
    statements = tuple(changed.get(s.id, s) for s in kernel.statements)
    return replace(kernel, statements=statements)


def _may_fail(kernel: Kernel, statement: Statement) -> bool:
    """Whether a statement, under its own conditions, may leave an array or divide by zero."""
    others = tuple(statement if s.id == statement.id else s for s in kernel.statements)
    expanded = expand_rules(replace(kernel, statements=others))
    own = expanded.statement_by_id[statement.id]
    arrays = {*expanded.temporary_by_name}
    arrays |= {a.name for a in expanded.args if isinstance(a, ArrayArg)}
    for _, indices in own.reads:
        if any(not variable_names(index) <= expanded.integers for index in indices):
            return True
    for node in nodes_of(own.rhs):
        if isinstance(node, (prim.FloorDiv, prim.Remainder)) and not is_constant(node.denominator):
            return True
    alone = replace(expanded, statements=(own,))
    return any(True for _ in outside_accesses(alone, frozenset(arrays)))
