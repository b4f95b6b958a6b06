"""Sizes and devices that cannot be: what shows a kernel says so, and shows nothing by halves."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from seams import WRONG, Failure, error_html, html_text, main

import loopkit as lk

FILE = """\
import loopkit as lk

plain = lk.make_kernel(
    "{ [i, j]: 0 <= i < n and 0 <= j < m }",
    "b[j, i] = 2*a[i, j]",
    dtypes={"a, b": "float32"},
    assumptions="n, m >= 1 and n <= 100",
    name="transpose",
)
fast = (
    plain.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
    .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    .add_prefetch("a", ["i_inner", "j_inner"], default_tag="l.auto")
)
"""
names: dict[str, Any] = {}
exec(FILE, names)
plain: lk.Kernel = names["plain"]
fast: lk.Kernel = names["fast"]

HTML = "<script>alert('x')</script>"
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"n": 64}, r"needs the sizes m|the value of m is not known"),
    "breaks an assumption": ({"n": 101, "m": 8}, r"n <= 100"),
    "negative": ({"n": -1, "m": 8}, r"-1"),
    "a fraction": ({"n": 1.5, "m": 8}, r"n.*(whole number|integer)"),
    "a text": ({"n": HTML, "m": 8}, r"n.*(whole number|integer)"),
    "unknown": ({"n": 8, "m": 8, "q": 3}, r"no (size|argument) 'q'"),
    "markup": ({"n": 8, "m": 8, HTML: 3}, r"no (size|argument) '<script>"),
    "too large": ({"n": 8, "m": 2**70}, r"does not fit"),
}


def _explored(**sizes: Any) -> None:
    """What is wrong with sizes stands where the costs would."""
    costs = lk.explore(lambda tile: plain.split_iname("i", tile), tile=[8, 16], sizes=sizes)
    failure = costs.outcome.costs
    assert isinstance(failure, Failure) and "<script>" not in costs._repr_mimebundle_()["text/html"]
    raise failure.error


SHOWING: dict[str, Callable[..., Any]] = {
    "costs": lambda **sizes: fast.costs(**sizes),
    "history.at": lambda **sizes: fast.history.at(**sizes),
    "view": lambda **sizes: fast.view("out.html", arch="sm_90a", **sizes),
    "plot_domain": lambda **sizes: fast.plot_domain(**sizes).save("out.svg"),
    "plot_access": lambda **sizes: fast.plot_access("a", **sizes).save("out.svg"),
    "plot_banks": lambda **sizes: fast.plot_banks("a_s", **sizes).save("out.svg"),
    "plot_footprint": lambda **sizes: fast.plot_footprint("a", **sizes).save("out.svg"),
    "plot_loop": lambda **sizes: fast.plot_loop("i_inner", **sizes).save("out.svg"),
    "plot_roofline": lambda **sizes: fast.plot_roofline(**sizes).save("out.svg"),
    "explore": _explored,
    "measure": lambda **sizes: lk.measure(fast, executor="reference", **sizes),
    "compare": lambda **sizes: lk.compare({"a": plain, "b": fast}, executor="reference", **sizes),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("what", SHOWING)
def test_sizes(what: str, bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sizes, says = BAD[bad]
    if (what, bad) == ("costs", "missing"):
        assert fast.costs(**sizes).open_sizes == ("m",)  # type: ignore[union-attr]
        return
    with pytest.raises(lk.LoopkitError, match=says) as raised:
        SHOWING[what](**sizes)
    assert list(tmp_path.iterdir()) == []
    assert "script" not in Page(html_text(error_html(raised.value))).tags


DEVICES: dict[str, Callable[[Any], Any]] = {
    "costs": lambda device: fast.costs(n=8, m=8, device=device),
    "open costs": lambda device: fast.costs(device=device),
    "plot_roofline": lambda device: fast.plot_roofline(n=8, m=8, device=device),
    "explore": lambda device: lk.explore(lambda tile: plain, tile=[8, 16], device=device),
}


@pytest.mark.parametrize("device", ["GTX 9", HTML, "", 3])
@pytest.mark.parametrize("what", DEVICES)
def test_devices(what: str, device: Any) -> None:
    with pytest.raises(lk.LoopkitError, match=r"no device|device is a name") as raised:
        DEVICES[what](device)
    assert "script" not in Page(html_text(error_html(raised.value))).tags


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["n=64"], "the sizes m|value of m"),
        (["n=101", "m=8"], "n <= 100"),
        (["n=8", "m=8", "q=3"], "no (size|argument) 'q'"),
        (["n=8", "m=8", f"{HTML}=3"], "is no (size|number)"),
        (["n=x", "m=8"], "is no (size|number)"),
    ],
)
@pytest.mark.parametrize("command", ["view", "show --history", "show --costs", "measure"])
def test_command_line(
    command: str,
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(FILE)
    verb, *options = command.split()
    if (options, words) == (["--costs"], ["n=64"]):
        assert main([verb, "kernels.py:fast", *words, *options]) == 0  # counts by m
        return
    assert main([verb, "kernels.py:fast", *words, *options]) == WRONG
    captured = capsys.readouterr()
    assert captured.out == ""

    assert re.search(says, captured.err)
    assert {path.name for path in tmp_path.iterdir()} <= {"kernels.py", "__pycache__"}
