"""NumPy's and CUDA's names for functions: what they are, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import COMPLEX_FUNCTIONS, MEANINGS

import loopkit as lk

SPECIAL = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 0.5, -0.25, 3.0]
WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def made(text: str, **dtypes: Any) -> lk.Kernel:
    return lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = {text}", dtypes=dtypes)


def results(text: str, **arrays: np.ndarray[Any, Any]) -> list[Any]:
    knl = made(text, **{name: a.dtype for name, a in arrays.items()})
    assert knl.prove().ok, knl.prove()
    assert knl.prove(text=True).ok
    return [knl.executor(e)(**arrays) for e in ("host", "reference")]


@pytest.mark.parametrize("name", sorted(MEANINGS.keys() - {"popc"}))
def test_names_of_numpy_mean_what_they_mean_there(name: str) -> None:
    count, _ = MEANINGS[name]
    of_bits = name.startswith(("bitwise", "left_", "right_", "invert"))
    kind = "int32" if of_bits else "float32"
    rng = np.random.default_rng(1)
    if of_bits:
        x, y = (rng.integers(-40, 40, 20).astype(kind) for _ in "xy")
        if "shift" in name:
            y = np.abs(y) % 8
    else:
        x, y = (rng.choice(np.array(SPECIAL, kind), 40) for _ in "xy")
    texts = ["x[i]", "y_[i]", "0.5"][:count]
    given: tuple[Any, ...] = (x, y, np.float32(0.5))[:count]
    if name == "where":
        texts, given = ["x[i] > 0", "x[i]", "y_[i]"], (x > 0, x, y)
    with np.errstate(all="ignore"):
        due = getattr(np, name)(*given)
    used = {n: a for n, a in (("x", x), ("y_", y)) if any(t.startswith(n) for t in texts)}
    for found in results(f"{name}({', '.join(texts)})", **used):
        assert found.dtype == due.dtype
        if due.dtype.kind == "f":
            np.testing.assert_allclose(found, due, rtol=2e-6)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(due))
        else:
            np.testing.assert_array_equal(found, due)


ENDS = [*SPECIAL, -3.0, 2.0, -2.0, 1.0, -1.0, 1e-40, -1e-40, 1e30, -1e30, -0.5]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(
    "text", ["x[i]**y_[i]", "power(x[i], 0.5)", "x[i]**-0.5", "x[i]**-1", "0.5**y_[i]"]
)
def test_powers_of_whatever_there_is(text: str, kind: str) -> None:
    x, y = (a.ravel() for a in np.meshgrid(*[np.array(ENDS, kind)] * 2))
    used = {n: a for n, a in (("x", x), ("y_", y)) if n + "[" in text}
    spelled = text.replace("[i]", "")
    with np.errstate(all="ignore"):
        due = eval(spelled, {"power": lambda a, b: a**b}, used)
    for found in results(text, **used):
        np.testing.assert_allclose(found, due, rtol=3e-6)
        signs = [np.copysign(1, a)[~np.isnan(due)] for a in (found, due)]
        np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("text", ["(0.0*-i)**0.5", "(0.0*-i)**(0.5 + 0*i)"])
def test_a_root_is_what_is_written_as_one(text: str) -> None:
    knl = made(text)
    for executor in ("host", "reference"):
        assert np.signbit(knl.executor(executor)(n=3))[1] == text.endswith("**0.5")


def test_names_of_numpy_are_gone_when_a_kernel_is_made() -> None:
    knl = made("where(x[i] > 0, clip(x[i], 0, 1), minimum(x[i], -1))", x="float32")
    assert "y[i] = if(x[i] > 0, min(max(x[i], 0), 1), min(x[i], -1))" in str(knl)


def test_names_of_the_user_go_first() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        clip(v) := 3*v
        y[i] = clip(square(x[i]))
        """,
        dtypes={"x": "float32"},
    )
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(knl.executor("host")(x=x), 3 * x * x)
    rule = lk.SubstitutionRule("square", ("v",), 7)
    knl = lk.make_kernel("{ [i]: 0 <= i < 2 }", "y[i] = square(i)", substitutions=[rule])
    np.testing.assert_array_equal(knl.executor("host")(), [7, 7])


