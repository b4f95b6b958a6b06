"""Counterexamples for small sizes, if products of sizes leave a step undecided.

Sets cannot represent products of names: the cell ``a[q // m, 0]`` is known only once ``m`` is a
number. If a step is legal for some small sizes, that is no proof; but if it is wrong for some, it
is wrong, and these sizes are the counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from loopkit import _budget, _sets
from loopkit._budget import SpentError, within
from loopkit._check.checker import check_change
from loopkit._errors import IllegalTransformError, LoopkitError
from loopkit._expression import substitute, variable_names
from loopkit._kernel import Kernel
from loopkit._registry import transform_named

if TYPE_CHECKING:
    from loopkit._change import Change

FIRST = (2, 3, 5, 9, 17, 33)
"""The sizes that are tried: with so many, each larger than the one before, by one."""


def wrong_for_numbers(before: Kernel, change: Change) -> IllegalTransformError | None:
    """The refusal of a change for the first sizes that it is wrong for, if some such are found.

    Of one in parts, those that only say how loops are counted are read back, not tried.
    Only where subscripts of inames and sizes alone are such that sets do not know them.
    """
    parts = change.parts or (change,)
    if any(p.arguments is not None or p.fixed for p in parts):
        return None
    if not any(map(_has_products, (before, *(part.kernel for part in parts)))):
        return None
    for values in _numbers(before):
        try:
            within(_budget.TRY, partial(_check, before, change, values))
        except IllegalTransformError as error:
            if (told := _told(error, values)) is not None:
                return told
        except (LoopkitError, SpentError):
            continue
    return None


def _check(before: Kernel, change: Change, values: Mapping[str, int]) -> None:
    """Raise where a change is not legal for some sizes."""
    fix = transform_named("fix_parameters")
    numbers = {n: v for n, v in before.with_computed(values).items() if n in before.sizes}
    for part in change.parts or (change,):
        if part.claim is None:
            maps = tuple(
                replace(m, values={i: substitute(e, numbers) for i, e in m.values.items()})
                for m in part.instances
            )
            new = fix(part.kernel, unchecked=True, **values)
            check_change(fix(before, **values), replace(part, kernel=new, instances=maps))
        before = part.kernel.recorded(before.history, None)  # a text of its own


def _told(error: IllegalTransformError, values: Mapping[str, int]) -> IllegalTransformError | None:
    """A refusal with the sizes that it is about; None where it shows no case."""
    if error.witness is None:
        return None
    sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
    witness = replace(error.witness, parameters={**values, **error.witness.parameters})
    return type(error)(f"for {sizes}: {error.why}", witness=witness)


def _numbers(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Sizes that a kernel assumes, small ones first."""
    names = [name for name in kernel.sizes if name not in kernel.computed_sizes]
    for first in FIRST:
        values = {name: first + number for number, name in enumerate(names)}
        if not _sets.at_values(kernel.assumptions.set, values).is_empty():
            yield values


def _has_products(kernel: Kernel) -> bool:
    """Whether subscripts or conditions of inames and sizes are such that sets do not know them."""
    if kernel.computed_sizes:
        return True
    return any(
        variable_names(index) <= kernel.integers and not _sets.is_pw_affine(index)
        for statement in kernel.statements
        for _, indices in (statement.write, *statement.reads)
        for index in indices
    )
