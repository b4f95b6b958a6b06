"""What arguments hold where kernels are run, and values that remember how they came about."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopkit._promotion import INTEGERS

Place = tuple[int, ...]
_ENDS = {dtype: int(np.iinfo(dtype).max) + 1 for dtype in INTEGERS}


@dataclass(frozen=True, eq=False)
class TracedValue:
    """A value and where it comes from.

    ``statement`` wrote it at ``point`` having read ``used``; a statement of
    None stands for what the array held before the kernel.  Truth values in
    ``used`` are decisions that were made on the way.
    """

    value: Any
    array: str
    place: Place
    statement: str | None = None
    point: Mapping[str, int] = field(default_factory=dict)
    used: Sequence[TracedValue | bool] = ()


class ExampleData:
    """What arguments hold: small integers, the same for every kernel that is run on them."""

    def __init__(self, trial: int, given: Mapping[str, np.ndarray[Any, Any]] | None = None) -> None:
        self.trial = trial
        self.given = given or {}

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
