"""How an explorer shows itself: with widgets in Jupyter, elsewhere as a page, and as text."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from loopkit._display.markup import bundle, element, shell
from loopkit._explore.outcome import Outcome
from loopkit._explore.panes import page
from loopkit._explore.text import as_text

if TYPE_CHECKING:
    from loopkit._explore.explorer import Explorer

MISSING = "sliders and menus need ipywidgets: pip install 'loopkit[notebook]', then start anew"


def forms(
    explorer: Explorer, include: Collection[str] | None, exclude: Collection[str] | None
) -> dict[str, Any]:
    """The forms of an explorer, as ``_repr_mimebundle_`` returns them.

    Beside widgets stands the page of what is known by then, for where the notebook is only read.
    """
    in_jupyter = _in_jupyter()
    has_widgets = importlib.util.find_spec("ipywidgets") is not None
    if not (in_jupyter and has_widgets):
        note = MISSING if in_jupyter else ""
        return _static(explorer, explorer.outcome, note, include, exclude)
    panel = explorer.panel()
    panel.show(at_once=("source", "costs"))  # for those who only read
    known = _static(explorer, explorer.so_far, "", include, exclude)
    return {**panel.forms(), **known}


def _static(
    explorer: Explorer,
    outcome: Outcome,
    note: str,
    include: Collection[str] | None,
    exclude: Collection[str] | None,
) -> dict[str, str]:
    def text() -> str:
        return "\n".join(filter(None, (note, as_text(explorer, outcome))))

    return bundle(lambda: as_page(explorer, outcome, note), text, include, exclude)


def as_page(explorer: Explorer, outcome: Outcome, note: str = "") -> Element:
    """All parts one below the other."""
    return element("div", page(outcome, explorer.before, note))


def _in_jupyter() -> bool:
    return getattr(shell(), "kernel", None) is not None
