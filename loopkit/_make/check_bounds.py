"""Check that the accesses of a kernel's text are inside the declared arrays.

A value computed in a branch that is not taken is never used.  So conditions of reductions in such a
branch may be dropped, except those that keep an access in bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg
from loopkit._assertions.asserted_cells import data_of, maybe_outside
from loopkit._cached import memoised
from loopkit._errors import InvalidArgumentError, OutOfBoundsError, caret_at, counted
from loopkit._expression import evaluate, is_constant, nodes_of, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import guarded_reads
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._points import TooManyPointsError, points_of
from loopkit._poly.pairs import between, outside
from loopkit._poly.smallest_case import AccessCase, looked_up, smallest_access, tables_of
from loopkit._rules import expand_rules
from loopkit._same import Key, key_of


@dataclass(frozen=True)
class Outside:
    """An access that is out of bounds along ``axis`` for the instances ``where``.

    ``where`` is ``{ inames, sizes }``, exact except for data-dependent conditions.
    """

    statement: Statement
    array: str
    indices: tuple[Expression, ...]
    axis: int
    where: isl.Set


def check_in_bounds(kernel: Kernel, declared: frozenset[str]) -> None:
    """Raise :class:`OutOfBoundsError` for the first access that leaves a declared array.

    Data-dependent subscripts and conditions are left to the executors, and so is what neither sets
    nor the order of products (:mod:`loopkit._assertions.constraints`) decide.  The contents of a
    table of constants are known.
    """
    kernel = expand_rules(kernel)
    found = next(outside_accesses(kernel, declared), None)
    if found is not None:
        raise error_for(kernel, found)


def check_settled(kernel: Kernel) -> None:
    """Raise for an out-of-bounds access of a kernel whose proof of bounds was postponed."""
    if kernel.owes_bounds and (found := first_outside(kernel)) is not None:
        raise error_for(expand_rules(kernel), found, LATER)


@memoised
def first_outside(kernel: Kernel) -> Outside | None:
    """The first access that leaves its array for some sizes that the kernel assumes (memoised)."""
    return next(every_outside(kernel), None)


def every_outside(kernel: Kernel) -> Iterator[Outside]:
    """All accesses that leave their arrays for some sizes that the kernel assumes."""
    kernel = expand_rules(kernel)
    arrays = {*kernel.temporary_by_name}
    arrays |= {a.name for a in kernel.args if isinstance(a, ArrayArg)}
    return outside_accesses(kernel, frozenset(arrays))


def check_may_settle(kernel: Kernel, declared: frozenset[str]) -> None:
    """Raise for the first access that is out of bounds for all sizes.

    No assumption about the sizes could make it legal.
    """
    kernel = expand_rules(kernel)
    for found in outside_accesses(kernel, declared):
        around = kernel.statement_domain(found.statement) & kernel.assumptions.set
        inames = sorted(found.statement.inames)
        bad, sizes = (_sets.project_out(s, inames) for s in (found.where, around))
        if sizes.is_subset(bad):
            raise error_for(kernel, found)


def outside_accesses(
    kernel: Kernel, declared: frozenset[str], *, whatever_data_hold: bool = True
) -> Iterator[Outside]:
    """All accesses that leave declared arrays; rules of the kernel are expanded.

    Data-dependent subscripts are left out, and accesses under data-dependent conditions as well,
    unless these are taken to be true (``whatever_data_hold=False``).
    """
    for statement in kernel.statements:
        seen: set[Key] = set()
        for name, indices, guards in (
            (*statement.write, statement.predicates),
            *guarded_reads(statement),
        ):
            if name not in declared or not indices:
                continue
            known = tuple(g for g in guards if variable_names(g) <= kernel.integers)
            if whatever_data_hold and known != guards:
                continue
            key = key_of((name, indices, known))
            if key not in seen:
                seen.add(key)
                yield from _outside(kernel, statement, name, indices, known)


def _outside(
    kernel: Kernel,
    statement: Statement,
    name: str,
    indices: tuple[Expression, ...],
    guards: tuple[Expression, ...],
) -> Iterator[Outside]:
    shape = kernel.array(name).shape
    if shape is None:
        return
    where: isl.Set | None = None
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=False)):
        names = variable_names(index) | variable_names(extent)
        if not names <= kernel.integers | tables_of(kernel).keys():
            continue
        beyond = [there for _, there in outside(index, extent)]
        are_sets = _sets.is_pw_affine(index) and _sets.is_pw_affine(extent)
        is_beyond_sets = not (are_sets or _is_open(kernel, extent))
        if not (beyond or is_beyond_sets):
            continue
        try:
            where = _instances(kernel, statement, guards) if where is None else where
        except _sets.NotAffineError:
            return
        cases = [where & there for there in beyond]
        if is_beyond_sets:
            cases.append(_beyond_sets(kernel, where, index, extent))
        for case in cases:
            if not case.is_empty():
                yield Outside(statement, name, indices, axis, case)


def _beyond_sets(kernel: Kernel, where: isl.Set, index: Expression, extent: Expression) -> isl.Set:
    """The points of ``where`` at which a non-affine index is out of bounds, if any are found.

    Where it is not known to stay inside, it is computed for small sizes.  An empty set may mean
    that the question is open; then it is left to the executors.
    """
    maybe = maybe_outside(where, kernel.assertions, index, extent, data_of(kernel))
    sizes = [s for s in kernel.sizes if _sets.involves(maybe, s)]
    limits = [(0, most) for most in _SMALL]
    if isinstance(extent, int) and extent > _SMALL[-1]:
        limits.append((extent, extent))  # where sizes are that large, products are larger
    for least, most in limits:
        small = reduce(isl.Set.intersect, (between(s, least, most) for s in sizes), maybe)
        names = [n for n in (*kernel.sizes, *kernel.all_inames) if _sets.involves(small, n)]
        with suppress(TooManyPointsError, InvalidArgumentError):
            for row in points_of(small, names, {}, _TRIED):
                point = dict(zip(names, map(int, row), strict=True))
                numbers = dict.fromkeys(kernel.integers, 0) | point
                if _is_outside(kernel, index, extent, numbers):
                    return where & _sets.at(point)
    return isl.Set.empty(where.get_space())


def _is_open(kernel: Kernel, extent: Expression) -> bool:
    """Whether only the caller's array determines an extent: nothing else uses its sizes."""
    names = variable_names(extent)
    used = [
        *_sets.involved_names(kernel.assumptions.set),
        *(n for d in kernel.domains for n in d.parameters),
    ]
    indices = (i for s in kernel.statements for _, own in (s.write, *s.reads) for i in own)
    unused = names.isdisjoint(used) and not any(names & variable_names(i) for i in indices)
    return bool(names) and unused


