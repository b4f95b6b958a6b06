"""``loopkit measure``: one kernel of a file, or several in turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loopkit._cli._output import Output
from loopkit._cli._show import load
from loopkit._cli._sizes import numbers_of
from loopkit._measure.compare import compared
from loopkit._measure.measure import measured, options_of


def measure(
    words: Sequence[str], flush_l2: bool, seconds: float, executor: str | None, seed: int
) -> int:
    """Time the kernels that some words name, with the sizes that the others give."""
    targets = [words[0], *(word for word in words[1:] if "=" not in word)]
    given = numbers_of(word for word in words[1:] if "=" in word)
    output = Output()
    options = options_of(seconds, flush_l2, executor, seed, output.working)
    kernels = {_name(target, targets): load(target) for target in targets}
    if len(kernels) == 1:
        (kernel,) = kernels.values()
        found = measured(kernel, given, options)
        with output.working("counting"):
            text = str(found)
            if found.roofline is not None:
                text += f"\n\n{found.roofline}"
    else:
        text = str(compared(kernels, given, options))
    output.text(text)
    return 0


def _name(target: str, others: Sequence[str]) -> str:
    """What a kernel is called beside others: the shortest end of its target that none shares."""
    parts = target.split(":")
    for count in range(1, len(parts)):
        end = ":".join(parts[-count:])
        if sum(other.split(":")[-count:] == parts[-count:] for other in others) == 1:
            return end
    return Path(target).name if others.count(target) == 1 else target
