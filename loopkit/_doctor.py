"""What is installed, what works by really trying it, and what to do about the rest."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopkit._errors import LoopkitError

Status = Literal["ok", "missing", "broken"]

CUDA_EXTRA = "pip install 'loopkit[cuda]'"

#: The packages that loopkit cannot do without: name on the index, and what to import.
REQUIRED = {
    "islpy": "islpy",
    "pymbolic": "pymbolic",
    "numpy": "numpy",
    "ml_dtypes": "ml_dtypes",
    "platformdirs": "platformdirs",
    "click": "click",
    "rich": "rich",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    ``missing`` is what may be added, ``broken`` what is there and fails; ``fix``
    says what to do. ``required`` marks what loopkit cannot do without.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""
    required: bool = False

    @property
    def fatal(self) -> bool:
        """Whether loopkit is of no use like this."""
        return self.required and self.status != "ok"

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


class _Missing(Exception):
    """Something optional is not there; ``fix`` says how to add it."""

    def __init__(self, detail: str, fix: str = "") -> None:
        super().__init__(detail)
        self.fix = fix


@dataclass(frozen=True)
class Probe:
    """Something to look at: ``look`` answers with what to say, or raises."""

    name: str
    look: Callable[[], str]
    required: bool = False
    fix: str = ""

    def run(self) -> Finding:
        """Try it. Whatever it raises becomes part of the finding."""
        try:
            return Finding(self.name, "ok", self.look(), required=self.required)
        except _Missing as error:
            return Finding(self.name, "missing", str(error), error.fix or self.fix, self.required)
        except LoopkitError as error:
            fix = error.instead or self.fix
            return Finding(self.name, "broken", error.why or str(error), fix, self.required)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".strip().rstrip(":")
            return Finding(self.name, "broken", said, self.fix, self.required)


def probes() -> Iterator[Probe]:
    """Everything that is looked at, in the order in which it is worth reading."""
    yield Probe("Python", _python, required=True)
    yield Probe("loopkit", _loopkit, required=True)
    for package, module in REQUIRED.items():
        look = functools.partial(_package, package, module)
        yield Probe(package, look, required=True, fix=f"pip install --upgrade {package}")
    yield Probe("isl", _isl, required=True, fix="pip install --force-reinstall islpy")
    yield Probe("text to CUDA C", _text_to_source, required=True)
    yield Probe("reference executor", functools.partial(_run, "reference"), required=True)
    yield Probe("C++ compiler", _compiler)
    yield Probe("host executor", _host)
    yield Probe("cuda-python", _cuda_python, fix="pip install cuda-python")
    yield Probe("NVRTC", _nvrtc, fix=CUDA_EXTRA)
    yield Probe("nvdisasm", functools.partial(_cuda_tool, "nvdisasm"), fix=CUDA_EXTRA)
    yield Probe("cuobjdump", functools.partial(_cuda_tool, "cuobjdump"), fix=CUDA_EXTRA)
    yield Probe("GPU", _gpu)
    yield Probe("cuda executor", _cuda)
    yield Probe("cache", _cache)
    for library in ("torch", "cupy", "jax", "numba"):
        yield Probe(f"{library} arrays", functools.partial(_interop, library))


def diagnose(progress: Callable[[str], None] = lambda name: None) -> list[Finding]:
    """Look at everything; ``progress`` hears what is being looked at."""
    findings = []
    for probe in probes():
        progress(probe.name)
        findings.append(probe.run())
    return findings


def gpu_count() -> int:
    """How many GPUs the driver shows; 0 without a driver. Imports nothing of CUDA."""
    driver = _driver()
    if driver is None or driver.cuInit(0) != 0:
        return 0
    count = ctypes.c_int(0)
    return count.value if driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


# {{{ the looks: each answers with a line, or raises


def _python() -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _loopkit() -> str:
    where = Path(__file__).resolve().parent
    try:
        return f"{importlib.metadata.version('loopkit')} in {where}"
    except importlib.metadata.PackageNotFoundError:
        return f"a checkout that is not installed, in {where}"


def _package(package: str, module: str) -> str:
    if importlib.util.find_spec(module) is None:
        raise _Missing("not installed", f"pip install {package}")
    importlib.import_module(module)
    return importlib.metadata.version(package)


def _isl() -> str:
    import islpy as isl

    tiles = isl.Map("[n] -> { [i] -> [t, x] : i = 16t + x and 0 <= x < 16 and 0 <= i < n }")
    if not tiles.is_injective() or tiles.range().is_empty():
        raise RuntimeError("isl gives wrong answers")
    return "sets and maps work"


def _small_kernel() -> Any:
    """A kernel with what executors have to get right: threads, barriers, shared memory."""
    import loopkit

    lk: Any = loopkit
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "c[i] = sum(j, a[i + j])",
        dtypes={"a, c": "float32"},
        assumptions="n >= 1",
        name="doctor",
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    return knl.add_prefetch("a", ["i_inner", "j"], default_tag="l.auto")


def _text_to_source() -> str:
    source = str(_small_kernel().cuda())
    if "__global__" not in source:
        raise RuntimeError("the generated source has no kernel in it")
    return f"{len(source.splitlines())} lines for a small kernel"


def _run(executor: str, arrays: Callable[[Any], Any] = lambda array: array) -> str:
    a = np.arange(103, dtype=np.float32)
    expected = a[:100] + a[1:101] + a[2:102] + a[3:103]
    result = _small_kernel().executor(executor)(a=arrays(a), n=100)
    if not np.array_equal(_as_numpy(result), expected):
        raise RuntimeError("it computes wrong numbers")
    return "runs a small kernel and computes the right numbers"


def _as_numpy(array: Any) -> np.ndarray[Any, Any]:
    for method in ("get", "copy_to_host", "cpu"):
        if hasattr(array, method):
            array = getattr(array, method)()
            break
    return np.asarray(array)


def _compiler() -> str:
    from loopkit._host import find_compiler

    command = find_compiler()
    if command is None:
        raise _Missing("no g++, clang++ or c++, and CXX names none", _compiler_fix())
    done = subprocess.run(
        [*shlex.split(command), "--version"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command} does not run: {done.stderr.strip()}")
    return f"{command}: {done.stdout.splitlines()[0]}"


def _compiler_fix() -> str:
    if sys.platform == "darwin":
        return "xcode-select --install"
    return "apt install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), conda install gxx"


def _host() -> str:
    from loopkit._host import find_compiler

    if find_compiler() is None:
        raise _Missing("needs a C++ compiler", _compiler_fix())
    return _run("host")


def _cuda_python() -> str:
    if importlib.util.find_spec("cuda") is None:
        raise _Missing("not installed", "pip install cuda-python")
    importlib.import_module("cuda.bindings.driver")
    importlib.import_module("cuda.core")
    names = ("cuda-python", "cuda-bindings", "cuda-core", "cuda-pathfinder")
    return ", ".join(f"{name} {_version(name)}" for name in names if _version(name))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _compile_something() -> tuple[str, bytes]:
    """The version of NVRTC and a cubin that it made."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise _Missing(f"cuda-python cannot be imported: {error}", CUDA_EXTRA) from None
    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        raise _Missing("NVRTC is not installed", CUDA_EXTRA) from error
    source = b'extern "C" __global__ void doctor(float *a) { a[threadIdx.x] += 1.0f; }'
    status, program = nvrtc.nvrtcCreateProgram(source, b"doctor.cu", 0, [], [])
    if int(status) != 0:
        raise RuntimeError(f"NVRTC fails: {status}")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_80"])
        if int(status) != 0:
            raise RuntimeError(f"NVRTC cannot compile a small kernel: {status}")
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = b" " * size
        nvrtc.nvrtcGetCUBIN(program, cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return f"{major}.{minor}", cubin


def _nvrtc() -> str:
    from loopkit._run.nvrtc import UPGRADE, known_fault

    version, cubin = _compile_something()
    if fault := known_fault(version):
        raise LoopkitError(fault, instead=UPGRADE)
    return f"{version}, compiles ({len(cubin)} bytes for a small kernel)"


def _cuda_tool(name: str) -> str:
    path = find_cuda_tool(name)
    if path is None:
        raise _Missing("not found", CUDA_EXTRA)
    try:
        _, cubin = _compile_something()
    except _Missing:
        return f"{path} (not tried: there is no NVRTC to make a binary)"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        arguments = ["-sass"] if name == "cuobjdump" else []
        done = subprocess.run(
            [path, *arguments, file.name], capture_output=True, text=True, check=False
        )
    if done.returncode != 0 or "EXIT" not in done.stdout:
        raise RuntimeError(f"{path} cannot disassemble: {done.stderr.strip() or 'no output'}")
    return f"{path}, disassembles"


def find_cuda_tool(name: str) -> str | None:
    """The path of one of CUDA's command line tools: from wheels, a toolkit, or the PATH."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        import shutil

        return shutil.which(name)
    found = find_nvidia_binary_utility(name)
    return None if found is None else str(found)


@functools.cache
def _driver() -> ctypes.CDLL | None:
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _gpu() -> str:
    driver = _driver()
    if driver is None:
        raise _Missing(
            "no NVIDIA driver", "install NVIDIA's driver; kernels run on the CPU till then"
        )
    code = driver.cuInit(0)
    count = gpu_count()
    if code != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        said = (text.value or b"unknown error").decode()
        raise _Missing(f"there is a driver but no GPU to use: {said} (cuInit: {code})")
    if count == 0:
        raise _Missing("there is a driver but no GPU")
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    names = []
    for index in range(count):
        device, name = ctypes.c_int(0), ctypes.create_string_buffer(128)
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        names.append(f"{name.value.decode()} (sm_{major.value}{minor.value})")
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return f"{', '.join(names)}; the driver knows CUDA {cuda}"


def _cuda() -> str:
    if gpu_count() == 0:
        raise _Missing("needs a GPU")
    return _run("cuda")


def _cache() -> str:
    from loopkit._cache.folder import root, usable

    try:
        top = root()
        if top is None:
            return "LOOPKIT_NO_CACHE is set: everything is compiled anew in every process"
        folder = usable(top)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"loopkit")
    except OSError as error:
        raise LoopkitError(
            f"no cache can be kept: {error}",
            instead="give the folder back to yourself alone, or name another one in "
            "LOOPKIT_CACHE_DIR; without it everything is compiled anew in every process",
        ) from error
    files, size = 0, 0.0
    for path in folder.rglob("*"):
        # Another process may be writing or clearing the cache.
        with suppress(FileNotFoundError):
            if path.is_file():
                size += path.stat().st_size / 1e6
                files += 1
    return f"{folder} can be written; {files} files, {size:.1f} MB"


def _interop(library: str) -> str:
    if importlib.util.find_spec(library) is None:
        raise _Missing("not installed, and needed only for arrays of its own")
    # Else JAX takes most of the GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    module = importlib.import_module(library)
    version = _version(library) or getattr(module, "__version__", "")
    if gpu_count() == 0:
        if library != "torch":
            return f"{version} (not tried: there is no GPU)"
        from loopkit._host import find_compiler

        executor = "reference" if find_compiler() is None else "host"
        return f"{version}, {_run(executor, module.from_numpy)}"
    make: Callable[[Any], Any]
    if library == "torch":
        if not module.cuda.is_available():
            return f"{version} (not tried: it was built without CUDA)"
        make = functools.partial(module.as_tensor, device="cuda")
    elif library == "cupy":
        make = module.asarray
    elif library == "numba":
        make = importlib.import_module("numba.cuda").to_device
    else:
        if module.default_backend() != "gpu":
            return f"{version} (not tried: it was installed without CUDA)"
        make = importlib.import_module("jax.numpy").asarray
    return f"{version}, {_run('cuda', make)}"


# }}}
