"""Steps that are tested elsewhere by what they compute: how they look, before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Golden

import loopkit as lk


def through() -> lk.Kernel:
    """A value of every point that two others read."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<> t = 2*a[i]\nb[i] = t*t + t",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
        name="through",
    )


def nested() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, spare]: 0 <= i < n and 0 <= j < m and 0 <= spare < n }",
        "b[i, j] = a[j, i]",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        name="nested",
    )


def two_loops() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "b[i] = 2*a[i]\nc[j] = b[j] + a[j]",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
        name="two_loops",
    )


def untyped() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "<> t = x[i]/2\ny[i] = t + k", assumptions="n >= 1", name="untyped"
    )


STEPS: dict[str, tuple[Callable[[], lk.Kernel], Callable[[lk.Kernel], lk.Kernel]]] = {
    "assignment_to_subst": (through, lambda knl: knl.assignment_to_subst("t")),
    "remove_unused_inames": (nested, lambda knl: knl.remove_unused_inames()),
    "rename_inames": (two_loops, lambda knl: knl.rename_inames(["i", "j"], "k")),
    "add_and_infer_dtypes": (
        untyped,
        lambda knl: lk.add_and_infer_dtypes(knl, {"x": "float32", "k": "float64"}),
    ),
    "to_batched": (through, lambda knl: lk.to_batched(knl.split_iname("i", 4), 3, "a, b")),
}


@pytest.mark.parametrize("name", STEPS)
def test_golden(name: str, golden: Golden) -> None:
    make, step = STEPS[name]
    before, after = make(), step(make())
    assert after.prove(text=True).ok
    golden(f"step_{name}.txt", f"{before}\n\n{after}\n\n{after.cuda()}")


def test_einsum(golden: Golden) -> None:
    knl = lk.make_einsum("bij,bjk->bik", "a, b", dtypes={"a, b, out": "float32"})
    golden("einsum_text.txt", f"{knl}\n\n{knl.cuda()}")


def test_statistics(golden: Golden) -> None:
    """What is counted of a product of matrices by tiles: accesses, operations, barriers."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 16 and n mod 16 = 0",
        name="product",
    )
    knl = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.1")
    knl = knl.split_iname("j", 16, outer_tag="g.1", inner_tag="l.0").split_iname("k", 16)
    knl = knl.add_prefetch("a", "i_inner, k_inner").add_prefetch("b", "k_inner, j_inner")
    found = (lk.get_op_map(knl), lk.get_mem_access_map(knl), lk.get_synchronization_map(knl))
    golden("statistics.txt", "\n\n".join(map(str, (knl, *found))))
