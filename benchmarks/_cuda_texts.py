"""CUDA C written by hand, for `gpu.py`: a limit of the hardware, and a rival. Compiled by CuPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import torch

READ = r"""
extern "C" __global__ void __launch_bounds__(512) read(float4 const *a, float *out, long long n)
{
    float sum = 0.0f;
    long long const step = 2048LL * gridDim.x;
    for (long long i = 2048LL * blockIdx.x + threadIdx.x; i + 1536 < n; i += step) {
        float4 v[4];
        #pragma unroll
        for (int u = 0; u < 4; ++u) v[u] = a[i + 512 * u];
        #pragma unroll
        for (int u = 0; u < 4; ++u) sum += (v[u].x + v[u].y) + (v[u].z + v[u].w);
    }
    if (sum == 1234.5f) out[0] = sum;
}
"""


def reader(a: Any) -> Callable[[], Any]:
    """A kernel that only reads ``a``."""
    kernel = cupy.RawKernel(READ, "read")
    out = torch.empty(1, device="cuda")
    arguments = (a.data_ptr(), out.data_ptr(), cupy.int64(a.numel() // 4))
    blocks = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    # Both libraries launch on the default stream.
    return lambda: kernel((blocks,), (512,), arguments)


N_BODY = r"""
extern "C" __global__ void __launch_bounds__(256)
n_body(float4 const *bodies, float *acc, int n, float soft)
{
    __shared__ float4 tile[256];
    int const i = 256 * blockIdx.x + threadIdx.x;
    float4 const me = bodies[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        #pragma unroll 32
        for (int j = 0; j < 256; ++j) {
            float4 const other = tile[j];
            float const dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float const inverse = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, soft))));
            float const weight = other.w * inverse * inverse * inverse;
            x = fmaf(weight, dx, x);
            y = fmaf(weight, dy, y);
            z = fmaf(weight, dz, z);
        }
        __syncthreads();
    }
    acc[3 * i] = x;
    acc[3 * i + 1] = y;
    acc[3 * i + 2] = z;
}
"""


def n_body(p: Any, acc: Any, soft: float) -> Callable[[], Any]:
    """All pairs of a number of bodies that 256 divides, one body a thread."""
    kernel = cupy.RawKernel(N_BODY, "n_body")
    n = p.shape[0]
    assert n % 256 == 0
    arguments = (p.data_ptr(), acc.data_ptr(), cupy.int32(n), cupy.float32(soft))
    return lambda: kernel((n // 256,), (256,), arguments)
