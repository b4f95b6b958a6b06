"""Declarations: several names in one, and what is left to the arrays of a call."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from _run_stand_in import Cpu
from conftest import Golden

import loopkit as lk

ROWS = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


def doubled(**more: Any) -> lk.Kernel:
    knl = lk.make_kernel(
        ROWS, "b[i, j] = 2*a[i, j]", [lk.GlobalArg("a, b", "float32", "(n, m)", **more), ...]
    )
    return knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def gather() -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[i + 1] + table[place[i]]",
        [lk.GlobalArg("x, table", "float32", shape=None), ...],
        dtypes={"y": "float32", "place": "int32"},
        name="gather",
    )
    return knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_one_declaration_names_several() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        p[i] = s*a[i, j]
        q[i] = p[i] + t
        c[i, j] = q[i] + b[i, j]
        """,
        [
            lk.GlobalArg("a, b", "float32", shape="(n, n)"),
            lk.ValueArg("s, t,", "float32"),
            lk.TemporaryVariable("p, q", "float32", shape="n"),
            lk.ConstantArg("unused, neither", "float64", shape="(n,)"),
            ...,
        ],
    )
    assert [a.name for a in knl.args[:6]] == ["a", "b", "s", "t", "unused", "neither"]
    assert [str(t.dtype) for t in knl.temporaries] == ["float32", "float32"]


@pytest.mark.parametrize(
    "names", [",a", "a,,b", "a, a", "a;b", "a, for", "a b", "ä, b", "a, auto", "", "a, 1"]
)
@pytest.mark.parametrize("declare", [lk.GlobalArg, lk.ValueArg, lk.TemporaryVariable, lk.ArrayArg])
def test_lists_of_names_are_checked(names: str, declare: Any) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        declare(names)


def test_no_kernel_holds_a_list_of_names() -> None:
    knl = doubled()
    with pytest.raises(lk.InvalidArgumentError, match="cannot be a name"):
        knl.with_(args=(lk.ArrayArg("a, b"), *knl.args))


@pytest.mark.parametrize(
    ("shape", "extents"),
    [("(n, m)", "n, m"), ("n, m", "n, m"), ("((n), m)", "n, m"), ("(n + 1)*(2), (m)", None)],
)
def test_shapes_are_text(shape: str, extents: str | None) -> None:
    knl = lk.make_kernel(ROWS, "b[i, j] = a[i, j]", [lk.GlobalArg("a", shape=shape), ...])
    assert len(knl.arg_by_name["a"].shape) == 2
    assert extents is None or str(knl).startswith(f"kernel(n, m; a[{extents}])")


@pytest.mark.parametrize("shape", ["(n", "n)", ",", "(,)", "n,,m", "auto + 1", "[n, m]", 1.5, "()"])
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with pytest.raises((lk.InvalidArgumentError, lk.ParseError)):
        lk.make_kernel(ROWS, "b[i, j] = a[i, j]", [lk.GlobalArg("a", shape=shape), ...])


def test_auto_is_what_the_call_decides() -> None:
    knl = lk.make_kernel(
        ROWS,
        "b[i, j] = a[i, j]",
        [lk.GlobalArg("a", lk.auto, lk.auto, strides=lk.auto, offset=lk.auto), ...],
        default_offset=lk.auto,
    )
    assert str(knl.arg_by_name["a"].dim_tags[0]) == "stride:auto"
    assert knl.arg_by_name["a"].offset == 0
    assert knl.arg_by_name["a"].dtype is None
    assert pickle.loads(pickle.dumps(knl)) == knl


@pytest.mark.parametrize("offset", [3, -1, "n", "n + 1", 0.5, "a[0]"])
def test_an_offset_is_the_arrays_own(offset: Any) -> None:
    """Nothing in front of what a call passes is read, nor behind it."""
    with pytest.raises(lk.InvalidArgumentError, match="offset"):
        lk.make_kernel(ROWS, "b[i, j] = a[i, j]", [lk.GlobalArg("a", offset=offset), ...])
    with pytest.raises(lk.InvalidArgumentError, match="default_offset"):
        lk.make_kernel(ROWS, "b[i, j] = a[i, j]", default_offset=offset)


