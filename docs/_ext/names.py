"""The directive ``public-names``: the reference of all that ``import loopkit`` offers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import nested_parse_with_titles

import loopkit
from loopkit._kernel import _INTERNAL
from loopkit._registry import transforms


def _kind(name: str) -> str:
    value = getattr(loopkit, name)
    if name in transforms:
        return "transforms"
    if inspect.isfunction(value):
        return "functions"
    if not inspect.isclass(value):
        return "values"
    return "errors" if issubclass(value, Exception) else "values"


class PublicNames(Directive):
    """One public name, or all of a kind: ``values``, ``functions``, ``transforms``, ``errors``.

    The entry of a single name is one more: links lead to the reference of its kind.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The documentation of each."""
        asked = self.arguments[0]
        if asked in loopkit.__all__:
            return _parsed(self, [*_entry(asked), "   :no-index:"])
        names = (name for name in sorted(loopkit.__all__) if _kind(name) == asked)
        return _parsed(self, [line for name in names for line in (*_entry(name), "")])


def _entry(name: str) -> Iterator[str]:
    value = getattr(loopkit, name)
    if inspect.isclass(value):
        yield f".. autoclass:: loopkit.{name}"
        yield "   :members:"
        if name == "Kernel":
            yield f"   :exclude-members: {', '.join(sorted({*transforms, *_INTERNAL}))}"
        if not issubclass(value, Exception):
            yield "   :undoc-members:"
    elif kinds := get_args(value):
        one_of = ", ".join(f":class:`{kind.__name__}`" for kind in kinds)
        yield from (f".. py:data:: loopkit.{name}", "", f"   One of {one_of}.")
    elif not inspect.isfunction(value):
        yield f".. autodata:: loopkit.{name}"
        yield "   :no-value:"
    else:
        yield f".. autofunction:: loopkit.{name}"


def _parsed(directive: Directive, lines: list[str]) -> list[nodes.Node]:
    section = nodes.section()
    section.document = directive.state.document
    whole = StringList(["```{eval-rst}", *lines, "```"], source="reference")
    nested_parse_with_titles(directive.state, whole, section)
    return section.children


HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


class TransformsTable(Directive):
    """All transforms with what each does, by the pages in the folder that show them."""

    def run(self) -> list[nodes.Node]:
        """A table."""
        folder = Path(self.state.document.current_source or "").parent
        lines = ["| transform | what it does |", "|---|---|"]
        for page in PAGES:
            text = (folder / f"{page}.md").read_text(encoding="utf-8")
            (_, title), *names = HEADING.findall(text)
            lines.append(f"| [**{title}**]({page}.md) | |")
            shown = [name for _, name in names if hasattr(loopkit, name)]
            lines += [f"| [{n}]({page}.md#{n}) | {_in_a_line(n)} |" for n in shown]
        section = nodes.section()
        section.document = self.state.document
        whole = StringList(lines, source="transforms")
        nested_parse_with_titles(self.state, whole, section)
        return section.children


PAGES = (
    *("loops", "parallel", "reductions", "launches"),
    *("movement", "storage", "rules", "declarations", "kernels"),
)


def _in_a_line(name: str) -> str:
    first = (inspect.getdoc(getattr(loopkit, name)) or "").split("\n\n")[0]
    return re.sub(r":\w+:(?=`)", "", first.replace("\n", " ").replace("``", "`"))


def _plain_signature(
    app: Sphinx, what: str, name: str, value: object, *_: object
) -> tuple[str, str] | None:
    """Types without what checks them: ``str`` for ``Annotated[str, ...]``."""
    if value is loopkit.Kernel:
        return "", ""  # nobody calls it
    if not inspect.isfunction(value):
        return None
    signature = inspect.signature(value)
    try:
        types = get_type_hints(value)
    except NameError:  # names that only type checkers import
        return None
    plain = [
        p.replace(annotation=types.get(p.name, p.annotation)) for p in signature.parameters.values()
    ]
    if what == "method" and not _is_static(name):
        plain = plain[1:]
    made = signature.replace(
        parameters=plain, return_annotation=types.get("return", inspect._empty)
    )
    text = stringify_signature(made, unqualified_typehints=True)
    arguments, arrow, result = text.rpartition(" -> ")
    return (arguments, result) if arrow else (text, "")


def _before_and_after(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Nests that a docstring shows in one paragraph get a line each."""
    if what in ("attribute", "property"):
        lines.insert(0, "")  # or a colon in the first line would end a type
    text = re.sub(
        r"^Before: ((?:.+\n)+)$",
        lambda found: in_two_lines(found[1]),
        "\n".join(lines) + "\n",
        flags=re.MULTILINE,
    )
    lines[:] = text.splitlines()


def in_two_lines(paragraph: str) -> str:
    """``A   After (x): B`` as two lines, with the blank that marks of code ask for."""
    before, after = (" ".join(part.split()) for part in paragraph.partition("After")[::2])
    return f"| Before: {before}\n| After{'' if after.startswith(':') else ' '}{after}\n"


def _is_static(name: str) -> bool:
    _, owner, method = name.rsplit(".", 2)
    return isinstance(inspect.getattr_static(getattr(loopkit, owner), method), staticmethod)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read by Sphinx."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-docstring", _before_and_after, priority=400)
    app.connect("autodoc-process-signature", _plain_signature)
    app.add_directive("transforms-table", TransformsTable)
    return {"parallel_read_safe": True}
