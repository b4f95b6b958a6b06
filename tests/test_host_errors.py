"""What goes wrong in a kernel is reported: never a hang, never a dead process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_kernels import VECTOR_ADD, array, matmul, matmul_arguments, program, value
from seams import Program, SourceLine, compile_host

from loopkit import LaunchError, OutOfBoundsError

pytestmark = pytest.mark.host
ORDERS = ("ascending", "descending", "random")


def kernel(body: str, **more: Any) -> Program:
    source = f'extern "C" __global__ void kernel(int *c)\n{{\n{body}}}\n'
    return program(source, array("c", "int32", written=True), **more)


def failure(made: Program, order: Any = "ascending", grid: Any = (2, 1, 1), **more: Any) -> str:
    module = compile_host(made)
    with pytest.raises(LaunchError) as caught:
        module.launch([np.zeros(256, np.int32)], grid, order=order, **more)
    # The same process goes on, and so does the module.
    args, again = matmul_arguments(20, 20, 20)
    compile_host(matmul()).launch(args, again)
    np.testing.assert_allclose(args[5], args[3] @ args[4], rtol=1e-5)
    with pytest.raises(LaunchError):
        module.launch([np.zeros(256, np.int32)], grid, order=order, **more)
    return str(caught.value)


@pytest.mark.parametrize("order", ORDERS)
def test_divergent_barriers(order: Any) -> None:
    body = "  if (threadIdx.x < 40)\n    __syncthreads();\n  else\n    __syncthreads();\n"
    lines = (SourceLine(None, None),) * 3 + (SourceLine("fetch", "add_prefetch"),)
    text = failure(kernel(body, lines=lines), order, grid=(1, 1, 1))
    assert text == (
        "running 'kernel', block (0, 0, 0)\n"
        "threads of one block wait at different barriers:\n"
        "  40 threads: (0, 0, 0)..(39, 0, 0) at the barrier of\n"
        "    line 4: __syncthreads();   (fetch, add_prefetch)\n"
        "  24 threads: (40, 0, 0)..(63, 0, 0) at the barrier of\n"
        "    line 6: __syncthreads();\n"
        "every thread of a block must come to the same barrier: move it out of the branch"
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_after_a_return(order: Any) -> None:
    body = "  if (threadIdx.x == 5 && blockIdx.x == 1) return;\n  __syncthreads();\n"
    text = failure(kernel(body), order)
    assert "block (1, 0, 0)" in text
    assert "wait at a barrier after others have returned" in text
    assert "63 threads: (0, 0, 0)..(4, 0, 0), (6, 0, 0)..(63, 0, 0) at the barrier of" in text
    assert "line 4: __syncthreads();" in text
    assert "thread (5, 0, 0) returned" in text


@pytest.mark.parametrize("order", ORDERS)
def test_a_warp_operation_that_never_completes(order: Any) -> None:
    body = (
        "  if (threadIdx.x % 32 < 16)\n    c[0] = __shfl_sync(0xffffffffu, 1, 0);\n"
        "  __syncthreads();\n"
    )
    text = failure(kernel(body), order)
    assert "waits for lanes that never come to it" in text
    assert "line 4: c[0] = __shfl_sync(0xffffffffu, 1, 0);" in text
    assert "(mask 0xffffffff)" in text
    assert "line 5: __syncthreads();" in text


def test_masks_that_disagree_deadlock() -> None:
    body = "  __syncwarp(threadIdx.x % 32 < 16 ? 0xffffffffu : 0xffff0000u);\n  __syncthreads();\n"
    assert "waits for lanes that never come" in failure(kernel(body))


def test_a_lane_outside_its_own_mask() -> None:
    text = failure(kernel("  __syncwarp(0xffu);\n"))
    assert "thread (8, 0, 0) calls a warp operation whose mask 0x000000ff" in text


def test_a_trap() -> None:
    text = failure(kernel("  if (threadIdx.x == 3) __trap();\n"))
    assert "thread (3, 0, 0) executed a trap" in text and "line 3" in text


@pytest.mark.parametrize("barrier", ["", "  __syncthreads();\n"])
@pytest.mark.parametrize("workers", [1, 2])
def test_faults_end_the_launch_only(barrier: str, workers: int) -> None:
    body = f"{barrier}  if (threadIdx.x == 7) c[1ll << 40] = 1;\n"
    text = failure(kernel(body), workers=workers)
    assert "thread (7, 0, 0) accessed memory that is not there" in text
    assert "sanitize=True" in text
    body = f"{barrier}  if (threadIdx.x == 7) c[0] = 1000 / c[0];\n"
    text = failure(kernel(body), workers=workers)
    assert "thread (7, 0, 0) divided an integer by zero" in text


def test_a_stack_that_runs_over_is_a_fault() -> None:
    source = """\
