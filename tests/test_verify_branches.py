"""`verify` follows temporaries that branches store, and conditions in any order."""

from __future__ import annotations

from typing import Any

import pytest

import loopkit as lk


def make(text: str, dtype: str = "float32", *, domain: str = "{ [i]: 0 <= i < n }") -> lk.Kernel:
    data: list[Any] = [lk.GlobalArg(a, dtype, shape="n + 1") for a in "xyz"]
    used = [a for a in data if a.name in "xy" or "z[" in text]
    return lk.make_kernel(domain, text, [*used, ...], assumptions="n >= 1")


def both_ways(one: lk.Kernel, two: lk.Kernel) -> set[str]:
    return {lk.verify(one, two).answer, lk.verify(two, one).answer}


BRANCH = """
if x[i] > 0
  y[i] = x[i]*z[i]
else
  y[i] = z[i]
end
"""

SAME = {
    "replaced": "<> t = z[i]\nif x[i] > 0\n  t = x[i]*z[i]\nend\ny[i] = t",
    "replaced by a choice": "<> t = z[i]\nt = x[i]*z[i] if x[i] > 0 else t\ny[i] = t",
    "a choice": "<> t = x[i]*z[i] if x[i] > 0 else z[i]\ny[i] = t",
    "in both branches": "if x[i] > 0\n  <> t = x[i]*z[i]\nelse\n  t = z[i]\nend\ny[i] = t",
    "the other one first": "if not x[i] > 0\n  <> t = z[i]\nelse\n  t = x[i]*z[i]\nend\ny[i] = t",
    "within a branch": "if x[i] > 0\n  <> t = x[i]*z[i]\n  y[i] = t\nelse\n  y[i] = z[i]\nend",
    "twice": "<> t = z[i]\n<> s = t\nif x[i] > 0\n  s = x[i]*t\nend\ny[i] = s",
    "in steps": "<> t = z[i]\nif x[i] > 0\n  t = t*x[i]\nend\ny[i] = t",
    "a condition": "<> c = x[i]\n<> t = z[i]\nif c > 0\n  t = t*c\nend\ny[i] = t",
    "in a cell": "<> t[i] = z[i]\nif x[i] > 0\n  t[i] = x[i]*z[i]\nend\ny[i] = t[i]",
}


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("case", SAME)
def test_values_that_branches_store(case: str, dtype: str) -> None:
    one, two = make(BRANCH, dtype), make(SAME[case], dtype)
    assert both_ways(one, two) == {"equal"}


def test_values_that_branches_of_threads_store() -> None:
    one = make(BRANCH).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    two = make(SAME["replaced"]).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert both_ways(one, make(SAME["in both branches"])) == {"equal"}
    assert both_ways(make(BRANCH), two) == {"equal"}


OTHER = {
    "the other condition": "<> t = z[i]\nif x[i] >= 0\n  t = x[i]*z[i]\nend\ny[i] = t",
    "the other value": "<> t = x[i]*z[i]\nif x[i] > 0\n  t = z[i]\nend\ny[i] = t",
    "both run": (
        "<> t = z[i]\nif x[i] > 0\n  t = x[i]*z[i]\nend\nif x[i] < 3\n  t = z[i]\nend\ny[i] = t"
    ),
    "what it was before": "<> t = z[i]\n<> s = t\nif x[i] > 0\n  t = x[i]*z[i]\nend\ny[i] = s",
    "the condition changes": (
        "<> c = x[i]\n<> t = z[i]\nif c > 0\n  c = 0 - c\n  t = x[i]*z[i] {if=c > 0}\nend\ny[i] = t"
    ),
    "what is read changes": (
        "<> t = z[i]\ny[i] = 1\nif x[i] > 0\n  t = y[i]*x[i]\n  y[i] = 2\nend\ny[i] = t"
    ),
    "carried on": "<> t = z[0]\nfor i\nif x[i] > 0\n  t = x[i]*z[i]\nend\ny[i] = t\nend",
    "another cell": "<> t[i] = z[i]\nif x[i] > 0\n  t[0] = x[i]*z[i]\nend\ny[i] = t[i]",
}


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("case", OTHER)
def test_values_that_differ(case: str, dtype: str) -> None:
    assert "equal" not in both_ways(make(BRANCH, dtype), make(OTHER[case], dtype))


def test_a_value_is_stored_in_the_type_of_its_temporary() -> None:
    one = make("<int8> t = x[i]\nif x[i] > 0\n  t = 2*x[i]\nend\ny[i] = t", "int64")
    two = make("y[i] = 2*x[i] if x[i] > 0 else x[i]", "int64")
    assert "equal" not in both_ways(one, two)


@pytest.mark.parametrize(
    ("one", "two", "answer"),
    [
        ("x[i] > 0 and z[i] > 0", "z[i] > 0 and x[i] > 0", "equal"),
        ("x[i] > 0 and x[i] > 0", "x[i] > 0", "equal"),
        ("x[i] > 0 and i > 2 and z[i] > 0", "z[i] > 0 and x[i] > 0 and i > 2", "equal"),
        ("x[i] > 0 and z[i] > 0", "z[i] > 0 and x[i] < 0", "different"),
        ("x[i] > z[i]", "z[i] > x[i]", "different"),
    ],
)
def test_conditions_in_another_order(one: str, two: str, answer: str) -> None:
    kernels = (make(f"y[i] = z[i] {{if={c}}}") for c in (one, two))
    assert both_ways(*kernels) == {answer}
