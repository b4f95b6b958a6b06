"""The proof compares what lines compute, and what calls pass, with the kernel."""

from __future__ import annotations

import dataclasses
import re
from random import Random

import numpy as np
import pytest
from proof_kernels import matmul
from seams import (
    DIGESTS,
    Proof,
    ValueParam,
    definitions,
    digest,
    preamble,
    prove,
    prove_program,
    prove_source,
)
from seams import preamble_device_functions as device_functions
from test_c_expressions import INTEGERS, REAL, TYPES, random_text

import loopkit as lk

NAMES = "|".join(sorted(TYPES, key=len, reverse=True))
RESULTS = (
    "float32",
    "float64",
    "int32",
    "int8",
    "complex64",
    "float16",
    "bool",
    "uint8",
    "int64",
    "bfloat16",
)


def assigned(text: str, dtype: str, predicate: str = "") -> lk.Kernel:
    """``o[q] = text`` over arrays of all types, named as in :data:`TYPES`."""
    options = f" {{if={predicate}}}" if predicate else ""
    text = re.sub(rf"\b({NAMES})\b(?!\()", r"\1[q]", text + options)
    used = [n for n in TYPES if f"{n}[q]" in text]
    arrays = [lk.GlobalArg(n, TYPES[n], shape="n") for n in used]
    arrays.append(lk.GlobalArg("o", dtype, shape="n"))
    return lk.make_kernel("{ [q]: 0 <= q < n }", f"o[q] = {text}", [*arrays, ...])


def edited(text: str, dtype: str, old: str, new: str, predicate: str = "") -> Proof:
    """The proof of a line in which something has changed."""
    knl = assigned(text, dtype, predicate)
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    at = source.index("for (int q")
    assert old in source[at:], source[at:]
    return prove_source(knl, source[:at] + source[at:].replace(old, new, 1))


# {{{ what is printed is proven


@pytest.mark.parametrize("seed", range(12))
def test_expressions_of_all_types(seed: int) -> None:
    """Whatever the printer makes of an expression, the proof takes for the same."""
    random = Random(seed)
    proven = 0
    while proven < 12:
        names = random.choice((REAL, INTEGERS))
        text, dtype = random_text(random, names, 3), random.choice(RESULTS)
        try:
            knl = assigned(text, dtype)
            knl.program()
        except lk.LoopkitError:
            continue
        proof = prove(knl)
        assert proof.ok, f"{text}: {proof}"
        proven += 1


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("-x*y - -2*x", "float32"),
        ("x**2 + (x + y)**3 - x**7 + x**-2 + x**0.5", "float32"),
        ("(-x)**3 + (-x)**4", "float32"),
        ("h**2 + h**3", "float16"),
        ("z*w - 3*z + z/x + conj(z)*2j", "complex128"),
        ("abs(z) + real(z)*imag(w)", "float64"),
        ("(1.0 if x > 0 else 0.0)*h + (2 if i < 3 else 4)", "float16"),
        ("fma(x, y, 1) + rsqrt(x) - round(y) + erf(x)", "float32"),
        ("max(x, y, 0) + fmin(x, 2)", "float32"),
        ("max(h, bf, x)", "float32"),
        ("i8 + j8*3 - -u8", "int16"),
        ("i//7 + i % 8 + u//3 - l % 5 + i//j", "int64"),
        ("(u8 << 3) + (i >> j) + (l << 70 % 64)", "int64"),
        ("i**2 + i**j", "int32"),
        ("b + b*b + (b ^ b)", "bool"),
        ("isnan(x) and not isinf(y) or x == y", "bool"),
        ("l < ul and u8 < 300 and not (i == j)", "bool"),
        ("float32(1e40) - x*1e-50", "float32"),
        ("q*x + (q - 3) % 5 + n//2", "float64"),
    ],
)
def test_meanings(text: str, dtype: str) -> None:
    proof = prove(assigned(text, dtype))
    assert proof.ok, str(proof)


