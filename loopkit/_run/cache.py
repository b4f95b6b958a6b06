"""A cache of binaries on disk that may be cut short, shared and deleted at any time.

An entry is one file: a magic word, a digest of all that follows, a line of JSON, and
the bytes themselves.  It is written beside its place and moved there, so that nobody
sees half of one; whatever does not match its digest counts as absent and is written
anew.  ``LOOPKIT_CACHE_DIR`` says where the cache is, ``LOOPKIT_NO_CACHE=1`` that there
is none; a directory that cannot be written means no cache, and one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

#: Part of every key: count up when the meaning or the format of entries changes.
FORMAT = 1
_MAGIC = b"loopkit binary\n"
_DIGEST = hashlib.sha256().digest_size

_warned = False
_lock = threading.Lock()


def cache_root() -> Path | None:
    """The directory of all caches; None if the environment says that there is none."""
    if os.environ.get("LOOPKIT_NO_CACHE", "") not in ("", "0"):
        return None
    named = os.environ.get("LOOPKIT_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("loopkit", appauthor=False))


def key_of(*parts: str) -> str:
    """A name for what is made of exactly these texts."""
    hasher = hashlib.sha256(f"loopkit {FORMAT}".encode())
    for part in parts:
        encoded = part.encode()
        hasher.update(len(encoded).to_bytes(8, "little"))
        hasher.update(encoded)
    return hasher.hexdigest()


def _path(root: Path, key: str) -> Path:
    return root / "cuda" / key[:2] / f"{key[2:]}.bin"


def load(key: str) -> dict[str, bytes] | None:
    """The parts stored under ``key``, or None where there is no entry or a broken one."""
    root = cache_root()
    if root is None:
        return None
    try:
        data = _path(root, key).read_bytes()
    except OSError:
        return None
    return _decode(key, data)


def _decode(key: str, data: bytes) -> dict[str, bytes] | None:
    start = len(_MAGIC) + _DIGEST
    if not data.startswith(_MAGIC) or len(data) < start:
        return None
    body = memoryview(data)[start:]
    if hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        return None
    head, _, payload = data[start:].partition(b"\n")
    try:
        header = json.loads(head)
        if header["key"] != key or header["format"] != FORMAT:
            return None
        parts, at = {}, 0
        for name, length in header["parts"]:
            parts[name] = payload[at : at + length]
            at += length
        return parts if at == len(payload) else None
    except (ValueError, KeyError, TypeError):
        return None


def store(key: str, parts: Mapping[str, bytes]) -> None:
    """Keep ``parts`` under ``key``, if there is a cache that can be written."""
    root = cache_root()
    if root is None:
        return
    header = {
        "key": key,
        "format": FORMAT,
        "parts": [(name, len(part)) for name, part in parts.items()],
    }
    body = json.dumps(header).encode() + b"\n" + b"".join(parts.values())
    data = _MAGIC + hashlib.sha256(body).digest() + body
    try:
        _write(_path(root, key), data)
    except OSError as error:
        _warn(root, error)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # On Windows a reader in another process can hold the old file: theirs is as good.
        with contextlib.suppress(PermissionError):
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _warn(root: Path, error: OSError) -> None:
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    warnings.warn(
        f"compiled kernels are not kept: {root} cannot be written ({error.strerror or error}). "
        "LOOPKIT_CACHE_DIR names another directory, LOOPKIT_NO_CACHE=1 does without.",
        RuntimeWarning,
        stacklevel=2,
    )
