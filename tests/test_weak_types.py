"""Inames and sizes are numbers without a type, as Python's own; writers and calls type the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import infer_types

import loopkit as lk

DTYPES = {
    "x": "float32",
    "d": "float64",
    "f": "float16",
    "z": "complex64",
    "h": "int32",
    "b": "int8",
    "u": "uint32",
}
# An expression, and its type; every one of them stands for an array's element at i.
WEAK = {
    "x[i]/n": "float32",
    "x[i] + i": "float32",
    "2.5*x[i]": "float32",
    "x[i]*(i*0.5)": "float32",
    "x[i]*(1/n)": "float32",
    "x[i]*sqrt(i)": "float32",
    "x[i]*i**2": "float32",
    "x[i] if i < 3 else i": "float32",
    "max(x[i], i)": "float32",
    "max(i, 3)*x[i]": "float32",
    "(i if i < 3 else n)*x[i]": "float32",
    "abs(i - 3)*x[i]": "float32",
    "x[i]*(i % 3) + i//2": "float32",
    "x[i]*floor(i/2)": "float32",
    "float32(i)/n": "float32",
    "sum(k, k*x[k])": "float32",
    "f[i]*i + n": "float16",
    "d[i]*i": "float64",
    "z[i]*i": "complex64",
    "i*1j*z[i]": "complex64",
    "h[i] + 2.5": "float64",
    "h[i]/n": "float64",
    "h[i] + i": "int32",
    "h[i]*n": "int32",
    "h[i] << i": "int32",
    "h[i] & ~i": "int32",
    "i**h[i]": "int32",
    "b[i] + i*i": "int8",
    "b[i]*n": "int8",
    "u[i] + i": "uint32",
    "b[i] < i": "bool",
    "u[i] < i - 3": "bool",
    "i*i": "int64",
    "1 << i": "int64",
    "~i": "int64",
    "i/2": "float64",
    "min(i, n - 1 - i, 3)*0.5": "float64",
    "sum(k, k)": "int64",
    "max(k, k*h[k])": "int32",
}


def kernel_of(texts: list[str]) -> lk.Kernel:
    """A kernel that computes each text into an array of its own."""
    lines = "\n".join(f"c{number}[i] = {text}" for number, text in enumerate(texts))
    used = {name: dtype for name, dtype in DTYPES.items() if f"{name}[" in lines}
    return lk.make_kernel("{ [i, k]: 0 <= i, k < n }", lines, dtypes=used, assumptions="n >= 1")


def inputs() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    whole = generator.integers(0, 9, (len(DTYPES), 7))
    return {n: row.astype(t) for (n, t), row in zip(DTYPES.items(), whole, strict=True)}


def test_types() -> None:
    kernel = infer_types(kernel_of(list(WEAK)))
    found = {t: str(kernel.arg_by_name[f"c{n}"].dtype) for n, t in enumerate(WEAK)}
    assert found == WEAK


@pytest.mark.host
def test_values() -> None:
    kernel = kernel_of(list(WEAK))
    reference, host = (kernel.executor(e)(**inputs()) for e in ("reference", "host"))
    for number, text in enumerate(WEAK):
        expected, got = (getattr(r, f"c{number}") for r in (reference, host))
        assert got.dtype == expected.dtype and np.array_equal(got, expected), text
    proof = kernel.prove()
    assert proof.ok, str(proof)


NARROW = [
    *("a[i] | i", "a[i] & i", "i // a[i]", "i % a[i]", "a[i] % i", "a[i] // i", "a[i] << i"),
    *("(i | a[i]) > 3", "(i % a[i]) > 3", "(i & 7) % a[i]", "max(a[i], i)", "abs(i - a[i])"),
    *("(a[i] if i > 5 else i) > 3", "min(i*i, a[i])", "u[i] | -i", "u[i] % (i - 60000)"),
]


@pytest.mark.host
@pytest.mark.parametrize("text", NARROW)
def test_inames_that_a_narrow_type_does_not_hold(text: str) -> None:
    """They are converted where they meet it: what depends on more than the low bits does so."""
    used = {n: t for n, t in {"a": "int16", "u": "uint8"}.items() if f"{n}[" in text}
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = {text}", dtypes=used, assumptions="n >= 1")
    numbers = np.random.default_rng(0).integers(1, 100, 70000)
    data = {name: numbers.astype(dtype) for name, dtype in used.items()}
    expected, got = (knl.executor(e)(**data) for e in ("reference", "host"))
    assert got.dtype == expected.dtype and np.array_equal(got, expected)
    assert knl.prove().ok, f"{knl.prove()}\n{knl.cuda()}"


def numpy_text(text: str) -> str:
    """The text as Python computes it for one i."""
    return text.replace("float32(i)", "np.float32(i)")


@pytest.mark.parametrize(
    "text", [t for t in WEAK if not any(w in t for w in ("sum", "sqrt", "max(", "floor", "if"))]
)
def test_numpy_agrees(text: str) -> None:
    """With Python's own numbers for inames and sizes, NumPy gives the same types and values."""
    data = inputs()
    used = {name: array for name, array in data.items() if f"{name}[" in text}
    found = kernel_of([text]).executor("reference")(n=7, **used)
    with np.errstate(all="ignore"):
        for i in range(7):
            names = {**data, "i": i, "n": 7, "np": np, "max": max, "min": min}
            value = np.asarray(eval(numpy_text(text), names))
            if np.asarray(found).dtype != np.int64:
                assert value.dtype == found.dtype, (text, value.dtype)
            assert np.allclose(value, found[i], rtol=1e-3 if value.dtype == "float16" else 1e-6)


