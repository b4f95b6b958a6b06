"""The directive ``gallery``: a script of ``examples/`` with what its schedules are and cost.

Everything on the page is made when the page is built.  A statement that the pointer is on lights
up in the nest, in the source and in the pictures.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from shown import shown, with_call
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

from loopkit import Kernel

ROOT = Path(__file__).resolve().parents[2]


class Gallery(Directive):
    """One example: its script, and for each schedule the nest, the source and the costs.

    Its content has a line for each picture: a title of ``make()``, and what to call on its kernel.
    With ``:data:``, costs are counted with the arrays that ``inputs()`` makes for the sizes.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "sizes": directives.unchanged,
        "data": directives.flag,
    }
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The nodes of one example."""
        name = self.arguments[0]
        path = ROOT / "examples" / f"{name}.py"
        self.state.document.settings.record_dependencies.add(str(path))
        module = importlib.import_module(name)
        words = self.options.get("sizes", "").split()
        sizes = {key: int(value) for key, _, value in (word.partition("=") for word in words)}
        made: list[nodes.Node] = [
            *map(_paragraph, (module.__doc__ or "").strip().split("\n\n")),
            _folded(f"examples/{name}.py", _code(path.read_text(encoding="utf-8"), "python")),
        ]
        kernels = module.make()
        given = module.inputs(**sizes) if "data" in self.options else sizes
        calls = [line.partition(": ") for line in self.content]
        for title, kernel in kernels.items():
            made += _schedule(title, kernel, sizes, given)
            for owner, _, call in calls:
                made += _drawn(kernel, call) if owner == title else ()
        return made


def _paragraph(text: str) -> nodes.Node:
    """A paragraph of a docstring, in which double backquotes are code."""
    parts = enumerate(text.split("``"))
    kinds = (nodes.Text, lambda code: nodes.literal(text=code))
    return nodes.paragraph("", "", *(kinds[n % 2](part) for n, part in parts))


#: What stands in front of each picture: what its kind shows.
LEADS = {
    "plot_domain": "Where the text has the points of the domain, and in which turn each runs.",
    "plot_access": "One request of a warp: which lane touches which element, and the sectors of 32 "
    "bytes that memory moves for it.",
    "plot_banks": "One request of a warp to shared memory: which lane touches which bank. Words of "
    "one bank take a wavefront each.",
    "plot_footprint": "The cells that one block touches, and how often.",
    "plot_loop": "What each thread of a block does in the iterations of a loop, left to right.",
    "plot_roofline": "How fast a launch can be at most, and what sets that.",
}


def _drawn(kernel: Kernel, call: str) -> Iterator[nodes.Node]:
    """``plot_banks("a_s", n=64)``, called on the kernel, behind words that say what it shows."""
    yield _paragraph(LEADS[call.partition("(")[0]])
    yield with_call(eval(f"knl.{call}", {"knl": kernel}), f"knl.{call}")


def _schedule(
    title: str, kernel: Kernel, sizes: dict[str, int], data: dict[str, Any]
) -> Iterator[nodes.Node]:
    yield nodes.rubric(text=title)
    yield shown(kernel)
    yield from _folded_all({"CUDA C": shown(kernel.cuda())})
    if kernel.history:
        yield from _folded_all({"the steps": _code(kernel.script(), "python")})
    if sizes:
        given = ", ".join(f"{name} = {value:,}" for name, value in sizes.items())
        yield from _folded_all({f"what it costs for {given}": shown(kernel.costs(**data))})


def _folded_all(parts: dict[str, nodes.Node]) -> Iterator[nodes.Node]:
    for title, part in parts.items():
        yield _folded(title, part)


def _folded(title: str, part: nodes.Node) -> nodes.Node:
    box = nodes.container(classes=["lk-folded"])
    box += nodes.raw("", f"<details><summary>{title}</summary>", format="html")
    box += part
    box += nodes.raw("", "</details>", format="html")
    return box


def _code(text: str, language: str) -> nodes.literal_block:
    return nodes.literal_block(text.rstrip("\n"), text.rstrip("\n"), language=language)


class Measured(Directive):
    """The rows of one case that `benchmarks/gpu.py` wrote, as a table."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """What was measured, where, when, and by which command."""
        path = ROOT / "benchmarks" / "results" / "gpu.json"
        self.state.document.settings.record_dependencies.add(str(path))
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in data["rows"] if row["case"] == self.arguments[0]]
        if not rows:
            raise self.error(f"no row of {path.name} is of {self.arguments[0]!r}")
        gpus = [gpu.replace(", ", ", driver ") for gpu in data["machine"]["gpus"]]
        where = f"{', '.join(gpus)}, {data['date']}, commit {data['commit']}"
        sizes = sorted({row["size"] for row in rows})
        said = nodes.paragraph(text=f"Size {', '.join(sizes)}, measured by ")
        said["classes"].append("lk-caption")
        said += [nodes.literal(text="python benchmarks/gpu.py"), nodes.Text(f" on {where}.")]
        return [_table(rows, ("size",) * (len(sizes) > 1) + COLUMNS), said]


class Examples(Directive):
    """Pages of examples: what each is called, and the first sentence of its script."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A list of links."""
        lines = []
        for name in self.arguments[0].split():
            said = ast.get_docstring(
                ast.parse((ROOT / "examples" / f"{name}.py").read_text("utf-8"))
            )
            first = (said or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")
            lines.append(f"- [](/gallery/{name}.md): {first[:1].lower()}{first[1:]}")
        section = nodes.section()
        section.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source="gallery"), section)
        return section.children


COLUMNS = ("who", "ms", "rate", "share")


def _table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> nodes.table:
    """Who took how long, its rate, and that rate as a share of what the case compares with."""
    columns = [name for name in names if any(_cell(row, name) for row in rows)]
    made = nodes.tgroup(cols=len(columns))
    for _ in columns:
        made += nodes.colspec(colwidth=1)
    made += nodes.thead("", _row(columns))
    made += nodes.tbody("", *(_row([_cell(row, column) for column in columns]) for row in rows))
    return nodes.table("", made)


def _cell(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if column == "rate":
        return f"{value:.3g} {row['unit']}"
    if column == "share":
        return f"{row['ratio']:.3g} of {re.split('[:,]', row['of'])[0]}" if row["ratio"] else ""
    return f"{value:.3g}" if isinstance(value, float) else str(value or "")


def _row(cells: Iterable[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Read by Sphinx."""
    app.add_directive("gallery", Gallery)
    app.add_directive("measured", Measured)
    app.add_directive("examples", Examples)
    return {"parallel_read_safe": True}
