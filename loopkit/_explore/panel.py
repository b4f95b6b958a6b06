"""The explorer with widgets: controls on top, nest and source below, other results in tabs.

A change of a control updates nest and source at once.  The other results are computed in stages;
between these the event loop runs, so that a newer choice cancels the remaining stages of an older.
"""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from xml.etree.ElementTree import Element

from loopkit._display.markup import element, html_text, inline, output
from loopkit._explore import panes
from loopkit._explore.controls import Control, label
from loopkit._explore.outcome import Outcome

if TYPE_CHECKING:
    from loopkit._explore.explorer import Explorer

PAUSE = 0.02
"""Seconds between stages in which newer choices come in."""

_WIDE = {"description_width": "initial"}
_AT_ONCE = ("source",)
"""Stages that a choice waits for."""

_TABS = (*panes.PANES, "all so far")
_ALL = ("main", *_TABS)
_DRAWN_AFTER = {
    "costs": ("costs",),
    "proof": ("proof",),
    "device": ("costs",),
    "measurement": ("time", "costs"),
    "script": ("script",),
    "suggestions": ("main",),
}
"""The parts that change with each stage, beside the status and the table."""

_SHEET = (
    "<style>.lk-explorer .lm-TabBar-tab{flex:0 1 auto!important;min-width:0!important;"
    "padding:0 .5em!important}</style>"
)
"""Titles of tabs are as wide as their words: all of them are read on a telephone, too."""


class Panel:
    """The widgets of an explorer; ``box`` holds them all."""

    def __init__(self, explorer: Explorer) -> None:
        import ipywidgets

        self.explorer = explorer
        self.stand_in = f"lk-stand-in-{uuid4().hex}"
        """The class of what stands for the widgets where there are none."""
        self.controls = [
            _widget(c, p) for c, p in zip(explorer.controls, explorer.positions, strict=True)
        ]
        self._follows = False
        self._task: asyncio.Task[None] | None = None
        for widget in self.controls:
            widget.observe(self._moved, names="value")
        self.status, self.note, self.main = _html(), _html(), _html()
        self.tabs = {title: _html() for title in _TABS}
        tab = ipywidgets.Tab(list(self.tabs.values()), selected_index=1)
        tab.titles = tuple(self.tabs)
        row = ipywidgets.Box(self.controls, layout={"flex_flow": "row wrap", "overflow": "visible"})
        hidden = f"<style>.{self.stand_in}{{display:none}}</style>"
        sheet = ipywidgets.HTML(_SHEET + hidden, layout={"display": "none"})
        self.box = ipywidgets.VBox([row, self.status, self.note, self.main, tab, sheet])
        self.box.add_class("lk-explorer")

    def follow(self) -> None:
        """Let the controls show what the explorer was set to, and show what comes of it."""
        self._follows = True
        explorer = self.explorer
        each = zip(self.controls, explorer.controls, explorer.positions, strict=True)
        try:
            for widget, control, position in each:
                widget.value = _value(control, position)
        finally:
            self._follows = False
        self.show()

    def _moved(self, change: object) -> None:
        if self._follows:
            return
        pairs = zip(self.controls, self.explorer.controls, strict=True)
        with self._told():
            self.explorer.move(tuple(_position(control, w.value) for w, control in pairs))
            self.show()

    def show(self, at_once: Collection[str] = _AT_ONCE) -> None:
        """Show the choice: some stages now, the rest when nothing newer is to be done."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        with self._told():
            _put(self.status, panes.working(self._words()))
            outcome = self.explorer.so_far
            while outcome.left and outcome.left[0] in at_once:
                outcome = self.explorer.advance()
            self.note.value = ""
            self._draw(outcome, _ALL)
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # no front end that waits
                while outcome.left:
                    outcome = self._advance()
            else:
                if outcome.left:
                    self._task = loop.create_task(self._rest())

    def _words(self) -> str:
        return ", ".join(f"{n} = {label(v)}" for n, v in self.explorer.choice.items())

    async def _rest(self) -> None:
        while self.explorer.so_far.left:
            await asyncio.sleep(PAUSE)
            ended = True
            with self._told():
                self._advance()
                ended = False
            if ended:
                return

    def _advance(self) -> Outcome:
        stage = self.explorer.so_far.left[0]
        outcome = self.explorer.advance()
        self._draw(outcome, _DRAWN_AFTER[stage])
        return outcome

    def _draw(self, outcome: Outcome, titles: Collection[str]) -> None:
        before = self.explorer.before
        if "main" in titles:
            _put(self.main, panes.main(outcome))
        for title in set(titles) & panes.PANES.keys():
            _put(self.tabs[title], panes.PANES[title](outcome, before))
        _put(self.tabs["all so far"], panes.tried(self.explorer.table()))
        _put(self.status, panes.status(outcome))  # the last one: it speaks of what is shown

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Show whatever goes wrong inside: nobody else would see an error of a callback."""
        start = time.perf_counter()
        try:
            with _interruptible():
                yield
        except KeyboardInterrupt:
            took = panes.milliseconds(time.perf_counter() - start)
            _put(self.status, panes.working(self._words(), "interrupted"))
            self._say(f"interrupted after {took}; below stands what was shown before")
        except Exception:
            self._say("an error of loopkit's own, please report it:", traceback.format_exc())

    def _say(self, words: str, details: str = "") -> None:
        _put(self.note, output(inline("refused", words), element("pre", details)))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C, which Jupyter ignores between cells, end what a control began."""
    try:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # signals come to the main thread alone
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)


def _html() -> Any:
    import ipywidgets

    return ipywidgets.HTML(layout={"width": "auto"})


def _put(widget: Any, shown: Element) -> None:
    widget.value = html_text(shown)


def _widget(control: Control, position: int) -> Any:
    import ipywidgets

    value, name = _value(control, position), label(control.name)
    layout = {"width": "auto", "min_width": "18em", "margin": "2px 2em 2px 2px"}
    common = {"description": name, "style": _WIDE, "layout": layout, "value": value}
    if control.kind == "checkbox":
        return ipywidgets.Checkbox(indent=False, **common)
    if isinstance(control.options, range):
        low, high = control.options[0], control.options[-1]
        return ipywidgets.IntSlider(min=low, max=high, **common)
    options = [(control.label(n), n) for n in range(len(control.options))]
    kind = ipywidgets.SelectionSlider if control.kind == "slider" else ipywidgets.Dropdown
    return kind(options=options, **common)


def _first(control: Control) -> int:
    """What a widget holds at the first position: sliders of numbers hold the numbers."""
    return control.options[0] if isinstance(control.options, range) else 0


def _value(control: Control, position: int) -> Any:
    """What the widget of a control holds for a position."""
    return bool(position) if control.kind == "checkbox" else _first(control) + position


def _position(control: Control, value: Any) -> int:
    return int(value) - _first(control)
