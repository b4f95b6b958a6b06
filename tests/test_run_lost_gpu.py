"""Calls after an illegal access on a real GPU."""

from __future__ import annotations

import pytest
from _run_process import in_a_process

pytestmark = pytest.mark.gpu

POISON = """
import dataclasses, os
import numpy as np
import loopkit as lk
from loopkit._run import driver
from loopkit._run.executor import CudaExecutor
from _run_programs import AXPY_SOURCE, MATMUL, SUMDIFF, axpy

bad = CudaExecutor(lambda s: dataclasses.replace(
    axpy(), source=AXPY_SOURCE.replace("y[i] =", "y[i + (1ll << 40)] =")))
good = CudaExecutor(axpy)
x = np.arange(5, dtype="f4")

def fails(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except lk.LaunchError as error:
        print("LaunchError:", error)
    else:
        raise AssertionError("no error")

def works():
    y = np.ones(5, "f4")
    assert good(x=x, y=y, alpha=2) is y
    np.testing.assert_array_equal(y, 2 * x + 1)

def refused(knl=good):
    y = np.ones(5, "f4")
    fails(knl, x=x, y=y, alpha=2)
    np.testing.assert_array_equal(y, 1)
    np.testing.assert_array_equal(x, np.arange(5))

def leave():  # past the destructors of libraries whose memory is lost
    import sys
    sys.stdout.flush(); sys.stderr.flush(); os._exit(0)
"""


ADVICE = "restart this process"


def test_after_an_illegal_access() -> None:
    """The driver gives no new context, and every call says so."""
    done = in_a_process(
        POISON
        + """
works()
refused(bad)
assert driver.device(0).lost
refused()
refused()
refused(CudaExecutor(axpy))
knl = lk.make_kernel("{[i]: 0 <= i < n}", "c[i] = 2*a[i]", dtypes={"a, c": "float32"})
np.testing.assert_array_equal(knl.executor("reference")(a=x), 2 * x)
print("done")
leave()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert done.stdout.count(ADVICE) == 4


def test_what_another_library_lost() -> None:
    """An error of work that was launched before is not the call's own."""
    pytest.importorskip("torch")
    done = in_a_process(
        POISON
        + """
import torch
u, v = torch.ones(5, device="cuda"), torch.zeros(5, device="cuda")
good(x=u, y=v, alpha=1.0)
good(x=u, y=v, alpha=1.0)
bound = good.bind(x=u, y=v, alpha=1.0)
bad(x=u, y=v, alpha=1.0)  # asynchronous: no error yet
try:
    torch.cuda.synchronize()
except Exception as error:
    assert "illegal" in str(error), error
refused()
fails(good, x=torch.ones(5), y=torch.zeros(5), alpha=2.0)
for call in (lambda: good(x=u, y=v, alpha=1.0), bound, lambda: good(x=u, y=v, alpha=1.0)):
    fails(call)
print("done")
leave()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
    assert done.stdout.count("is lost, and with it the arrays of PyTorch") == 5
    assert done.stdout.count(ADVICE) == 5


def test_lost_before_the_first_call() -> None:
    pytest.importorskip("torch")
    done = in_a_process(
        POISON
        + """
import torch
t = torch.zeros(10, device="cuda")
i = torch.full((10,), 1 << 40, device="cuda")
try:
    t[i] = 1.0  # torch asserts on the device that indices are in bounds
    torch.cuda.synchronize()
except Exception as error:
    print("torch:", str(error).splitlines()[0])
refused()
fails(good, x=t, y=t[:], alpha=1.0)
print("done")
leave()
"""
    )
    assert done.returncode == 0, done.stderr
    assert "torch: " in done.stdout and done.stdout.endswith("done\n")
    assert done.stdout.count(ADVICE) == 2


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_the_first_call_after_it_was_lost_is_with_device_arrays(library: str) -> None:
    """Whoever finds out, the driver or the library that allocates, the error is ours."""
    pytest.importorskip(library)
    done = in_a_process(
        POISON
        + f"""
import {library} as library
"""
        + """
if library.__name__ == "torch":
    u, v = library.ones(5, device="cuda"), library.zeros(5, device="cuda")
    wait = library.cuda.synchronize
else:
    u, v = library.ones(5, "f4"), library.zeros(5, "f4")
    wait = library.cuda.Device().synchronize
sumdiff = CudaExecutor(lambda strided: SUMDIFF)
sumdiff(a=u, b=v)
bad(x=u, y=v, alpha=1.0)
try:
    wait()
except Exception as error:
    assert "illegal" in str(error).lower(), error
fails(sumdiff, a=u, b=u)
fails(sumdiff, a=u, b=u)
fails(good, x=u, y=v, alpha=1.0)
refused()
print("done")
leave()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
    name = {"torch": "PyTorch", "cupy": "CuPy"}[library]
    assert done.stdout.count(f"is lost, and with it the arrays of {name}") == 4


@pytest.mark.parametrize("faulty", [0, 1])
def test_two_devices(faulty: int) -> None:
    """Whatever becomes of the other device, calls work there or say why they cannot."""
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    done = in_a_process(
        POISON
        + f"""
import torch
faulty, other = {faulty}, {1 - faulty}
"""
        + """
u = [torch.ones(5, device=f"cuda:{i}") for i in range(2)]
v = [torch.zeros(5, device=f"cuda:{i}") for i in range(2)]
for i in range(2):
    good(x=u[i], y=v[i], alpha=1.0)
torch.cuda.set_device(faulty)
works()
bad(x=u[faulty], y=v[faulty], alpha=1.0)
try:
    torch.cuda.synchronize(faulty)
except Exception as error:
    assert "illegal" in str(error), error
refused()
fails(good, x=u[faulty], y=v[faulty], alpha=1.0)
try:
    good(x=u[other], y=v[other], alpha=1.0)
    torch.cuda.synchronize(other)
    assert (v[other] == 2).all()
    print("the other device works")
except lk.LaunchError as error:
    print("the other device:", error)
print("done")
leave()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
    assert "the other device" in done.stdout
