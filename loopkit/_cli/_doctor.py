"""``loopkit doctor``: reports what is installed, tries what works, and advises on the rest."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopkit._cli._output import Output
from loopkit._errors import LoopkitError, MissingDependencyError
from loopkit._execute import EXECUTORS, best_executor
from loopkit._frozen import dataclass
from loopkit._host.compiler import need_compiler
from loopkit._run import driver

Status = Literal["ok", "missing", "broken"]

CUDA_EXTRA = "pip install 'loopkit[cuda]'"

#: The packages that loopkit cannot do without.
REQUIRED = ("islpy", "pymbolic", "numpy", "ml_dtypes", "platformdirs", "click", "rich")
STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


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
        except LoopkitError as error:
            status: Status = "missing" if isinstance(error, MissingDependencyError) else "broken"
            fix = error.instead or self.fix
            return Finding(self.name, status, error.why, fix, self.required)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".strip().rstrip(":")
            return Finding(self.name, "broken", said, self.fix, self.required)


def probes() -> Iterator[Probe]:
    """Everything that is looked at, in the order in which it is worth reading."""
    yield Probe("Python", _python, required=True)
    yield Probe("loopkit", _loopkit, required=True)
    for package in REQUIRED:
        look = functools.partial(_package, package)
        yield Probe(package, look, required=True, fix=f"pip install --upgrade {package}")
    yield Probe("isl", _isl, required=True, fix="pip install --force-reinstall islpy")
    yield Probe("text to CUDA C", _text_to_source, required=True)
    yield Probe("reference executor", functools.partial(_run, "reference"), required=True)
    yield Probe("C++ compiler", _compiler)
    yield Probe("host executor", functools.partial(_run, "host"))
    yield Probe("cuda-python", _cuda_python, fix="pip install cuda-python")
    yield Probe("NVRTC", _nvrtc, fix=CUDA_EXTRA)
    yield Probe("nvdisasm", functools.partial(_cuda_tool, "nvdisasm"), fix=CUDA_EXTRA)
    yield Probe("cuobjdump", functools.partial(_cuda_tool, "cuobjdump"), fix=CUDA_EXTRA)
    yield Probe("GPU", _gpu)
    yield Probe("cuda executor", _cuda)
    yield Probe("cache", _cache)
    for library in ("torch", "cupy", "jax", "numba"):
        yield Probe(f"{library} arrays", functools.partial(_interop, library))


def diagnose() -> list[Finding]:
    """Look at everything."""
    return [probe.run() for probe in probes()]


def doctor(*, as_json: bool) -> int:
    """Print what was found; the exit code is 1 where something required is broken."""
    output = Output()
    # What the libraries that are tried print must not mix with the findings.
    with output.working("trying everything"), contextlib.redirect_stdout(sys.stderr):
        findings = diagnose()
    fatal = any(finding.fatal for finding in findings)
    if as_json:
        answer = {"ok": not fatal, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(answer, indent=2))
    else:
        show(output, findings)
    return 1 if fatal else 0


def show(output: Output, findings: Sequence[Finding]) -> None:
    """A line for each finding, and a summary of what runs here."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        line = f"{finding.status:<8} {finding.name:<{width}}  {finding.detail}"
        output.text(line, style=STYLES[finding.status])
        if finding.status != "ok" and finding.fix:
            output.text(f"{'':8} {'':{width}}  -> {finding.fix}")
    works = {finding.name for finding in findings if finding.status == "ok"}
    runs = [name for name in EXECUTORS if f"{name} executor" in works]
    output.text()
    output.text("Executors that work here: " + (", ".join(runs) or "none"))
    broken = [finding.name for finding in findings if finding.fatal]
    if broken:
        output.text("Broken, and loopkit needs it: " + ", ".join(broken), style="bold red")


def _python() -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _loopkit() -> str:
    version = _version("loopkit") or "a checkout that is not installed,"
    return f"{version} in {Path(__file__).resolve().parents[1]}"


