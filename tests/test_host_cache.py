"""The host executor's disk cache: shared, verified, rebuilt when it is damaged."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from _run_process import in_a_process
from host_kernels import VECTOR_ADD, array, program
from seams import Program, compile_host, compiler, entries, find_compiler, folder
from seams import host_launch as launch
from seams import once as _once

from loopkit import CompileError, MissingDependencyError

pytestmark = pytest.mark.host

SOURCE = 'extern "C" __global__ void kernel(float *c) { c[threadIdx.x] = NUMBERf; }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    runtime()  # from the user's own cache: it takes seconds to compile
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("LOOPKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(launch, "_modules", {})
    monkeypatch.setattr(_once, "warned", {})
    entries._clean.cache_clear()
    yield tmp_path


@functools.cache
def runtime() -> None:
    launch._load_runtime(compiler.need_compiler())


def source_writing(number: float) -> Program:
    return program(SOURCE.replace("NUMBER", str(number)), array("c", written=True))


def kernel_writing(number: float) -> float:
    c = np.zeros(64, np.float32)
    compile_host(source_writing(number)).launch([c], (1, 1, 1))
    return float(c[0])


def entries_in(cache: Path) -> list[Path]:
    return sorted((cache / "host").iterdir())


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    builds: list[str] = []
    build = compiler.Compiler.build_kernel

    def counted(self, text, output, **more):  # type: ignore[no-untyped-def]
        builds.append(text)
        build(self, text, output, **more)

    monkeypatch.setattr(compiler.Compiler, "build_kernel", counted)
    return builds


def test_built_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = count_builds(monkeypatch)
    assert kernel_writing(2.5) == 2.5
    assert kernel_writing(2.5) == 2.5
    launch._modules.clear()  # what another process would start with
    assert kernel_writing(2.5) == 2.5
    before = len(entries_in(own_cache))
    assert len(builds) == 1
    assert kernel_writing(3.5) == 3.5
    assert len(builds) == 2 and len(entries_in(own_cache)) == before + 1


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "foreign": lambda data: b"not a library at all",
    "overwritten": lambda data: data[:2000] + b"\xa5" * 100 + data[2100:],
    "one bit": lambda data: data[:5000] + bytes([data[5000] ^ 16]) + data[5001:],
}


def only_entry(cache: Path, before: set[Path]) -> Path:
    [entry] = set(entries_in(cache)) - before
    return entry


@pytest.mark.parametrize("damage", [*DAMAGE.values()], ids=[*DAMAGE])
def test_a_damaged_entry_is_rebuilt(
    damage: Callable[[bytes], bytes], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_cache / "host").mkdir(exist_ok=True)
    before = set(entries_in(own_cache))
    kernel_writing(4.5)
    entry = only_entry(own_cache, before)
    good = entry.read_bytes()
    # Replaced, not overwritten: this process has the good one mapped.
    entry.unlink()
    entry.write_bytes(damage(good))
    launch._modules.clear()
    builds = count_builds(monkeypatch)
    assert kernel_writing(4.5) == 4.5
    assert len(builds) == 1
    assert len(entry.read_bytes()) == len(good)


def test_entries_that_were_exchanged_are_rebuilt(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_cache / "host").mkdir(exist_ok=True)
    before = set(entries_in(own_cache))
    kernel_writing(1.25)
    one = only_entry(own_cache, before)
    kernel_writing(2.25)
    other = only_entry(own_cache, {*before, one})
    one.rename(own_cache / "kept")
    other.rename(one)
    (own_cache / "kept").rename(other)
    launch._modules.clear()
    builds = count_builds(monkeypatch)
    assert [kernel_writing(1.25), kernel_writing(2.25)] == [1.25, 2.25]
    assert len(builds) == 2


def test_an_entry_that_is_removed_before_it_is_loaded() -> None:
    made = compile_host(source_writing(6.5))
    kept = made.path.read_bytes()
    made.path.unlink()
    binary = compiler.Binary("a-key", made.path, kept)
    assert binary.load().lk_entry
    assert binary.file().read_bytes() == kept
    with pytest.raises(CompileError, match="cannot be loaded"):
        compiler.Binary("another", made.path.parent / "gone", b"no library").load()


def test_the_sanitizers_run_what_the_cache_has_lost(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as usual:
        usual.delenv("LOOPKIT_CACHE_DIR")
        driver = compiler.need_compiler().driver()
    monkeypatch.setattr(compiler.Compiler, "driver", lambda self: driver)
    module = compile_host(source_writing(7.5), sanitize=True)
    c = np.zeros(64, np.float32)
    module.launch([c], (1, 1, 1))
    shutil.rmtree(own_cache / "host")
    c[:] = 0
    module.launch([c], (1, 1, 1))
    assert (c == 7.5).all()


def unusable(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the cache one that cannot be used; what the warning says, if there is one."""
    if name == "a file":
        blocked = cache / "file"
        blocked.write_text("in the way")
        monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(blocked))
        return "file"
    if name == "not wanted":
        monkeypatch.setenv("LOOPKIT_NO_CACHE", "1")
        return ""
    if name == "open to all":
        cache.chmod(0o777)
        return "others may write"

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(entries, "write", full)
    return "No space left"


