"""Loads that compilers may make one: none becomes one of read-only memory that is none."""

from __future__ import annotations

import re

import numpy as np
import pytest
from seams import nvdisasm

import loopkit as lk


def neighbours(value: str, update: str = "v[j] = 2*a[j]") -> lk.Kernel:
    """Threads that write ``v`` and read it beside ``b``, behind a barrier."""
    plain = lk.make_kernel(
        "{ [j]: 0 <= j < 96 }",
        f"""
        for j
            {update}
        end
        for j
            u[j] = {value}
        end
        """,
        [lk.GlobalArg("a, b, u, v", "int32", shape=96)],
    )
    return plain.tag_inames("j: l.0")


VALUES = {
    "v[j - 1] if j >= 1 else b[j]": {"b"},
    "b[j] if j < 1 else v[j - 1]": {"b"},
    "(v[j - 1] if j >= 1 else b[j]) + 1": {"b"},
    "v[j - 1] + 1 if j >= 1 else 1 + b[j]": {"b"},
    "v[j - 1] if j >= 1 else b[j]*b[j]": set(),
    "v[j] + b[j]": set(),
    "a[j] if j >= 1 else b[j]": set(),
}


@pytest.mark.parametrize("value", VALUES)
def test_what_is_not_promised(value: str) -> None:
    source = str(neighbours(value).cuda())
    plain = set(re.findall(r"int const \*(?!__)(\w+)", source))
    assert plain == VALUES[value]


@pytest.mark.parametrize("dtype", ["int64", "int16"])
def test_loads_of_other_sizes_stay_apart(dtype: str) -> None:
    knl = lk.make_kernel(
        "{ [j]: 0 <= j < 96 }",
        "v[j] = 2*a[j]\nu[j] = v[j] if j >= 1 else b[j]",
        dtypes={"a, v": "int32", "b": dtype, "u": "int64"},
    )
    assert "int const *b" not in str(knl.cuda()) and "*__restrict__ b" in str(knl.cuda())


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize("update", ["v[j] = 2*a[j]", "v[j] = v[j] + a[j] {atomic}"])
def test_the_load_stays_behind_the_barrier(arch: str, update: str) -> None:
    """What is read behind the barrier is loaded there, and as what may have changed."""
    code = nvdisasm(neighbours("v[j - 1] if j >= 1 else b[j]", update).cubin(arch), "-c")
    _, behind = re.split(r"BAR\.SYNC", code)
    loads = re.findall(r"LDG\S*", behind)
    assert loads and not any("CONSTANT" in load for load in loads)


@pytest.mark.gpu
@pytest.mark.parametrize("update", ["v[j] = 2*a[j]", "v[j] = v[j] + a[j] {atomic}"])
def test_on_the_gpu(update: str) -> None:
    knl = neighbours("v[j - 1] if j >= 1 else b[j]", update)
    a, b = np.arange(96, dtype=np.int32), -np.arange(1, 97, dtype=np.int32)
    given = {"a": a, "b": b, "v": 3 * a}
    due = knl.executor("reference")(**{n: x.copy() for n, x in given.items()})
    found = knl.executor("cuda")(**{n: x.copy() for n, x in given.items()})
    for mine, its in zip(found, due, strict=True):
        np.testing.assert_array_equal(mine, its)
