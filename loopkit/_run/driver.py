"""The CUDA driver: devices, their contexts and limits, modules, memory, errors.

Nothing here is performance-critical.  Contexts are the devices' primary ones, which PyTorch, CuPy,
JAX and Numba use as well.  Properties of a device come from ``cuda.core``.  Calls that may find a
context lost use ``cuda.bindings``: errors of ``cuda.core`` carry no status code, and its contexts,
streams and buffers cannot be released after a context is lost.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from loopkit._cached import cached_property
from loopkit._errors import LaunchError, MissingDependencyError
from loopkit._run.nvrtc import cuda_core, supported_archs
from loopkit._target import CUDA

# After these every context of this process, old or new, answers with the same error; the
# driver's documentation says so of most of them, and of some only that the context is gone.
STICKY = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 911}
# What a launch says when this thread, or the whole process, has no usable context yet.
NO_CONTEXT = {3, 201, 400, 709}

ADVICE = 'executor("host", sanitize=True) finds accesses outside of arrays'


class DriverError(LaunchError):
    """A call of the driver failed; ``status`` is the driver's number for why."""

    def __init__(self, why: str, status: int, instead: str = "") -> None:
        super().__init__(why, instead=instead)
        self.status = status


@functools.cache
def api() -> Any:
    """``cuda.bindings.driver``, initialised."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingDependencyError(
            "cuda-python is not installed", instead="pip install cuda-python"
        ) from error
    try:
        (status,) = driver.cuInit(0)
    except Exception as error:  # no driver: the type differs between versions
        raise MissingDependencyError(
            "there is no NVIDIA driver on this machine, or it cannot be loaded",
            instead='install the driver, or run the kernel with executor("host")',
        ) from error
    if int(status):
        raise DriverError(f"the NVIDIA driver does not start: {describe_status(status)}", status)
    return driver


def call(name: str, *args: Any, doing: str = "") -> Any:
    """Call ``name`` of the driver; its results, or an error that says what failed."""
    status, *values = getattr(api(), name)(*args)
    if int(status):
        why = f"{doing or name} failed: {describe_status(status)}"
        raise DriverError(why, int(status))
    return values[0] if len(values) == 1 else tuple(values)


def describe_status(status: Any) -> str:
    """``an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)``"""
    from cuda.bindings import driver

    try:
        status = driver.CUresult(int(status))
        _, name = driver.cuGetErrorName(status)
        _, text = driver.cuGetErrorString(status)
        return f"{text.decode()} ({name.decode()})"
    except Exception:  # an unknown number, or no driver to ask
        return f"CUDA error {status}"


@functools.cache
def device_count() -> int:
    """How many GPUs the driver shows; 0 without a driver."""
    try:
        return int(call("cuDeviceGetCount"))
    except (MissingDependencyError, DriverError):
        return 0


def has_gpu() -> bool:
    """Whether the cuda executor has something to run on."""
    return device_count() > 0


def current_arch() -> str | None:
    """The architecture of the current GPU, as ``sm_90a``; None without a GPU."""
    return device(current_device()).arch if has_gpu() else None


def current_device() -> int:
    """The device of this thread's context, or 0 if it has none that can be used."""
    try:
        return int(call("cuCtxGetDevice"))
    except DriverError as error:
        if error.status in STICKY | NO_CONTEXT:
            return 0
        raise


def pointer_device(pointer: int) -> int:
    """The device that the memory at ``pointer`` belongs to."""
    if device_count() <= 1 or not pointer:
        return 0
    attribute = api().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(call("cuPointerGetAttribute", attribute, pointer))


