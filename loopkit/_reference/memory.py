"""Arrays and temporaries while a kernel is interpreted: bounds and first writes are watched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from loopkit._errors import OutOfBoundsError, UninitializedReadError
from loopkit._promotion import DType


@lru_cache(maxsize=1 << 11)
def code_of(text: str, name: str) -> CodeType:
    """The code of a definition; ``name`` stands where tracebacks have a file.

    Sizes and extents are names in such texts, not numbers: one text serves for all of them.
    """
    return compile(text, name, "exec")


class Memory:
    """One array: every access is checked, and for temporaries whether it was written."""

    def __init__(self, name: str, data: Any, written: Any, axes: int = 0) -> None:
        self.name = name
        self.data = data
        self.written = written
        self.axes = axes

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.data.shape
        return shape

    def loader(self) -> Callable[..., Any]:
        """A function that gives the value of one cell, made for the number of indices."""
        return self._compiled(
            "load",
            [
                *self._check_lines(range(len(self.shape))),
                *(["if not written[{i}]:", "    raise unwritten(({i},))"] if self.watched else []),
                "return data[{i}]",
            ],
        )

    def storer(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        """A function that sets one cell: the value comes first, then the indices.

        Along ``open_axes``, all copies are set; their indices are not passed.
        """
        return self._compiled(
            "store",
            [
                *self._check_lines(p for p in range(len(self.shape)) if p not in open_axes),
                "data[{i}] = value",
                *(["written[{i}] = True"] if self.watched else []),
            ],
            open_axes,
        )

    @property
    def watched(self) -> bool:
        return self.written is not None

    def _check_lines(self, positions: Iterable[int]) -> list[str]:
        checks = [f"0 <= i{p} < extent{p}" for p in positions]
        if not checks:
            return []
        return [f"if not ({' and '.join(checks)}):", "    raise outside(({i},))"]

    def _compiled(
        self, name: str, lines: Sequence[str], open_axes: Collection[int] = ()
    ) -> Callable[..., Any]:
        names = [f"i{p}" for p in range(len(self.shape))]
        passed = [n for p, n in enumerate(names) if p not in open_axes]
        index = ", ".join("every" if p in open_axes else n for p, n in enumerate(names)) or "()"
        first = ["value"] if name == "store" else []
        text = "\n    ".join(
            [
                f"def {name}({', '.join([*first, *passed])}):",
                *(l.replace("{i}", index) for l in lines),
            ]
        )
        space: dict[str, Any] = {
            "data": self.data,
            "written": self.written,
            "outside": self._outside,
            "unwritten": self._unwritten,
            "every": slice(None),
            **{f"extent{p}": extent for p, extent in enumerate(self.shape)},
        }
        exec(code_of(text, f"<{name} {self.name}>"), space)
        function: Callable[..., Any] = space[name]
        return function

    def _unwritten(self, index: Sequence[Any]) -> UninitializedReadError:
        cell = index[self.axes : len(self.shape)]
        where = f"[{', '.join(map(str, cell))}]" if cell else ""
        return UninitializedReadError(
            f"{self.name}{where} is read before anything has been written there"
        )

    def _outside(self, index: Sequence[Any]) -> OutOfBoundsError:
        cell = ", ".join(map(str, index[self.axes :]))
        shape = ", ".join(map(str, self.data.shape[self.axes :]))
        return OutOfBoundsError(
            f"{self.name}[{cell}] is outside of the array: its shape is ({shape})"
        )


def temporary(name: str, dtype: DType, shape: Sequence[int], copies: Sequence[int] = ()) -> Memory:
    """A temporary whose cells nobody has written yet; ``copies`` of it exist along some axes."""
    whole = (*copies, *shape)
    return Memory(name, np.zeros(whole, dtype), np.zeros(whole, bool), len(copies))
