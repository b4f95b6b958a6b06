"""Compiled libraries on disk, shared by all processes of a user.

An entry is the file that the compiler wrote, followed by a digest of it (a
loader ignores what follows an ELF file).  An entry that is truncated or was
written by anything else does not match its digest and is built again.  Entries
appear by ``os.replace``, so nobody ever sees half of one; two processes that
build the same one at once both succeed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs

from loopkit._host.compiler import HERE

_MAGIC = b"loopkit1"


def digest(*parts: str | bytes) -> str:
    """A key for ``parts`` and for the C++ files that everything here is built from."""
    total = hashlib.sha256(_own_sources())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def cache_directory() -> Path:
    """Where compiled libraries lie: the user's cache, or a private temporary folder."""
    wanted = Path(platformdirs.user_cache_dir("loopkit")) / "host"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _private_directory()
    return wanted if os.access(wanted, os.W_OK) else _private_directory()


def cached(name: str, build: Callable[[Path], None]) -> tuple[Path, bytes]:
    """The path and the contents of entry ``name``, which ``build`` writes if need be."""
    directory = cache_directory()
    path = directory / name
    contents = _verified(path)
    if contents is not None:
        return path, contents
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=f".{name}-")
    os.close(handle)
    try:
        build(Path(temporary))
        contents = Path(temporary).read_bytes()
        with open(temporary, "ab") as file:
            file.write(_MAGIC + hashlib.sha256(contents).digest())
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path, contents


def _verified(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    split = len(data) - len(_MAGIC) - 32
    if split <= 0 or data[split : split + len(_MAGIC)] != _MAGIC:
        return None
    contents = data[:split]
    return contents if hashlib.sha256(contents).digest() == data[-32:] else None


@functools.cache
def _own_sources() -> bytes:
    total = hashlib.sha256()
    for path in sorted((*HERE.glob("*.h"), *HERE.glob("*.cpp"))):
        total.update(path.name.encode())
        total.update(path.read_bytes())
    return total.digest()


@functools.cache
def _private_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="loopkit-cache-"))
