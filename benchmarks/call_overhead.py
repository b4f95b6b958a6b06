"""What a call costs besides the kernel: a bare launch, warm calls, bound calls, graphs.

Every number is the time of one call on the CPU, in microseconds, with a kernel that does next to
nothing, on matrices of 16 by 16. All results are checked before anything is timed. Batches of all
contestants take turns; the median counts, and what a call costs over a bare launch is the median of
the differences within a turn. Each row says what one call does.

    python benchmarks/call_overhead.py [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import _report
import numpy as np
import pymbolic.primitives as p

from loopkit._program import ArrayParam, Program, ValueParam
from loopkit._run import driver
from loopkit._run import launch_call as launch
from loopkit._run.executor import CudaExecutor

CALLS, TURNS = 500, 101


def program() -> Program:
    """``c = a + b`` for matrices, by hand, so that only the call is measured."""
    n, m = p.Variable("n"), p.Variable("m")
    int32, float32 = np.dtype("int32"), np.dtype("float32")

    def matrix(name: str, written: bool) -> ArrayParam:
        return ArrayParam(name, float32, (n, m), (m, 1), not written, written)

    source = """\
extern "C" __global__ void __launch_bounds__(64)
add(int n, int m, const float *__restrict__ a, const float *__restrict__ b,
    float *__restrict__ c)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n * m)
        c[i] = a[i] + b[i];
}
"""
    return Program(
        "add",
        source,
        (
            ValueParam("n", int32),
            ValueParam("m", int32),
            matrix("a", False),
            matrix("b", False),
            matrix("c", True),
        ),
        grid=(p.FloorDiv(n * m + 63, 64), 1, 1),
        block=(64, 1, 1),
        arguments=("a", "b", "c", "n", "m"),
    )


def measure(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Microseconds of one call in a batch; the queue is empty before it."""
    wait()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


BARE = "bare: cuLaunchKernel by ctypes, arguments packed and converted before"


def bare_launches(pointers: list[int]) -> dict[str, Callable[[], Any]]:
    """cuLaunchKernel by ctypes, in the two usual ways of calling it."""
    device = driver.device(0)
    with device.current():
        from loopkit._run.module import load

        loaded = load(program(), device)
    values: list[Any] = [ctypes.c_int(16), ctypes.c_int(16)]
    values += [ctypes.c_void_p(pointer) for pointer in pointers]
    table = (ctypes.c_void_p * 5)(*(ctypes.addressof(value) for value in values))
    function, stream = ctypes.c_void_p(loaded.function), ctypes.c_void_p(0)

    typed = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    typed.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    plain = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    keep = (loaded, values)

    def with_types(keep: Any = keep) -> None:
        typed(function, 4, 1, 1, 64, 1, 1, 0, stream, table, None)

    def without(keep: Any = keep) -> None:
        plain(function, 4, 1, 1, 64, 1, 1, 0, stream, table, None)

    return {
        BARE: without,
        "bare: the same, with argument types declared to ctypes": with_types,
    }


def torch_calls() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """The measured calls with PyTorch's tensors."""
    import torch

    a, b, c = (torch.rand(16, 16, device="cuda") for _ in range(3))
    knl = CudaExecutor(lambda strided: program())
    knl(a=a, b=b, c=c)
    torch.testing.assert_close(c, a + b)
    call, bound = knl.call, knl.bind(a=a, b=b, c=c)
    c.fill_(float("nan"))
    bound()
    torch.testing.assert_close(c, a + b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        knl(a=a, b=b, c=c)
    c.fill_(float("nan"))
    graph.replay()
    torch.testing.assert_close(c, a + b)
    wait = torch.cuda.synchronize
    raw: Any = bare_launches([x.data_ptr() for x in (a, b, c)])
    for function in raw.values():
        c.fill_(float("nan"))
        function()
        torch.testing.assert_close(c, a + b)
    result: dict[str, Any] = {name: (function, wait) for name, function in raw.items()}
    result["torch: three arrays checked, launched"] = (lambda: call(a=a, b=b, c=c)), wait
    result["torch: the same through the executor's __call__"] = (lambda: knl(a=a, b=b, c=c)), wait
    allocating = CudaExecutor(lambda strided: program())
    torch.testing.assert_close(allocating(a=a, b=b), a + b)
    allocate = allocating.call
    result["torch: two arrays checked, the output allocated"] = (lambda: allocate(a=a, b=b)), wait
    shapes = [torch.rand(16, n, device="cuda") for n in range(1, 65)]
    count = itertools.count()

    def new_shape() -> Any:
        x = shapes[next(count) % len(shapes)]
        return knl(a=x, b=x)

    result["torch: another shape each time, the output allocated"] = new_shape, wait
    result["bind, torch: checked once before, launched"] = bound, wait
    result["graph: a captured CUDA graph of one call replayed"] = graph.replay, wait
    result["torch.add(a, b, out=c), for comparison"] = (lambda: torch.add(a, b, out=c)), wait
    return result


def cupy_calls() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """The measured calls with CuPy's arrays."""
    import cupy

    a, b, c = (cupy.random.rand(16, 16, dtype="f4") for _ in range(3))
    knl = CudaExecutor(lambda strided: program())
    knl(a=a, b=b, c=c)
    cupy.testing.assert_allclose(c, a + b)
    call, bound = knl.call, knl.bind(a=a, b=b, c=c)
    wait = cupy.cuda.runtime.deviceSynchronize
    return {
        "cupy: three arrays checked, launched": ((lambda: call(a=a, b=b, c=c)), wait),
        "bind, cupy: checked once before, launched": (bound, wait),
        "cupy.add(a, b, out=c), for comparison": ((lambda: cupy.add(a, b, out=c)), wait),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    _report.add_arguments(parser)
    options = parser.parse_args()
    if not driver.has_gpu():
        print("there is no GPU here, and nothing to measure", file=sys.stderr)
        return 1
    launch.launch_function()
    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
    for library, make in (("torch", torch_calls), ("cupy", cupy_calls)):
        try:
            __import__(library)
        except ImportError:
            print(f"{library} is not installed", file=sys.stderr)
            continue
        calls.update(make())
    head = _report.header("overhead of a call", "torch", "cupy-cuda13x", "cuda-core")
    _report.print_header(head)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(TURNS):
        for name, (call, wait) in calls.items() if turn % 2 else reversed(calls.items()):
            times[name].append(measure(call, wait))
    rows = []
    for name, found in times.items():
        row = {"what": name, "µs": statistics.median(found), "least": min(found)}
        if BARE in times:
            over = zip(found, times[BARE], strict=True)
            row["over bare"] = statistics.median(one - bare for one, bare in over)
        rows.append(row)
    columns = ["what", "µs", "least", "over bare"]
    _report.print_table(columns, [[row.get(column) for column in columns] for row in rows])
    _report.write_json(options.json, {**head, "calls": CALLS, "turns": TURNS, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
