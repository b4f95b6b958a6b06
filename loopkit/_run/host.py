"""Executors on the CPU, which compute with NumPy arrays over the caller's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from loopkit._program import ArrayParam, Program
from loopkit._run.launch_sequence import own_arguments, turns_of
from loopkit._run.plan import ArgumentPlan, Resolved, no_streams


class CpuExecutor:
    """What executors on the CPU share: calls, and calls whose arguments are bound."""

    plan: ArgumentPlan

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.plan.signature()}>"

    def run(self, resolved: Resolved) -> None:
        """Compute the outputs of one call."""
        raise NotImplementedError

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel; returns its outputs when it is done."""
        resolved = self.plan.resolve(args, kwargs)
        self.run(resolved)
        return resolved.result()

    call = __call__

    def bind(self, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Check the arguments once; the result runs with them.

        Outputs that are not passed are allocated once, and every call writes them anew.
        """
        resolved = self.plan.resolve(args, kwargs)
        is_new = any(info.kind.immutable for info in resolved.arrays.values())
        result = None if is_new else resolved.result()
        alone = threading.Lock()

        def call(stream: Any = None) -> Any:
            if stream is not None:
                raise no_streams(self.plan.name)
            if is_new:
                return self(*args, **kwargs)
            with alone:  # what the kernel keeps between launches was allocated once, too
                self.run(resolved)
            return result

        call.__name__ = f"{self.plan.name}_bound"
        call.__doc__ = f"Run {self.plan.name} with the arguments that it was bound to."
        return call


class HostExecutor(CpuExecutor):
    """Runs a kernel on the CPU, from the same source.

    Parameters
    ----------
    program_for:
        Gives the program for arrays of which those named have strides of their own.
    order:
        In which order the threads of a block run between barriers: ``"ascending"``,
        ``"descending"`` or ``"random"``.
    seed:
        For the random order.
    sanitize:
        Whether accesses outside of arrays are looked for, and reported.
    """

    def __init__(
        self,
        program_for: Callable[[frozenset[str]], Program],
        *,
        order: Literal["ascending", "descending", "random"] = "ascending",
        seed: int = 0,
        sanitize: bool = False,
    ) -> None:
        self._program_for = program_for
        self._modules: dict[tuple[frozenset[str], str], Any] = {}
        self.order = order
        self.seed = seed
        self.sanitize = sanitize
        self.plan = ArgumentPlan(program_for(frozenset()))

    def run(self, resolved: Resolved) -> None:
        """Launch the program that was compiled for the CPU."""
        for _, start in self.turns(resolved):
            start()

    def turns(self, resolved: Resolved) -> Iterator[tuple[str, Callable[[], None]]]:
        """The launches of a call, in order: the name of each, and what runs it."""
        arrays = resolved.numpy_arrays()
        program = self._program_for(resolved.strided)
        arguments = [
            arrays[p.name] if isinstance(p, ArrayParam) else resolved.value(p)
            for p in program.params
        ]
        for turn in turns_of(program, resolved.values):
            own = own_arguments(program, turn, arguments)
            for param, array in zip(turn.program.params, own, strict=True):
                if isinstance(param, ArrayParam) and param.role == "cleared":
                    array.fill(0)
            module = self._module(resolved.strided, turn.program)
            options = {"order": self.order, "seed": self.seed}
            yield turn.program.name, partial(module.launch, own, turn.grid, **options)

    def _module(self, strided: frozenset[str], program: Program) -> Any:
        """A launch, compiled for the CPU."""
        key = strided, program.name
        if key not in self._modules:
            from loopkit._host import compile_host

            self._modules[key] = compile_host(program, sanitize=self.sanitize)
        return self._modules[key]
