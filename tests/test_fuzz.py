"""Hostile calls of the public interface: a fixed sample, and the crew that runs long ones."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from effort import Watch
from fuzz.areas import AREAS, case
from fuzz.runner import Crew, attempt

SAMPLE = 40


@pytest.mark.parametrize("area", sorted(AREAS))
def test_hostile_calls_raise_nothing_foreign(area):
    found = [f for f in (attempt(area, number) for number in range(SAMPLE)) if f is not None]
    assert not found, "\n".join(map(str, found))


def test_cases_are_the_same_each_time():
    for area in AREAS:
        assert case(area, 3).text.split(" at 0x")[0] == case(area, 3).text.split(" at 0x")[0]


@pytest.mark.slow
def test_the_crew_runs_cases_and_comes_back():
    crew = Crew(seed=0, workers=1, limit=60, areas=("matches",))
    report = crew.run(10, shows=False)
    assert not any(worker.process.is_alive() for worker in crew.workers)
    assert report.findings == {}


def _replayed(number):
    """What a fresh process says of a case."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
    command = [sys.executable, "-m", "tests.fuzz", "--replay", f"transforms:{number}"]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True
    )
    return re.sub(r"0x\w+", "", done.stdout)


def test_cases_are_the_same_in_each_process():
    """Also the order of a set of words."""
    several = re.compile(r"frozenset\(\{'[^']*', ")
    number = next(n for n in range(1000) if several.search(case("transforms", n).text))
    first = _replayed(number)
    assert several.search(first)
    assert _replayed(number) == first


def _compute():
    while True:
        pass


def _have_a_child_compute():
    subprocess.run([sys.executable, "-c", "while True: pass"])


def _sleep():
    time.sleep(600)


@pytest.fixture
def started(request):
    """A process that does something without end."""
    process = multiprocessing.get_context("fork").Process(target=request.param)
    process.start()
    yield process.pid
    if request.param is _have_a_child_compute:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
    process.kill()
    process.join()


def _worked(pid, seconds, wall):
    """Whether a process has worked so long, before so much time has gone by."""
    watch, end = Watch(pid), time.monotonic() + wall
    while time.monotonic() < end:
        if watch.worked() >= seconds:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    "started", [_compute, _have_a_child_compute, _sleep], indirect=True, ids=lambda f: f.__name__
)
def test_what_never_ends_is_noticed(started):
    assert _worked(started, seconds=1.0, wall=120)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize("started", [_compute], indirect=True)
def test_what_waits_for_the_processor_is_not_blamed(started):
    os.kill(started, signal.SIGSTOP)
    assert not _worked(started, seconds=0.5, wall=2)