@pytest.mark.parametrize("name", ["a file", "not wanted", "open to all", "full"])
def test_a_cache_that_cannot_be_used_costs_one_warning(
    name: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = unusable(name, own_cache, monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [kernel_writing(x) for x in (5.5, 6.25, 5.5)] == [5.5, 6.25, 5.5]
    assert len(said) == bool(expected)
    assert all(expected in str(one.message) and one.filename == __file__ for one in said)
    assert not [p for p in own_cache.rglob("*") if p.is_file() and p.name != "file"]


@pytest.mark.skipif("os.geteuid() != 0", reason="only root can mount a small disk")
def test_a_disk_that_is_full_in_earnest(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = own_cache / "small"
    small.mkdir(0o700)
    monkeypatch.delenv("LOOPKIT_CACHE_DIR")
    code = f"""
        import ctypes, os, warnings
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
            print("cannot"), os._exit(0)
        if libc.mount(b"tmpfs", {str(small)!r}.encode(), b"tmpfs", 0, b"size=8k,mode=700"):
            print("cannot"), os._exit(0)
        import test_host_cache as t
        t.runtime()
        os.environ["LOOPKIT_CACHE_DIR"] = {str(small)!r}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print(t.kernel_writing(1.5), t.kernel_writing(2.5))
        print(len(said), "No space left" in str(said[0].message))
        print(os.listdir({str(small)!r} + "/host"))
    """
    done = in_a_process(code)
    if done.stdout == "cannot\n":
        pytest.skip("nothing can be mounted here")
    assert done.stdout == "1.5 2.5\n1 True\n[]\n", done.stderr


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    assert find_compiler() is None
    with pytest.raises(MissingDependencyError, match="apt install g\\+\\+"):
        compile_host(VECTOR_ADD)


def test_the_environment_chooses_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env g++")
    assert find_compiler() == "env g++"


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ("no-such-compiler", "there is no program 'no-such-compiler'"),
        ("g++ 'x", "no command: No closing quotation"),
        ('"', "no command: No closing quotation"),
        ("''", "there is no program ''"),
    ],
)
def test_a_compiler_that_is_none(chosen: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", chosen)
    with pytest.warns(RuntimeWarning, match=f"CXX is .*{why}; (g|clang|c)\\+\\+ is used instead"):
        assert find_compiler() in ("g++", "clang++", "c++")
    assert kernel_writing(8.5) == 8.5  # and nothing is said again


def test_compilers_that_vanish_or_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own-compiler"
    own.write_text("#!/bin/sh\necho own 1.0\n")
    own.chmod(0o755)
    monkeypatch.setenv("CXX", str(own))
    with pytest.raises(CompileError, match="wrote nothing"):
        kernel_writing(9.5)
    found = compiler.need_compiler()
    own.unlink()
    with pytest.raises(CompileError, match="cannot be run"):
        found.build_kernel("", tmp_path / "out", sanitize=False, source="")


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(CompileError, match="TMPDIR names a folder"):
        kernel_writing(10.5)
