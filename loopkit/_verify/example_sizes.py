"""Which sizes to run kernels at in search of a difference."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import islpy as isl

from loopkit import _sets
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._points import smallest_point
from loopkit._reference.points import with_values
from loopkit._verify.kernel_at_sizes import Sizes

_SMALL = (1, 2, 3, 5)
_BEYOND = 12
_LARGEST = 256


def sizes_to_try(
    context: isl.Set,
    names: Sequence[str],
    witnesses: Iterable[Sizes],
    numbers: Iterable[int] = (),
    *,
    only: bool = False,
) -> list[dict[str, int]]:
    """Small sizes that the assumptions allow, and those of witnesses, by their sum.

    ``numbers`` stand in the kernels: sizes just beyond them may be where they begin to matter.
    With ``only``, those of witnesses alone.
    """
    if not names:
        return [{}]
    found: dict[tuple[int, ...], None] = {}
    for highest in range(1, 1 if only else len(_SMALL) + 1):
        grid = itertools.product(_SMALL[:highest], repeat=len(names))
        for values in itertools.islice(grid, 64):
            if len(found) < 24 and _allowed(context, names, values):
                found[values] = None
    smallest = smallest_point(_sets.project_onto(context, names), names) or {}
    least = tuple(smallest.get(n, 1) for n in names)
    if not only:
        found[least] = None
    beyond = {n + 1 for n in numbers if 1 < n <= _LARGEST} | {7, 12, 20}
    for number in () if only else sorted(beyond)[:_BEYOND]:
        wide = [(number,) * len(names)]
        wide += [(*least[:p], number, *least[p + 1 :]) for p in range(len(names))]
        for values in wide:
            if _allowed(context, names, values):
                found[values] = None
    for witness in witnesses:
        values = tuple(witness.get(n, smallest.get(n, 1)) for n in names)
        if _allowed(context, names, values):
            found[values] = None
    ordered = sorted(found, key=lambda v: (sum(v), v))
    return [dict(zip(names, values, strict=True)) for values in ordered]


def numbers_in(kernel: Kernel) -> frozenset[int]:
    """The integers that a kernel's expressions and domains mention."""
    texts = [to_text(e) for s in kernel.statements for e in (s.lhs, s.rhs, *s.predicates)]
    texts += [d.text for d in kernel.domains]
    return frozenset(int(n) for t in texts for n in re.findall(r"(?<![\w.])\d{1,4}(?![\w.])", t))


def _allowed(context: isl.Set, names: Sequence[str], values: Sequence[int]) -> bool:
    return not with_values(context, dict(zip(names, values, strict=True))).is_empty()
