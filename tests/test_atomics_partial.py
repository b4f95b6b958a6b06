"""Buffers of partial results: histograms of blocks, sums in stages, in any order of the steps."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from conftest import Golden
from hypothesis import given, settings
from hypothesis.strategies import DataObject, booleans, data, integers, sampled_from
from test_atomics import ORDERS, on_blocks

import loopkit as lk


def histogram(bins: int = 64, value: str = "1") -> lk.Kernel:
    """How often each of some numbers occurs, or the sum of what is where each occurs."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"h[c[i]] = h[c[i]] + {value} {{atomic, id=count}}",
        [lk.GlobalArg("h", shape=bins), ...],
        name="histogram",
        dtypes={"h": "int32", "c": "int32", **({"x": "int32"} if "x" in value else {})},
        assumptions="n >= 1",
    )
    return kernel.assume_within("c", 0, bins)


def split(kernel: lk.Kernel) -> lk.Kernel:
    return kernel.split_iname("i", 256).split_iname("i_inner", 64)


def buffered(kernel: lk.Kernel) -> lk.Kernel:
    return kernel.buffer_array(
        "h",
        ["i_inner_outer", "i_inner_inner"],
        default_tag="l.0",
        temporary_scope="local",
        partial=True,
    )


STEPS = {
    "blocks": lambda kernel: kernel.tag_inames("i_outer: g.0"),
    "threads": lambda kernel: kernel.tag_inames("i_inner_inner: l.0"),
    "buffer": buffered,
}


def privatised() -> lk.Kernel:
    kernel = split(histogram())
    for step in STEPS.values():
        kernel = step(kernel)
    return kernel


def test_generated_texts(golden: Golden) -> None:
    kernel = privatised()
    golden("atomics_privatised.txt", f"{kernel}\n\n{kernel.cuda()}")


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids="-".join)
def test_steps_in_any_order(order: tuple[str, ...]) -> None:
    kernel = split(histogram())
    for name in order:
        kernel = STEPS[name](kernel)
    assert kernel == privatised()
    assert [s.verdict for s in kernel.history][1:] == ["proven"] * 5


def test_all_tags_in_one_call() -> None:
    kernel = buffered(split(histogram())).tag_inames("i_outer: g.0, i_inner_inner: l.0")
    assert kernel == privatised()
    assert kernel.prove(text=True).ok


@pytest.mark.host
@pytest.mark.parametrize("n", (1, 63, 257, 1000))
def test_counts(n: int) -> None:
    kernel = privatised()
    c = np.random.default_rng(n).integers(0, 64, n).astype("int32")
    for order in ORDERS:
        found = kernel.executor("host", order=order)(c=c, h=np.arange(64, dtype="int32"))
        np.testing.assert_array_equal(found, np.arange(64) + np.bincount(c, minlength=64))


@pytest.mark.host
def test_weights_and_extrema() -> None:
    n = 300
    rng = np.random.default_rng(1)
    c, x = rng.integers(0, 64, n).astype("int32"), rng.integers(-50, 50, n).astype("int32")
    kernel = split(histogram(value="x[i]")).tag_inames("i_outer: g.0, i_inner_inner: l.0")
    sums = kernel.buffer_array("h", ["i_inner_outer", "i_inner_inner"], partial=True)
    due = kernel.executor("reference")(c=c, x=x, h=np.ones(64, "int32"))
    found = sums.executor("host", order="random", seed=3)(c=c, x=x, h=np.ones(64, "int32"))
    np.testing.assert_array_equal(found, due)
    top = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = max(h[c[i]], x[i]) {atomic}",
        [lk.GlobalArg("h", shape=64), ...],
        dtypes={"h, x": "float32", "c": "int32"},
    )
    fast = split(top.assume_within("c", 0, 64)).tag_inames("i_outer: g.0, i_inner_inner: l.0")
    fast = fast.buffer_array("h", ["i_inner_outer", "i_inner_inner"], partial=True)
    assert "= -LK_INFINITY;" in fast.cuda() and fast.prove().ok
    start = np.full(64, -1e30, "float32")
    due = top.executor("reference")(c=c, x=x.astype("float32"), h=start.copy())
    found = fast.executor("host", order="random")(c=c, x=x.astype("float32"), h=start.copy())
    np.testing.assert_array_equal(found, due)


