"""``loopkit show``: views of a kernel of a file, and everything that can be wrong with the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from seams import main

FILE = """
import sys
import loopkit as lk

print("loading")

plain = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"},
                       name="plain")

def tiled():
    print("making")
    return plain.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")

def of_size(size, tag="g.0"):
    return plain.split_iname("i", size, outer_tag=tag)

def fails():
    return tiled().no_such_method()

def nothing():
    pass

def bad_transform():
    return plain.split_iname("ii", 4)

number = 3

def several():
    return {"plain": plain, "tiled": tiled()}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


Captured = pytest.CaptureFixture[str]


def test_nest_is_the_default_view(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:plain"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("plain(")
    # What the file prints does not mix with what is shown.
    assert "loading" in captured.err
    assert "loading" not in captured.out
    assert main(["show", "--nest", f"{file}:plain"]) == 0
    assert capsys.readouterr().out == captured.out


def test_function_is_called(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:tiled"]) == 0
    captured = capsys.readouterr()
    assert "blockIdx.x" in captured.out
    assert "making" in captured.err


def test_only_kernel_needs_no_name(file: Path, capsys: Captured) -> None:
    assert main(["show", str(file)]) == 0
    assert capsys.readouterr().out.startswith("plain(")


def test_cuda(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:tiled", "--cuda"]) == 0
    captured = capsys.readouterr()
    assert "__global__" in captured.out
    assert "\x1b[" not in captured.out


def test_several_views(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:tiled", "--cuda", "--nest"]) == 0
    nest, _, code = capsys.readouterr().out.partition("extern")
    assert nest.startswith("plain(") and "__global__" in code


def test_one_of_several_kernels(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:several:tiled"]) == 0
    assert "blockIdx.x" in capsys.readouterr().out


def test_a_file_without_kernels(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "none.py"
    path.write_text("")
    assert main(["show", f"{path}:plain"]) == 2
    assert f"{path} makes none at its top level" in capsys.readouterr().err


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("view", "said"),
    [("--ptx", ".target sm_90"), ("--sass", "EXIT"), ("--resources", "registers")],
)
def test_views_that_need_nvrtc(file: Path, capsys: Captured, view: str, said: str) -> None:
    assert main(["show", f"{file}:tiled", view, "--arch", "sm_90a"]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (":plian", ["no kernel or function 'plian'", "did you mean 'plain'?"]),
        (":of_size", ["of_size", "takes arguments: size"]),
        (":number", ["number", "neither a kernel nor a function", "an int"]),
        (":nothing", ["returns None, not a kernel"]),
        (":fails", ["has no attribute 'no_such_method'", "line 18: return tiled().no_such"]),
        (":bad_transform", ["split_iname", "no iname 'ii'"]),
        (":several", ["is several kernels: plain, tiled", "several:plain shows one"]),
        (":several:tild", ["no kernel 'tild'", "did you mean 'tiled'?"]),
        (":plain:tiled", ["'tiled' is a key, but there is one kernel alone"]),
        (":not-a-name", ["'not-a-name' is not a Python name"]),
    ],
)
def test_errors_name_what_is_wrong(
    file: Path, capsys: Captured, name: str, said: list[str]
) -> None:
    assert main(["show", f"{file}{name}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in said:
        assert part in captured.err
    assert "Traceback" not in captured.err


def test_arch_belongs_to_binaries(file: Path, capsys: Captured) -> None:
    assert main(["show", f"{file}:plain", "--cuda", "--arch", "sm_90a"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--arch says nothing about --cuda" in captured.err


def test_missing_file_names_its_neighbours(file: Path, capsys: Captured) -> None:
    assert main(["show", str(file.with_name("kernel.py")) + ":plain"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "there is no file" in captured.err
    assert "did you mean 'kernels.py'?" in captured.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (1,\n", "is not valid Python"),
        ("import no_such_module_at_all\n", "No module named 'no_such_module_at_all'"),
        ("import sys\nsys.exit(3)\n", "ends the program (exit code 3)"),
        ("x = 1\n", "has no kernels at its top level"),
    ],
)
def test_files_that_fail(tmp_path: Path, capsys: Captured, text: str, said: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    assert main(["show", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_file_may_import_its_neighbours(file: Path, capsys: Captured) -> None:
    beside = file.with_name("uses_kernels.py")
    beside.write_text("from kernels import tiled\nmine = tiled()\n")
    assert main(["show", f"{beside}:mine"]) == 0
    assert "blockIdx.x" in capsys.readouterr().out
