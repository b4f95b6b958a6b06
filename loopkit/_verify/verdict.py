"""The result of comparing two kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from loopkit._printed import Printed

Answer = Literal["equal", "different", "undecided"]


def in_words(sizes: Mapping[str, int]) -> str:
    """``n = 1, m = 2``."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


@dataclass(frozen=True)
class Difference(Printed):
    """The first cell of an output in which two kernels differ, at the smallest sizes found.

    ``before`` and ``after`` say how each kernel computes the cell from what the
    arguments hold.  ``order`` names the order of blocks and threads in which
    the second kernel does, where it is not that of its loops.

    With ``outside``, the cell is none of the array's, and only one of the kernels
    touches such cells; ``before`` and ``after`` say which.
    """

    sizes: Mapping[str, int]
    array: str
    cell: tuple[int, ...]
    before: str
    after: str
    order: str = ""
    outside: bool = False

    def __str__(self) -> str:
        cell = f"{self.array}[{', '.join(map(str, self.cell))}]" if self.cell else self.array
        sizes = in_words(self.sizes)
        what = "is outside of the array" if self.outside else "differs"
        where = f"{cell} {what}" + (f" for {sizes}" if sizes else "")
        lines = [where, f"  before: {self.before}", f"  after:  {self.after}"]
        return "\n".join([*lines, f"  {self.order}"] if self.order else lines)

    def _html(self) -> Any:
        from loopkit._display.answers import difference_html

        return difference_html(self)


@dataclass(frozen=True)
class Verdict(Printed):
    """What :func:`loopkit.verify` found; true only where the kernels are proven equal.

    ``answer`` is ``"equal"``, ``"different"`` or ``"undecided"``; ``why`` gives
    the reason in words, ``witness`` the first difference where there is one.
    """

    answer: Answer
    why: str
    witness: Difference | None = None

    def __bool__(self) -> bool:
        return self.answer == "equal"

    def __str__(self) -> str:
        if self.witness is None:
            return f"{self.answer}: {self.why}"
        return f"{self.answer}: {self.witness}\n{self.why}".rstrip()

    def _html(self) -> Any:
        from loopkit._display.answers import verdict_html

        return verdict_html(self)
