"""Whether the accesses of a kernel's text lie in the arrays that were declared for them."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._errors import Instance, OutOfBoundsError, Witness
from loopkit._expression import evaluate, to_text, variable_names
from loopkit._guarded import Guarded, guarded_reads
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._rules import expand_rules
from loopkit._same import Key, key_of


def check_in_bounds(kernel: Kernel, declared: frozenset[str]) -> None:
    """Raise :class:`OutOfBoundsError` for the first access that leaves a declared array.

    Subscripts and conditions that data decide are left to the executors.
    """
    kernel = expand_rules(kernel)
    integers = frozenset(kernel.all_inames) | frozenset(kernel.sizes)
    for statement in kernel.statements:
        seen: set[Key] = set()
        for name, indices, guards in _accesses(statement):
            if name not in declared or not indices:
                continue
            if not all(variable_names(g) <= integers for g in guards):
                continue
            key = key_of((name, indices, guards))
            if key not in seen:
                seen.add(key)
                _check(kernel, statement, name, indices, guards, integers)


def _accesses(statement: Statement) -> Iterator[Guarded]:
    yield (*statement.write, statement.predicates)
    yield from guarded_reads(statement)


def _check(
    kernel: Kernel,
    statement: Statement,
    name: str,
    indices: tuple[Expression, ...],
    guards: tuple[Expression, ...],
    integers: frozenset[str],
) -> None:
    shape = kernel.array(name).shape
    if shape is None:
        return
    where: isl.Set | None = None
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=False)):
        if not variable_names(index) | variable_names(extent) <= integers:
            continue
        for operator, limit in (("<", 0), (">=", extent)):
            try:
                if where is None:
                    where = kernel.statement_domain(statement) & kernel.assumptions.set
                    if not _sets.involved_names(where) <= integers:
                        return
                    for guard in guards:
                        where = where & _sets.condition_set(guard)
                bad = where & _sets.condition_set(prim.Comparison(index, operator, limit))
            except _sets.NotAffineError:
                continue
            if not bad.is_empty():
                raise _error(kernel, statement, name, indices, axis, bad)


def _error(
    kernel: Kernel,
    statement: Statement,
    name: str,
    indices: tuple[Expression, ...],
    axis: int,
    bad: isl.Set,
) -> OutOfBoundsError:
    inames = [i for i in kernel.all_inames if i in statement.inames]
    used = set(_sets.involved_names(bad))
    sizes = [n for n in kernel.sizes if n in used]
    point = smallest_point(bad, [*sizes, *inames]) or {}
    values = {n: point.get(n, 0) for n in (*inames, *kernel.sizes)}
    cell = tuple(_value(i, values) for i in indices)
    shape = kernel.array(name).shape or ()
    extent = evaluate(shape[axis], values)
    plural = "element" if extent == 1 else "elements"
    where = ", ".join(f"{n}={point[n]}" for n in (*inames, *sizes) if n in point)
    shown = f"{name}[{', '.join('?' if c is None else str(c) for c in cell)}]"
    limits = f"axis {axis} of '{name}' has {to_text(shape[axis])} elements"
    if to_text(shape[axis]) != str(extent):
        limits += f", here {extent} {plural}"
    access = f"{name}[{', '.join(to_text(i) for i in indices)}]"
    witness = Witness(
        "out of bounds",
        name,
        None if None in cell else tuple(int(c) for c in cell if c is not None),
        Instance(statement.id, {i: values[i] for i in inames}),
        None,
        {n: point[n] for n in sizes},
    )
    return OutOfBoundsError(
        f"statement '{statement.id}' accesses {access} at {shown}"
        + (f" for {where}" if where else "")
        + f": {limits}",
        witness=witness,
        asked=statement.position.caret() if statement.position else "",
        instead="make the domain smaller, guard the access with if, declare a larger shape, "
        "or state the sizes by assumptions=",
    )


def _value(index: Expression, values: dict[str, int]) -> int | None:
    if not variable_names(index) <= values.keys():
        return None
    return int(evaluate(index, values))
