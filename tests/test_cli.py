"""The command line: the demonstration, errors, and what it does with its streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from seams import demo as _demo
from seams import main

import loopkit as lk
from loopkit import LoopkitError

ROOT = Path(__file__).resolve().parent.parent


def search_path() -> str:
    """This checkout first, then whatever makes its dependencies importable here."""
    return os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)


def loopkit(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with stdin closed."""
    return subprocess.run(
        [sys.executable, "-m", "loopkit", *arguments],
        env=os.environ | {"PYTHONPATH": search_path()} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_help_names_the_commands() -> None:
    done = loopkit("--help")
    assert done.returncode == 0
    for command in ("demo", "show", "measure", "view", "doctor"):
        assert command in done.stdout


def test_version() -> None:
    done = loopkit("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("loopkit, version ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dmeo"], "No such command 'dmeo'"),
        (["demo", "--n", "0"], "0 is not in the range"),
        (["demo", "--executor", "gpu"], "'gpu' is not one of"),
        (["show"], "Missing argument 'FILE.py:NAME'"),
        (["show", "--nets", "a.py:b"], "--nets"),
    ],
)
def test_usage_errors_go_to_stderr(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_errors_are_messages_unless_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> int:
        raise LoopkitError("this cannot be", instead="do that")

    monkeypatch.setattr(_demo, "demo", fail)
    monkeypatch.delenv("LOOPKIT_DEBUG", raising=False)
    assert main(["demo"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "loopkit: this cannot be\ndo that\n"
    monkeypatch.setenv("LOOPKIT_DEBUG", "1")
    with pytest.raises(LoopkitError):
        main(["demo"])


def test_stopping_it_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(**_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "demo", stop)
    monkeypatch.delenv("LOOPKIT_DEBUG", raising=False)
    assert main(["demo"]) == 130
    # click ends the line that the user's ^C stands on.
    assert capsys.readouterr().err.strip() == "loopkit: stopped"


def test_demo_on_the_reference_executor() -> None:
    done = loopkit("demo", "--n", "19", "--m", "17", "--l", "21", "--executor", "reference")
    assert done.returncode == 0, done.stderr
    assert "agrees with NumPy" in done.stdout
    assert "GFLOP/s" in done.stdout
    assert "\x1b[" not in done.stdout
    # The nest before the first transform and after each, under its whole call, and the source.
    kernel: Any = lk.make_kernel(
        _demo.DOMAIN,
        _demo.TEXT,
        name="matmul",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )
    left = done.stdout.partition(f"\n{kernel}\n")[2]
    for name, arguments, more in _demo.STEPS:
        kernel = getattr(kernel, name)(*arguments, **more)
        left = left.partition(f"\n{kernel.history[-1].call()}\n\n{kernel}\n")[2]
        assert left, name
    assert kernel.cuda() in left


@pytest.mark.host
def test_demo_on_the_host_executor() -> None:
    done = loopkit("demo", "--n", "45", "--m", "37", "--l", "51", "--executor", "host")
    assert done.returncode == 0, done.stderr
    assert "agrees with NumPy" in done.stdout
    assert "45 x 51 times 51 x 37" in done.stdout


@pytest.mark.gpu
def test_demo_on_the_gpu() -> None:
    done = loopkit("demo", "--n", "1021", "--m", "1013", "--l", "1019")
    assert done.returncode == 0, done.stderr
    assert "Running it on the GPU" in done.stdout
    assert "agrees with NumPy" in done.stdout


def test_demo_says_so_where_there_is_neither_gpu_nor_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loopkit._run.driver.has_gpu", lambda: False)
    monkeypatch.setattr("loopkit._host.find_compiler", lambda: None)
    executor, said = _demo.choose(None)
    assert executor == "reference"
    assert "no C++ compiler" in said
    monkeypatch.setattr("loopkit._host.find_compiler", lambda: "g++")
    assert _demo.choose(None)[0] == "host"
    monkeypatch.setattr("loopkit._run.driver.has_gpu", lambda: True)
    assert _demo.choose(None)[0] == "cuda"
    assert _demo.choose("reference")[0] == "reference"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    demo = f"{sys.executable} -m loopkit demo --n 5 --m 5 --l 5 --executor reference"
    done = subprocess.run(
        ["bash", "-c", f"{demo} | head -n 1"],
        env=os.environ | {"PYTHONPATH": search_path()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
