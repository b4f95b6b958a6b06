"""The accesses of an expression with their guards, and the flags that represent ``break``.

``if(c, a, b)`` evaluates one branch.  ``and`` and ``or`` evaluate an operand only where those
before it leave the result open.  An access in a branch that is not evaluated does not happen, so
it need not be in bounds.

A loop that contains ``break`` keeps its full iteration domain.  A boolean flag, set by a statement
before the loop and cleared by each ``break``, guards every statement of the loop, so that
iterations after the exit have no effect.  The domains therefore stay polyhedral, and reorderings
are subject to the same rules as for any data-dependent guard that is carried from one iteration to
the next.  Code generation leaves the loop once the flag is cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._expression import index_tuple, is_constant, parts_of, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._same import remembered, same

Guards = tuple[Expression, ...]
Guarded = tuple[str, tuple[Expression, ...], Guards]


def conjuncts(condition: Expression) -> Guards:
    """The operands of ``and`` in a condition, nested ones included; else the condition alone."""
    if isinstance(condition, prim.LogicalAnd):
        return tuple(part for child in condition.children for part in conjuncts(child))
    if isinstance(condition, prim.LogicalNot):
        inner = condition.child
        if isinstance(inner, prim.LogicalOr):
            return tuple(part for c in inner.children for part in conjuncts(prim.LogicalNot(c)))
        if isinstance(inner, prim.LogicalNot):
            return conjuncts(inner.child)
    return (condition,)


def conjuncts_of(where: isl.Set) -> Guards:
    """The conditions on names that hold together exactly in a set; none for the universe."""
    condition = _sets.conditions(where)
    return () if condition is True else conjuncts(condition)


def guarded_nodes(
    expr: Expression,
    into: Callable[[Expression], bool] | None = None,
    says: Callable[[Expression], bool] | None = None,
) -> Iterator[tuple[Expression, Guards]]:
    """All nodes, as :func:`nodes_of` gives them, each with its guards.

    Of the guards only those that ``says`` selects are kept, so that nodes under very many guards
    take no longer.
    """

    def and_if(guards: Guards, condition: Expression) -> Guards:
        return guards + tuple(filter(says, conjuncts(condition)) if says else conjuncts(condition))

    waiting: list[tuple[Expression, Guards]] = [(expr, ())]
    while waiting:
        node, guards = waiting.pop()
        yield node, guards
        if into is not None and not into(node):
            continue
        parts = [(part, guards) for part in parts_of(node)]
        if isinstance(node, prim.If):
            otherwise = and_if(guards, prim.LogicalNot(node.condition))
            parts[1:] = [(node.then, and_if(guards, node.condition)), (node.else_, otherwise)]
        elif isinstance(node, (prim.LogicalAnd, prim.LogicalOr)):
            for number, child in enumerate(node.children):
                parts[number] = child, guards
                is_or = isinstance(node, prim.LogicalOr)
                guards = and_if(guards, prim.LogicalNot(child) if is_or else child)
        waiting += parts[::-1]


def _collected(expr: Expression, says: Callable[[Expression], bool] | None) -> Iterator[Guarded]:
    for node, guards in guarded_nodes(expr, says=says):
        if isinstance(node, prim.Variable):
            yield node.name, (), guards
        elif isinstance(node, prim.Subscript):
            yield node.aggregate.name, index_tuple(node), guards


@remembered(1 << 14)
def _guarded(expr: Expression) -> tuple[Guarded, ...]:
    return tuple(_collected(expr, None))


def guarded_accesses(expr: Expression) -> tuple[Guarded, ...]:
    """Every use of a name in ``expr`` with the conditions that must hold for it."""
    return () if is_constant(expr) else _guarded(expr)


def guarded_reads(statement: Statement, *, affinely: bool = False) -> list[Guarded]:
    """Everything that a statement reads; the target of an update is not among it.

    ``affinely``: with the affine ones of the conditions alone.
    """
    of = partial(_collected, says=_sets.is_condition) if affinely else guarded_accesses
    found: list[Guarded] = []
    guards: Guards = ()
    for predicate in statement.predicates:
        found += [(n, i, guards + g) for n, i, g in of(predicate)]
        guards = (*guards, predicate)
    reads = [*of(statement.rhs)]
    for index in statement.write[1]:
        reads += of(index)
    found += [(n, i, guards + g) for n, i, g in reads] if guards else reads
    return found


def all_guarded_reads(kernel: Kernel, statement: Statement) -> list[Guarded]:
    """:func:`guarded_reads`, the target of an update, and the bounds of the statement's loops.

    Of the statement's conditions, those lead to a loop that do not depend on its iname.
    """
    found = guarded_reads(statement)
    if statement.operation is not None:
        found.append((*statement.write, statement.predicates))
    for name in kernel.loaded_bounds(statement.inames):
        inside = {i for i in statement.inames if name in kernel.loaded_bounds([i])}
        around = (p for p in statement.predicates if inside.isdisjoint(variable_names(p)))
        found.append((name, (), tuple(around)))
    return found


def where_all_hold(guards: Iterable[Expression], integers: Collection[str]) -> isl.Set:
    """A superset ``{ names of the guards }`` of the points where all guards are true.

    Guards that depend on data are ignored.  ``integers`` are the inames and sizes.
    """
    found = (decided(part, integers) for guard in guards for part in conjuncts(guard))
    return _sets.intersection(condition for condition in found if condition is not None)


def running(kernel: Kernel, statement: Statement) -> isl.Set:
    """``{ inames, sizes : the statement runs }``, a superset."""
    where = kernel.statement_domain(statement) & kernel.assumptions.set
    return where & where_all_hold(statement.predicates, kernel.integers)


def are_decided(guards: Iterable[Expression], integers: Collection[str]) -> bool:
    """Whether all guards are conditions that sets can express."""
    return all(decided(part, integers) is not None for g in guards for part in conjuncts(g))


def decided(guard: Expression, integers: Collection[str]) -> isl.Set | None:
    """The exact set where a guard is true; None where it depends on data, or is not affine."""
    if not variable_names(guard) <= frozenset(integers):
        return None
    try:
        return _sets.condition_set(guard)
    except _sets.NotAffineError:
        return None


BREAK = "break"
"""What makes a flag: :attr:`TemporaryVariable.made_by` of one."""


@dataclass(frozen=True)
class Flag:
    """A flag that represents ``break``: the statement that sets it, and those that clear it."""

    name: str
    start: Statement
    stops: tuple[Statement, ...]

    def guards(self, statement: Statement) -> bool:
        """Whether a statement runs only while the flag is set."""
        return prim.Variable(self.name) in statement.predicates


@memoised
def flags_of(kernel: Kernel) -> Mapping[str, Flag]:
    """The flags of a kernel by name (memoised).

    A flag is set by one statement, which has no condition.  All other statements that write it
    clear it, so that it stays cleared until the first one runs again.
    """
    found = {}
    for temporary in kernel.temporaries:
        if temporary.made_by != BREAK or temporary.shape:
            continue
        writers = kernel.writers.get(temporary.name, ())
        # A guarded write may be unconditional, and store the old value otherwise.
        kept = {s.id: s.rhs.then for s in writers if getattr(s.rhs, "else_", None) == s.lhs}
        starts = [s for s in writers if same(kept.get(s.id, s.rhs), True)]
        stops = tuple(s for s in writers if same(kept.get(s.id, s.rhs), False))
        if len(starts) == 1 and len(starts) + len(stops) == len(writers):
            found[temporary.name] = Flag(temporary.name, starts[0], stops)
    return found
