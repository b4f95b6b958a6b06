"""What one fresh process of `before_after.py` and `checker.py` measures.

    PYTHONPATH=CHECKOUT python _work.py TASK EXAMPLES_FOLDER

Only public names are used that checkouts of some age have too.  Stdout gets one line of JSON:
``numbers`` (name: value), ``steps`` (which: seconds), ``facts`` (name: text), ``missing`` (what
could not be measured: why).
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from _fresh import CLASSIC
from _steps import import_everything

CALLS, BATCHES = 100, 15
LOOPS = 100

# Steps time themselves with this clock.  Here it is the processor time of the process, which others
# on the machine disturb least.
wall = time.perf_counter
time.perf_counter = time.process_time


class Found:
    """The numbers of one process."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.steps: dict[str, float] = {}
        self.facts: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Something that a checkout may lack: the reason is kept, and the others go on."""
        try:
            yield
        except Exception as error:
            lines = str(error).splitlines() or [""]
            self.missing[name] = f"{type(error).__name__}: {lines[0]}"


def small_kernel(lk: Any) -> Any:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    return knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")


def imports(found: Found) -> None:
    """`import loopkit`, and the first kernel after it, in a process that did neither before."""
    loaded = set(sys.modules)
    start = time.process_time()
    lk = importlib.import_module("loopkit")
    found.numbers["import loopkit, s"] = time.process_time() - start
    new = set(sys.modules) - loaded
    small_kernel(lk).cuda()
    found.numbers["import and first CUDA C, s"] = time.process_time() - start
    found.numbers["modules that import loads"] = len(new)
    found.numbers["... of them loopkit's"] = sum(name.split(".")[0] == "loopkit" for name in new)
    root = Path(lk.__file__).resolve().parent.parent
    files = [
        f for room in ("loopkit", "codegen", "transforms") for f in (root / room).rglob("*.py")
    ]
    texts = {f.resolve(): f.read_text(encoding="utf-8") for f in files}
    found.numbers["modules of the product"] = len(texts)
    found.numbers["lines of the product"] = sum(t.count("\n") for t in texts.values())


def get_ready(lk: Any) -> None:
    """Nothing is left to import, lazily neither, nor to be made once for all kernels."""
    import_everything(lk)
    warm = lk.make_kernel(
        "{ [x, y, z]: 0 <= x < p and 0 <= y, z < q }",
        "h[x, y] = sum(z, f[x, z]*g[z, y])",
        dtypes={"f, g, h": "float32"},
    )
    warm = warm.split_iname("x", 8, outer_tag="g.0", inner_tag="l.0").split_iname("z", 8)
    warm = warm.add_prefetch("f", ["x_inner", "z_inner"], default_tag="l.auto")
    warm.cuda()
    with suppress(Exception):  # what cannot be proven is told where that is measured
        warm.prove()
    gc.collect()
    gc.freeze()


def example(found: Found, name: str, folder: str) -> None:
    """All schedules of one example: their making and CUDA C, each step, and their proofs."""
    import loopkit as lk

    sys.path.insert(0, folder)
    module = importlib.import_module(name)
    get_ready(lk)
    kernels: dict[str, Any] = {}
    with found.part("text to CUDA"):
        start = time.process_time()
        kernels = module.make()
        sources = {title: knl.cuda() for title, knl in kernels.items()}
        found.numbers["text to CUDA"] = time.process_time() - start
        for title, source in sources.items():
            digest = hashlib.sha256(source.encode()).hexdigest()
            found.facts[f"CUDA C of {name}, {title}"] = digest[:12]
    with found.part("steps"):
        for title, knl in kernels.items():
            for number, step in enumerate(knl.history, start=1):
                found.steps[f"{name}, {title}, {number}: {step.call()}"] = step.seconds
        found.numbers["steps"] = sum(found.steps.values())
    with found.part("prove"):
        start = time.process_time()
        proofs = {title: knl.prove() for title, knl in kernels.items()}
        found.numbers["prove"] = time.process_time() - start
        for title, proof in proofs.items():
            found.facts[f"proof of {name}, {title}"] = str(proof).split(" (")[0].splitlines()[0]


def chain(found: Found) -> None:
    """Dependent loops over arrays: a step on each of them, then one on all.

    ``t0[i0] = a[i0] + 0``, ``t1[i1] = t0[i1] + 1``, and so on.
    """
    import loopkit as lk

    get_ready(lk)
    names = ["a", *(f"t{k}" for k in range(LOOPS - 1)), "out"]
    text = "\n".join(f"{names[k + 1]}[i{k}] = {names[k]}[i{k}] + {k}" for k in range(LOOPS))
    domains = [f"{{ [i{k}]: 0 <= i{k} < n }}" for k in range(LOOPS)]
    knl = lk.make_kernel(domains, text, dtypes={", ".join(names): "float32"})
    for number in range(LOOPS):
        knl = knl.split_iname(f"i{number}", 128)
    single = [step.seconds for step in knl.history]
    knl = knl.tag_inames({f"i{number}_inner": "l.0" for number in range(LOOPS)})
    title = f"chain of {LOOPS} loops"
    found.numbers[f"{title}: median step on one, s"] = statistics.median(single)
    found.numbers[f"{title}: worst step on one, s"] = max(single)
    found.numbers[f"{title}: a step on all, s"] = knl.history[-1].seconds


def classic(found: Found, name: str, folder: str) -> None:
    """A classic text in several orders of its steps: each step, the CUDA C, and its proof."""
    sys.path.insert(0, folder)
    import classics

    import loopkit as lk

    get_ready(lk)
    for title in classics.ORDERS:
        text = classics.CLASSICS[name]
        knl = text.make()
        orders = text.orders(knl, name)
        if title not in orders:
            continue
        for scheduled in classics.in_order(knl, orders[title]):
            knl = scheduled
        for number, step in enumerate(knl.history, start=1):
            found.steps[f"{name}, {title}, {number}: {step.call()}"] = step.seconds
        found.numbers[f"{title}: step"] = max(step.seconds for step in knl.history)
        start = time.process_time()
        knl.cuda()
        found.numbers[f"{title}: cuda"] = time.process_time() - start
        start = time.process_time()
        proof = knl.prove()
        found.numbers[f"{title}: prove"] = time.process_time() - start
        if not proof.ok:
            found.missing[f"{name}, {title}"] = str(proof).splitlines()[0]


def warm_call(
    call: Callable[[], Any], clock: Callable[[], float], wait: Callable[[], Any]
) -> float:
    """Microseconds of one call: the median of some batches."""
    for _ in range(CALLS):
        call()
    times = []
    for _ in range(BATCHES):
        wait()
        start = clock()
        for _ in range(CALLS):
            call()
        times.append((clock() - start) / CALLS * 1e6)
    return statistics.median(times)


def calls(found: Found, executor: str) -> None:
    """A warm call, and a bound one, of a kernel that does next to nothing."""
    import loopkit as lk

    clock, wait = time.process_time, lambda: None
    if executor == "host":
        import numpy as np

        a, b = np.ones(16, np.float32), np.zeros(16, np.float32)
    else:
        import torch

        a, b = torch.ones(16, device="cuda"), torch.zeros(16, device="cuda")
        clock, wait = wall, torch.cuda.synchronize
    knl = small_kernel(lk)
    with found.part(f"call on {executor}"):
        run = knl.executor(executor)
        run(a=a, b=b)
        assert float(b.sum()) == 32, "the result is wrong"
        found.numbers[f"call on {executor}, µs"] = warm_call(lambda: run(a=a, b=b), clock, wait)
    with found.part(f"bound call on {executor}"):
        bound = run.bind(a=a, b=b)
        found.numbers[f"bound call on {executor}, µs"] = warm_call(bound, clock, wait)


def main() -> None:
    task, folder = sys.argv[1:]
    out = os.dup(1)  # what a library prints must not mix with the JSON
    os.dup2(2, 1)
    found = Found()
    with found.part(task):
        if task == "imports":
            imports(found)
        elif task == "chain":
            chain(found)
        elif task.startswith(CLASSIC):
            classic(found, task.removeprefix(CLASSIC), folder)
        elif task in ("host", "cuda"):
            calls(found, task)
        else:
            example(found, task, folder)
    found.facts["loopkit"] = str(getattr(sys.modules.get("loopkit"), "__file__", None))
    os.write(out, json.dumps(vars(found)).encode() + b"\n")


if __name__ == "__main__":
    main()
