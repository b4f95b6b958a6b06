"""Axes with inames of different lengths: as long as the longest, and guards stop the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import prove_source
from swizzled_kernels import turned

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def three_stages(first: str = "0 <= i < 24", names: str = "ijk") -> lk.Kernel:
    """In each row: 24 cells are filled, 17 made of them, and of these five."""
    i, j, k = names
    return lk.make_kernel(
        [
            "{ [g]: 0 <= g < n }",
            f"{{ [{i}]: {first.replace('i', i)} }}",
            f"{{ [{j}]: 3 <= {j} < 20 }}",
            f"{{ [{k}]: 0 <= {k} < 5 }}",
        ],
        f"""
        for g
            <> t[{i}] = a[g, {i}] {{id=fill}}
            <> u[{j} - 3] = t[{j}] + t[{j} + 4] {{id=both}}
            b[g, {k}] = u[{k}] + u[16 - {k}] {{id=ends}}
        end
        """,
        name="three_stages",
        dtypes={"a, b": "float32"},
        assumptions="n >= 0",
    ).set_temporary_address_space("t, u", "shared")


def two_grids() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }"],
        "y[i] = 2*x[i] {id=one}\nz[j] = 3*w[j] {id=two}",
        name="two_grids",
        dtypes={"x, y, z, w": "float32"},
        assumptions="n, m >= 0",
    )


def agrees(knl: lk.Kernel, **arrays: Any) -> None:
    expected = knl.executor("reference")(**arrays)
    for order in ORDERS:
        found = knl.executor("host", order=order, seed=2)(**arrays)
        both = zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True)
        for mine, its in both:
            np.testing.assert_allclose(mine, its, rtol=1e-5)


def shown(knl: lk.Kernel) -> str:
    return f"{knl}\n\n{knl.cuda()}"


def test_threads(golden: Golden) -> None:
    knl = three_stages().tag_inames("g: g.0, i: l.0, j: l.0, k: l.0")
    golden("axis_lengths_threads.txt", shown(knl))
    assert knl.launch_config(n=3).block == (24, 1, 1)
    assert knl.prove().ok and knl.prove(text=True).ok
    counts = {a.text: a.counts for a in knl.costs(n=3).accesses}
    threads = {text: found.threads for text, found in counts.items() if found is not None}
    assert (threads["t[i]"], threads["t[j + 4]"], threads["b[g, k]"]) == (3 * 24, 3 * 17, 3 * 5)


def test_blocks(golden: Golden) -> None:
    knl = two_grids().split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    knl = knl.split_iname("j", 64, outer_tag="g.0", inner_tag="l.0")
    golden("axis_lengths_blocks.txt", shown(knl))
    for n, m, grid in ((70, 99, 3), (10, 999, 16), (0, 1, 1), (0, 0, 0)):
        launch = knl.launch_config(n=n, m=m)
        assert (launch.grid, launch.block) == ((grid, 1, 1), (64, 1, 1))
    assert knl.prove().ok and knl.prove(text=True).ok


def test_what_is_known_to_be_longer_needs_no_guard() -> None:
    knl = two_grids().assume("m <= n").tag_inames("i: g.0, j: g.0")
    text = knl.cuda()
    assert "j < m" in text and "i < n" not in text
    assert knl.launch_config(n=5, m=2).grid == (5, 1, 1)
    assert knl.prove().ok


@pytest.mark.host
@pytest.mark.parametrize("tags", ["i: l.0, j: l.0, k: l.0", "k: l.0, j: l.0, i: l.0"])
def test_threads_run(tags: str) -> None:
    a = np.random.default_rng(1).random((3, 24), dtype=np.float32)
    for knl in (three_stages().tag_inames(tags), three_stages().tag_inames(f"g: g.0, {tags}")):
        agrees(knl, a=a)
        assert knl.prove().ok
    one_by_one = three_stages()
    for tag in tags.split(", "):
        one_by_one = one_by_one.tag_inames(tag)
    assert one_by_one.key == three_stages().tag_inames(tags).key


@pytest.mark.host
def test_blocks_run() -> None:
    knl = two_grids().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    knl = knl.split_iname("j", 5, outer_tag="g.0", inner_tag="l.0")
    for n, m in ((33, 12), (7, 31), (1, 0), (0, 3)):
        agrees(knl, x=np.ones(n, np.float32), w=np.arange(m, dtype=np.float32))


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_oblong_tiles_run(dtype: str) -> None:
    """Rows are filled and columns drained by as many threads as there are."""
    knl = turned(12, 20, dtype).set_temporary_address_space("t", "shared")
    knl = knl.tag_inames("i: l.1, j: l.0, k: l.0, l: l.1")
    assert knl.launch_config().block == (20, 20, 1)
    agrees(knl, a=np.arange(240).reshape(12, 20).astype(dtype))
    assert knl.prove().ok


@pytest.mark.host
@pytest.mark.parametrize("tags", ["b: g.0, r: l.0, j: l.0", "b: g.0, j: l.0, r: l.0"])
def test_sums_over_some_of_the_threads(tags: str) -> None:
    """Those beyond the end of the reduction bring the neutral element."""
    knl = lk.make_kernel(
        ["{ [b]: 0 <= b < n }", "{ [r]: 0 <= r < 40 }", "{ [j]: 0 <= j < 70 }"],
        "for b\n<> most = max(r, x[b, r])\ny[b, j] = x[b, j % 40] - most\nend",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).tag_inames(tags)
    assert knl.prove().ok
    agrees(knl, x=np.random.default_rng(2).normal(size=(3, 40)).astype(np.float32) - 9)


@pytest.mark.host
def test_staging_takes_all_threads() -> None:
    knl = three_stages().tag_inames("g: g.0, i: l.0, j: l.0, k: l.0")
    knl = knl.add_prefetch("a", ["i"], default_tag="l.auto")
    assert knl.launch_config(n=1).block == (24, 1, 1) and knl.prove().ok
    agrees(knl, a=np.random.default_rng(1).random((3, 24), dtype=np.float32))


def test_names_and_empty_axes() -> None:
    knl = three_stages(names=["threadIdx_x", "L", "_"]).tag_inames(  # type: ignore[arg-type]
        "threadIdx_x: l.0, L: l.0, _: l.0"
    )
    assert knl.prove().ok
    empty = lk.make_kernel(
        ["{ [i]: 0 <= i < 0 }", "{ [j]: 0 <= j < 4 }"],
        "y[j] = 1\nz[i] = 2",
        [lk.GlobalArg("z", shape="4"), ...],
        dtypes={"y, z": "float32"},
    ).tag_inames("i: l.0, j: l.0")
    assert empty.launch_config().block == (4, 1, 1) and empty.prove().ok


@pytest.mark.nvrtc
def test_code_compiles() -> None:
    knl = three_stages().tag_inames("g: g.0, i: l.0, j: l.0, k: l.0")
    for arch in ("sm_80", "sm_90a", "sm_100"):
        assert knl.cubin(arch)


def test_what_is_wrong_stays_refused() -> None:
    """Cells that another thread, or another block, has written."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n - 1 }"],
        "y[i] = x[i] {id=make}\nz[j] = y[j + 1] {id=use}",
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 2",
    )
    with pytest.raises(lk.RaceError) as caught:
        knl.tag_inames("i: g.0, j: g.0")
    assert caught.value.witness is not None and caught.value.witness.array == "y"
    assert knl.fix_parameters(n=20).tag_inames("i: l.0, j: l.0").prove().ok
    private = lk.make_kernel(
        ["{ [i]: 0 <= i < 8 }", "{ [j]: 0 <= j < 16 }"],
        "<> t[i] = x[i] {id=make}\nz[j] = t[j // 2] {id=use}",
        dtypes={"x, z": "float32"},
    ).set_temporary_address_space("t", "private")
    with pytest.raises(lk.IllegalTransformError):
        private.tag_inames("i: l.0, j: l.0")


