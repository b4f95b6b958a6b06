"""Reductions over loops whose bodies compute what is reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopkit as lk

DOMAIN = "{ [i, j]: 0 <= i, j < n }"
PAIRS = """
for i
    for j
        <> d = x[i] - x[j]
        <> p = d*d if i != j else 0
    end
    y[i] = sum(j, p)
end
"""


def made(text: str, domain: Any = DOMAIN, **more: Any) -> lk.Kernel:
    return lk.make_kernel(domain, text, dtypes={"x": "float64"}, **more)


def by_hand(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(((x[:, None] - x) ** 2).sum(1))


SCHEDULES: dict[str, Callable[[lk.Kernel], lk.Kernel]] = {
    "text": lambda k: k,
    "blocks": lambda k: k.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0"),
    "unrolled": lambda k: k.split_iname("j", 4, inner_tag="unr"),
    "threads": lambda k: k.split_iname("j", 8, inner_tag="l.0"),
    "both": lambda k: k.split_iname("j", 4).tag_inames("i: g.0"),
}


@pytest.mark.host
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", [1, 7, 13])
def test_schedules(schedule: str, n: int) -> None:
    knl = SCHEDULES[schedule](made(PAIRS))
    x = np.random.default_rng(n).random(n)
    for name in ("reference", "host"):
        np.testing.assert_allclose(knl.executor(name)(x=x), by_hand(x))
    assert knl.prove().ok


def test_is_the_sum_of_what_is_stored_for_each() -> None:
    held = made("for i\nfor j\n<> d = x[i] - x[j]\n<> p = d*d\nend\ny[i] = sum(j, p)\nend")
    stored = made("<> p[j] = (x[i] - x[j])*(x[i] - x[j])\ny[i] = sum(j, p[j])")
    assert lk.verify(held, stored).answer == "equal"


@pytest.mark.host
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<> d = x[i] - x[j]\ny[i] = sum(j, d) + max(j, abs(d))", None),
        (
            "for i\nfor j\n<> d = x[i] - x[j]\nend\n<> m, <> w = argmin(j, d, j)\ny[i] = w\nend",
            lambda x: np.full(len(x), x.argmax()),
        ),
        (
            "for i\nfor j\n<> d = x[i] - x[j]\nend\ny[i] = sum((j, k), d*k)\nend",
            lambda x: 3 * (x[:, None] - x).sum(1),
        ),
        (
            "for i\nfor j\n<> d = x[i] - x[j]\nend\nfor j\nz[j] = 1\nend\ny[i] = sum(j, d)\nend",
            lambda x: (x[:, None] - x).sum(1),
        ),
    ],
)
def test_forms(text: str, expected: Any) -> None:
    knl = made(text, [DOMAIN, "{ [k]: 0 <= k < 3 }"])
    x = np.random.default_rng(3).random(6)
    pairs = x[:, None] - x
    wanted = pairs.sum(1) + abs(pairs).max(1) if expected is None else expected(x)
    for name in ("reference", "host"):
        result = knl.executor(name)(x=x)
        np.testing.assert_allclose(result[-1] if isinstance(result, tuple) else result, wanted)


@pytest.mark.host
def test_bounds_that_the_loop_loads() -> None:
    knl = lk.make_kernel(
        ["{ [i, b]: 0 <= i < n and 0 <= b < m }", "{ [p]: 0 <= p < count }"],
        "for i\nfor b\n<> count = c[b]\nend\ny[i] = sum((b, p), i + p)\nend",
        dtypes={"c": "int32"},
    )
    c = np.array([2, 0, 3], np.int32)
    expected = [sum(i + p for b in c for p in range(b)) for i in range(4)]
    for name in ("reference", "host"):
        assert np.array_equal(knl.executor(name)(n=4, c=c), expected)


@pytest.mark.parametrize(
    "text",
    [
        "for i\nfor j\n<> d = x[i] - x[j]\nend\nz[i] = 3\ny[i] = sum(j, d*z[i])\nend",
        "for i\nfor j\n<> d = x[i] - x[j]\nz[j] = 2\nend\ny[i] = sum(j, d*z[j])\nend",
        "for i\nfor j\n<> d = x[i] - x[j]\nbreak if d > 1\nend\ny[i] = sum(j, d)\nend",
        "for i\nfor j\nif x[j] > 2\n<> d = x[i]\nend\nend\ny[i] = sum(j, d)\nend",
        "for i\nfor j\n<> d = x[i] - x[j]\nend\ny[i] = d + sum(j, d)\nend",
        "for i\nfor j\n<> d = x[i]\nend\nfor j\nd = 2*d\nend\ny[i] = sum(j, d)\nend",
        "for i\nfor j\n<> d = x[i]\nend\nfor j\n<> e = x[j]\nend\ny[i] = sum(j, d*e)\nend",
        "for i\nfor j\n<> d = x[i]\nend\n... gbarrier\ny[i] = sum(j, d)\nend",
    ],
)
def test_terms_that_others_change_or_that_not_each_iteration_gives(text: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="only inside the loop over 'j'") as caught:
        made(text)
    assert "end that loop in front of this statement" in str(caught.value)


GUARDED = "y[i] = 0 if i < 5 else sum(j, x[i + j - 5])"


@pytest.mark.host
@pytest.mark.parametrize(
    "schedule",
    [
        lambda k: k,
        lambda k: k.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0"),
        lambda k: k.tag_inames("j: l.0"),
        lambda k: k.tag_inames("j: unr"),
    ],
)
def test_reductions_in_a_branch_touch_what_is_there(schedule: Any) -> None:
    """Of a choice only one branch is evaluated: x[i + j - 5] has no x[-5]."""
    data = [lk.GlobalArg("x", "float64", shape=15), ...]
    knl = schedule(lk.make_kernel("{ [i, j]: 0 <= i, j < 10 }", GUARDED, data))
    x = np.arange(15.0) + 1
    expected = [0.0 if i < 5 else x[i - 5 : i + 5].sum() for i in range(10)]
    for name in ("reference", "host"):
        np.testing.assert_allclose(knl.executor(name)(x=x), expected)
    assert knl.prove().ok


def test_reductions_in_the_other_branch_do_not() -> None:
    data = [lk.GlobalArg("x", "float64", shape=15), ...]
    with pytest.raises(lk.OutOfBoundsError, match=r"x\[-5\]"):
        lk.make_kernel("{ [i, j]: 0 <= i, j < 10 }", GUARDED.replace("<", ">="), data)


def test_conditions_of_data_stay_where_they_are() -> None:
    knl = made("y[i] = sum(j, x[j]) if x[i] > 0 else 2")
    assert not any(s.predicates for s in knl.statements)
