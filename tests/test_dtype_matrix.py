"""Each type of the language with each operation, on all executors: they agree, and are proven.

Halves are computed in float and rounded after each operation, which is what NumPy's own
scalars do: results are the same bit by bit.  Complex products may round otherwise, since
NumPy's own may be fused; moduli are those of two libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import COMPLEXES, DTYPES, dtype_name

import loopkit as lk
from loopkit import ArrayArg

SIZE = 7
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
SMALL = ("float16", "bfloat16", "complex64", "complex128")

OF_ALL = """
a[i] | a[i] + b[i] | a[i]*b[i] | a[i] if a[i] != b[i] else b[i] | a[i] == b[i] | any(k, a[k])
sum(k, a[k]) | product(k, a[k]) | all(k, a[k]) | 2*a[i] | a[i]**2 | a[i]**3 | abs(a[i])
a[i] if a[i] else b[i] | real(a[i]) | conj(a[i]) | n*a[i] | a[i] + (1 if i < 3 else 2)
"""
OF_SIGNED = "-a[i] | a[i] - b[i] | a[i] - 3"
OF_FLOATS = """
a[i]/b[i] | a[i]/3 | 2.5*a[i] + 1 | 1/a[i] | a[i] + 1.0 | 2*b[i] - 1.5*a[i] | sqrt(abs(a[i]))
a[i]*1j | imag(a[i]) | a[i]*(0.5 if i < 3 else 1.5)
"""
OF_REAL = """
max(a[i], b[i]) | min(a[i], b[i]) | a[i] if a[i] < b[i] else b[i] | max(k, a[k]) | min(k, a[k])
a[i]//b[i] | a[i] % b[i] | a[i] >= b[i] | min(a[i], 2) | max(1, a[i])
"""


def expressions(dtype: str) -> list[str]:
    """What is defined for a type."""
    kind = DTYPES[dtype].kind
    found = OF_ALL
    if dtype != "bool":
        found += "|" + OF_SIGNED
    if kind in "fcV":
        found += "|" + OF_FLOATS
    if kind != "c":
        found += "|" + OF_REAL
    return [t.strip() for line in found.split("\n") for t in line.split("|") if t.strip()]


def kernel_of(texts: list[str], dtypes: dict[str, str]) -> lk.Kernel:
    """A kernel that computes each text into an array of its own."""
    lines = "\n".join(f"c{number}[i] = {text}" for number, text in enumerate(texts))
    domain = "{ [i, k]: 0 <= i, k < n }"
    return lk.make_kernel(domain, lines, dtypes=dtypes, assumptions="n >= 1")


def values(dtype: Any, seed: int) -> Any:
    """Values of both signs where there are some, and some that are equal."""
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, SIZE).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(1 if dtype.kind == "u" else -9, 9, SIZE).astype(dtype)
    parts = generator.normal(size=(2, SIZE)).astype(np.float32)
    return (
        (parts[0] + 1j * parts[1]).astype(dtype) if dtype in COMPLEXES else parts[0].astype(dtype)
    )


def inputs(kernel: lk.Kernel) -> dict[str, Any]:
    """Data for all arrays that are only read."""
    arrays = [a for a in kernel.args if isinstance(a, ArrayArg) and a.name not in kernel.writers]
    return {a.name: values(a.dtype, seed) for seed, a in enumerate(arrays)}


def same(found: Any, expected: Any) -> bool:
    """Equal bit by bit; of complex numbers and moduli up to their last digits."""
    if found.dtype != expected.dtype:
        return False
    if found.tobytes() == expected.tobytes():
        return True
    if found.dtype.kind not in "fc" or found.dtype.itemsize == 2:
        return False
    digits = 1e-6 if found.dtype in (np.float32, np.complex64) else 1e-14
    return bool(np.allclose(found, expected, rtol=digits, atol=0, equal_nan=True))


def agree(kernel: lk.Kernel, texts: list[str]) -> None:
    """The reference and the host executor compute the same, and the program is proven."""
    data = inputs(kernel)
    reference = kernel.executor("reference")(**data)
    host = kernel.executor("host")(**data)
    for number, text in enumerate(texts):
        pair = (getattr(host, f"c{number}"), getattr(reference, f"c{number}"))
        assert same(*pair), (text, *pair)
    proof = kernel.prove()
    assert proof.ok, str(proof)


@pytest.mark.host
@pytest.mark.parametrize("dtype", DTYPES)
def test_operations(dtype: str) -> None:
    texts = expressions(dtype)
    agree(kernel_of(texts, {"a, b": dtype}), texts)


@pytest.mark.host
@pytest.mark.parametrize("dtype", DTYPES)
def test_meetings_and_casts(dtype: str) -> None:
    names = {f"x_{other}": other for other in DTYPES}
    texts = [
        t
        for x in names
        for t in (f"a[i] + {x}[i]", f"a[i]*{x}[i]", f"a[i] == {x}[i]", f"{dtype}({x}[i])")
    ]
    # What is no number of a type has no value in it that C and NumPy agree on.
    if dtype.startswith("uint"):
        texts = [t for t in texts if t.startswith("a[i]") or "x_u" in t or "x_bool" in t]
    agree(kernel_of(texts, {"a": dtype, **names}), texts)


@pytest.mark.nvrtc
@pytest.mark.parametrize("dtype", SMALL)
def test_all_architectures_compile_them(dtype: str) -> None:
    kernel = kernel_of(expressions(dtype), {"a, b": dtype})
    for architecture in ARCHITECTURES:
        assert kernel.cubin(architecture)


STORED = {
    "copy": "c[i] = a[i]",
    "negation": "c[i] = -a[i]",
    "sum with itself": "c[i] = a[i] + a[i]",
    "temporary": "<> t = a[i]\nc[i] = t",
}


@pytest.mark.host
@pytest.mark.nvrtc
@pytest.mark.parametrize("text", STORED.values(), ids=STORED)
@pytest.mark.parametrize("dtype", SMALL)
def test_what_only_names_a_type_brings_it(dtype: str, text: str) -> None:
    kernel = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"a": dtype}, assumptions="n >= 1")
    assert kernel.cubin("sm_90a")
    a = values(DTYPES[dtype], 3)
    expected = {"copy": a, "negation": -a, "sum with itself": a + a, "temporary": a}
    (name,) = (name for name, known in STORED.items() if known == text)
    assert same(kernel.executor("host")(a=a), expected[name])


@pytest.mark.host
@pytest.mark.nvrtc
@pytest.mark.parametrize("dtype", SMALL)
def test_staged_data(dtype: str) -> None:
    """Copies in shared and private memory, and a buffer, of each type."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b, c": dtype},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
    knl = knl.split_iname("j", 4, outer_tag="g.0", inner_tag="l.0").split_iname("k", 4)
    knl = knl.add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
    knl = knl.add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    assert knl.cubin("sm_90a")
    assert knl.prove().ok
    generator = np.random.default_rng(7)
    a, b = (generator.integers(-3, 4, (6, 6)).astype(DTYPES[dtype]) for _ in "ab")
    wide = np.complex128 if DTYPES[dtype] in COMPLEXES else np.float64
    expected = (a.astype(wide) @ b.astype(wide)).astype(DTYPES[dtype])
    for executor in ("host", "reference"):
        assert same(knl.executor(executor)(a=a, b=b), expected)


def test_a_dropped_header_is_found() -> None:
    from seams import prove_source

    for dtype in SMALL:
        knl = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = a[i]", dtypes={"a": dtype})
        bare = knl.cuda()[knl.cuda().index('extern "C"') :]
        (finding,) = prove_source(knl, bare).findings
        assert finding.what.startswith("nothing above defines"), dtype_name(DTYPES[dtype])
