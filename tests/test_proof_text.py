"""What C++ reads in another way than it looks, or not at all, is never proven."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from proof_kernels import dynamic, matmul
from seams import literal, prove, prove_source

import loopkit as lk


@functools.cache
def plain() -> lk.Kernel:
    """A sum with a guard, a constant, and steps of whole numbers."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        "<> t = x[i] * 2 {id=first}\ny[i] = t + sum(j, x[(i + 3*j + 10) % 16 + 8]) {id=last}",
        dtypes={"x, y": "float32"},
        assumptions="n >= 24",
        name="plain",
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


COMMENTS = [
    (" // first", " // first \\"),
    (" // first", " // first \\  "),
    (" // first", " // first ??/"),
    (" // first", " /* first */"),
    (" // first", " // fürst"),
    (" // first", " // first\r"),
    (" // first", " // first\x0b"),
    (" // first", " // first\u2028"),
    ("    float t;", "    float \\\n    t;"),
    ("    float t;", "\tfloat t;"),
    ("    float t;", "    /* float t; */ float t;"),
    ("    float t;", "    float\xa0t;"),
    ("    float t;", "    #pragma unroll\n    float t;"),
    ("    float t;", "    float t;\n#line 7"),
]
NUMBERS = [
    ("+ 8]", "+ 010]"),
    ("+ 8]", "+ 0x8]"),
    ("+ 8]", "+ 0b1000]"),
    ("+ 8]", "+ 8.0]"),
    ("+ 8]", "+ 8L]"),
    ("+ 8]", "+ 8U]"),
    ("+ 8]", "+ 8lu]"),
    ("+ 8]", "+ '8']"),
    ("+ 8]", "+ 4294967304]"),
    ("% 16", "% 016"),
    ("% 16", "% 1'6"),
    ("% 16", "% 16_m"),
    ("2.0f", "2.f"),
    ("2.0f", "2f"),
    ("2.0f", "2.0F"),
    ("2.0f", "0x1p1f"),
    ("2.0f", "2.0e0f"),
    ("2.0f", "1e99f"),
    ("2.0f", "2.00000000000000000000001f"),
    ("threadIdx.x", "threadIdx.w"),
    ("__launch_bounds__(32)", "__launch_bounds__(040)"),
    ("__launch_bounds__(32)", "__launch_bounds__(32.5)"),
    ("__launch_bounds__(32)", "__launch_bounds__(32, 9)"),
    (" __launch_bounds__(32)", ""),
    ("++j", "j += 01"),
    ("++j", "j += 1.5"),
]
WORDS = [
    ("    float t;", "    float t;\n    float t;"),
    ("    float t;", "    volatile float t;"),
    ("    float t;", "    static float t;"),
    ("    float t;", "    float t = 0.0f;"),
    ("    float t;", "    float t, u;"),
    ("    float t;", "    float long t;"),
    ("    float t;", "    float t[0];"),
    ("    float t;", "    float n;"),
    ("    float t;", "    ;float t;"),
    ("t = ", "u = "),
    ("t = ", "n = "),
    ("t = ", "i_outer = "),
    ("t = ", "t[0] = "),
    ("int const n", "int const n, int const n"),
    ("int const n", "int n"),
    ("x[", "x<:"),
    ("x[", "x[0]["),
    ("float const *__restrict__ x", "float const *__restrict__ x, float const **z"),
    ("float const *__restrict__ x", "float const *__restrict__ volatile x"),
    ("2.0f", "+2.0f"),
    ("2.0f", "float(2)"),
    ("2.0f", "sizeof(t)"),
    ("2.0f", "LK_NAN"),
    ("2.0f", "~2.0f"),
    ("2.0f", "5.0f % 3.0f"),
    ("2.0f", "lk_power<1>(2.0f)"),
    ("2.0f", "__half2float(__float2half(2.0f))"),
    ("+ 8]", "+ 8LL * x[0]]"),
    ("+ 8]", "+ 8 ? 1 : 2.0]"),
    ("if (", "if (n < 3) { __syncwarp(); } else if ("),
    ("if (", "if (n < 3) { } else else if ("),
    ("if (", "else if ("),
    ("float const *__restrict__ x", "__half const *__restrict__ x"),
    ("float *__restrict__ y", "lk_complex64 *__restrict__ y"),
]


