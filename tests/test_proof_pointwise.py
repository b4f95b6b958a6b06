"""What isl says of forms with digits, against what they are at each point."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pytest
from seams import (
    Space,
    copy_of,
    equal,
    forms,
    prove_source,
)

import loopkit as lk

SPACE = Space(["i", "b", "n", "cell", copy_of("i", 1)])
WHERE = isl.Set("[i, b] -> { : 0 <= i < 7 and 0 <= b < 3 }")


def gray(name: str) -> Any:
    return forms.exclusive_or(forms.variable(name), forms.floor(forms.variable(name), 2), 3)


def other(name: str) -> str:
    return copy_of(name, 1) if name == "i" else name


FORMS = {
    "gray": gray("i"),
    "with what both share": forms.exclusive_or(forms.variable("i"), forms.variable("b"), 3),
    "and more": forms.plus(
        forms.exclusive_or(forms.variable("i"), forms.variable("b"), 3),
        forms.scaled(forms.variable("b"), 3),
    ),
}


POINTS = [{"i": i, "b": b} for i in range(7) for b in range(3)]


def at(*points: dict[str, int]) -> isl.Set:
    """A set of these points."""
    found = SPACE.nothing
    for point in points:
        values = (equal(forms.variable(n), forms.number(v)) for n, v in point.items())
        found = found | SPACE.all_of(values)
    return found


def value(form: str, point: dict[str, int]) -> int:
    i, b = point["i"], point["b"]
    return {"gray": i ^ i // 2, "with what both share": i ^ b, "and more": (i ^ b) + 3 * b}[form]


@pytest.mark.parametrize("form", FORMS)
def test_one(form: str) -> None:
    """The points of a set at which a name is what a form with digits is there."""
    due = at(*({**point, "cell": value(form, point)} for point in POINTS))
    around = SPACE.aligned(WHERE)
    found = around & SPACE.where(equal(forms.variable("cell"), FORMS[form]))
    assert found.is_equal(due)
    whole = around & at(*POINTS) & SPACE.where(equal(forms.number(8), FORMS[form]))
    assert whole.is_equal(at(*(point for point in POINTS if value(form, point) == 8)))


@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_two(first: str, second: str) -> None:
    """``b`` is the same in both, as the index of a block is in two threads."""
    around = SPACE.aligned(WHERE)
    both = around & SPACE.renamed(WHERE, other)
    found = both & SPACE.where(equal(FORMS[first], forms.renamed(FORMS[second], other)))
    its = copy_of("i", 1)
    pairs = [(one, two) for one in POINTS for two in POINTS if one["b"] == two["b"]]
    equal_ones = [(a, b) for a, b in pairs if value(first, a) == value(second, b)]
    assert found.is_equal(at(*({**one, its: two["i"]} for one, two in equal_ones)))


@pytest.mark.host
@pytest.mark.parametrize("threads", [16, 48, 96])
def test_what_is_handed_on_by_bits(threads: int) -> None:
    """Threads wait before they take from each other what lies in Gray's order."""
    knl = lk.make_kernel(
        f"{{ [b, i, j]: 0 <= b < n and 0 <= i < 16 and 0 <= j < {threads} }}",
        """
        for b
            for i
                s[(i ^ i >> 1) & 15] = x[b, i]
            end
            for j
                y[b, j] = 2*s[(j ^ j >> 1) & 15]
            end
        end
        """,
        [lk.TemporaryVariable("s", "float32", "16", address_space="local"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).tag_inames("i: l.0, j: l.0")
    proof = knl.prove()
    assert proof.ok, proof
    x = np.random.default_rng(0).random((3, 16), np.float32)
    want = knl.executor("reference")(x=x)
    for order in ("ascending", "descending", "random"):
        np.testing.assert_array_equal(knl.executor("host", order=order)(x=x), want)


def test_what_earlier_iterations_hand_on() -> None:
    """A thread takes what it put there in an iteration before: all but the last cell."""
    knl = lk.make_kernel(
        "{ [t, b, c]: 0 <= t < n and 0 <= b < 16 and 0 <= c < 16 }",
        """
        s[0] = 0
        for t
            for b
                if t > 0
                    y[t, b] = s[b ^ b >> 1]
                end
            end
            for c
                s[c ^ c >> 1] = x[t, c]
            end
        end
        """,
        [lk.TemporaryVariable("s", "float32", "16", address_space="private"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    assert knl.prove().ok, knl.prove()
    late = prove_source(knl, knl.cuda().replace("t >= 1", "t >= 0"))
    assert not late.ok
    short = knl.cuda().replace("c < 16", "c < 15").replace("c <= 15", "c <= 14")
    assert any(one.kind == "unwritten" for one in prove_source(knl, short).findings)