@pytest.mark.parametrize(
    "text",
    [
        "clip(x[i], 1)",
        "where(x[i])",
        "square()",
        "where(x[i] > 0, 1, 2, 3)",
        "minimum((i, j), x[i])",
    ],
)
def test_other_numbers_of_arguments_are_refused(text: str) -> None:
    with pytest.raises((lk.InvalidArgumentError, lk.ParseError), match=r"takes|written|tuple"):
        made(text, x="float32")


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("name", ["popcount", "clz", "ffs", "brev", "popc", "bitwise_count"])
def test_functions_of_bits(name: str, kind: str) -> None:
    info = np.iinfo(kind)
    some = [info.min, info.min + 1, 0, 1, 2, 3, 64, 100, info.max - 1, info.max]
    x = np.array([v for v in some if info.min <= v <= info.max], kind)
    bits = [int(v) % (1 << info.bits) for v in x]
    due = {
        "popcount": [b.bit_count() for b in bits],
        "popc": [b.bit_count() for b in bits],
        "bitwise_count": np.bitwise_count(x),
        "clz": [info.bits - b.bit_length() for b in bits],
        "ffs": [(b & -b).bit_length() for b in bits],
        "brev": np.array([int(f"{b:0{info.bits}b}"[::-1], 2) for b in bits], f"u{info.bits // 8}"),
    }[name]
    if name == "brev":
        due = np.asarray(due).view(kind)
    for found in results(f"{name}(x[i])", x=x):
        np.testing.assert_array_equal(found, due)
        assert found.dtype == {"brev": x.dtype, "bitwise_count": np.uint8}.get(name, np.int32)
    for found in results(f"{name}(x[i] + x[i])", x=x[2:6]):  # wider than its type in C
        assert found.shape == (4,)


@pytest.mark.parametrize(
    ("text", "why"),
    [("popcount(i)", "a cast says which"), ("clz(5)", "a cast"), ("ffs(x[i])", "float32")],
)
def test_bits_are_those_of_a_type(text: str, why: str) -> None:
    with pytest.raises(lk.TypeInferenceError, match=why):
        made(text, x="float32") if "x" in text else made(text)


def test_bits_of_inames_that_are_cast() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = brev(int32(i)) >> 29")
    assert knl.prove().ok
    for executor in ("host", "reference"):
        np.testing.assert_array_equal(knl.executor(executor)(n=8) & 7, [0, 4, 2, 6, 1, 5, 3, 7])


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_functions_of_bits_compile(arch: str) -> None:
    from seams import compile_program

    for kind in WHOLE:
        text = "popcount(x[i]) + clz(x[i]) + ffs(x[i]) + brev(x[i])"
        assert compile_program(made(text, x=kind).program(), arch)


COMPLEX_ENDS = [0, 1, -1, 1j, -1j, 1 + 1j, -3 - 4j, 0.5 + 0.25j, -2 + 0.001j, 10 + 3j, -25 + 1j]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("name", sorted([*COMPLEX_FUNCTIONS, "angle", "abs", "conj"]))
def test_functions_of_complex_numbers(name: str, kind: str) -> None:
    z = np.array(COMPLEX_ENDS, kind)
    with np.errstate(all="ignore"):
        due = getattr(np, name)(z)
    for found in results(f"{name}(z[i])", z=z):
        assert found.dtype == due.dtype
        np.testing.assert_allclose(found, due, rtol=2e-5 if kind == "complex64" else 1e-13)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_powers_of_complex_zeros(kind: str) -> None:
    w = np.array([-1, 1j, 1 + 1j, 0, 2 - 1j], kind)
    with np.errstate(all="ignore"):
        due = np.zeros(5, kind) ** w
    for found in results("z[i]**w[i]", z=np.zeros(5, kind), w=w):
        np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("kind", ["int8", "bool", "uint32", "float16", "float64"])
def test_gamma_has_poles(kind: str) -> None:
    x = np.array([0, 1, 3], kind)
    for found in results("lgamma(x[i])", x=x):
        np.testing.assert_allclose(
            found, [np.inf, 0, np.log(x.astype(float)[2] - 1 or 1)], rtol=1e-3
        )
    if kind.startswith("float"):
        x = np.array([-0.0, 0.0, -1.0, -2.0], kind)
        for found in results("tgamma(x[i])", x=x):
            np.testing.assert_array_equal(found, [-np.inf, np.inf, np.nan, np.nan])
        for found in results("lgamma(x[i])", x=x):
            np.testing.assert_array_equal(found, [np.inf] * 4)


def test_functions_of_truth_values() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name in ("fmin", "fmax", "minimum", "maximum"):
        for found in results(f"{name}(a[i], b[i])", a=a, b=b):
            np.testing.assert_array_equal(found, getattr(np, name)(a, b))
    for name in ("imag", "real", "abs"):
        for found in results(f"{name}(a[i])", a=a):
            np.testing.assert_array_equal(found, getattr(np, name)(a))
    for symbol in ("<<", ">>"):
        due = eval(f"a {symbol} b", {"a": a, "b": b})
        for found in results(f"a[i] {symbol} b[i]", a=a, b=b):
            np.testing.assert_array_equal(found, due)
            assert found.dtype == due.dtype


@pytest.mark.parametrize("name", ["float", "double", "int", "half", "uint", "complex", "bool_"])
def test_casts_have_names_of_types(name: str) -> None:
    with pytest.raises(lk.TypeInferenceError, match="a cast has the name of its type"):
        made(f"{name}(x[i])", x="float32")


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_functions_of_complex_numbers_compile(kind: str, arch: str) -> None:
    text = " + ".join(f"{name}(z[i])" for name in sorted(COMPLEX_FUNCTIONS))
    assert made(f"{text} + z[i]**z[i]", z=kind).cubin(arch)
