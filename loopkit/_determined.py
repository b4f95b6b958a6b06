"""Which inames are functions of given index expressions: equal indices imply equal inames."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import is_at_most
from loopkit._algebra.make import substitute_names
from loopkit._algebra.reading import condition_of, term_of
from loopkit._algebra.terms import (
    INF,
    Term,
    UnreadableError,
    is_constant,
    name,
    names_in,
    number,
    subterms,
)
from loopkit._cached import answers_of, memoised, once
from loopkit._decide import Proven
from loopkit._decide.one_to_one import decide_one_to_one, determined_by_ranges
from loopkit._expression import variable_names
from loopkit._intervals import of_dtype
from loopkit._kernel import Kernel
from loopkit._nodes import Expression


def determined_by(
    kernel: Kernel, indices: Iterable[Expression], where: isl.Set | None = None
) -> frozenset[str]:
    """The inames that indices determine together.

    ``16*i_outer + i_inner`` determines both, if ``i_inner`` has at most 16 values;
    ``lane // 4`` and ``2*(lane % 4) + r`` determine ``lane`` and ``r``.

    :arg where: where the inames are; their domains, if it is left out.
    """
    bounded = kernel.home_domain if where is None else _sets.names_of(where)
    cells = []
    for index in indices:
        if variable_names(index) <= kernel.integers:
            try:
                cells.append(term_of(index, lambda e: _iname(kernel, bounded, e)))
            except UnreadableError:
                continue
    cells = [cell for cell in cells if cell.sort == "Z"]
    known, left = determined_by_ranges(cells, kernel.home_domain)
    found = frozenset(t.data[0] for t in known if t.op == "name")
    waiting = names_in(*cells).keys() & kernel.home_domain.keys() - found
    cells = [*left, *sorted((t for t in known if t.op != "name"), key=lambda t: t.key)]
    cells = [t for t in cells if not _is_divided_by_names(t)]
    cells += [t for t in names_in(*cells).values() if t in known]
    waiting &= names_in(*cells).keys()
    if not waiting:
        return found
    question = (determined_by, frozenset(cells), where)
    more: frozenset[str]
    more = once(answers_of(kernel), question, _decided, kernel, cells, waiting, where)
    return found | more


def _is_divided_by_names(cell: Term) -> bool:
    """Whether an index has quotients or remainders whose divisor is not constant.

    Solvers take seconds for such indices.
    """
    return any(t.op in ("fdiv", "mod") and not is_constant(t.args[1]) for t in subterms(cell))


def _iname(kernel: Kernel, bounded: Container[str], expr: Expression) -> Term | None:
    """The term of an iname with its bounds."""
    if not isinstance(expr, prim.Variable) or expr.name not in kernel.home_domain:
        return None
    if expr.name not in bounded:
        return name(expr.name)
    low, high = kernel.range_of(expr.name)
    return name(expr.name, -INF if low is None else low, INF if high is None else high)


def _decided(
    kernel: Kernel, cells: Sequence[Term], waiting: Iterable[str], where: isl.Set | None
) -> frozenset[str]:
    names = names_in(*cells)
    if where is None:
        where = kernel.domain_of(names.keys() & kernel.home_domain.keys())
    try:
        known = substitute_names(condition_of(where & kernel.assumptions.set), names)
    except UnreadableError:
        return frozenset()
    context = [known, *_size_limits(kernel)]
    # Data that bound loops may differ between instances, too.
    varying = names_in(*cells, *context).keys() - {*kernel.sizes}
    found = set[str]()
    for iname in sorted(waiting):
        known_names = [names[i] for i in sorted(found)]
        decision = decide_one_to_one([*cells, *known_names], context, varying, [iname])
        if isinstance(decision, Proven):
            found.add(iname)
    return frozenset(found)


@memoised
def _size_limits(kernel: Kernel) -> list[Term]:
    """The bounds of sizes that follow from their types."""
    sizes = [a for a in kernel.args if a.name in kernel.sizes]
    ends = [(name(a.name), *map(number, of_dtype(a.dtype))) for a in sizes if a.dtype]
    return [c for n, low, high in ends for c in (is_at_most(low, n), is_at_most(n, high))]
