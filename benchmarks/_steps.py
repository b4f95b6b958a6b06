"""Timing the steps of one case in a fresh process, by the processor's clock."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
WARMING = ("DG gradient", "SGEMM 16x16")


class Steps:
    """Runs steps and remembers how long each took, in order; equal names add up.

    A step that runs inside another is counted for itself alone.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    def __call__(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        self._inner.append(0.0)
        start = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            whole = time.process_time() - start
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


def import_everything(package: Any) -> None:
    """All modules of a package, also those that wait until they are needed; but not what runs it.

    What needs a library that is not there stays away.
    """
    prefix = package.__name__ + "."
    for module in pkgutil.walk_packages(package.__path__, prefix, onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with suppress(Exception):
                importlib.import_module(module.name)


def main(cases: Mapping[str, Callable[[Steps], str]]) -> None:
    """Run the case that the command line names; what it took goes to stdout as JSON.

    Another case goes before, so that nothing is left to be made once for all kernels.
    """
    steps = Steps()
    # What a case or a library prints must not mix with the JSON.
    out = os.dup(1)
    os.dup2(2, 1)
    cases[next(name for name in WARMING if name != sys.argv[1])](Steps())
    # What imports left behind is no part of what is timed, for either tool.
    gc.collect()
    gc.freeze()
    start = time.process_time()
    source = cases[sys.argv[1]](steps)
    seconds = time.process_time() - start
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(source)
    result = {"seconds": seconds, "steps": steps.seconds, "characters": len(source)}
    os.write(out, json.dumps(result).encode() + b"\n")
