"""Arrays and temporaries of an interpreted kernel; reports bad indices and uninitialized reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
        self.watched = written is not None

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.data.shape
        return shape

    @property
    def holds_true(self) -> bool:
        """Whether a cell of a temporary has been set to true."""
        return bool((self.data & self.written).any())

    def loader(self) -> Callable[..., Any]:
        """A function that gives the value of one cell, made for the number of indices."""
        watch = ["if not written[{i}]:", "    raise unwritten(({i},))"] if self.watched else []
        value = "parts(data[{i}])" if self.data.dtype.names else "data[{i}]"
        return self._compiled("load", [*watch, f"return {value}"])

    def storer(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        """A function that sets one cell: the value comes first, then the indices.

        Along ``open_axes``, all copies are set; their indices are not passed.
        """
        watch = ["written[{i}] = True"] if self.watched else []
        return self._compiled("store", ["data[{i}] = value", *watch], open_axes)

    def forgetter(self, open_axes: Collection[int] = ()) -> Callable[..., None]:
        """A function that marks a cell of a temporary as uninitialized."""
        return self._compiled("forget", ["written[{i}] = False"], open_axes)

    def _compiled(
        self, name: str, lines: Sequence[str], open_axes: Collection[int] = ()
    ) -> Callable[..., Any]:
        """A function of ``lines``, behind a check of the bounds; ``{i}`` is the index in them."""
        axes = range(len(self.shape))
        checked = [p for p in axes if p not in open_axes]
        passed = [*(["value"] if name == "store" else []), *(f"i{p}" for p in checked)]
        index = ", ".join("every" if p in open_axes else f"i{p}" for p in axes) or "()"
        if checked:
            inside = " and ".join(f"0 <= i{p} < extent{p}" for p in checked)
            lines = [f"if not ({inside}):", "    raise outside(({i},))", *lines]
        head = f"def {name}({', '.join(passed)}):"
        text = "\n    ".join([head, *(l.replace("{i}", index) for l in lines)])
        space: dict[str, Any] = {
            "data": self.data,
            "written": self.written,
            "outside": self._outside,
            "unwritten": self._unwritten,
            "parts": self._parts,
            "every": slice(None),
            **{f"extent{p}": extent for p, extent in enumerate(self.shape)},
        }
        exec(code_of(text, f"<{name} {self.name}>"), space)
        function: Callable[..., Any] = space[name]
        return function

    def _parts(self, record: Any) -> tuple[Any, ...]:
        """A record's components, as they are now."""
        return tuple(record[name] for name in self.data.dtype.names)

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
