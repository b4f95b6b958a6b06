"""Entries of the cache: what was compiled under some key, in one file.

A file holds its parts, a line of JSON with their names and lengths, and a digest of all that
and of the key.  The parts stand first, so that a library is loaded from where it is
kept: loaders ignore what follows it.  An entry is written beside its place and moved
there, so that nobody sees half of one.  Whatever is not exactly what was stored under its
key, be it cut short, changed, another entry, or no file at all, counts as absent, and the
next one to need it puts it there anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from loopkit._cache import folder as _folder
from loopkit._files import UNFINISHED, write_whole
from loopkit._frozen import dataclass

#: Part of every key: count up when the meaning or the format of entries changes.
FORMAT = 3
#: No entry is larger; what is, was not written by us, and is not read.
LARGEST = 1 << 28
#: After so many seconds nobody is going to finish what they began to write.
STALE = 3600.0

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Entry:
    """What was found: the parts by name, and the file, which begins with the first of them."""

    path: Path
    parts: dict[str, bytes]


def key_of(*parts: str | bytes) -> str:
    """A name for what is made of exactly these texts."""
    hasher = hashlib.sha256(f"loopkit {FORMAT}".encode())
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        hasher.update(len(encoded).to_bytes(8, "little"))
        hasher.update(encoded)
    return hasher.hexdigest()


def load(kind: str, key: str) -> Entry | None:
    """What is stored under ``key``; None where there is nothing, or something else."""
    place = _folder.find(kind)
    if place is None:
        return None
    path = place / key
    data = _read(path)
    parts = None if data is None else _decode(f"{kind}/{key}", data)
    return None if parts is None else Entry(path, parts)


def store(kind: str, key: str, parts: Mapping[str, bytes]) -> Entry | None:
    """Keep ``parts`` under ``key``; None, and one warning, where that cannot be."""
    place = _folder.find(kind)
    if place is None:
        return None
    try:
        _clean(place)
        write(place / key, _encode(f"{kind}/{key}", parts))
    except OSError as error:
        _folder.not_kept(place, error)
        return None
    return Entry(place / key, dict(parts))


def _encode(name: str, parts: Mapping[str, bytes]) -> bytes:
    lengths = json.dumps({part: len(data) for part, data in parts.items()})
    body = b"".join((*parts.values(), b"\n", lengths.encode()))
    return body + _digest(name, body)


def _decode(name: str, data: bytes) -> dict[str, bytes] | None:
    body = memoryview(data)[:-_DIGEST]
    if data[len(body) :] != _digest(name, body):
        return None
    start = data.rindex(b"\n", 0, len(body))
    parts, at = {}, 0
    for part, length in json.loads(data[start : len(body)]).items():
        parts[part] = data[at : at + length]
        at += length
    return parts


def _digest(name: str, body: bytes | memoryview) -> bytes:
    hasher = hashlib.sha256(f"{name}\n".encode())
    hasher.update(body)
    return hasher.digest()


def _read(path: Path) -> bytes | None:
    """The bytes of a plain file that is the user's; None of anything else."""
    # A pipe in its place would be waited for otherwise, and a link leads anywhere.
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    try:
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            is_plain = stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST
            return file.read(LARGEST) if is_plain and _folder.is_mine(info) else None
    except OSError:
        return None


def write(path: Path, data: bytes) -> None:
    """Put a file in its place as a whole, for its owner alone: some are programs."""
    write_whole(path, data, 0o700, keeps_theirs=True)


@functools.cache
def _clean(place: Path) -> None:
    """Remove what processes that were killed have left half written, once in each process."""
    oldest = time.time() - STALE
    for name in os.listdir(place):
        if name.startswith(UNFINISHED):
            with contextlib.suppress(OSError):
                if os.lstat(place / name).st_mtime < oldest:
                    os.unlink(place / name)
