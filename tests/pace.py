"""How fast this machine is beside the one that limits of time are stated for.

A test of time asserts ``seconds(work) < LIMIT``; or, where what was done is needed, it calls
``result, taken = timed(work)``. Both count time of the processor: what others do on the machine
shows only as far as it slows a core, and that is taken off. What has a clock of its own is scaled,
``limit * slowness()``.
"""

from __future__ import annotations

import functools
import gc
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import islpy as isl

T = TypeVar("T")

REFERENCE = 0.0070
"""Seconds of a processor for `_work`: an idle core of a Xeon of 2023, with Python 3.11."""


def slowness() -> float:
    """How many times slower than the reference machine this one is, at least 1; asked once."""
    return _slowness_at_first()


def slowness_now() -> float:
    """The same, measured anew: others may have begun to work, or ceased."""
    return max(1.0, statistics.median(_seconds_of_work() for _ in range(5)) / REFERENCE)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What ``work`` returns, and the seconds of a processor that it takes on the reference machine.

    The machine's pace is measured before and behind.  What other tests left alive is no garbage of
    this work: looking through it takes up to a second, and is none of its time.
    """
    before = slowness_now()
    gc.collect()
    gc.freeze()
    start = time.process_time()
    result = work()
    taken = time.process_time() - start
    return result, 2 * taken / (before + slowness_now())


def seconds(work: Callable[[], object], runs: int = 3, enough: float = 0.0) -> float:
    """The least seconds that ``work`` takes in some runs; one below ``enough`` is the last."""
    best = float("inf")
    for _ in range(runs):
        best = min(best, timed(work)[1])
        if best < enough:
            break
    return best


@functools.cache
def _slowness_at_first() -> float:
    return slowness_now()


def _seconds_of_work() -> float:
    start = time.process_time()
    _work()
    return time.process_time() - start


def _work() -> int:
    """What loopkit spends its time on, always the same: objects of Python, and sets of isl."""
    words: dict[tuple[str, int], int] = {}
    for number in range(6000):
        word = (f"{number % 97}_outer", number % 1013)
        words[word] = words.get(word, 0) + len(word[0])
    context = isl.Context()
    tiles = isl.Map.read_from_str(
        context,
        "[n, m] -> { [i, j] -> [a, b, c, d] : 0 <= i < n and 0 <= j < m and i = 16a + c"
        " and j = 8b + d and 0 <= c < 16 and 0 <= d < 8 }",
    )
    for _ in range(4):
        first = tiles.range().lexmin()
        near = tiles.reverse().apply_range(tiles).domain().subtract(first)
        words[str(near.coalesce().gist(tiles.range())), 0] = near.is_subset(first)
    return len(words)
