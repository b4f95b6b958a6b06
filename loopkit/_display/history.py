"""Steps and histories as HTML: each call, its verdict, and its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._changes import SIGNS, Change, Diff, in_words, kind_word
from loopkit._display.diff import beside, diff_part
from loopkit._display.markup import Part, element, fold, inline, marked, output, table
from loopkit._display.nest_html import coloured, roles_of
from loopkit._display.style import VERDICTS
from loopkit._errors import LoopkitError
from loopkit._history import History, Step
from loopkit._kernel import Kernel
from loopkit._relations import grouped

if TYPE_CHECKING:
    from loopkit._history_costs import HistoryCosts


def verdict(step: Step) -> Element:
    """What is known of a step, with its mark."""
    return marked(VERDICTS[step.verdict], step.verdict)


def call(step: Step) -> Element:
    """The step as a call: the transform, and its arguments."""
    name, bracket, rest = step.call()[1:].partition("(")
    return element("code", element("b", name), bracket, rest, class_="lk-wrapped")


def milliseconds(step: Step) -> str:
    """How long a step took, its proof included."""
    return f"{1e3 * step.seconds:.1f} ms" if step.seconds else ""


OPENED = 24
"""Steps that open in a table, the last ones: each shows its nest and its source."""


def history_html(steps: History) -> Element:
    """A table of steps, each of which opens: its nest and source, before and after."""
    if not steps:
        return output(inline("comment", "no step so far"))
    rows: list[Sequence[Part] | Element] = []
    for number, step in enumerate(_linked(steps)):
        rows.append((str(number), call(step), verdict(step), milliseconds(step), changed(step)))
        if step.kernels is not None and number >= len(steps) - OPENED:
            rows.append(_opened(step))
    found = table(("", "step", "verdict", "took", "what changed"), rows, numbers=(0, 3))
    found.set("class", "lk-steps")
    names = ", ".join(f"{name}=…" for name in _sizes(steps))
    hint = f"history.at({names}) says what each step did to the costs"
    if len(steps) > OPENED:
        hint = f"history[0] opens a step above those that open here, {hint}"
    return output(found, inline("comment", hint))


def _sizes(steps: History) -> Sequence[str]:
    return steps[0].before.sizes if steps[0].kernels is not None else ("…",)


def changed(step: Step) -> Part:
    """What a step changed, by name."""
    if step.kernels is None:
        return None
    roles = {**roles_of(step.before), **roles_of(step.kernel)}
    return list(_change_lines(step.changes(), roles))


def _change_lines(found: Iterable[Change], roles: Mapping[str, str]) -> Iterator[Element]:
    for (what, kind), group in grouped(((c.what, c.kind), c) for c in found).items():
        names: list[Part] = []
        for change in group:
            apart = " " if change.detail and not change.detail.startswith("[") else ""
            names += [", "] if names else []
            names += [coloured(change.name, roles), apart, change.detail]
        sign = inline({"new": "added", "gone": "removed"}.get(what, "comment"), SIGNS[what])
        yield element("div", sign, f" {kind_word(kind, len(group))} ", names)


def step_html(step: Step) -> Element:
    """A step opened: its call, what changed by name, and the diff of the nest."""
    head = element("div", call(step), "  ", verdict(step), "  ", milliseconds(step))
    if step.kernels is None:
        return output(head)
    beside_each_other = element("div", diffs(step), class_="lk-opened")
    return output(head, changed(step), diff_part(step.diff()), beside_each_other)


def step_text(step: Step) -> str:
    """The same for terminals."""
    lines = [f"{step.call()[1:]}   {step.verdict}   {milliseconds(step)}".rstrip()]
    if step.kernels is not None:
        lines += [f"  {text}" for text in in_words(step.changes())]
        lines += ["", str(step.diff())]
    return "\n".join(lines)


def history_costs_html(costs: HistoryCosts) -> Element:
    """A table of stages with their costs; below each step what it changed can be opened."""
    rows: list[Sequence[Part] | Element] = []
    steps = (None, *_linked(stage.step for stage in costs.stages if stage.step is not None))
    for step, texts in zip(steps, costs.rows(), strict=True):
        rows.append((texts[0], texts[1] if step is None else call(step), *texts[2:]))
        if step is not None:
            rows.append(_opened(step))
    sizes = ", ".join(f"{name} = {value:,}" for name, value in costs.sizes)
    found = table(costs.columns, rows, numbers=(0, *range(2, len(costs.columns))))
    return output(element("div", sizes, class_="lk-head") if sizes else None, found)


def _linked(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps; what one made is what the next began with, the same object: it is shown once."""
    made: Kernel | None = None
    for step in steps:
        linked = step
        if step.kernels is not None:
            before, after = step.kernels
            linked = replace(step, kernels=(made if made == before else before, after))
            made = after
        yield linked


def diffs(step: Step) -> Iterator[Element]:
    """Nest and source before and after a step, beside each other, folded."""
    for text in _texts(step):
        if isinstance(text, Element):
            yield text
        else:
            yield fold(f"{text.what}, before and after", beside(text), is_open=False)


def _opened(step: Step) -> Element:
    """The row below a step: nest and source before and after it, under one fold."""
    texts: Part = [
        text if isinstance(text, Element) else beside(replace(text, names=_sides(text)))
        for text in _texts(step)
    ]
    opened = fold("nest and source, before and after", texts, is_open=False)
    return element("div", opened, class_="lk-opened")


def _sides(text: Diff) -> tuple[str, str]:
    return f"{text.what} before", f"{text.what} after"


def _texts(step: Step) -> Iterator[Diff | Element]:
    """What became of the nest, and of the source; or why there is none."""
    yield step.diff()
    try:
        yield step.source_diff()
    except LoopkitError as error:
        yield inline("comment", f"no source: {error.why}")
