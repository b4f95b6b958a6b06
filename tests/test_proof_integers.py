"""Whole numbers of the text as C computes them: signs that are lost, shifts, floating point."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from seams import Term, const, prove, prove_source
from seams import operations as ops

import loopkit as lk

GUARD = "if (32 * i_outer + i_inner < n)"
READ = "= x[32 * i_outer + i_inner]"


@functools.cache
def copied() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]", dtypes={"x, y": "int32"}, assumptions="n >= 1"
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


def guarded(more: str) -> tuple[str, str]:
    return GUARD, GUARD[:-1] + f" && {more})"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # What is less than nothing is large as an unsigned number.
        guarded("threadIdx.x - 40 < 100"),
        guarded("i_inner - 40 < 100u"),
        guarded("i_inner - 40 < 100ULL"),
        guarded("-1 < 0u"),
        guarded("-threadIdx.x < 1"),
        guarded("min(threadIdx.x - 3, 5u) < 5"),
        guarded("(i_inner - 3 ? i_inner - 3 : 0u) < 40"),
        guarded("(long long)(threadIdx.x - 3) < 40"),
        guarded("(unsigned)(i_inner - 3) / 2 < 40"),
        ("int const i_inner = threadIdx.x", "int const i_inner = (threadIdx.x - 5) / 1 + 5"),
        (READ, "= x[i_inner - 40u + 32 * i_outer + 40LL]"),
        (READ, "= x[(threadIdx.x - 40) % 32 + 8 + 32 * i_outer]"),
        # C says nothing of shifts by more than there are bits.
        guarded("i_inner >> 40 < 1"),
        guarded("i_inner >> 32 < 1"),
        guarded("(i_inner >> -1) < 1"),
        guarded("(i_inner << 32) < 1"),
        guarded("1 >> 4294967297LL < 1"),
        guarded("1 >> i_inner < 2"),
        (READ + ";", READ + " >> 4294967296LL;"),
        # Subscripts of what a guard reads are computed, too.
        guarded("x[n * n - n * n] == x[n * n - n * n]"),
        # Floating-point numbers round.
        (READ, "= x[32 * i_outer + (int)(i_inner * 1.0f)]"),
        (READ, "= x[(int)(32.0f * i_outer) + i_inner]"),
        (READ, "= x[32 * i_outer + (short)i_inner]"),
    ],
)
def test_not_proven(old: str, new: str) -> None:
    source = copied().cuda()
    assert old in source
    assert not prove_source(copied(), source.replace(old, new, 1)).ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int const i_inner = threadIdx.x", "int const i_inner = threadIdx.x - 5 + 5"),
        (READ, "= x[32u * i_outer + i_inner]"),
        (READ, "= x[i_inner - 40u + 32 * i_outer + 40]"),
        (READ, "= x[-(-i_inner) + 32 * i_outer]"),
        (READ, "= x[(i_inner << 2 >> 2) + 32 * i_outer]"),
        guarded("i_inner < 40u"),
        guarded("(int)(threadIdx.x - 40) < 100"),
        guarded("(long long)threadIdx.x - 40 < 100"),
    ],
)
def test_what_wraps_around_without_harm(old: str, new: str) -> None:
    source = copied().cuda()
    assert old in source
    proof = prove_source(copied(), source.replace(old, new, 1))
    assert proof.ok, str(proof)


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32"])
@pytest.mark.parametrize("count", [0, 3, 31, 32, 64, 2**32, 2**32 + 1, -1])
def test_shifts_by_any_number(dtype: str, count: int) -> None:
    """The language's shifts are by any number; the text asks a helper where C has no answer."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[i] >> int64({count}) \nz[i] = x[i] << int64({count})",
        dtypes={"x": dtype},
    )
    assert prove(knl).ok, str(prove(knl))


def test_shifts_of_constants() -> None:
    for kind in map(np.dtype, ("int16", "int32", "int64")):
        by = [
            const(count, np.dtype("int64"))
            for count in (2**32 + 1, -(2**32) + 1, 8 * kind.itemsize)
        ]
        for word, x, due in (("shr", 5, 0), ("shr", -5, -1), ("shl", 5, 0)):
            folded = [ops.shift(word, kind, const(x, kind), b) for b in by]
            assert all(t.op == "const" and t.data == due for t in folded)
        terms = [ops.shift("shr", kind, Term("read", kind, (), None), b) for b in by]
        assert all(t.op == "shr" and t.args[1].data == 8 * kind.itemsize for t in terms)


