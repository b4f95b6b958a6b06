"""What is wrong with an illegal step, found by trying sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from seams import combined_axes

from loopkit import Kernel
from refusals import oracle
from refusals.case import Case, Sizes
from refusals.machine import Data


@dataclass(frozen=True)
class Found:
    """The smallest sizes with pairs out of order, those pairs, and sizes with a wrong result."""

    sizes: Sizes | None
    pairs: tuple[oracle.Pair, ...]
    wrong: Sizes | None


def cells_of(arrays: Mapping[str, Any]) -> Data:
    """Arrays by cell."""
    return {
        name: {cell: int(np.asarray(values)[cell]) for cell in np.ndindex(np.shape(values))}
        for name, values in arrays.items()
    }


def enumerate_case(case: Case) -> Found:
    """Try sizes in lexicographic order until a pair and a wrong result are found."""
    root, change = case.kernel(), case.change()
    fixed = {**dict(change.fixed), **_fixed(case)}
    sizes: Sizes | None = None
    wrong: Sizes | None = None
    pairs: tuple[oracle.Pair, ...] = ()
    for some in oracle.smallest_sizes(root.sizes, case.largest, fixed):
        if not (oracle.admitted(root, some) and oracle.admitted(change.kernel, some)):
            continue
        data = cells_of(case.worst(some)) if case.worst is not None else {}
        if sizes is None:
            pairs = tuple(oracle.broken_pairs(root, change, some, data))
            sizes = some if pairs else None
        if wrong is None and oracle.is_wrong(root, change.kernel, some, data):
            wrong = some
        if wrong is not None and (sizes is not None or case.expected.array is None):
            break
    return Found(sizes, pairs, wrong)


def _fixed(case: Case) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in (*case.chain, case.illegal):
        if step.transform == "fix_parameters":
            found.update(step.options)
    return found


def assert_right(before: Kernel, after: Kernel, case: Case) -> None:
    """No small sizes show a wrong result of ``after``.

    Nothing is tried where data bound loops, or threads combine what they have: the oracle runs
    neither.
    """
    if combined_axes(after):
        return
    if any(before.is_array(name) for d in before.domains for name in d.parameters):
        return
    largest = 5 if len(before.sizes) < 2 else 3
    for some in oracle.smallest_sizes(before.sizes, largest, _fixed(case)):
        if oracle.admitted(before, some) and oracle.admitted(after, some):
            data = cells_of(case.data(some)) if case.data is not None else {}
            assert not oracle.is_wrong(before, after, some, data), dict(some)
