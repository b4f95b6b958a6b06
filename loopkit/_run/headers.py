"""Where NVRTC finds ``cuda_fp16.h`` and its kin."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from loopkit import _cache
from loopkit._errors import MissingDependencyError

_PROBE = "cuda_fp16.h"


def include_options(source: str) -> tuple[str, ...]:
    """The options that make the headers of ``source`` known; none for none."""
    return (f"--include-path={include_directory()}",) if "#include" in source else ()


@functools.cache
def include_directory() -> str:
    """A directory with CUDA's headers, those that NVRTC itself carries before all others."""
    bundled = _bundled()
    if bundled is not None:
        return bundled
    for folder in _installed():
        if (folder / _PROBE).is_file():
            return str(folder)
    raise MissingDependencyError(
        f"{_PROBE}, which this kernel's types need, is not installed",
        instead="pip install --upgrade 'loopkit[cuda]' brings an NVRTC that has it inside; "
        "or set CUDA_HOME to a CUDA toolkit",
    )


def _bundled() -> str | None:
    from cuda.bindings import nvrtc

    install = getattr(nvrtc, "nvrtcInstallBundledHeaders", None)
    _, major, minor = nvrtc.nvrtcVersion()
    if install is None or (major, minor) < (13, 3):
        return None
    kept = _cache.find(f"headers-{major}.{minor}")
    if kept is not None and _install(install, kept):
        return str(kept)
    private = _cache.private() / "headers"
    return str(private) if _install(install, private) else None


def _install(install: object, folder: Path) -> bool:
    from cuda.bindings import nvrtc

    marker, header = folder / ".nvrtc_headers_version", folder / _PROBE
    if marker.is_file() and header.is_file():
        return True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return False
        # NVRTC itself locks the directory against other processes.
        status = nvrtc.nvrtcInstallBundledHeaders(os.fsencode(folder), 0)
    except (OSError, RuntimeError):
        return False
    return int(status[0]) == 0 and header.is_file()


def _installed() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "include"
    try:
        from cuda import pathfinder

        found = pathfinder.find_nvidia_header_directory("cudart")
        if found:
            yield Path(found)
    except (ImportError, AttributeError, RuntimeError):
        pass
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(place).glob("*/include"))
    yield Path("/usr/local/cuda/include")
