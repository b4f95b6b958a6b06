"""The host executor runs CUDA text as a GPU would."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from host_kernels import (
    BFLOAT16,
    MATMUL_SOURCE,
    REVERSE_SOURCE,
    VECTOR_ADD,
    array,
    matmul,
    matmul_arguments,
    program,
    reverse,
    value,
)
from seams import compile_host

from loopkit import CompileError, ResourceError

pytestmark = pytest.mark.host
ORDERS = ("ascending", "descending", "random")


@pytest.mark.parametrize("order", ORDERS)
def test_vector_add(order: Any) -> None:
    a = np.arange(1000, dtype=np.float32)
    c = np.zeros_like(a)
    module = compile_host(VECTOR_ADD)
    assert module.plain
    module.launch([1000, a, 2 * a, c], (16, 1, 1), order=order)
    np.testing.assert_array_equal(c, 3 * a)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("workers", [1, 3])
def test_tiled_matmul(order: Any, workers: int) -> None:
    args, grid = matmul_arguments(50, 37, 41)
    module = compile_host(matmul())
    assert not module.plain
    module.launch(args, grid, order=order, workers=workers, seed=3)
    np.testing.assert_allclose(args[5], args[3] @ args[4], rtol=1e-5)


@pytest.mark.parametrize("comment", ["written above", "read above"])
def test_a_missing_barrier_shows(comment: str) -> None:
    source = MATMUL_SOURCE.replace(f"__syncthreads(); // {comment}", "")
    assert source != MATMUL_SOURCE
    module = compile_host(matmul(source))
    wrong = 0
    for order, seed in (("descending", 0), *(("random", seed) for seed in range(4))):
        args, grid = matmul_arguments(40, 40, 40)
        module.launch(args, grid, order=order, seed=seed)  # type: ignore[arg-type]
        wrong += not np.allclose(args[5], args[3] @ args[4], rtol=1e-5)
    assert wrong == 5


def test_shared_memory_is_poisoned_before_every_block() -> None:
    source = REVERSE_SOURCE.replace("  __syncthreads();\n", "")
    a = np.ones(640, dtype=np.float32)
    for order in ("ascending", "descending", "random"):
        c = np.zeros_like(a)
        compile_host(reverse(source)).launch([a, c], (10, 1, 1), order=order)  # type: ignore[arg-type]
        assert np.isnan(c.reshape(10, 64)).any(axis=1).all(), order


def test_random_orders_differ_and_repeat() -> None:
    source = """\
extern "C" __global__ void kernel(int *turn, int *c)
{ c[64 * blockIdx.x + threadIdx.x] = atomicAdd(turn, 1); __syncthreads(); }
"""
    module = compile_host(
        program(source, array("turn", "int32", written=True), array("c", "int32", written=True))
    )

    def run(seed: int) -> list[int]:
        turn, c = np.zeros(1, np.int32), np.zeros(256, np.int32)
        module.launch([turn, c], (4, 1, 1), order="random", seed=seed)
        return list(c)

    assert sorted(run(1)) == list(range(256))
    assert run(1) == run(1) != run(2)
    assert any(c // 64 != i // 64 for i, c in enumerate(run(1)))  # blocks too


def test_every_block_runs_once_in_random_order() -> None:
    source = """\
extern "C" __global__ void kernel(int *count)
{
  if (threadIdx.x == 0)
    atomicAdd(&count[blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)], 1);
}
"""
    module = compile_host(program(source, array("count", "int32", written=True)))
    for grid in ((1, 1, 1), (5, 1, 1), (7, 3, 2), (64, 4, 1)):
        count = np.zeros(grid, np.int32)
        module.launch([count], grid, order="random", seed=11)
        assert (count == 1).all()


def test_warp_operations() -> None:
    source = """\