_SMALL, _TRIED = (1, 2, 3), 10_000


def _is_outside(
    kernel: Kernel, index: Expression, extent: Expression, numbers: Mapping[str, int]
) -> bool:
    try:
        place = evaluate(looked_up(kernel, index, numbers), numbers)
        return not 0 <= place < evaluate(extent, numbers)
    # A division by zero or an index outside a table is reported elsewhere.
    except (ArithmeticError, NotImplementedError, IndexError):
        return False


def _instances(kernel: Kernel, statement: Statement, guards: tuple[Expression, ...]) -> isl.Set:
    """``{ inames, sizes : the access happens }`` exactly; raises where data decide."""
    where = kernel.statement_domain(statement) & kernel.assumptions.set
    if not _sets.involved_names(where) <= kernel.integers:
        raise _sets.NotAffineError(statement.id)
    for guard in guards:
        where = where & _sets.condition_set(guard)
    return where


_NOW = (
    "make the domain smaller, guard the access with if, declare a larger shape, "
    "or state the sizes by assumptions="
)
LATER = "exclude these sizes with assume(...) or fix_parameters(...)"


def error_for(kernel: Kernel, found: Outside, instead: str = _NOW) -> OutOfBoundsError:
    """The error for an access that is out of bounds, with the smallest case."""
    name, axis = found.array, found.axis
    case = smallest_access(
        "out of bounds", kernel, found.statement, name, found.indices, found.where
    )
    extent = (kernel.array(name).shape or ())[axis]
    count = evaluate(extent, case.numbers)
    limits = f"axis {axis} of '{name}' has {counted(to_text(extent), 'element')}"
    if to_text(extent) != str(count):
        limits += f", here {count} {'element' if count == 1 else 'elements'}"
    return out_of_bounds(found.statement, case, limits, instead)


def out_of_bounds(
    statement: Statement, case: AccessCase, why: str, instead: str
) -> OutOfBoundsError:
    """The error of an access in its smallest case."""
    return OutOfBoundsError(
        f"statement '{statement.id}' accesses {case.access} at {case.cell}{case.where}: {why}",
        witness=case.witness,
        asked=caret_at(statement.position),
        instead=instead,
    )


def without_needless_guards(kernel: Kernel) -> Kernel:
    """The kernel whose updates have only the conditions of their accumulators' initializations.

    An update that might fail without its other conditions keeps them.
    """
    changed: dict[str, Statement] = {}
    for statement in kernel.statements:
        if statement.kind != "update":
            continue
        starts = [s for s in kernel.writers[statement.written] if s.kind == "init"]
        if len(starts) != 1 or len(starts[0].predicates) == len(statement.predicates):
            continue
        bare = replace(statement, predicates=starts[0].predicates)
        if not _may_fail(kernel, bare):
            changed[statement.id] = bare
    if not changed:
        return kernel
    statements = tuple(changed.get(s.id, s) for s in kernel.statements)
    return replace(kernel, statements=statements)


def _may_fail(kernel: Kernel, statement: Statement) -> bool:
    """Whether a statement, under its own conditions, may leave an array or divide by zero."""
    others = tuple(statement if s.id == statement.id else s for s in kernel.statements)
    expanded = expand_rules(replace(kernel, statements=others))
    own = expanded.statement_by_id[statement.id]
    arrays = {*expanded.temporary_by_name}
    arrays |= {a.name for a in expanded.args if isinstance(a, ArrayArg)}
    for _, indices in own.reads:
        if any(not variable_names(index) <= expanded.integers for index in indices):
            return True
    for node in nodes_of(own.rhs):
        if isinstance(node, (prim.FloorDiv, prim.Remainder)) and not is_constant(node.denominator):
            return True
    alone = replace(expanded, statements=(own,))
    return any(True for _ in outside_accesses(alone, frozenset(arrays)))
