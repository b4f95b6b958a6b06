"""Steps and histories as HTML: what was asked, what is known of it, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._changes import SIGNS, Change, Diff, in_words, kind_word
from loopkit._display.diff import beside, diff_part
from loopkit._display.markup import Part, element, fold, inline, output, table
from loopkit._display.style import ROLES
from loopkit._display.words import coloured, roles_of
from loopkit._errors import LoopkitError
from loopkit._history import History, Step
from loopkit._relations import grouped

if TYPE_CHECKING:
    from loopkit._history_costs import HistoryCosts

VERDICTS = {"proven": "ok", "assumed": "undecided", "unchecked": "refused"}
"""The role of what is known of a step."""


def verdict(step: Step) -> Element:
    """What is known of a step, with its mark."""
    role = VERDICTS[step.verdict]
    return inline(role, f"{ROLES[role].mark} {step.verdict}")


def call(step: Step) -> Element:
    """The step as a call: the transform, and its arguments."""
    name, bracket, rest = step.call()[1:].partition("(")
    return element("code", element("b", name), bracket, rest)


def milliseconds(step: Step) -> str:
    """How long a step took, its proof included."""
    return f"{1e3 * step.seconds:.1f} ms" if step.seconds else ""


def history_html(steps: History) -> Element:
    """A table of steps; which of them opens how is said below."""
    if not steps:
        return output(inline("comment", "no step so far"))
    rows = [
        (str(number), call(step), verdict(step), milliseconds(step), changed(step))
        for number, step in enumerate(steps)
    ]
    found = table(("", "step", "verdict", "took", "what changed"), rows, numbers=(0, 3))
    names = ", ".join(f"{name}=…" for name in _sizes(steps))
    return output(found, inline("comment", f"history[0] opens a step, history.at({names}) all"))


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
    for stage, texts in zip(costs.stages, costs.rows(), strict=True):
        step = stage.step
        rows.append((texts[0], texts[1] if step is None else call(step), *texts[2:]))
        if step is not None:
            rows.append(element("div", diffs(step), class_="lk-opened"))
    sizes = ", ".join(f"{name} = {value:,}" for name, value in costs.sizes)
    found = table(costs.columns, rows, numbers=(0, *range(2, len(costs.columns))))
    return output(element("div", sizes, class_="lk-head") if sizes else None, found)


def diffs(step: Step) -> Iterator[Element]:
    """Nest and source before and after a step, beside each other, folded."""
    yield fold("nest, before and after", beside(step.diff()), is_open=False)
    try:
        source: Diff = step.source_diff()
    except LoopkitError as error:
        yield inline("comment", f"no source: {error.why}")
    else:
        yield fold("source, before and after", beside(source), is_open=False)
