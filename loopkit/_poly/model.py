"""A kernel as the checker sees it: instances, cells, and the order of execution.

All sets are parameter sets over names. An instance's inames carry a label that distinguishes the
instances in one set.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, TemporaryVariable
from loopkit._assertions.asserted_cells import data_of, equal_cells, may_hold
from loopkit._assertions.follow import asserted, followed
from loopkit._cached import cached_property, memoised, once
from loopkit._collectives import scanned_blocks, scans_of
from loopkit._expression import is_constant, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import decided, where_all_hold
from loopkit._hidden import instances, variable
from loopkit._kernel import Kernel, Statement
from loopkit._linear import NotAffineError, linear
from loopkit._nodes import Expression
from loopkit._places import decide_address_spaces
from loopkit._poly.pairs import Instance, equal, equal_inames, intersection, unequal
from loopkit._poly.parallel_axes import Axis, ParallelAxes
from loopkit._poly.program_order import ProgramOrder
from loopkit._poly.tightened import tightened
from loopkit._rules import expand_rules
from loopkit._same import key_of


@dataclass(frozen=True)
class Cell:
    """One array access of one statement instance: subscripts over that instance's names.

    With ``by_data``, sets cannot represent the cell: it depends on data, or a subscript multiplies
    names.

    ``coordinates`` say which copy of the array is accessed: one for each hardware axis along which
    the array exists once per index; an axis that is missing means all copies.
    """

    array: str
    indices: tuple[Expression, ...]
    coordinates: tuple[tuple[Axis, Expression], ...]
    by_data: bool = False


def _on_shared_axes(a: Cell, b: Cell) -> list[tuple[Expression, Expression]]:
    """The coordinates of two cells on each axis on which both have one."""
    mine = dict(a.coordinates)
    return [(mine[axis], value) for axis, value in b.coordinates if axis in mine]


Progression = tuple[int, int]
"""A step and a number: what a subscript may be, such as ``(2, 1)`` for ``2*i - 4*j + 1``."""


def _progression(index: Expression) -> Progression:
    try:
        form = linear(index)
    except NotAffineError:
        return 1, 0
    return gcd(*form.terms.values()), form.constant


def _are_apart(a: Progression, b: Progression) -> bool:
    """Whether two subscripts differ whatever their names are (the GCD test for dependences)."""
    step, distance = gcd(a[0], b[0]), a[1] - b[1]
    return distance % step != 0 if step else distance != 0


@memoised
def model_of(kernel: Kernel) -> Model:
    """The sets of a kernel (memoised on it)."""
    return Model(kernel)


class Model(ParallelAxes):
    """The sets of a kernel whose rules are expanded and whose address spaces are decided."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(decide_address_spaces(expand_rules(kernel)))
        self.integers = kernel.integers
        self.order = ProgramOrder(self.kernel)
        self._expressions: dict[tuple[int, str], tuple[Expression, Expression]] = {}
        self._domains: dict[tuple[object, ...], isl.Set] = {}

    def domain(self, at: Instance) -> isl.Set:
        """``{ inames·label, sizes : the statement has the instance }`` under the assumptions.

        A superset where data decide: conditions on data are left aside, and loaded bounds
        are names of their own, labelled like inames.
        """
        assert at.statement is not None
        statement = self.statement[at.statement]
        key = (statement.inames, key_of(statement.predicates), at.label)
        return once(self._domains, key, self._find_domain, statement, at.label)

    def domain_beside(self, at: Instance, *others: tuple[Instance, int]) -> isl.Set:
        """:meth:`domain` but for what follows from the domains of other instances.

        With each of ``others``, in how many of the loops that it shares with this one, outermost
        first, the two agree.  A superset; it is the domain where all of these are in theirs.
        """
        assert at.statement is not None
        mine, around = self.statement[at.statement], self.kernel.domains
        left = {self.kernel.home_domain[i] for i in mine.inames}
        names = {h: {*around[h].inames, *around[h].parameters & self._own_names} for h in left}
        predicates = {p: variable_names(p) & self._own_names for p in mine.predicates}
        for other, level in others:
            if other.statement is not None:
                equal = {*self.order.shared_loops(other.statement, at.statement)[:level]}
                its = self.statement[other.statement].predicates
                left = {h for h in left if not names[h] <= equal}
                predicates = {p: n for p, n in predicates.items() if p not in its or not n <= equal}
        if not all(names[h] <= mine.inames for h in left):
            return self.domain(at)
        known = [c for p in predicates if (c := self.condition(p)) is not None]
        found = intersection([*(around[h].set for h in sorted(left)), *known])
        return self.labelled(found, at.label)

    def _find_domain(self, statement: Statement, label: str) -> isl.Set:
        if label:
            return self.labelled(self.domain(Instance(statement.id, "")), label)
        found = self.kernel.statement_domain(statement) & self.kernel.assumptions.set
        for predicate in statement.predicates:
            condition = self.condition(predicate)
            if condition is not None:
                found = found & condition
        return tightened(found, self.kernel.assumptions.set, self.kernel.sizes)

    def condition(self, predicate: Expression) -> isl.Set | None:
        """``{ inames, sizes : a predicate holds }``, exactly; None where data decide."""
        return decided(predicate, self.integers)

    def holds(
        self, condition: Expression, where: isl.Set, given: Sequence[Expression] = ()
    ) -> bool:
        """Whether a condition surely holds ``where`` others that are ``given`` do; all labelled."""
        against = (*given, prim.LogicalNot(condition))
        known = self.kernel.assertions, against, data_of(self.kernel)
        return bool(may_hold(where, *known).is_empty())

    @memoised
    def range_under(self, statement: str, iname: str) -> tuple[int | None, int | None]:
        """The smallest and the largest value that conditions leave an iname of a statement.

        None where there is none, and where no condition is about the iname.
        """
        if not any(iname in variable_names(p) for p in self.statement[statement].predicates):
            return None, None
        return _sets.value_range(self.domain(Instance(statement, "")), prim.Variable(iname))

    def where_evaluated(self, guards: Sequence[Expression], label: str) -> isl.Set:
        """``{ inames·label, sizes : all guards hold }``, where those of data count as true."""
        return self.labelled(where_all_hold(guards, self.integers), label)

    def conditions_on_data(self, statement: Statement) -> list[Expression]:
        """The predicates of a statement that data decide: where there are any, if it runs."""
        return [p for p in statement.predicates if self.condition(p) is None]

    def indices(self, at: Instance, indices: Sequence[Expression]) -> list[Expression]:
        """An instance's indices, labelled, and followed to the index arrays they come from."""
        if at.statement is None:
            return [self.named(i, at.label) for i in indices]
        statement = self.statement[at.statement]
        return [self.named(asserted(self.kernel, statement, i), at.label) for i in indices]

    def named(self, expr: Expression, label: str) -> Expression:
        """``expr`` with every iname labelled."""
        if not label or is_constant(expr):
            return expr
        # Expressions live as long as the kernel: their identity names them.
        key = (id(expr), label)
        found = self._expressions.get(key)
        if found is None:
            found = self._expressions[key] = (expr, substitute(expr, self._labelled(label)))
        return found[1]

    def labelled(self, where: isl.Set, label: str) -> isl.Set:
        """A set over inames and loaded bounds, all labelled."""
        if not label:
            return where
        names = [n for n in _sets.names_of(where) if n in self._own_names]
        return _sets.rename(where, instances(names, label))

    @cached_property
    def _own_names(self) -> frozenset[str]:
        """The names of which each instance has values of its own."""
        return frozenset(self.kernel.all_inames) | self.data

    @memoised
    def _labelled(self, label: str) -> dict[str, Expression]:
        return {i: variable(i, label) for i in self.kernel.all_inames}

    def array(self, name: str) -> ArrayArg | TemporaryVariable:
        """The declaration of an array."""
        return self.kernel.array(name)

    def cell(
        self,
        name: str,
        indices: Sequence[Expression],
        at: Instance,
        everywhere: dict[Axis, Expression] | None = None,
    ) -> Cell:
        """The cell that an instance touches; ``indices`` are labelled already.

        ``everywhere`` names the indices of axes that the instance runs on all of.
        """
        coordinates = []
        if at.statement is not None:
            for axis in self.copy_axes(name):
                value = self.coordinate(at, axis)
                if value is None and everywhere is not None:
                    value = everywhere.get(axis)
                if value is not None:
                    coordinates.append((axis, value))
        by_data = any(map(self.is_beyond_sets, indices))
        return Cell(name, tuple(indices), tuple(coordinates), by_data)

    def same_cell(self, a: Cell, b: Cell) -> isl.Set:
        """``{ names of both cells : they are one cell of one copy of the array }``.

        Exact, but where data decide: a superset then, by what is asserted of the data.
        """
        if a.by_data or b.by_data:
            result = equal_cells(self.kernel.assertions, a.indices, b.indices, data_of(self.kernel))
            pairs = _on_shared_axes(a, b)
        else:
            result = _sets.universe()
            pairs = [*zip(a.indices, b.indices, strict=False), *_on_shared_axes(a, b)]
        for one, two in pairs:
            if one != two:
                result = result & equal(one, two)
        return result

    def same_copy(self, a: Cell, b: Cell) -> isl.Set:
        """``{ names of both cells : they are of one copy }``, of arrays with as many copies."""
        return intersection(equal(one, two) for one, two in _on_shared_axes(a, b) if one != two)

    def other_cell(self, a: Cell, b: Cell) -> tuple[isl.Set, ...]:
        """The complement of :meth:`same_cell`, as a union; exact for cells that no data decide."""
        if len(a.indices) != len(b.indices):
            return (_sets.universe(),)
        pairs = [*zip(a.indices, b.indices, strict=True), *_on_shared_axes(a, b)]
        return tuple(unequal(one, two) for one, two in pairs if one != two)

    def writing(self, at: Instance, cell: Cell) -> isl.Set:
        """``{ inames·label, names of the cell : the instance writes the cell }``.

        As exact as :meth:`domain` and :meth:`same_cell`.
        """
        return self.domain(at) & self.same_cell(self.write_cell(at), cell)

    @cached_property
    def data(self) -> frozenset[str]:
        """Names whose values are data: arrays, temporaries and scalars that are no sizes."""
        kernel = self.kernel
        return frozenset([*kernel.temporary_by_name, *kernel.arg_by_name]) - set(kernel.sizes)

    def apart(self, a: Instance, b: Instance, axis: Axis) -> isl.Set | None:
        """``{ coordinates of both : they differ on an axis }``, exactly; None where they cannot."""
        values = []
        for at in (a, b):
            value = self.coordinate(at, axis)
            values.append(self.everywhere(at)[1][axis] if value is None else value)
        return self._differing(*values)

    @memoised
    def _differing(self, a: Expression, b: Expression) -> isl.Set | None:
        differ = _sets.condition_set(prim.Comparison(a, "!=", b))
        return None if differ.is_empty() else differ

    def unordered(self, a: Instance, b: Instance, array: str) -> list[tuple[str, isl.Set]]:
        """``{ names of both : they have no order }``, for accesses to one cell of ``array``.

        A union of sets: ``"blocks"``: they execute in different blocks of one launch;
        ``"together"``: at the same time on different threads. Along an axis on which the array
        exists once per index, two accesses to one cell are on the same index.
        """
        pieces: list[tuple[str, isl.Set]] = []
        if a.statement is None or b.statement is None:
            return pieces
        launch = self.order.in_one_launch(a.statement, b.statement, a.label, b.label)
        if launch is None:
            return pieces
        copied = self.copy_axes(array)
        combined = self.combined_axes(array)
        scanned = scanned_blocks(self.kernel, array) if combined else ()
        same = self.order.together(a, b)
        facts = self.facts(a, b)
        for axis in self.axes:
            if axis in copied or axis[0] == "ilp":
                continue
            # Updates of a reduction over threads have no order; what reads it waits for all.
            if axis[0] == "l" and (same is None or axis in combined):
                continue
            if axis in combined and axis[1] in scanned:  # so do blocks that look back
                continue
            piece = self.apart(a, b, axis)
            if piece is None:
                continue
            piece = (same if axis[0] == "l" and same is not None else launch) & piece
            how = "blocks" if axis[0] == "g" else "together"
            pieces.append((how, piece if facts is None else piece & facts))
        return pieces

    def loads(self, at: Instance) -> list[tuple[Expression, Expression]]:
        """The loaded bounds around an instance, each with what it was loaded from."""
        if at.statement is None:
            return []
        statement = self.statement[at.statement]
        found = []
        for name in self.bounds_from_data(at.statement):
            value = followed(self.kernel, statement, prim.Variable(name))
            if value != prim.Variable(name) or not self.writers(name):
                found.append((variable(name, at.label), self.named(value, at.label)))
        return found

    def facts(self, *instances: Instance) -> isl.Set | None:
        """What is known of loaded bounds around instances, over their names; None for nothing."""
        return self.known([load for at in instances for load in self.loads(at)])

    def known(self, loads: list[tuple[Expression, Expression]]) -> isl.Set | None:
        """What is asserted of loaded values; None where there are none."""
        if not loads:
            return None
        names, values = tuple(n for n, _ in loads), tuple(v for _, v in loads)
        return equal_cells(self.kernel.assertions, names, values, data_of(self.kernel))

    def not_before(
        self, a: Instance, b: Instance, array: str, *, itself: bool = True
    ) -> list[tuple[str, isl.Set]]:
        """Where ``a`` is not ordered before ``b``, both touching one cell of ``array``.

        As ``(how, set)`` pieces: ``how`` is ``"after"`` where ``b`` comes first,
        else as for :meth:`unordered`.  ``itself=False`` leaves one and the same
        instance out.
        """
        pieces = self.unordered(a, b, array)
        facts = self.facts(a, b)
        if itself:
            same = self.order.together(a, b)
            for scan in scans_of(self.kernel, array):
                if same is not None and a.statement in scan.statements:  # threads have an order
                    same = same & equal_inames(scan.inames, a.label, b.label)
            if same is not None:
                pieces.append(("together", same if facts is None else same & facts))
        for after in self.order.before(b, a):
            pieces.append(("after", after if facts is None else after & facts))
        return pieces

    def bounds_from_data(self, statement: str) -> tuple[str, ...]:
        """Temporaries that the bounds of a statement's loops depend on."""
        return self.kernel.loaded_bounds(self.statement[statement].inames)

    @cached_property
    def written(self) -> frozenset[str]:
        """Names that some statement writes."""
        return frozenset(self.kernel.writers)

    def writers(self, name: str) -> tuple[Statement, ...]:
        """The statements that write an array."""
        return self.kernel.writers.get(name, ())

    def writers_of(self, cell: Cell) -> list[Statement]:
        """The statements that may write a cell: numbers in their subscripts tell others apart."""
        own = [*map(_progression, cell.indices)]
        written = self._progressions(cell.array)
        return [writer for writer, its in written if not any(map(_are_apart, own, its))]

    @memoised
    def _progressions(self, array: str) -> list[tuple[Statement, list[Progression]]]:
        return [(w, [*map(_progression, w.write[1])]) for w in self.writers(array)]

    @memoised
    def write_cell(self, at: Instance) -> Cell:
        """The cell that an instance writes."""
        assert at.statement is not None
        name, indices = self.statement[at.statement].write
        return self.cell(name, self.indices(at, indices), at)

    def is_beyond_sets(self, index: Expression) -> bool:
        """Whether sets cannot represent an index: it depends on data, or multiplies names."""
        return bool(variable_names(index) & self.data) or not _sets.is_pw_affine(index)

    def cells_by_data(self, statement: Statement) -> bool:
        """Whether data decide which cell a statement writes."""
        return any(
            not _sets.is_affine(i) or not variable_names(i) <= self.integers
            for i in statement.write[1]
        )

    def is_exact(self, statement: Statement) -> bool:
        """Whether it is known which cells a statement writes, and when."""
        return not (
            self.conditions_on_data(statement)
            or self.cells_by_data(statement)
            or self.bounds_from_data(statement.id)
        )
