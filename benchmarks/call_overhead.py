"""What a call costs besides the kernel: a bare launch, warm calls, bound calls, graphs.

Every number is the median time of one call on the CPU, in microseconds, with a kernel
that does next to nothing:

* bare: cuLaunchKernel through ctypes with the arguments packed beforehand, once with
  argument types declared, and once with all arguments converted beforehand, too;
* torch, cupy: a loopkit call with three arrays, all of them checked;
* bind: the same with the arguments checked once;
* graph: replaying a captured CUDA graph of one such call.

    python benchmarks/call_overhead.py [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pymbolic.primitives as p

from loopkit._program import ArrayParam, Program, ValueParam
from loopkit._run import driver, launch
from loopkit._run.executor import CudaExecutor

CALLS, REPEATS = 500, 41


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
    """Median microseconds of one call; the queue is empty before each batch."""
    times = []
    for _ in range(REPEATS):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    wait()
    return statistics.median(times)


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

    return {"bare, typed": with_types, "bare": without}


def torch_calls() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """The measured calls with PyTorch's tensors."""
    import torch

    a, b, c = (torch.rand(16, 16, device="cuda") for _ in range(3))
    knl = CudaExecutor(lambda strided: program())
    knl(a=a, b=b, c=c)
    torch.testing.assert_close(c, a + b)
    call, bound = knl.call, knl.bind(a=a, b=b, c=c)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        knl(a=a, b=b, c=c)
    wait = torch.cuda.synchronize
    raw: Any = bare_launches([x.data_ptr() for x in (a, b, c)])
    result: dict[str, Any] = {name: (function, wait) for name, function in raw.items()}
    result["torch"] = (lambda: call(a=a, b=b, c=c)), wait
    result["torch, through the executor"] = (lambda: knl(a=a, b=b, c=c)), wait
    allocating = CudaExecutor(lambda strided: program())
    allocating(a=a, b=b)
    allocate = allocating.call
    result["torch, output allocated"] = (lambda: allocate(a=a, b=b)), wait
    shapes = [torch.rand(16, n, device="cuda") for n in range(1, 65)]
    count = itertools.count()

    def new_shape() -> Any:
        x = shapes[next(count) % len(shapes)]
        return knl(a=x, b=x)

    result["torch, another shape each time"] = new_shape, wait
    result["bind, torch"] = bound, wait
    result["graph"] = graph.replay, wait
    result["torch.add, for comparison"] = (lambda: torch.add(a, b, out=c)), wait
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
        "cupy": ((lambda: call(a=a, b=b, c=c)), wait),
        "bind, cupy": (bound, wait),
        "cupy.add, for comparison": ((lambda: cupy.add(a, b, out=c)), wait),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the numbers there, too")
    options = parser.parse_args()
    if not driver.has_gpu():
        print("there is no GPU here, and nothing to measure", file=sys.stderr)
        return 1
    launch.launch_function()
    calls: dict[str, Any] = {}
    versions = {"python": platform.python_version()}
    for library, make in (("torch", torch_calls), ("cupy", cupy_calls)):
        try:
            module = __import__(library)
        except ImportError:
            print(f"{library} is not installed", file=sys.stderr)
            continue
        versions[library] = module.__version__
        calls.update(make())
    machine = {"gpu": driver.device(0).name, "cpu": _cpu(), **versions}
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    # All in turn, several times over: the clock of the CPU drifts.
    results: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(3):
        for name, (call, wait) in calls.items():
            results[name].append(measure(call, wait))
    medians = {name: statistics.median(times) for name, times in results.items()}
    for name, value in medians.items():
        over = f"{value - medians['bare']:+8.2f} over bare" if "bare" in medians else ""
        print(f"{name:32} {value:8.2f} µs {over}")
    if options.json:
        Path(options.json).write_text(
            json.dumps({"machine": machine, "microseconds": medians}, indent=2) + "\n"
        )
    return 0


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    sys.exit(main())
