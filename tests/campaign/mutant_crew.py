"""Mutants judged by several processes, and counted."""

from __future__ import annotations

import multiprocessing as mp
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from .mutant_judge import Judged, judged, mutants
from .mutant_subjects import subjects

_STEP = 1_000_003  # between the seeds of workers


@dataclass
class Count:
    """What was judged so far."""

    total: int = 0
    programs: set[str] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, program: str, found: Judged) -> None:
        """Count one more."""
        self.total += 1
        self.programs.add(program)
        self.verdicts[found.verdict] += 1
        if found.outcome:
            self.outcomes[found.verdict, found.outcome] += 1
        if found.outcome == "harmful":
            self.edits.update(found.edits.split())
        if found.failure:
            self.failures[found.failure] += 1

    @property
    def harmful(self) -> int:
        """Those that runs show to be wrong."""
        return sum(n for (_, outcome), n in self.outcomes.items() if outcome == "harmful")

    @property
    def killed(self) -> float:
        """The share of harmful ones that the proof does not take for right."""
        return 1 - self.outcomes["proven", "harmful"] / self.harmful if self.harmful else 1.0

    def shown(self, seconds: float) -> str:
        """A few lines about it."""
        verdicts = ", ".join(f"{n:,} {v}" for v, n in sorted(self.verdicts.items()))
        outcomes = ", ".join(
            f"{n:,} {verdict} and {outcome}"
            for (verdict, outcome), n in sorted(self.outcomes.items())
        )
        edits = ", ".join(f"{name} {n:,}" for name, n in self.edits.most_common())
        failures = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self.failures.items()))
        return (
            f"{self.total:,} mutants of {len(self.programs):,} programs in {seconds:.0f} s: "
            f"{verdicts}\nrun: {outcomes}\nharmful: {self.harmful:,} ({edits})\n"
            f"of these refuted or open: {self.killed:.2%}\nfailures: {failures or 'none'}"
        )


def found_by(seed: int, each: int, share: float) -> Iterator[tuple[str, Judged]]:
    """What one process judges, without end, by the name of the program that was changed."""
    r = random.Random(f"mutants {seed}")
    for subject in subjects(seed):
        for found in judged(subject, mutants(r, subject, each), r, share):
            yield subject.name, found


def _work(pipe: Connection, seed: int, each: int, share: float) -> None:
    with suppress(BrokenPipeError, KeyboardInterrupt):
        for item in found_by(seed, each, share):
            pipe.send(item)


class _Worker:
    """One process."""

    def __init__(self, seed: int, each: int, share: float) -> None:
        context = mp.get_context("spawn")
        self.seed = seed
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, seed, each, share), daemon=True)
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def judgements(
    seed: int, workers: int, each: int, share: float, seconds: float, patience: float = 300.0
) -> Iterator[tuple[str, Judged]]:
    """What all processes judge; one that dies or is silent for long is replaced."""
    end = time.monotonic() + seconds
    crew = [_Worker(seed + _STEP * number, each, share) for number in range(workers)]
    made = workers
    try:
        while time.monotonic() < end:
            ready = wait([w.pipe for w in crew], timeout=1.0)
            for number, worker in enumerate(crew):
                found = None
                if worker.pipe in ready:
                    with suppress(EOFError, OSError):
                        found = worker.pipe.recv()
                if found is not None:
                    worker.heard = time.monotonic()
                    yield found
                elif worker.pipe in ready or time.monotonic() - worker.heard > patience:
                    worker.stop()
                    what = f"the worker with seed {worker.seed} ended, or was silent"
                    yield "", Judged("crash", "", "", "crash", what)
                    crew[number] = _Worker(seed + _STEP * made, each, share)
                    made += 1
    finally:
        for worker in crew:
            worker.stop()
