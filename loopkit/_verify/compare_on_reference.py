"""Kernels in which data decide how often statements run: the reference interpreter runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._arrays import Argument, ValueArg
from loopkit._errors import LoopkitError
from loopkit._expression import evaluate, to_text
from loopkit._kernel import Kernel
from loopkit._reference import run_reference
from loopkit._verify.exact_numbers import close
from loopkit._verify.example_data import ExampleData
from loopkit._verify.kernel_at_sizes import Sizes
from loopkit._verify.verdict import Difference

_TRIALS = 2


def estimated_work(kernel: Kernel, sizes: Sizes) -> int:
    """About how many cells a kernel touches in which data decide how often statements run."""
    largest = max((*sizes.values(), 1))
    return sum(largest ** len(s.inames) * (1 + len(s.reads)) for s in kernel.statements)


def difference_on_reference(before: Kernel, after: Kernel, sizes: Sizes) -> Difference | None:
    """The first difference of kernels in which data decide how often statements run."""
    for trial in range(_TRIALS):
        data = ExampleData(trial)
        given = {
            **{n: sizes[n] for n in before.sizes},
            **{a.name: _filled(a, before, data, sizes) for a in before.args if _is_data(a, before)},
        }
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


def _is_data(argument: Argument, kernel: Kernel) -> bool:
    return argument.name not in kernel.sizes


def _filled(argument: Argument, kernel: Kernel, data: ExampleData, sizes: Sizes) -> Any:
    """An argument's values; integers rise, as where rows of a sparse matrix begin."""
    dtype = argument.dtype or np.dtype(np.float32)
    if isinstance(argument, ValueArg):
        return data.cell(argument.name, (), dtype, 1)
    shape = tuple(max(0, int(evaluate(e, sizes))) for e in argument.shape or ())
    limit = min((v for v in sizes.values() if v > 0), default=1)
    values = [data.cell(argument.name, p, dtype, limit) for p in np.ndindex(shape)]
    filled = np.array(values).reshape(shape).astype(dtype)
    return np.sort(filled) if dtype.kind in "iu" and len(shape) == 1 else filled


def _result(kernel: Kernel, name: str, value: Any) -> str:
    """What the statements that write an array compute, and what came of it."""
    texts: dict[str, None] = {}
    for statement in kernel.writers.get(name, ()):
        for update in kernel.writers.get(to_text(statement.rhs), ()):
            if update.operation is not None:
                texts[f"{update.operation}({to_text(update.rhs)})"] = None
        texts.setdefault(to_text(statement.rhs), None)
    return f"{value:g}, by {next(iter(texts))}"
