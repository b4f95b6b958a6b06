"""What domains and assumptions may say about a kernel's names, and what they may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopkit as lk
from loopkit import InvalidArgumentError, UnknownNameError


def kernel(assumptions: Any = None, text: str = "y[i] = x[i]", **more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", text, assumptions=assumptions, dtypes={"x": "int32"}, **more
    )


@pytest.mark.parametrize(
    ("assumptions", "text", "what"),
    [
        ("x >= 1", "y[i] = x[i]", "an array"),
        ("n >= 1 and y >= 1", "y[i] = x[i]", "an array"),
        ("i >= 0", "y[i] = x[i]", "an iname"),
        ("t >= 0", "<> t = x[i]\ny[i] = t", "a temporary"),
    ],
)
def test_assumptions_are_about_sizes(assumptions: str, text: str, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"is {what}, and assumptions are about sizes"):
        kernel(assumptions, text)


def test_an_assumption_about_nothing_is_a_mistake() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'n'"):
        kernel("nn >= 1")


def test_assumptions_about_what_is_mentioned_elsewhere() -> None:
    assert "off" in kernel("off >= 0 and n >= 1", "y[i] = x[i + off]").sizes
    assert "q" in kernel("q >= 0", kernel_data=["q", "..."]).sizes
    declared = [lk.GlobalArg("y", "int32", "n + q"), "..."]
    assert "q" in kernel("q >= 0", kernel_data=declared).sizes
    tiles = [lk.TemporaryVariable("t", "int32", "n + q"), "..."]
    text = "t[i] = x[i]\ny[i] = t[i]"
    assert "q" in kernel("q >= 0", text, kernel_data=tiles).sizes


@pytest.mark.parametrize(
    "text", ["exists(e: n = 4*e)", "n mod 4 = 0", "exists e, f: n = 2e and e = 2f"]
)
def test_congruences_are_assumed_and_checked(text: str) -> None:
    made = kernel(f"n >= 1 and {text}")
    run = made.executor("reference")
    assert run(x=np.arange(8, dtype=np.int32)).tolist() == list(range(8))
    with pytest.raises(lk.AssumptionError):
        run(x=np.arange(6, dtype=np.int32))
    assert "if" not in made.split_iname("i", 4).cuda()


def test_a_union_beside_a_plain_condition_is_a_domain_of_its_own() -> None:
    made = lk.make_kernel(
        "{ [i, k]: 0 <= k < 3 and (0 <= i < 2 or 4 <= i < 7) }", "y[i] = sum(k, k)"
    )
    assert [d.inames for d in made.domains] == [("i",), ("k",)]
