"""Loopy's statistics: its names and uses, on the counts of costs."""

from __future__ import annotations

import numpy as np
import pytest
from launch_kernels import eliminated, summed

import loopkit as lk

PARAMETERS = {"n": 256, "m": 256, "l": 8}


def stats() -> lk.Kernel:
    """Two statements of two types: that of Loopy's tutorial."""
    return lk.make_kernel(
        "[n,m,l] -> {[i,k,j]: 0<=i<n and 0<=k<m and 0<=j<l}",
        """
        c[i, j, k] = a[i,j,k]*b[i,j,k]/3.0+a[i,j,k]
        e[i, k] = g[i,k]*(2+h[i,k+1])
        """,
        name="stats_knl",
        dtypes={"a": np.float32, "b": np.float32, "g": np.float64, "h": np.float64},
    )


def test_operations() -> None:
    """Numbers as in Loopy's tutorial; arithmetic of subscripts is left aside."""
    op_map = lk.get_op_map(stats(), subgroup_size=32)
    each = lk.CountGranularity.WORKITEM
    for dtype, name, times in (
        (np.float32, "add", 524288),
        (np.float32, "mul", 524288),
        (np.float32, "div", 524288),
        (np.float64, "add", 65536),
        (np.float64, "mul", 65536),
        (np.int32, "add", 0),
    ):
        found = op_map[lk.Op(dtype, name, each, "stats_knl")].eval_with_dict(PARAMETERS)
        assert found == times, (dtype, name)
    assert op_map.filter_by(dtype=[np.float32]).eval_and_sum(PARAMETERS) == 3 * 524288
    grouped = op_map.group_by("dtype")
    assert grouped[lk.Op(dtype=np.float32)].eval_with_dict(PARAMETERS) == 1572864
    assert str(grouped[lk.Op(dtype=np.float32)]) == "3*n*m*l"
    assert "Op(float32, add, workitem, stats_knl): n*m*l" in str(op_map)
    assert op_map.sum()(n=2, m=3, l=4) == 3 * 24 + 2 * 6


def test_memory_accesses() -> None:
    knl = stats().split_iname("k", 128, outer_tag="g.0", inner_tag="l.0")
    mem_map = lk.get_mem_access_map(knl)
    loads = mem_map.filter_by(direction=["load"], variable=["g"])
    assert loads.eval_and_sum(PARAMETERS) == 65536
    (key,) = loads
    assert (key.mtype, key.dtype, key.lid_strides, key.gid_strides) == (
        "global",
        np.float64,
        {0: 1},
        {0: 128},
    )
    wide = mem_map.to_bytes().filter_by(mtype=["global"]).group_by("direction")
    # What a statement names twice is read once.
    assert wide[lk.MemAccess(direction="load")].eval_with_dict(PARAMETERS) == 2 * 4 * 524288 + (
        2 * 8 * 65536
    )
    assert wide[lk.MemAccess(direction="store")].eval_with_dict(PARAMETERS) == 2621440
    strided = mem_map.filter_by_func(lambda k: k.lid_strides.get(0, 0) > 1)
    assert len(strided) == 0 and strided.eval_and_sum(PARAMETERS) == 0
    assert mem_map.eval(PARAMETERS)[key] == 65536


def test_strides_that_depend_on_sizes() -> None:
    knl = stats().tag_inames({"i": "g.0"})
    keys = list(lk.get_mem_access_map(knl).filter_by(variable=["e"]))
    assert keys[0].gid_strides == {0: "m"}


def test_synchronisation() -> None:
    assert lk.get_synchronization_map(stats()).eval_and_sum(PARAMETERS) == 1
    knl = lk.make_kernel(
        ["{ [b, r]: 0 <= b < n and 0 <= r < 5 }", "{ [t]: 0 <= t < 64 }", "{ [u]: 0 <= u < 64 }"],
        "for b, r\n<> s[t] = a[b, r, t]\nout[b, r, u] = s[63 - u]\nend",
        dtypes={"a, out": "float32"},
        name="waits",
    )
    knl = knl.set_temporary_address_space("s", "shared")
    knl = knl.tag_inames({"b": "g.0", "t": "l.0", "u": "l.0"})
    sync_map = lk.get_synchronization_map(knl)
    passed = sync_map[lk.Sync("barrier_local", "waits")].eval_with_dict({"n": 7})
    assert passed == sum(b.times for b in knl.costs(n=7).barriers) // 7
    assert sync_map[lk.Sync("kernel_launch", "waits")](n=7) == 1


def test_bad_questions() -> None:
    op_map = lk.get_op_map(stats())
    with pytest.raises(lk.InvalidArgumentError, match="needs the sizes"):
        op_map.eval_and_sum({"n": 3})
    with pytest.raises(lk.InvalidArgumentError, match="no field 'mtype'"):
        op_map.filter_by(mtype=["global"])
    with pytest.raises(lk.InvalidArgumentError, match="no field 'type'"):
        op_map.group_by("type")


def test_several_launches_have_keys_of_their_own() -> None:
    knl = eliminated()
    sizes = {"n": 40}
    assert lk.get_op_map(knl).eval_and_sum(sizes) == 2 * sum(k * k for k in range(40))
    assert lk.get_synchronization_map(knl)[lk.Sync("kernel_launch", "eliminate")](**sizes) == 39
    found = lk.get_mem_access_map(summed())
    assert {key.kernel_name for key in found} == {"full_sum", "full_sum_2"}
    by_array = found.filter_by(variable=["p"]).eval({"m": 9})
    assert sorted(by_array.values()) == [9, 9]
    assert str(lk.get_op_map(summed()).sum()) == "257*m"
