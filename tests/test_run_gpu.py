"""The cuda executor on a real GPU."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _run_programs import BIG_SHARED, MATMUL, SUMDIFF, axpy
from seams import CudaExecutor, ValueParam, nvrtc

import loopkit as lk
from loopkit import InvalidArgumentError, LaunchError, ResourceError

pytestmark = pytest.mark.gpu


def fixed(program: Any) -> CudaExecutor:
    return CudaExecutor(lambda strided: program)


@pytest.fixture
def ab() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.random((50, 70), dtype="f4"), rng.random((70, 33), dtype="f4")


def test_numpy(ab: Any) -> None:
    a, b = ab
    knl = fixed(MATMUL)
    np.testing.assert_allclose(knl(a=a, b=b), a @ b, rtol=1e-5)
    c = np.zeros((50, 33), "f4")
    assert knl(a=a, b=b, c=c) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_allclose(knl(a=a[:, ::-1], b=b[::-1]), a @ b, rtol=1e-5)


def test_numpy_strided_in_place() -> None:
    knl = CudaExecutor(axpy)
    x, y = np.arange(20, dtype="f4"), np.ones(20, "f4")
    knl(x=x[::2], y=y[1::2], alpha=2)
    np.testing.assert_array_equal(y[1::2], 2 * x[::2] + 1)
    assert (y[::2] == 1).all()


def test_two_outputs_and_scratch() -> None:
    a, b = np.arange(100, dtype="f4"), np.ones(100, "f4")
    s, d = fixed(SUMDIFF)(a=a, b=b)
    np.testing.assert_array_equal(s, a + 1)
    np.testing.assert_array_equal(d, a - 1)


def test_more_than_48_kib_of_shared_memory() -> None:
    a = np.arange(20000, dtype="f4")
    np.testing.assert_array_equal(fixed(BIG_SHARED)(a=a), a[::-1])
    with pytest.raises(ResourceError, match="bytes of shared memory a block"):
        fixed(dataclasses.replace(BIG_SHARED, dynamic_shared=300 * 1024))(a=a)


def test_zero_size() -> None:
    empty = np.zeros(0, "f4")
    assert fixed(SUMDIFF)(a=empty, b=empty).s.shape == (0,)
    torch = pytest.importorskip("torch")
    nothing = torch.zeros(0, device="cuda")
    assert fixed(SUMDIFF)(a=nothing, b=nothing).d.shape == (0,)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "int8", "complex64", "bool"])
def test_scalars_of_all_types(name: str) -> None:
    c_type = {
        "float16": "unsigned short",
        "bfloat16": "unsigned short",
        "float64": "double",
        "int8": "signed char",
        "complex64": "float2",
        "bool": "bool",
    }[name]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    value: Any = {"complex64": 1 + 2j, "bool": True, "int8": -7}.get(name, 1.5)
    source = (
        f'extern "C" __global__ void put(signed char k, {c_type} value, {c_type} *out)\n'
        "{ if (k == 3) *out = value; }\n"
    )
    from _run_programs import Program, array

    program = Program(
        "put",
        source,
        (
            ValueParam("k", np.dtype("int8")),
            ValueParam("value", dtype),
            array("out", use="w", dtype=dtype),
        ),
        grid=(1, 1, 1),
        block=(1, 1, 1),
        arguments=("out", "k", "value"),
    )
    knl = fixed(program)
    assert knl(k=3, value=value)[()] == value
    torch = pytest.importorskip("torch")
    out = torch.zeros((), dtype=getattr(torch, name), device="cuda")
    for _ in range(2):
        out.zero_()
        knl(out=out, k=3, value=value)
        assert out.item() == value


def test_torch(ab: Any) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).cuda() for x in ab)
    knl = fixed(MATMUL)
    for _ in range(3):
        c = knl(a=a, b=b)
        assert isinstance(c, torch.Tensor) and c.device == a.device
        torch.testing.assert_close(c, a @ b)
    mine = torch.zeros_like(c)
    for _ in range(3):
        mine.zero_()
        assert knl(a=a, b=b, c=mine) is mine
        torch.testing.assert_close(mine, a @ b)
    with pytest.raises(LaunchError, match="shares memory"):
        square = torch.rand(16, 16, device="cuda")
        knl(a=square, b=square, c=square)
    with pytest.raises(InvalidArgumentError, match="in host memory"):
        knl(a=a, b=b.cpu())
    with pytest.raises(InvalidArgumentError, match="sparse"):
        knl(a=a.to_sparse(), b=b)
    with pytest.raises(InvalidArgumentError, match="float64"):
        knl(a=a, b=b.double(), c=mine)
    host = knl(a=a.cpu(), b=b.cpu())
    assert host.device.type == "cpu"
    torch.testing.assert_close(host, (a @ b).cpu())


def test_torch_strides_and_offsets() -> None:
    torch = pytest.importorskip("torch")
    knl = CudaExecutor(axpy)
    x, y = torch.arange(40.0, device="cuda"), torch.ones(40, device="cuda")
    for _ in range(2):
        y.fill_(1)
        knl(x=x[3:23:2], y=y[1::4], alpha=2.0)
        assert torch.equal(y[1::4], 2 * x[3:23:2] + 1)
        assert (y[0::2] == 1).all()


def test_torch_streams() -> None:
    torch = pytest.importorskip("torch")
    knl = CudaExecutor(axpy)
    x = torch.ones(1 << 24, device="cuda")
    side = torch.cuda.Stream()
    for how in ("current", "object", "handle"):
        y = torch.zeros_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(20):
                y.add_(1)
            if how == "current":
                knl(x=x, y=y, alpha=1.0)
        if how == "object":
            knl(x=x, y=y, alpha=1.0, stream=side)
        elif how == "handle":
            knl(x=x, y=y, alpha=1.0, stream=side.cuda_stream)
        side.synchronize()
        assert (y == 21).all()


def test_graphs() -> None:
    torch = pytest.importorskip("torch")
    knl = CudaExecutor(axpy)
    x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    knl(x=x, y=y, alpha=1.0)
    bound = knl.bind(x=x, y=y, alpha=10.0)
    y.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        knl(x=x, y=y, alpha=1.0)
        bound()
    torch.cuda.synchronize()
    assert (y == 0).all()
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 22).all()


def test_cupy(ab: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = (cupy.asarray(x) for x in ab)
    knl = fixed(MATMUL)
    for _ in range(3):
        c = knl(a=a, b=b)
        assert isinstance(c, cupy.ndarray)
        cupy.testing.assert_allclose(c, a @ b, rtol=1e-4)
    mine = cupy.zeros_like(c)
    for _ in range(3):
        assert knl(a=a, b=b, c=mine) is mine
    cupy.testing.assert_allclose(mine, a @ b, rtol=1e-4)
    x, y = cupy.arange(20, dtype="f4"), cupy.ones(20, "f4")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        CudaExecutor(axpy)(x=x[::-2], y=y[::2], alpha=2.0)
        stream.synchronize()
    cupy.testing.assert_array_equal(y[::2], 2 * x[::-2] + 1)


def test_jax(ab: Any) -> None:
    jax = pytest.importorskip("jax")
    a, b = (jax.numpy.asarray(x) for x in ab)
    if a.devices().pop().platform == "cpu":
        pytest.skip("JAX sees no GPU")
    c = fixed(MATMUL)(a=a, b=b)
    assert isinstance(c, jax.Array)
    np.testing.assert_allclose(np.asarray(c), ab[0] @ ab[1], rtol=1e-4)
    x, y = jax.numpy.ones(5), jax.numpy.ones(5)
    result = CudaExecutor(axpy)(x=x, y=y, alpha=2)
    np.testing.assert_array_equal(np.asarray(result), 3)
    np.testing.assert_array_equal(np.asarray(y), 1)
    with pytest.raises(InvalidArgumentError, match="traced by JAX"):
        jax.jit(lambda v: CudaExecutor(axpy)(x=v, y=v, alpha=2))(x)


def test_numba(ab: Any) -> None:
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba sees no GPU")
    a, b = (cuda.to_device(x) for x in ab)
    knl = fixed(MATMUL)
    for _ in range(2):
        c = knl(a=a, b=b)
        np.testing.assert_allclose(c.copy_to_host(), ab[0] @ ab[1], rtol=1e-4)


def test_objects_of_unknown_libraries() -> None:
    torch = pytest.importorskip("torch")

    class Interface:
        def __init__(self, x: Any) -> None:
            self.__cuda_array_interface__ = x.__cuda_array_interface__

    class DLPack:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, **options: Any) -> Any:
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    knl = CudaExecutor(axpy)
    x, y = torch.ones(100, device="cuda"), torch.zeros(100, device="cuda")
    Interface.__cuda_array_interface__ = None  # type: ignore[attr-defined]
    for i in range(1, 3):
        knl(x=DLPack(x), y=DLPack(y), alpha=1.0)
        knl(x=Interface(x), y=Interface(y), alpha=1.0)
        torch.cuda.synchronize()
        assert (y == 2 * i).all()
    with pytest.raises(InvalidArgumentError, match="pass the outputs as arguments"):
        fixed(SUMDIFF)(a=DLPack(x), b=DLPack(x))


def test_threads() -> None:
    torch = pytest.importorskip("torch")
    knl = CudaExecutor(axpy)
    pairs = [(torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")) for _ in range(6)]
    torch.cuda.synchronize()
    failures: list[Exception] = []

    def work(x: Any, y: Any) -> None:
        try:
            for _ in range(500):
                knl(x=x, y=y, alpha=1.0)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not failures
    assert all((y == 500).all() for _, y in pairs)


def in_a_process(code: str) -> str:
    here = Path(__file__).parent
    head = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent)!r}]\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BROKEN = """