@pytest.mark.parametrize("operation", ["sum", "product", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
def test_reductions(operation: str, dtype: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"y[i] = {operation}(j, x[i, j])",
        dtypes={"x": dtype},
    )
    proof = prove(knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0"))
    assert proof.ok, str(proof)


def test_constants_that_are_folded() -> None:
    """A read that no longer matters is gone from the text, and nothing is open."""
    assert prove(assigned("isnan(i) + (u8 < 300)", "float32")).ok


# }}}

# {{{ what is changed is found


@pytest.mark.parametrize(
    ("text", "dtype", "old", "new"),
    [
        ("x + y", "float32", " + ", " - "),
        ("x - y", "float32", "x[q] - y[q]", "y[q] - x[q]"),
        ("x*(y + 1)", "float32", "x[q] * (y[q] + 1.0f)", "x[q] * y[q] + 1.0f"),
        ("x + (y + a)", "float32", "x[q] + (y[q] + a[q])", "x[q] + y[q] + a[q]"),
        ("x*y*a", "float32", "x[q] * y[q] * a[q]", "x[q] * (y[q] * a[q])"),
        ("x/y/a", "float32", "x[q] / y[q] / a[q]", "x[q] / (y[q] * a[q])"),
        ("x*0.1", "float32", "0.1f", "0.1"),
        ("x*0.1", "float32", "0.1f", "0.10000001f"),
        ("d*0.1", "float64", "0.1", "0.1f"),
        ("d*1e300", "float64", "1e+300", "1e+301"),
        ("2.5*z", "complex64", "2.5f", "2.25f"),
        ("exp(x)", "float32", "expf", "exp2f"),
        ("exp(x)", "float32", "expf(x[q])", "exp((double)x[q])"),
        ("atan2(x, y)", "float32", "x[q], y[q]", "y[q], x[q]"),
        ("fma(x, y, a)", "float32", "fmaf(x[q], y[q], a[q])", "x[q] * y[q] + a[q]"),
        ("max(x, y)", "float32", "lk_max", "lk_min"),
        ("round(x)", "float32", "rintf", "truncf"),
        ("x**3", "float32", "x[q] * x[q] * x[q]", "x[q] * x[q]"),
        ("(x + y)**5", "float32", "lk_power<5>", "lk_power<4>"),
        ("i//j", "int32", "lk_floordiv(i[q], j[q])", "lk_mod(i[q], j[q])"),
        ("i//3", "int32", "lk_floordiv(i[q], 3)", "i[q] / 3"),
        ("i % 8", "int32", "& 7", "& 8"),
        ("i//8", "int32", ">> 3", ">> 2"),
        ("u8 + u8", "int32", "(unsigned char)", ""),
        ("float32(i)*x", "float32", "(float)i[q]", "(float)(i[q] | 1)"),
        ("int8(i)", "int32", "(signed char)", "(short)"),
        ("l + i", "int64", "l[q] + i[q]", "(int)l[q] + i[q]"),
        ("d + x", "float64", "d[q] + x[q]", "(float)d[q] + x[q]"),
        ("h*g + 1", "float32", "h[q] * g[q]", "h[q] + g[q]"),
        ("x if i < 3 else y", "float32", "x[q] : y[q]", "y[q] : x[q]"),
        ("x if i < 3 else y", "float32", "< 3", "<= 3"),
        ("x if i < 3 and j < 2 else y", "float32", "&&", "||"),
        ("x if not b else y", "float32", "!b[q]", "b[q]"),
        ("real(z)", "float32", ".re", ".im"),
        ("i ^ j", "int32", "^", "|"),
        ("i << 3", "int32", "<< 3", "<< 4"),
        ("b", "bool", "b[q]", "!b[q]"),
        ("x", "float32", "x[q]", "-x[q]"),
        ("q*x", "float32", "q *", "(q + 1) *"),
        ("n*x", "float32", "n *", "q *"),
        ("x/0.0", "float32", "0.0f", "-0.0f"),
    ],
)
def test_another_value(text: str, dtype: str, old: str, new: str) -> None:
    """Each change is refuted, by values for which the results differ."""
    proof = edited(text, dtype, old, new)
    # A helper that only the edited text calls is not defined either.
    kinds = [f.kind for f in proof.findings if "defines" not in f.what]
    assert kinds in (["value"], ["access"]), str(proof)
    assert "the line gives o = " in proof.findings[0].what


@pytest.mark.parametrize(
    ("old", "new"),
    [("> 0.1f", "> 0.1"), ("> 0.1f", ">= 0.1f"), ("x[q] >", "-x[q] >"), ("x[q] >", "y[q] >")],
)
def test_another_condition(old: str, new: str) -> None:
    proof = edited("x + y", "float32", old, new, predicate="x > 0.1 and q > 1")
    assert any(f.kind in ("value", "access") for f in proof.findings), str(proof)


@pytest.mark.parametrize(
    ("text", "dtype", "old", "new"),
    [
        ("x + y", "float32", "x[q] + y[q]", "y[q] + x[q]"),
        ("x*2", "float32", "x[q] * 2.0f", "x[q] + x[q]"),
        ("i + j", "int32", "i[q] + j[q]", "j[q] - -(unsigned)i[q]"),
        ("x if b else y", "float32", "b[q] ? x[q] : y[q]", "!b[q] ? y[q] : x[q]"),
    ],
)
def test_another_way_to_the_same(text: str, dtype: str, old: str, new: str) -> None:
    """What printing never does is not taken for the same, nor for wrong."""
    proof = edited(text, dtype, old, new)
    assert not proof.findings
    assert not proof.ok


@pytest.mark.parametrize(
    ("text", "dtype", "old", "new"),
    [
        ("h + g", "float16", "h[q] + g[q]", "h[q] + (float)g[q]"),
        ("x + y", "float32", "x[q] + y[q]", "__fadd_rz(x[q], y[q])"),
        ("z*w", "complex128", "lk_to_complex128(z[q])", "z[q]"),
        ("max(x, d)", "float64", "(double)x[q]", "x[q]"),
    ],
)
def test_what_is_not_printed_is_not_understood(text: str, dtype: str, old: str, new: str) -> None:
    proof = edited(text, dtype, old, new)
    assert [f.kind for f in proof.findings] == ["text"], str(proof)


def test_what_compares_is_compared_with_zero() -> None:
    proof = edited("l < ul", "bool", "lk_compare(l[q], ul[q]) < 0", "lk_compare(l[q], ul[q]) < 1")
    assert any("not understood" in u.what for u in proof.undecided), str(proof)


def test_a_sum_starts_from_its_neutral_element() -> None:
    proof = prove_source(matmul(), matmul().cuda().replace("acc = 0.0f", "acc = 1.0f"))
    assert [f.what for f in proof.findings] == ["the line gives acc = 1.0, 'insn_init' 0.0"]


def test_a_product_is_summed() -> None:
    source = matmul().cuda().replace("acc += a_s", "acc += 2.0f * a_s")
    assert [f.kind for f in prove_source(matmul(), source).findings] == ["value"]


def test_values_that_show_it() -> None:
    """A finding names cells and values, and running the line by hand gives what it says."""
    [finding] = edited("x*y + 1", "float32", "+ 1.0f", "+ 2.0f").findings
    found = re.fullmatch(
        r"the line gives o = (\S+), 'insn' (\S+) where o?.*x\[0\] = (\S+), y\[0\] = (\S+)",
        finding.what,
    )
    assert found is not None, finding.what
    given, due, x, y = (float(v) for v in found.groups())
    assert given == x * y + 2
    assert due == x * y + 1
    assert finding.sizes == {"n": 1}


# }}}

# {{{ calls


def test_what_a_call_passes() -> None:
    knl = matmul()
    program = knl.program()
    params = list(program.params)
    at = [p.name for p in params].index("a")
    wide = dataclasses.replace(params[at], dtype=np.dtype("float64"))
    long = dataclasses.replace(params[at], shape=(*params[at].shape[:-1], 7))
    strided = dataclasses.replace(params[at], strides=tuple(reversed(params[at].strides)))
    extra = ValueParam("more", np.dtype("int32"))
    cases = {
        "passed as float64": (*params[:at], wide, *params[at + 1 :]),
        "has the extents": (*params[:at], long, *params[at + 1 :]),
        "has the strides": (*params[:at], strided, *params[at + 1 :]),
        "passes 7 values": (*params, extra),
        "but a launch passes": tuple(reversed(params)),
    }
    assert len(params) == 6
    for words, changed in cases.items():
        proof = prove_program(knl, dataclasses.replace(program, params=changed))
        assert any(f.kind == "call" and words in f.what for f in proof.findings), str(proof)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("float const *__restrict__ a", "double const *__restrict__ a", "the text takes double"),
        ("int const n", "long long const n", "the text takes long long"),
        ("float *__restrict__ c", "float const *__restrict__ c", "which it declares constant"),
        ("__launch_bounds__(256)", "__launch_bounds__(128)", "promises 128"),
        ("matmul(", "product(", "the text calls it 'product'"),
    ],
)
def test_what_the_text_takes(old: str, new: str, words: str) -> None:
    source = matmul().cuda()
    assert old in source
    proof = prove_source(matmul(), source.replace(old, new, 1))
    assert any(f.kind == "call" and words in f.what for f in proof.findings), str(proof)


def test_calls_test_what_is_assumed() -> None:
    knl = matmul()
    program = dataclasses.replace(knl.program(), checks=())
    [finding] = [f for f in prove_program(knl, program).findings if f.kind == "call"]
    assert min(finding.sizes.values()) < 1


# }}}

# {{{ found by the random campaign


def test_guards_read_only_what_c_looks_at() -> None:
    """The second part of a guard is not evaluated where the first one fails."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "u[i] = b[i + 2] - u[i] {if=x[i, i % 3] > 2}",
        dtypes={"b, u, x": "int32"},
        assumptions="n >= 1",
    )
    knl = (
        knl.split_iname("i", 2, inner_tag="unr", outer_tag="g.0")
        .add_prefetch("x", ["i_inner"], default_tag=None)
        .add_prefetch("x_r", ["i_inner"], temporary_address_space="private")
    )
    assert prove(knl).ok, str(prove(knl))


def test_hardware_indices_that_begin_elsewhere() -> None:
    """Inames whose bounds hang on other loops begin where those let them."""
    knl = lk.make_kernel(
        ["{ [i, j]: 1 <= i <= n and 0 <= j < n }", "{ [k]: j < k < m }"],
        "<> t1 = g[k] + j + k",
        [lk.GlobalArg("g", "int32", shape="m"), ...],
        assumptions="n, m >= 1",
    )
    proof = prove(knl.split_iname("k", 1, inner_tag="l.2", outer_tag="g.2"))
    assert proof.ok, str(proof)
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 5 }", "{ [h]: i <= h < i + 3 }", "{ [j]: 0 <= j < m }"],
        "f[h, i, j] = d[(h + 1) % 2, 2*i] + u[j + 2]",
        dtypes={"d, f, u": "float64"},
        assumptions="m >= 1",
    )
    knl = knl.map_domain("{ [h] -> [x]: x = -h }").tag_inames("x:l.0")
    assert prove(knl).ok, str(prove(knl))
    shifted = knl.cuda().replace("threadIdx.x - 6", "threadIdx.x - 5")
    assert shifted != knl.cuda()
    assert prove_source(knl, shifted).findings


# }}}

# {{{ helpers


def test_helpers_are_those_that_the_proof_knows() -> None:
    """Whoever changes a helper of the preamble must look at what the proof takes it for."""
    text = preamble(device_functions())
    blocks = [b for b in text.strip("\n").split("\n\n") if not b.startswith("#")]
    assert {digest(b) for b in blocks} == set(DIGESTS.values())
    found = definitions(tuple(text.split("\n")))
    assert found >= set(DIGESTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return n / d -", "return n / d +"),
        ("if (d == 0) return 0;", ""),
        ('extern "C"', '#define float double\n\nextern "C"'),
        ('extern "C"', '__device__ float fabsf(float x) { return x; }\n\nextern "C"'),
    ],
)
def test_another_helper(old: str, new: str) -> None:
    knl = assigned("i//j", "int32")
    source = knl.cuda()
    assert old in source
    proof = prove_source(knl, source.replace(old, new, 1))
    assert [f.kind for f in proof.findings] == ["text"]


def test_another_definition_inside() -> None:
    knl = assigned("x", "float32")
    proof = prove_source(knl, knl.cuda().replace("    for", "#define x y\n    for"))
    assert [f.kind for f in proof.findings] == ["text"]


# }}}
