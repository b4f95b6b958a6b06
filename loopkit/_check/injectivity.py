"""Which inames are the same wherever some expressions over them are the same.

``16*i_outer + i_inner`` says what ``i_outer`` and ``i_inner`` are, if ``i_inner`` is
between 0 and 15.  The answers hang on the inames' domains alone, and are remembered there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import is_at_most
from loopkit._algebra.reading import condition_of, term_of
from loopkit._algebra.terms import Term, UnreadableError, name, number
from loopkit._cached import answers_of, cached_property, memoised, once
from loopkit._decide import Proven
from loopkit._decide.one_to_one import decide_one_to_one
from loopkit._digits import told_by, told_by_all
from loopkit._expression import nodes_of, variable_names
from loopkit._hidden import BASE, OTHER
from loopkit._intervals import of_dtype
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, differ, equal_inames, steps
from loopkit._poly.program_order import all_equal, before
from loopkit._same import key_of


class Injectivity:
    """Answers about the inames of one kernel."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.inames = frozenset(model.kernel.all_inames)

    def determined_by(self, exprs: Iterable[Expression]) -> frozenset[str]:
        """The inames that some expressions determine: each alone, or where it leaves one open."""
        left = [e for e in exprs if variable_names(e) <= self.model.integers]
        found = told_by_all(self.model.kernel, left)
        found |= self._by_numbers(left, found)
        rest = [e for e in left if not variable_names(e) & self.inames <= found]
        found = found.union(*map(self._by_one, rest))
        while True:
            more: set[str] = set()
            for expr in left:
                open_ = (variable_names(expr) & self.inames) - found
                if len(open_) == 1 and _is_line(expr, *open_):
                    more |= open_
            more |= self._by_numbers(left, found | more)
            if not more:
                return found
            found |= more

    def _by_numbers(self, exprs: list[Expression], found: frozenset[str]) -> frozenset[str]:
        """The inames that are left open, where sets do not know some expression, or are slow."""
        if all(variable_names(e) & self.inames <= found or _is_easy(e) for e in exprs):
            return frozenset()
        known = answers_of(self.model.kernel)
        question = (Injectivity._decided, tuple(map(key_of, exprs)), found)
        more: frozenset[str] = once(known, question, self._decided, exprs, found)
        return more

    def _decided(self, exprs: list[Expression], found: frozenset[str]) -> frozenset[str]:
        """The inames that expressions decide together with those that are known."""
        more: set[str] = set()
        for names, mine in _linked(exprs):
            open_ = (names & self.inames) - found
            if not open_ or all(map(_is_easy, mine)):
                continue
            kernel = self.model.kernel
            where = kernel.domain_of(names & self.inames) & kernel.assumptions.set
            try:
                cells = [term_of(e) for e in (*mine, *map(prim.Variable, sorted(names & found)))]
                asked = (cells, [condition_of(where), *self._size_limits], self.inames)
                more.update(i for i in open_ if isinstance(decide_one_to_one(*asked, [i]), Proven))
            except UnreadableError:
                continue
        return frozenset(more)

    @cached_property
    def _size_limits(self) -> list[Term]:
        """That sizes are numbers of their types."""
        sizes = [a for a in self.model.kernel.args if a.name in self.model.kernel.sizes]
        ends = [(name(a.name), *map(number, of_dtype(a.dtype))) for a in sizes if a.dtype]
        return [c for n, low, high in ends for c in (is_at_most(low, n), is_at_most(n, high))]

    def _by_one(self, expr: Expression) -> frozenset[str]:
        mine = variable_names(expr) & self.inames
        if not mine:
            return frozenset()
        kernel = self.model.kernel
        told = told_by(kernel, expr)
        if told:
            return told
        homes = {kernel.home_domain[i] for i in mine}
        if len(homes) > 1:
            return self._asked(expr, mine)
        known = answers_of(kernel.domains[homes.pop()])
        question = (Injectivity, key_of(expr))
        found: frozenset[str] = once(known, question, self._asked, expr, mine)
        return found

    def _asked(self, expr: Expression, mine: frozenset[str]) -> frozenset[str]:
        try:
            same = self._same(expr, expr)
        except _sets.NotAffineError:
            return frozenset()
        both = same & self.around(mine, BASE) & self.around(mine, OTHER)
        return frozenset(i for i in mine if (both & differ(i, BASE, OTHER)).is_empty())

    def _same(self, a: Expression, b: Expression) -> isl.Set:
        """``{ inames·BASE of a, inames·OTHER of b : a = b }``, or a NotAffineError."""
        return _sets.affine_equality(self.model.named(a, BASE), self.model.named(b, OTHER))

    @memoised
    def around(self, inames: frozenset[str], label: str) -> isl.Set:
        """``{ inames·label, sizes }``: a superset of some inames' values, by domains alone."""
        return self.model.labelled(self.model.kernel.domain_of(inames), label)

    def equal_wherever(
        self,
        pairs: Sequence[tuple[Expression, Expression]],
        one: Expression,
        two: Expression,
        statement: str | None = None,
    ) -> bool:
        """Whether ``one`` equals ``two`` wherever all pairs of expressions are equal.

        The first of each pair, and ``one``, belong to one instance, the others to another:
        both of ``statement``, if it is given, and under its conditions.
        """
        known = self.model.integers
        mine, its = variable_names(one), variable_names(two)
        used = [variable_names(a) | variable_names(b) for a, b in pairs]
        if not (mine | its) & self.inames <= frozenset().union(*used):
            return False
        result = _sets.condition_set(
            prim.Comparison(self.model.named(one, BASE), "!=", self.model.named(two, OTHER))
        )
        for a, b in pairs:
            if not variable_names(a) | variable_names(b) <= known:
                continue
            try:
                result = result & self._same(a, b)
            except _sets.NotAffineError:
                continue
            mine, its = mine | variable_names(a), its | variable_names(b)
        result = result & self.around(mine & self.inames, BASE)
        result = result & self.around(its & self.inames, OTHER)
        if statement is not None and not result.is_empty():
            for label in (BASE, OTHER):
                result = result & self.model.domain(Instance(statement, label))
        return bool(result.is_empty())

    @memoised
    def is_monotone(
        self, values: tuple[Expression, ...], inames: tuple[str, ...], equal: frozenset[str]
    ) -> bool:
        """Whether nested loops over ``inames`` run through ``values`` in lexicographic order.

        Each combination of values must occur in one iteration, and each iteration must
        have one combination.  ``equal`` are inames that any two iterations to be compared
        have in common.
        """
        used = frozenset(inames).union(*(variable_names(v) & self.inames for v in values))
        try:
            values_run = [(self.model.named(v, BASE), self.model.named(v, OTHER)) for v in values]
            ahead, level = before(values_run), all_equal(values_run)
        except _sets.NotAffineError:
            return False
        both = self.around(used, BASE) & self.around(used, OTHER)
        both = both & equal_inames(equal & used, BASE, OTHER)
        back = steps(inames, OTHER, BASE)
        if not all((both & f & b).is_empty() for b in before(back) for f in (*ahead, level)):
            return False
        # Loops around one of two statements alone may say which value it is: then what
        # both share does not order them.
        once = both & all_equal(back)
        return all((once & f).is_empty() for f in ahead)