import dataclasses, numpy as np
from _run_programs import axpy, AXPY_SOURCE
from loopkit import _errors
from loopkit._run.executor import CudaExecutor
bad = CudaExecutor(lambda s: dataclasses.replace(
    axpy(), source=AXPY_SOURCE.replace("y[i] =", "y[i + (1ll << 40)] =")))
good = CudaExecutor(axpy)
"""


def test_after_a_refused_call_the_next_works() -> None:
    x = np.ones(5, "f4")
    knl = CudaExecutor(axpy)
    hungry = CudaExecutor(lambda s: dataclasses.replace(axpy(), dynamic_shared=300 * 1024))
    tall = CudaExecutor(lambda s: dataclasses.replace(axpy(), grid=(1, 70000, 1)))
    for bad in (hungry, tall):
        with pytest.raises(ResourceError):
            bad(x=x, y=np.zeros(5, "f4"), alpha=1)
        assert (knl(x=x, y=np.zeros(5, "f4"), alpha=2) == 2).all()


def test_after_an_illegal_access() -> None:
    """The driver gives no new context, and calls say what is left to do."""
    out = in_a_process(
        BROKEN
        + """
x = np.ones(5, "f4")
assert (good(x=x, y=np.zeros(5, "f4"), alpha=1) == 1).all()
try:
    bad(x=x, y=np.zeros(5, "f4"), alpha=1)
