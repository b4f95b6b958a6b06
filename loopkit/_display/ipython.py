"""loopkit inside of IPython: tracebacks, refusals shown below their cell, and completion."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Any

from loopkit._display.markup import html_text
from loopkit._display.markup import shell as shell
from loopkit._errors import LoopkitError, WitnessError

_OURS = str(Path(__file__).parents[1]) + os.sep


def traceback_of(error: LoopkitError) -> list[str]:
    """A traceback without the frames of loopkit; with them after ``%xmode Verbose``."""
    running = shell()
    trace = error.__traceback__
    if running is None:
        return format_exception(type(error), error, trace)
    view = running.InteractiveTB
    if view.mode != "Verbose":
        trace = without_ours(trace)
    made: list[str] = view.structured_traceback(type(error), error, trace)
    return made


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of loopkit; the first frame stays."""
    frames: list[TracebackType] = []
    while trace is not None:
        if not frames or not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def show_refusal(result: Any) -> None:
    """After a cell: the picture of what was refused in it, where HTML can be shown.

    Its sentences stand in the traceback above.
    """
    error = result.error_in_exec
    running = shell()
    if not isinstance(error, WitnessError) or error.witness is None or running is None:
        return
    if "text/html" in running.display_formatter.active_types:
        from loopkit._display.answers import case_html

        display: Any = import_module("IPython.display").display
        display({"text/html": html_text(case_html(error))}, raw=True)


def load(running: Any) -> None:
    """Register with a shell: refusals show themselves, names complete inside of strings."""
    if getattr(running, "_loopkit", False):
        return
    from loopkit._display.complete import matcher

    running._loopkit = True
    running.events.register("post_run_cell", show_refusal)
    running.Completer.custom_matchers.append(matcher(running))


def unload(running: Any) -> None:
    """Take back what :func:`load` did."""
    if not getattr(running, "_loopkit", False):
        return
    running._loopkit = False
    running.events.unregister("post_run_cell", show_refusal)
    matchers = running.Completer.custom_matchers
    matchers[:] = [m for m in matchers if m.__name__ != "loopkit_names"]