@pytest.mark.parametrize(
    "predicate",
    [
        "(n * b[i] | 128 + c[i]) > 3",
        "(a[i] * b[i]) % 2 > 0",
        "(a[i] & c[i] // 7) > 3",
        "(a[i] | c[i]) >> 2 > 3",
        "i >> 2 > 3",
        "(2097152 - 2) << 3 > i",
        "((i | a[i]) if c[i] < 8 else 1) > 3",
        "(c[i] - i) >> 0 > 3",
        "(n | i) % 2 > 0",
        "uint16(226 & i) > 3",
        "i < int16(134217728) + 7",
        "295 & n % 7 > 3",
        "float64(a[i]) > 0.5 and i > 2",
    ],
)
def test_predicates_of_mixed_types(predicate: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = i {{if={predicate}}}",
        dtypes={name: t for name, t in DTYPES.items() if f"{name}[" in predicate} | {"y": "int32"},
        assumptions="n >= 1",
    )
    for kernel in (knl, knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")):
        assert prove(kernel).ok, f"{prove(kernel)}\n{kernel.cuda()}"


DTYPES = {"a": "int16", "b": "int8", "c": "uint32"}


def test_a_value_of_another_type() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = a * x[i]",
        dtypes={"a, x, y": "float32"},
        assumptions="n >= 1",
    )
    source = knl.cuda()
    assert "float const a" in source
    assert not prove_source(knl, source.replace("float const a", "unsigned int const a")).ok


@pytest.mark.parametrize(
    ("text", "dtypes"),
    [
        ("y[i] = sum(k, c[i] + ((b[i] | 272) + (k - k)))", {"c": "uint8", "b": "uint16"}),
        ("y[i] = sum(k, c[i] + ((b[i] ^ 5) + k))", {"c": "int8", "b": "int16"}),
        ("y[i] = uint8(c[i] * 22 - (-2) * max(k, c[i]))", {"c": "int32"}),
        ("y[i] = sum(k, ((152 << 1) & int16(c[i])) // 7)", {"c": "uint8"}),
        ("y[i] = k {if=(-6 | c[i] + b[i]) > 3}", {"c": "int64", "b": "uint8"}),
    ],
)
def test_mixed_widths(text: str, dtypes: dict[str, str]) -> None:
    """Right sides that an integer of some width holds, whatever is narrower or wider beside it."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 5 }",
        text,
        dtypes={**dtypes, "y": "int32"},
        assumptions="n >= 1",
    )
    assert prove(knl).ok, f"{prove(knl)}\n{knl.cuda()}"


@pytest.mark.parametrize(
    "text",
    [
        *("i // j", "i % j", "i // (j + 1)*j", "(i + 5) // (m + 1)", "(i + 1) % n"),
        *("(i - 3) // j", "(i - 3) % j", "i // (i - 1)", "i % (j - 3)", "(i - 9) // (j - 3)"),
    ],
)
def test_whole_numbers_are_divided_by_names(text: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 1 <= j < m }",
        f"y[i, j - 1] = {text}",
        assumptions="n >= 1 and m >= 2",
    )
    for scheduled in (knl, knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")):
        proof = scheduled.prove()
        assert proof.ok, proof
        found = [scheduled.executor(e)(n=7, m=6) for e in ("host", "reference")]
        assert (found[0] == found[1]).all()
    if "i - 3" in text:
        symbol = "/" if "//" in text else "%"
        helper = "lk_floordiv" if symbol == "/" else "lk_mod"
        as_in_c = knl.cuda().replace(f"{helper}(i - 3, j)", f"(i - 3) {symbol} j")
        assert as_in_c != knl.cuda()
        assert not prove_source(knl, as_in_c).ok


@pytest.mark.parametrize("operation", ["sum", "product"])
@pytest.mark.parametrize("other", ["int16", "int64"])
def test_wide_terms_of_unsigned_results(operation: str, other: str) -> None:
    """C computes with a result of 32 bits and no sign in 64 bits where the term has these."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 9 }",
        f"x[i] = {operation}(k, a[i, k]*b[i, k])",
        dtypes={"a, x": "uint32", "b": other},
        assumptions="n >= 1",
    )
    assert prove(knl).findings == ()
    rng = np.random.default_rng(5)
    low, high = np.iinfo(other).min, np.iinfo(other).max
    a = rng.integers(0, 2**32, (40, 9), dtype="uint32")
    b = rng.integers(low, high, (40, 9), dtype=other)
    whole = a.astype(object) * b
    exact = (whole.sum(axis=1) if operation == "sum" else whole.prod(axis=1)) % 2**32
    for executor in ("host", "reference"):
        assert np.array_equal(knl.executor(executor)(a=a, b=b), exact.astype("uint32"))


@pytest.mark.parametrize("least", ["lo", "lo + 1", "2*lo"])
def test_guards_of_loaded_bounds(least: str) -> None:
    """Bounds that are loaded stay far below what 64 bits hold; other data do not."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", f"{{ [r]: {least} <= r < hi }}"],
        "<> lo = ptr[i]\nu[i] = u[i] + g[2*r]",
        [lk.GlobalArg("g", "int32", shape="2*n"), ...],
        dtypes={"u": "int32", "ptr": "int64"},
        assumptions="n >= 1",
    ).peel_iname("r", first=1, last=1)
    assert prove(knl).findings == ()
    guard = {"lo": "lo + 1 < hi", "lo + 1": "lo + 2 < hi", "2*lo": "2 * lo + 1 < hi"}[least]
    source = str(knl.cuda())
    assert guard in source
    for term in ("ptr[i] + 1 - ptr[i] - 1 + ", "lo * lo - lo * lo + "):
        found = prove_source(knl, source.replace(f"if ({guard})", f"if ({term}{guard})"))
        assert [f.kind for f in found.findings] == ["width"]