extern "C" __global__ void kernel(float const *a, float *sums, int *more)
{
  int const lane = threadIdx.x % 32;
  float x = a[64 * blockIdx.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_down_sync(0xffffffffu, x, step);
  x = __shfl_sync(0xffffffffu, x, 0);
  __syncthreads();
  sums[64 * blockIdx.x + threadIdx.x] = x;
  if (blockIdx.x == 0) {
    int *const out = more + 8 * threadIdx.x;
    out[0] = __shfl_xor_sync(0xffffffffu, lane, 3);
    out[1] = __shfl_up_sync(0xffffffffu, lane, 2, 8);
    out[2] = (int)__ballot_sync(0xffffffffu, lane % 3 == 0);
    out[3] = 10 * __any_sync(0xffffffffu, lane == 5) + __all_sync(0xffffffffu, lane < 31);
    out[4] = __reduce_add_sync(0xffffffffu, lane);
    out[5] = __reduce_min_sync(0xffffffffu, -lane);
    out[6] = (int)__match_any_sync(0xffffffffu, lane / 4);
    if (lane < 16) {
      __syncwarp(0xffffu);
      out[7] = (int)__shfl_sync(0xffffu, (double)lane, 7);
    } else {
      __syncwarp(0xffff0000u);
      out[7] = 0;
    }
  }
}
"""
    module = compile_host(
        program(
            source, array("a"), array("sums", written=True), array("more", "int32", written=True)
        )
    )
    a = np.arange(192, dtype=np.float32)
    lanes = np.arange(64) % 32
    for order in ("ascending", "descending", "random"):
        sums, more = np.zeros_like(a), np.zeros((64, 8), np.int32)
        module.launch([a, sums, more], (3, 1, 1), order=order)  # type: ignore[arg-type]
        np.testing.assert_array_equal(sums, np.repeat(a.reshape(-1, 32).sum(axis=1), 32))
        np.testing.assert_array_equal(more[:, 0], lanes ^ 3)
        np.testing.assert_array_equal(more[:, 1], np.where(lanes % 8 >= 2, lanes - 2, lanes))
        every_third = sum(1 << i for i in range(0, 32, 3))
        assert (more[:, 2].view(np.uint32) == every_third).all()
        assert (more[:, 3] == 10).all()
        assert (more[:, 4] == 496).all()
        assert (more[:, 5] == -31).all()
        assert (more[:, 6].view(np.uint32) == 15 << (lanes // 4 * 4)).all()
        np.testing.assert_array_equal(more[:, 7], np.where(lanes < 16, 7, 0))


def test_a_partial_warp_and_lanes_that_returned() -> None:
    source = """\
extern "C" __global__ void kernel(int *c)
{
  if (threadIdx.x % 4 == 3) return;
  c[threadIdx.x] = __reduce_add_sync(0xffffffffu, 1);
}
"""
    module = compile_host(program(source, array("c", "int32", written=True), block=(40, 1, 1)))
    for order in ("ascending", "descending", "random"):
        c = np.zeros(40, np.int32)
        module.launch([c], (1, 1, 1), order=order)  # type: ignore[arg-type]
        expected = np.where(np.arange(40) % 4 == 3, 0, np.where(np.arange(40) < 32, 24, 6))
        np.testing.assert_array_equal(c, expected)


def test_barriers_that_vote() -> None:
    source = """\
extern "C" __global__ void kernel(int *c)
{
  int const count = __syncthreads_count(threadIdx.x < 10);
  int const all = __syncthreads_and(threadIdx.x < 10);
  int const any = __syncthreads_or(threadIdx.x == 63);
  c[threadIdx.x] = 100 * count + 10 * all + any;
}
"""
    c = np.zeros(64, np.int32)
    compile_host(program(source, array("c", "int32", written=True))).launch([c], (1, 1, 1))
    assert (c == 1001).all()


@pytest.mark.parametrize("workers", [1, 4])
def test_atomics(workers: int) -> None:
    source = """\
extern "C" __global__ void kernel(int *i, unsigned long long *u, float *f, double *d)
{
  int const t = 64 * blockIdx.x + threadIdx.x;
  atomicAdd(&i[0], 1);
  atomicMin(&i[1], -t);
  atomicMax(&i[2], t);
  atomicOr(&i[3], 1 << t % 31);
  atomicXor(&i[4], t);
  atomicExch(&i[5], 5);
  atomicCAS(&i[6], 0, 6);
  atomicAdd(u, 1ull << 33);
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.5);
}
"""
    kinds = ("int32", "uint64", "float32", "float64")
    params = [array(n, k, written=True) for n, k in zip("iufd", kinds, strict=True)]
    i, u, f, d = (np.zeros(8, k) for k in kinds)
    compile_host(program(source, *params)).launch([i, u, f, d], (100, 1, 1), workers=workers)
    xor = int(np.bitwise_xor.reduce(np.arange(6400)))
    assert list(i[:7]) == [6400, -6399, 6399, 0x7FFFFFFF, xor, 5, 6]
    assert (u[0], f[0], d[0]) == (6400 << 33, 6400.0, 3200.0)


def test_dynamic_shared_memory() -> None:
    source = """\
