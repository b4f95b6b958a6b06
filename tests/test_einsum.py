"""Kernels from Einstein's summation convention, beside NumPy's."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopkit as lk


def is_right(spec: str, names: list[str], lengths: dict[str, int], **more: Any) -> bool:
    """Whether the kernel computes what NumPy does, on integers; arrays of one name are one."""
    operands = spec.replace(" ", "").partition("->")[0].split(",")
    knl = lk.make_einsum(spec, names, dtypes=dict.fromkeys([*names, "out"], "int64"), **more)
    generator = np.random.default_rng(0)
    arrays = {
        name: generator.integers(-9, 9, [lengths[i] for i in operand])
        for name, operand in zip(names, operands, strict=True)
    }
    want = np.einsum(spec, *(arrays[name] for name in names))
    return np.array_equal(knl.executor("reference")(**arrays), want)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("ij,jk->ik", "a, b"),
        ("ij,jk", "a, b"),
        ("bij,bjk->bik", "a, b"),
        ("ii->i", "a"),
        ("ii", "a"),
        ("ij->ji", "a"),
        ("ij->", "a"),
        (",i->i", "a, b"),
        ("i j , j", "a, b"),
        ("ijk,il,jl,kl->l", "t, u, v, w"),
        ("->", "a"),
    ],
)
def test_as_numpy_does(spec: str, names: str) -> None:
    lengths = {letter: 2 + n % 3 for n, letter in enumerate("ijklb")}
    assert is_right(spec, names.split(", "), lengths)


@pytest.mark.parametrize("letter", string.ascii_letters)
def test_every_letter_is_a_loop(letter: str) -> None:
    knl = lk.make_einsum(f"{letter}->{letter}", "source", dtypes={"source, out": "float32"})
    assert f"0, N{letter})" in str(knl)
    assert knl.cuda()


def test_names_that_are_letters() -> None:
    """An array may be called like an axis, or like its length."""
    lengths = dict(zip("abcd", (2, 3, 4, 5), strict=True))
    assert is_right("ab,bc,cd->ad", ["a", "b", "c"], lengths)
    assert is_right("ab,b->a", ["Na", "Nb"], lengths)


def test_an_array_twice() -> None:
    """Axes of one array have one length, whatever they are called."""
    knl = lk.make_einsum("ij,kj->ik", ["a", "a"], dtypes={"a, out": "float64"})
    assert knl.sizes == ("Ni", "Nj")
    assert is_right("ij,kj->ik", ["a", "a"], {"i": 3, "j": 4, "k": 3})


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_spec(data: st.DataObject) -> None:
    letters = st.text("ijkl", max_size=3)
    operands = data.draw(st.lists(letters, min_size=1, max_size=3))
    used = sorted(set("".join(operands)))
    spec = ",".join(operands)
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(used))
        spec += "->" + "".join(order[: data.draw(st.integers(0, len(order)))])
    lengths = {letter: data.draw(st.integers(0, 4)) for letter in used}
    assert is_right(spec, [f"x{n}" for n in range(len(operands))], lengths)


@pytest.mark.host
def test_a_schedule() -> None:
    knl = lk.make_einsum("ij,jk->ik", "a, b", dtypes={"a, b, out": "float32"}, name="product")
    knl = knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1").split_iname(
        "k", 8, outer_tag="g.0", inner_tag="l.0"
    )
    assert knl.prove().ok
    a, b = (np.random.default_rng(s).uniform(size=(13, 13)).astype("float32") for s in (1, 2))
    np.testing.assert_allclose(knl.executor("host")(a=a, b=b), a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "names", "why"),
    [
        ("...i,i", "a, b", "leaves axes open"),
        ("ij;j", "a, b", "spec is operands and a result"),
        ("i->j->k", "a", "spec is operands and a result"),
        ("i\u0131,i", "a, b", "spec is operands and a result"),
        ("ij,j", "a", "has 2 operands, and is given 1 name"),
        ("ij->k", "a", "the result has 'k', and no operand has"),
        ("ij->ii", "a", "the result has 'i' twice"),
        ("ij,i", "a, a", "'a' has 2 axes as 'ij' and 1 as 'i'"),
        ("ij,i", "a, out", "no operand can be called 'out'"),
        ("ij,i", "a, for", "'for' cannot be a name"),
        (3, "a", "spec is text, not 3"),
        ("i", 3, "arg_names"),
    ],
)
def test_refusals(spec: Any, names: Any, why: str) -> None:
    with pytest.raises(lk.InvalidArgumentError) as refused:
        lk.make_einsum(spec, names)
    assert why in str(refused.value)
