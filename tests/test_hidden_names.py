"""Names that loopkit makes up are nobody's: what users call things changes no answer."""

from __future__ import annotations

import numpy as np
import pytest
from hostile import skewed, unwritten

import loopkit as lk
from loopkit._hidden import hidden, instance, is_hidden, label_of, labelled, plain

LABELS = ("b", "x", "w", "s", "e", "R", "W", "K", "Q", "1", "2", "o", "n", "m0", "i0", "earlier")


def test_words() -> None:
    """Names are told apart from users', and lead back to these."""
    assert plain(instance("i", "b")) == "i"
    assert label_of(instance("i", "b")) == "b"
    assert instance("i", "") == "i" == plain("i")
    word = instance(hidden("cell", 0), "b")
    assert (plain(word), label_of(word)) == (hidden("cell", 0), "b")
    assert (plain(hidden("cell", 0)), label_of(hidden("cell", 0))) == (hidden("cell", 0), "")
    assert len({hidden("cell"), hidden("cell", 1), instance("cell", "1"), "cell"}) == 4
    assert labelled(["i", instance("i", "b"), instance("j", "x")], "b") == [instance("i", "b")]
    for name in (word, hidden("value"), instance("i", "1")):
        assert is_hidden(name) and name.isidentifier()
    assert not is_hidden("i__b")


@pytest.mark.parametrize("name", [instance("n", "b"), hidden("cell", 0)])
def test_unspellable(name: str) -> None:
    """No text says such a name."""
    for domain, text in (
        (f"{{ [i]: 0 <= i < {name} }}", "a[i] = 1"),
        ("{ [i]: 0 <= i < n }", f"a[i] = {name}"),
        ("{ [i]: 0 <= i < n }", f"{name}[i] = 1"),
    ):
        with pytest.raises(lk.LoopkitError):
            lk.make_kernel(domain, text, dtypes={"a": "float32"})


@pytest.mark.parametrize("label", LABELS)
def test_interchange_is_refused(label: str) -> None:
    """Sizes called as the instances of an iname once were do not stand for these."""
    for sizes in ((f"i__{label}", "m"), ("n", f"j__{label}"), (f"i__{label}", f"j__{label}")):
        with pytest.raises(lk.IllegalTransformError, match="before"):
            skewed(*sizes).prioritize_loops("j, i")


def test_verify_tells_them_apart() -> None:
    """The same where two kernels are compared."""
    before = skewed("n", "i__b")
    with_fault = before.prioritize_loops("j, i", unchecked=True)
    assert not lk.verify(before, with_fault)
    assert lk.verify(before, before)


@pytest.mark.parametrize("name", ["_g0", "_g1", "_l0", "_l1", "_l0__b"])
def test_barriers_stay(name: str) -> None:
    """A size called as a hardware index once was leaves barriers where they are."""
    plain = lk.make_kernel(
        f"{{ [i, j, k]: 0 <= i < {name} and 0 <= j < m and 0 <= k < l }}",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions=f"{name}, m, l >= 1",
    )
    tiled = (
        plain.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )
    assert tiled.cuda().count("__syncthreads();") == 2


@pytest.mark.parametrize("name", ["n", "_cell0", "i__earlier"])
def test_what_nothing_wrote(name: str) -> None:
    """A size called as a cell once was hides no read of what nothing wrote."""
    with pytest.raises(lk.UninitializedReadError):
        unwritten(name)


@pytest.mark.parametrize("name", ["self", "stream", "_0", "_load", "_used", "axis_l_0", "_value"])
def test_generated_python(name: str) -> None:
    """What loopkit writes in Python has no word that an array, a size or an iname may be."""
    ones = np.ones(4, np.float32)
    array = lk.make_kernel(
        "{ [i]: 0 <= i < n }", f"b[i] = {name}[i] + a[i]", dtypes={f"a, b, {name}": "float32"}
    )
    got = array.executor("reference")(**{"a": ones, name: ones})
    assert got.tolist() == [2, 2, 2, 2]
    size = lk.make_kernel(
        f"{{ [i]: 0 <= i < {name} }}", "b[i] = a[i] + i", dtypes={"a, b": "float32"}
    )
    assert size.executor("reference")(**{"a": ones, name: 4}).tolist() == [1, 2, 3, 4]
    assert size.launch_config(**{name: 4}).block == (1, 1, 1)
    iname = lk.make_kernel(
        f"{{ [{name}]: 0 <= {name} < n }}", f"b[{name}] = a[{name}] * 2", dtypes={"a, b": "float32"}
    )
    split = iname.split_iname(name, 4, inner_tag="l.0")
    assert iname.executor("reference")(a=ones).tolist() == [2, 2, 2, 2]
    assert split.executor("reference")(a=ones).tolist() == [2, 2, 2, 2]
    assert lk.verify(iname, split)
    other = lk.make_kernel(
        f"{{ [{name}]: 0 <= {name} < n }}", f"b[{name}] = a[{name}] * 3", dtypes={"a, b": "float32"}
    )
    assert lk.verify(iname, other).answer == "different"


def test_two_names_make_no_third() -> None:
    """``a`` and ``b_c`` are not ``a_b`` and ``c``: what is made of several names keeps them."""
    assert hidden("least", "a", "b_c") != hidden("least", "a_b", "c")
    assert hidden("value", "x") != hidden("value_x")