def total() -> lk.Kernel:
    """All of a vector, in one cell: 1024 a block, 32 a thread."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "s[0] = s[0] + x[i] {atomic, id=add}",
        name="total",
        dtypes={"s, x": "float32"},
        assumptions="n >= 1",
    )
    kernel = kernel.split_iname("i", 1024, outer_tag="g.0").split_iname("i_inner", 32)
    return kernel.tag_inames("i_inner_inner: l.0")


@pytest.mark.host
def test_sums_in_stages(golden: Golden) -> None:
    """What a thread adds up, a block adds up, and the blocks: either first."""
    of_block = total().buffer_array("s", ["i_inner_outer", "i_inner_inner"], partial=True)
    both = of_block.buffer_array("s_buf", "i_inner_outer", temporary_scope="private", partial=True)
    of_thread = total().buffer_array("s", "i_inner_outer", temporary_scope="private", partial=True)
    golden("atomics_stages.txt", f"{both}\n\n{both.cuda()}")
    x = np.arange(3000, dtype="float32") % 7
    for kernel in (of_block, both, of_thread):
        assert kernel.prove().ok
        for order in ORDERS:
            found = kernel.executor("host", order=order)(x=x, s=np.ones(1, "float32"))
            assert found == x.sum() + 1


@pytest.mark.host
def test_threads_combine_what_a_block_adds() -> None:
    """A private buffer over threads is a collective: one update for each block."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "s[0] = s[0] + x[i] {atomic, id=add}",
        dtypes={"s, x": "float32"},
        assumptions="n >= 1",
    )
    kernel = kernel.split_iname("i", 1024, outer_tag="g.0").split_iname("i_inner", 64)
    kernel = kernel.buffer_array(
        "s",
        ["i_inner_outer", "i_inner_inner"],
        temporary_scope="private",
        default_tag=None,
        partial=True,
    )
    fast = kernel.tag_inames("i_inner_inner: l.0")
    assert "---- combine s_buf" in str(fast) and fast.prove().ok
    assert fast.cuda().count("atomicAdd") == 1
    x = np.arange(3000, dtype="float32") % 7
    for order in ORDERS:
        found = fast.executor("host", order=order)(x=x, s=np.ones(1, "float32"))
        assert found == x.sum() + 1


@pytest.mark.host
def test_launches() -> None:
    """One launch sets the bins, the next counts in shared memory: no argument to be set before."""
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 64 }",
        "h[j] = 0 {id=start}\n... gbarrier\nh[c[i]] = h[c[i]] + 1 {atomic, id=count}",
        [lk.GlobalArg("h", shape=64, is_input=False), ...],
        dtypes={"h, c": "int32"},
        assumptions="n >= 1",
    )
    kernel = split(kernel.assume_within("c", 0, 64)).tag_inames("i_outer: g.0, i_inner_inner: l.0")
    fast = kernel.tag_inames("j: l.0").buffer_array(
        "h", ["i_inner_outer", "i_inner_inner"], partial=True
    )
    assert fast.prove().ok
    c = np.random.default_rng(2).integers(0, 64, 1000).astype("int32")
    for order in ORDERS:
        found = fast.executor("host", order=order)(c=c)
        np.testing.assert_array_equal(found, np.bincount(c, minlength=64))


