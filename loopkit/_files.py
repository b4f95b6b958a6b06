"""Files that are written as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

UNFINISHED = ".loopkit-new-"
"""How the names of files begin that somebody is writing, or has left half written."""


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
