"""What forms with digits are at points, against what isl says of the same forms."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pytest
from seams import (
    Space,
    copy_of,
    equal,
    equal_at,
    equal_pairs,
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


@pytest.mark.parametrize("form", FORMS)
def test_one(form: str) -> None:
    around = SPACE.aligned(WHERE)
    found = equal_at(SPACE, around, "cell", FORMS[form])
    assert found is not None
    due = around & SPACE.where(equal(forms.variable("cell"), FORMS[form]))
    assert (around & found).is_equal(due)
    renamed = equal_at(SPACE, around, "cell", FORMS[form], other)
    there = SPACE.renamed(WHERE, other)
    due = there & SPACE.where(equal(forms.variable("cell"), forms.renamed(FORMS[form], other)))
    assert renamed is not None and (there & renamed).is_equal(due)


@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_two(first: str, second: str) -> None:
    """``b`` is the same in both, as the index of a block is in two threads."""
    a, b = FORMS[first], FORMS[second]
    around = SPACE.aligned(WHERE)
    both = around & SPACE.renamed(WHERE, other)
    found = equal_pairs(SPACE, (around, a), (around, b), other)
    if found is None:
        return  # more pairs than a set is made of
    assert (both & found).is_equal(both & SPACE.where(equal(a, forms.renamed(b, other))))


def test_sets_say_what_is_no_question_of_bits() -> None:
    around = SPACE.aligned(WHERE)
    assert equal_at(SPACE, around, "cell", forms.variable("i")) is None
    assert (
        equal_pairs(SPACE, (around, forms.variable("i")), (around, forms.variable("b")), other)
        is None
    )
    assert equal_at(SPACE, SPACE.everything, "cell", gray("i")) is None


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
