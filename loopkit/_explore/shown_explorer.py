"""Display of an explorer: widgets in Jupyter, otherwise an HTML page or text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module, util
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from loopkit._display.markup import bundle, element, shell
from loopkit._display.style import ROLES
from loopkit._explore.choice_table import verdict
from loopkit._explore.outcome import Failure, Outcome
from loopkit._explore.panes import milliseconds, page

if TYPE_CHECKING:
    from loopkit._explore.explorer import Explorer


def as_text(explorer: Explorer, outcome: Outcome) -> str:
    """The choice and what else there is, the nest or the refusal, proof, costs and time."""
    return "\n".join(_lines(explorer, outcome))


def _lines(explorer: Explorer, outcome: Outcome) -> Iterator[str]:
    for control, position in zip(explorer.controls, explorer.positions, strict=True):
        yield f"{control.name} = {control.label(position)}   of {control.words()}"
    role, words = verdict(outcome)
    told = f"{ROLES[role].mark} {words}, " if words else ""
    yield f"{told}made in {milliseconds(outcome.seconds)}"
    if outcome.printed.strip():
        yield from ("", "the function printed:", outcome.printed.rstrip())
    if outcome.kernel is not None:
        yield from ("", str(outcome.kernel))
    if outcome.failure is not None:
        yield from ("", *_failure(outcome.failure))
    if isinstance(outcome.source, Failure):
        yield from ("", *_failure(outcome.source))
    for found in (outcome.proof, outcome.costs, outcome.measurement):
        if isinstance(found, Failure):
            yield from ("", *_failure(found))
        elif found is not None:
            yield from ("", str(found))


def _failure(failure: Failure) -> Iterator[str]:
    if failure.at:
        yield failure.at
    if failure.picture is None:
        yield failure.said if failure.is_refusal else f"the function failed: {failure.said}"
        return
    # The picture says the rest of the message.
    yield getattr(failure.error, "asked", "")
    yield str(failure.picture)
    yield from failure.remedies


MISSING = "sliders and menus need ipywidgets: pip install 'loopkit[notebook]', then restart"


def forms(
    explorer: Explorer, include: Collection[str] | None, exclude: Collection[str] | None
) -> dict[str, Any]:
    """The forms of an explorer, as ``_repr_mimebundle_`` returns them.

    Beside widgets stands the page of what is known by then, for where the notebook is only read.
    """
    note, widgets = "", dict[str, Any]()
    if getattr(shell(), "kernel", None) is None:
        outcome = explorer.outcome
    elif util.find_spec("ipywidgets") is None:
        note, outcome = MISSING, explorer.outcome
    else:
        panel = explorer.panel()
        panel.show(at_once=("source", "costs"))  # for those who only read
        widgets, outcome = panel.box._repr_mimebundle_(), explorer.so_far
    text = [note] if note else []
    return widgets | bundle(
        lambda: as_page(explorer, outcome, note),
        lambda: "\n".join([*text, as_text(explorer, outcome)]),
        include,
        exclude,
    )


def show(explorer: Explorer) -> None:
    """Show an explorer as two outputs: its widgets, and the page of what is known.

    The widgets hide the page.  Where there are none, as in a notebook made into HTML, it is seen.
    Raises :class:`NotImplementedError` where IPython has to show one output, of all forms.
    """
    made = forms(explorer, None, None)
    if made.keys() <= {"text/plain", "text/html"}:
        raise NotImplementedError
    page = f'<div class="{explorer.panel().stand_in}">{made.pop("text/html", "")}</div>'
    display: Any = import_module("IPython.display").display
    for output in (made, {"text/html": page}):
        display(output, raw=True)


def as_page(explorer: Explorer, outcome: Outcome, note: str = "") -> Element:
    """All parts one below the other."""
    return element("div", page(outcome, explorer.before, note))
