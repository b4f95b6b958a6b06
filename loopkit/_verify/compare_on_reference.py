"""Kernels in which data decide how often statements run: the reference interpreter runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._errors import LoopkitError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._reference import run_reference
from loopkit._verify.confirm_difference import given_by
from loopkit._verify.exact_numbers import close
from loopkit._verify.example_data import ExampleData
from loopkit._verify.kernel_at_sizes import KernelAtSizes, Sizes
from loopkit._verify.verdict import Difference

_TRIALS = 2


def estimated_work(kernel: Kernel, sizes: Sizes) -> int:
    """About how many cells a kernel touches in which data decide how often statements run."""
    largest = max((*sizes.values(), 1))
    return sum(largest ** len(s.inames) * (1 + len(s.reads)) for s in kernel.statements)


def difference_on_reference(before: Kernel, after: Kernel, sizes: Sizes) -> Difference | None:
    """The first difference of kernels in which data decide how often statements run."""
    at_sizes = KernelAtSizes(before, sizes)
    for trial in range(_TRIALS):
        given = {n: _rising(v) for n, v in given_by(at_sizes, ExampleData(trial)).items()}
        try:
            one, two = (run_reference(k, given) for k in (before, after))
        except LoopkitError:
            continue
        for name, mine in one.items():
            for place in np.ndindex(mine.shape):
                a, b = mine[place].item(), two[name][place].item()
                if not close(a, b, mine.dtype):
                    words = (_result(before, name, a), _result(after, name, b))
                    return Difference(dict(sizes), name, place, *words)
    return None


def _rising(values: Any) -> Any:
    """Integers in order, as where rows of a sparse matrix begin; other data as they are."""
    is_row = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu"
    return np.sort(values) if is_row else values


def _result(kernel: Kernel, name: str, value: Any) -> str:
    """What the statements that write an array compute, and what came of it."""
    texts: dict[str, None] = {}
    for statement in kernel.writers.get(name, ()):
        for update in kernel.writers.get(to_text(statement.rhs), ()):
            if update.operation is not None:
                texts[f"{update.operation}({to_text(update.rhs)})"] = None
        texts.setdefault(to_text(statement.rhs), None)
    return f"{value:g}, by {next(iter(texts))}"
