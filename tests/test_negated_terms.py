"""`z + (-x)` is `z - x` where both have the same bits: elsewhere `-x` may wrap around in fewer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopkit as lk

NARROW = {"int8": "int64", "int16": "float32", "int32": "int64", "uint8": "int32"}
"""Types of ``x``, and of ``y`` and ``z``, that are wider."""


def make(text: str, x: str, z: str) -> lk.Kernel:
    data: list[Any] = [lk.GlobalArg("x", x, shape="n"), lk.GlobalArg("y, z", z, shape="n")]
    used = [a for a in data if "z[" in text or a.name != "z"]
    return lk.make_kernel("{ [i]: 0 <= i < n }", text, [*used, ...], assumptions="n >= 1")


def extreme(x: str, z: str) -> dict[str, Any]:
    """The largest and smallest numbers, and what becomes them when it is doubled."""
    info = np.iinfo(x)
    found = [info.min, info.max, info.min // 2, info.max // 2 + 1, 0, 1, 3, info.max - 1]
    return {"x": np.array(found, x), "z": np.arange(8).astype(z)}


@pytest.mark.parametrize(("x", "z"), NARROW.items())
@pytest.mark.parametrize(
    "text", ["z[i] + (-2*x[i])", "z[i] - 2*x[i]", "z[i] + (-x[i])*3", "z[i] + -1*x[i]*z[i]"]
)
def test_source_computes_a_negative_multiple_in_its_own_type(x: str, z: str, text: str) -> None:
    if x == "uint8" and "-2*" in text:
        return
    kernel = make(f"y[i] = {text}", x, z)
    given = extreme(x, z)
    reference, host = (kernel.executor(e)(**given) for e in ("reference", "host"))
    np.testing.assert_array_equal(host, reference)
    assert kernel.prove().ok


def test_a_factor_without_opposite() -> None:
    kernel = make("y[i] = z[i] + -128*x[i]", "int8", "int8")
    given = {"x": np.arange(-128, 128).astype("int8"), "z": np.full(256, 5, "int8")}
    reference, host = (kernel.executor(e)(**given) for e in ("reference", "host"))
    np.testing.assert_array_equal(host, reference)


STEPS = {
    "computed in place": ("<> t = -x[i]\ny[i] = z[i] + t", ("assignment_to_subst", "t")),
    "computed ahead": ("f(v) := -x[v]\ny[i] = z[i] + f(i)", ("precompute", "f", "i_inner")),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_keep_the_bits_in_which_a_term_is_negated(step: str) -> None:
    text, (name, *arguments) = STEPS[step]
    narrow, same = (make(text, x, "int64").split_iname("i", 4) for x in ("int8", "int64"))
    with pytest.raises(lk.IllegalTransformError, match="what is subtracted from more bits"):
        getattr(narrow, name)(*arguments)
    after = getattr(same, name)(*arguments)
    given = extreme("int64", "int64")
    np.testing.assert_array_equal(
        after.executor("host")(**given), same.executor("reference")(**given)
    )


PAIRS = [
    ("z[i] - x[i]", "(-x[i]) + z[i]"),
    ("z[i] - 2*x[i]", "z[i] + (-2*x[i])"),
    ("z[i] - (x[i] + x[i])", "z[i] + (-2*x[i])"),
    ("z[i] - (x[i] << 1)", "z[i] + x[i]*(-2)"),
    ("-1*x[i]*z[i]", "-(x[i]*z[i])"),
    ("x[i]*x[i]*z[i]", "x[i]*z[i]*x[i]"),
    ("x[i] + x[i] + z[i]", "x[i] + z[i] + x[i]"),
]


@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize(("x", "z"), [("int8", "int64"), ("int32", "int64"), ("int16", "float32")])
def test_verify_tells_signs_in_other_bits_apart(one: str, two: str, x: str, z: str) -> None:
    kernels = [make(f"y[i] = {e}", x, z) for e in (one, two)]
    one_, two_ = (k.executor("reference")(**extreme(x, z)) for k in kernels)
    assert (one_ != two_).any() or "+ (-2" not in two
    assert lk.verify(*kernels).answer != "equal"
    assert lk.verify(*kernels[::-1]).answer != "equal"


@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_verify_takes_signs_in_the_same_bits(one: str, two: str, dtype: str) -> None:
    kernels = [make(f"y[i] = {e}", dtype, dtype) for e in (one, two)]
    assert lk.verify(*kernels).answer == lk.verify(*kernels[::-1]).answer == "equal"


def test_verify_does_not_pass_on_what_wraps_around() -> None:
    text = "<> t = -x[i]\ny[i] = z[i] + t"
    for x, answer in (("int8", "undecided"), ("int64", "equal")):
        kernels = make(text, x, "int64"), make("y[i] = z[i] - x[i]", x, "int64")
        assert lk.verify(*kernels).answer == answer


@pytest.mark.parametrize("zero", ["0", "i"])
def test_a_zero_without_a_sign(zero: str) -> None:
    """-0.0 - 0 is -0.0, and 0 + -0.0 is 0.0."""
    one, two = (
        make(f"y[i] = {e}", "float32", "float32") for e in (f"x[i] - {zero}", f"-{zero} + x[i]")
    )
    assert lk.verify(one, two).answer != "equal"
    assert lk.verify(two, one).answer != "equal"
    assert lk.verify(
        make("y[i] = x[i] - 1.5", "float32", "float32"),
        make("y[i] = -1.5 + x[i]", "float32", "float32"),
    )


def test_a_proof_is_true_if_it_is_one() -> None:
    proof = make("y[i] = 2*x[i]", "int8", "int8").prove()
    assert proof and proof.ok


NUMBERS: dict[str, tuple[str, Callable[[lk.Kernel], lk.Kernel]]] = {
    "a size": ("z[i + 1] + s*x[i + 1]", lambda k: k.fix_parameters(s=-1)),
    "an iname": ("z[i + 1] + i*x[i + 1]", lambda k: k.unroll("i")),
    "an iname that is turned round": (
        "z[i + 1] + i*x[i + 1]",
        lambda k: k.map_domain("{ [i] -> [j]: j = -i }"),
    ),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_minus_one_in_the_place_of_a_name(case: str) -> None:
    text, step = NUMBERS[case]
    data = [lk.GlobalArg("x", "int8", shape="2"), lk.GlobalArg("y, z", "int64", shape="2")]
    sizes = [lk.ValueArg("s", "int32")] if "s*" in text else []
    kernel = lk.make_kernel("{ [i]: -1 <= i <= 0 }", f"y[i + 1] = {text}", [*data, *sizes])
    after = step(kernel)
    given = {"x": np.array([-128, 127], "int8"), "z": np.arange(2)}
    fixed = {"s": -1} if sizes else {}
    expected = kernel.executor("reference")(**given, **fixed)
    assert expected[0] == -128
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(after.executor(executor)(**given), expected)
    assert after.prove().ok


def test_a_zero_that_is_turned_round() -> None:
    kernel = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = z[i] + i", dtypes={"z, y": "float32"})
    after = kernel.map_domain("{ [i] -> [j]: j = -i }")
    given = {"z": np.array([-0.0, 1], "float32")}
    for executor in ("reference", "host"):
        assert not np.signbit(after.executor(executor)(**given)[0])
    assert after.prove().ok
