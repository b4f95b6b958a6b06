"""Which inames and expressions are determined by the values of other expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._determined import determined_by
from loopkit._expression import variable_names
from loopkit._hidden import BASE, OTHER
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, equal_inames, steps
from loopkit._poly.program_order import all_equal, before


class Injectivity:
    """Answers about the inames of one kernel."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.inames = frozenset(model.kernel.all_inames)

    def determined_by(self, exprs: Iterable[Expression]) -> frozenset[str]:
        """The inames that some expressions determine together."""
        return determined_by(self.model.kernel, exprs)

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
