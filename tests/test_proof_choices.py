"""Conditions that choose between numbers of inames and sizes: lowering makes loops of them."""

from __future__ import annotations

import pytest

import loopkit as lk
from loopkit.codegen.proof import prove, prove_source


def kernel(condition: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        f"y[i, j] = 1 {{if={condition}}}",
        dtypes={"y": "float32"},
        assumptions="n >= 1",
    )


@pytest.mark.parametrize(
    "condition",
    [
        "(i if i < 3 else j) > 3",
        "2*(i if i < 3 else j) - (j if j < i else 5) >= 3",
        "(i if (j if j < 4 else n) < 3 else j) != 3",
        "(i if i < 3 else 2*j) + 1 > j",
        "(i if i < 3 or j == 2 else j) == 4",
    ],
)
def test_both_branches_are_looked_at(condition: str) -> None:
    proof = prove(kernel(condition))
    assert proof.ok, str(proof)


def test_another_branch_is_found() -> None:
    knl = kernel("(i if i < 3 else j) > 3")
    source = str(knl.cuda())
    assert "int j = 4;" in source
    found = prove_source(knl, source.replace("int j = 4;", "int j = 3;"))
    assert [f.kind for f in found.findings] == ["instances"]


@pytest.mark.parametrize("call", ["fmin(i*2, n)", "fmax(i*2, n)", "sign(i - 2)", "abs(i - 2)"])
def test_functions_of_inames_are_not_refuted(call: str) -> None:
    proof = prove(kernel(f"{call} > 1"))
    assert not proof.findings, str(proof)