BRANCHES = """
<> t = x[i]
if t > 0.5
    y[i] = t
else
    y[i] = 0
end
"""


def test_no_literal_types_an_array() -> None:
    """The type comes from all writers: here from x, which a call brings."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", BRANCHES, assumptions="n >= 1")
    assert [knl.arg_by_name[a].dtype for a in "xy"] == [None, None]
    x = np.linspace(0, 1, 7, dtype=np.float32)
    for executor in ("reference", "host"):
        y = knl.executor(executor)(x=x)
        assert y.dtype == np.float32 and np.array_equal(y, np.where(x > 0.5, x, 0))


def test_calls_type_what_only_numbers_are_written_to() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 2*i", assumptions="n >= 1")
    y = np.zeros(5, np.float32)
    assert knl.executor("reference")(y=y, n=5).dtype == np.float32
    assert np.array_equal(y, 2 * np.arange(5))
    assert knl.executor("reference")(n=5).dtype == np.int64


def test_what_is_computed_from_each_other_starts_from_what_is_known() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        <> s = 0 {inames=i}
        <> t = 1 {inames=i}
        s = s + t {inames=i:j}
        t = t + s*a[j]
        b[i] = t
        """,
        dtypes={"a": "float32"},
        assumptions="n >= 1",
    )
    assert str(knl.temporary_by_name["t"].dtype) == "float32"


