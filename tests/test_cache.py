"""The cache of binaries: what is not exactly what was stored there is absent."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import socket
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from seams import cache as _cache
from seams import entries, folder
from seams import files as _files
from seams import once as _once

from loopkit import CompileError

KEY = _cache.key_of("x")
PARTS = {"first": b"\x7fELF" + bytes(3000), "second": b"", "third": b"text\n"}
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are POSIX's")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(_once, "warned", {})
    entries._clean.cache_clear()
    yield tmp_path / "cache"


def stored() -> Path:
    entry = _cache.store("host", KEY, PARTS)
    assert entry is not None
    return entry.path


def is_there() -> bool:
    entry = _cache.load("host", KEY)
    assert entry is None or entry.parts == PARTS
    return entry is not None


def test_stored_and_found(place: Path) -> None:
    assert not is_there()
    path = stored()
    assert is_there() and path.read_bytes().startswith(PARTS["first"])
    assert [p.name for p in (place / "host").iterdir()] == [KEY]
    assert _cache.load("cuda", KEY) is None and _cache.load("host", _cache.key_of("y")) is None


def test_the_key_depends_on_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {_cache.key_of("ab", "c"), _cache.key_of("a", "bc"), _cache.key_of("abc")}
    monkeypatch.setattr(entries, "FORMAT", entries.FORMAT + 1)
    keys.add(_cache.key_of("ab", "c"))
    assert len(keys) == 4


# {{{ entries that are no entries


def _other(path: Path) -> None:
    entry = _cache.store("host", _cache.key_of("another"), {"first": b"1"})
    assert entry is not None
    os.replace(entry.path, path)


def _of_another_executor(path: Path) -> None:
    entry = _cache.store("cuda", path.name, {"first": b"1"})
    assert entry is not None
    os.replace(entry.path, path)


def _flip(at: int) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return flip


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _huge(path: Path) -> None:
    with open(path, "ab") as file:
        file.truncate(entries.LARGEST + 1)


def _socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(before)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:1000]),
    "cut by one": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "longer in front": lambda path: path.write_bytes(b"\n" + path.read_bytes()),
    "foreign": lambda path: path.write_bytes(b"something else entirely"),
    "another key's": _other,
    "another executor's": _of_another_executor,
    "huge": _huge,
    **{f"bit {at}": _flip(at) for at in (0, 1500, 3004, 3050, -1, -17, -40, -50, -56)},
}
IN_PLACE: dict[str, Callable[[Path], None]] = {
    "pipe": _replaced(os.mkfifo if hasattr(os, "mkfifo") else Path.mkdir),
    "link": _replaced(lambda path: path.symlink_to(shutil.copy(__file__, path.parent / "there"))),
    "link to itself": _replaced(lambda path: path.symlink_to(path)),
    "socket": _replaced(_socket),
}


@pytest.mark.parametrize("damage", [*DAMAGE.values()], ids=[*DAMAGE])
def test_what_is_damaged_is_absent_and_stored_anew(damage: Callable[[Path], object]) -> None:
    damage(stored())
    assert not is_there()
    stored()
    assert is_there()


@posix
@pytest.mark.parametrize("put", [*IN_PLACE.values()], ids=[*IN_PLACE])
def test_what_is_no_plain_file_is_replaced(put: Callable[[Path], None]) -> None:
    put(stored())
    assert not is_there()
    stored()
    assert is_there()


def test_a_folder_in_the_place_of_an_entry_is_warned_of() -> None:
    path = stored()
    path.unlink()
    path.mkdir()
    assert not is_there()
    with pytest.warns(RuntimeWarning, match=f"not kept: .*{KEY}: .*LOOPKIT_NO_CACHE=1"):
        assert _cache.store("host", KEY, PARTS) is None


@posix
def test_a_link_to_a_good_entry_is_not_followed(place: Path) -> None:
    path = stored()
    path.rename(place / "moved")
    path.symlink_to(place / "moved")
    assert not is_there()


# }}}

# {{{ folders


def test_no_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPKIT_NO_CACHE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _cache.store("host", KEY, PARTS) is None
    assert not is_there() and not place.exists()


def expect_one_warning(match: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"compiled kernels are not kept: .*{match}"):
        assert _cache.store("host", KEY, PARTS) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _cache.store("host", KEY, PARTS) is None
        assert not is_there()


def test_a_file_in_the_way(place: Path) -> None:
    place.write_text("not a folder")
    expect_one_warning("cache")


@posix
def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    for name in ("LOOPKIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(number: int) -> object:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    expect_one_warning("home")
    assert not Path("~").exists()


@posix
def test_folders_are_made_for_the_user_alone(place: Path) -> None:
    old = os.umask(0)
    try:
        path = stored()
    finally:
        os.umask(old)
    for made in (place, path.parent, path):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize("which", ["cache", "cache/host", "."])
@pytest.mark.parametrize("mode", [0o777, 0o722, 0o720])
def test_folders_that_others_may_write_are_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch, which: str, mode: int
) -> None:
    monkeypatch.setattr(folder, "_is_group_of_one", lambda info: False)
    stored()
    (place.parent / which).chmod(mode)
    expect_one_warning(r"others may write in .*\(chmod go-w ")


@posix
def test_a_folder_of_the_user_within_one_that_is_sticky(place: Path) -> None:
    place.parent.chmod(0o1777)
    stored()
    assert is_there()
    place.chmod(0o1777)  # others may then add to it
    assert is_there()
    (place / "host").chmod(0o1777)
    expect_one_warning("others may write in .*host")


@posix
def test_a_group_of_one_is_the_user() -> None:
    import grp
    import pwd

    mine = pwd.getpwuid(os.geteuid())
    own = os.stat_result((0o40770, 0, 0, 0, mine.pw_uid, mine.pw_gid, 0, 0, 0, 0))
    group = grp.getgrgid(mine.pw_gid)
    alone = group.gr_name == mine.pw_name and set(group.gr_mem) <= {mine.pw_name}
    assert folder._is_group_of_one(own) == alone
    nowhere = os.stat_result((0o40770, 0, 0, 0, mine.pw_uid, 4_000_001, 0, 0, 0, 0))
    assert not folder._is_group_of_one(nowhere)


@posix
@pytest.mark.skipif("os.geteuid() != 0", reason="only root can give files away")
@pytest.mark.parametrize("which", ["cache", "cache/host"])
def test_folders_of_others_are_not_used(place: Path, which: str) -> None:
    stored()
    os.chown(place.parent / which, 12345, -1)
    expect_one_warning("belongs to another user")


@posix
@pytest.mark.parametrize("damage", [lambda p: p.chmod(0o722), lambda p: os.chown(p, 12345, -1)])
def test_files_that_others_may_write_are_absent(damage: Callable[[Path], None]) -> None:
    path = stored()
    try:
        damage(path)
    except PermissionError:
        pytest.skip("only root can give files away")
    assert not is_there()
    stored()
    assert is_there()


@posix
def test_a_link_is_judged_by_where_it_leads(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = place.parent / "open"
    (open_to_all / "mine").mkdir(parents=True)
    open_to_all.chmod(0o777)
    place.symlink_to(open_to_all / "mine")
    expect_one_warning("others may write in .*open")
    place.unlink()
    (place.parent / "safe").mkdir(0o700)
    place.symlink_to(place.parent / "safe")
    assert stored() == place.parent / "safe" / "host" / KEY
    assert is_there()


@posix
def test_a_cache_that_can_only_be_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored()

    def read_only(*args: object, **more: object) -> object:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(_files.tempfile, "mkstemp", read_only)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_there()
    with pytest.warns(RuntimeWarning, match="not kept: .*Read-only"):
        assert _cache.store("host", KEY, PARTS) is None
    assert is_there()


# }}}

# {{{ what goes wrong meanwhile


def test_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, handle: int, mode: str) -> None:
            os.close(handle)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *why: object) -> None:
            pass

        def write(self, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(entries.os, "fdopen", Full)
        expect_one_warning("No space left")
    assert not list((place / "host").iterdir())
    stored()
    assert is_there()


def test_what_a_killed_process_left_goes_after_a_while(place: Path) -> None:
    stored()
    young, old = place / "host" / ".loopkit-new-young", place / "host" / ".loopkit-new-old"
    for path in (young, old):
        path.write_bytes(b"half an ent")
    os.utime(old, (time.time() - entries.STALE - 60,) * 2)
    entries._clean.cache_clear()  # what another process begins with
    stored()
    assert young.exists() and not old.exists() and is_there()


def _hammer(where: str, number: int) -> bool:
    os.environ["LOOPKIT_CACHE_DIR"] = where
    for i in range(100):
        _cache.store("host", KEY, {"a": bytes([number]) * 5000, "b": bytes([i])})
        entry = _cache.load("host", KEY)
        if entry is None or len(set(entry.parts["a"])) != 1 or len(entry.parts["a"]) != 5000:
            return False
    return True


def test_processes_that_store_at_once(place: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        assert all(pool.starmap(_hammer, [(str(place), i) for i in range(3)]))
    assert [p.name for p in (place / "host").iterdir()] == [KEY]


def test_temporary_files_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.tempfile, "tempdir", "/no/such/folder")
    monkeypatch.setattr(folder, "_private", {})
    for use in (_cache.private, lambda: _cache.working().__enter__()):
        with pytest.raises(CompileError, match=r"temporary files .*\n.*TMPDIR"):
            use()


def test_a_private_folder_is_its_own_process_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_private", {})
    made = _cache.private()
    assert made == _cache.private() and made.is_dir()
    folder._remove(os.getpid() + 1, made)  # as a process that was forked from this one ends
    assert made.is_dir()
    folder._remove(os.getpid(), made)
    assert not made.exists()


# }}}