@pytest.mark.host
def test_loops_of_any_length() -> None:
    """Blocks stride over the vector, as many as there are."""
    kernel = lk.make_kernel(
        "{ [b, r, t]: 0 <= b < 4 and 0 <= t < 64 and 0 <= 256*r + 64*b + t < n and r >= 0 }",
        "s[0] = s[0] + x[256*r + 64*b + t] {atomic, id=add}",
        [lk.GlobalArg("x", shape="n"), ...],
        dtypes={"s, x": "float32"},
        assumptions="n >= 1",
    ).tag_inames("b: g.0, t: l.0")
    fast = kernel.buffer_array("s", "r", temporary_scope="private", partial=True)
    assert "for r in [0, " in str(fast) and fast.prove().ok
    x = np.arange(1001, dtype="float32") % 5
    for order in ORDERS:
        found = fast.executor("host", order=order)(x=x, s=np.zeros(1, "float32"))
        assert found == x.sum()


def test_types_that_come_later() -> None:
    """The neutral element is that of a type."""
    kernel = lk.make_kernel("{ [i]: 0 <= i < n }", "s[0] = max(s[0], x[i]) {atomic}")
    kernel = kernel.split_iname("i", 64, outer_tag="g.0")
    with pytest.raises(lk.IllegalTransformError, match="the type of 's' is not known"):
        kernel.buffer_array("s", "i_inner", default_tag=None, partial=True)
    typed = kernel.add_dtypes({"s, x": "int32"})
    fast = typed.buffer_array("s", "i_inner", default_tag=None, partial=True)
    assert "s_buf = -2147483647 - 1;" in fast.cuda()


@settings(max_examples=25)
@given(data())
def test_any_sizes(draw: DataObject) -> None:
    """Tiles, threads and bins of any size, in any space, before or after the tags."""
    bins, length = draw.draw(integers(1, 9)), draw.draw(integers(1, 12))
    threads, n = draw.draw(integers(1, length)), draw.draw(integers(0, 40))
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + x[i] {atomic}",
        [lk.GlobalArg("h", shape=bins), ...],
        dtypes={"h, x": "int32", "c": "int32"},
    )
    kernel = kernel.assume_within("c", 0, bins).split_iname("i", length)
    kernel = kernel.split_iname("i_inner", threads)
    kernel = kernel.prioritize_loops("i_outer, i_inner_inner, i_inner_outer")
    tags = "i_outer: g.0, i_inner_inner: l.0"
    space = draw.draw(sampled_from(["local", "private"]))
    swept = ["i_inner_outer", "i_inner_inner"] if space == "local" else ["i_inner_outer"]
    options = {"temporary_scope": space, "default_tag": None, "partial": True}
    if draw.draw(booleans()):
        fast = kernel.tag_inames(tags).buffer_array("h", swept, **options)
    else:
        fast = kernel.buffer_array("h", swept, **options).tag_inames(tags)
    assert fast.prove().ok
    rng = np.random.default_rng(n)
    c, x = rng.integers(0, bins, n).astype("int32"), rng.integers(-9, 9, n).astype("int32")
    due = np.ones(bins, "int32")
    np.add.at(due, c, x)
    found = fast.executor("reference")(c=c, x=x, h=np.ones(bins, "int32"))
    np.testing.assert_array_equal(found, due)


@pytest.mark.host
@pytest.mark.parametrize("tagged_first", [False, True])
def test_a_histogram_of_each_thread_runs(tagged_first: bool) -> None:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + x[i] {atomic}",
        [lk.GlobalArg("h", shape=3), ...],
        dtypes={"h, x, c": "int32"},
    )
    kernel = kernel.assume_within("c", 0, 3).split_iname("i", 12).split_iname("i_inner", 4)
    kernel = kernel.prioritize_loops("i_outer, i_inner_inner, i_inner_outer")
    steps = [
        lambda k: k.buffer_array("h", "i_inner_outer", default_tag=None, partial=True),
        lambda k: k.tag_inames("i_outer: g.0, i_inner_inner: l.0"),
    ]
    for step in steps[::-1] if tagged_first else steps:
        kernel = step(kernel)
    rng = np.random.default_rng(0)
    c, x = rng.integers(0, 3, 40).astype("int32"), rng.integers(-9, 9, 40).astype("int32")
    due = np.ones(3, "int32")
    np.add.at(due, c, x)
    assert kernel.prove().ok
    for order in ORDERS:
        found = kernel.executor("host", order=order)(c=c, x=x, h=np.ones(3, "int32"))
        np.testing.assert_array_equal(found, due)


