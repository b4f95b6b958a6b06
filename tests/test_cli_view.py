"""``loopkit view``."""

from __future__ import annotations

from pathlib import Path

import pytest
from seams import WRONG, main

FILE = """
import loopkit as lk

knl = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = 2 * x[i]", name="double_it")
knl = knl.add_dtypes({"x": "float32"}).assume("n >= 1")
knl = knl.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "kernels.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return "kernels.py:knl"


@pytest.mark.nvrtc
def test_view_writes_a_page(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", file, "n=4_096"]) == 0
    assert capsys.readouterr().out.strip() == "double_it.html"
    text = Path("double_it.html").read_text()
    assert "n = 4,096" in text and "sectors" in text
    assert main(["view", file, "-o", "other.html", "--arch", "sm_80"]) == 0
    assert "SASS for sm_80" in Path("other.html").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["n=many"], "'n=many' is no size"),
        (["4096"], "'4096' is no size"),
        (["n=1", "n=2"], "the size 'n' is given twice"),
        (["m=4"], "no size 'm'"),
        (["n=-3"], "n = -3"),
        (["-o", "nowhere/x.html"], "is in no folder that exists"),
        (["--arch", "h100"], "is no architecture"),
    ],
)
def test_what_is_refused(
    file: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", file, *words]) == WRONG
    assert says in capsys.readouterr().err
    assert list(Path().glob("*.html")) == []