def allocate(size: int, stream: int) -> int:
    """Memory on the current device for work on a stream, given back by ``cuMemFreeAsync``.

    It is whole words, since atomic updates of fewer bytes change words.
    """
    doing = f"allocating {size} bytes on the device"
    return int(call("cuMemAllocAsync", max(-(-size // 4) * 4, 4), stream, doing=doing))


@contextlib.contextmanager
def memory(stream: int, sizes: Iterable[int]) -> Iterator[list[int]]:
    """Some pieces of memory on the current device, for work on a stream."""
    pointers: list[int] = []
    try:
        for size in sizes:
            pointers.append(allocate(size, stream))
        yield pointers
    finally:
        try:
            for pointer in pointers:
                call("cuMemFreeAsync", pointer, stream)
        except DriverError as error:
            # The context is lost, and the memory with it; what failed in between says more.
            if error.status not in STICKY:
                raise


class Device:
    """One GPU, with its primary context retained."""

    def __init__(self, index: int) -> None:
        self.index = index
        #: Why the context is lost; empty as long as it is not.
        self.lost = ""
        self._streams: list[int] = []
        self.context: Any = 0
        handle = call("cuDeviceGet", index)
        try:
            self.context = call("cuDevicePrimaryCtxRetain", handle, doing=f"work on cuda:{index}")
        except DriverError as error:
            if error.status not in STICKY:
                raise
            self.lost = error.why  # another library's kernel did it
        # After the call above: where the driver does not answer, `cuda.core` hangs when it is asked
        # again.
        described = cuda_core().Device(index)
        self.name = described.name
        self.capability = described.compute_capability
        limits = described.properties
        #: What this device can do: CUDA, with limits of its own.
        self.target = replace(
            CUDA,
            block_threads=limits.max_threads_per_block,
            block_extents=(limits.max_block_dim_x, limits.max_block_dim_y, limits.max_block_dim_z),
            grid_extents=(limits.max_grid_dim_x, limits.max_grid_dim_y, limits.max_grid_dim_z),
            shared=limits.max_shared_memory_per_block_optin,
            registers=limits.max_registers_per_block,
        )

    def __repr__(self) -> str:
        return f"<cuda:{self.index} {self.name}>"

    @cached_property
    def arch(self) -> str:
        """What to compile for: exactly this device, or the nearest that NVRTC knows."""
        major, minor = self.capability
        wanted = 10 * major + minor
        known = (int(arch.removeprefix("sm_")) for arch in supported_archs())
        best = max((arch for arch in known if 10 * major <= arch <= wanted), default=None)
        if best is None:
            raise MissingDependencyError(
                f"the installed NVRTC does not compile for {self.name} (sm_{wanted})",
                instead="pip install --upgrade 'loopkit[cuda]'",
            )
        return f"sm_{best}a" if best == wanted and major >= 9 else f"sm_{best}"

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this device current in this thread, and the caller's again afterwards."""
        if self.lost:
            raise self.lost_error()
        call("cuCtxPushCurrent", self.context, doing=f"using {self!r}")
        try:
            yield
        except BaseException:
            # In a lost context this fails, too, with less information than the first error.
            with contextlib.suppress(DriverError):
                call("cuCtxPopCurrent")
            raise
        call("cuCtxPopCurrent")

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """`current`, and after an error of the driver `recover`."""
        try:
            with self.current():
                yield
        except DriverError as error:
            raise self.recover(error) from None

    @contextlib.contextmanager
    def stream(self) -> Iterator[int]:
        """A stream that nobody else uses; the device must be current."""
        try:
            handle = self._streams.pop()
        except IndexError:
            handle = int(call("cuStreamCreate", int(api().CUstream_flags.CU_STREAM_NON_BLOCKING)))
        try:
            yield handle
        finally:
            self._streams.append(handle)

    def wait(self, stream: int, kernel: str) -> None:
        """Wait for all work on ``stream``; a failure names ``kernel``."""
        call("cuStreamSynchronize", stream, doing=f"{kernel} on {self!r}")

    def recover(self, error: DriverError) -> LaunchError:
        """The error to raise after ``error``; a lost context is recorded."""
        if not self.lost:
            if error.status not in STICKY:
                return error
            self.lost = error.why
        return DriverError(error.why, error.status, instead=self._remedy())

    def is_lost(self) -> bool:
        """Whether the context is lost, tested by a call without effect."""
        try:
            with self.current():
                # One that leaves streams alone, which may be recording.
                call("cuCtxGetLimit", api().CUlimit.CU_LIMIT_STACK_SIZE)
        except DriverError as error:
            self.recover(self.blameless(error))
        return bool(self.lost)

    def blameless(self, error: DriverError) -> DriverError:
        """The error for a call that did not launch anything: it may report an earlier failure.

        The driver reports the failure of a kernel to the next call, whatever that does.
        """
        if self.lost or error.status not in STICKY:
            return error
        return DriverError(
            f"work on {self!r} failed: {describe_status(error.status)}", error.status
        )

    def lost_error(self) -> LaunchError:
        """The error for a call that needs the lost context."""
        return DriverError(f"an earlier call failed: {self.lost}", 709, self._remedy())

    def _remedy(self) -> str:
        others = gpu_libraries()
        arrays = f", and with it the arrays of {' and '.join(others)}" if others else ""
        return (
            f"this process's CUDA context on {self!r} is lost{arrays}, and the driver gives it no "
            f"other: restart this process; {ADVICE}"
        )


def gpu_libraries() -> list[str]:
    """Libraries in this process that may hold memory on a GPU."""
    torch = sys.modules.get("torch")
    found = ["PyTorch"] if torch is not None and torch.cuda.is_initialized() else []
    others = {"cupy": "CuPy", "jax": "JAX", "numba.cuda": "Numba"}
    return found + [name for module, name in others.items() if module in sys.modules]


_devices: dict[int, Device] = {}
_lock = threading.Lock()


def device(index: int) -> Device:
    """The device with this number."""
    with _lock:
        if index not in _devices:
            _devices[index] = Device(index)
        return _devices[index]


def lost_error() -> LaunchError | None:
    """The error of a device whose context is lost; None if all that were used are well."""
    for one in list(_devices.values()):
        if one.is_lost():
            return one.lost_error()
    return None
