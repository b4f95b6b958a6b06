"""How many modules and functions of loopkit a matrix product meets, step by step.

The README's product is made, split, given prefetches, lowered, proven and called.  A function is
met if it is called, a module if one of its functions is.  What is imported on the way is not
counted: it is the size of the code that a person reads who follows one call.

    python benchmarks/touched.py --json touched.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import loopkit as lk  # noqa: E402

FOLDERS = tuple(str(HERE.parent / name) for name in ("loopkit", "transforms", "codegen"))


def followed(work: Callable[[], Any]) -> tuple[Any, set[CodeType]]:
    """The result of some work, and the functions of loopkit that it called."""
    met: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDERS) and code.co_name[0] != "<":
            met.add(code)

    sys.setprofile(note)
    try:
        return work(), met
    finally:
        sys.setprofile(None)


def steps(kernel: Any) -> list[tuple[str, Callable[[Any], Any]]]:
    """What is done, in order: a name, and a function of the kernel so far."""
    return [
        ("make_kernel", lambda _: kernel()),
        ("split_iname", lambda k: k.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")),
        ("two more splits", lambda k: k.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
            .split_iname("k", 16)),
        ("add_prefetch", lambda k: k.add_prefetch("a", ["i_inner", "k_inner"])),
        ("a second one", lambda k: k.add_prefetch("b", ["k_inner", "j_inner"])),
        ("cuda()", lambda k: (k.cuda(), k)[1]),
        ("prove()", lambda k: (k.prove(), k)[1]),
        ("costs()", lambda k: (k.costs(n=1024, m=1024, l=1024), k)[1]),
    ]  # fmt: skip


def product() -> Any:
    """The README's matrix product, as text."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args()
    kernel: Any = None
    every: set[CodeType] = set()
    rows = []
    for name, step in steps(product):
        kernel, met = followed(partial(step, kernel))
        every |= met
        rows.append((name, len({c.co_filename for c in met}), len(met)))
    rows.append(("all of it", len({c.co_filename for c in every}), len(every)))
    print(f"{'':<16} modules  functions")
    for name, modules, functions in rows:
        print(f"{name:<16} {modules:>7}  {functions:>9,}")
    if options.json:
        named = {name: {"modules": m, "functions": f} for name, m, f in rows}
        options.json.write_text(json.dumps(named, indent=2) + "\n")


if __name__ == "__main__":
    main()
