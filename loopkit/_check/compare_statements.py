"""Whether a statement is what it was, its inames replaced: node by node, indices as numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import index_tuple, is_constant, nodes_of, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._same import same


def parts(expr: Expression) -> Iterator[object]:
    """The fields of an expression, tuples flattened."""
    for one in dataclasses.fields(expr):
        value = getattr(expr, one.name)
        if isinstance(value, tuple):
            yield len(value)
            yield from value
        else:
            yield value


def holds_typed(expr: Expression) -> bool:
    """Whether a literal that is no plain integer stands in an expression."""
    if isinstance(expr, prim.Variable):
        return False
    return any(is_constant(node) and not isinstance(node, int) for node in nodes_of(expr))


@dataclass
class Differences:
    """What differs between two expressions: nothing, some reads, or more.

    ``kept`` holds the identities of nodes of the new expression that are the old
    one's, ``others`` those of all other nodes.
    """

    more: bool = False
    reads: bool = False
    kept: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)


class StatementComparison:
    """Compares expressions of one statement before and after a step."""

    def __init__(
        self,
        values: Mapping[str, Expression],
        integers: frozenset[str],
        arrays: frozenset[str],
        domain: Callable[[], isl.Set],
    ) -> None:
        self.values = values
        self.integers = integers
        self.arrays = arrays
        self.domain = domain
        self.changes = Differences()

    def statements(self, old: Statement, new: Statement) -> None:
        """Compare two statements; what they write, and when, must be the same."""
        if old is new and not self.values:
            return
        is_same = (
            old.operation == new.operation
            and old.kind == new.kind
            and old.written == new.written
            and len(old.write[1]) == len(new.write[1])
            and len(old.predicates) == len(new.predicates)
        )
        if not is_same:
            self.changes.more = True
            return
        for a, b in zip(old.write[1], new.write[1], strict=True):
            if not self.index(a, b):
                self.changes.more = True
        for a, b in zip(old.predicates, new.predicates, strict=True):
            if not self.node(substitute(a, self.values), b):
                # Which instances run would have to be asked anew.
                self.changes.more = True
        self.node(substitute(old.rhs, self.values), new.rhs)

    def node(self, old: Expression, new: Expression) -> bool:
        """Compare two nodes, of which the old one speaks of new inames already."""
        if is_constant(old) or is_constant(new):
            # Small numbers are one object wherever they stand, in subscripts as well.
            self.changes.more |= not same(old, new)
            return same(old, new)
        if old is new:
            is_same = True
        elif self.is_read(new) and self.is_read(old):
            is_same = self.reads(old, new)
            if not is_same:
                self.changes.reads = True
                # Of its indices nothing is known, and one node may stand in many places.
                self.changes.others |= {id(node) for node in nodes_of(new)}
        elif isinstance(new, prim.Comparison) and self.are_integers(old, new):
            is_same = (
                isinstance(old, prim.Comparison)
                and old.operator == new.operator
                and self.same_index(old.left, new.left)
                and self.same_index(old.right, new.right)
            )
            self.changes.more |= not is_same
        else:
            is_same = self.inner(old, new)
        (self.changes.kept if is_same else self.changes.others).add(id(new))
        return is_same

    def inner(self, old: Expression, new: Expression) -> bool:
        mine, its = [*parts(old)], [*parts(new)]
        if type(old) is not type(new) or len(mine) != len(its):
            self.changes.more = True
            return False
        is_same = True
        for a, b in zip(mine, its, strict=True):
            if isinstance(a, prim.ExpressionNode) or is_constant(a):
                is_same = self.node(a, b) and is_same
            elif a != b:
                self.changes.more = True
                is_same = False
        return is_same

    def is_read(self, expr: Expression) -> bool:
        """Whether an expression is one use of an array or a scalar of data."""
        if isinstance(expr, prim.Subscript):
            return True
        return isinstance(expr, prim.Variable) and expr.name in self.arrays

    def reads(self, old: Expression, new: Expression) -> bool:
        if isinstance(old, prim.Variable) or isinstance(new, prim.Variable):
            return type(old) is type(new) and old.name == new.name
        mine, its = index_tuple(old), index_tuple(new)
        if old.aggregate.name != new.aggregate.name or len(mine) != len(its):
            return False
        return all(self.same_index(a, b) for a, b in zip(mine, its, strict=True))

    def are_integers(self, old: Expression, new: Expression) -> bool:
        if not variable_names(old) | variable_names(new) <= self.integers:
            return False
        # Sets know no types: 2.0 would be 2.
        return not (holds_typed(old) or holds_typed(new))

    def index(self, old: Expression, new: Expression) -> bool:
        """Whether an index is what it was, where the old one speaks of old inames."""
        return self.same_index(substitute(old, self.values), new)

    def same_index(self, old: Expression, new: Expression) -> bool:
        """Whether two indices over new inames are equal wherever the statement runs."""
        if old is new:
            return True
        if not self.are_integers(old, new):
            return self.same_data(old, new)
        try:
            mine, its = linear(old), linear(new)
            if mine.constant == its.constant and mine.terms == its.terms:
                return True
        except _sets.NotAffineError:
            pass
        try:
            differ = _sets.pw_affine(old).ne_set(_sets.pw_affine(new))
        except _sets.NotAffineError:
            return False
        return bool((differ & self.domain()).is_empty())

    def same_data(self, old: Expression, new: Expression) -> bool:
        """Whether two indices that data decide are one expression, their own indices compared."""
        if is_constant(old) or is_constant(new):
            return same(old, new)
        if self.are_integers(old, new):
            return self.same_index(old, new)
        if self.is_read(old) and self.is_read(new):
            return self.reads(old, new)
        mine, its = [*parts(old)], [*parts(new)]
        return (type(old), len(mine)) == (type(new), len(its)) and all(
            self.same_data(a, b) if isinstance(a, prim.ExpressionNode) or is_constant(a) else a == b
            for a, b in zip(mine, its, strict=True)
        )
