"""How the documentation is built: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext"), str(HERE.parent / "examples")]

import loopkit  # noqa: E402 - found by the path above

project = "loopkit"
author = "loopkit authors"
version = release = loopkit.__version__
copyright = author  # noqa: A001 - Sphinx calls it so

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "shown",
    "gallery",
    "names",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
maximum_signature_line_length = 80

html_theme = "furo"
html_title = "loopkit"
html_static_path = ["_static"]
html_css_files = ["loopkit.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def _without_links_outside(app: Sphinx, name: str, source: list[str]) -> None:
    """Pages lead to files of the repository that are no part of the site: these are named."""

    def named(found: re.Match[str]) -> str:
        aim = (HERE / name).parent.joinpath(found[2].partition("#")[0]).resolve()
        if aim.is_relative_to(HERE):
            return found[0]
        return f"{found[1]} (`{aim.relative_to(HERE.parent).as_posix()}`)"

    source[0] = _OUTSIDE.sub(named, source[0])


def setup(app: Sphinx) -> None:
    """Read by Sphinx."""
    app.connect("source-read", _without_links_outside)
