"""Conditions that choose between numbers of inames and sizes: lowering makes loops of them."""

from __future__ import annotations

import pytest
from seams import prove, prove_source

import loopkit as lk


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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        # Twice `i` fits where `i` is small, and only there is it computed.
        ("x[2*i if i < n//2 else n - 1]", ("2 * i : n - 1", "n - 1 : 2 * i")),
        ("x[n - 1 if i >= n//2 else 2*i]", ("n - 1 : 2 * i", "2 * i : n - 1")),
        ("x[0] if i < n//4 and x[3*i] > 0 else 1", ("&&", "||")),
        ("x[0] if i >= n//4 or x[3*i] > 0 else 1", ("||", "&&")),
    ],
)
def test_what_is_not_computed_needs_no_room(text: str, wrong: tuple[str, str]) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = {text}",
        [lk.GlobalArg("x", shape="n"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    assert prove(knl).ok
    source = str(knl.cuda())
    assert "long long" not in source
    assert source.count(wrong[0]) == 1
    found = prove_source(knl, source.replace(*wrong))
    assert "width" in {f.kind for f in found.findings}, str(found)


def test_combined_wrongly_of_a_choice() -> None:
    """What threads combine is not the kernel's: said, though a name of the text's stands in it."""
    knl = (
        lk.make_kernel(
            "{ [i, h, k]: 0 <= i < n and 0 <= h, k < 8 }",
            """
            <> largest = max((h, k), b[i] + k)
            u[i] = largest + min(h, c[i, h] if c[i, h] > 2 else b[i])
            """,
            dtypes={"c, b, u": "int32"},
            assumptions="n >= 4",
        )
        .tag_inames("i: g.0, h: l.0")
        .split_reduction_outward(["k"])
    )
    right = "= min(acc_0, __shfl_xor_sync(255u, acc_0, 4))"
    source = str(knl.cuda())
    assert prove(knl).ok and source.count(right) == 1
    assert prove_source(knl, source.replace(right, right.replace("min", "max"))).refuted


def test_records_have_no_sign() -> None:
    knl = lk.make_kernel(
        "{ [j]: 0 <= j < 32 }",
        "least[0], place[0] = argmin(j, x[j], j)",
        dtypes={"x, least": "float32", "place": "int32"},
    ).tag_inames("j: l.0")
    source = str(knl.cuda())
    assert prove(knl).ok and "lk_argmin_of_two(acc," in source
    assert not prove_source(knl, source.replace("of_two(acc,", "of_two(- -acc,", 1)).ok