@pytest.mark.parametrize(
    "old, new, kind",
    [
        ("if (j <= 19)", "if (j <= 18)", "instances"),
        ("if (j <= 19)", "if (j <= 20)", "bounds"),
        ("if (k <= 4)", "if (k <= 5)", "instances"),
        ("int const j = threadIdx.x + 3", "int const j = threadIdx.x + 2", "instances"),
    ],
)
def test_wrong_texts_are_found(old: str, new: str, kind: str) -> None:
    knl = three_stages().tag_inames("g: g.0, i: l.0, j: l.0, k: l.0")
    assert old in knl.cuda()
    found = prove_source(knl, knl.cuda().replace(old, new))
    assert any(f.kind == kind for f in found.findings), found


@given(
    st.lists(st.tuples(st.integers(-2, 3), st.integers(1, 9)), min_size=2, max_size=4),
    st.booleans(),
)
@settings(max_examples=12)
def test_any_lengths(drawn: list[tuple[int, int]], blocks: bool) -> None:
    """Each iname writes an array of its own, from wherever it begins to wherever it ends."""
    inames = [f"i{number}" for number in range(len(drawn))]
    knl = lk.make_kernel(
        [f"{{ [{i}]: {a} <= {i} < {a + n} }}" for i, (a, n) in zip(inames, drawn, strict=True)],
        "\n".join(
            f"y{i}[{i} - ({a})] = 10*{i} + {n}" for i, (a, n) in zip(inames, drawn, strict=True)
        ),
        dtypes={", ".join(f"y{i}" for i in inames): "int32"},
    ).tag_inames(dict.fromkeys(inames, "g.0" if blocks else "l.0"))
    launch = knl.launch_config()
    longest = max(n for _, n in drawn)
    assert (launch.grid if blocks else launch.block)[0] == longest
    assert knl.prove().ok
    assert [count for _, count in knl.costs().instances] == [n for _, n in drawn]
