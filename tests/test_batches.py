"""Kernels for many problems, and inames of their own for reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def product() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        """
        f(r) := a[r, k]*2
        <> t = sum(k, f(i)*x[k])            {id=t}
        y[i] = s*t + sum(k, a[i, k])        {id=y}
        """,
        [lk.ValueArg("s", "float64"), ...],
        dtypes={"a, x, y": "float64"},
        assumptions="n, m >= 1",
        name="product",
    )


def tiled() -> lk.Kernel:
    knl = product().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0").split_iname("k", 4)
    return knl.add_prefetch("x", "k_inner", default_tag="l.auto")


def batched(knl: lk.Kernel) -> lk.Kernel:
    return lk.to_batched(knl, "nb", "a, s, y")


def test_generated_texts(golden: Golden) -> None:
    shown = [batched(product()), batched(tiled()).tag_inames("ibatch: g.1")]
    shown += [product().make_reduction_inames_unique()]
    golden("batches.txt", "\n\n".join(f"{k}\n\n{k.cuda()}" for k in shown))


@pytest.mark.host
@pytest.mark.parametrize(("nb", "n", "m"), [(1, 1, 1), (3, 9, 5), (2, 17, 8)])
def test_each_problem_is_solved(nb: int, n: int, m: int) -> None:
    rng = np.random.default_rng(nb)
    a, x, s = rng.uniform(size=(nb, n, m)), rng.uniform(size=m), rng.uniform(size=nb)
    want = s[:, None] * (2 * a @ x) + a.sum(axis=2)
    for knl in (
        batched(product()),
        batched(tiled()),
        batched(tiled()).tag_inames("ibatch: g.1"),
        batched(product()).make_reduction_inames_unique().split_iname("k_0", 2),
    ):
        assert knl.prove().ok
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=1)(a=a, x=x, s=s)
            np.testing.assert_allclose(found, want, rtol=1e-12)


def test_steps_before_and_behind() -> None:
    """A schedule comes along, proven anew, and what comes out has no history."""
    knl = batched(tiled())
    assert not knl.history and knl.arg_by_name["nb"].dtype == np.int32
    assert knl == batched(tiled())
    assert "f(r) := a[ibatch, r, 4*k_outer + k_inner]*2" in str(knl)
    fixed = lk.to_batched(product().fix_parameters(m=4), 3, "y")
    assert fixed.prove().ok and "nb" not in fixed.arg_by_name
    again = lk.to_batched(batched(product()), "outer", "y", "jbatch")
    assert again.all_inames[:2] == ("jbatch", "ibatch") and again.prove().ok
    same = lk.to_batched(product(), "n", "y", sequential=True)
    assert same.arg_by_name["y"].shape == (same.arg_by_name["a"].shape[0],) * 2  # type: ignore[union-attr, index]


REFUSED: list[tuple[Any, str]] = [
    (lambda: lk.to_batched(product(), "nb", "n"), "'n' is a size"),
    (lambda: lk.to_batched(product(), "nb", "t"), "there is no argument 't'"),
    (lambda: lk.to_batched(product(), "s", "y"), "'s' is no size"),
    (lambda: lk.to_batched(product(), 0, "y"), "at least 1"),
    (lambda: lk.to_batched(product().tag_array_axes("y", "stride:2"), 2, "y"), "given strides"),
    (lambda: product().make_reduction_inames_unique("i"), "shares an iname"),
    (
        lambda: product().make_reduction_inames_unique(within="writes:y"),
        "'writes:y' matches no update; those are t_update, y_update",
    ),
    (
        lambda: product().make_reduction_inames_unique().make_reduction_inames_unique(),
        "shares an iname",
    ),
]


@pytest.mark.parametrize(("step", "why"), REFUSED)
def test_refusals(step: Any, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        step()
    assert why in str(refused.value)


def test_blocks_that_share_a_result() -> None:
    with pytest.raises(lk.RaceError) as refused:
        lk.to_batched(product(), "nb", "a").tag_inames("ibatch: g.0")
    assert refused.value.witness is not None and refused.value.witness.array == "y"


def test_tags_and_other_users() -> None:
    rows = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 32 }",
        "y[i] = sum(j, x[i, j])/max(j, x[i, j])\nfor i, j\nz[i, j] = 1\nend",
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    ).tag_inames("i: g.0, j: l.0")
    alone = rows.make_reduction_inames_unique()
    assert {i: str(t) for i, t in alone.tags} == {
        "i": "g.0",
        "j": "l.0",
        "j_0": "l.0",
        "j_1": "l.0",
    }
    assert alone.prove().ok
    sums = rows.make_reduction_inames_unique(within="writes:acc and not writes:acc_0")
    assert {i for i, _ in sums.tags} == {"i", "j", "j_0"}