@pytest.mark.parametrize(("old", "new"), [*COMMENTS, *NUMBERS, *WORDS])
def test_another_spelling(old: str, new: str) -> None:
    source = plain().cuda()
    assert old in source, source
    proof = prove_source(plain(), source.replace(old, new, 1))
    assert not proof.ok
    assert any(f.kind == "text" for f in proof.findings), str(proof)


def test_as_it_is_printed() -> None:
    assert prove(plain()).ok, str(prove(plain()))


@pytest.mark.parametrize(("never", "is_never"), [("n < 3", True), ("n < 25", False)])
def test_what_stands_behind_an_else_is_what_remains(never: str, is_never: bool) -> None:
    """It is read as C reads it: nothing is lost behind a condition that never holds."""
    source = plain().cuda()
    proof = prove_source(plain(), source.replace("if (", f"if ({never}) {{ }} else if (", 1))
    assert proof.ok == is_never
    assert any("'first' is not executed" in f.what for f in proof.findings) != is_never


@pytest.mark.parametrize("bytes_", ["17", "3", "0", "256", "16u", "020"])
def test_alignments_are_powers_of_two(bytes_: str) -> None:
    for kernel in (matmul(), dynamic()):
        source = kernel.cuda()
        assert "__align__(16)" in source
        proof = prove_source(kernel, source.replace("__align__(16)", f"__align__({bytes_})", 1))
        assert [f.kind for f in proof.findings] == ["text"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    extern __shared__ __align__(16) unsigned char shared_memory[];\n", ""),
        ("unsigned char shared_memory[];\n", "char shared_memory[];\n"),
    ],
)
def test_dynamic_shared_memory_is_declared(old: str, new: str) -> None:
    source = dynamic().cuda()
    assert old in source
    proof = prove_source(dynamic(), source.replace(old, new, 1))
    assert [f.kind for f in proof.findings] == ["text"]


def test_helpers_stand_above_once_and_in_order() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = i // x[i] + i % x[i]", dtypes={"x, y": "int32"}
    )
    source = knl.cuda()
    first, second = (source.index(f"{name}(") for name in ("lk_floordiv", "lk_mod"))
    assert first < second
    helper = source[source.rindex("\n\n", 0, second) + 2 : source.index("\n\n", second)]
    for changed in (source.replace(helper, ""), source.replace(helper, f"{helper}\n\n{helper}")):
        assert changed != source
        assert [f.kind for f in prove_source(knl, changed).findings] == ["text"]
    joined = source.replace("// The remainder", "// The remainder \\\n// The remainder", 1)
    assert [f.kind for f in prove_source(knl, joined).findings] == ["text"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("2147483647", 2**31 - 1),
        ("4294967295u", 2**32 - 1),
        ("9223372036854775807LL", 2**63 - 1),
        ("18446744073709551615ULL", 2**64 - 1),
        ("0.1", 0.1),
        ("0.1f", float(np.float32(0.1))),
        ("1e-05f", float(np.float32(1e-05))),
        ("1e+20", 1e20),
    ],
)
def test_literals(text: str, value: float) -> None:
    found = literal(text)
    assert found is not None and found.value == value


@pytest.mark.parametrize(
    "text",
    [
        "2147483648",
        "4294967296u",
        "9223372036854775808LL",
        "00",
        "1.",
        ".5",
        "1e400",
        "1e5",
        "0.10",
        "1_0",
        "1U",
        "1l",
        "1f",
        "9" * 5000,
        "0.1" + "0" * 5000,
    ],
)
def test_no_literals(text: str) -> None:
    assert literal(text) is None


# {{{ programs of several launches


