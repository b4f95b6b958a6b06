"""Cutting statements in parts, where the other kernel has several statements for one.

A loop whose first or last iterations stand apart has two statements for what
is one elsewhere.  A statement is cut by conditions on its inames, which changes
nothing in a kernel without races.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from loopkit import _sets
from loopkit._kernel import Kernel, Statement
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._tree import Loop, Tree


def split_statements(model: Model, parts: Mapping[str, Sequence[isl.Set]]) -> Kernel | None:
    """The kernel with statements cut at the given sets of instances; None where none is cut.

    Sets that overlap cut nothing.
    """
    pieces: dict[str, list[Statement]] = {}
    for name, sets in parts.items():
        found = _pieces(model, model.statement[name], sets)
        if len(found) > 1:
            pieces[name] = found
    if not pieces:
        return None
    kernel = model.kernel
    statements = [p for s in kernel.statements for p in pieces.get(s.id, [s])]
    tree = _replaced(kernel.tree, {n: tuple(p.id for p in them) for n, them in pieces.items()})
    return kernel.with_(tree=tree, statements=tuple(statements))


def _pieces(model: Model, statement: Statement, sets: Sequence[isl.Set]) -> list[Statement]:
    domain = model.domain(Instance(statement.id, ""))
    rest = domain
    wheres = []
    for where in sets:
        inside = domain & where
        if inside.is_empty():
            continue
        if not inside.is_subset(rest):
            return []
        wheres.append(inside)
        rest = rest - inside
    if not rest.is_empty():
        wheres.append(rest)
    if len(wheres) < 2:
        return []
    found = []
    for number, where in enumerate(wheres):
        known = where.gist(domain).coalesce().remove_redundancies().compute_divs()
        try:
            condition = _sets.conditions(known)
        except _sets.NotAffineError:
            return []
        predicates = (*statement.predicates, condition)
        name = model.kernel.fresh_name(f"{statement.id}_part_{number}")
        found.append(replace(statement, id=name, predicates=predicates))
    return found


def _replaced(nodes: Tree, names: Mapping[str, tuple[str, ...]]) -> Tree:
    result: list[Loop | str] = []
    for node in nodes:
        if isinstance(node, Loop):
            result.append(Loop(node.iname, _replaced(node.body, names)))
        else:
            result += names.get(node, (node,))
    return tuple(result)
