"""The process that runs kernels for another one, and what the two say to each other."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from _run_process import HERE, in_a_process
from _run_programs import MATMUL, SUMDIFF, axpy

from loopkit._errors import CompileError, LoopkitError, ResourceError
from loopkit._run import buffers, exchange, relaunch
from loopkit._run.buffers import Buffer
from loopkit._run.driver import DriverError

STAND_IN = "_run_stand_in:OnCpu"


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("end", ["", "os._exit(7)", "os.kill(os.getpid(), 9)"])
def test_it_ends_with_the_process_that_started_it(end: str) -> None:
    done = in_a_process(
        f"""
        import os
        from loopkit._run import relaunch
        print(relaunch.Worker({STAND_IN!r})._process.pid, flush=True)
        {end}
        """
    )
    pid = int(done.stdout)
    assert done.stderr == ""
    until = time.monotonic() + 10
    while is_there(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_there(pid)


@pytest.mark.host
def test_the_script_does_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
print("begins", flush=True)
import numpy as np
from _run_programs import axpy
from loopkit._run import relaunch
from loopkit._run.buffers import Buffer
x, y = np.ones(5, "f4"), np.ones(5, "f4")
buffers = Buffer(x.ctypes.data, 20, True), Buffer(y.ctypes.data, 20, True, True)
worker = relaunch.Worker({STAND_IN!r})
worker.launch(axpy(), 0, (1, 1, 1), [5, 2.0, *buffers])
print(y.sum())
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout == "begins\n15.0\n", done.stderr


@pytest.mark.host
def test_a_message_that_cannot_be_read_spoils_nothing() -> None:
    worker = relaunch.Worker(STAND_IN)
    worker._requests.write((7).to_bytes(8, "little") + b"garbage")
    worker._requests.flush()
    assert "UnpicklingError" in str(worker._receive().error())
    x, y = np.ones(5, "f4"), np.ones(5, "f4")
    arrays = Buffer(x.ctypes.data, 20, True), Buffer(y.ctypes.data, 20, True, True)
    worker.launch(axpy(), 0, (1, 1, 1), [5, 2.0, *arrays])
    worker.close()
    worker.close()
    assert y.sum() == 15 and worker._process.returncode == 0


# -- the parts


@pytest.mark.parametrize("is_named", [False, True])
def test_shared_memory_grows(is_named: bool) -> None:
    arena, view = buffers.Arena(is_named), buffers.View()
    assert len(arena.inherited) == (not is_named)
    for size in (1, 5000, 100, 50_000):
        arena.reserve(size)
        here = (ctypes.c_char * size).from_address(arena.address)
        there = (ctypes.c_char * size).from_address(view.open(arena.ticket))
        here[size - 1] = b"x"
        assert there[size - 1] == b"x"
        there[0] = b"y"
        assert here[0] == b"y"
    view.close()
    arena.close()


@pytest.mark.parametrize(
    "error",
    [
        DriverError("why", 700, "instead"),
        CompileError("why", source="source", log="log", instead="instead"),
        ResourceError("why", asked="asked", instead="instead"),
    ],
)
def test_errors_travel(error: LoopkitError) -> None:
    error.step = "step 3"
    failure = pickle.loads(pickle.dumps(exchange.Failure.of(error)))
    back = failure.error()
    assert type(back) is type(error)
    assert str(back) == str(error) and vars(back) == vars(error)
    assert failure.lost == isinstance(error, DriverError)


def test_programs_travel() -> None:
    for program in (MATMUL, SUMDIFF, axpy(frozenset("x"))):
        again = pickle.loads(pickle.dumps(program))
        assert again == program and hash(again) == hash(program)
