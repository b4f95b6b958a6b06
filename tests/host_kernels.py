"""Hand-written CUDA text, and the programs made of it, for the host executor's tests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from seams import ArrayParam, Program, ValueParam

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def value(name: str, dtype: Any = "int32") -> ValueParam:
    return ValueParam(name, np.dtype(dtype))


def array(name: str, dtype: Any = "float32", *, written: bool = False, **more: Any) -> ArrayParam:
    return ArrayParam(name, np.dtype(dtype), (), (), is_read=True, is_written=written, **more)


def program(
    source: str,
    *params: ValueParam | ArrayParam,
    block: tuple[int, int, int] = (64, 1, 1),
    name: str = "kernel",
    **more: Any,
) -> Program:
    return Program(name, source, params, (1, 1, 1), block, **more)


VECTOR_ADD = program(
    """\
extern "C" __global__ void __launch_bounds__(64, 1)
add(int const n, float const *__restrict__ a, float const *__restrict__ b, float *__restrict__ c)
{
  int const i = 64 * blockIdx.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}
""",
    value("n"),
    array("a"),
    array("b"),
    array("c", written=True),
    name="add",
)

MATMUL_SOURCE = """\
extern "C" __global__ void __launch_bounds__(256, 1)
matmul(int const n, int const m, int const l, float const *__restrict__ a,
       float const *__restrict__ b, float *__restrict__ c)
{
  __shared__ __align__(16) float a_s[16][17];
  __shared__ __align__(16) float b_s[16][17];
  int const i = 16 * blockIdx.y + threadIdx.y;
  int const j = 16 * blockIdx.x + threadIdx.x;
  float acc = 0.0f;
  for (int k_outer = 0; k_outer < (l + 15) / 16; ++k_outer)
  {
    if (i < n && 16 * k_outer + (int)threadIdx.x < l)
      a_s[threadIdx.y][threadIdx.x] = a[i * l + 16 * k_outer + threadIdx.x];
    if (16 * k_outer + (int)threadIdx.y < l && j < m)
      b_s[threadIdx.y][threadIdx.x] = b[(16 * k_outer + threadIdx.y) * m + j];
    __syncthreads(); // written above
    if (i < n && j < m)
    {
      #pragma unroll 4
      for (int k = 0; k < min(16, l - 16 * k_outer); ++k)
        acc = acc + a_s[threadIdx.y][k] * b_s[k][threadIdx.x];
    }
    __syncthreads(); // read above
  }
  if (i < n && j < m)
    c[i * m + j] = acc;
}
"""


def matmul(source: str = MATMUL_SOURCE) -> Program:
    sizes = (value("n"), value("m"), value("l"))
    arrays = (array("a"), array("b"), array("c", written=True))
    return program(source, *sizes, *arrays, block=(16, 16, 1), name="matmul")


def matmul_arguments(n: int, m: int, l: int) -> tuple[list[Any], tuple[int, int, int]]:
    random = np.random.default_rng(7)
    a = random.random((n, l), dtype=np.float32)
    b = random.random((l, m), dtype=np.float32)
    c = np.full((n, m), np.nan, dtype=np.float32)
    return [n, m, l, a, b, c], (-(-m // 16), -(-n // 16), 1)


# Each thread writes its own cell and reads its mirror image's.
REVERSE_SOURCE = """\
extern "C" __global__ void reverse(float const *a, float *c)
{
  __shared__ float a_s[64];
  a_s[threadIdx.x] = a[64 * blockIdx.x + threadIdx.x];
  __syncthreads();
  c[64 * blockIdx.x + threadIdx.x] = a_s[63 - threadIdx.x];
}
"""


def reverse(source: str = REVERSE_SOURCE) -> Program:
    return program(source, array("a"), array("c", written=True), name="reverse")