def test_cells_that_loops_choose() -> None:
    """Only what a tile touches is kept, and added."""
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "s[j] = s[j] + a[i, j] {atomic, id=add}",
        dtypes={"s, a": "float32"},
        assumptions="n >= 1",
    )
    kernel = kernel.split_iname("i", 16, outer_tag="g.1").split_iname(
        "j", 32, outer_tag="g.0", inner_tag="l.0"
    )
    fast = kernel.buffer_array("s", "i_inner", temporary_scope="private", partial=True)
    assert "s_buf" in str(fast) and fast.prove().ok
    assert "if 32*j_outer + j_inner < n" in str(fast)


def test_before_and_after() -> None:
    """What sets the array first, and who reads it at the end, keep their places."""
    text = """
        h[j] = 0 {id=start}
        h[c[i]] = h[c[i]] + 1 {atomic, id=count}
        y[k] = 2*h[k] {id=look}
    """
    kernel = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 640 and 0 <= j, k < 64 }",
        text,
        [lk.GlobalArg("h", shape=64), ...],
        dtypes={"h, c, y": "int32"},
    )
    kernel = kernel.assume_within("c", 0, 64).split_iname("i", 64)
    fast = kernel.tag_inames("i_inner: l.0, j: l.0, k: l.0")
    fast = fast.buffer_array("h", ["i_outer", "i_inner"], partial=True, within="id:count")
    assert fast.prove().ok
    with pytest.raises(lk.IllegalTransformError, match=r"'count' .* would not go where it belongs"):
        fast.tag_inames("i_outer: g.0", force=True)
    whole = kernel.tag_inames("i_inner: l.0, j: l.0, k: l.0")
    assert fast == whole.buffer_array("h", ["i_outer", "i_inner"], partial=True)


def test_refused() -> None:
    kernel = split(histogram()).tag_inames("i_outer: g.0, i_inner_inner: l.0")
    swept = ["i_inner_outer", "i_inner_inner"]
    with pytest.raises(lk.InvalidArgumentError, match="takes no init_expression"):
        kernel.buffer_array("h", swept, init_expression="base", partial=True)
    with pytest.raises(lk.IllegalTransformError, match="nothing orders blocks"):
        kernel.buffer_array("h", swept)
    loose = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + 1 {atomic}",
        [lk.GlobalArg("h", shape="m"), ...],
        dtypes={"h, c": "int32"},
    )
    with pytest.raises(lk.IllegalTransformError, match=r"assume_within\('c'.*fix_parameters"):
        on_blocks(loose).buffer_array("h", "i_inner", partial=True)
    with pytest.raises(lk.IllegalTransformError, match="no selected statement updates 'y'"):
        lk.make_kernel(
            "{ [i]: 0 <= i < 8 }", "y[i] = 2*x[i]", dtypes={"x, y": "float32"}
        ).buffer_array("y", "i", default_tag=None, partial=True)


@pytest.mark.parametrize("shift", [0, 2], ids=["the whole array", "a part of it"])
def test_updates_are_promised_to_be_in_their_array(shift: int) -> None:
    """Types allow more cells than there are: the buffer holds, and adds, those of the array."""
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        f"h[c[i] + {shift}*j] = max(h[c[i] + {shift}*j], x[i, j]) {{atomic}}",
        [lk.GlobalArg("h", shape="n + 2"), ...],
        dtypes={"h, x": "int32", "c": "uint8"},
        assumptions="n >= 1",
    )
    fast = kernel.buffer_array("h", "i" if shift else "i, j", partial=True)
    assert fast.history[-1].verdict == "proven"
    assert not fast.prove().findings
    with pytest.raises(lk.IllegalTransformError, match="would not go where it belongs"):
        fast.peel_iname("h_store_dim_0", first=1).remove_instructions("store_h_first")
