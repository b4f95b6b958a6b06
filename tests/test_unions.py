"""Domains that are unions: loops from where the first part begins to where the last one ends."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import islpy as isl
import numpy as np
import pytest
from seams import evaluate, loop_bounds
from seams import sets as _sets

import loopkit as lk

Schedule = Callable[[lk.Kernel], lk.Kernel]

DOMAINS = {
    "a gap": "0 <= i < 2 or 4 <= i < n",
    "far apart": "0 <= i < 2 or n + 4 <= i < n + 6",
    "two sizes": "0 <= i < n or m <= i < m + 2",
    "strided parts": "(i mod 3 = 0 and 0 <= i < 7) or (i mod 3 = 0 and n + m <= i < n + m + 9)",
    "different strides": "(i mod 3 = 0 and 0 <= i < 12) or (i mod 2 = 1 and n <= i < n + m)",
    "three": "0 <= i < n or 2*n <= i < 2*n + m or 20 <= i < 20 + m",
    "a part that is empty at times": "10 <= i < n + m or 2 <= i < n",
    "constants": "0 <= i < 2 or 4 <= i < 7 or i = 11",
}

# Where the first and the last value are cases over two sizes, peeling them is too much to prove.
PEELED = ("a gap", "far apart", "constants")

SCHEDULES: dict[str, Schedule] = {
    "as written": lambda k: k,
    "split": lambda k: k.split_iname("i", 4),
    "peeled": lambda k: k.split_iname("i", 3, slabs=(1, 1)),
    "blocks and threads": lambda k: k.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0"),
    "threads": lambda k: k.split_iname("i", 4, inner_tag="l.0"),
    "unrolled": lambda k: k.split_iname("i", 2, inner_tag="unr"),
}


def union(body: str) -> lk.Kernel:
    return lk.make_kernel(
        f"{{ [i, k]: 0 <= k < 2 and ({body}) }}",
        """
        for i
            x[i] = x[i] + 1
            y[i] = sum(k, x[i] + k)
        end
        """,
        [lk.GlobalArg("x", "int32", 64), lk.GlobalArg("y", "int32", 64), "..."],
        assumptions=" and ".join(f"0 <= {s} <= 9" for s in "nm" if f" {s}" in body),
    )


@pytest.mark.parametrize("name", DOMAINS)
def test_the_code_of_a_union_is_the_union(name: str) -> None:
    for title, schedule in SCHEDULES.items():
        if title == "peeled" and name not in PEELED:
            continue
        kernel = schedule(union(DOMAINS[name]))
        assert all(step.verdict == "proven" for step in kernel.history)
        assert kernel.prove().ok, f"{kernel.prove()}\n{kernel.cuda()}"


@pytest.mark.parametrize("name", DOMAINS)
def test_unions_run(name: str) -> None:
    meant = eval(f"lambda i, n, m: {DOMAINS[name].replace('mod', '%').replace(' = ', ' == ')}")
    kernel = union(DOMAINS[name])
    for n, m in [(0, 0), (3, 0), (5, 7), (9, 9)]:
        sizes = {s: v for s, v in (("n", n), ("m", m)) if s in kernel.sizes}
        x = np.zeros(64, np.int32)
        kernel.executor("reference")(x=x, y=np.zeros(64, np.int32), **sizes)
        assert x.tolist() == [int(meant(i, n, m)) for i in range(64)]


@pytest.mark.host
@pytest.mark.parametrize("schedule", ["as written", "peeled", "blocks and threads"])
def test_unions_run_on_the_host(schedule: str) -> None:
    for name in DOMAINS if schedule != "peeled" else PEELED:
        kernel = SCHEDULES[schedule](union(DOMAINS[name]))
        sizes = {s: v for s, v in (("n", 5), ("m", 3)) if s in kernel.sizes}
        found = []
        for how in ("host", "reference"):
            x, y = np.zeros(64, np.int32), np.zeros(64, np.int32)
            kernel.executor(how)(x=x, y=y, **sizes)
            found.append((x.tolist(), y.tolist()))
        assert found[0] == found[1], kernel.cuda()


def test_a_union_reads_as_one_loop() -> None:
    kernel = union(DOMAINS["a gap"])
    assert "for (int i = 0; i < max(n, 2); ++i) {" in kernel.cuda()
    assert "if (i <= 1 || (i >= 4 && i < n)) {" in kernel.cuda()


def test_what_has_no_end_is_still_refused() -> None:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n or i >= 5 }", "x[0] = i", [lk.GlobalArg("x", "int32", 1), "..."]
    )
    with pytest.raises(lk.LoopkitError, match="has no end"):
        kernel.cuda()


PARTS = (
    "0 <= i < 2",
    "i = 1",
    "i = n",
    "2*i = n",
    "i = m - 1",
    "4 <= i < n",
    "n <= i < n + 2",
    "0 <= 3*i <= m",
    "m <= i <= n",
    "0 <= i < n and i mod 2 = 1",
    "1 <= i < m and i < n",
)


@pytest.mark.parametrize("number", range(40))
def test_a_loop_passes_no_more_than_it_says(number: int) -> None:
    """What a loop is said to keep, guards inside do not ask again."""
    r = random.Random(number)
    parts = r.sample(PARTS, r.choice([1, 2, 2, 3]))
    domain = isl.Set(f"[n, m, i] -> {{ : {' or '.join(f'({p})' for p in parts)} }}")
    context = isl.Set(r.choice(["[n, m] -> { : n >= 1 and m >= 1 }", "[n, m] -> { : n >= m }"]))
    found = loop_bounds(domain & context, "i", context)
    for n, m in itertools.product(range(-1, 9, 2), range(8)):
        sizes = {"n": n, "m": m}
        if not _holds(context, sizes):
            continue
        ends = (int(evaluate(e, sizes)) for e in (found.lower, found.upper))
        passed = set(range(*ends, found.step))
        for i in range(-4, 14):
            point = {**sizes, "i": i}
            assert i not in passed or _holds(found.enforced, point), (point, parts)
            assert i in passed or not _holds(domain, point), (point, parts)


def _holds(domain: isl.Set, point: dict[str, int]) -> bool:
    for name, value in point.items():
        domain = domain & _sets.equality(name, value)
    return not domain.is_empty()


@pytest.mark.parametrize(
    ("domain", "steps"),
    [
        ("0 <= i < 2 or 4 <= i < n", {"peel_iname": ("i", 1, 0)}),
        ("0 <= i < 2 or n <= i < n + 2", {"split_iname": ("i", 1), "slabs": (1, 1)}),
        ("0 <= i < 2 or n <= i < n + 2", {"split_iname": ("i", 2), "again": ("i_inner", 8)}),
    ],
)
def test_parts_of_one_value_keep_their_guard(domain: str, steps: dict[str, Any]) -> None:
    plain = lk.make_kernel(
        f"{{ [i]: {domain} }}",
        "y[i] = i",
        [lk.GlobalArg("y", "int32", shape="n + 2"), ...],
        assumptions="n >= 1",
    )
    if "peel_iname" in steps:
        knl = plain.peel_iname(steps["peel_iname"][0], first=1, last=0)
    else:
        knl = plain.split_iname(*steps["split_iname"], slabs=steps.get("slabs", (0, 0)))
    if "again" in steps:
        knl = knl.split_iname(*steps["again"], inner_tag="l.0")
    assert knl.prove().ok
    for n in (1, 2, 3, 5, 8):
        made, meant = (np.full(n + 2, -1, np.int32) for _ in range(2))
        knl.executor("host")(y=made, n=n)
        plain.executor("reference")(y=meant, n=n)
        np.testing.assert_array_equal(made, meant)