@functools.cache
def in_two_launches() -> lk.Kernel:
    """A sum over all of an array, and then its use."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "total = sum(i, x[i])\n... gbarrier\ny[j] = total * x[j]",
        dtypes={"x": "float32"},
    ).tag_inames({"j": "g.0"})


@pytest.mark.parametrize("before", ["// ", "/* ", " ", "static ", "// \\\n", "int z; "])
def test_what_stands_before_a_launch_is_read(before: str) -> None:
    source = in_two_launches().cuda()
    assert source.count('\nextern "C"') == 2 and prove_source(in_two_launches(), source).ok
    for at in range(2):
        parts = source.split("\nextern")
        parts[at] += f"\n{before}extern" + parts.pop(at + 1)
        assert not prove_source(in_two_launches(), "\nextern".join(parts)).ok


# }}}


@pytest.mark.parametrize("ctype", ["__half", "__nv_bfloat16", "float", "double", "bool", "short"])
def test_loops_count_in_types_for_indices(ctype: str) -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }", "b[i] = sum(j, 1.0)", dtypes={"b": "float32"}
    )
    source = kernel.cuda()
    changed = source.replace("for (int j", f"for ({ctype} j")
    proof = prove_source(kernel, changed)
    assert changed != source and {f.kind for f in proof.findings} <= {"type", "text"}
    assert not proof.ok


def reversed_in_blocks() -> lk.Kernel:
    """Rows that blocks reverse through shared memory, of a size that nothing bounds."""
    kernel = lk.make_kernel(
        "{ [i, h, k]: 0 <= i < n and 0 <= h, k < 8 }",
        "<> s[h] = c[i, h] {id=s}\nx[i, k] = s[7 - k] {dep=s}",
        dtypes={"c, x": "int32"},
    )
    return kernel.set_temporary_address_space("s", "shared").tag_inames("i:g.0, h:l.0, k:l.0")


@pytest.mark.parametrize("ctype", ["__half", "float", "double", "bool", "unsigned", "int *"])
def test_a_size_of_another_type_is_found(ctype: str) -> None:
    kernel = reversed_in_blocks()
    changed = kernel.cuda().replace(
        "int const n", f"{ctype} n" if "*" in ctype else f"{ctype} const n"
    )
    assert {"type", "call"} & {f.kind for f in prove_source(kernel, changed).findings}


@pytest.mark.parametrize("old", ["m", "d", "x"])
@pytest.mark.parametrize("name", ["std", "q", "k_inner", "n", "threadIdx", "while", "m_"])
def test_a_parameter_of_another_name_is_found(old: str, name: str) -> None:
    kernel = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= k < m and 0 <= j <= k }",
        "x[j, k] = sum(i, d[j + i, i]*d[j, k]) {if=u[j] > 2}\nx[j, m] = x[j, k]",
        dtypes={"d, u, x": "int64"},
    ).split_iname("k", 1, inner_tag="l.0")
    changed = re.sub(rf"\b{old}\b", name, kernel.cuda())
    proof = prove_source(kernel, changed)
    assert {f.kind for f in proof.findings} & {"call", "text"}, str(proof)


def test_an_array_may_have_an_extent_below_zero() -> None:
    """A call takes an array without elements for it, and runs the loops over others."""
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < m and 0 <= j < n - 2 }",
        "x[i] = b[i]\ny[j] = c[j]",
        [lk.GlobalArg("c", shape="n - 2"), ...],
        dtypes={"b, c, x, y": "float32"},
    )
    source = kernel.cuda()
    changed = source.replace("x[i] = b[i]", "if (n >= 2) x[i] = b[i]")
    assert prove_source(kernel, source).ok and changed != source
    assert "instances" in {f.kind for f in prove_source(kernel, changed).findings}


def test_a_parameter_that_is_not_there_is_found() -> None:
    kernel = reversed_in_blocks()
    changed = kernel.cuda().replace("int const n, ", "")
    assert "call" in {f.kind for f in prove_source(kernel, changed).findings}


def test_a_set_whose_smallest_point_isl_misjudges_is_no_error() -> None:
    """isl finds no smallest point of a set of many quotients that has points."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    kernel = importlib.import_module("stencil_25").make()["tiled"]
    source = kernel.cuda()
    changed = source.replace(
        "= 256 * u_round + 32 * u_thread_1 +", "= 256 * u_round + 32 & u_thread_1 +"
    )
    assert changed != source
    assert not prove_source(kernel, changed).ok
