"""``loopkit demo``: a matrix product, from its text to its result."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from loopkit._cli._output import Output
from loopkit._execute import best_executor
from loopkit._measure.measure import measure

DOMAIN = "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }"
TEXT = "c[i, j] = sum(k, a[i, k] * b[k, j])"

#: The schedule, call by call.
STEPS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("split_iname", ("i", 16), {"outer_tag": "g.1", "inner_tag": "l.1"}),
    ("split_iname", ("j", 16), {"outer_tag": "g.0", "inner_tag": "l.0"}),
    ("split_iname", ("k", 16), {}),
    ("add_prefetch", ("a", ["i_inner", "k_inner"]), {"default_tag": "l.auto"}),
    ("add_prefetch", ("b", ["k_inner", "j_inner"]), {"default_tag": "l.auto"}),
)

#: Sizes that no tile divides, as large as each executor does in a moment.
SIZES = {"cuda": (4093, 4001, 4057), "host": (509, 491, 521), "reference": (45, 37, 51)}

WHY = {
    "cuda": "Running it on the GPU.",
    "host": "There is no GPU here: running the same source on the CPU.",
    "reference": "There is no GPU here, and no C++ compiler either, with which the same source "
    "would run on the CPU\n(Debian, Ubuntu: apt install g++). The reference interpreter runs the "
    "kernel's text instead, at a\nsmaller size.",
}


def demo(*, n: int | None, m: int | None, l: int | None, executor: str | None) -> int:
    """Run the demonstration; the exit code is 1 where the result is wrong."""
    output = Output()
    kernel = schedule(output)
    output.heading("The CUDA C:")
    output.text()
    with output.working("generating source"):
        source = str(kernel.cuda())
    output.code(source, "cuda")

    executor, why = choose(executor)
    output.text()
    output.text(why, style="bold")
    default = SIZES[executor]
    sizes = tuple(given or usual for given, usual in zip((n, m, l), default, strict=True))
    return run(output, kernel, executor, sizes)


def schedule(output: Output) -> Any:
    """Declare the product and transform it step by step, showing the nest each time."""
    import loopkit

    lk: Any = loopkit
    output.text("A kernel says what is computed:", style="bold")
    output.text()
    output.code(f'lk.make_kernel(\n    "{DOMAIN}",\n    "{TEXT}",', "python")
    output.code('    dtypes={"a, b, c": "float32"}, assumptions="n, m, l >= 1")', "python")
    kernel = lk.make_kernel(
        DOMAIN,
        TEXT,
        name="matmul",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )
    output.text()
    output.text(str(kernel))
    output.heading("Transforms say how; each one's result is a kernel again:")
    for name, args, kwargs in STEPS:
        kernel = getattr(kernel, name)(*args, **kwargs)
        output.text()
        output.code(kernel.history[-1].call(), "python")
        output.text()
        output.text(str(kernel))
    return kernel


def choose(asked: str | None) -> tuple[str, str]:
    """The executor to use, and what to say about it."""
    if asked is not None:
        return asked, f"Running it on the {asked} executor, as asked."
    best = best_executor()
    return best, WHY[best]


def run(output: Output, kernel: Any, executor: str, sizes: tuple[int, ...]) -> int:
    """Run the kernel, compare with NumPy, and say how long it took."""
    n, m, l = sizes
    rng = np.random.default_rng(2026)
    a = rng.uniform(-1, 1, (n, l)).astype(np.float32)
    b = rng.uniform(-1, 1, (l, m)).astype(np.float32)
    product = kernel.executor(executor)

    with output.working(f"compiling and running {n} x {l} times {l} x {m} once"):
        start = time.perf_counter()
        result = np.asarray(product(a=a, b=b))
        first = time.perf_counter() - start
    with output.working("measuring"):
        seconds = measure(kernel, a=a, b=b, executor=executor, seconds=0.2).seconds
    with output.working("computing the same with NumPy"):
        expected = a.astype(np.float64) @ b.astype(np.float64)

    error = float(np.abs(result - expected).max())
    # What l products and l sums of numbers up to 1 may lose in float32.
    bound = l * float(np.finfo(np.float32).eps)
    right = bool(error <= bound)
    if executor != "reference":
        output.text(f"first call {first:.3f} s, compiling included unless it was done before")
    speed = 2e-9 * n * m * l / seconds
    output.text(f"{n} x {l} times {l} x {m}: {seconds * 1e3:.3f} ms, {speed:.3g} GFLOP/s")
    if right:
        output.text(f"the result agrees with NumPy's (largest difference {error:.1e})", "green")
        return 0
    output.text(
        f"the result is WRONG: it differs from NumPy's by {error:.1e}, "
        f"where rounding explains {bound:.1e}",
        style="bold red",
    )
    return 1