def _imported(module: str, why: str = "not installed", instead: str = "") -> Any:
    """A module; raises :class:`MissingDependencyError` where it is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(why, instead=instead)
    return importlib.import_module(module)


def _package(package: str) -> str:
    _imported(package, instead=f"pip install {package}")
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
    for method in ("get", "copy_to_host", "cpu"):
        result = getattr(result, method)() if hasattr(result, method) else result
    if not np.array_equal(np.asarray(result), expected):
        raise RuntimeError("it computes wrong numbers")
    return "runs a small kernel and computes the right numbers"


def _compiler() -> str:
    found = need_compiler()
    first, _, _ = found.version.partition("\n")
    return f"{' '.join(found.command)}: {first}"


def _cuda_python() -> str:
    for module in ("cuda", "cuda.bindings.driver", "cuda.core"):
        _imported(module, instead="pip install cuda-python")
    names = ("cuda-python", "cuda-bindings", "cuda-core", "cuda-pathfinder")
    return ", ".join(f"{name} {_version(name)}" for name in names if _version(name))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _compile_something() -> tuple[str, bytes]:
    """The version of NVRTC and a cubin that it made."""
    from loopkit._run.nvrtc import nvrtc_version

    version = nvrtc_version()
    from cuda.core import Program, ProgramOptions

    source = 'extern "C" __global__ void doctor(float *a) { a[threadIdx.x] += 1.0f; }'
    program = Program(source, "c++", ProgramOptions(name="doctor.cu", arch="sm_80"))
    return version, bytes(program.compile("cubin").code)


def _nvrtc() -> str:
    from loopkit._run.nvrtc import UPGRADE, known_fault

    version, cubin = _compile_something()
    if fault := known_fault(version):
        raise LoopkitError(fault, instead=UPGRADE)
    return f"{version}, compiles ({len(cubin)} bytes for a small kernel)"


def _cuda_tool(name: str) -> str:
    from loopkit._run.nvrtc import disassemble, find_tool

    path = find_tool(name)
    try:
        _, cubin = _compile_something()
    except MissingDependencyError:
        return f"{path} (not tried: there is no NVRTC to make a binary)"
    if "EXIT" not in disassemble(cubin, (name,)):
        raise RuntimeError(f"{path} cannot disassemble: no machine code comes out")
    return f"{path}, disassembles"


def _gpu() -> str:
    try:
        driver.api()
    except driver.DriverError as error:
        raise MissingDependencyError(f"there is no GPU to use: {error.why}") from error
    if not driver.has_gpu():
        raise MissingDependencyError("there is a driver but no GPU")
    from cuda.core import Device

    names = [f"{one.name} (sm_{one.arch})" for one in map(Device, range(driver.device_count()))]
    version = driver.call("cuDriverGetVersion")
    return f"{', '.join(names)}; the driver knows CUDA {version // 1000}.{version % 1000 // 10}"


def _cuda() -> str:
    if not driver.has_gpu():
        raise MissingDependencyError("needs a GPU")
    return _run("cuda")


def _cache() -> str:
    from loopkit._cache.folder import root, usable

    try:
        top = root()
        if top is None:
            return "LOOPKIT_NO_CACHE is set: every process compiles everything again"
        folder = usable(top)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"loopkit")
    except OSError as error:
        raise LoopkitError(
            f"no cache can be kept: {error}",
            instead="make yourself the only owner of the folder, or name another one in "
            "LOOPKIT_CACHE_DIR; without a cache, every process compiles everything again",
        ) from error
    sizes = []
    for path in folder.rglob("*"):
        # Another process may be writing or clearing the cache.
        with contextlib.suppress(FileNotFoundError):
            sizes += [path.stat().st_size] if path.is_file() else []
    return f"{folder} can be written; {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def _interop(library: str) -> str:
    # Else JAX takes most of the GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    module = _imported(library, "not installed, and needed only for arrays of its own")
    version = _version(library) or getattr(module, "__version__", "")
    if not driver.has_gpu():
        if library != "torch":
            return f"{version} (not tried: there is no GPU)"
        return f"{version}, {_run(best_executor(), module.from_numpy)}"
    if library == "torch" and not module.cuda.is_available():
        return f"{version} (not tried: it was built without CUDA)"
    if library == "jax" and module.default_backend() != "gpu":
        return f"{version} (not tried: it was installed without CUDA)"
    make = {
        "torch": lambda array: module.as_tensor(array, device="cuda"),
        "cupy": lambda array: module.asarray(array),
        "numba": lambda array: _imported("numba.cuda").to_device(array),
        "jax": lambda array: module.numpy.asarray(array),
    }[library]
    return f"{version}, {_run('cuda', make)}"