@pytest.mark.parametrize("offset", [0, "0", None, lk.auto, "auto"])
def test_offsets_that_leave_it_to_the_array(offset: Any) -> None:
    knl = lk.make_kernel(
        ROWS, "b[i, j] = a[i, j]", [lk.GlobalArg("a", offset=offset), ...], default_offset=offset
    )
    assert knl.arg_by_name["a"].offset == knl.arg_by_name["b"].offset == 0


@pytest.mark.parametrize("strides", ["auto", "auto, 1", "1, auto", "lda, 1", "p, q"])
@pytest.mark.parametrize("executor", ["host", "reference"])
def test_strides_of_the_call(strides: str, executor: str) -> None:
    knl = doubled(strides=strides)
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    run = knl.executor(executor)
    memory = np.arange(24 * 30, dtype=np.float32).reshape(24, 30)
    views = [memory[::2, :7], memory[3:20]]
    if strides in ("auto", "p, q"):
        views += [memory[::2, ::3], memory.T, memory[:1, :1]]
    for a in views:
        b = np.empty_like(np.broadcast_to(np.float32(0), a.shape))
        if strides != "lda, 1" and strides != "p, q":
            np.testing.assert_array_equal(run(a=a), 2 * a)
            np.testing.assert_array_equal(run(a=a, b=np.zeros(a.shape, "f4")), 2 * a)
        else:  # the two share their strides
            b = np.lib.stride_tricks.as_strided(np.zeros(10**4, "f4"), a.shape, a.strides)
            np.testing.assert_array_equal(run(a=a, b=b), 2 * a)


def test_strides_of_the_call_are_arguments_of_the_source(golden: Golden) -> None:
    knl = doubled(strides=lk.auto)
    golden("declarations_strides.txt", f"{knl}\n\n{knl.cuda()}")


def test_tag_array_axes_leaves_strides_to_the_call() -> None:
    knl = doubled().tag_array_axes("a", "stride:auto, stride:1")
    assert "a_stride0" in str(knl.cuda())
    assert "a_stride1" not in str(knl.cuda())
    assert knl.prove().ok
    a = np.arange(30, dtype=np.float32).reshape(5, 6)
    np.testing.assert_array_equal(knl.executor("host")(a=a[::2]), 2 * a[::2])
    assert lk.replay(doubled(), knl.history[-1:]) == knl


def test_what_shares_its_own_memory_is_not_written() -> None:
    knl = doubled(strides=lk.auto).executor("host")
    a = np.zeros((3, 4), "f4")
    b = np.lib.stride_tricks.as_strided(np.zeros(12, "f4"), (3, 4), (4, 4))
    with pytest.raises(lk.InvalidArgumentError, match="same place in memory"):
        knl(a=a, b=b)
    named = doubled(strides="lda, 1").executor("host")
    with pytest.raises(lk.InvalidArgumentError, match="cannot be made"):
        named(a=a[:, :4], lda=2)
    assert named(a=a, lda=4).shape == (3, 4)


