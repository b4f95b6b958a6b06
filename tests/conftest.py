"""What all tests share: golden texts, and marks for what a machine may lack."""

from __future__ import annotations

import ctypes
import difflib
import functools
import gc
import importlib
import importlib.util
import os
import pkgutil
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GOLDENS = Path(__file__).parent / "goldens"
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-goldens",
        action="store_true",
        default=False,
        help="write the expected texts in tests/goldens anew instead of comparing with them",
    )
    parser.addoption(
        "--on-gpu",
        action="store_true",
        default=False,
        help="run on the GPU what tests run on the CPU, in whatever order of threads",
    )


def pytest_configure(config: pytest.Config) -> None:
    _import_all()
    if config.getoption("--on-gpu"):
        _run_on_gpu()
    try:
        from hypothesis import settings
    except ImportError:
        return
    # Two busy cores make time limits per example meaningless; in CI the examples are fixed.
    settings.register_profile("loopkit", deadline=None, derandomize=IN_CI)
    settings.load_profile("loopkit")


def _import_all() -> None:
    """Import every module, or one that is imported while a test has replaced something keeps it."""
    import loopkit

    for module in pkgutil.walk_packages(loopkit.__path__, "loopkit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _run_on_gpu() -> None:
    """Let executors for the CPU run on the GPU: it has one order of threads, its own."""
    from seams import executors as _executors

    make = _executors.make_executor

    def made(kernel: Any, name: str, options: dict[str, Any]) -> Any:
        if name == "host":
            name, options = "cuda", {k: v for k, v in options.items() if k == "check_assertions"}
        return make(kernel, name, options)

    _executors.make_executor = made


@functools.cache
def _gpus() -> int:
    """How many GPUs the driver shows; 0 where there is no driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int(0)
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


@functools.cache
def _has_nvrtc() -> bool:
    if importlib.util.find_spec("cuda") is None:
        return False
    try:
        from cuda.bindings import nvrtc

        return int(nvrtc.nvrtcVersion()[0]) == 0
    except Exception:  # whatever a half-installed toolkit raises
        return False


@functools.cache
def _has_compiler() -> bool:
    names = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    return any(name and shutil.which(name.split()[0]) for name in names)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    """Where a browser is that tests can drive, and what drives it is there, too."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return next(filter(None, map(shutil.which, BROWSERS)), None)


# mark: (is it there, what is missing, must it be there in CI)
NEEDS: dict[str, tuple[Callable[[], bool], str, bool]] = {
    "gpu": (lambda: _gpus() > 0, "no GPU", False),
    "nvrtc": (_has_nvrtc, "NVRTC is not installed", True),
    "host": (_has_compiler, "no C++ compiler", True),
    "browser": (lambda: find_browser() is not None, "no Chromium, or no playwright", True),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave one in ``n`` cases of a test marked ``share(n)`` in the fast suite."""
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is not None and zlib.crc32(item.name.encode()) % mark.args[0]:
            item.add_marker("slow")


_files: set[Path] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.path not in _files:
        # What the tests of other files keep alive is not searched for garbage again and again.
        _files.add(item.path)
        gc.collect()
        gc.freeze()
    for mark, (is_there, missing, always_in_ci) in NEEDS.items():
        if item.get_closest_marker(mark) is None or is_there():
            continue
        if always_in_ci and IN_CI:
            pytest.fail(f"{missing}, but CI must have it", pytrace=False)
        pytest.skip(missing)


class Golden:
    """Compares texts with files under ``tests/goldens``, or writes those files."""

    def __init__(self, regenerate: bool, folder: Path = GOLDENS) -> None:
        self.regenerate = regenerate
        self.folder = folder

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        if not text.endswith("\n"):
            text += "\n"
        if self.regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(
                f"there is no golden text {name}; `make goldens` writes it. The text is:\n{text}",
                pytrace=False,
            )
        expected = path.read_text(encoding="utf-8")
        if expected != text:
            diff = "".join(
                difflib.unified_diff(
                    expected.splitlines(keepends=True),
                    text.splitlines(keepends=True),
                    f"goldens/{name}",
                    "now",
                )
            )
            pytest.fail(f"the text differs from its golden\n{diff}", pytrace=False)


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("name.txt", text)`` compares ``text`` with ``tests/goldens/name.txt``.

    ``make goldens`` writes the files; read the diff before committing it.
    """
    return Golden(request.config.getoption("--regenerate-goldens"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser (``playwright.sync_api.Browser``), for tests that are marked so.

    One for each file: while it is there, an event loop runs, and other tests start their own.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()