_OPERATIONS = (
    *(prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor, prim.BitwiseNot),
    *(prim.LeftShift, prim.RightShift, prim.FloorDiv, prim.Remainder),
)
_MANY = 6
"""With how many quotients and masks sets slow down."""


def _is_easy(expr: Expression) -> bool:
    """Whether sets know an expression, and are quick about it; or it is divided by names.

    Rows of unknown length take solvers seconds, and others know them.
    """
    operations = [node for node in nodes_of(expr) if isinstance(node, _OPERATIONS)]
    if any(variable_names(getattr(node, "denominator", 0)) for node in operations):
        return True
    return len(operations) < _MANY and _sets.is_affine(expr)


def _linked(exprs: Iterable[Expression]) -> list[tuple[frozenset[str], list[Expression]]]:
    """Expressions, those together that share names, with these."""
    groups: list[tuple[frozenset[str], list[Expression]]] = []
    for expr in exprs:
        names, mine = variable_names(expr), [expr]
        for group in [g for g in groups if g[0] & names]:
            groups.remove(group)
            names, mine = names | group[0], [*group[1], *mine]
        groups.append((names, mine))
    return groups


def _is_line(expr: Expression, iname: str) -> bool:
    """Whether an expression is an iname times a number, plus something without it.

    An exclusive or with something without it tells as much.
    """
    if isinstance(expr, prim.BitwiseXor):
        inside = [child for child in expr.children if iname in variable_names(child)]
        return len(inside) == 1 and _is_line(inside[0], iname)
    try:
        terms = linear(expr).terms
    except _sets.NotAffineError:
        return False
    mine = [t for t in terms if iname in variable_names(t)]
    return len(mine) == 1 and isinstance(mine[0], prim.Variable) and terms[mine[0]] != 0
