"""Programs written by hand: what lowering would hand to the executors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pymbolic.primitives as p
from seams import ArrayParam, Check, LoadedProgram, Program, ValueParam

F32 = np.dtype("float32")
I32 = np.dtype("int32")
n, m, l = (p.Variable(x) for x in "nml")


def ceil_div(a: Any, b: int) -> Any:
    return p.FloorDiv(a + (b - 1), b)


def loaded(program: Program, device: Any, function: int) -> LoadedProgram:
    """As if it had been compiled, and were known to the driver by a number."""
    shared = program.static_shared + program.dynamic_shared
    compiled: Any = SimpleNamespace(resources=SimpleNamespace(shared=shared))
    parts = program.parts if program.launches else ()
    functions = {
        part.name: loaded(part, device, 100 * function + number)
        for number, part in enumerate(parts)
    }
    return LoadedProgram(program, compiled, device, function, functions)


def size(name: str, dtype: Any = I32) -> ValueParam:
    return ValueParam(name, np.dtype(dtype))


def array(name: str, *shape: Any, use: str = "r", dtype: Any = F32, **more: Any) -> ArrayParam:
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step = step * extent
    strides = list(more.pop("strides", strides))
    return ArrayParam(
        name, np.dtype(dtype), tuple(shape), tuple(strides), "r" in use, "w" in use, **more
    )


MATMUL_SOURCE = """\
extern "C" __global__ void __launch_bounds__(256)
matmul(int n, int m, int l, const float *__restrict__ a, const float *__restrict__ b,
       float *__restrict__ c)
{
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i < n && j < m) {
        float acc = 0.0f;
        for (int k = 0; k < l; ++k)
            acc += a[i * l + k] * b[k * m + j];
        c[i * m + j] = acc;
    }
}
"""

MATMUL = Program(
    "matmul",
    MATMUL_SOURCE,
    (
        *(size(x) for x in "nml"),
        array("a", n, l),
        array("b", l, m),
        array("c", n, m, use="w"),
    ),
    grid=(ceil_div(m, 16), ceil_div(n, 16), 1),
    block=(16, 16, 1),
    checks=(Check(p.Comparison(l, ">=", 1), "l >= 1"),),
    arguments=("a", "b", "c", "n", "m", "l"),
)

AXPY_SOURCE = """\
extern "C" __global__ void __launch_bounds__(256)
axpy(int n, float alpha, const float *__restrict__ x, float *__restrict__ y)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = alpha * x[i] + y[i];
}
"""

_AXPY_STRIDED = """\
extern "C" __global__ void __launch_bounds__(256)
axpy(int n, float alpha, const float *__restrict__ x, float *__restrict__ y{parameters})
{{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[(long long) i * {y}] = alpha * x[(long long) i * {x}] + y[(long long) i * {y}];
}}
"""


def axpy(strided: frozenset[str] = frozenset()) -> Program:
    """``y[i] = alpha*x[i] + y[i]`` and its variants for strided arrays."""
    params: list[ValueParam | ArrayParam] = [size("n"), ValueParam("alpha", F32)]
    strides = {}
    for name in "xy":
        stride: Any = p.Variable(f"{name}_s0") if name in strided else 1
        strides[name] = stride
        use = "r" if name == "x" else "rw"
        params.append(array(name, n, use=use, strides=(stride,)))
    for name in sorted(strided):
        params.append(ValueParam(f"{name}_s0", np.dtype("int64"), "stride", name, 0))
    source = AXPY_SOURCE
    if strided:
        text = "".join(f", long long {name}_s0" for name in sorted(strided))
        source = _AXPY_STRIDED.format(parameters=text, x=strides["x"], y=strides["y"])
    return Program(
        "axpy",
        source,
        tuple(params),
        grid=(ceil_div(n, 256), 1, 1),
        block=(256, 1, 1),
        arguments=("x", "y", "alpha", "n"),
    )


SUMDIFF_SOURCE = """\
extern "C" __global__ void __launch_bounds__(64)
sumdiff(int n, const float *__restrict__ a, const float *__restrict__ b,
        float *__restrict__ s, float *__restrict__ d, float *__restrict__ t)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        t[i] = a[i] + b[i];
        s[i] = t[i];
        d[i] = a[i] - b[i];
    }
}
"""

#: Two outputs and a scratch array.
SUMDIFF = Program(
    "sumdiff",
    SUMDIFF_SOURCE,
    (
        size("n"),
        array("a", n),
        array("b", n),
        array("s", n, use="w"),
        array("d", n, use="w"),
        array("t", n, use="rw", role="scratch"),
    ),
    grid=(ceil_div(n, 64), 1, 1),
    block=(64, 1, 1),
    arguments=("a", "b", "s", "d", "n"),
)

BIG_SHARED = Program(
    "reverse",
    """\
extern "C" __global__ void __launch_bounds__(256)
reverse(const float *__restrict__ a, float *__restrict__ c)
{
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < 20000; i += 256)
        tile[i] = a[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 20000; i += 256)
        c[i] = tile[19999 - i];
}
""",
    (array("a", 20000), array("c", 20000, use="w")),
    grid=(1, 1, 1),
    block=(256, 1, 1),
    dynamic_shared=80000,
    arguments=("a", "c"),
)
