"""Random schedules of four kernels, on the host executor, against the reference interpreter.

A transform may refuse; what it accepts must compute the same, in every order
of threads.  Seeds are fixed, so that a failure names a schedule to look at.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from seams import evaluate

import loopkit as lk

SIZES = ({"n": 7, "m": 9, "l": 5}, {"n": 16, "m": 8, "l": 17})


def matmul() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def stencil() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 1 <= i <= n and 1 <= j <= m }",
        "v[i-1, j-1] = u[i-1, j] + 2*u[i+1, j] + 3*u[i, j-1] + u[i, j+1] - 4*u[i, j]",
        dtypes={"u, v": "float32"},
        assumptions="n, m >= 1",
    )


def triangle() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "c[i] = sum(j, a[i, j]*x[j])",
        dtypes={"a, x, c": "float32"},
        assumptions="n >= 1",
    )


def center() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, j2]: 0 <= i < n and 0 <= j, j2 < m }",
        """
        for i
            <> s = sum(j, a[i, j])
            b[i, j2] = a[i, j2] - s
        end
        """,
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )


KERNELS: tuple[Callable[[], lk.Kernel], ...] = (matmul, stencil, triangle, center)


def free_inames(knl: lk.Kernel) -> list[str]:
    return [i for i in knl.all_inames if i not in knl.iname_tags]


def split(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    used = {str(tag) for tag in knl.iname_tags.values()}
    options: dict[str, object] = {}
    axis = r.choice("01")
    if r.random() < 0.5 and f"l.{axis}" not in used:
        options["inner_tag"] = f"l.{axis}"
        if r.random() < 0.7 and f"g.{axis}" not in used:
            options["outer_tag"] = f"g.{axis}"
    if r.random() < 0.15:
        options["slabs"] = (0, 1)
    return knl.split_iname(r.choice(free_inames(knl)), r.choice([2, 3, 4, 5, 8]), **options)


def prioritize(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    loops = sorted({name for path in knl.paths.values() for name, _ in path})
    return knl.prioritize_loops(",".join(r.sample(loops, min(3, len(loops)))))


def prefetch(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    inputs = [a.name for a in knl.args if isinstance(a, lk.ArrayArg) and a.name not in knl.writers]
    options = r.choice(
        [
            {"default_tag": "l.auto"},
            {"default_tag": "l.auto"},
            {"default_tag": None},
            {"default_tag": "unr", "temporary_address_space": "private"},
        ]
    )
    inames = list(knl.all_inames)
    swept = r.sample(inames, min(len(inames), r.choice([1, 2, 3])))
    return knl.add_prefetch(r.choice(inputs), swept, **options)


def tag(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    return knl.tag_inames(
        {r.choice(free_inames(knl)): r.choice(["l.0", "l.1", "g.0", "g.1", "unr", "ilp"])}
    )


def join(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    return knl.join_inames(r.sample(free_inames(knl), 2))


STEPS = (split, split, split, prioritize, prefetch, tag, join)


def random_schedule(knl: lk.Kernel, r: random.Random) -> lk.Kernel:
    for _ in range(r.randint(1, 7)):
        step = r.choice(STEPS)
        if len(free_inames(knl)) < 2:
            break
        try:
            knl = step(knl, r)
        except lk.LoopkitError:
            continue
    return knl


def arguments(knl: lk.Kernel, sizes: dict[str, int], seed: int) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    found: dict[str, object] = {s: sizes[s] for s in knl.sizes}
    for a in knl.args:
        if isinstance(a, lk.ArrayArg) and a.name not in knl.writers:
            shape = [int(evaluate(s, sizes)) for s in a.shape or ()]
            found[a.name] = rng.random(shape, dtype=np.float32)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 240, 20))
def test_random_schedules(first):
    ran = 0
    for seed in range(first, first + 20):
        r = random.Random(seed)
        plain = r.choice(KERNELS)()
        knl = random_schedule(plain, r)
        try:
            knl.cuda()
        except lk.LoopkitError:
            continue
        for sizes in SIZES:
            given = arguments(plain, sizes, seed)
            expected = plain.executor("reference")(**given)
            for order in ("ascending", "descending", "random"):
                got = knl.executor("host", order=order, seed=seed)(**given)
                np.testing.assert_allclose(
                    got, expected, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}:\n{knl.script()}"
                )
        ran += 1
    assert ran >= 5
