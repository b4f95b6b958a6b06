"""The host executor in many threads and processes at once, forked ones and killed ones."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seams import cache as _cache
from seams import compiler, entries
from seams import host_launch as launch

import loopkit as lk

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the host executor runs on Linux only"),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    launch._load_runtime(compiler.need_compiler())
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("LOOPKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(launch, "_modules", {})
    yield tmp_path


def scan(factor: int = 1) -> lk.Kernel:
    """A kernel whose threads wait for each other: it runs as fibres on shared memory."""
    knl = lk.make_kernel(
        "{ [b, j]: 0 <= b < n and 0 <= j < 64 }",
        f"c[b, j] = {factor}*a[b, 63 - j] + j",
        dtypes={"a, c": "float32"},
        assumptions="n >= 1",
        name=f"scan{factor}",
    )
    return knl.tag_inames("b: g.0, j: l.0").add_prefetch("a", ["j"], default_tag="l.auto")


def expected(a: np.ndarray[Any, Any], factor: int = 1) -> np.ndarray[Any, Any]:
    return factor * a[:, ::-1] + np.arange(64, dtype=np.float32)


def data(rows: int = 40, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((rows, 64)).astype(np.float32)


def agrees(run: Callable[..., Any], factor: int = 1, rows: int = 40, seed: int = 0) -> bool:
    a = data(rows, seed)
    return bool((run(a=a) == expected(a, factor)).all())


# {{{ threads


def at_once(work: Callable[[int], Any], count: int) -> list[Any]:
    """What ``work`` gives in ``count`` threads that begin together."""
    together = threading.Barrier(count)

    def begin(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_threads_that_call_one_kernel_first(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = []
    build = compiler.Compiler.build_kernel

    def counted(self: Any, *args: Any, **more: Any) -> None:
        builds.append(args)
        build(self, *args, **more)

    monkeypatch.setattr(compiler.Compiler, "build_kernel", counted)
    run = scan().executor("host")
    assert all(at_once(lambda i: agrees(run, rows=30 + i, seed=i), 8))
    assert len(builds) == 1


def test_threads_that_call_different_kernels() -> None:
    kernels = [scan(factor) for factor in (1, 2, 3)]
    runs = [knl.executor("host", order=o) for knl in kernels for o in ("ascending", "random")]

    def work(number: int) -> bool:
        which = number % len(runs)
        return all(agrees(runs[which], which // 2 + 1, 400, number + i) for i in range(5))

    assert all(at_once(work, 12))


def test_threads_with_arrays_of_different_strides() -> None:
    run = scan().executor("host")

    def work(number: int) -> bool:
        a = data(80, number)[:: 1 + number % 2]
        c = np.zeros((len(a), 192), np.float32)[:, :: 3 - number % 3][:, :64]
        run(a=a, c=c)
        return bool((c == expected(a)).all())

    assert all(at_once(work, 6))


def test_threads_that_share_a_bound_call() -> None:
    """Its memory between two launches is allocated once."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        <> t[i] = a[i] + 1
        c[j] = t[n - 1 - j]
        """,
        dtypes={"a, c": "float32"},
    ).set_temporary_address_space("t", "global")
    a = data(300).ravel()
    call = knl.executor("host").bind(a=a)
    assert all((c == a[::-1] + 1).all() for c in at_once(lambda i: call(), 6))


def test_an_error_in_one_thread_is_its_own() -> None:
    run = scan().executor("host")

    def work(number: int) -> bool:
        if number % 2:
            return agrees(run, seed=number)
        with pytest.raises(lk.LoopkitError, match="axis 1 should have 64"):
            run(a=np.zeros((4, 63), np.float32))
        return True

    assert all(at_once(work, 8))


# }}}

# {{{ processes that are forked


def fork(work: Callable[[], bool]) -> int:
    """Start ``work`` in a process forked from this one, which says whether it was true."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return child


def ends_well(child: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def in_a_fork(work: Callable[[], bool]) -> bool:
    return ends_well(fork(work))


def uses_all() -> bool:
    """What was used before, what was not, isl, and a fault that is caught."""
    fresh = scan(5).executor("host")
    refused = False
    try:
        scan().tag_inames("j: g.0")
    except lk.LoopkitError:
        refused = True
    return agrees(fresh, 5) and agrees(scan().executor("host")) and refused


def test_forked_after_use() -> None:
    run = scan().executor("host")
    assert agrees(run, rows=600)
    assert in_a_fork(lambda: agrees(run, rows=600) and uses_all())
    assert agrees(run)


def test_forked_while_others_run() -> None:
    run, stop = scan().executor("host"), threading.Event()
    assert agrees(run)

    def busy() -> None:
        while not stop.is_set():
            assert agrees(run, rows=300)

    others = [threading.Thread(target=busy) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(in_a_fork(lambda: agrees(run, rows=300)) for _ in range(5))
    finally:
        stop.set()
        for other in others:
            other.join()


def test_locks_that_a_thread_held_are_free_in_the_child() -> None:
    run = scan(6).executor("host")
    launch._compiling.clear()
    with launch._lock, launch._first_use:
        assert in_a_fork(lambda: agrees(run, 6))


def test_handlers_are_those_from_before_in_a_child_of_a_launch() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGSEGV, signal.SIGFPE)]
    assert agrees(scan().executor("host"))
    assert [signal.getsignal(number) for number in (signal.SIGSEGV, signal.SIGFPE)] == before


# }}}

# {{{ processes that build at once, and are killed


def test_processes_that_build_at_once(own_cache: Path) -> None:
    run = scan(2).executor("host")
    children = [fork(lambda: agrees(run, 2)) for _ in range(8)]
    ended = [ends_well(child) for child in children]
    assert all(ended)
    # Nothing half-made is left, and what is there is whole.
    [path] = (own_cache / "host").iterdir()
    assert _cache.load("host", path.name) is not None
    assert agrees(run, 2)


def test_processes_killed_while_they_build(own_cache: Path) -> None:
    run = scan(4).executor("host")
    for delay in (0.0, 0.05, 0.2):
        child = fork(lambda: agrees(run, 4))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert agrees(run, 4)


def test_a_process_killed_while_it_stores(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = scan(4).executor("host")

    def killed(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as fatal:
        fatal.setattr(entries.os, "replace", killed)
        assert not in_a_fork(lambda: agrees(run, 4))
    [left] = (own_cache / "host").iterdir()
    os.utime(left, (0, 0))  # long ago
    entries._clean.cache_clear()
    assert agrees(run, 4)
    assert [len(p.name) for p in (own_cache / "host").iterdir()] == [64]


# }}}
