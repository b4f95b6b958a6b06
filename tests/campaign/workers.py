"""Batches spread over processes, each watched: a step that does not end is a finding too."""

from __future__ import annotations

import multiprocessing as mp
import os
import tempfile
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from effort import DiaryWatch

from .batch import Batches, Limits
from .kernels import Drawn
from .steps import Call, script
from .tally import Finding, Tally


class _Diary:
    """What a process is doing, in a file that outlives it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._drawn: Drawn | None = None
        self._source = ""

    def __call__(self, drawn: Drawn, calls: Sequence[Call], seed: str) -> None:
        if drawn is not self._drawn:
            self._drawn, self._source = drawn, drawn.source()
        text = "\0".join((self._source, script(calls), seed))
        Path(self.path).write_text(text, encoding="utf-8")


def _work(pipe: Connection, path: str, limits: Limits) -> None:
    batches = Batches(limits, _Diary(path))
    while True:
        seed = pipe.recv()
        if seed is None:
            return
        pipe.send(batches.run(seed))


class _Worker:
    """One process."""

    def __init__(self, folder: str, number: int, limits: Limits) -> None:
        self.path = os.path.join(folder, f"diary{number}")
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.path, limits), daemon=True)
        self.process.start()
        theirs.close()
        self.seed = -1
        self.watch = DiaryWatch(self.process.pid or 0, Path(self.path))

    def give(self, seed: int) -> None:
        """Let it run a batch."""
        self.seed = seed
        Path(self.path).write_text("", encoding="utf-8")
        self.pipe.send(seed)

    def last_words(self, kind: str, detail: str) -> Tally:
        """What it was doing, as a finding; the rest of its batch is lost."""
        tally = Tally()
        source, steps, seed = (Path(self.path).read_text(encoding="utf-8").split("\0") + [""] * 3)[
            :3
        ]
        calls = [line.strip().split("(")[0].lstrip(".") for line in steps.split("\n")[1:]]
        bucket = calls[-1] if calls else "lowering"
        tally.found[f"{kind}|{bucket}"] += 1
        seed = seed or str(self.seed)
        tally.findings.append(Finding(kind, bucket, source, steps, detail, seed))
        return tally

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def campaign(first_seed: int, workers: int, limits: Limits, patience: float) -> Iterator[Tally]:
    """Tallies of one batch after another, without end; ``patience`` is in seconds of work."""
    with tempfile.TemporaryDirectory(prefix="loopkit-campaign-") as folder:
        crew = [_Worker(folder, number, limits) for number in range(workers)]
        try:
            seed = first_seed
            for worker in crew:
                worker.give(seed)
                seed += 1
            while True:
                ready = wait([w.pipe for w in crew], timeout=1.0)
                for number, worker in enumerate(crew):
                    tally: Tally | None = None
                    if worker.pipe in ready:
                        try:
                            tally = worker.pipe.recv()
                        except EOFError:
                            worker.process.join(5)
                            code = worker.process.exitcode
                            tally = worker.last_words("crash", f"the process ended with {code}")
                    elif worker.watch.worked() > patience:
                        tally = worker.last_words("hang", f"no end after {patience:.0f} s of work")
                    if tally is None:
                        continue
                    if not worker.process.is_alive() or any(
                        f.kind == "hang" for f in tally.findings
                    ):
                        worker.stop()
                        worker = crew[number] = _Worker(folder, number, limits)
                    yield tally
                    worker.give(seed)
                    seed += 1
        finally:
            for worker in crew:
                worker.stop()
