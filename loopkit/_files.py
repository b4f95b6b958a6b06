"""Files that are written as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from loopkit._errors import InvalidArgumentError, shown

UNFINISHED = ".loopkit-new-"
"""How the names of files begin that somebody is writing, or has left half written."""


def place_for(path: object, what: str) -> Path:
    """The path of a file that can be written, for what a user asks to have written there.

    Raises :class:`~loopkit.InvalidArgumentError` for a folder, for a file in a folder that does not
    exist, and for what is not a path.
    """
    why = "is not the path of a file"
    with contextlib.suppress(OSError, ValueError):  # a name may be too long, or hold a NUL
        if isinstance(path, (str, os.PathLike)):
            target = Path(path)
            if b"\0" in os.fsencode(target):
                raise ValueError
            if not target.is_dir() and target.absolute().parent.is_dir():
                return target
            why = "is a folder" if target.is_dir() else "is in no folder that exists"
    raise InvalidArgumentError(f"{what} cannot be written: {shown(path)} {why}")


def write_whole(
    path: Path, data: bytes, mode: int | None = None, *, keeps_theirs: bool = False
) -> None:
    """Put a file in its place, so that nobody ever sees half of it.

    ``mode`` are its permissions, those of any new file where it is None.  With ``keeps_theirs``,
    a file that Windows does not let go of, since somebody reads it, stays as it is.  Raises
    :class:`OSError`; then there is no file, or the old one.
    """
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_mask() if mode is None else mode)
        try:
            os.replace(temporary, path)
        except PermissionError:
            if os.name != "nt" or not keeps_theirs:
                raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _mask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
