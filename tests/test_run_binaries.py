"""Compiling without a GPU, what binaries use, and the cache of them."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from _run_programs import AXPY_SOURCE, BIG_SHARED, MATMUL, axpy, loaded

from loopkit._errors import CompileError, MissingDependencyError, ResourceError
from loopkit._program import Program
from loopkit._run import cache, driver, nvrtc, once
from loopkit._run.module import check_grid, check_resources
from loopkit._run.resources import Resources, disassemble, from_log

ARCHS = ("sm_80", "sm_90a", "sm_100")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(nvrtc, "_compiled", type(nvrtc._compiled)())
    monkeypatch.setattr(cache, "_warned", False)
    monkeypatch.setattr(once, "given", {})
    yield tmp_path / "cache"


def entry(folder: Path) -> Path:
    (found,) = folder.glob("cuda/*/*.bin")
    return found


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("program", [MATMUL, axpy(frozenset("xy")), BIG_SHARED])
def test_compiles(program: Program, arch: str) -> None:
    made = nvrtc.compile_program(program, arch)
    assert made.cubin.startswith(b"\x7fELF")
    assert f".target {arch}" in made.ptx
    assert made.resources.registers > 0 and made.resources.spill_stores == 0
    assert made.resources.threads == 256
    assert made.resources.dynamic_shared == program.dynamic_shared
    assert str(made.resources).startswith(f"{arch}: 256 threads a block, ")


@pytest.mark.nvrtc
def test_headers_of_half_types() -> None:
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + AXPY_SOURCE
    source = source.replace("alpha * x[i]", "__bfloat162float(__float2bfloat16(alpha)) * x[i]")
    assert nvrtc.compile_program(dataclasses.replace(axpy(), source=source), "sm_90a").cubin


@pytest.mark.nvrtc
def test_compile_error_shows_the_numbered_source() -> None:
    bad = dataclasses.replace(axpy(), source=AXPY_SOURCE.replace("if (i < n)", "if (i < nn)"))
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_program(bad, "sm_80")
    text = str(caught.value)
    assert text.startswith(f"NVRTC {nvrtc.nvrtc_version()} rejects the source of axpy for sm_80")
    assert 'axpy.cu(5): error: identifier "nn" is undefined' in text
    assert "5 |     if (i < nn)" in text
    assert caught.value.source == bad.source


@pytest.mark.nvrtc
def test_a_compiler_that_is_known_to_be_wrong_is_named_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for version in ("13.2", "13.10", "14.0"):
            monkeypatch.setattr(nvrtc, "nvrtc_version", lambda version=version: version)
            nvrtc.compile_program(axpy(), "sm_80")
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: "13.0")
    with pytest.warns(RuntimeWarning, match="NVRTC 13.0 .*wrong addresses.*: pip install") as said:
        nvrtc.compile_program(axpy(), "sm_80")
        nvrtc.compile_program(MATMUL, "sm_80")
    assert [warning.filename for warning in said] == [__file__]


@pytest.mark.nvrtc
def test_unknown_architecture() -> None:
    with pytest.raises(CompileError, match="does not compile for sm_12") as caught:
        nvrtc.compile_program(axpy(), "sm_12")
    assert "sm_90" in caught.value.instead


@pytest.mark.nvrtc
def test_machine_code() -> None:
    cubin = nvrtc.compile_program(axpy(), "sm_90a").cubin
    try:
        text = disassemble(cubin)
    except MissingDependencyError:
        pytest.skip("neither nvdisasm nor cuobjdump is installed")
    assert "FFMA" in text


LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 388 bytes cmem[0]
ptxas info    : Compiling entry function 'axpy' for 'sm_80'
ptxas info    : Function properties for axpy
    40 bytes stack frame, 36 bytes spill stores, 72 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 40 bytes cumulative stack size, 1024 bytes smem
"""


@pytest.mark.parametrize(
    ("static", "dynamic", "asked"),
    [(0, 0, 0), (20, 0, 12), (48 * 1024 - 4, 0, 4), (1024, 512, 512), (0, 80_004, 80_016)],
)
def test_the_shared_memory_of_a_block_ends_at_a_whole_16_bytes(
    static: int, dynamic: int, asked: int
) -> None:
    """The compiler reads the last element of ``int a[5]`` with what is behind it."""
    program = dataclasses.replace(axpy(), static_shared=static, dynamic_shared=dynamic)
    assert loaded(program, None, 1).dynamic_shared == asked


