"""Factors that all terms of a sum have in common, moved out of the sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import gcd

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import TemporaryVariable, axis_number, product
from loopkit._change import Change, Factored, added_by, adding, multiplied
from loopkit._errors import IllegalTransformError, UnknownNameError
from loopkit._expression import accesses, is_constant, substitute, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._transform import transform
from loopkit.transforms._common import with_statements


@transform
def collect_common_factors_on_increment(
    kernel: Kernel,
    var_name: kind.Name,
    vary_by_axes: kind.Axes = (),
    *,
    unchecked: bool = False,
) -> Change:
    """Move a common factor of all terms out of a sum.

    Before: for j: acc = acc + c*x[j]; y = acc
    After: for j: acc = acc + x[j]; y = c*acc

    Whole numbers are the same then, in whatever type they wrap around.  Sums of floating numbers
    round otherwise, so that these need ``Options(fast_math=True)``.

    :arg var_name: a temporary to which statements or reductions add.
    :arg vary_by_axes: numbers or names of its axes: along these the factor may be another number
        for each element.
    :raises IllegalTransformError: where the terms have no factor in common, the factor may be
        another number where the sum is read, floating numbers may not be rounded in another way,
        or callers see the sum.
    """
    temporary = kernel.temporary_by_name.get(var_name)
    if temporary is None:
        if var_name in kernel.arg_by_name:
            raise IllegalTransformError(
                f"no factor can leave '{var_name}': it is an argument, and callers see what is "
                "left in it",
                instead="add to a temporary, and store that in the end",
            )
        raise UnknownNameError("temporary", var_name, kernel.temporary_by_name)
    axes = {hidden("axis", n): n for n in _numbers(temporary, vary_by_axes or ())}
    terms = [
        list(_terms(added, statement, axes))
        for statement in kernel.writers.get(var_name, ())
        if (added := added_by(statement)) is not None
    ]
    if not terms:
        raise IllegalTransformError(f"no factor can leave '{var_name}': nothing is added to it")
    allowed = _common_inames(kernel, var_name)
    common = _common([factors for of in terms for factors in of], kernel, allowed, {*axes})
    if not common:
        raise IllegalTransformError(
            f"no factor is common to all that is added to '{var_name}', and the same wherever "
            "that is read",
            instead="vary_by_axes says along which of its axes a factor may be another number",
        )
    claim = Factored(var_name, product(list(common.elements())), tuple(axes.items()))
    changed = {}
    for statement in kernel.statements:
        if statement.written == var_name:
            if (added := added_by(statement)) is not None:
                rest = [_without(f, common) for f in _terms(added, statement, axes)]
                term = rest[0] if len(rest) == 1 else prim.Sum(tuple(rest))
                back = {n: statement.write[1][axis] for n, axis in axes.items()}
                rhs = adding(statement, substitute(term, back))
                changed[statement.id] = replace(statement, rhs=rhs)
        elif any(name == var_name for name, _ in statement.reads):
            changed[statement.id] = multiplied(statement, claim)
    return Change(with_statements(kernel, changed), claim=claim, is_text=True)


def _numbers(temporary: TemporaryVariable, axes: Iterable[str | int]) -> Iterator[int]:
    for axis in axes:
        yield axis_number(temporary, axis)


def _terms(
    added: Expression, statement: Statement, axes: dict[str, int]
) -> Iterator[list[Expression]]:
    """The factors of each term, with names for what stands in the place of an axis."""
    indices = statement.write[1]
    names = {
        index.name: prim.Variable(name)
        for name, axis in axes.items()
        if isinstance(index := indices[axis], prim.Variable)
    }
    for term in added.children if isinstance(added, prim.Sum) else (added,):
        yield [substitute(f, names) for f in _factors(term)]


def _factors(term: Expression) -> Iterator[Expression]:
    if isinstance(term, prim.Product):
        for child in term.children:
            yield from _factors(child)
    else:
        yield term


def _is_whole(factor: Expression) -> bool:
    return isinstance(factor, int) and not isinstance(factor, bool)


def _common(
    terms: Sequence[Sequence[Expression]], kernel: Kernel, inames: frozenset[str], axes: set[str]
) -> Counter[Expression]:
    """The factors that all terms have, and that are the same wherever the sum is read."""
    found: Counter[Expression] | None = None
    numbers = []
    for factors in terms:
        own = Counter(f for f in factors if not _is_whole(f) and _is_kept(f, kernel, inames, axes))
        found = own if found is None else found & own
        numbers.append(product([f for f in factors if _is_whole(f)]))
    result = found or Counter()
    if (whole := gcd(*numbers)) > 1:
        result[whole] = 1
    return result


def _is_kept(factor: Expression, kernel: Kernel, inames: frozenset[str], axes: set[str]) -> bool:
    """Whether a factor has the same value where a term is added and where the sum is read."""
    if is_constant(factor):
        return True
    fixed = {a.name for a in kernel.args} - kernel.writers.keys()
    reads = {name for name, _ in accesses(factor)}
    return variable_names(factor) <= fixed | inames | axes and reads <= fixed | inames | axes


def _common_inames(kernel: Kernel, name: str) -> frozenset[str]:
    """The inames that have one value where a value is added, and where it is read."""
    flow = dataflow_of(kernel)
    updates = [s for s in kernel.writers[name] if added_by(s) is not None]
    found = frozenset.intersection(*(s.inames for s in updates))
    for statement in kernel.readers.get(name, ()):
        if statement.written == name:
            continue
        for access in dict.fromkeys(a for a in statement.reads if a[0] == name):
            agreeing = flow.agreeing(statement.id, access)
            for update in updates:
                found &= agreeing.get(update.id, found)
    return found


def _without(factors: Sequence[Expression], common: Counter[Expression]) -> Expression:
    """A term without the factors that all terms have."""
    left, rest = Counter({f: n for f, n in common.items() if not _is_whole(f)}), []
    whole = product([f for f in factors if _is_whole(f)])
    for number in (n for n in common if _is_whole(n)):
        whole //= number
    for factor in factors:
        if _is_whole(factor):
            continue
        if left[factor]:
            left[factor] -= 1
        else:
            rest.append(factor)
    return product([*([whole] if whole != 1 else []), *rest])
