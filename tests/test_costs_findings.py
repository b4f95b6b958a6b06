"""Barriers and how often they are executed, paddings and what they remove."""

from __future__ import annotations

import importlib
import itertools
import pickle
import sys
from pathlib import Path

import pytest

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))


def tiled() -> lk.Kernel:
    """A product in tiles of 16, whose shared arrays are read and written in turn."""
    return importlib.import_module("matmul").make()["tiled"]


def test_barriers_of_a_loop() -> None:
    costs = tiled().costs(n=40, m=70, l=50)
    blocks, rounds = 3 * 5, 4
    first, second = costs.barriers
    assert (first.before, second.after) == ("insn_update", "insn_update")
    assert first.loops == second.loops == ("k_outer",)
    assert [b.waiting for b in costs.barriers] == [256, 256]
    assert [b.times for b in costs.barriers] == [blocks * rounds] * 2
    assert [b.per_block for b in costs.barriers] == [rounds] * 2


def test_barriers_where_blocks_differ() -> None:
    """A loop that is as long as the block's number says."""
    knl = lk.make_kernel(
        ["{ [b, k]: 0 <= b < n and 0 <= k <= b }", "{ [t]: 0 <= t < 64 }", "{ [u]: 0 <= u < 64 }"],
        """
        for b, k
            <> s[t] = a[k, t]
            out[b, k, u] = s[63 - u]
        end
        """,
        dtypes={"a, out": "float32"},
    )
    knl = knl.set_temporary_address_space("s", "shared")
    knl = knl.tag_inames({"b": "g.0", "t": "l.0", "u": "l.0"})
    costs = knl.costs(n=10)
    assert {b.times for b in costs.barriers} == {10 * 11 // 2}
    assert costs.barriers[0].per_block == 5.5
    assert pickle.loads(pickle.dumps(costs)).barriers == costs.barriers


def test_warps_wait_alone() -> None:
    knl = lk.make_kernel(
        ["{ [b, i]: 0 <= b < n and 0 <= i < 4 }", "{ [t]: 0 <= t < 32 }", "{ [u]: 0 <= u < 32 }"],
        """
        <> s[i, t] = a[b, i, t]
        out[b, i, u] = s[i, 31 - u]
        """,
        dtypes={"a, out": "float32"},
    )
    knl = knl.set_temporary_address_space("s", "shared")
    knl = knl.tag_inames({"b": "g.0", "i": "l.1", "t": "l.0", "u": "l.0"})
    (barrier,) = knl.costs(n=10).barriers
    assert barrier.of_warp and barrier.waiting == 32
    assert (barrier.times, barrier.per_block) == (40, 4)


def column(pad: int = 0, dtype: str = "float32") -> lk.Kernel:
    """Threads read a column of a shared square."""
    knl = lk.make_kernel("{ [i, j]: 0 <= i, j < 32 }", "b[j, i] = a[i, j]", dtypes={"a, b": dtype})
    knl = knl.tag_inames({"i": "l.0", "j": "unr"}).add_prefetch("a", ["i", "j"])
    return knl.pad_temporary("a_s", 1, pad) if pad else knl


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_the_layouts_that_are_told_remove_the_conflicts(dtype: str) -> None:
    knl = column(dtype=dtype)
    (found,) = knl.costs().layouts
    assert found.removes_all and found.wavefronts > found.least
    swizzle, padding = found.better
    assert swizzle.call.startswith("swizzle_array") and padding.call.startswith("pad_temporary")
    for layout in found.better:
        made = eval(f"knl.{layout.call}", {"knl": knl})  # what a user would paste
        after = made.costs()
        assert after.layouts == ()
        taken = [a.counts.pieces for a in after.accesses if a.space == "shared" and a.counts]
        assert sum(taken) == layout.wavefronts == found.with_it
        assert after.shared_bytes == knl.costs().shared_bytes + layout.bytes


def test_the_smallest_layouts_are_told() -> None:
    (found,) = column().costs().layouts
    assert [layout.call for layout in found.better] == [
        'swizzle_array("a_s")',
        'pad_temporary("a_s", 1, 1)',
    ]
    assert [layout.bytes for layout in found.better] == [0, 128]
    (found,) = column(pad=32).costs().layouts
    assert found.better[1].call == 'pad_temporary("a_s", 1, 33)'
    assert column(pad=1).costs().layouts == ()


def test_what_a_swizzle_does_is_counted_for_all_accesses() -> None:
    """Every swizzle of a tile, each access of each counted again by the transform's kernel."""
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i, j < 8 }", "{ [r, c]: 0 <= r < 8 and 0 <= c < 8 }"],
        "<> t[i, j] = a[i, j] {id=fill}\nb[r, c] = t[c, r] + t[r, c ] {id=use}",
        dtypes={"a, b": "float64"},
    )
    knl = knl.set_temporary_address_space("t", "shared").tag_inames("i:l.1, j:l.0, r:l.1, c:l.0")
    (found,) = knl.costs().layouts
    counts = {}
    for bits, base, skip in itertools.product((1, 2, 3), (0, 1, 2), (0, 1, 2)):
        if base + bits <= 3 and skip + bits <= 3:
            costs = knl.swizzle_array("t", bits=bits, base=base, skip=skip).costs()
            taken = (a.counts.pieces for a in costs.accesses if a.array == "t" and a.counts)
            counts[bits, base, skip] = sum(taken)
    assert found.with_it <= min(counts.values())


def test_one_row_is_swizzled_by_itself() -> None:
    """Neighbouring threads two words apart: an axis has only its own stride, but own bits."""
    knl = lk.make_kernel(
        ["{ [r, t]: 0 <= r < 2 and 0 <= t < 64 }", "{ [u]: 0 <= u < 64 }"],
        "<> s[64*r + t] = a[64*r + t]\nb[u] = s[2*u]",
        dtypes={"a, b": "float32"},
    )
    knl = knl.set_temporary_address_space("s", "shared").tag_inames({"t": "l.0", "u": "l.0"})
    (found,) = knl.costs().layouts
    assert [layout.call for layout in found.better] == ['swizzle_array("s", bits=1, skip=5)']
    assert knl.swizzle_array("s", bits=1, skip=5).costs().layouts == ()


def test_where_no_layout_helps() -> None:
    """One row whose ends lie in one bank, and which is no longer than from one to the other."""
    knl = lk.make_kernel(
        ["{ [t]: 0 <= t < 33 }", "{ [u]: 0 <= u < 2 }"],
        "<> s[t] = a[t]\nb[u] = s[32*u]",
        dtypes={"a, b": "float32"},
    )
    knl = knl.set_temporary_address_space("s", "shared").tag_inames({"u": "l.0"})
    costs = knl.costs()
    (found,) = costs.layouts
    assert not found.call and "no swizzle" in found.why
    assert found.why in str(costs)


def test_a_table_says_all() -> None:
    text = str(column().costs())
    assert 'swizzle_array("a_s") removes the conflicts; pad_temporary("a_s", 1, 1)' in text
    text = str(tiled().costs(n=100, m=100, l=100))
    for words in ("before insn_update", "touched again by the", "aligned"):
        assert words in text
