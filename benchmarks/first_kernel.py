"""The first kernel of a fresh process, beside Loopy: import, text, one split, CUDA source.

What a person waits for who runs a script: nothing is imported before, and both print the source of
the same schedule. All run in fresh processes, in turn and equally often, with Python's compiled
modules in place (a first round, which is not counted, writes them), and with the tools' own caches
off. Processor time, which other processes on the machine disturb least. The libraries below both
tools, and Python alone, stand beside as what neither can go below.

    python benchmarks/first_kernel.py --repeat 20 --json first_kernel.json
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import _report
from compile_time import HERE, install_loopy, versions_of

LOOPKIT = """
import loopkit as lk

knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0").cuda()
"""
LOOPY = """
import loopy as lp
import numpy as np
from loopy.version import MOST_RECENT_LANGUAGE_VERSION

knl = lp.make_kernel(
    "{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", target=lp.CudaTarget(),
    lang_version=MOST_RECENT_LANGUAGE_VERSION)
knl = lp.add_dtypes(knl, {"a": np.float32, "b": np.float32})
knl = lp.split_iname(knl, "i", 128, outer_tag="g.0", inner_tag="l.0")
lp.generate_code_v2(knl).device_code()
"""
LIBRARIES = "import numpy, islpy, pymbolic"
# Chosen: the imports of the libraries below are in both, so no more can be asked for.
TARGET = 0.7


def seconds(python: Path, script: str, folder: str) -> float:
    """Processor time of one fresh process; ``folder`` holds compiled modules."""
    environment = os.environ | {
        "LOOPY_NO_CACHE": "1",
        "LOOPKIT_NO_CACHE": "1",
        "PYTHONPATH": str(HERE.parent),
        "PYTHONPYCACHEPREFIX": folder,
        # Or else importing NumPy counts what the threads of its BLAS do while they wait.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(python), "-c", script], env=environment, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=10, help="processes of each (default 10)")
    parser.add_argument("--loopy-python", type=Path, help="a Python that has Loopy")
    _report.add_arguments(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loopy = options.loopy_python or install_loopy(Path(folder) / "loopy")
        head = _report.header("first kernel of a process", "islpy", "pymbolic")
        head["versions of Loopy's"] = versions_of(loopy)
        _report.print_header(head)
        print("Loopy's:", *head["versions of Loopy's"].items(), "\n")
        own = Path(sys.executable)
        cases = {
            "loopkit: import, one split, CUDA C, and the proof of it": (own, LOOPKIT),
            "Loopy: import, one split, CUDA C": (loopy, LOOPY),
            f"loopkit's libraries alone: {LIBRARIES}": (own, LIBRARIES),
            f"Loopy's libraries alone: {LIBRARIES}": (loopy, LIBRARIES),
            "Python alone": (own, "pass"),
        }
        found: dict[str, list[float]] = {name: [] for name in cases}
        for repetition in range(options.repeat + 1):
            names = list(cases) if repetition % 2 else list(reversed(cases))
            for name in names:
                taken = seconds(*cases[name], folder)
                if repetition:  # the first one compiles the modules
                    found[name].append(taken)
    rows = [
        {"what": name, "median": _report.median(all_), "least": min(all_), "most": max(all_)}
        for name, all_ in found.items()
    ]
    columns = ("what", "median", "least", "most")
    _report.print_table(
        ["a fresh process, processor seconds", *columns[1:]],
        [[row[column] for column in columns] for row in rows],
    )
    ours, theirs = list(found.values())[:2]
    ratio = _report.median(a / b for a, b in zip(ours, theirs, strict=True))
    met = "met" if ratio <= TARGET else "missed"
    print(f"\nloopkit of Loopy, median of neighbours: {ratio:.2f} (target {TARGET}: {met})")
    _report.write_json(options.json, {**head, "rows": rows, "all": found, "ratio": ratio})


if __name__ == "__main__":
    main()
