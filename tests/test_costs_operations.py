"""Operations are those of the text, as often as it takes them."""

from __future__ import annotations

import pytest

import loopkit as lk


def operations(text: str, n: int, **types: str) -> dict[tuple[str, str], int]:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", text, dtypes={"a, b": "float32", **types}, assumptions="n >= 1"
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    return {kind: times for kind, times in knl.costs(n=n).operations if times}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b[i] = a[i]", {}),
        ("b[i] = 2*a[i] - 1", {("mul", "float32"): 70, ("add", "float32"): 70}),
        ("b[i] = a[i]*a[i]*a[i]", {("mul", "float32"): 140}),
        ("b[i] = sqrt(a[i])/3", {("sqrt", "float32"): 70, ("div", "float32"): 70}),
        ("b[i] = max(a[i], 2)", {("max", "float32"): 70}),
        ("b[i] = -a[i]", {}),
        # Guards say which instances there are; subscripts are no arithmetic of the text.
        ("b[i] = a[2*(i//2)] + 1 {if=(i % 7 == 0)}", {("add", "float32"): 10}),
    ],
)
def test_kinds(text: str, expected: dict[tuple[str, str], int]) -> None:
    assert operations(text, 70) == expected


def test_a_branch_counts_where_it_is_taken() -> None:
    found = operations("b[i] = a[i]*a[i] if i < 9 else a[i] + 1", 70)
    assert found["mul", "float32"] == 9 and found["add", "float32"] == 61
    assert found["select", "float32"] == 70


def test_a_condition_on_data_counts_as_true() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = 3*a[i] {if=(a[i] > 0)}",
        dtypes={"a, b": "float32"},
    )
    costs = knl.costs(n=50)
    assert dict(costs.operations) == {("compare", "float32"): 50, ("mul", "float32"): 50}
    assert costs.at_most == ("insn",)


def test_reductions() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "b[i] = sum(j, a[i, j]*a[i, j])",
        dtypes={"a, b": "float64"},
    )
    costs = knl.costs(n=1000)
    half = 1000 * 1001 // 2
    assert dict(costs.operations) == {("add", "float64"): half, ("mul", "float64"): half}
    # The same of open sizes: half of a square.
    open_ = dict(knl.costs().operations)
    assert str(open_["mul", "float64"]) == "n**2/2 + n/2"
    assert open_["mul", "float64"](n=1000) == half
