"""Whether a statement is unchanged up to its inames: compared node by node, indices as numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property
from loopkit._check.value_types import ValueTypes
from loopkit._expression import (
    Access,
    access_of,
    evaluate,
    is_constant,
    is_no_access,
    nodes_of,
    substitute,
    variable_names,
)
from loopkit._frozen import dataclass
from loopkit._hidden import hidden, is_number
from loopkit._kernel import Statement
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._promotion import INTEGERS
from loopkit._same import same
from loopkit._simplify import simplify


@dataclass(frozen=True)
class Untouched:
    """Represents, in an expression of the text, the value of a cell before the kernel."""

    array: str
    indices: tuple[Expression, ...]


ANYTHING = prim.Variable(hidden("anything"))
"""In place of an expression of the text: a value that nobody uses."""


def couples(old: Expression, new: Expression) -> list[tuple[Expression, Expression]] | None:
    """The corresponding operands of two expressions; None if the operations differ."""
    if type(old) is not type(new) or is_constant(old):
        return None
    found: list[tuple[Expression, Expression]] = []
    for one in dataclasses.fields(old):
        mine, its = getattr(old, one.name), getattr(new, one.name)
        if not isinstance(mine, tuple):
            mine, its = (mine,), (its,)
        if len(mine) != len(its):
            return None
        for a, b in zip(mine, its, strict=True):
            if isinstance(a, prim.ExpressionNode) or is_constant(a):
                found.append((a, b))
            elif a != b:
                return None
    return found


def is_integer(expr: Expression, integers: frozenset[str]) -> bool:
    """Whether sets know the value of an expression over ``integers``: they know no types.

    2.0 would be 2 to them.
    """
    if isinstance(expr, prim.Variable):
        return expr.name in integers or is_number(expr.name)
    return all(map(is_number, variable_names(expr) - integers)) and not any(
        is_constant(node) and not isinstance(node, int) for node in nodes_of(expr)
    )


def differ_somewhere(one: Expression, other: Expression, where: isl.Set) -> bool:
    """Whether two integer expressions have different values in one of the cases looked at.

    These are the first of ``where``, and the first in which no name is 0 or 1, if there is one.
    A name that ``where`` says nothing of may have any value.
    """
    names = variable_names(one) | variable_names(other)
    free = dict.fromkeys(names - {*_sets.names_of(where)}, 3)
    where = where & _sets.at(free)
    large = (_sets.condition_set(prim.Comparison(prim.Variable(n), ">=", 2)) for n in sorted(names))
    for cases in (where, reduce(isl.Set.intersect, large, where)):
        if cases.is_empty():
            continue
        values = _sets.sample(cases)
        try:
            if evaluate(one, values) != evaluate(other, values):
                return True
        except ZeroDivisionError:
            pass  # neither has a value there
        except NotImplementedError:
            return True  # numbers of a type are others than those of another
    return False


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


@dataclass
class StatementComparison:
    """Compares expressions of one statement before a step, and after it: ``at`` of ``new``.

    ``values`` are the old inames in terms of new ones.  Of arrays that are ``widened``, so many
    first indices are compared.
    """

    values: Mapping[str, Expression]
    new: Model
    at: Instance
    widened: Mapping[str, int] = field(default_factory=dict)
    changes: Differences = field(default_factory=Differences)

    @cached_property
    def types(self) -> ValueTypes:
        """The types of what the statements read."""
        return ValueTypes(self.new)

    def statements(self, old: Statement, new: Statement) -> None:
        """Compare two statements; what they write, and when, must be the same."""
        if old is new and not self.values:
            return
        is_same = (
            old.operation == new.operation
            and old.kind == new.kind
            and old.written == new.written
            and len(old.write[1]) == len(self.indices(new.write))
            and len(old.predicates) == len(new.predicates)
        )
        if not is_same:
            self.changes.more = True
            return
        for a, b in zip(old.write[1], self.indices(new.write), strict=True):
            if not self.same_index(substitute(a, self.values), b):
                self.changes.more = True
        for a, b in zip(old.predicates, new.predicates, strict=True):
            if not self.node(self.types.substituted(a, self.values), b):
                # Which instances run would have to be asked anew.
                self.changes.more = True
        self.node(self.types.substituted(old.rhs, self.values), new.rhs)

    def node(self, old: Expression, new: Expression) -> bool:
        """Compare two nodes, of which the old one speaks of new inames already."""
        if is_constant(old) or is_constant(new):
            # Small numbers are one object wherever they stand, in subscripts as well.
            self.changes.more |= not same(old, new)
            return same(old, new)
        mine, its = access_of(old, self.new.data), access_of(new, self.new.data)
        if old is new:
            is_same = True
        elif mine is not None and its is not None:
            is_same = self.reads(mine, its)
            if not is_same:
                self.changes.reads = True
                # Of its indices nothing is known, and one node may stand in many places.
                self.changes.others |= {id(node) for node in nodes_of(new)}
        else:
            found = couples(old, new)
            if isinstance(new, prim.Comparison) and self.are_integers(old, new):
                is_same = found is not None and all(self.same_index(a, b) for a, b in found)
                self.changes.more |= not is_same
            else:
                compared = [self.node(a, b) for a, b in found or ()]
                is_same = found is not None and all(compared)
                self.changes.more |= found is None
        (self.changes.kept if is_same else self.changes.others).add(id(new))
        return is_same

    def indices(self, access: Access) -> tuple[Expression, ...]:
        """The indices of an access, without those that are new."""
        return access[1][: self.widened.get(access[0])]

    def reads(self, mine: Access, its: Access) -> bool:
        indices = self.indices(its)
        return (mine[0], len(mine[1])) == (its[0], len(indices)) and all(
            self.same_index(a, b) for a, b in zip(mine[1], indices, strict=True)
        )

    def are_integers(self, *both: Expression) -> bool:
        return all(is_integer(expr, self.new.integers) for expr in both)

    def same_index(self, old: Expression, new: Expression) -> bool:
        """Whether two indices over new inames are equal wherever the statement runs.

        Those that data decide are compared node by node, their own indices in this way.
        """
        if old is new:
            return True
        if self.are_integers(old, new):
            try:
                one, two = linear(old), linear(new)
                if one.constant == two.constant and one.same_terms(two):
                    return True
            except _sets.NotAffineError:
                pass
            try:
                differ = _sets.pw_affine(old).ne_set(_sets.pw_affine(new))
                return bool((differ & self.new.domain(self.at)).is_empty())
            except _sets.NotAffineError:
                pass
        mine, its = access_of(old, self.new.data), access_of(new, self.new.data)
        if mine is not None and its is not None:
            return self.reads(mine, its)
        # A step writes subscripts as short as it can.
        old, new = simplify(old), simplify(new)
        if same(old, new):
            return True
        if is_constant(old) or is_constant(new):
            return False
        if self.same_sums(old, new):
            return True
        found = couples(old, new)
        if found is not None and all(self.same_index(a, b) for a, b in found):
            return True
        return self.surely_same(old, new)

    def surely_same(self, old: Expression, new: Expression) -> bool:
        """Whether two indices are equal for all that data may hold, as far as sets can say so."""
        if not (_is_whole(old, self.new) and _is_whole(new, self.new)):
            return False
        equal = prim.Comparison(old, "==", new)
        return self.new.holds(equal, self.new.domain(self.at))

    def same_sums(self, old: Expression, new: Expression) -> bool:
        """Whether two sums have the same terms beyond sets and, besides, the same value.

        Or both leave the same remainder.
        """
        if isinstance(old, prim.Remainder) and isinstance(new, prim.Remainder):
            by = old.denominator
            if type(by) is not int or by <= 0 or not same(by, new.denominator):
                return False
            old, new = old.numerator, new.numerator
        elif isinstance(old, prim.Sum) or isinstance(new, prim.Sum):
            by = 0
        else:
            return False
        both = with_rests(old, new, self.new, self.new)
        if both is None:
            return False
        rests = [prim.Remainder(rest, by) if by else rest for rest in (both.old, both.new)]
        return self.same_index(*rests) and all(self.same_index(a, b) for a, b in both.beyond)


def with_rest(expr: Expression, model: Model) -> tuple[tuple[Expression, ...], Expression] | None:
    """The terms of a sum of whole numbers that sets do not take, and all others; None where none.

    They are made of what it reads of arrays of integers, or products as in ``i*n + j``.  In a
    subscript they may be added in any order, and a number times ``p[i]`` is ``p[i]`` times it.
    """
    beyond: list[Expression] = []
    rest: list[Expression] = []
    for term in _terms(simplify(expr)):
        if is_integer(term, model.integers):
            (rest if _sets.is_pw_affine(term) else beyond).append(term)
        elif _is_whole(term, model):
            beyond.append(term)
        else:
            return None
    return (tuple(beyond), prim.Sum((0, *rest))) if beyond else None


@dataclass(frozen=True)
class Rests:
    """Two sums of whole numbers: the terms ``beyond`` sets, in pairs, and all others of each."""

    beyond: tuple[tuple[Expression, Expression], ...]
    old: Expression
    new: Expression


def with_rests(old: Expression, new: Expression, before: Model, after: Model) -> Rests | None:
    """:func:`with_rest` of an index before a step, and after it; None where terms are no pairs."""
    one, two = with_rest(old, before), with_rest(new, after)
    if one is None or two is None or len(one[0]) != len(two[0]):
        return None
    return Rests(tuple(zip(one[0], two[0], strict=True)), one[1], two[1])


def _is_whole(expr: Expression, model: Model) -> bool:
    """Whether a subscript is made of integers, those of arrays too, by operations on integers.

    An array whose type is still open can only be one of integers there.
    """
    for node in nodes_of(expr, is_no_access):
        read = access_of(node, model.data)
        if read is not None:
            dtype = model.array(read[0]).dtype
            if dtype is not None and dtype not in INTEGERS:
                return False
        elif isinstance(node, prim.Variable):
            if node.name not in model.integers:
                return False
        elif not (type(node) is int or isinstance(node, _WHOLE)):
            return False
    return True


_WHOLE = (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder, prim.Min, prim.Max)
"""Operations that make whole numbers of whole numbers."""


def _terms(expr: Expression) -> Iterator[Expression]:
    if isinstance(expr, prim.Sum):
        for child in expr.children:
            yield from _terms(child)
    else:
        yield expr
