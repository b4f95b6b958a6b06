"""Indices that data choose, ``x[place[j]]``: how far they run, by what is known of the data.

That is what assertions say of the arrays that are read, and that the cell is one of its array.
What else is not affine (``x[i*j]``) may be any cell of it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg
from loopkit._assertions.cells import data_of, index_range
from loopkit._assertions.follow import followed
from loopkit._assertions.values import facts_of
from loopkit._expression import to_text, variable_names
from loopkit._footprint import FootprintError, Range, Use, relative_range
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._linear import Linear
from loopkit._nodes import Expression
from loopkit._poly.pairs import between, inside


def with_ranges(kernel: Kernel, use: Use, shape: Sequence[Expression] | None) -> Use:
    """A use of what has ``shape`` (None for a rule), with ranges of the indices that data choose.

    Those of which nothing is known that gives them a constant range stay as they are.
    """
    domain, around = use.domain, use.around
    chosen: dict[int, tuple[str, Range]] = {}
    for axis, index in enumerate(use.indices):
        if not _is_chosen(kernel, index):
            continue
        name = hidden("chosen", use.statement.id, axis, to_text(index))
        extent = None if shape is None else shape[axis]
        there = _sets.universe()
        if extent is not None and _sets.is_pw_affine(extent):
            there = inside(prim.Variable(name), extent)
        source = followed(kernel, use.statement, index)
        known = there & (domain if around is None else around)
        values = index_range(kernel.assertions, source, name, data_of(kernel), known)
        found = _range_in(values, name)
        if found is None:
            continue
        chosen[axis] = name, found
        first = found.lower
        where = between(name, first.expression, (first + found.span).expression) & there
        domain = domain & where
        around = None if around is None else around & where
    if not chosen:
        return use
    return replace(use, domain=domain, around=around, by_data=True, chosen=chosen)


def check_ranges(kernel: Kernel, uses: Sequence[Use]) -> None:
    """Raise :class:`FootprintError` where data choose an index, and it may be anything."""
    for use in uses:
        for axis, index in enumerate(use.indices):
            if axis in use.chosen or not _reads_data(kernel, index):
                continue
            names = variable_names(followed(kernel, use.statement, index))
            bounded = facts_of(kernel.assertions).bounds
            arrays = sorted(n for n in names if isinstance(kernel.arg_by_name.get(n), ArrayArg))
            open_ = next((n for n in arrays if n not in bounded), None)
            said = f"assume_within('{open_}', 0, 64) would say that they are among 64; " * bool(
                open_
            )
            raise FootprintError(
                f"data choose the cells of {use.text} along axis {axis}, and nothing says that "
                "they are a constant number",
                f"{said}fix_parameters(...) makes sizes numbers that are in extents and bounds; "
                "`within` can leave this access out",
            )


def _reads_data(kernel: Kernel, index: Expression) -> bool:
    return any(map(kernel.is_array, variable_names(index)))


def _is_chosen(kernel: Kernel, index: Expression) -> bool:
    """Whether sets do not know an index."""
    return _reads_data(kernel, index) or not _sets.is_pw_affine(index)


def _range_in(domain: isl.Set, name: str) -> Range | None:
    """Constants between which a name is, or how far it is from other names: what is closer."""
    low, high = _sets.value_range(domain, prim.Variable(name))
    relative = relative_range(domain.simple_hull().to_set(), name)
    if low is None or high is None:
        return relative
    alone = Range(Linear({}, low), high - low)
    return relative if relative is not None and relative.span < alone.span else alone