__device__ __noinline__ int deep(int n, int *c)
{
  int volatile kept[256];
  kept[n % 256] = n;
  return n == 0 ? c[0] : deep(n - 1, c) + kept[n % 256];
}
extern "C" __global__ void kernel(int *c)
{
  __syncthreads();
  if (threadIdx.x == 1) c[1] = deep(100000, c);
}
"""
    made = program(source, array("c", "int32", written=True))
    assert "thread (1, 0, 0) accessed memory" in failure(made)


# Under the sanitizers.


def out_of_bounds(made: Program, args: list[Any], grid: Any = (1, 1, 1)) -> OutOfBoundsError:
    with pytest.raises(OutOfBoundsError) as caught:
        compile_host(made, sanitize=True).launch(args, grid)
    return caught.value


def test_sanitized_results_come_back() -> None:
    args, grid = matmul_arguments(50, 37, 41)
    module = compile_host(matmul(), sanitize=True)
    for order in ("ascending", "descending", "random"):
        args[5][...] = 0
        module.launch(args, grid, order=order)  # type: ignore[arg-type]
        np.testing.assert_allclose(args[5], args[3] @ args[4], rtol=1e-5)


def test_one_past_the_end() -> None:
    a, b, c = (np.zeros(size, np.float32) for size in (100, 99, 100))
    error = out_of_bounds(VECTOR_ADD, [100, a, b, c], (2, 1, 1))
    text = str(error)
    assert "read of 4 bytes outside array 'b': element offset 99" in text
    assert "the array of 99 float32 elements spans 99" in text
    assert "line 6: c[i] = a[i] + b[i];" in text
    assert "block (1, 0, 0), thread (35, 0, 0)" in text
    assert error.witness is not None and error.witness.array == "b"


@pytest.mark.parametrize("shift", [-1, -(2**20), 100, 2**28])
def test_far_from_the_array(shift: int) -> None:
    source = """\
extern "C" __global__ void kernel(int shift, float *c)
{ c[shift + (int)threadIdx.x] = 1.0f; }
"""
    made = program(source, value("shift"), array("c", written=True), block=(1, 1, 1))
    error = out_of_bounds(made, [shift, np.zeros(100, np.float32)])
    assert f"outside array 'c': element offset {shift}, and" in str(error)
    assert str(error).splitlines()[1].startswith("write ")
    assert "line 2" in str(error)


def test_views_keep_their_strides_and_their_gaps() -> None:
    source = """\
extern "C" __global__ void kernel(int stride, short const *a, short *c)
{ c[2 * threadIdx.x] = a[stride * (int)threadIdx.x]; }
"""
    made = program(
        source, value("stride"), array("a", "int16"), array("c", "int16", written=True),
        block=(8, 1, 1),
    )  # fmt: skip
    whole = np.arange(48, dtype=np.int16)
    target = np.full(16, -1, np.int16)
    module = compile_host(made, sanitize=True)
    module.launch([-3, whole[::-1][2:26:3], target[::2]], (1, 1, 1))
    np.testing.assert_array_equal(target[::2], whole[::-1][2:26:3])
    assert (target[1::2] == -1).all()
    error = out_of_bounds(made, [4, whole[::3][:8], target[::2]])
    assert "outside array 'a'" in str(error)


def test_shared_arrays_have_bounds_too() -> None:
    source = """\
extern "C" __global__ void kernel(int *c)
{
  __shared__ float a_s[4][17];
  a_s[threadIdx.x / 17][threadIdx.x] = 1.0f;
  __syncthreads();
  c[0] = (int)a_s[0][0];
}
"""
    made = program(source, array("c", "int32", written=True), block=(20, 1, 1))
    error = out_of_bounds(made, [np.zeros(1, np.int32)])
    assert "index 17 out of bounds for type 'float [17]'" in str(error)
    assert "line 4" in str(error)


def test_dynamic_shared_memory_has_an_end() -> None:
    source = """\
extern __shared__ __align__(16) unsigned char smem[];
extern "C" __global__ void kernel(int *c)
{
  float *const a_s = reinterpret_cast<float *>(smem);
  a_s[threadIdx.x] = 1.0f;
  __syncthreads();
  c[0] = (int)a_s[0];
}
"""
    args = [np.zeros(1, np.int32)]
    made = program(source, array("c", "int32", written=True), block=(33, 1, 1), dynamic_shared=128)
    error = out_of_bounds(made, args)
    assert "line 5" in str(error) and "dynamic shared memory" in str(error)
    enough = program(
        source, array("c", "int32", written=True), block=(33, 1, 1), dynamic_shared=132
    )
    compile_host(enough, sanitize=True).launch(args, (1, 1, 1))
    assert args[0][0] == 1


def test_a_sanitized_divergent_barrier() -> None:
    made = kernel("  if (threadIdx.x < 40)\n    __syncthreads();\n")
    with pytest.raises(LaunchError, match="after others have returned"):
        compile_host(made, sanitize=True).launch([np.zeros(1, np.int32)], (1, 1, 1))


def test_other_undefined_behaviour_is_a_launch_error() -> None:
    made = kernel("  c[0] = 1 / c[0];\n")
    with pytest.raises(LaunchError, match="division by zero"):
        compile_host(made, sanitize=True).launch([np.zeros(1, np.int32)], (1, 1, 1))


def test_zero_size_arrays() -> None:
    empty = np.zeros(0, np.float32)
    for sanitize in (False, True):
        module = compile_host(VECTOR_ADD, sanitize=sanitize)
        module.launch([0, empty, empty, empty], (1, 1, 1))
