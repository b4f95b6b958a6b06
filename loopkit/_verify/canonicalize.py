"""Normal forms of kernels.

Statements without instances and dead statements are removed; ``a + b`` equals ``b + a``, rounding
included; ``s = s + e`` on integers becomes an update of a sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._check.value_types import ValueTypes
from loopkit._expression import Mapped, is_constant, mapped, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, TypeCast, subtrahend
from loopkit._poly.model import Model
from loopkit._promotion import INTEGERS
from loopkit._relations import reachable
from loopkit._same import Key, key_of, same
from loopkit._tree import build, entries_of


def without_dead_statements(kernel: Kernel) -> Kernel:
    """A kernel without statements that never execute, and without dead statements."""
    sizes = kernel.assumptions.set
    never = {s.id for s in kernel.statements if (kernel.statement_domain(s) & sizes).is_empty()}
    kernel = _without(kernel, never)
    names = live_arrays(kernel)
    return _without(kernel, {s.id for s in kernel.statements if s.written not in names})


def _without(kernel: Kernel, dead: Collection[str]) -> Kernel:
    """A kernel without some of its statements."""
    if not dead:
        return kernel
    entries = [(leaf, path) for leaf, path in entries_of(kernel.tree) if leaf not in dead]
    left = tuple(s for s in kernel.statements if s.id not in dead)
    return kernel.with_(tree=build(entries), statements=left)


def structure_key(kernel: Kernel) -> Key:
    """A key of a kernel's text; kernels with equal keys compute the same."""
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


def with_typed_constants(kernel: Kernel) -> Kernel:
    """A kernel that stores numbers in the types of its variables, however they were written."""
    dtypes = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries)}

    def changed(statement: Statement) -> Statement:
        dtype = dtypes[statement.written]
        if not is_constant(statement.rhs) or dtype is None or statement.kind == "init":
            return statement
        return replace(statement, rhs=np.asarray(statement.rhs).astype(dtype)[()])

    return kernel.with_(statements=tuple(map(changed, kernel.statements)))


def commutes(expr: Expression, types: ValueTypes) -> bool:
    """Whether the two operands of a sum or product may be exchanged without changing its value."""
    if not isinstance(expr, (prim.Sum, prim.Product)) or len(expr.children) != 2:
        return False
    if isinstance(expr, prim.Product):
        # A factor -1 represents a subtraction.
        return not any(type(c) is int and c == -1 for c in expr.children)
    orders = expr.children, expr.children[::-1]
    return all(subtrahend(o[-1]) is None or types.is_negated(o) for o in orders)


def with_swapped(kernel: Kernel, nodes: Iterable[Expression]) -> Kernel:
    """A kernel with the operands of ``nodes``, parts of right-hand sides, exchanged."""
    known = frozenset(id(n) for n in nodes)

    def swapped(expr: Any, inside: Mapped) -> Expression:
        children = tuple(map(inside, expr.children))
        return type(expr)(children[::-1] if id(expr) in known else children)

    sides = (mapped(s.rhs, sum=swapped, product=swapped) for s in kernel.statements)
    both = zip(kernel.statements, sides, strict=True)
    return kernel.with_(statements=tuple(replace(s, rhs=rhs) for s, rhs in both))


def as_updates(kernel: Kernel) -> Kernel:
    """A kernel in which ``s = s + e`` on integer temporaries is an update of a sum."""
    types = ValueTypes(Model(kernel))

    def changed(statement: Statement) -> Statement:
        name, rhs = statement.written, statement.rhs
        is_plain = statement.operation is None and statement.kind == "user"
        if not is_plain or name not in kernel.temporary_by_name or not isinstance(rhs, prim.Sum):
            return statement
        dtype = types.array(name)
        own = [n for n, child in enumerate(rhs.children) if same(child, statement.lhs)]
        rest = [c for n, c in enumerate(rhs.children) if own[:1] != [n]]
        is_sum = len(own) == 1 and not any(name in variable_names(c) for c in rest)
        if dtype not in INTEGERS or not is_sum or types.of(rhs) not in INTEGERS:
            return statement
        value = prim.Sum((0, *(_in_bits(types, term, types.of(rhs)) for term in rest)))
        return replace(statement, rhs=value, operation="sum", kind="update")

    statements = tuple(map(changed, kernel.statements))
    return kernel if statements == kernel.statements else kernel.with_(statements=statements)


def _in_bits(types: ValueTypes, term: Expression, dtype: Any) -> Expression:
    """A term of a sum of some type in that type."""
    subtracted = subtrahend(term)
    if subtracted is not None:
        return prim.Product((-1, _in_bits(types, subtracted, dtype)))
    is_other = isinstance(types.of(term), np.dtype) and types.of(term) != dtype
    return TypeCast(dtype, term) if is_other else term
