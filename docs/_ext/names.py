"""The directive ``public-names``: the reference of all that ``import loopkit`` offers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

import loopkit
from loopkit._registry import transforms


def _kind(name: str) -> str:
    value = getattr(loopkit, name)
    if name in transforms:
        return "transforms"
    if not inspect.isclass(value):
        return "functions"
    return "errors" if issubclass(value, Exception) else "values"


class PublicNames(Directive):
    """All public names of one kind: ``values``, ``functions``, ``transforms`` or ``errors``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The documentation of each."""
        section = nodes.section()
        section.document = self.state.document
        lines = StringList(list(self._lines(self.arguments[0])), source="reference")
        nested_parse_with_titles(self.state, lines, section)
        return section.children

    def _lines(self, kind: str) -> Iterator[str]:
        yield "```{eval-rst}"
        for name in sorted(loopkit.__all__):
            if _kind(name) != kind:
                continue
            value = getattr(loopkit, name)
            if inspect.isclass(value):
                yield f".. autoclass:: loopkit.{name}"
                yield "   :members:"
                if name == "Kernel":
                    yield f"   :exclude-members: {', '.join(sorted(transforms))}"
                yield "   :undoc-members:" if kind == "values" else ""
            elif not inspect.isfunction(value):
                yield f".. autodata:: loopkit.{name}"
                yield "   :no-value:"
            else:
                yield f".. autofunction:: loopkit.{name}"
            yield ""
        yield "```"


def setup(app: Sphinx) -> dict[str, bool]:
    """Read by Sphinx."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True}
