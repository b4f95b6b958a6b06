"""CUDA's types and functions mean on the CPU what they mean on a GPU."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from host_kernels import BFLOAT16, array, program
from seams import compile_host

pytestmark = pytest.mark.host

SMALL = {
    "float16": ("__half", "half", np.dtype(np.float16)),
    "bfloat16": ("__nv_bfloat16", "bfloat16", BFLOAT16),
}
INCLUDES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"


def run(source: str, *arrays: Any, count: int) -> None:
    """One thread per element, through ``int const i``."""
    params = []
    for i, (name, a) in enumerate(arrays):
        params.append(array(name, a.dtype, written=i == len(arrays) - 1))
    made = program(source, *params, block=(128, 1, 1))
    compile_host(made).launch([a for _, a in arrays], (-(-count // 128), 1, 1))


def kernel(signature: str, body: str, count: int) -> str:
    return (
        f'{INCLUDES}extern "C" __global__ void kernel({signature})\n{{\n'
        f"  int const i = 128 * blockIdx.x + threadIdx.x;\n  if (i < {count})\n"
        f"  {{\n{body}\n  }}\n}}\n"
    )


def same_bits(a: Any, b: Any) -> None:
    nan = np.isnan(a.astype("f4"))
    np.testing.assert_array_equal(nan, np.isnan(b.astype("f4")))
    np.testing.assert_array_equal(a.view("u2")[~nan], b.view("u2")[~nan])


@pytest.mark.parametrize("kind", SMALL)
def test_every_small_float_widens_exactly(kind: str) -> None:
    c_type, name, dtype = SMALL[kind]
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    y = np.zeros(65536, np.float32)
    run(
        kernel(f"{c_type} const *x, float *y", f"    y[i] = __{name}2float(x[i]);", 65536),
        ("x", x),
        ("y", y),
        count=65536,
    )
    np.testing.assert_array_equal(y, x.astype(np.float32))


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("wide", ["float", "double"])
def test_narrowing_rounds_to_nearest_even(kind: str, wide: str) -> None:
    c_type, name, dtype = SMALL[kind]
    random = np.random.default_rng(1)
    exact = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float32)
    halfway = (exact.view(np.uint32) + (0x1000 if kind == "float16" else 0x8000)).view(np.float32)
    anything = random.integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32)
    scaled = (random.standard_normal(40000) * 10.0 ** random.uniform(-9, 6, 40000)).astype("f4")
    x = np.concatenate([exact, halfway, anything, scaled])
    with np.errstate(invalid="ignore"):
        x = x.astype(np.float32 if wide == "float" else np.float64)
    y = np.zeros(x.size, dtype)
    body = f"    y[i] = __{wide}2{name}(x[i]);"
    run(kernel(f"{wide} const *x, {c_type} *y", body, x.size), ("x", x), ("y", y), count=x.size)
    with np.errstate(all="ignore"):
        same_bits(y, x.astype(dtype))


@pytest.mark.parametrize("kind", SMALL)
def test_small_arithmetic(kind: str) -> None:
    c_type, name, dtype = SMALL[kind]
    random = np.random.default_rng(2)
    count = 20000
    a, b = (random.integers(0, 65536, count, dtype=np.uint16).view(dtype) for _ in range(2))
    y = np.zeros((8, count), dtype)
    body = f"""\
    {c_type} const p = a[i], q = b[i];
    y[i] = p + q;
    y[{count} + i] = __hsub(p, q);
    y[2 * {count} + i] = p * q;
    y[3 * {count} + i] = p / q;
    y[4 * {count} + i] = -p;
    y[5 * {count} + i] = p < q ? p : q;
    {c_type} sum = p;
    sum += q;
    y[6 * {count} + i] = sum;
    y[7 * {count} + i] = __float2{name}_rz(1.0f + 0x1p-8f + 0x1p-11f + 0x1p-12f);"""
    signature = f"{c_type} const *a, {c_type} const *b, {c_type} *y"
    run(kernel(signature, body, count), ("a", a), ("b", b), ("y", y), count=count)
    with np.errstate(all="ignore"):
        smaller = np.where(a.astype("f4") < b.astype("f4"), a, b)
        for row, expected in enumerate((a + b, a - b, a * b, a / b, -a, smaller, a + b)):
            same_bits(y[row], expected.astype(dtype))
    chopped = 1 + 2**-8 if kind == "float16" else 1.0
    assert (y[7].astype("f4") == chopped).all()


def test_mathematical_functions() -> None:
    # loopkit's users write them both ways: with the suffix, and overloaded.
    cases = {
        "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos,
        "tan": np.tan, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "exp2": np.exp2,
        "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "expm1": np.expm1,
        "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "fabs": np.abs, "rint": np.rint,
        "atan": np.arctan, "asinh": np.arcsinh, "sinpi": lambda x: np.sin(np.pi * x),
        "cospi": lambda x: np.cos(np.pi * x), "exp10": lambda x: 10**x,
        "erf": np.vectorize(math.erf), "lgamma": np.vectorize(math.lgamma),
        "tgamma": np.vectorize(math.gamma),
    }  # fmt: skip
    x = np.linspace(0.1, 4.9, 128)
    for real, suffix, tolerance in (("float", "f", 3e-6), ("double", "", 1e-14)):
        body = "\n".join(
            f"    y[{2 * k} * 128 + i] = {f}{suffix}(x[i]); y[{2 * k + 1} * 128 + i] = {f}(x[i]);"
            for k, f in enumerate(cases)
        )
        dtype = np.float32 if real == "float" else np.float64
        y = np.zeros((2 * len(cases), 128), dtype)
        arrays = ("x", x.astype(dtype)), ("y", y)
        run(kernel(f"{real} const *x, {real} *y", body, 128), *arrays, count=128)
        for k, (name, function) in enumerate(cases.items()):
            expected = function(arrays[0][1].astype(np.float64))
            for got in (y[2 * k], y[2 * k + 1]):
                np.testing.assert_allclose(
                    got, expected, rtol=tolerance, atol=tolerance, err_msg=name
                )


def test_two_argument_functions_and_extremes() -> None:
    body = """\
    y[i] = powf(p[i], 1.5f) + pow(p[i], 2);
    y[128 + i] = fmaf(p[i], 2.0f, 1.0f) + fma(p[i], 1.0f, 0.0f);
    y[256 + i] = fminf(p[i], 2.0f) + max(p[i], 3.0f) + min((int)i, 5) + max(7u, threadIdx.x);
    y[384 + i] = atan2f(p[i], 2.0f) + fmodf(p[i], 1.0f) + copysignf(p[i], -1.0f) + hypotf(p[i], 1);
    y[512 + i] = fmaxf(__int_as_float(0x7fc00000), p[i]) + min(__int_as_float(0x7fc00000), 1.0f);
    y[640 + i] = isnan(p[i] - p[i]) + 2 * isinf(1.0f / (p[i] - p[i])) + 4 * isfinite(p[i]);"""
    p = np.linspace(0.5, 4.5, 128).astype(np.float32)
    y = np.zeros((6, 128), np.float32)
    run(kernel("float const *p, float *y", body, 128), ("p", p), ("y", y), count=128)
    i = np.arange(128)
    q = p.astype("f8")
    expected = (
        q**1.5 + q**2,
        3 * q + 1,
        np.minimum(q, 2) + np.maximum(q, 3) + np.minimum(i, 5) + np.maximum(7, i),
        np.arctan2(q, 2) + np.fmod(q, 1) - q + np.hypot(q, 1),
        q + 1,
        np.full(128, 6.0),
    )
    np.testing.assert_allclose(y, np.array(expected), rtol=1e-6)


def test_bits_and_conversions() -> None:
    body = """\
    y[0] = __popc(0xf0f0u) + __popcll(1ll << 40);
    y[1] = __clz(1) + __clzll(1) + __clz(0);
    y[2] = __ffs(8) + __ffsll(0);
    y[3] = (long long)__brev(1u);
    y[4] = __umulhi(0xffffffffu, 2u) + __mulhi(-1, 1);
    y[5] = __float_as_int(1.0f);
    y[6] = __float2int_rn(2.5f) + 10 * __float2int_rz(-2.5f) + 100 * __float2int_ru(2.1f);
    y[7] = __float2int_rz(1e20f);
    y[8] = __double2ll_rn(-3.5);
    y[9] = __float2uint_rz(-1.0f) + __float2int_rn(__int_as_float(0x7fc00000));
    y[10] = __byte_perm(0x33221100, 0x77665544, 0x7250);
    y[11] = __funnelshift_l(0x80000000u, 1u, 1);
    y[12] = __double_as_longlong(2.0);
    y[13] = make_int4(1, 2, 3, 4).w + sizeof(float4) + alignof(double2) + sizeof(uchar4);
    y[14] = __dp4a(0x01020304, 0x01010101, 5) + __sad(3, -4, 1u);"""
    y = np.zeros(15, np.int64)
    run(kernel("long long *y", body, 1), ("y", y), count=1)
    assert list(y) == [
        9, 31 + 63 + 32, 4, 0x80000000, 0, 0x3F800000, 2 - 20 + 300, 2**31 - 1, -4, 0,
        0x77225500, 3, 0x4000000000000000, 4 + 16 + 16 + 4, 15 + 8,
    ]  # fmt: skip


def test_integers_wrap_as_on_a_gpu() -> None:
    body = "    y[0] = x[0] + 1; y[1] = x[0] * 3; y[2] = x[0] + 1 > x[0];"
    x, y = np.array([2**31 - 1], np.int32), np.zeros(3, np.int32)
    run(kernel("int const *x, int *y", body, 1), ("x", x), ("y", y), count=1)
    assert list(y) == [-(2**31), 2**31 - 3, 0]


def test_pairs_shuffles_and_atomics_of_small_floats() -> None:
    source = f"""\
{INCLUDES}
__device__ __forceinline__ static float widen(__nv_bfloat162 p)
{{ return __low2float(p) + 10.0f * __high2float(p); }}
extern "C" __global__ void kernel(__half *h, __nv_bfloat16 *b, float *f)
{{
  __half2 const p = __floats2half2_rn(threadIdx.x, 2.0f);
  __half2 const q = __hfma2(p, p, __half2half2(__float2half(1.0f)));
  f[threadIdx.x] = __half22float2(q).x + __half22float2(q + q).y;
  f[32 + threadIdx.x] = widen(__halves2bfloat162(__float2bfloat16(3.0f), 4.0f));
  f[64 + threadIdx.x] = __shfl_sync(0xffffffffu, __low2half(p), 5);
  atomicAdd(h, __float2half(0.5f));
  atomicAdd(b, __float2bfloat16(1.0f));
}}
"""
    h, b, f = np.zeros(1, np.float16), np.zeros(1, ml_dtypes.bfloat16), np.zeros((3, 32), "f4")
    params = array("h", "float16", written=True), array("b", BFLOAT16, written=True)
    made = program(source, *params, array("f", written=True), block=(32, 1, 1))
    compile_host(made).launch([h, b, f], (4, 1, 1), workers=2)
    np.testing.assert_array_equal(f[0], np.arange(32) ** 2 + 1 + 10)
    assert (f[1] == 43).all() and (f[2] == 5).all()
    assert (h[0], float(b[0])) == (64.0, 128.0)
