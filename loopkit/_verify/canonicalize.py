"""One form for kernels that compute in the same way.

Statements that never run go, and those that no output depends on.  Operands of a
sum are added from left to right, so ``a + b + c`` is ``(a + b) + c``; and ``a + b`` is
``b + a``, rounding included.

A statement is cut in parts where the other kernel has several statements for one, as for a loop
whose first or last iterations stand apart: by conditions on its inames, which changes nothing in
a kernel without races.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.value_types import ValueTypes
from loopkit._expression import MOST_NESTED, ExpressionMapper, is_constant, nesting
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, subtrahend
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._relations import reachable
from loopkit._same import Key, key_of
from loopkit._tree import Entry, build, entries_of


def without_dead_statements(kernel: Kernel) -> Kernel:
    """A kernel without the statements that never run, or that no output depends on."""
    sizes = kernel.assumptions.set
    never = [s.id for s in kernel.statements if (kernel.statement_domain(s) & sizes).is_empty()]
    kernel = with_parts(kernel, dict.fromkeys(never, ()))
    names = live_arrays(kernel)
    dead = [s.id for s in kernel.statements if s.written not in names]
    return with_parts(kernel, dict.fromkeys(dead, ()))


def with_parts(kernel: Kernel, parts: Mapping[str, Sequence[Statement]]) -> Kernel:
    """A kernel with others, or none, in the place of some of its statements."""
    if not parts:
        return kernel
    now = {s.id: parts.get(s.id, (s,)) for s in kernel.statements}
    entries: list[Entry] = []
    for leaf, path in entries_of(kernel.tree):
        own = [one.id for one in now[leaf]] if isinstance(leaf, str) else [leaf]
        entries += [(one, path) for one in own]
    statements = tuple(one for s in kernel.statements for one in now[s.id])
    return kernel.with_(tree=build(entries), statements=statements)


def structure_key(kernel: Kernel) -> Key:
    """All that a kernel's text says; kernels that say the same compute the same."""
    statements = tuple(
        (s.id, s.lhs, s.operation, s.rhs, s.kind, s.predicates, s.inames) for s in kernel.statements
    )
    data = (kernel.args, kernel.temporaries, kernel.domains, kernel.assumptions)
    return key_of((kernel.tree, kernel.tags, data, statements))


def live_arrays(kernel: Kernel) -> frozenset[str]:
    """The arrays that some output may depend on."""

    def needed_for(name: str) -> Iterator[str]:
        for statement in kernel.writers.get(name, ()):
            yield from dict(kernel.reads_of(statement))

    return reachable(kernel.writers.keys() & kernel.arg_by_name.keys(), needed_for)


class _BinaryOperations(ExpressionMapper):
    """Sums and products of two operands each, leaning to the left."""

    def map_product(self, expr: Any) -> Expression:
        return reduce(lambda a, b: prim.Product((a, b)), map(self.rec, expr.children))

    def map_sum(self, expr: Any) -> Expression:
        first, *rest = expr.children
        return reduce(lambda a, b: prim.Sum((a, b)), [self.rec(first), *map(self.term, rest)])

    def term(self, expr: Expression) -> Expression:
        """A term that is not the first one: what is subtracted is computed before."""
        subtracted = subtrahend(expr)
        return self.rec(expr) if subtracted is None else prim.Product((-1, self.rec(subtracted)))


def with_binary_operations(kernel: Kernel) -> Kernel:
    """A kernel whose sums and products have two operands each, its types known."""
    mapper = _BinaryOperations()

    dtypes = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries)}

    def paired(expr: Expression) -> Expression:
        # A sum of very many is compared operand by operand, in their order.
        return expr if nesting(expr, in_pairs=True) > MOST_NESTED else mapper(expr)

    def changed(statement: Statement) -> Statement:
        if is_constant(statement.rhs):
            dtype = dtypes[statement.written]
            if dtype is None or statement.kind == "init":
                return statement
            # What is stored is of the variable's type, however it was written.
            return replace(statement, rhs=np.asarray(statement.rhs).astype(dtype)[()])
        return replace(statement, rhs=paired(statement.rhs))

    return kernel.with_(statements=tuple(changed(s) for s in kernel.statements))


def commutes(expr: Expression, types: ValueTypes) -> bool:
    """Whether the two operands of an expression may change places."""
    if not isinstance(expr, (prim.Sum, prim.Product)) or len(expr.children) != 2:
        return False
    if isinstance(expr, prim.Product):
        # The whole number -1 stands for a subtraction.
        return not any(type(c) is int and c == -1 for c in expr.children)
    orders = expr.children, expr.children[::-1]
    return all(subtrahend(o[-1]) is None or types.is_negated(o) for o in orders)


class _Swapper(ExpressionMapper):
    """Lets the operands of some nodes, known by identity, change places."""

    def __init__(self, nodes: frozenset[int]) -> None:
        super().__init__()
        self.nodes = nodes

    def _swapped(self, expr: Any) -> Expression:
        children = tuple(self.rec(c) for c in expr.children)
        return type(expr)(children[::-1] if id(expr) in self.nodes else children)

    map_sum = _swapped
    map_product = _swapped


def with_swapped(kernel: Kernel, nodes: Iterable[Expression]) -> Kernel:
    """A kernel in which the operands of ``nodes``, parts of right-hand context, change places."""
    swapper = _Swapper(frozenset(id(n) for n in nodes))
    return kernel.with_(
        statements=tuple(
            s if is_constant(s.rhs) else replace(s, rhs=swapper(s.rhs)) for s in kernel.statements
        )
    )


def split_statements(model: Model, parts: Mapping[str, Sequence[isl.Set]]) -> Kernel | None:
    """The kernel with statements cut at the given sets of instances; None where none is cut.

    Sets that overlap cut nothing.
    """
    found = {n: _pieces(model, model.statement[n], sets) for n, sets in parts.items()}
    pieces = {name: some for name, some in found.items() if some}
    return with_parts(model.kernel, pieces) if pieces else None


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
        predicates = (condition, *statement.predicates)
        name = model.kernel.fresh_name(f"{statement.id}_part_{number}")
        found.append(replace(statement, id=name, predicates=predicates))
    return found
