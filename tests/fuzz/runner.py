"""Running cases in processes of their own, which may hang, crash and grow."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from effort import Watch, own_time

MEMORY = 6 << 30
"""Bytes of address space that a process may take."""
CASES = 3000
"""After as many cases a process makes room for a fresh one."""
STARTING = 120.0
"""Seconds of work until a process is ready for its first case."""
PAUSE = 0.4
"""Seconds between two looks at a process that says nothing."""
_FRAME = re.compile(r'File "([^"]*)", line (\d+)(?:,)? in (\S+)')
_OURS = re.compile(r"/(?:loopkit|transforms|codegen)/")


@dataclass
class Finding:
    """What went wrong in the same way: how, where, how often, and the first case."""

    kind: str
    where: str
    message: str
    area: str
    number: int
    call: str
    count: int = 1

    @property
    def bucket(self) -> tuple[str, str]:
        """What tells findings apart."""
        return self.kind, self.where

    def __str__(self) -> str:
        return (
            f"{self.kind} at {self.where}  ({self.count} times)\n    {self.message[:300]}\n"
            f"    {self.call[:600]}\n    python -m tests.fuzz --replay {self.area}:{self.number}"
        )


@dataclass
class Report:
    """All findings, and how many cases ran."""

    cases: int = 0
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def add(self, finding: Finding) -> bool:
        """Count a finding; whether it is of a new kind."""
        known = self.findings.setdefault(finding.bucket, finding)
        if known is not finding:
            known.count += 1
        return known is finding


def innermost(frames: Sequence[tuple[str, int, str]]) -> str:
    """The innermost line of loopkit among frames, outermost first."""
    root = str(Path(__file__).resolve().parents[2])
    for file, line, function in reversed(frames):
        if _OURS.search(file) and "/tests/" not in file:
            return f"{file.removeprefix(root).lstrip('/')}:{line} {function}"
    return "outside of loopkit"


def attempt(area: str, number: int) -> Finding | None:
    """Make one call; what it should not have done."""
    import loopkit as lk

    from .areas import case

    text = "(while it was drawn)"
    try:
        call = case(area, number)
    except Exception as error:
        return _found(error, area, number, text)
    text = call.text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.run()
    except lk.LoopkitError as error:
        try:
            str(error)
        except Exception as second:
            return _found(second, area, number, text)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _found(error, area, number, text)
    return None


def _found(error: BaseException, area: str, number: int, text: str) -> Finding:
    frames = [
        (f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(error.__traceback__)
    ]
    try:
        message = str(error)
    except Exception:
        message = "(an error that cannot be shown)"
    return Finding(type(error).__name__, innermost(frames), message, area, number, text)


def _work(pipe: Connection, dump: str, first: int, stride: int, areas: tuple[str, ...]) -> None:
    """Run cases one after the other, saying before each which it is."""
    from .areas import area_of, case

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(dump, "w") as file:
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file, all_threads=False)
        number = first
        for _ in range(CASES):
            area = area_of(number)
            if not areas or area in areas:
                try:
                    text = case(area, number).text
                except Exception:
                    text = ""
                pipe.send(("start", number, area, text, own_time()))
                pipe.send(("done", number, attempt(area, number)))
            number += stride
    pipe.send(("next", number))


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    dump: str
    number: int
    heard: float
    """When it last said something."""
    begin: float = 0.0
    """The processor time that it had taken by then."""
    watch: Watch | None = None
    """Set where it has been silent for a while."""
    area: str = ""
    text: str = ""

    def hangs(self, limit: float) -> bool:
        """Whether its case has taken more than ``limit`` seconds of work."""
        looked = self.heard if self.watch is None else self.watch.seen
        if time.monotonic() - looked < PAUSE:
            return False
        if self.watch is None:
            self.watch = Watch(self.process.pid, self.begin)
        return self.watch.worked() > (limit if self.area else STARTING)


class Crew:
    """Processes that run the cases ``seed``, ``seed + 1``, ... for some time."""

    def __init__(self, seed: int, workers: int, limit: float, areas: tuple[str, ...] = ()) -> None:
        self.stride, self.limit, self.areas = workers, limit, areas
        self.folder = tempfile.TemporaryDirectory(prefix="loopkit-fuzz-")
        self.context = multiprocessing.get_context("spawn")
        self.report = Report()
        self.workers = [self._start(seed + i) for i in range(workers)]

    def _start(self, number: int) -> _Worker:
        mine, theirs = self.context.Pipe(duplex=False)
        dump = os.path.join(self.folder.name, f"{number}-{time.monotonic_ns()}")
        args = (theirs, dump, number, self.stride, self.areas)
        process = self.context.Process(target=_work, args=args, daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, mine, dump, number, time.monotonic())

    def run(self, seconds: float, shows: bool = True) -> Report:
        """Run for a time."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                ready = wait([w.pipe for w in self.workers], timeout=0.5)
                for at, worker in enumerate(self.workers):
                    if worker.pipe in ready:
                        self.workers[at] = self._hear(worker, shows)
                    elif worker.hangs(self.limit):
                        self.workers[at] = self._give_up(worker, shows)
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.join()
            self.folder.cleanup()
        return self.report

    def _hear(self, worker: _Worker, shows: bool) -> _Worker:
        try:
            what, number, *rest = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            self._note("crash", worker, f"exit status {worker.process.exitcode}", shows)
            return self._again(worker, worker.number + self.stride)
        if what == "next":
            return self._again(worker, number)
        worker.heard, worker.watch = time.monotonic(), None
        if what == "start":
            worker.number, (worker.area, worker.text, worker.begin) = number, rest
            return worker
        self.report.cases += 1
        if rest[0] is not None and self.report.add(rest[0]) and shows:
            print(rest[0], flush=True)
        return worker

    def _give_up(self, worker: _Worker, shows: bool) -> _Worker:
        os.kill(worker.process.pid, signal.SIGUSR1)
        end = time.monotonic() + 10
        while time.monotonic() < end and not Path(worker.dump).stat().st_size:
            time.sleep(0.1)
        time.sleep(0.1)
        self._note("hang", worker, f"no answer after {self.limit:g} s of work", shows)
        return self._again(worker, worker.number + self.stride)

    def _note(self, kind: str, worker: _Worker, message: str, shows: bool) -> None:
        frames = [(f, int(n), name) for f, n, name in _FRAME.findall(Path(worker.dump).read_text())]
        where = innermost(frames[::-1])
        found = Finding(kind, where, message, worker.area, worker.number, worker.text)
        if self.report.add(found) and shows:
            print(found, flush=True)

    def _again(self, worker: _Worker, number: int) -> _Worker:
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        Path(worker.dump).unlink(missing_ok=True)
        return self._start(number)


def replay(area: str, number: int) -> int:
    """Make one call again, with its whole traceback."""
    from .areas import case

    call = case(area, number)
    print(call.text)
    try:
        print("gives", repr(call.run())[:2000])
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    found = attempt(area, number)
    print(found if found is not None else "fine")
    return int(found is not None)