@pytest.mark.parametrize("slabs", [(0, 1), (1, 0), (1, 1)])
def test_conditions_on_data_are_asked_inside_of_their_slab(slabs: tuple[int, int]) -> None:
    """What another slab would have written is not read."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", BRANCHES, dtypes={"x": "float32"}, assumptions="n >= 1"
    )
    knl = knl.split_iname("i", 4, slabs=slabs, outer_tag="g.0")
    x = np.linspace(0, 1, 10, dtype=np.float32)
    assert np.array_equal(knl.executor("reference")(x=x), np.where(x > 0.5, x, 0))


def test_accumulators() -> None:
    texts = ["sum(k, a[k])", "sum(k, a[k], dtype=int32)", "product(k, a[k], dtype=uint8)"]
    lines = "\n".join(f"c{n}[i] = {t}" for n, t in enumerate(texts))
    knl = lk.make_kernel("{ [i, k]: 0 <= i, k < n }", lines, dtypes={"a": "int32"})
    assert [str(t.dtype) for t in knl.temporaries] == ["int64", "int32", "uint8"]
    a = np.full(5, 2**30, np.int32)
    found = knl.executor("reference")(a=a)
    assert found.c0[0] == 5 * 2**30
    assert found.c1[0] == np.sum(a, dtype=np.int32)
    assert found.c2[0] == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("c = max(k, z[k])", "'max' is not defined for complex64"),
        ("c = sum(k, z[k], dtype=itn8)", "did you mean"),
        ("c = max(k, z[k], dtype=int8)", "would lose its imaginary part"),
        ("c = max(z[k], 2, dtype=int8)", "'max' is a reduction, and 'z"),
        ("c = sum(k, dtype=int8, z[k])", "comes at the end of a reduction"),
    ],
)
def test_what_has_no_type(text: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError, match=why):
        lk.make_kernel("{ [k]: 0 <= k < n }", text, dtypes={"z": "complex64"})


COMPARED = {
    "y[i] = x[i] if i < m else 0": "int32",
    "y[i] = x[i] {if=2*i + 1 <= m - 3}": "int32",
    "y[i] = sum(k, x[k] if k % 2 == m else 0)": "int32",
    "f(k) := x[k] if k < m else 0\ny[i] = f(i)": "int32",
    "y[i] = x[i] if x[i] < m else 0": "None",
    "y[i] = x[i] if i < 0.5*m else 0": "None",
}


@pytest.mark.parametrize("text", COMPARED)
def test_what_inames_are_compared_with_is_a_size(text: str) -> None:
    """Also where it bounds nothing; what data or fractions are compared with, a call types."""
    knl = lk.make_kernel("{ [i, k]: 0 <= i, k < n }", text, assumptions="n >= 1")
    assert str(knl.arg_by_name["m"].dtype) == COMPARED[text]
    if COMPARED[text] == "int32":
        assert "int const m" in knl.add_dtypes({"x": "float32"}).cuda()


def test_what_inames_are_compared_with_may_be_declared() -> None:
    def made(dtype: str) -> lk.Kernel:
        text = "y[i] = x[i] if i < m else 0"
        return lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"x": "float32", "m": dtype})

    assert made("int64").sizes == ("n", "m")
    assert made("float32").sizes == ("n",)


@pytest.mark.parametrize("text", ["y[(i + 1) // 0]", "(i + 1) % 0", "y[i]*(1 / 0)", "0.5 // 0.0"])
def test_division_by_a_literal_zero_is_refused_at_once(text: str) -> None:
    with pytest.raises(lk.TypeInferenceError, match="by zero"):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            f"z[i] = {text}",
            [lk.GlobalArg("y", "int32", shape="n"), ...],
            dtypes={"z": "int32"},
        )


@pytest.mark.parametrize("index", ["i // 3.0", "2.0 + i", "i / 2", "x[i]", "3.0", "sqrt(i)"])
def test_an_index_that_is_no_integer_is_refused_at_once(index: str) -> None:
    """Also where nothing ever uses what is read."""
    with pytest.raises(lk.TypeInferenceError, match="an index is an integer"):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            f"<> t = y[{index}]\nz[i] = 1 + x[i]",
            [lk.GlobalArg("y", "int32", shape="n + 9"), ...],
            dtypes={"x, z": "float32"},
        )


NARROW = [
    *("x[i] + n", "n - x[i]", "-n*x[i]", "x[i] // n", "n // x[i]", "x[i] % n", "x[i]**2 + n*2"),
    *("x[i] & n", "x[i] | n", "x[i] << n", "x[i] >> (n - 298)", "min(x[i], n)", "max(x[i], n, 7)"),
    *("x[i] if x[i] > 3 else n", "1 if x[i] < n else 0", "n", "x[i] + (n if x[i] > 5 else 3)"),
]
"""What an integer of one byte meets."""


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_numbers_in_the_place_of_sizes_wrap_around_as_these_do(dtype: str) -> None:
    x = (np.arange(10) * 25 - (120 if dtype == "int8" else 0)).astype(dtype)
    lines = "\n".join(f"y{number}[i] = {text}" for number, text in enumerate(NARROW))
    names = ", ".join(f"y{number}" for number in range(len(NARROW)))
    for declared in ({"x": dtype, names: dtype, "n": "int32"}, {names: dtype}):
        knl = lk.make_kernel("{ [i]: 0 <= i < 10 }", lines, dtypes=declared, assumptions="n >= 0")
        fixed, made = knl.fix_parameters(n=300), {"n": 300}
        same = lk.make_kernel(
            "{ [i]: 0 <= i < 10 }", lines, dtypes={"x": dtype, names: dtype}, fixed_parameters=made
        )
        expected = knl.executor("reference")(x=x, n=300)
        for executor in ("reference", "host"):
            for found in (
                knl.executor(executor)(x=x, n=300),
                *(k.executor(executor)(x=x) for k in (fixed, same)),
            ):
                for mine, its in zip(expected, found, strict=True):
                    assert np.array_equal(mine, its) and mine.dtype == its.dtype
    assert fixed.add_dtypes({"x": dtype}).prove().ok and same.prove().ok


def test_numbers_in_the_place_of_inames_wrap_around_as_these_do() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 10 and 299 <= j < 301 }",
        "y[i, j - 299] = x[i] // j",
        dtypes={"x": "uint8"},
    )
    x = np.arange(0, 250, 25, dtype="uint8")
    written = knl.unroll("j")
    assert np.array_equal(written.executor("host")(x=x), knl.executor("reference")(x=x))
    assert written.prove().ok and lk.verify(knl, written).answer == "equal"


@pytest.mark.parametrize(
    "text", ["x[i] + 300", "x[i] if x[i] > 3 else 300", "x[i] % 300", "min(x[i], 300)", "300"]
)
def test_literals_that_no_type_holds_are_refused(text: str) -> None:
    said = "the constant 300 is not a value of uint8"
    with pytest.raises(lk.TypeInferenceError, match=said):
        lk.make_kernel("{ [i]: 0 <= i < 9 }", f"y[i] = {text}", dtypes={"y": "uint8"}).add_dtypes(
            {"x": "uint8"}
        )
    later = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = {text}").fix_parameters(n=9)
    given = {"x": np.zeros(9, "uint8")} if "x" in text else {"y": np.zeros(9, "uint8")}
    with pytest.raises(lk.TypeInferenceError, match=said):
        later(**given)
