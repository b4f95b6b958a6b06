"""When two subscripts that read index arrays can mean the same cell.

All sets are over names, as in :mod:`loopkit._sets`.  Two instances have inames of
different names (they carry labels, see :mod:`loopkit._hidden`), and share sizes.  Each
value that a subscript reads becomes a name; what the assertions say of these values
become constraints, and projecting the values out leaves the question in inames and
sizes.

The sets are supersets of what can happen with data that obeys the assertions.
They are *exact* where each of their points happens for some such data; values
count as integers of any size, and arrays whose shape is not told may be of any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.constraints import Data, condition, is_exact, solutions
from loopkit._assertions.facts import Facts, facts_of
from loopkit._assertions.reads import Reads
from loopkit._assertions.values import Assertion, Disjoint, Injective, Within
from loopkit._nodes import Expression
from loopkit._same import remembered

if TYPE_CHECKING:
    from loopkit._kernel import Kernel

Index = Expression | Sequence[Expression]
Assertions = tuple[Assertion, ...]

UNKNOWN = Data()


def data_of(kernel: Kernel) -> Data:
    """What ``kernel`` says of its arrays."""
    about = {name for a in kernel.assertions for name in a.arrays}
    shapes = []
    for argument in kernel.args:
        shape = getattr(argument, "shape", None)
        if argument.name in about and shape is not None:
            shapes.append((argument.name, tuple(shape)))
    return Data(tuple(shapes), frozenset(kernel.writers) | frozenset(kernel.temporary_by_name))


# {{{ two cells


def equal_cells(
    assertions: Assertions, first: Index, second: Index, data: Data = UNKNOWN
) -> tuple[isl.Set, bool]:
    """Where ``first`` and ``second`` can be the same cell, and whether that is exact.

    Parameters
    ----------
    assertions
        What is known of the data, ``kernel.assertions``.
    first, second
        An index each, or a tuple of as many indices as the array has axes.
        Inames of different instances have different names.
    data
        See :class:`Data`; ``data_of(kernel)`` for a kernel.

    The set is over the names in the indices and sizes of the assertions: the
    universe where nothing is known, empty where the cells always differ.
    """
    return _equal(assertions, _tuple(first), _tuple(second), data)


def surely_equal_cells(
    assertions: Assertions, first: Index, second: Index, data: Data = UNKNOWN
) -> isl.Set:
    """Where ``first`` and ``second`` are the same cell whatever the data is (a subset of it)."""
    one, two = _tuple(first), _tuple(second)
    reads, pairs = _pairs(assertions, one, two, data)
    differ = _sets.universe().complement()
    for a, b in pairs:
        differ = differ | condition([(a, "!=", b)])
    facts = _facts(assertions, reads)
    can_differ = solutions(differ, reads.reads, facts, data)
    return (_equal(assertions, one, two, data)[0] - can_differ).coalesce()


def settling(
    assertions: Assertions, first: Index, second: Index, conflicts: isl.Set, data: Data = UNKNOWN
) -> tuple[Assertion, ...]:
    """Assertions each of which alone shows that two cells differ wherever ``conflicts`` holds.

    They are those that need no number: ``Injective`` and ``Disjoint``.
    """
    one, two = _tuple(first), _tuple(second)
    candidates: dict[Assertion, None] = {}
    for a in _arrays(assertions, one, data):
        for b in _arrays(assertions, two, data):
            candidates[Injective(a) if a == b else Disjoint(a, b)] = None
    return tuple(
        candidate
        for candidate in candidates
        if (conflicts & _equal((*assertions, candidate), one, two, data)[0]).is_empty()
    )


@remembered(1 << 10)
def _equal(
    assertions: Assertions,
    first: tuple[Expression, ...],
    second: tuple[Expression, ...],
    data: Data,
) -> tuple[isl.Set, bool]:
    reads, pairs = _pairs(assertions, first, second, data)
    facts = _facts(assertions, reads)
    same = condition((a, "==", b) for a, b in pairs)
    return solutions(same, reads.reads, facts, data), is_exact(reads.reads, facts, data)


def _pairs(
    assertions: Assertions,
    first: tuple[Expression, ...],
    second: tuple[Expression, ...],
    data: Data,
) -> tuple[Reads, list[tuple[Expression, Expression]]]:
    reads = _reads(assertions, data)
    pairs = [(reads.side(0, a), reads.side(1, b)) for a, b in zip(first, second, strict=True)]
    return reads, pairs


# }}}

# {{{ one index, two ranges


def index_range(
    assertions: Assertions, index: Expression, name: str, data: Data = UNKNOWN
) -> tuple[isl.Set, bool]:
    """The values that ``index`` can have, as a condition on ``name``, and whether it is exact.

    The set relates ``name``, which must be new, to the inames and sizes of
    ``index``: ``{ 1 <= name <= m }`` for ``col[j] + 1`` with ``0 <= col[...] < m``.
    """
    reads = _reads(assertions, data)
    graph = condition([(prim.Variable(name), "==", reads.side(0, index))])
    facts = _facts(assertions, reads)
    return solutions(graph, reads.reads, facts, data), is_exact(reads.reads, facts, data)


def surely_inside(
    assertions: Assertions, index: Expression, extent: Expression, data: Data = UNKNOWN
) -> isl.Set:
    """Where ``0 <= index < extent`` surely holds (a subset of it).

    Unlike :func:`index_range` it sees that ``n*m``, which is not affine, is ``n*m``.
    """
    reads = _reads(assertions, data)
    at, end = reads.side(0, index), reads.side(0, extent)
    outside = condition([(at, "<", 0)]) | condition([(at, ">=", end)])
    facts = _facts(assertions, reads)
    return solutions(outside, reads.reads, facts, data).complement().coalesce()


def ranges_disjoint(
    assertions: Assertions,
    first: tuple[Expression, Expression],
    second: tuple[Expression, Expression],
    data: Data = UNKNOWN,
) -> isl.Set:
    """Where two ranges surely have no integer in common (a subset of it).

    A range ``(lower, upper)`` holds ``lower <= x < upper``: with increasing
    ``rowptr``, ``(rowptr[i], rowptr[i + 1])`` and ``(rowptr[k], rowptr[k + 1])``
    are disjoint where ``i`` and ``k`` differ.
    """
    reads = _reads(assertions, data)
    low, high = (reads.side(0, bound) for bound in first)
    other_low, other_high = (reads.side(1, bound) for bound in second)
    common = condition([(a, "<", b) for a in (low, other_low) for b in (high, other_high)])
    facts = _facts(assertions, reads)
    return solutions(common, reads.reads, facts, data).complement().coalesce()


# }}}


def _tuple(index: Index) -> tuple[Expression, ...]:
    return tuple(index) if isinstance(index, (tuple, list)) else (index,)


def _reads(assertions: Assertions, data: Data) -> Reads:
    about = frozenset(array for a in assertions for array in a.arrays)

    def varies(name: str, subscripted: bool) -> bool:
        if data.varying is None:
            return subscripted and name not in about
        return name in data.varying

    return Reads(varies)


def _facts(assertions: Assertions, reads: Reads) -> Facts:
    """What is known of the arrays that were read, with names for what is not affine in bounds."""
    arrays = {read.array for read in reads.reads}
    about = tuple(
        replace(a, lower=reads.affine(a.lower), upper=reads.affine(a.upper))
        if isinstance(a, Within) and a.array in arrays
        else a
        for a in assertions
    )
    return facts_of(about)


def _arrays(assertions: Assertions, indices: tuple[Expression, ...], data: Data) -> tuple[str, ...]:
    """The arrays that some indices read, and that assertions can be about."""
    nobody = Data(data.shapes, data.varying or frozenset())
    reads = _reads(assertions, nobody)
    for index in indices:
        reads.affine(index)
    return tuple(dict.fromkeys(r.array for r in reads.reads if r.array is not None))
