"""What all threads have combined is the same for each: it may decide what they do together."""

from __future__ import annotations

import numpy as np
import pytest
from seams import uniform as _uniform

import loopkit as lk

ALL = "b: g.0, i: l.0, j: l.0"


def rows(condition: str, first: str = "top = max(i, x[b, i])", m: int = 113) -> lk.Kernel:
    """Of rows, under a condition on one combined value, another one."""
    return lk.make_kernel(
        f"{{ [b, i, j]: 0 <= b < n and 0 <= i, j < {m} }}",
        f"""
        for b
            <> {first}
            if {condition}
                <> total = sum(j, x[b, j])
                y[b] = total
            end
        end
        """,
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )


def test_a_combined_value_decides_whether_threads_combine() -> None:
    knl = rows("top > 2").tag_inames(ALL)
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    x = np.zeros((4, 113), np.float32)
    x[1, 7], x[3, 112], x[3, 0] = 3, 9, 1
    for order in ("ascending", "descending", "random"):
        y = np.full(4, -1, np.float32)
        knl.executor("host", order=order)(x=x, y=y)
        assert y.tolist() == [-1, 3, -1, 10]


@pytest.mark.parametrize("by", ["shuffle", "shared"])
def test_values_made_of_it_decide_too(by: str) -> None:
    knl = rows("2*top - 1 > x[b, 0] and n > 1", "top = sum(i, x[b, i])", m=64).tag_inames(ALL)
    assert knl.realize_reduction(by=by).prove().ok


@pytest.mark.parametrize(
    ("condition", "first"),
    [
        ("top > 0", "top, <> at = argmax(i, x[b, i], i)"),
        ("1/top > 0", "top = max(i, x[b, i])"),
        ("exp(top) > 0", "top = min(i, x[b, i])"),
    ],
    ids=["records", "signs", "calls"],
)
def test_values_that_may_differ_in_their_bits_decide_nothing(condition: str, first: str) -> None:
    knl = rows(condition, first)
    with pytest.raises(lk.IllegalTransformError, match="which may differ between threads"):
        knl.tag_inames(ALL)


def halves() -> lk.Kernel:
    return lk.make_kernel(
        "{ [k, i, j]: 0 <= k < 4 and 0 <= i, j < 32 }",
        """
        for k
            <> top = sum(i, x[k, i])
            if top > 0
                <> total = sum(j, x[k, j])
                y[k] = total
            end
        end
        """,
        dtypes={"x, y": "float32"},
    )


def test_what_one_axis_has_combined_decides_for_others_on_that_axis() -> None:
    """Threads of another row combine whatever it is, and use nothing of it."""
    knl = halves().tag_inames("k: l.1, i: l.0, j: l.0")
    assert knl.prove().ok
    x = np.zeros((4, 32), np.float32)
    x[1, 7], x[2, 3], x[3, 31] = 3, -2, 1
    for order in ("ascending", "descending", "random"):
        y = np.full(4, -1, np.float32)
        knl.executor("host", order=order)(x=x, y=y)
        assert y.tolist() == [-1, 3, -1, 1]


def test_the_proof_knows_by_itself_who_has_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_uniform, "_is_of_all", lambda *_: True)
    proof = halves().tag_inames("k: l.1, i: l.0, j: l.0").prove()
    assert any(finding.kind == "divergent barrier" for finding in proof.findings)


def test_a_running_result_differs_between_threads() -> None:
    knl = lk.make_kernel(
        "{ [b, i, k, j]: 0 <= b < n and 0 <= i < 64 and 0 <= k <= i and 0 <= j < 64 }",
        """
        for b
            for i
                <> t = sum(k, x[b, k])
                z[b, i] = t
            end
            <> total = sum(j, x[b, j])
            y[b] = total
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    ).realize_reduction(force_scan=True)
    knl = knl.tag_inames("b: g.0, i: l.0, j: l.0")
    assert knl.prove().ok
