"""Whether two subscripts that read index arrays may be the same cell.

All sets are over names, as in :mod:`loopkit._sets`. The inames of two instances have different
names (labels, see :mod:`loopkit._hidden`), and sizes are shared. Each value that a subscript reads
becomes a name; assertions about the values become constraints; and projecting the values out gives
a set over inames and sizes.

The sets are supersets of what can happen with data that obey the assertions: values count as
integers of any size, and arrays of unknown shape may have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.assertion_values import Assertion, Disjoint, Injective, Within, facts_of
from loopkit._assertions.constraints import Data, solutions
from loopkit._assertions.follow import is_written_once
from loopkit._assertions.limits import limits_of
from loopkit._assertions.reads import PRODUCT, QUOTIENT, Reads
from loopkit._cached import memoised
from loopkit._expression import nodes_of, variable_names
from loopkit._hidden import plain
from loopkit._nodes import Expression
from loopkit._same import remembered

if TYPE_CHECKING:
    from loopkit._kernel import Kernel

Index = Expression | Sequence[Expression]
Assertions = tuple[Assertion, ...]

UNKNOWN = Data()


@memoised
def data_of(kernel: Kernel) -> Data:
    """What is known about the data of ``kernel``'s arrays (memoised on it)."""
    about = {name for a in kernel.assertions for name in a.arrays}
    shapes = []
    for argument in (*kernel.args, *kernel.temporaries):
        shape = getattr(argument, "shape", None)
        if argument.name in about and shape is not None:
            shapes.append((argument.name, tuple(shape)))
    whole = [
        d.name
        for d in (*kernel.args, *kernel.temporaries)
        # What subscripts and bounds read is whole, though its type may still be open.
        if d.dtype is None or d.dtype.kind in "iu"
    ]
    known = kernel.assumptions.set
    ends = [(iname, kernel.range_of(iname)) for iname in kernel.all_inames]
    ends += [(n, _sets.value_range(known, prim.Variable(n))) for n in kernel.sizes]
    return Data(
        tuple(shapes),
        frozenset(n for n in kernel.changing if not (n in about and is_written_once(kernel, n))),
        kernel.integers | frozenset(whole),
        frozenset(kernel.sizes),
        tuple(kernel.computed_sizes.items()),
        tuple(ends),
        limits_of(kernel),
    )


class _Values(Reads):
    """Names for the values that indices read, and what the assertions say of them."""

    def __init__(self, assertions: Assertions, data: Data) -> None:
        known = frozenset(name for a in assertions for name in a.arrays)
        super().__init__(data.varying, known, data.integers, data.sizes, data.limits)
        self.assertions = assertions
        self.data = data

    def where(self, given: Iterable[Expression]) -> isl.Set:
        """``{ names, names of values : conditions hold }``, as far as they compare such."""
        known = (self.condition(condition) for condition in given)
        return _sets.condition_set(prim.LogicalAnd(tuple(c for c in known if c is not None)))

    def possible(self, start: isl.Set) -> isl.Set:
        """The part of ``start`` that data can bring about, the values projected out."""
        arrays = {plain(read.array) for read in self.reads if read.array is not None}
        # Bounds that are not affine have names, too.
        about = tuple(
            replace(a, lower=self.affine(a.lower), upper=self.affine(a.upper))
            if isinstance(a, Within) and a.array in arrays
            else a
            for a in self.assertions
        )
        names = [n for read in self.reads for a in read.arguments for n in variable_names(a)]
        for name in dict.fromkeys((*_sets.names_of(start), *names)):
            low, high = dict(self.data.ranges).get(plain(name), (None, None))
            ends = [(low, "<=", prim.Variable(name))] * (low is not None)
            ends += [(prim.Variable(name), "<=", high)] * (high is not None)
            start = start & _sets.comparisons(ends)
        if self.from_zero and any(r.function in (PRODUCT, QUOTIENT) for r in self.reads):
            for name, value in self.data.computed:
                start = start & _sets.comparisons([(prim.Variable(name), "==", self.affine(value))])
        return solutions(start, self, facts_of(about), self.data)


