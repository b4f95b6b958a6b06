"""Kernels are made, scheduled, proven, compared and shown from many threads at once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import islpy as isl
import pytest
from seams import SpentError, at_most, cached_property

import loopkit as lk


def _scheduled(name: str) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
        name=name,
    )
    return (
        knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def _answers(name: str) -> tuple[object, ...]:
    """Everything that is asked of a kernel, told apart by its name alone."""
    knl = _scheduled(name)
    text = lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < n - 1 }",
        "a[i, j] = a[i - 1, j + 1]",
        dtypes={"a": "float32"},
        name=name,
    )
    try:
        text.prioritize_loops("j, i")
        refused = ""
    except lk.IllegalTransformError as error:
        refused = str(error)
    proof = knl.prove()
    verdict = lk.verify(_scheduled(name), knl)
    return str(knl), knl.cuda(), proof.ok, str(verdict), refused, knl.key


def test_many_threads_get_the_answers_of_one() -> None:
    names = [f"kernel{number % 2}" for number in range(8)]
    alone = {name: _answers(name) for name in sorted(set(names))}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(_answers, names, timeout=300))
    assert together == [alone[name] for name in names]
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_one_kernel_is_shared_by_threads() -> None:
    knl = _scheduled("shared")
    with ThreadPoolExecutor(6) as pool:
        texts = list(pool.map(lambda _: (knl.cuda(), knl.prove().ok, str(knl)), range(8)))
    assert len(set(texts)) == 1


def test_a_budget_holds_for_its_own_thread() -> None:
    """What others do neither uses up a budget nor is stopped by it."""
    began = threading.Event()

    def spend() -> bool:
        try:
            with at_most(2_000):
                began.set()
                for size in range(2_000):
                    isl.Set(f"[n] -> {{ [i]: 0 <= i < n + {size} }}").lexmin()
        except SpentError:
            return True
        return False

    with ThreadPoolExecutor(2) as pool:
        spent = pool.submit(spend)
        began.wait()
        made = pool.submit(_scheduled, "beside")
        assert spent.result(60)
        assert made.result(60).cuda()


def test_values_that_need_each_other_are_computed_without_locks() -> None:
    """Two objects of one class, whose values need the other class's, as forms and floors do."""
    gate = threading.Barrier(2)

    class Node:
        def __init__(self, other: Node | None = None) -> None:
            self.other = other

        @cached_property
        def one(self) -> int:
            gate.wait(20)
            return 1 if self.other is None else self.other.two + 1

        @cached_property
        def two(self) -> int:
            return 2

    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(lambda n: n.one, Node(Node())) for _ in range(2)]
        assert [r.result(30) for r in results] == [3, 3]


def test_a_forked_process_does_not_wait_for_threads_that_it_lacks() -> None:
    """The lock that another thread held when the process was forked is free in the child."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    code = """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        import loopkit as lk
        from loopkit._budget import at_most

        def make():
            return lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", dtypes={"x": "float32"})

        held, done = threading.Event(), threading.Event()

        def hold():
            with at_most(5):
                held.set()
                done.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        child = os.fork()
        if not child:
            make().split_iname("i", 16).cuda()
            os._exit(7)
        _, status = os.waitpid(child, 0)
        done.set()
        holder.join()
        make().cuda()
        print(os.waitstatus_to_exitcode(status))
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout.strip() == "7"
