"""Accesses at concrete instances: elements of constant tables, and the smallest failing case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._arrays import ConstantTable
from loopkit._cached import memoised
from loopkit._errors import Instance, Witness
from loopkit._expression import evaluate, replace_accesses, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._points import smallest_point

Array = np.ndarray[Any, Any]


@memoised
def tables_of(kernel: Kernel) -> Mapping[str, Array]:
    """The tables of whole numbers that a kernel has (memoised)."""
    tables = {a.name: a.array for a in kernel.args if isinstance(a, ConstantTable)}
    return {name: array for name, array in tables.items() if array.dtype.kind in "iu"}


def looked_up(kernel: Kernel, expr: Expression, numbers: Mapping[str, int]) -> Expression:
    """An expression with elements of tables as numbers.

    Raises :class:`IndexError` for what is no element, and what ``evaluate`` does.
    """
    tables = tables_of(kernel)

    def element(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        if name not in tables or not indices:
            return None
        index = tuple(int(evaluate(i, numbers)) for i in indices)
        if not all(0 <= i < n for i, n in zip(index, tables[name].shape, strict=True)):
            raise IndexError(name)
        return int(tables[name][index])

    return expr if variable_names(expr).isdisjoint(tables) else replace_accesses(expr, element)


@dataclass(frozen=True)
class AccessCase:
    """One access of one instance: the witness, and the words for the cell and the values.

    ``cell`` is the cell with its numbers (``t[1]``; ``?`` for what data decide, or has no value),
    ``where`` the inames and sizes (`` for i=0, n=1``; empty without any), ``numbers`` the same as
    data, and ``access`` is as in the text.
    """

    witness: Witness
    access: str
    cell: str
    where: str
    numbers: dict[str, int]


def smallest_access(
    kind: str,
    kernel: Kernel,
    statement: Statement,
    array: str,
    indices: tuple[Expression, ...],
    where: isl.Set,
    *,
    sizes: Sequence[str] | None = None,
) -> AccessCase:
    """The access for the smallest sizes in ``where``, and for the first instance of these.

    ``where`` is ``{ inames of the statement, sizes }``, and not empty.
    """
    used = _sets.involved_names(where)
    sizes = [n for n in (kernel.sizes if sizes is None else sizes) if n in used]
    inames = [i for i in kernel.all_inames if i in statement.inames]
    point = smallest_point(where, [*sizes, *inames]) or {}
    known = {n: point[n] for n in (*inames, *sizes) if n in point}
    values = " for " + ", ".join(f"{n}={v}" for n, v in known.items()) if known else ""
    numbers = dict.fromkeys((*inames, *kernel.sizes), 0) | known
    cell = [_value(kernel, i, numbers) for i in indices]
    witness = Witness(
        kind,
        array,
        None if None in cell else tuple(c for c in cell if c is not None),
        sink=Instance(statement.id, {i: numbers[i] for i in inames}),
        parameters={n: known[n] for n in sizes if n in known},
    )
    shown = ["?" if c is None else str(c) for c in cell]
    access = [to_text(i) for i in indices]
    return AccessCase(witness, cell_text(array, access), cell_text(array, shown), values, numbers)


def _value(kernel: Kernel, index: Expression, numbers: Mapping[str, int]) -> int | None:
    """An index as a number; None where data decide, or it has no value."""
    try:
        index = looked_up(kernel, index, numbers)
        return int(evaluate(index, numbers)) if variable_names(index) <= numbers.keys() else None
    except (ArithmeticError, NotImplementedError, LookupError):
        return None


def cell_text(array: str, indices: Sequence[object]) -> str:
    """``a[i, 0]``; ``a`` alone without indices."""
    return f"{array}[{', '.join(map(str, indices))}]" if indices else array
