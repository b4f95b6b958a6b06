"""``loopkit measure``, and ``loopkit show --costs``."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from seams import WRONG, Output, main

FILE = """
import loopkit as lk

plain = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = alpha*x[i]", name="scale",
                       dtypes={"x, y, alpha": "float32"})
split = plain.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
other = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = alpha*x[i] + 1", name="scale",
                       dtypes={"x, y, alpha": "float32"})

def both():
    return {"plain": plain, "split": split}
"""

Captured = pytest.CaptureFixture[str]
QUICK = ["--seconds", "0.001", "--executor", "reference"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "kernels.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return "kernels.py"


def test_measure(file: str, capsys: Captured) -> None:
    assert main(["measure", f"{file}:split", "n=200", "alpha=0.5", *QUICK]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("scale at n = 200, interpreted on the CPU")
    assert "does not show how fast a GPU would be" in captured.out
    assert "measuring" in captured.err  # how far it is goes elsewhere than what was found


def test_several_take_turns(file: str, capsys: Captured) -> None:
    words = [f"{file}:both:plain", f"{file}:both:split", "n=20", "alpha=2", *QUICK]
    assert main(["measure", *words]) == 0
    captured = capsys.readouterr()
    assert "beside plain" in captured.out and "\nsplit  " in captured.out
    assert "comparing results" in captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["kernels.py:split", "n=many"], "'n=many' is no number with a name"),
        (["kernels.py:split", "n=1", "n=2"], "'n' is given twice"),
        (["kernels.py:split", "n=4"], "alpha (float32) is missing"),
        (["kernels.py:split", "alpha=4"], "the value of n is not known"),
        (["kernels.py:split", "m=4", "alpha=1", "n=3"], "no argument 'm'"),
        (["kernels.py:spilt", "n=4"], "no kernel or function 'spilt'"),
        (["kernels.py:both", "n=4"], "is several kernels: plain, split"),
        (["kernels.py:split", "n=4", "alpha=1", "--seconds", "-1"], "seconds is a number"),
        (["kernels.py:plain", "kernels.py:other", "n=4", "alpha=1"], "'other' does not compute"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_measured(file: str, words: list[str], says: str, capsys: Captured) -> None:
    assert main(["measure", *words, "--executor", "reference"]) == WRONG
    captured = capsys.readouterr()
    assert says in captured.err and captured.out == ""


@pytest.mark.nvrtc
def test_show_costs(file: str, capsys: Captured) -> None:
    assert main(["show", f"{file}:split", "n=6400", "--costs", "--device", "A100"]) == 0
    out = capsys.readouterr().out
    assert "scale at n = 6400" in out and "roofline of A100 80GB" in out and "sm_80" in out
    words = ["--costs", "--cuda", "--arch", "sm_90a", "--device", "H100"]
    assert main(["show", f"{file}:split", "n=6400", *words]) == 0
    out = capsys.readouterr().out
    assert "__global__" in out and "resources: sm_90a" in out


def test_show_costs_of_open_sizes(file: str, capsys: Captured) -> None:
    assert main(["show", f"{file}:split", "--costs"]) == 0
    assert "scale, by n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--costs", "n=1", "--device", "H1000"], "no device 'H1000'"),
        (["--costs", "n=1.5"], "'n=1.5' is no size"),
        (["--cuda", "n=1"], "sizes say nothing about --cuda"),
        (["--cuda", "--device", "H100"], "--device says nothing about --cuda"),
    ],
)
def test_costs_that_cannot_be_shown(
    file: str, words: list[str], says: str, capsys: Captured
) -> None:
    assert main(["show", f"{file}:split", *words]) == WRONG
    captured = capsys.readouterr()
    assert says in captured.err and captured.out == ""


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("words", "doing"),
    [
        (["show", "kernels.py:split", "n=64", "--history"], ["counting"]),
        (["show", "kernels.py:split", "--costs"], ["counting"]),
        (["show", "kernels.py:split", "--sass", "--arch", "sm_90a"], ["compiling"]),
        (["view", "kernels.py:split", "n=64"], ["replaying 1 step, compiling, counting"]),
        (
            ["measure", "kernels.py:split", "n=20", "alpha=2", *QUICK],
            ["making data", "compiling", "measuring", "counting"],
        ),
    ],
)
def test_long_work_says_what_it_does(
    file: str, words: list[str], doing: list[str], capsys: Captured
) -> None:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [f"... {what}" for what in doing]
    assert captured.out and "..." not in captured.out.splitlines()[0]


def test_a_terminal_shows_progress_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output, shown = Output(), StringIO()
    output.progress = Console(file=shown, force_terminal=True, width=80)
    with output.working("counting"):
        pass
    assert "counting" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[1A\x1b[2K")  # and takes its line away again
