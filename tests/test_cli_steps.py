"""``loopkit show --history`` and ``--diff``: the steps of a kernel, and what changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from seams import Diff, main

import loopkit as lk

FILE = """
import loopkit as lk

plain = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
fast = plain.split_iname("i", 128).tag_inames("i_outer: g.0, i_inner: l.0")
both = {"plain": plain, "fast": fast}
"""

Captured = pytest.CaptureFixture[str]


def kernel() -> lk.Kernel:
    space: dict[str, lk.Kernel] = {}
    exec(FILE, space)
    return space["fast"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


def shown(capsys: Captured, *arguments: str) -> str:
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_history(file: Path, capsys: Captured) -> None:
    lines = shown(capsys, "--history", f"{file}:fast").splitlines()
    assert lines[0].split()[:2] == ["0", "proven"] and " split_iname('i', " in lines[0]
    assert lines[1:4] == [
        "       + inames i_outer, i_inner",
        "       - iname i",
        "       ~ statement insn",
    ]
    assert shown(capsys, "--history", f"{file}:plain") == "no step so far\n"


def test_history_with_sizes_says_what_steps_cost(file: Path, capsys: Captured) -> None:
    out = shown(capsys, "--history", f"{file}:fast", "n=1024")
    assert out == str(kernel().history.at(n=1024)) + "\n"


@pytest.mark.parametrize(
    ("a", "b"),
    [("text", "1"), ("0", "1"), ("-2", "-1"), ("plain", "fast"), ("both:plain", "both:fast")],
)
def test_diff(file: Path, capsys: Captured, a: str, b: str) -> None:
    steps = kernel().history
    old = steps[0].kernel if a in ("0", "-2") else steps[0].before
    expected = Diff("nest", str(old), str(kernel()), (a, b))
    assert shown(capsys, f"{file}:fast", "--diff", a, b) == str(expected) + "\n"


def test_diff_of_other_views(file: Path, capsys: Captured) -> None:
    out = shown(capsys, f"{file}:fast", "--cuda", "--diff", "text", "1")
    assert "+    int const i_inner = threadIdx.x;" in out.splitlines()
    assert out.startswith("--- text\n+++ 1\n")
    out = shown(capsys, f"{file}:both:fast", "--costs", "--diff", "text", "1", "n=1024")
    assert "+8 blocks of 128 threads, 0 bytes of shared memory each" in out.splitlines()
    assert shown(capsys, f"{file}:fast", "--diff", "1", "fast") == "the nest stays as it is\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fast", "--diff", "0", "2"), "there is no step 2: kernel has 2, counted from 0"),
        (("plain", "--diff", "0", "text"), "there is no step 0: kernel has 0"),
        (("fast", "--diff", "text", "fsat"), "did you mean 'fast'"),
        (("fast", "--diff", "text", "a b"), "not a Python name"),
        (("fast", "--history", "m=3"), "there is no size 'm'"),
        (("fast", "--cuda", "n=3"), "sizes to --history"),
        (("fast", "--history", "--device", "H100"), "--device says nothing about --history"),
    ],
)
def test_what_is_wrong(file: Path, capsys: Captured, arguments: tuple[str, ...], said: str) -> None:
    assert main(["show", f"{file}:{arguments[0]}", *arguments[1:]]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err
