"""Timing the steps of one case in a fresh process; the result goes to stdout as JSON."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Steps:
    """Runs steps and remembers how long each took, in order; equal names add up.

    A step that runs inside another is counted for itself alone.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    def __call__(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        self._inner.append(0.0)
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            whole = time.perf_counter() - start
            own = whole - self._inner.pop()
            self._inner[-1] += whole
            self.seconds[name] = self.seconds.get(name, 0.0) + own

    def wrap(self, module: Any, function: str, name: str) -> None:
        """From now on, calls of ``module.function`` are a step of this name."""
        original = getattr(module, function)

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            return self(name, original, *args, **kwargs)

        setattr(module, function, timed)


def main(cases: Mapping[str, Callable[[Steps], str]]) -> None:
    """Run the case that the command line names and print what it took."""
    steps = Steps()
    # What a case or a library prints must not mix with the JSON.
    out = os.dup(1)
    os.dup2(2, 1)
    # What imports left behind is no part of what is timed, for either tool.
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    source = cases[sys.argv[1]](steps)
    seconds = time.perf_counter() - start
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(source)
    result = {"seconds": seconds, "steps": steps.seconds, "characters": len(source)}
    os.write(out, json.dumps(result).encode() + b"\n")
