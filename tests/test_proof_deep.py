"""Long sums are proven, and what is nested too deep is an answer, not a crash."""

from __future__ import annotations

import pytest
from seams import prove, prove_source

import loopkit as lk


def copied() -> lk.Kernel:
    return lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i]", dtypes={"x, y": "int32"})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int16", "int64"])
def test_long_sums(dtype: str) -> None:
    terms = " + ".join(f"x[i]*{k % 5 + 2}" for k in range(1200))
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = {terms}", dtypes={"x, y": dtype})
    proof = prove(knl)
    assert proof.ok, str(proof)
    source = knl.cuda()
    at = source.rindex("x[i]")
    wrong = prove_source(knl, source[:at] + "y[i]" + source[at + 4 :])
    assert wrong.findings and not wrong.ok


def test_long_subscripts_and_predicates() -> None:
    index = " + ".join(f"{k % 3 + 1}*i" for k in range(600))
    data = " + ".join(f"{k % 3 + 1}*x[i]" for k in range(600))
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 9 }",
        f"y[i] = z[{index}] {{if={data} > 3 and {index} < 3000}}",
        dtypes={"x, y, z": "int32"},
    )
    proof = prove(knl)
    assert not proof.findings, str(proof)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [100, 400, 3000])
@pytest.mark.parametrize(
    ("old", "opened", "closed"),
    [
        ("y[i] = x[i];", "if (n > 0) ", ""),
        ("y[i] = x[i];", "{ ", "}"),
        ("y[i] = x[i];", "for (int j = 0; j < 1; ++j) ", ""),
        ("x[i]", "(", ")"),
        ("x[i]", "- ", ""),
        ("x[i]", "(int)", ""),
        ("x[i]", "abs(", ")"),
        ("x[i]", "i ? 1 : ", ""),
        ("y[i] = x[i];", "if (" + " && ".join(["i < n"] * 400) + ") ", ""),
    ],
)
def test_what_is_nested_deep(depth: int, old: str, opened: str, closed: str) -> None:
    source = copied().cuda()
    text = source.replace(old, opened * depth + old + closed * depth, 1)
    proof = prove_source(copied(), text)
    assert not proof.ok
    assert not proof.findings
    assert [u.kind for u in proof.undecided] == ["text"]


def test_long_sums_on_threads() -> None:
    """Lines are told apart by what they store, however long that is."""
    terms = " + ".join(f"x[i + {q}]" for q in range(700))
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = {terms}", dtypes={"x, y": "float32"})
    assert knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").prove().ok
