"""Pages whose blocks of Python run, and print or draw what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"

BLOCK = re.compile(
    r"^```(python|text|diff|cuda|\{(?:picture|shown)\} [^\n]+)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def printed_anew(source: str) -> str:
    """The page with each block of output as the block of Python before it prints it now."""
    names: dict[str, Any] = {}
    printed = ""
    pieces: list[str] = []
    position = 0
    for match in BLOCK.finditer(source):
        language, body = match.groups()
        pieces.append(source[position : match.start()])
        position = match.end()
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(body, names)
            printed = "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
        elif language.startswith("{"):
            value = eval(language.partition(" ")[2], names)
            assert "</" in value._repr_mimebundle_()["text/html"]
        else:
            body = printed.rstrip("\n") + "\n"
        pieces.append(f"```{language}\n{body}```")
    return "".join([*pieces, source[position:]])


def check_page(page: Path, regenerate: bool) -> None:
    """The page prints what it says, or is written anew."""
    source = page.read_text(encoding="utf-8")
    expected = printed_anew(source)
    if regenerate:
        page.write_text(expected, encoding="utf-8", newline="\n")
    else:
        assert source == expected, "`make goldens` brings the page up to date"


def build_pages(out: Path, *pages: str, **settings: str) -> None:
    """Some pages of the site, built alone: links to others are no warnings."""
    pytest.importorskip("furo")
    settings["include_patterns"] = ",".join(f"{page}.md" for page in pages)
    settings["suppress_warnings"] = "myst,toc,ref"
    options = [word for item in settings.items() for word in ("-D", "=".join(item))]
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *options, DOCS, out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