except _errors.LaunchError as error:
    print(error)
for _ in range(2):
    try:
        good(x=x, y=np.zeros(5, "f4"), alpha=2)
    except _errors.LaunchError as error:
        print(error)
"""
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in out
    assert out.count("restart this process") == 3


def test_a_lost_context_is_named() -> None:
    pytest.importorskip("torch")
    out = in_a_process(
        BROKEN
        + """
import torch
x, y = torch.ones(5, device="cuda"), torch.zeros(5, device="cuda")
bad(x=x, y=y, alpha=1.0)
try: torch.cuda.synchronize()
except Exception: pass
for _ in range(2):
    try:
        good(x=x, y=y, alpha=1.0)
    except _errors.LaunchError as error:
        print(error)
import os; sys.stdout.flush(); os._exit(0)
"""
    )
    assert out.count("CUDA context on <cuda:0") == 2, out
    assert out.count("is lost, and with it the arrays of PyTorch") == 2, out


def test_a_loop_nest_that_older_compilers_get_wrong() -> None:
    fault = nvrtc.known_fault(nvrtc.nvrtc_version())
    if fault:
        pytest.skip(fault)
    knl = lk.make_kernel(
        "{ [i, j, k]: 1 <= i < n and 0 <= j < n and 0 <= k < m }",
        "f[i, 2*j + 1, k] = f[i + 1, k, j + 1]",
        dtypes={"f": "float64"},
        assumptions="n, m >= 1",
    )
    n, m = 5, 4
    given = np.random.default_rng(0).random((n + 1, max(2 * n, m), max(m, n + 1)))
    expected = given.copy()
    knl.executor("reference")(f=expected, n=n, m=m)
    knl.executor("cuda")(f=given, n=n, m=m)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("n", [1, 5])
def test_integers_wrap_around(n: int) -> None:
    """A maximum of nothing is the smallest integer, and goes on from there."""
    knl = lk.make_kernel(
        "{ [i, h]: 0 <= i < m and 1 <= h < n }",
        """
        y[i] = y[i] + max(h, d[h, i])
        z[i] = -y[i] - sum(h, y[i]*d[h, i]*d[h, i])
        """,
        dtypes={"d, y, z": "int32"},
        assumptions="n, m >= 1",
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    rng = np.random.default_rng(0)
    y, d = (rng.integers(-(2**31), 2**31, shape, dtype="i4") for shape in (100, (n, 100)))
    found = {"y": y.copy(), "z": np.zeros(100, "i4")}
    expected = {"y": y.copy(), "z": np.zeros(100, "i4")}
    knl.executor("cuda")(d=d, m=100, n=n, **found)
    knl.executor("reference")(d=d, m=100, n=n, **expected)
    np.testing.assert_array_equal(found["y"], expected["y"])
    np.testing.assert_array_equal(found["z"], expected["z"])
