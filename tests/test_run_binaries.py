"""Compiling without a GPU, what binaries use, and the cache of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from _run_process import in_a_process
from _run_programs import AXPY_SOURCE, BIG_SHARED, MATMUL, axpy, loaded
from seams import (
    CUDA,
    Program,
    Resources,
    check_grid,
    check_resources,
    disassemble,
    from_log,
    nvrtc,
)
from seams import cache as _cache
from seams import once as _once

from loopkit import CompileError, MissingDependencyError, ResourceError

ARCHS = ("sm_80", "sm_90a", "sm_100")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LOOPKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPKIT_NO_CACHE", raising=False)
    nvrtc._compiled.cache_clear()
    monkeypatch.setattr(_once, "warned", {})
    yield tmp_path / "cache"


def entry(folder: Path) -> Path:
    (found,) = (folder / "cuda").iterdir()
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
def test_threads_may_compile_at_once() -> None:
    """Also the first time, when the libraries that compile are imported."""
    code = """
        from concurrent.futures import ThreadPoolExecutor
        from _run_programs import axpy
        from seams import nvrtc
        with ThreadPoolExecutor(4) as pool:
            archs = ("sm_80", "sm_86", "sm_89", "sm_90")
            print(len([*pool.map(lambda arch: nvrtc.compile_program(axpy(), arch), archs)]))
    """
    done = in_a_process(code)
    assert done.stdout == "4\n", done.stderr


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
        check_resources(big, CUDA, "the device")
    assert str(caught.value) == (
        "axpy has blocks of 32 x 64 x 1 = 2048 threads, but the device has at most 1024 threads "
        "a block\nmake the inames tagged l.0, l.1 and l.2 shorter"
    )
    with pytest.raises(ResourceError, match="65 threads along axis 2"):
        check_resources(dataclasses.replace(axpy(), block=(1, 1, 65)), CUDA, "it")
    hungry = dataclasses.replace(axpy(), dynamic_shared=300 * 1024)
    with pytest.raises(ResourceError) as caught:
        check_resources(hungry, CUDA, "the device")
    assert str(caught.value) == (
        "axpy uses 307200 bytes of shared memory a block, but the device has at most 232448\n"
        "make the tiles in shared memory smaller"
    )
    with pytest.raises(ResourceError, match="needs 70000 blocks along axis 1"):
        check_grid(axpy(), (1, 70000, 1), CUDA)


@pytest.mark.nvrtc
def test_cached_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_program(axpy(), "sm_80")
    nvrtc._compiled.cache_clear()
    monkeypatch.setattr(nvrtc, "_compile", None)  # compiling again would fail
    again = nvrtc.compile_program(axpy(), "sm_80")
    assert (again.cubin, again.ptx, again.log) == (first.cubin, first.ptx, first.log)
    assert again.resources == first.resources


@pytest.mark.nvrtc
def test_the_entry_of_another_kernel_is_not_taken(folder: Path) -> None:
    nvrtc.compile_program(MATMUL, "sm_80")
    other = entry(folder).rename(folder / "other")
    first = nvrtc.compile_program(axpy(), "sm_80")
    other.rename(entry(folder))
    nvrtc._compiled.cache_clear()
    assert nvrtc.compile_program(axpy(), "sm_80").ptx == first.ptx
    stored = _cache.load("cuda", entry(folder).name)
    assert stored is not None and stored.parts["cubin"] == first.cubin
