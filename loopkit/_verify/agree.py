"""Whether two terms have equal values at all points of a set."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit import _sets
from loopkit._algebra.conditions import are_equal, choose
from loopkit._algebra.make import replace_terms
from loopkit._algebra.ranges import is_within, range_of
from loopkit._algebra.reading import condition_of, expression_of
from loopkit._algebra.terms import Term, UnreadableError, name, subterms, truth
from loopkit._decide import Proven, decide
from loopkit._decide.simpler_questions import choice_of
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._poly.pairs import Undecided, equal
from loopkit._verify.cells import cells_of
from loopkit._verify.totals import is_total, totals

_CASES = 64
"""So many cases and questions may a comparison have."""

_UNKNOWN = frozenset(("read", "toint", "call", "reduce", "pow"))


def same_cells(one: Kernel, two: Kernel, context: isl.Set) -> bool:
    """Whether two kernels leave equal values in all cells of their arguments.

    This compares the texts; effects of a wrong schedule are not covered. Raises
    :class:`~loopkit._poly.pairs.Undecided` if that is not known.
    """
    mine, its = cells_of(one), cells_of(two)
    return mine.keys() == its.keys() and all(
        _Comparison().agree(a, b, here & there & context)
        for array in mine
        for here, a in mine[array].everywhere
        for there, b in its[array].everywhere
    )


class _Comparison:
    def __init__(self) -> None:
        self.left = _CASES

    def agree(self, one: Term, two: Term, where: isl.Set) -> bool:
        """Whether two terms have equal values at all points of a set."""
        if one is two or where.is_empty():
            return True
        for atom in _conditions(one, two):
            self.begin_case()
            inside = where & _sets.condition_set(expression_of(atom))
            for holds, part in ((True, inside), (False, where - inside)):
                known = {atom: truth(holds)}
                mine, its = (replace_terms(t, known.get) for t in (one, two))
                if not part.is_empty() and not self.agree(mine, its, part):
                    return False
            return True
        if one.sort == "Z" == two.sort:
            return self.agree_as_numbers(one, two, where)
        for operation in _operations(one, two):
            return self.have_same_parts(one, two, operation, where)
        return self.agree_in_parts(one, two, where)

    def begin_case(self) -> None:
        """Raise :class:`~loopkit._poly.pairs.Undecided` when the budget of cases is exceeded."""
        self.left -= 1
        if self.left < 0:
            raise Undecided("there are too many cases")

    def agree_in_parts(self, one: Term, two: Term, where: isl.Set) -> bool:
        """Whether two operations are the same, of the same operands."""
        kinds = [(t.op, t.sort, t.data, len(t.args)) for t in (one, two)]
        if kinds[0] != kinds[1] or one.op in ("constant", "name"):
            return False
        return all(self.agree(a, b, where) for a, b in zip(one.args, two.args, strict=True))

    def agree_as_numbers(self, one: Term, two: Term, where: isl.Set) -> bool:
        """Whether two whole numbers are equal."""
        try:
            return bool(where.is_subset(equal(expression_of(one), expression_of(two))))
        except (UnreadableError, Undecided):
            pass
        one, two = (replace_terms(t, _as_choice) for t in (one, two))
        mine, its, bits = one, two, None
        dtypes = [t.data for t in (one, two) if t.op == "wrap"]
        if dtypes and all(is_within(t, dtypes[0]) for t in (one, two)):
            bits = int(dtypes[0].lstrip("uint"))
            is_wrapped = [(t.op, t.data) == ("wrap", dtypes[0]) for t in (one, two)]
            mine, its = (t.args[0] if w else t for t, w in zip((one, two), is_wrapped, strict=True))
        elif one.op == two.op == "read":
            return self.agree_in_parts(one, two, where)
        self.begin_case()
        every = [*subterms(one, two)]
        if any(t.op == "reduce" for t in every):
            operation = next(_operations(mine, its), "sum")
            return self.have_same_parts(mine, its, operation, where, bits)
        unknown = [t for t in every if t.sort == "Z" and t.op in _UNKNOWN]
        names: dict[Term, Term] = {}
        for term in unknown:
            same = (o for o in names if self.agree_in_parts(o, term, where))
            other = next(same, None)
            at = hidden("unknown", len(names))
            names[term] = names[other] if other is not None else name(at, *range_of(term))
        claim = are_equal(*(replace_terms(t, names.get) for t in (one, two)))
        return isinstance(decide(claim, [condition_of(where)]), Proven)

    def have_same_parts(
        self, one: Term, two: Term, operation: str, where: isl.Set, bits: int | None = None
    ) -> bool:
        """Whether two values are sums of the same terms."""
        mine, its = (totals(t, operation, where, bits) for t in (one, two))
        return mine.keys() == its.keys() and all(
            mine[form].keys() == its[form].keys()
            and all(mine[form][n].is_equal(its[form][n]) for n in mine[form])
            for form in mine
        )


def _as_choice(term: Term) -> Term | None:
    """An extremum as a choice; None for other terms."""
    is_extreme = term.sort == "Z" and term.op in ("min", "max")
    return choose(*choice_of(term)) if is_extreme else None


def _operations(*terms: Term) -> Iterator[str]:
    """The operation of a reduction that one of some values is the result of."""
    for term in terms:
        reduces = [t for t in (term, *term.args) if t.op == "reduce"]
        for found in reduces:
            if is_total(term, found.data[0]):
                yield found.data[0]
        if is_total(term, "sum"):
            yield "sum"


def _conditions(*terms: Term) -> Iterator[Term]:
    """Conditions on cells and sizes that terms ask for."""
    waiting, seen = [*terms], set[Term]()
    while waiting:
        term = waiting.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op in ("ge0", "eq0"):
            try:
                _sets.condition_set(expression_of(term))
            except (UnreadableError, _sets.NotAffineError):
                pass
            else:
                yield term
        waiting += term.args[2:] if term.op == "reduce" else term.args
