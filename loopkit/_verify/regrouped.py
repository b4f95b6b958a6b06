"""Sums that two kernels form in other groups: of the same terms, cell by cell.

The order of a sum is free, what it starts from belongs to it, and a sum of sums is one sum.  So
what is left in a cell is followed back, through sums and what they are handed on in, to its
*terms*: expressions over arguments that nobody writes, each with the cells that it reads there.
Two kernels whose cells have the same terms, each once, compute the same, if sums start from zero
in the same cells: a sum of -0.0 alone is 0.0 where one does, and -0.0 where none does.

Nothing else is regrouped: a sum of which no operand is a reduction's result is one term, rounded
as it stands.  Where terms are of other types than the cell, may stand twice, or hang on data,
nothing is said.
"""

from __future__ import annotations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._expression import Access, access_of, is_constant
from loopkit._hidden import READER, copied, label_of
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.pairs import Undecided, renamed
from loopkit._promotion import INTEGERS
from loopkit._same import key_of
from loopkit._verify.term_sets import Form, Slots, TermReader, Terms, as_term
from loopkit._verify.whole_sums import WholeTerms, as_updates

_DEPTH = 24

_ZERO: Form = key_of(0)
"""In the place of a form: the cells in which a sum starts from zero, however often."""


def same_sums(one: Kernel, two: Kernel) -> bool:
    """Whether all cells that two kernels write are sums of the same terms.

    This compares the texts: what a schedule does otherwise is not asked.
    Raises :class:`Undecided` where a cell is not such a sum.
    """
    mine, its = terms_of(one), terms_of(two)
    return mine.keys() == its.keys() and all(mine[k].is_equal(its[k]) for k in mine)


@memoised
def terms_of(kernel: Kernel) -> Terms:
    """The terms of all that a kernel leaves in its arguments (memoised)."""
    return _Follower(as_updates(kernel)).terms()


class _Follower(TermReader):
    """Finds the terms of all that a kernel leaves in its arguments."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(dataflow_of(kernel))
        self.found: Terms = {}

    def terms(self) -> Terms:
        """The terms of all outputs."""
        kernel = self.model.kernel
        for self.output in sorted(kernel.writers.keys() & kernel.arg_by_name.keys()):
            kind = self.types.array(self.output)
            whole = WholeTerms(self.flow, self.output, kind) if kind in INTEGERS else None
            for writer in self.writers(self.output):
                if writer.operation is not None:
                    raise Undecided(f"'{writer.id}' adds to what '{self.output}' held before")
                where = renamed(self.flow.at_end(writer.id)[0], {READER: copied(0)})
                where = self.bound(where, "cell", writer.write[1], copied(0))
                self.keep(None, where)
                if whole is None:
                    self.follow(writer.rhs, writer, 0, where)
                else:
                    whole.follow(writer, where)
            if whole is not None:
                self.found |= whole.terms()
        return {key: where for key, where in self.found.items() if not where.is_empty()}

    def follow(self, expr: Expression, reader: Statement, depth: int, where: isl.Set) -> None:
        """Keep the terms of an expression.

        ``where`` is ``{ cell··axis, inames·label of all readers on the way, sizes }``: each of
        its points adds the value once.
        """
        if where.is_empty():
            return
        if depth > _DEPTH:
            raise Undecided(f"what '{self.output}' holds is passed on in too many steps")
        kind = self.types.array(self.output)
        if kind is None or kind.kind not in "fiuc" or self.types.of(expr) != kind:
            raise Undecided(f"'{reader.id}' has a value of another type than '{self.output}'")
        access = access_of(expr, self.model.data)
        if access is not None and access[0] in self.model.kernel.temporary_by_name:
            self.behind(access, reader, depth, where)
            return
        for part in self.operands(expr):
            if part is expr:
                self.term(expr, depth, where)
            else:
                self.follow(part, reader, depth, where)

    def operands(self, expr: Expression) -> tuple[Expression, ...]:
        """What a reduction's result and others are added of, from the left; else the whole."""
        if not isinstance(expr, prim.Sum):
            return (expr,)
        children = (expr.children[0], *map(as_term, expr.children[1:]))
        first = next((n for n, child in enumerate(children) if self.is_total(child)), None)
        if first is None:
            return (expr,)
        start = children[:first] if first < 2 else (prim.Sum(children[:first]),)
        return (*start, *children[first:])

    def is_total(self, expr: Expression, known: frozenset[str] = frozenset()) -> bool:
        """Whether an expression is the result of a sum, wherever it is evaluated."""
        if isinstance(expr, prim.Sum):
            return any(self.is_total(child, known) for child in expr.children)
        access = access_of(expr, self.model.data)
        if access is None or access[0] in known:
            return False
        name = access[0]
        if name not in self.model.kernel.temporary_by_name:
            return False
        writers = [w for w in self.model.writers(name) if w.kind != "init"]
        return bool(writers) and all(
            w.operation == "sum" or (w.operation is None and self.is_total(w.rhs, known | {name}))
            for w in writers
        )

    def behind(self, access: Access, reader: Statement, depth: int, where: isl.Set) -> None:
        """Keep the terms of what a temporary holds: of its last store, and of updates since."""
        name, indices = access
        self.writers(name)
        self.check_affine(indices)
        if self.types.array(name) != self.types.array(self.output):
            raise Undecided(f"'{name}' is of another type than '{self.output}'")
        labels = copied(depth), copied(depth + 1)
        for writer, onto in self.behind_read(access, reader, where, *labels):
            if writer.kind == "init" and is_constant(writer.rhs) and writer.rhs == 0:
                self.start(onto)
            else:
                self.follow(writer.rhs, writer, depth + 1, onto)

    def start(self, where: isl.Set) -> None:
        """Keep the cells in which a sum starts from zero; integers have no other one."""
        kind = self.types.array(self.output)
        if kind is not None and kind.kind in "fc":
            cells = _sets.project_out(where, [n for n in _sets.names_of(where) if label_of(n)])
            known = self.found.get((self.output, _ZERO))
            self.found[self.output, _ZERO] = cells if known is None else known | cells

    def term(self, expr: Expression, depth: int, where: isl.Set) -> None:
        """Keep one term, with the cells that it reads."""
        slots = Slots(self.model)
        form = slots(expr)
        where = self.bound(where, "slot", slots.indices, copied(depth))
        self.keep(key_of(form), where)

    def keep(self, form: Form, where: isl.Set) -> None:
        """Add to what is found; raises :class:`Undecided` where something may stand twice."""
        where = self.once(where)
        known = self.found.get((self.output, form))
        if known is not None:
            if not (known & where).is_empty():
                raise Undecided(f"a term of '{self.output}' stands more than once")
            where = known | where
        self.found[self.output, form] = where