@pytest.mark.parametrize("executor", ["host", "reference", "cuda"])
def test_strides_that_are_negative(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that is passed may run backwards, and is copied whole; none is made so."""
    if executor == "cuda":
        Cpu().install(monkeypatch)
    memory = np.arange(12, dtype="f4").reshape(3, 4)
    backwards = doubled(strides=lk.auto).executor(executor)
    for a in (memory[::-1], memory[:, ::-1], memory.T[::-1, ::-1], memory[:1][::-1]):
        np.testing.assert_array_equal(backwards(a=a), 2 * a)
        b = np.zeros_like(memory if a.shape == (3, 4) else a)[::-1]
        assert backwards(a=a, b=b) is b
        np.testing.assert_array_equal(b, 2 * a)
    b = np.zeros_like(memory)[::-1]
    doubled(strides="p, q").executor(executor)(a=memory[::-1], b=b)
    np.testing.assert_array_equal(b, 2 * memory[::-1])
    for strides in ("-m, 1", "m, -1"):
        run = doubled(strides=strides).executor(executor)
        with pytest.raises(lk.InvalidArgumentError, match="b cannot be made: its strides"):
            run(a=memory)


def test_strides_of_a_temporary_are_nobody_elses() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="it is a temporary"):
        lk.make_kernel(
            ROWS, "b[i, j] = i", [lk.TemporaryVariable("t", shape="n", dim_tags="stride:auto"), ...]
        )
    knl = lk.make_kernel(ROWS, "<> t[i, j] = i\nb[i, j] = t[i, j]")
    with pytest.raises(lk.InvalidArgumentError, match="it is a temporary"):
        knl.tag_array_axes("t", "stride:auto, stride:1")


def test_arrays_without_a_shape_are_as_long_as_the_call_says(golden: Golden) -> None:
    knl = gather()
    golden("declarations_shapes.txt", f"{knl}\n\n{knl.cuda()}")
    assert knl.prove().ok
    x = np.arange(10, dtype=np.float32)
    place = np.array([3, 2, 9], np.int32)
    for executor in ("host", "reference"):
        run = knl.executor(executor)
        np.testing.assert_array_equal(run(x=x, table=x, place=place), x[1:4] + x[place])
        assert run(x=x[:1], table=x[:0], place=place[:0]).shape == (0,)
        with pytest.raises(lk.AssumptionError, match=r"x_extent0 = 3 .from x's axis 0"):
            run(x=x[:3], table=x, place=place)


def test_axes_without_an_extent_are_those_of_the_call() -> None:
    def of(shape: Any) -> lk.Kernel:
        data = [lk.GlobalArg("x", "float32", shape=shape), ...]
        return lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i + 1]", data)

    assert of((None,)) == of(None) == of([None])
    with pytest.raises(lk.InvalidArgumentError, match="an extent is an integer expression"):
        of((None, 4))


def test_arrays_without_a_shape_that_begin_too_late_are_refused() -> None:
    with pytest.raises(lk.OutOfBoundsError, match="negative"):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }", "y[i] = x[i - 1]", [lk.GlobalArg("x", shape=None), ...]
        )


def test_extents_of_the_call_take_no_name() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "x_extent0[i] = x[i]",
        [lk.GlobalArg("x", shape=None), ...],
        dtypes={"x": "float32"},
    )
    assert [a.name for a in knl.args] == ["x", "n", "x_extent0", "x_extent0_0"]
    assert knl.executor("host")(x=np.ones(9, "f4"), n=3).shape == (3,)


def test_a_fixed_extent_bounds_what_is_left() -> None:
    knl = gather().fix_parameters(x_extent0=12)
    assert "n <= 11" in str(knl)
    with pytest.raises(lk.IllegalTransformError, match="contradicts"):
        knl.fix_parameters(n=12)


@pytest.mark.parametrize("executor", ["host", "reference"])
def test_launches_take_the_strides_of_the_call(executor: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        b[i] = 2*a[i]
        ... gbarrier
        c[j] = b[n - 1 - j]
        """,
        [lk.GlobalArg("a, b, c", "float32", strides=lk.auto), ...],
    ).tag_inames("i: g.0, j: g.0")
    assert knl.prove().ok
    a = np.arange(12, dtype="f4")[::3]
    b = np.zeros((4, 2), "f4")[:, 0]
    b, c = knl.executor(executor)(a=a, b=b)
    np.testing.assert_array_equal(c, 2 * a[::-1])


def test_copies_of_arrays_that_lie_otherwise_have_no_gaps() -> None:
    """Where memory is copied, a fixed stride that an array lacks does not meet its own others."""
    from seams import stage

    knl = doubled(strides="1, auto")
    a = np.arange(24 * 30, dtype=np.float32).reshape(24, 30)[::2, :7]
    staged = {}

    class Caught(Exception):
        pass

    def run(resolved: Any, *_: Any) -> None:
        staged.update({p.name: stage(p, resolved) for p in knl.program().params})
        raise Caught

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loopkit._run.host_copies.run", run)
        with pytest.raises(Caught):
            knl.executor("cuda")(a=a)
    np.testing.assert_array_equal(staged["a"].host, a)
    assert staged["a_stride1"] == staged["b_stride1"] == 12