def test_resources_from_the_log() -> None:
    found = from_log(LOG, dataclasses.replace(axpy(), dynamic_shared=512), "sm_80")
    assert found == Resources("sm_80", 64, 1024, 512, 40, 36, 72, 256)
    assert str(found) == (
        "sm_80: 256 threads a block, 64 registers a thread, "
        "1536 bytes of shared memory (512 of them dynamic) a block, "
        "40 bytes of stack a thread, 36 bytes spilled, 72 reloaded"
    )
    with pytest.raises(CompileError, match="did not report"):
        from_log("", axpy(), "sm_80")


def test_too_large_for_any_device() -> None:
    big = dataclasses.replace(axpy(), block=(32, 64, 1))
    with pytest.raises(ResourceError) as caught:
        check_resources(big, driver.Limits(), "the device")
    assert str(caught.value) == (
        "axpy has blocks of 32 x 64 x 1 = 2048 threads, but the device has at most 1024 threads "
        "a block\nmake the inames tagged l.0, l.1 and l.2 shorter"
    )
    with pytest.raises(ResourceError, match="65 threads along axis 2"):
        check_resources(dataclasses.replace(axpy(), block=(1, 1, 65)), driver.Limits(), "it")
    hungry = dataclasses.replace(axpy(), dynamic_shared=300 * 1024)
    with pytest.raises(ResourceError) as caught:
        check_resources(hungry, driver.Limits(), "the device")
    assert str(caught.value) == (
        "axpy uses 307200 bytes of shared memory a block, but the device has at most 232448\n"
        "make the tiles in shared memory smaller"
    )
    with pytest.raises(ResourceError, match="needs 70000 blocks along axis 1"):
        check_grid(axpy(), (1, 70000, 1), driver.Limits())


@pytest.mark.nvrtc
def test_cached_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_program(axpy(), "sm_80")
    nvrtc._compiled.clear()
    monkeypatch.setattr(nvrtc, "_compile", None)  # compiling again would fail
    again = nvrtc.compile_program(axpy(), "sm_80")
    assert (again.cubin, again.ptx, again.log) == (first.cubin, first.ptx, first.log)
    assert again.resources == first.resources


@pytest.mark.nvrtc
@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "empty", "other"])
def test_damaged_entries_are_rebuilt(folder: Path, damage: str) -> None:
    first = nvrtc.compile_program(axpy(), "sm_80")
    path = entry(folder)
    data = path.read_bytes()
    damaged = {
        "truncate": data[: len(data) // 2],
        "flip": data[:-10] + bytes([data[-10] ^ 1]) + data[-9:],
        "foreign": b"something else entirely",
        "empty": b"",
        "other": None,
    }[damage]
    if damaged is None:  # a whole entry, but of another key
        cache.store(cache.key_of("another"), {"cubin": b"1", "ptx": b"2", "log": b"3"})
        (other,) = set(folder.glob("cuda/*/*.bin")) - {path}
        damaged = other.read_bytes()
        other.unlink()
    path.write_bytes(damaged)
    nvrtc._compiled.clear()
    assert nvrtc.compile_program(axpy(), "sm_80").ptx == first.ptx
    assert cache.load(f"{path.parent.name}{path.stem}") is not None


def test_key_depends_on_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {cache.key_of("ab", "c"), cache.key_of("a", "bc"), cache.key_of("abc")}
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    keys.add(cache.key_of("ab", "c"))
    assert len(keys) == 4


def test_no_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPKIT_NO_CACHE", "1")
    cache.store(cache.key_of("x"), {"a": b"1"})
    assert cache.load(cache.key_of("x")) is None and not folder.exists()


def test_unwritable_directory_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept"):
        cache.store(cache.key_of("x"), {"a": b"1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(cache.key_of("x"), {"a": b"1"})
    assert cache.load(cache.key_of("x")) is None


def _hammer(folder: str, number: int) -> bool:
    os.environ["LOOPKIT_CACHE_DIR"] = folder
    key = cache.key_of("shared")
    for i in range(100):
        cache.store(key, {"a": bytes([number]) * 5000, "b": bytes([i])})
        parts = cache.load(key)
        if parts is None or len(set(parts["a"])) != 1 or len(parts["a"]) != 5000:
            return False
    return True


def test_concurrent_processes(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        assert all(pool.starmap(_hammer, [(str(folder), i) for i in range(3)]))
    assert not list(folder.glob("cuda/*/.new-*"))
