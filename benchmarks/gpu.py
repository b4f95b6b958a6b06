"""Speed on the GPU: schedules from `examples/` beside torch, cuBLAS, Triton and CUDA by hand.

Data are random and larger than the caches where that can matter. Every result is checked against
float64 before anything is timed, from outputs filled with NaN. Each row says for which sizes its
kernel is right ("any size": guarded; "full tiles": such sizes are assumed, and checked at a call),
and of rivals how they were tuned ("untuned": as a user writes it first). In each case there is one
reference, a limit of the hardware or a rival; every other contestant alternates with it in short
slots, and what counts is the median of the ratios of neighbouring slots. Targets are shares of the
reference; below each table stands where they come from.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --only sgemm stencil --variants
    python benchmarks/gpu.py --only softmax layernorm sum argmin histogram scatter spmv-short
    python benchmarks/gpu.py --rest 0.06     # the card idles before each slot: clocks stay high
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import _report


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    _report.add_arguments(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="only these cases")
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer repeats")
    parser.add_argument("--variants", action="store_true", help="other schedules too")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each contestant")
    parser.add_argument("--rest", type=float, default=0.0, help="idle seconds before each slot")
    return parser.parse_args()


def limits(quick: bool) -> dict[str, Any]:
    """What memory does at best, as contestants in TB/s: a copy (read plus written), reading."""
    import torch
    from _gpu_timing import Contestant

    n = 2**26 if quick else 2**28
    a = torch.rand(n, device="cuda")
    b = torch.empty_like(a)
    try:
        from _cuda_texts import reader

        read = Contestant("read: a kernel that only reads", reader(a), 4e-12 * n)
    except ImportError:
        read = Contestant("read: torch.sum, as CuPy is missing", lambda: torch.sum(a), 4e-12 * n)
    copy = Contestant("copy: torch's copy_, read plus written", lambda: b.copy_(a), 8e-12 * n)
    return {"copy": copy, "read": read}


def check(case: Any, result: Any) -> None:
    """Raise where a result is wrong."""
    error = float(case.check(result))
    if not error <= case.tolerance:
        raise ValueError(f"the result is wrong: error {error:.3g}, not {case.tolerance:g} at most")


def right(case: Any, variants: bool, wrong: list[str]) -> dict[str, tuple[str, Any]]:
    """Who computes what is wanted: the row's text and what to run, by name; others in ``wrong``."""
    prepared: dict[str, tuple[Callable[[], Any], Callable[[], str], bool]] = {
        f"loopkit: {label}": (functools.partial(kernel.bind, **case.arrays), str, False)
        for label, kernel in case.kernels.items()
        if variants or label in case.counts
    }
    for name, rival in case.rivals.items():
        prepared[name] = (functools.partial(lambda run: run, rival.run), rival.how, rival.returns)
    found = {}
    for name, (prepare, how, returns) in prepared.items():
        case.reset()
        try:
            run = prepare()
            returned = run()
            check(case, case.result(returned if returns else None))
            text = how()
        except Exception as error:
            wrong.append(f"{case.name}, {name}: {type(error).__name__}: {error}")
            print(wrong[-1], file=sys.stderr)
            continue
        found[name] = (f"{name}; {text}" if text else name, run)
    return found


def measure(
    case: Any, arguments: argparse.Namespace, known: Mapping[str, Any], wrong: list[str]
) -> list[Any]:
    """A row of the table for each contestant; what fails is not timed, but told in ``wrong``."""
    from _gpu_timing import Contestant, clocks, compare

    runs = right(case, arguments.variants, wrong)
    contestants = {name: Contestant(name, run, case.work) for name, (_, run) in runs.items()}
    if not contestants:
        return []
    references = [known.get(name) or contestants.get(name) for name in case.against]
    reference = next((r for r in references if r is not None), None)
    slots = compare(reference, list(contestants.values()), arguments.seconds, arguments.rest)
    state = clocks()
    rows = []
    for name in [*contestants, *(n for n in slots if n not in contestants)]:
        found = slots[name]
        work = contestants[name].work if name in contestants else reference.work
        label = name.removeprefix("loopkit: ")
        target = case.targets.get(label) if label != name and reference is references[0] else None
        row: dict[str, Any] = {
            "case": case.name,
            "size": case.size,
            "who": runs[name][0] if name in runs else name,
            "ms": 1e3 * _report.median(found.seconds),
            "ms min": 1e3 * min(found.seconds),
            "ms max": 1e3 * max(found.seconds),
            "rate": work / _report.median(found.seconds),
            "unit": case.unit,
            "of": reference.name if reference else None,
            "ratio": _report.median(found.ratios) if found.ratios else None,
            "ratios": found.ratios,
            "target": target.share if target else None,
            "origin of the target": target.origin if target else None,
            "clocks after": state,
        }
        if label != name:
            found_of = case.kernels[label].resources()
            # Of several launches the one that needs most.
            used = found_of if isinstance(found_of, tuple) else (found_of,)
            row["registers"] = max(one.registers for one in used)
            row["spilled"] = max(one.spill_stores for one in used)
            row["shared"] = max(one.shared for one in used)
        rows.append(row)
    return rows


def main() -> None:
    arguments = parse()
    try:
        import torch
    except ImportError:
        sys.exit("this benchmark needs torch, and a GPU: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU, and torch finds none")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(2026)
    import _gpu_cases
    from _gpu_timing import clocks, told

    from loopkit._run.nvrtc import nvrtc_version

    unknown = set(arguments.only) - set(_gpu_cases.CASES)
    if unknown:
        sys.exit(
            f"there is no {', '.join(sorted(unknown))}; there are {', '.join(_gpu_cases.CASES)}"
        )
    if arguments.quick:
        arguments.seconds = min(arguments.seconds, 0.1)
    head = _report.header(
        "speed on the GPU", "torch", "triton", "cupy-cuda13x", "cuda-core", cuda=torch.version.cuda
    )
    head["versions"]["NVRTC"] = nvrtc_version()
    head |= {"clocks before": clocks(), "rest": arguments.rest, "seconds": arguments.seconds}
    _report.print_header(head)
    regime = f"rested {arguments.rest:g} s before each" if arguments.rest else "back to back"
    print(f"{told(head['clocks before'])}; slots {regime}\n")
    known = limits(arguments.quick)
    rows: list[Any] = []
    wrong: list[str] = []
    for _, case in _gpu_cases.cases(arguments.only, arguments.quick):
        found = measure(case, arguments, known, wrong)
        rows += found
        if found:
            print_rows(found)
        del case
        torch.cuda.empty_cache()
    _report.write_json(arguments.json, {**head, "rows": rows, "wrong": wrong})
    if wrong:
        sys.exit("\n".join(wrong))


def print_rows(rows: list[Any]) -> None:
    from _gpu_timing import told

    first = rows[0]
    columns = [
        f"{first['case']} {first['size']}",
        "ms",
        first["unit"],
        "of reference",
        "target",
        "registers",
        "spilled",
        "shared",
    ]
    keys = ("ms", "rate", "ratio", "target", "registers", "spilled", "shared")
    _report.print_table(columns, [[row["who"], *(row.get(k) for k in keys)] for row in rows])
    print(f"reference: {first['of'] or 'none'}; {told(first['clocks after'])}")
    for share, origin in {(row["target"], row["origin of the target"]) for row in rows}:
        if share:
            print(f"target {share:g} of the reference: {origin}")
    print()


if __name__ == "__main__":
    main()
