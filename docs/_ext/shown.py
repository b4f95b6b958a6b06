"""What values of loopkit look like in notebooks, on a page: nests, sources, pictures.

The directives ``shown`` and ``picture`` show what an expression makes, in the names that the page's
blocks of Python before it have bound; these run when the page is built.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from loopkit._display.markup import without_sheet
from loopkit._display.style import SHEET

SHEET_NAME = "loopkit-roles.css"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(value: Any) -> nodes.raw:
    """What a notebook shows, without the style sheet, which all pages of the site have once."""
    html: str = value._repr_mimebundle_()["text/html"]
    return nodes.raw("", without_sheet(html), format="html")


def with_call(value: Any, call: str) -> nodes.container:
    """What a notebook shows, and the call that makes it."""
    box = nodes.container(classes=["lk-figure"])
    caption = nodes.paragraph(classes=["lk-caption"])
    caption += nodes.literal(text=call)
    box += [shown(value), caption]
    return box


class Shown(Directive):
    """What an expression makes."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The value as a notebook shows it, with the expression below it."""
        page = self.state.document.current_source
        text = Path(page or "").read_text(encoding="utf-8")
        above = "".join(text.splitlines(keepends=True)[: self.lineno - 1])
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for match in BLOCK.finditer(above):
                exec(match[1], names)
        call = self.arguments[0]
        return [with_call(eval(call, names), call)]


def _write_sheet(app: Sphinx) -> None:
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SHEET_NAME).write_text(SHEET, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Read by Sphinx."""
    app.add_directive("shown", Shown)
    app.add_directive("picture", Shown)
    app.connect("builder-inited", _write_sheet)
    app.add_css_file(SHEET_NAME)
    return {"parallel_read_safe": True}
