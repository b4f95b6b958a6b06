"""Speed on the GPU: schedules from `examples/` beside torch, cuBLAS and Triton, in one process.

Data are random and larger than the caches where that can matter. Every result is checked against
float64 before anything is timed, from outputs filled with NaN. Contestants take turns, each launch
timed by CUDA events of its own; what counts is the median.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --only sgemm stencil --variants
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _report

HERE = Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    _report.add_arguments(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="only these cases")
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer repeats")
    parser.add_argument("--variants", action="store_true", help="other schedules too")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each contestant")
    return parser.parse_args()


def timed(contestants: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Milliseconds of every launch; contestants take turns, for about ``seconds`` each."""
    import torch

    def once(run: Callable[[], Any]) -> tuple[Any, Any]:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        return start, end

    for run in contestants.values():
        run()
        run()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for run in contestants.values():
        run()
    torch.cuda.synchronize()
    a_round = time.perf_counter() - begin
    rounds = max(10, min(200, int(seconds * len(contestants) / a_round)))
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            events[name].append(once(run))
    torch.cuda.synchronize()
    return {n: [float(s.elapsed_time(e)) for s, e in pairs] for n, pairs in events.items()}


def bandwidths(quick: bool, seconds: float) -> dict[str, float]:
    """TB/s of a copy (read plus written) and of reading, the best of several ways."""
    import torch

    n = 2**26 if quick else 2**28
    a = torch.rand(n, device="cuda")
    b = torch.empty_like(a)
    ways: dict[str, Callable[[], Any]] = {
        "copy": lambda: b.copy_(a),
        "read by torch": lambda: torch.sum(a),
    }
    reader = _raw_reader(a)
    if reader is not None:
        ways["read"] = reader
    times = {name: _report.median(t) * 1e-3 for name, t in timed(ways, seconds).items()}
    rates = {name: (8e-12 if name == "copy" else 4e-12) * n / t for name, t in times.items()}
    reads = [rate for name, rate in rates.items() if name != "copy"]
    return {"copy": rates["copy"], "read": max(reads)}


READ = r"""
extern "C" __global__ void __launch_bounds__(512) read(float4 const *a, float *out, long long n)
{
    float sum = 0.0f;
    long long const step = 2048LL * gridDim.x;
    for (long long i = 2048LL * blockIdx.x + threadIdx.x; i + 1536 < n; i += step) {
        float4 v[4];
        #pragma unroll
        for (int u = 0; u < 4; ++u) v[u] = a[i + 512 * u];
        #pragma unroll
        for (int u = 0; u < 4; ++u) sum += (v[u].x + v[u].y) + (v[u].z + v[u].w);
    }
    if (sum == 1234.5f) out[0] = sum;
}
"""


def _raw_reader(a: Any) -> Callable[[], Any] | None:
    """A kernel that only reads; None without CuPy, which compiles it."""
    try:
        import cupy
        import torch
    except ImportError:
        return None
    kernel = cupy.RawKernel(READ, "read")
    out = torch.empty(1, device="cuda")
    arguments = (a.data_ptr(), out.data_ptr(), cupy.int64(a.numel() // 4))

    blocks = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    # Both libraries launch on the default stream.
    return lambda: kernel((blocks,), (512,), arguments)


def check(case: Any, output: Any) -> None:
    """Raise where what stands in the output is wrong."""
    error = float(case.check(output))
    if not error <= case.tolerance:
        raise ValueError(f"the result is wrong: error {error:.3g}, not {case.tolerance:g} at most")


def measure(
    case: Any, variants: bool, seconds: float, known: Mapping[str, float], wrong: list[str]
) -> list[Any]:
    """A row of the table for each contestant; what fails is not timed, but told in ``wrong``."""
    output = case.arrays[case.output]
    kernels = case.kernels if variants else dict(list(case.kernels.items())[:1])
    prepared: dict[str, Callable[[], Callable[[], Any]]] = {
        f"loopkit: {label}": functools.partial(kernel.bind, **case.arrays)
        for label, kernel in kernels.items()
    }
    prepared |= {name: functools.partial(lambda r: r, run) for name, run in case.rivals.items()}
    contestants: dict[str, Callable[[], Any]] = {}
    for name, prepare in prepared.items():
        output.fill_(float("nan"))
        try:
            run = prepare()
            run()
            check(case, output)
        except Exception as error:
            wrong.append(f"{case.name}, {name}: {type(error).__name__}: {error}")
            print(wrong[-1], file=sys.stderr)
            continue
        contestants[name] = run
    times = timed(contestants, seconds)
    rates = {name: case.work / (_report.median(t) * 1e-3) for name, t in times.items()}
    base = {**known, **rates}.get(case.against) if case.against else 1.0
    rows = []
    for name, rate in rates.items():
        ours = name.startswith("loopkit")
        row: dict[str, Any] = {
            "case": case.name,
            "size": case.size,
            "who": name,
            "ms": _report.median(times[name]),
            "ms min": min(times[name]),
            "ms max": max(times[name]),
            "rate": rate,
            "unit": case.unit,
            "of": case.against,
            "ratio": rate / base if case.against and base else None,
            "target": case.target if ours and case.target else None,
        }
        if ours:
            used = case.kernels[name.removeprefix("loopkit: ")].resources()
            row["registers"], row["spilled"] = used.registers, used.spill_stores
            row["shared"] = used.shared
        rows.append(row)
    return rows


def main() -> None:
    arguments = parse()
    import torch

    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU and torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(2026)
    import _gpu_cases

    from loopkit._run.nvrtc import nvrtc_version

    unknown = set(arguments.only) - set(_gpu_cases.CASES)
    if unknown:
        sys.exit(
            f"there is no {', '.join(sorted(unknown))}; there are {', '.join(_gpu_cases.CASES)}"
        )
    seconds = 0.1 if arguments.quick else arguments.seconds
    head = _report.header(
        "speed on the GPU", "torch", "triton", "cupy-cuda13x", "cuda-core", cuda=torch.version.cuda
    )
    head["versions"]["NVRTC"] = nvrtc_version()
    _report.print_header(head)
    known = bandwidths(arguments.quick, seconds)
    print(f"copy {known['copy']:.3f} TB/s (read plus written), read {known['read']:.3f} TB/s\n")
    rows: list[Any] = []
    wrong: list[str] = []
    for _, case in _gpu_cases.cases(arguments.only, arguments.quick):
        found = measure(case, arguments.variants, seconds, known, wrong)
        rows += found
        if found:
            print_rows(found)
        del case
        torch.cuda.empty_cache()
    _report.write_json(arguments.json, {**head, "bandwidth": known, "rows": rows, "wrong": wrong})
    if wrong:
        sys.exit("\n".join(wrong))


def print_rows(rows: list[Any]) -> None:
    first = rows[0]
    columns = [
        f"{first['case']} {first['size']}",
        "ms",
        first["unit"],
        f"of {first['of']}" if first["of"] else "",
        "target",
        "registers",
        "spilled",
        "shared",
    ]
    keys = ("ms", "rate", "ratio", "target", "registers", "spilled", "shared")
    _report.print_table(columns, [[row["who"], *(row.get(k) for k in keys)] for row in rows])
    print()


if __name__ == "__main__":
    main()
