"""How long a process has worked, on a machine that may be busy with other things."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")


class Watch:
    """The seconds that a process and its children have worked.

    That is their processor time, and besides it the time in which all of them slept: what
    waits for something that never comes does not end either.  Time in which they were ready
    and other processes ran does not count.  Where there is no ``/proc``, all time does.
    """

    def __init__(self, pid: int, begin: float = 0.0) -> None:
        """Watch ``pid``; ``begin`` is processor time of it that does not count."""
        self.pid = pid
        self.begin = begin
        self._processor, _ = _state(pid)
        self._slept = 0.0
        self.seen = time.monotonic()

    def worked(self) -> float:
        """The seconds until now; to be asked a few times in each second."""
        processor, sleeps = _state(self.pid)
        now = time.monotonic()
        if sleeps and processor == self._processor:
            self._slept += now - self.seen
        self._processor, self.seen = processor, now
        return processor - self.begin + self._slept


class DiaryWatch:
    """How long a process has worked since it wrote into its diary."""

    def __init__(self, pid: int, diary: Path) -> None:
        self.diary = diary
        self._watch = Watch(pid)
        self._written, self._began = 0, 0.0

    def worked(self) -> float:
        """The seconds until now; to be asked a few times in each second."""
        worked = self._watch.worked()
        written = self.diary.stat().st_mtime_ns if self.diary.exists() else 0
        if written != self._written:
            self._written, self._began = written, worked
        return worked - self._began


def own_time() -> float:
    """The processor time that this process and its ended children have taken."""
    return sum(os.times()[:4])


def _state(pid: int) -> tuple[float, bool]:
    """The processor time of a process and its children, and whether all of them sleep."""
    every: dict[int, tuple[int, str, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended meanwhile.
        ticks = sum(map(int, fields[11:15]))
        every[int(folder.name)] = int(fields[1]), fields[0], ticks * _TICK
    family = {pid} & every.keys()
    while more := {p for p, (parent, *_) in every.items() if parent in family} - family:
        family |= more
    return (
        sum(every[p][2] for p in family),
        all(every[p][1] in "SZ" for p in family),
    )
