"""Threads of a warp are together where they shuffle and wait, says the machine code."""

import re

import numpy as np
import pytest
from seams import nvdisasm

import loopkit as lk

WAIT = "__syncwarp();"


def along_threads(**options):
    """A sum over threads whose loops differ in length, which one of several blocks makes."""
    knl = lk.make_kernel(
        ["{ [i]: 2 <= i < m }", "{ [j]: 0 <= j < n and j <= 2*i + 1 }", "{ [k]: 0 <= k < m }"],
        """
        for i
            w[i] = a[2*i]
            x[i] = sum(j, b[i - 2])
            y[i] = w[i] + a[i]
        end
        for k
            z[k] = a[k] + b[k]
        end
        """,
        dtypes={"a, b, w, x, y, z": "int32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("k", 8, inner_tag="l.0", outer_tag="g.0")
    return knl.split_iname("j", 2, inner_tag="l.1").split_iname("j_outer", 3, **options)


def through_memory():
    """A maximum over 33 threads whose loops differ in length, which one of several blocks makes."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 5 }", "{ [j]: i <= j < n }", "{ [k]: i < k < n }"],
        """
        for i
            for j
                z[i + 1, j + 1] = c[i, j] + c[j, i]
            end
        end
        for i
            u[i + 1], w[i] = argmax(k, c[k + 1, i], 3*k)
        end
        """,
        dtypes={"c, u, z": "uint8", "w": "uint64"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("j", 8, inner_tag="l.1", outer_tag="g.1")
    return knl.split_iname("k", 33, inner_tag="l.0")


def lines_around(source, text):
    lines = [line.split("//")[0].strip() for line in source.split("\n")]
    at = next(number for number, line in enumerate(lines) if text in line)
    return lines[:at][::-1]


def test_a_warp_waits_in_front_of_the_guard_of_a_shuffle():
    knl = along_threads(inner_tag="unr", slabs=(1, 1))
    before = lines_around(knl.cuda(), "__shfl")
    guard = before.index("if (blockIdx.x == 0) {")
    assert before[guard + 1] == WAIT
    assert knl.prove(text=True).ok


def test_a_warp_waits_in_front_of_the_guard_of_a_barrier():
    """A warp that comes to a barrier in two parts counts twice there."""
    knl = through_memory()
    before = lines_around(knl.cuda(), "__syncthreads")
    guard = before.index("if (blockIdx.y == 0) {")
    assert before[guard + 1] == WAIT
    assert knl.prove(text=True).ok


def test_nobody_waits_where_nothing_stands_between():
    """The sum itself, in loops of different lengths, stands directly in front of the shuffle."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        "y[i] = sum(j, x[i, j])",
        dtypes={"x": "int32"},
        assumptions="n >= 1",
    ).split_iname("j", 32, inner_tag="l.0")
    source = knl.tag_inames("i: g.0").cuda()
    assert "__shfl" in source
    assert WAIT not in source


def test_a_loop_that_holds_a_shuffle_is_a_guard_too():
    """Whether its first pass runs is asked where threads come from loops of their own."""
    knl = lk.make_kernel(
        ["{ [h]: 0 <= h < p }", "{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }"],
        """
        u[h] = 2*v[h]        {id=own}
        for i
            y[i] = sum(j, x[i, j])
        end
        """,
        dtypes={"x, v": "int32"},
        assumptions="n, m, p >= 1",
    ).split_iname("h", 32, inner_tag="l.0")
    knl = knl.split_iname("j", 32, inner_tag="l.0")
    before = lines_around(knl.cuda(), "__shfl")
    loop = next(k for k, line in enumerate(before) if line.startswith("for (int i "))
    assert before[loop + 1] == WAIT


def test_what_all_threads_pass_alike_parts_nobody():
    knl = lk.make_kernel(
        ["{ [h]: 0 <= h < p }", "{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }"],
        """
        <> s = 0           {id=start}
        for h
            if h % 3 == 0
                s = s + v[h]   {id=more, dep=start}
            end
        end
        for i
            if i > 2
                y[i] = s*sum(j, x[i, j])  {dep=more}
            end
        end
        """,
        dtypes={"x, v": "int32"},
        assumptions="n, m, p >= 1",
    ).split_iname("j", 32, inner_tag="l.0")
    assert "__shfl" in knl.cuda()
    assert WAIT not in knl.tag_inames("i: g.0").cuda()


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_no_shuffle_stands_where_threads_are_apart(arch):
    """Behind each branch that a warp may take in two ways it comes together, before it shuffles."""
    knl = along_threads(inner_tag="unr", slabs=(1, 1))
    code = nvdisasm(knl.cubin(arch), "-c")
    assert open_regions(code, "SHFL") == []


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_no_barrier_stands_where_threads_are_apart(arch):
    code = nvdisasm(through_memory().cubin(arch), "-c")
    assert open_regions(code, "BAR.SYNC") == []


def open_regions(code, word):
    """Instructions that stand between a branch of some threads and where the ways meet."""
    lines = code.split("\n")
    places = {m[1]: k for k, line in enumerate(lines) if (m := re.match(r"(\.L_x_\d+):", line))}
    regions = []
    for number, line in enumerate(lines):
        if found := re.search(r"BSSY\S* B\d+, `\((\.L_x_\d+)\)", line):
            regions.append((number, places[found[1]]))
    shuffles = [k for k, line in enumerate(lines) if word in line]
    assert shuffles

    def is_apart(shuffle, region):
        first, last = region
        before = lines[first:shuffle]
        together = any("WARPSYNC" in line or "BRA.DIV" in line for line in before)
        return first < shuffle < last and any("BSYNC" in line for line in before) and not together

    return [lines[k] for k in shuffles if any(is_apart(k, region) for region in regions)]


@pytest.mark.gpu
def test_on_the_gpu():
    knl = along_threads(inner_tag="unr", slabs=(1, 1))
    rng = np.random.default_rng(5)
    for n, m in ((1, 3), (13, 9), (40, 33)):
        given = {"a": rng.integers(-9, 9, 2 * m - 1, "int32"), "b": rng.integers(-9, 9, m, "int32")}
        start = {name: np.zeros(m, "int32") for name in "wxyz"}
        due = knl.executor("reference")(n=n, m=m, **given, **start)
        found = knl.executor("cuda")(n=n, m=m, **given, **{k: v.copy() for k, v in start.items()})
        for mine, its in zip(due, found, strict=True):
            np.testing.assert_array_equal(mine, its)


@pytest.mark.gpu
def test_a_barrier_on_the_gpu():
    """Larger sizes leave in shared memory what must not be taken for a partial result."""
    knl = through_memory()
    rng = np.random.default_rng(5)
    for n in (8, 2, 8, 4, 40, 2) * 10:
        rows, columns = max(5, n + 1), max(5, n)
        given = {"c": rng.integers(0, 99, (rows, columns), "uint8"), "n": n}
        start = {"z": np.zeros((6, n + 1), "uint8"), "u": np.zeros(6, "uint8")}
        start["w"] = np.zeros(5, "uint64")
        due, got = ({name: a.copy() for name, a in start.items()} for _ in range(2))
        knl.executor("reference")(**given, **due)
        knl.executor("cuda")(**given, **got)
        for name in start:
            np.testing.assert_array_equal(got[name], due[name])
