"""The parts of an explorer as HTML elements, made from the results that are available."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from loopkit._changes import Diff, changes, in_words, nest_diff, source_diff
from loopkit._costs.costs import Costs
from loopkit._display.answers import proof_html
from loopkit._display.cost_tables import costs_html
from loopkit._display.diff import diff_part
from loopkit._display.history import history_html
from loopkit._display.markup import (
    Part,
    drawn,
    element,
    fold,
    inline,
    marked,
    output,
    suggested,
    table,
)
from loopkit._display.nest_html import nest, source
from loopkit._explore.choice_table import Tried, figures, verdict
from loopkit._explore.controls import label
from loopkit._explore.outcome import Failure, Outcome
from loopkit._kernel import Kernel

BUSY = {
    "source": "generating the source",
    "costs": "counting costs",
    "proof": "proving the source",
    "device": "compiling for the device",
    "measurement": "measuring",
    "script": "trying the script",
    "suggestions": "looking for what would be legal",
}
"""What is done in each stage, in words."""

_NO_KERNEL = "there is no kernel to look at"

_BESIDE = "display:flex;flex-wrap:wrap;gap:.8em 1.5em"
_COLUMN = "flex:1 1 34em;min-width:0;--lk-letters:0"
_ALONE = "contain:inline-size"
"""As wide as there is room, however wide what is inside: that scrolls."""
_FOLDED = "padding-left:1.1em"
_CHIPS = "display:flex;flex-wrap:wrap;gap:0 1.8em"


def status(outcome: Outcome) -> Element:
    """One line: what is chosen, what is known of it, the numbers that matter, what goes on."""
    role, words = verdict(outcome)
    chips: list[Part] = [element("b", outcome.words or "nothing to choose")]
    if words:
        chips.append(marked(role, words))
    chips += [
        [inline("comment", f"{name} "), text]
        for name, (_, text) in figures(outcome).items()
        if name not in ("wavefronts", "shared")
    ]
    chips.append(inline("comment", f"made in {milliseconds(outcome.seconds)}"))
    if outcome.left:
        chips.append(inline("comment", f"{BUSY[outcome.left[0]]} …"))
    return output(element("div", [element("span", c) for c in chips], style=_CHIPS))


def working(words: str, state: str = "calling the function …") -> Element:
    """The same line while a function runs of which nothing is known yet."""
    return output(element("b", words), inline("comment", f"  {state}"))


def _pane(*parts: Part, kernel: Kernel | None = None) -> Element:
    return output(*parts, kernel=kernel, style=_ALONE)


def _remark(text: str) -> Element:
    return _pane(inline("comment", text))


def milliseconds(seconds: float) -> str:
    """A time for people: ``23 ms``, ``2.5 s``."""
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def main(outcome: Outcome) -> Element:
    """Nest and source beside each other, or why there are none."""
    kernel = outcome.kernel
    if outcome.failure is not None or kernel is None:
        parts: Part = failure(outcome.failure) if outcome.failure is not None else None
        return _pane(parts, printed(outcome))
    beside: Part = None
    if isinstance(outcome.source, Failure):
        beside = element("div", failure(outcome.source), style=_COLUMN)
    elif outcome.source is not None:
        beside = element("div", source(kernel), style=_COLUMN)
    columns = element("div", element("div", nest(kernel), style=_COLUMN), beside, style=_BESIDE)
    return _pane(columns, printed(outcome), kernel=kernel)


def printed(outcome: Outcome) -> Part:
    """What the function printed."""
    if not outcome.printed.strip():
        return None
    text = element("pre", outcome.printed.rstrip())
    return element("div", fold("what the function printed", text), style=_FOLDED)


def failure(found: Failure) -> Iterator[Element]:
    """Why something is not there: a refusal with its witness, or what the function raised."""
    head = found.kind if found.is_refusal else f"the function failed: {found.kind}"
    yield element(
        "div",
        marked(found.role, head),
        inline("comment", f"  {found.at}") if found.at else None,
    )
    if found.picture is None:
        yield _paragraph(found.said)
        return
    # The picture says the rest of the message.
    yield _paragraph(getattr(found.error, "asked", ""))
    yield found.picture.element()
    yield from map(suggested, found.remedies)


def _paragraph(text: str) -> Element:
    return element("pre", text, class_="lk-wrapped")


def diffs(outcome: Outcome, before: Outcome | None) -> Element:
    """What differs from the choice that was shown before."""
    kernel = outcome.kernel
    if kernel is None:
        return _remark(_NO_KERNEL)
    if before is None or before.kernel is None:
        return _remark("after another choice, what it changed stands here")
    names = before.words, outcome.words
    moved = ", ".join(f"{n}: {old} → {new}" for n, old, new in _moved(outcome, before))
    parts: list[Part] = [element("div", moved, class_="lk-head")]
    parts += [element("div", line) for line in in_words(changes(before.kernel, kernel))]
    found: list[tuple[str, Diff]] = [("nest", nest_diff(before.kernel, kernel, names))]
    if isinstance(before.source, str) and isinstance(outcome.source, str):
        found.append(("source", source_diff(before.kernel, kernel, names)))
    folds = [fold(title, diff_part(diff)) for title, diff in found]
    return _pane(parts, element("div", folds, style=_FOLDED))


def _moved(outcome: Outcome, before: Outcome) -> Iterator[tuple[str, str, str]]:
    """The arguments in which two choices differ, with the values of both."""
    for (name, new), (_, old) in zip(outcome.choice, before.choice, strict=True):
        if label(new) != label(old):
            yield name, label(old), label(new)


def costs(outcome: Outcome, before: Outcome | None) -> Element:
    """Costs, the numbers that matter first, beside those of the choice before."""
    return _found(
        outcome,
        "costs",
        'explore(..., sizes={"n": …})',
        lambda found: _costs(outcome, before, found),
    )


def _costs(outcome: Outcome, before: Outcome | None, found: Costs) -> Element:
    mine, its = figures(outcome), figures(before) if before is not None else {}
    rows = [
        (name, text, its[name][1] if name in its else "", _ratio(mine, its, name))
        for name, (_, text) in mine.items()
    ]
    moved = list(_moved(outcome, before)) if before is not None else []
    heads = [", ".join(f"{m[0]} = {m[at]}" for m in moved) for at in (2, 1)]
    beside = ("", heads[0] or "this choice", heads[1], "")
    numbers = table(beside, rows, numbers=(1, 2, 3))
    return _pile(_pane(numbers), _pane(drawn(found.plot_roofline)), costs_html(found))


def tried(found: Tried) -> Element:
    """All outcomes so far, in a box that is as wide as there is room."""
    return _pile(found.output())


def _pile(*outputs: Element) -> Element:
    for one in outputs:
        one.set("style", _ALONE)
    return element("div", outputs)


def _ratio(
    mine: dict[str, tuple[float | None, str]], its: dict[str, tuple[float | None, str]], name: str
) -> str:
    one, other = mine[name][0], its[name][0] if name in its else None
    return f"× {one / other:.3g}" if one and other and one != other else ""


def _found(outcome: Outcome, stage: str, how: str, show: Callable[[Any], Element]) -> Element:
    """What was found in a stage, or why that is not there."""
    found = getattr(outcome, stage)
    if isinstance(found, Failure):
        return _pane(failure(found))
    if found is not None:
        return show(found)
    if outcome.kernel is None:
        return _remark(_NO_KERNEL)
    if isinstance(outcome.source, Failure):
        return _remark("no code can be made of this choice")
    return _remark(f"{BUSY[stage]} …" if stage in outcome.left else f"not asked for: {how}")


def proof(outcome: Outcome) -> Element:
    """What is proven: each step, and the source."""
    if outcome.kernel is None or outcome.failure is not None:
        return _remark(_NO_KERNEL)
    return _pile(_found(outcome, "proof", "", proof_html), history_html(outcome.kernel.history))


def _text(found: object) -> Element:
    return _pane(element("pre", str(found).rstrip()))


PANES: Mapping[str, Callable[[Outcome, Outcome | None], Element]] = {
    "changes": diffs,
    "costs": costs,
    "proof": lambda outcome, before: proof(outcome),
    "time": lambda outcome, before: _found(
        outcome, "measurement", "with a GPU sizes={…} is enough, else arrays={…}", _text
    ),
    "script": lambda outcome, before: _found(outcome, "script", "", _text),
}
"""What stands below nest and source, by its title."""


def page(outcome: Outcome, before: Outcome | None, note: str = "") -> Iterator[Element]:
    """All parts of an explorer one below the other, for where there are no widgets."""
    if note:
        yield _pane(marked("undecided", note))
    yield status(replace(outcome, left=()))
    yield main(outcome)
    stages = {"costs": "costs", "proof": "proof", "time": "measurement", "script": "script"}
    there = [title for title, stage in stages.items() if getattr(outcome, stage) is not None]
    folded = [(title, PANES[title](outcome, before)) for title in there]
    if folded:
        folds = [fold(title, part, is_open=False) for title, part in folded]
        yield _pane(element("div", folds, style=_FOLDED))
