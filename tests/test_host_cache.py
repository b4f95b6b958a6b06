"""The host executor's disk cache: shared, verified, rebuilt when it is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from host_kernels import VECTOR_ADD, array, program

from loopkit._errors import MissingDependencyError
from loopkit._host import cache, compile_host, compiler, find_compiler, launch

pytestmark = pytest.mark.host

SOURCE = 'extern "C" __global__ void kernel(float *c) { c[threadIdx.x] = NUMBERf; }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(launch, "_modules", {})
    yield tmp_path


def kernel_writing(number: float) -> float:
    made = program(SOURCE.replace("NUMBER", str(number)), array("c", written=True))
    c = np.zeros(64, np.float32)
    compile_host(made).launch([c], (1, 1, 1))
    return float(c[0])


def entries() -> list[Path]:
    return sorted(cache.cache_directory().glob("[!.r]*.so"))


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    builds: list[str] = []
    build = compiler.Compiler.build_kernel

    def counted(self, text, output, **more):  # type: ignore[no-untyped-def]
        builds.append(text)
        build(self, text, output, **more)

    monkeypatch.setattr(compiler.Compiler, "build_kernel", counted)
    return builds


def test_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = count_builds(monkeypatch)
    assert kernel_writing(2.5) == 2.5
    assert kernel_writing(2.5) == 2.5
    launch._modules.clear()  # what another process would start with
    assert kernel_writing(2.5) == 2.5
    assert len(builds) == 1 and len(entries()) == 1
    assert kernel_writing(3.5) == 3.5
    assert len(builds) == 2 and len(entries()) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"not a library at all",
        lambda data: data[:2000] + b"\xa5" * 100 + data[2100:],
    ],
)
def test_a_damaged_entry_is_rebuilt(damage, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    kernel_writing(4.5)
    [entry] = entries()
    good = entry.read_bytes()
    # Replaced, not overwritten: this process has the good one mapped.
    entry.unlink()
    entry.write_bytes(damage(good))
    launch._modules.clear()
    builds = count_builds(monkeypatch)
    assert kernel_writing(4.5) == 4.5
    assert len(builds) == 1
    assert len(entry.read_bytes()) == len(good)


def test_processes_that_build_at_once(own_cache: Path) -> None:
    script = (
        "import test_host_cache as t\n"
        "assert [t.kernel_writing(x) for x in (1.5, 2.5, 3.5)] == [1.5, 2.5, 3.5]\n"
        "print('fine')\n"
    )
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parent), str(here)])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(own_cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, text=True, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    assert [p.communicate()[0] for p in processes] == ["fine\n"] * 3
    assert len(entries()) == 3
    assert not list(cache.cache_directory().glob(".*"))  # nothing half-made is left


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert kernel_writing(5.5) == 5.5


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    assert find_compiler() is None
    with pytest.raises(MissingDependencyError, match="apt install g\\+\\+"):
        compile_host(VECTOR_ADD)


def test_the_environment_chooses_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env g++")
    assert find_compiler() == "env g++"
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert find_compiler() in ("g++", "clang++", "c++")
