"""What is compiled for the CPU: built once for all processes, and loaded from where it lies."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from loopkit import _cache
from loopkit._errors import CompileError
from loopkit._frozen import dataclass
from loopkit._host.compiler import HERE

_KIND = "host"
_PART = "binary"


def key_of(*parts: str) -> str:
    """A key for ``parts`` and for the C++ files that everything here is built from."""
    return _cache.key_of(_own_sources(), *parts)


@dataclass(frozen=True)
class Binary:
    """A library or a program: its bytes, and a file that begins with them."""

    key: str
    path: Path
    contents: bytes

    def load(self, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
        """The library, in this process."""
        try:
            return ctypes.CDLL(str(self.path), mode=mode)
        except OSError:  # removed meanwhile, or where nothing may be executed
            kept = _keep(self.key, self.contents)
        try:
            return ctypes.CDLL(str(kept), mode=mode)
        except OSError as error:
            raise CompileError(
                f"what was compiled for the CPU cannot be loaded: {error}"
            ) from error

    def file(self) -> Path:
        """A file that is there now: the cache's may have been removed."""
        return self.path if self.path.exists() else _keep(self.key, self.contents)


def binary(key: str, build: Callable[[Path], None]) -> Binary:
    """What is kept under ``key``, which ``build`` writes to a file if it is not there."""
    entry = _cache.load(_KIND, key)
    if entry is None or _PART not in entry.parts:
        contents = _built(build)
        entry = _cache.store(_KIND, key, {_PART: contents})
        if entry is None:
            return Binary(key, _keep(key, contents), contents)
    return Binary(key, entry.path, entry.parts[_PART])


def _built(build: Callable[[Path], None]) -> bytes:
    with _cache.working() as folder:
        output = folder / _PART
        build(output)
        if not output.exists():
            raise CompileError("the C++ compiler ended well, and wrote nothing")
        return output.read_bytes()


def _keep(key: str, contents: bytes) -> Path:
    """The binary in a file of this process's own."""
    folder = _cache.private()
    path = folder / key
    with _cache.writing():
        handle, made = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        os.chmod(made, 0o700)
        os.replace(made, path)
    return path


@functools.cache
def _own_sources() -> bytes:
    total = hashlib.sha256()
    for path in sorted((*HERE.glob("*.h"), *HERE.glob("*.cpp"))):
        total.update(path.name.encode())
        total.update(path.read_bytes())
    return total.digest()
