"""Measuring: what is timed, with which data, and that nothing of the caller's changes."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_kernels import jacobi, swept
from seams import MOST_LAUNCHES, driver, launches_for, middle, order, paired, warm

import loopkit as lk

SHORT = {"seconds": 1e-3}


def scale(text: str = "b[i] = 2*a[i]", dtype: str = "float32", names: str = "a, b") -> lk.Kernel:
    return lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={names: dtype})


# -- turns


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=40),
    st.lists(st.floats(1e-6, 1), min_size=40, max_size=40),
)
def test_ratios_are_those_of_neighbours(names: list[str], seconds: list[float]) -> None:
    work = {"a": 1.0, "b": 2.0, "c": 0.5}
    times = list(zip(names, seconds, strict=False))
    found = paired("a", times, work)
    for name in set(names):
        assert found[name].seconds == [t for n, t in times if n == name]
        expected = []
        for position, (n, t) in enumerate(times):
            beside = [times[p][1] for p in (position - 1, position + 1) if 0 <= p < len(times)
                      and times[p][0] == "a"]  # fmt: skip
            if n == name != "a" and beside:
                expected.append((work[n] / t) / (1.0 / statistics.fmean(beside)))
        assert found[name].ratios == pytest.approx(expected)
    assert all(not slots.ratios for slots in paired(None, times, work).values())


@given(st.integers(1, 5), st.integers(1, 6))
def test_everybody_stands_between_two_slots_of_the_reference(others: int, rounds: int) -> None:
    names = [f"k{n}" for n in range(others)]
    slots = list(order(["first", *names], "first", rounds))
    assert slots[0] == slots[-1] == "first"
    for position, name in enumerate(slots):
        if name != "first":
            assert slots[position - 1] == slots[position + 1] == "first"
    assert all(slots.count(name) == rounds for name in names)
    assert list(order(names, None, rounds)) == names * rounds


def test_slots_are_short() -> None:
    assert launches_for(1e-9) == MOST_LAUNCHES
    assert launches_for(0) == MOST_LAUNCHES
    assert launches_for(0.005) == 3
    assert launches_for(10) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_middle_half(values: list[float]) -> None:
    low, high = middle(values)
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.25, 0.75])))


# -- on the CPU


@pytest.mark.host
def test_on_the_cpu_it_says_so() -> None:
    found = lk.measure(scale(), n=1000, executor="host", **SHORT)
    assert found.executor == "host" and found.device is None and found.roofline is None
    assert found.share is None and not found.flush_l2
    assert found.seconds == statistics.median(found.times) > 0
    assert found.fastest <= found.middle[0] <= found.middle[1]
    assert found.bandwidth == pytest.approx(8000 / found.seconds)
    assert found.rate == pytest.approx(1000 / found.seconds)
    assert "on the CPU" in str(found) and "does not show how fast a GPU" in str(found)
    assert "roofline" not in str(found)
    assert repr(found) == str(found) and len(str(found)) < 500
    assert found.made == ("a",) and "random numbers in a" in str(found)


@pytest.mark.host
def test_the_callers_arrays_stay_as_they_are() -> None:
    knl = scale("b[i] = a[i] + b[i]")
    a, b = np.arange(50, dtype="f4"), np.arange(50, dtype="f4")
    found = lk.measure(knl, a=a, b=b[:], executor="host", **SHORT)
    assert found.sizes == (("n", 50),)
    assert found.in_place == ("b",) and "updated in place" in str(found)
    np.testing.assert_array_equal(a, np.arange(50))
    np.testing.assert_array_equal(b, np.arange(50))


@pytest.mark.host
def test_what_is_updated_begins_anew_each_time() -> None:
    from seams import on_host

    knl = scale("b[i] = 2*b[i]", names="b")
    with on_host(knl, {"b": np.ones(7, "f4"), "n": 7}, "host") as run:
        warm(run)
        run.slot(3)
        np.testing.assert_array_equal(run.outputs()["b"], 2)


@pytest.mark.host
@pytest.mark.parametrize("executor", ["host", "reference"])
def test_strided_arrays(executor: str) -> None:
    a, b = np.arange(40, dtype="f4")[::-2], np.zeros((20, 3), "f4")[:, 1]
    lk.measure(scale(), a=a, b=b, executor=executor, **SHORT)
    assert not b.any()


def test_types_that_only_arrays_tell() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", [lk.GlobalArg("a"), ...])
    found = lk.measure(knl, a=np.ones(9), executor="reference", **SHORT)
    assert found.bandwidth == pytest.approx(2 * 9 * 8 / found.seconds)
    with pytest.raises(lk.TypeInferenceError, match="type of 'a'"):
        lk.measure(knl, n=9, executor="reference", **SHORT)


# -- data


def made(knl: lk.Kernel, **given: Any) -> dict[str, Any]:
    from seams import prepared

    return dict(prepared(knl, given, 0).arguments)


def test_random_data_are_never_zeros() -> None:
    found = made(scale(), n=1000)
    assert found["a"].shape == (1000,) and found["a"].std() > 0.4
    assert "b" not in found
    np.testing.assert_array_equal(made(scale(), n=1000)["a"], found["a"])


def test_some_arrays_given_tell_the_sizes_of_others() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "c[i, j] = a[i]*b[j]",
        dtypes={"a, b, c": "float64"},
    )
    found = made(knl, a=np.ones(3), m=4)
    assert found["b"].shape == (4,) and (found["n"], found["m"]) == (3, 4)
    with pytest.raises(lk.InvalidArgumentError, match="the value of m is not known"):
        made(knl, a=np.ones(3))
    with pytest.raises(lk.InvalidArgumentError, match="the value of n is not known"):
        made(knl)


def gather(*assertions: Any) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[col[i]]",
        [lk.GlobalArg("a", np.float32, shape="m"), ...],
        dtypes={"b": "float32", "col": "int32"},
    )
    for assertion in assertions:
        knl = assertion(knl)
    return knl


def test_index_arrays_need_to_be_known() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="the values of 'col' decide") as caught:
        made(gather(), n=10, m=20)
    assert 'assume_within("col"' in str(caught.value)
    assert made(gather(), n=3, m=20, col=np.zeros(3, np.int32))["a"].shape == (20,)
    col = made(gather(lambda k: k.assume_within("col", 0, "m")), n=1000, m=20)["col"]
    assert set(col.tolist()) == set(range(20))
    both = gather(lambda k: k.assume_within("col", 0, "m"), lambda k: k.assume_injective("col"))
    assert sorted(made(both, n=20, m=20)["col"].tolist()) == list(range(20))


def test_bounds_that_data_give_need_to_be_known() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: low <= j < high }"],
        """
        <> low = start[i]
        <> high = start[i + 1]
        y[i] = sum(j, a[j])
        """,
        [
            lk.GlobalArg("a", np.float32, shape="m"),
            lk.GlobalArg("start", np.int32, shape="n + 1"),
            ...,
        ],
        dtypes={"y": "float32"},
    )
    with pytest.raises(lk.InvalidArgumentError, match="the values of 'start' decide"):
        made(knl, n=10, m=20)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (lk.UnknownNameError, "no argument 'x'", {"n": 3, "x": 1}),
        (lk.InvalidArgumentError, "seconds is a number", {"n": 3, "seconds": 0}),
        (lk.InvalidArgumentError, "seconds is a number", {"n": 3, "seconds": "long"}),
        (lk.InvalidArgumentError, "seconds is a number", {"n": 3, "seconds": float("nan")}),
        (lk.InvalidArgumentError, "flush_l2 is True or False", {"n": 3, "flush_l2": 2}),
        (lk.InvalidArgumentError, "seed is an integer", {"n": 3, "seed": "x"}),
        (lk.UnknownNameError, "no executor 'gpu'", {"n": 3, "executor": "gpu"}),
        (lk.InvalidArgumentError, "dtype should be float32", {"a": np.ones(3)}),
        (lk.InvalidArgumentError, "would have the shape", {"n": -3}),
    ],
)
def test_what_cannot_be_measured(error: type[Exception], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        lk.measure(scale(), **{"executor": "reference", **call})


def test_arguments_are_a_mapping_or_named() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < seconds }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    found = lk.measure(knl, {"seconds": 5}, executor="reference", seconds=0.001)
    assert found.sizes == (("seconds", 5),)
    with pytest.raises(lk.InvalidArgumentError, match="n was given twice"):
        lk.measure(scale(), {"n": 3}, n=4)
    with pytest.raises(lk.InvalidArgumentError, match="maps names to arrays"):
        lk.measure(scale(), 5)  # type: ignore[arg-type]
    with pytest.raises(lk.InvalidArgumentError, match="measure takes a kernel"):
        lk.measure("kernel", n=4)  # type: ignore[arg-type]


def test_without_a_gpu_cuda_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise lk.MissingDependencyError("there is no NVIDIA driver on this machine")

    monkeypatch.setattr(driver, "api", none)
    with pytest.raises(lk.MissingDependencyError, match="no NVIDIA driver"):
        lk.measure(scale(), n=10, executor="cuda")


# -- several


def dot(*schedule: str) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 40 }",
        "y[i] = sum(k, a[i, k])",
        dtypes={"a, y": "float32"},
    )
    for iname in schedule:
        knl = knl.split_iname(iname, 4)
    return knl


@pytest.mark.host
def test_compare_says_how_much_faster() -> None:
    kernels = {"first": dot(), "split": dot("k"), "both": dot("i", "k")}
    found = lk.compare(kernels, n=50, executor="host", **SHORT)
    assert [e.name for e in found.entries] == ["first", "split", "both"]
    assert found["first"].ratio == 1
    assert all(e.middle[0] <= e.ratio <= e.middle[1] for e in found.entries)
    assert found["split"].errors[0][1] < 1e-5
    assert found.fastest.ratio == max(e.ratio for e in found.entries)
    lines = str(found).splitlines()
    assert "on the CPU" in lines[0] and "beside first" in lines[1] and len(lines) == 5
    with pytest.raises(lk.UnknownNameError, match="no kernel 'third'"):
        found["third"]


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (
            scale("b[i] = 2*a[i] + 0.01"),
            "'other' does not compute what 'good' computes: 'b' differs",
        ),
        (scale("c[i] = 2*a[i]", names="a, c"), "'good' writes b, and 'other' writes c"),
        (
            lk.make_kernel(
                "{ [i]: 0 <= i < n - 1 }",
                "b[i] = 2*a[i]",
                [lk.GlobalArg(name, np.float32, shape="n") for name in "ab"] + [...],
            ),
            r"'b' differs: .* b\[9\] should be .*, but is nan",
        ),
    ],
)
def test_kernels_that_compute_something_else_are_not_compared(other: lk.Kernel, match: str) -> None:
    with pytest.raises(lk.LoopkitError, match=match):
        lk.compare({"good": scale(), "other": other}, n=10, executor="reference")


def test_a_tolerance_lets_them_differ() -> None:
    others = {"good": scale(), "other": scale("b[i] = 2*a[i] + 0.01")}
    found = lk.compare(others, n=10, executor="reference", tolerance=0.1, **SHORT)
    assert 0 < found["other"].errors[0][1] < 0.1


@pytest.mark.parametrize(
    ("kernels", "match"),
    [
        ({}, "two kernels or more"),
        ({"one": scale()}, "two kernels or more"),
        ([scale(), scale()], "two kernels or more"),
        ({"one": scale(), "two": "kernel"}, "takes kernels by name"),
        ({"one": scale(), 2: scale()}, "takes kernels by name"),
    ],
)
def test_what_is_no_contest(kernels: Any, match: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=match):
        lk.compare(kernels, n=10)


def test_a_name_that_nobody_has() -> None:
    with pytest.raises(lk.UnknownNameError, match="no argument 'm'"):
        lk.compare({"one": scale(), "two": scale()}, n=10, m=3)


def test_each_launch_has_its_share() -> None:
    found = lk.measure(swept(), n=2000, steps=3, seconds=0.05, executor="host")
    assert [(one.name, one.times) for one in found.launches] == [("jacobi", 3), ("jacobi_2", 3)]
    assert abs(sum(one.share for one in found.launches) - 1) < 1e-9
    assert all(one.seconds > 0 for one in found.launches)
    assert "of all, 3 times" in str(found)
    assert found.costs.times == 6
    alone = lk.measure(swept().launches()[0], n=100, seconds=0.02, executor="host")
    assert alone.launches == ()
    assert lk.measure(swept(), n=20, steps=0, seconds=0.02, executor="host").launches == ()
    read = lk.measure(swept(), n=20, steps=1, seconds=0.02, executor="reference")
    assert read.launches == ()


def test_kernels_of_several_launches_take_turns() -> None:
    both = lk.compare({"text": jacobi(), "fast": swept()}, n=500, steps=2, seconds=0.05)
    said = str(both)
    assert "launches of text:" in said and "launches of fast:" in said
    assert both["fast"].measurement.launches
