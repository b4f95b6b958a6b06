"""Sizes and argument data for the search for a difference between two kernels."""

from __future__ import annotations

import itertools
import math
import operator
import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._points import smallest_point
from loopkit._promotion import INTEGERS
from loopkit._relations import reachable
from loopkit._rules import expand_rules

Sizes = Mapping[str, int]
Place = tuple[int, ...]

_SMALL = (1, 2, 3, 5)
_BEYOND = 12
_LARGEST = 256
_ENDS = {dtype: int(np.iinfo(dtype).max) + 1 for dtype in INTEGERS}


@dataclass(frozen=True, eq=False)
class ExampleData:
    """What arguments hold: small integers, the same for every kernel that is run on them.

    ``given`` are those of a trial that hold something else.
    """

    trial: int
    given: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def cell(self, name: str, place: Place, dtype: np.dtype[Any], limit: int) -> Any:
        """The value of one cell; integers stay below ``limit``, as they may be indices.

        What it is, a variable of type ``dtype`` holds.
        """
        if name in self.given:
            return self.given[name][place].item()
        digest = zlib.crc32(f"{self.trial}|{name}|{place}".encode())
        if dtype.kind == "b":
            return bool(digest & 1)
        if dtype.kind in "iu":
            return digest % max(1, min(limit, _ENDS[dtype]))
        number = 1 + digest % 9 if self.trial % 2 == 0 else digest % 13 - 6
        return complex(number, digest // 16 % 5) if dtype.kind == "c" else number


@dataclass(frozen=True, eq=False)
class TellingData(ExampleData):
    """Array contents that distinguish cells and make conditions both true and false.

    Integers that are no ``indices`` of arrays have arbitrary values.  Index arrays point at the
    ends of the ``widest`` array in every other trial.  ``marks`` are constants of the kernels, at
    which conditions may change.
    """

    indices: Collection[str] = ()
    marks: Sequence[int] = ()
    widest: int = 1

    def cell(self, name: str, place: Place, dtype: np.dtype[Any], limit: int) -> Any:
        if name in self.given or dtype.kind == "b" or name in self.indices:
            return super().cell(name, place, dtype, self.widest if self.trial % 2 else limit)
        digest = zlib.crc32(f"{self.trial}|{name}|{place}|telling".encode())
        # Above all numbers of the kernels first, then below them, then on both sides.
        number = 1 + digest // 512 % 4096
        low, high = min((*self.marks, 0)), max((*self.marks, 0))
        if self.trial == 1:
            number = low - number
        elif self.trial == 0 or not self.marks:
            number = high + number - (2048 if self.trial else 0)
        else:
            number = self.marks[digest % len(self.marks)] + number % 64 - 32
        if dtype.kind in "iu":
            wraps = operator.mod if dtype.kind == "u" else math.fmod
            return int(wraps(number, _ENDS[dtype]))
        value = number + digest % 509 / 1024
        return complex(value, digest % 1009 / 64) if dtype.kind == "c" else value


def sizes_to_try(
    kernels: Sequence[Kernel],
    context: isl.Set,
    witnesses: Iterable[Sizes] = (),
    numbers: Iterable[int] = (),
    *,
    only: bool = False,
) -> list[Sizes]:
    """Small sizes that the assumptions allow, and those of witnesses, by their sum.

    ``numbers`` stand in the kernels: sizes just beyond them may be where they begin to matter.
    With ``only``, those of witnesses alone.  Sizes that the kernels compute are among the results.
    """
    computed = {name for kernel in kernels for name in kernel.computed_sizes}
    names = [*dict.fromkeys(n for k in kernels for n in k.sizes if n not in computed)]
    found: dict[tuple[int, ...], None] = {} if names else {(): None}
    smallest = smallest_point(_sets.project_onto(context, names), names) or {} if names else {}
    least = tuple(smallest.get(n, 1) for n in names)
    if names and not only:
        for highest in range(1, len(_SMALL) + 1):
            grid = itertools.product(_SMALL[:highest], repeat=len(names))
            for values in itertools.islice(grid, 64):
                if len(found) < 24 and _allowed(context, names, values):
                    found[values] = None
        found[least] = None
        beyond = {n + 1 for n in numbers if 1 < n <= _LARGEST} | {7, 12, 20}
        for number in sorted(beyond)[:_BEYOND]:
            wide = [(number,) * len(names)]
            wide += [(*least[:p], number, *least[p + 1 :]) for p in range(len(names))]
            found |= dict.fromkeys(v for v in wide if _allowed(context, names, v))
    for witness in witnesses:
        values = tuple(witness.get(n, smallest.get(n, 1)) for n in names)
        if _allowed(context, names, values):
            found[values] = None
    whole: list[Sizes] = []
    for values in sorted(found, key=lambda v: (sum(v), v)):
        sizes: Sizes = dict(zip(names, values, strict=True))
        for kernel in kernels:
            sizes = kernel.with_computed(sizes)
        if all(_allowed_at(kernel.assumptions.set, sizes) for kernel in kernels):
            whole.append(sizes)
    return whole


def numbers_in(kernel: Kernel) -> frozenset[int]:
    """The integers that a kernel's expressions and domains mention."""
    texts = [to_text(e) for s in kernel.statements for e in (s.lhs, s.rhs, *s.predicates)]
    texts += [d.text for d in kernel.domains]
    return frozenset(int(n) for t in texts for n in re.findall(r"(?<![\w.])\d{1,4}(?![\w.])", t))


def index_data(kernel: Kernel) -> frozenset[str]:
    """The data whose values may decide which cells are touched, or which iterations there are.

    They stand in subscripts or in bounds, or what does is computed of them.
    """
    kernel = expand_rules(kernel)
    subscripts = (e for s in kernel.statements for _, indices in s.accesses for e in indices)
    names = {n for domain in kernel.domains for n in domain.parameters}
    return reachable(
        names.union(*map(variable_names, subscripts)),
        lambda name: {n for s in kernel.writers.get(name, ()) for n in variable_names(s.rhs)},
    )


def _allowed(context: isl.Set, names: Sequence[str], values: Sequence[int]) -> bool:
    return _allowed_at(context, dict(zip(names, values, strict=True)))


def _allowed_at(context: isl.Set, sizes: Sizes) -> bool:
    return not _sets.at_values(context, sizes).is_empty()
