"""Folders for files that are executed later: where they are, and whether they can be trusted.

``LOOPKIT_CACHE_DIR`` says where the cache is, ``LOOPKIT_NO_CACHE=1`` that there is none.
What lies in a cache is executed, so that whoever may write there can run code as the
user.  A folder is used only where nobody can but the user and the owner of the machine:
it and all folders around it belong to them, and nobody else may write there.  Around it,
and only there, a folder may be open to all if it is sticky, as ``/tmp`` is: what is in it
cannot be replaced by others.  Links are followed first, and what they lead to is judged.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loopkit._called import warn_once
from loopkit._errors import CompileError

_REMEDY = "LOOPKIT_CACHE_DIR names another folder, LOOPKIT_NO_CACHE=1 does without."


class UntrustedError(OSError):
    """Others can write where binaries would be kept."""


def root() -> Path | None:
    """The folder of all caches; None if the environment says that there is none."""
    if os.environ.get("LOOPKIT_NO_CACHE", "") not in ("", "0"):
        return None
    named = os.environ.get("LOOPKIT_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    with contextlib.suppress(RuntimeError):  # newer versions raise it where there is no home
        usual = Path(platformdirs.user_cache_dir("loopkit", appauthor=False))
        if usual.is_absolute():
            return usual
    raise FileNotFoundError("there is no home directory to keep a cache in")


def find(kind: str) -> Path | None:
    """The folder of one kind of files, made if need be; None if there is none to be used.

    That is warned of once, unless it was asked for.
    """
    top: Path | None = None
    try:
        top = root()
        return None if top is None else usable(top / kind)
    except OSError as error:
        not_kept(top, error)
        return None


def usable(folder: Path) -> Path:
    """``folder`` without links on the way to it, made if need be; an `OSError` says why not."""
    _make(folder)
    real = Path(os.path.realpath(folder))
    if hasattr(os, "geteuid"):
        for place in (real, *real.parents):
            _check(place, os.lstat(place), is_around=place != real)
    return real


def is_mine(info: os.stat_result) -> bool:
    """Whether a file belongs to the user or the owner of the machine, who alone may write it."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid in _trusted() and not _others_write(info)


def not_kept(where: Path | None, error: OSError) -> None:
    """Warn, once, that nothing is kept."""
    why = error.strerror or str(error)
    place = error.filename2 or error.filename or where
    at = why if isinstance(error, UntrustedError) or place is None else f"{place}: {why}"
    warn_once("cache", f"compiled kernels are not kept: {at}. {_REMEDY}")


def _make(folder: Path) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was quicker
            os.mkdir(one, 0o700)


def _check(place: Path, info: os.stat_result, *, is_around: bool) -> None:
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(f"{place} is not a folder")
    if info.st_uid not in _trusted():
        raise UntrustedError(
            f"{place} belongs to another user (number {info.st_uid}), who could exchange them"
        )
    if _others_write(info) and not (is_around and info.st_mode & stat.S_ISVTX):
        raise UntrustedError(
            f"others may write in {place}, and so exchange them (chmod go-w {place} forbids it)"
        )


def _trusted() -> set[int]:
    # Where root's number means nothing, as in some containers, "/" has its owner all the same.
    return {os.geteuid(), 0, os.stat("/").st_uid}


def _others_write(info: os.stat_result) -> bool:
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and not _is_group_of_one(info)


def _is_group_of_one(info: os.stat_result) -> bool:
    """Whether the group is its owner's own, as many systems give one to each user."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(info.st_uid), grp.getgrgid(info.st_gid)
    except KeyError:
        return False
    is_own = owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name
    return is_own and set(group.gr_mem) <= {owner.pw_name}


_private: dict[int, Path] = {}


def private() -> Path:
    """A folder of this process alone, which goes when it ends."""
    mine = os.getpid()  # a process that was forked from this one makes its own
    if mine not in _private:
        with writing():
            made = Path(tempfile.mkdtemp(prefix="loopkit-"))
        if _private.setdefault(mine, made) is made:
            atexit.register(_remove, mine, made)
        else:  # another thread was quicker
            made.rmdir()
    return _private[mine]


def _remove(owner: int, folder: Path) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def working() -> Iterator[Path]:
    """A folder for temporary files, which goes afterwards."""
    with (
        writing(),
        tempfile.TemporaryDirectory(prefix="loopkit-", ignore_cleanup_errors=True) as made,
    ):
        yield Path(made)


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turn failures to write temporary files into an error that says what helps."""
    try:
        yield
    except OSError as error:
        raise CompileError(
            f"temporary files cannot be written: {error}",
            instead="TMPDIR names a folder with room for them",
        ) from error