extern "C" __global__ void kernel(float const *a, float *c)
{
  extern __shared__ __align__(16) unsigned char smem[]; // as much as the launch asks for
  float *const a_s = reinterpret_cast<float *>(smem);
  float4 *const wide = reinterpret_cast<float4 *>(smem + 256);
  a_s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 8192)
    wide[threadIdx.x] = make_float4(a_s[63 - threadIdx.x], 1.0f, 2.0f, 3.0f);
  c[threadIdx.x] = wide[threadIdx.x].x + wide[threadIdx.x].w;
}
"""
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    made = program(source, array("a"), array("c", written=True), dynamic_shared=160 * 1024)
    compile_host(made).launch([a, c], (1, 1, 1))
    np.testing.assert_array_equal(c, a[::-1] + 3)


def test_scalars_of_every_type() -> None:
    kinds = {
        "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
        "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned",
        "uint64": "unsigned long long", "float32": "float", "float64": "double",
        "bool": "bool",
    }  # fmt: skip
    names = [f"x{i}" for i in range(len(kinds))]
    declared = ", ".join(f"{c} const {x}" for c, x in zip(kinds.values(), names, strict=True))
    stores = " ".join(f"c[{i}] = (double)({x});" for i, x in enumerate(names))
    source = f"""\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct complex64 {{ float re, im; }};
struct complex128 {{ double re, im; }};
extern "C" __global__ void kernel({declared}, __half h, __nv_bfloat16 b, complex64 z,
                                  complex128 const w, double *c)
{{ {stores} c[20] = (float)h; c[21] = __bfloat162float(b); c[22] = z.re; c[23] = z.im;
   c[24] = w.re; c[25] = w.im; }}
"""
    params = [value(x, k) for x, k in zip(names, kinds, strict=True)]
    more = [value("h", "float16"), value("b", BFLOAT16), value("z", "complex64")]
    made = program(
        source, *params, *more, value("w", "complex128"), array("c", "float64", written=True),
        block=(1, 1, 1),
    )  # fmt: skip
    c = np.zeros(26)
    numbers = [-5, np.int16(-300), -70000, -(2**40), 200, 60000, 2**32 - 1, 2**60, 0.5, 0.1, True]
    compile_host(made).launch([*numbers, 1.5, BFLOAT16.type(3), 1 + 2j, 3 - 4j, c], (1, 1, 1))
    assert list(c[:11]) == [float(x) for x in numbers]
    assert list(c[20:]) == [1.5, 3.0, 1.0, 2.0, 3.0, -4.0]


def test_wrong_grids_are_named() -> None:
    module, a = compile_host(VECTOR_ADD), np.zeros(64, np.float32)
    with pytest.raises(ResourceError, match="needs 70000 blocks along axis 1"):
        module.launch([64, a, a, a], (1, 70000, 1))
    module.launch([64, a, a, a], (0, 1, 1))


def test_an_array_that_begins_askew_is_moved() -> None:
    made = program(
        'extern "C" __global__ void kernel(float *c) { c[threadIdx.x] = 1 + threadIdx.x % 4; }',
        array("c", written=True),
        block=(16, 1, 1),
    )
    c = np.zeros(65, np.uint8)[1:].view(np.float32)
    assert c.ctypes.data % 4
    compile_host(made).launch([c], (1, 1, 1))
    np.testing.assert_array_equal(c, np.tile([1, 2, 3, 4], 4))


def test_threads_launch_at_once() -> None:
    module = compile_host(matmul())
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                args, grid = matmul_arguments(64, 48, 33)
                module.launch(args, grid, order="random", workers=2)
                np.testing.assert_allclose(args[5], args[3] @ args[4], rtol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_rejected_source_comes_with_its_log() -> None:
    made = program('extern "C" __global__ void kernel(float *c)\n{ c[0] = nothing; }', array("c"))
    with pytest.raises(CompileError) as caught:
        compile_host(made)
    assert "kernel.cu:2" in caught.value.log and "nothing" in caught.value.log
    assert caught.value.source == made.source


def test_a_signature_that_is_not_the_programs_is_refused() -> None:
    source = 'extern "C" __global__ void kernel(long long n, float *c) {}'
    with pytest.raises(CompileError, match="not those that its Program declares"):
        compile_host(program(source, value("n"), array("c")))


def test_stores_of_one_cell_keep_their_order() -> None:
    """An outer loop of a store that overwrites itself is not made a vector."""
    text = """
    extern "C" __global__ void kernel(int const *__restrict__ c, int *__restrict__ x)
    {
        int s[19];
        for (int b = 0; b < 4; ++b)
            for (int a = 0; a < 16; ++a)
                s[a + b] = c[a] + b;
        for (int a = 0; a < 19; ++a)
            x[a] = s[a];
    }
    """
    c, x = np.arange(16, dtype=np.int32) * 100, np.zeros(19, np.int32)
    made = program(text, array("c", "int32"), array("x", "int32", written=True), block=(1, 1, 1))
    compile_host(made).launch([c, x], (1, 1, 1))
    assert x.tolist() == [0, 1, 2, *range(3, 1600, 100)]
