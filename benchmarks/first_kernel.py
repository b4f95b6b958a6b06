"""The first kernel of a fresh process, beside Loopy: import, text, one split, source.

What a person waits for who runs a script. Processor time, which other processes on the machine
disturb least; both run in turn, caches of kernels off, Python's own on.

    python benchmarks/first_kernel.py --repeat 20
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from compile_time import HERE, install_loopy

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
TARGET = 0.7


def seconds(python: Path, script: str, folder: str) -> float:
    """Processor time of one fresh process; ``folder`` holds compiled modules."""
    environment = os.environ | {
        "LOOPY_NO_CACHE": "1",
        "PYTHONPATH": str(HERE.parent),
        "PYTHONPYCACHEPREFIX": folder,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(python), "-c", script], env=environment, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--loopy-python", type=Path, help="a Python that has Loopy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loopy = options.loopy_python or install_loopy(Path(folder) / "loopy")
        cases = {"loopkit": (Path(sys.executable), LOOPKIT), "Loopy": (loopy, LOOPY)}
        found: dict[str, list[float]] = {name: [] for name in cases}
        for repetition in range(options.repeat + 1):
            for name, (python, script) in cases.items():
                taken = seconds(python, script, folder)
                if repetition:  # the first one compiles the modules
                    found[name].append(taken)
    for name, taken_ in found.items():
        print(f"{name:8} {min(taken_):.3f} s (median {statistics.median(taken_):.3f} s)")
    ratio = min(found["loopkit"]) / min(found["Loopy"])
    print(f"of Loopy's: {ratio:.2f} (the goal is {TARGET})")


if __name__ == "__main__":
    main()
