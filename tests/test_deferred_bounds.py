"""Accesses whose bounds are proven where code is made: sizes may be assumed until then."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import loopkit as lk
import loopkit.loopy as lp

DATA = [lk.GlobalArg("x", "float32", shape=16), lk.GlobalArg("y", "float32", shape="m"), ...]


def padded(**options: object) -> lk.Kernel:
    """The first ``n`` of 16 numbers, twice, into an array of ``m``."""
    return lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 2*x[i] {id=put}", DATA, **options)


def test_refused_at_once_unless_owed() -> None:
    with pytest.raises(lk.OutOfBoundsError, match="state the sizes by assumptions="):
        padded()
    knl = padded(owe_bounds=True)
    assert "owing that y[i] lies in its array" in str(knl)
    assert knl.owes_bounds
    assert pickle.loads(pickle.dumps(knl)) == knl
    assert knl != padded(assumptions="n <= m and n <= 16")


def test_whoever_makes_code_asks() -> None:
    knl = padded(owe_bounds=True)
    x = np.arange(16, dtype=np.float32)
    for ask in (knl.cuda, knl.prove, knl.ptx, lambda: knl(x=x, n=3, m=3), lambda: knl.costs(n=1)):
        with pytest.raises(lk.OutOfBoundsError, match="exclude these sizes") as refused:
            ask()
        assert (
            str(refused.value.witness)
            == "out of bounds at y[0]: put[i=0], for example for n = 1, m = 0"
        )
    # Half of an answer is none.
    half = knl.assume("n <= m")
    assert "owing that x[i] lies in its array" in str(half)
    with pytest.raises(lk.OutOfBoundsError) as refused:
        half.cuda()
    assert str(refused.value.witness) == (
        "out of bounds at x[16]: put[i=16], for example for n = 17, m = 17"
    )


def test_indices_below_zero_are_owed_where_shapes_are_inferred() -> None:
    text, domain = "a[i] = a[i] + 1", "{ [i]: k <= i < n }"
    with pytest.raises(lk.OutOfBoundsError, match="is negative"):
        lk.make_kernel(domain, text)
    knl = lk.make_kernel(domain, text, dtypes={"a": "int32"}, owe_bounds=True)
    with pytest.raises(lk.OutOfBoundsError, match="exclude these sizes"):
        knl.cuda()
    assert knl.assume("k >= 0").prove().ok
    with pytest.raises(lk.OutOfBoundsError):
        lk.make_kernel("{ [i]: 0 <= i < n }", "a[-1 - i] = 0", owe_bounds=True)


@pytest.mark.host
def test_shapes_that_nothing_says_are_the_callers() -> None:
    text = "for i\n<> first = place[i]\ny[i] = sum(j, x[first + j])\nend"
    domain = "{ [i, j]: 0 <= i < n and 0 <= j < 3 }"
    with pytest.raises(lk.InvalidArgumentError, match="shape of 'x' cannot be inferred"):
        lk.make_kernel(domain, text)
    knl = lk.make_kernel(domain, text, dtypes={"place": "int32", "x": "float32"}, owe_bounds=True)
    x = np.arange(10, dtype=np.float32)
    assert np.array_equal(knl(place=np.array([7, 0], np.int32), x=x), [24, 3])


@pytest.mark.host
def test_sizes_that_are_fixed_stand_in_shapes_alone() -> None:
    data = [lk.GlobalArg("a", "float64", shape="k, n"), lk.ValueArg("n", "int32")]
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "a[0, i] = i", data, fixed_parameters={"k": 1})
    assert np.array_equal(knl(n=4), [[0, 1, 2, 3]]) and "k" not in knl.arg_by_name


@pytest.mark.parametrize(
    ("settled", "left"),
    [("n >= 0", ["y", "x"]), ("n <= m", ["x"]), ("n <= 16", ["y"]), ("n <= m and n <= 16", [])],
)
def test_fault_nobody_asks_and_the_proof_still_finds_it(
    monkeypatch: pytest.MonkeyPatch, settled: str, left: list[str]
) -> None:
    """The proof of the program knows nothing of what a kernel owes."""
    monkeypatch.setattr("loopkit.codegen.lower.check_settled", lambda _: None)
    knl = padded(owe_bounds=True, assumptions=settled).split_iname("i", 4, inner_tag="l.0")
    for text in (False, True):
        proof = knl.prove(text=text)
        assert [f.kind for f in proof.findings] == ["bounds"] * len(left)
        assert [f.what.split(" leaves")[0].split()[-1] for f in proof.findings] == left
        assert proof.ok == (not left)


@pytest.mark.host
def test_settled_by_assumptions_and_numbers() -> None:
    knl = padded(owe_bounds=True).split_iname("i", 4, inner_tag="l.0", slabs=(0, 1))
    x = np.arange(16, dtype=np.float32)
    settled = knl.assume("n <= m and n <= 16")
    assert "owing" not in str(settled)
    assert settled.prove(text=True).ok
    assert lk.replay(padded(owe_bounds=True), settled.history) == settled
    for n in (0, 1, 7, 16):
        for order in ("ascending", "descending", "random"):
            y = np.full(16, -1, np.float32)
            settled.executor("host", order=order, seed=1)(x=x, y=y, n=n)
            assert y.tolist() == [*(2 * x[:n]), *[-1] * (16 - n)]
    with pytest.raises(lk.AssumptionError):
        settled.executor("host")(x=x, n=17, m=20)
    fixed = knl.fix_parameters(n=7, m=7)
    assert fixed.prove().ok
    with pytest.raises(lk.OutOfBoundsError):
        knl.fix_parameters(n=17, m=20).cuda()


def test_steps_that_need_the_bounds_say_so() -> None:
    knl = padded(owe_bounds=True)
    with pytest.raises(lk.IllegalTransformError) as refused:
        knl.add_prefetch("x")
    assert any(".assume('n <= 16')" in s for s in refused.value.suggestions)
    assert knl.assume("n <= 16 and n <= m").add_prefetch("x").prove().ok


def test_what_no_assumption_settles_is_refused_at_once() -> None:
    with pytest.raises(lk.OutOfBoundsError, match="a\\[1\\]"):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "b[i] = a[i + 1]",
            [lk.GlobalArg("a", shape="n"), ...],
            owe_bounds=True,
        )
    with pytest.raises(lk.InvalidArgumentError):
        padded(owe_bounds=1)


def test_fused_kernels_owe_what_one_of_them_does() -> None:
    other = lk.make_kernel("{ [j]: 0 <= j < n }", "z[j] = 3", dtypes={"z": "float32"})
    fused = lk.fuse_kernels([other, padded(owe_bounds=True)])
    with pytest.raises(lk.OutOfBoundsError):
        fused.cuda()
    assert fused.assume("n <= m and n <= 16").prove().ok


@pytest.mark.host
def test_scripts_of_loopy_assume_later() -> None:
    knl = lp.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", DATA)
    knl = lp.assume(knl, "n <= 16 and n <= m")
    _, (y,) = knl(None, x=np.arange(16, dtype=np.float32), n=5, m=5)
    assert y.tolist() == [0, 2, 4, 6, 8]


def test_a_copy_of_what_may_not_be_there() -> None:
    """A step whose witness is a case that is to be ruled out later says so."""
    knl = padded(owe_bounds=True).split_iname("i", 4)
    why = r"x\[i\] lies outside of 'x' there, and it is owed that it does not: exclude these"
    with pytest.raises(lk.IllegalTransformError, match=why) as refused:
        knl.add_prefetch("x", "i_inner", default_tag=None)
    assert refused.value.witness.parameters["n"] == 17
    assert knl.assume("n <= 16").add_prefetch("x", "i_inner", default_tag=None)
    # What is wrong for other reasons does not speak of bounds.
    steps = lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < n }",
        "a[i, j] = a[i - 1, j + 1]",
        [lk.GlobalArg("a", "float32", shape="n, m"), ...],
        owe_bounds=True,
    )
    with pytest.raises(lk.IllegalTransformError) as wrong:
        steps.prioritize_loops("j, i")
    assert "owed" not in str(wrong.value)