def equal_cells(
    assertions: Assertions, first: Index, second: Index, data: Data = UNKNOWN
) -> isl.Set:
    """``{ names in the indices, sizes of the assertions : first and second can be one cell }``.

    Each is an index, or a tuple of as many indices as the array has axes; inames of different
    instances have different names.  The universe where nothing is known, empty where the
    cells always differ.
    """
    return _equal(assertions, _tuple(first), _tuple(second), data)


@remembered(1 << 10)
def _equal(
    assertions: Assertions,
    first: tuple[Expression, ...],
    second: tuple[Expression, ...],
    data: Data,
) -> isl.Set:
    values = _Values(assertions, data)
    values.expect(first, second)
    pairs = [(values.side(0, a), values.side(1, b)) for a, b in zip(first, second, strict=True)]
    return values.possible(_sets.comparisons((a, "==", b) for a, b in pairs))


def settling(
    assertions: Assertions, first: Index, second: Index, conflicts: isl.Set, data: Data = UNKNOWN
) -> tuple[Assertion, ...]:
    """Assertions each of which alone proves that two cells differ wherever ``conflicts`` holds.

    Only kinds without numbers are proposed: ``Injective`` and ``Disjoint``.
    """
    candidates: dict[Assertion, None] = {}
    for a in _arrays(assertions, _tuple(first), data):
        for b in _arrays(assertions, _tuple(second), data):
            candidates[Injective(a) if a == b else Disjoint(a, b)] = None
    return tuple(
        candidate
        for candidate in candidates
        if (conflicts & equal_cells((*assertions, candidate), first, second, data)).is_empty()
    )


def _arrays(assertions: Assertions, indices: tuple[Expression, ...], data: Data) -> tuple[str, ...]:
    """The arrays that some indices read, and that assertions can be about."""
    values = _Values(assertions, Data(data.shapes, data.varying or frozenset()))
    for index in indices:
        values.side(0, index)
    return tuple(dict.fromkeys(plain(r.array) for r in values.reads if r.array is not None))


def index_range(
    assertions: Assertions,
    index: Expression,
    name: str,
    data: Data = UNKNOWN,
    where: isl.Set | None = None,
) -> isl.Set:
    """The values that ``index`` can have ``where`` something holds, as a condition on ``name``.

    The set relates ``name``, which must be new, to the inames and sizes of
    ``index``: ``{ 1 <= name <= m }`` for ``col[j] + 1`` with ``0 <= col[...] < m``.
    """
    values = _Values(assertions, data)
    values.expect((index,), from_zero=True)
    found = _sets.comparisons([(prim.Variable(name), "==", values.side(0, index))])
    return values.possible(found if where is None else found & where)


def maybe_outside(
    where: isl.Set,
    assertions: Assertions,
    index: Expression,
    extent: Expression,
    data: Data = UNKNOWN,
    given: Iterable[Expression] = (),
) -> isl.Set:
    """The part of ``where`` in which ``0 <= index < extent`` may not hold (a superset of it).

    Conditions that are ``given`` hold, affine or not.  Unlike :func:`index_range` it sees that
    ``n*m``, which is not affine, is ``n*m``.
    """
    limits = prim.Comparison(index, "<", 0), prim.Comparison(index, ">=", extent)
    below, behind = (may_hold(where, assertions, (limit, *given), data) for limit in limits)
    return below | behind


def may_hold(
    where: isl.Set,
    assertions: Assertions,
    conditions: Sequence[Expression],
    data: Data = UNKNOWN,
) -> isl.Set:
    """The part of ``where`` in which conditions, affine or not, may all hold (a superset of it).

    They are of one instance, or no data varies.
    """
    values = _Values(assertions, data)
    compared = [n for c in conditions for n in nodes_of(c) if isinstance(n, prim.Comparison)]
    values.expect((side for c in compared for side in (c.left, c.right)), from_zero=True)
    return values.possible(where & values.where(conditions))


def _tuple(index: Index) -> tuple[Expression, ...]:
    return tuple(index) if isinstance(index, (tuple, list)) else (index,)
