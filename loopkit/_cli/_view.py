"""``loopkit view``: the page of one kernel of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loopkit._cli._output import Output
from loopkit._cli._show import load
from loopkit._cli._sizes import sizes_of
from loopkit._errors import counted


def view(target: str, words: Sequence[str], to: str | None, arch: str | None) -> int:
    """Write the page of the kernel that ``target`` names, and say where it is."""
    sizes = sizes_of(words)
    kernel = load(target)
    path = Path(to if to is not None else f"{kernel.name}.html")
    output = Output()
    with output.working(f"replaying {counted(len(kernel.history), 'step')}, compiling, counting"):
        written = kernel.view(path, arch=arch, sizes=sizes)
    output.text(str(written))
    return 0
