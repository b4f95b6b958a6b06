"""Methods of histories, steps, errors and witnesses that need other modules than their data.

:class:`~loopkit._history.Step`, :class:`~loopkit._history.History`,
:class:`~loopkit.LoopkitError` and :class:`~loopkit.Witness` themselves hold data only, in a lower
layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from loopkit._errors import LoopkitError, Witness
from loopkit._history import History, Step, show_history
from loopkit._printed import Printed

if TYPE_CHECKING:
    from loopkit._changes import Change, Diff
    from loopkit._history_costs import HistoryCosts


PAGE = 100
"""Columns of what is changed, as text."""


class StepMethods(Printed):
    """The methods of a step."""

    def changes(self) -> tuple[Change, ...]:
        """The changes of each name that the step touched."""
        from loopkit._changes import changes

        step = cast(Step, self)
        return changes(step.before, step.kernel)

    def diff(self) -> Diff:
        """What the step changed in the nest; prints as a unified diff."""
        from loopkit._changes import nest_diff

        step = cast(Step, self)
        return nest_diff(step.before, step.kernel, _names(step))

    def source_diff(self) -> Diff:
        """What the step changed in the CUDA C; raises what lowering of either kernel raises."""
        from loopkit._changes import source_diff

        step = cast(Step, self)
        return source_diff(step.before, step.kernel, _names(step))

    def _html(self) -> Any:
        from loopkit._display.history import step_html

        return step_html(cast(Step, self))

    def _text(self) -> str:
        from loopkit._display.history import step_text

        return step_text(cast(Step, self))


def _names(step: Step) -> tuple[str, str]:
    return "before", f"after {step.call()[1:]}"


class HistoryMethods(Printed):
    """The methods of a history."""

    def at(self, /, **sizes: int) -> HistoryCosts:
        """What each step did to the costs of a launch with these sizes, and to the texts.

        ``sizes`` are those that :meth:`loopkit.Kernel.costs` takes; sizes that a step fixes
        are left out from there on.  Returns plain data that shows itself as a table.
        """
        from loopkit._history_costs import history_costs

        return history_costs(cast(History, self), sizes)

    def __str__(self) -> str:
        return "\n".join(_lines(cast(History, self))) or "no step so far"

    __repr__ = __str__

    def _html(self) -> Any:
        from loopkit._display.history import history_html

        return history_html(cast(History, self))


def _lines(steps: History) -> Iterator[str]:
    """One line a step, and below it what changed, where the step knows its kernels."""
    from loopkit._changes import in_words

    for step, line in zip(steps, show_history(steps).splitlines(), strict=False):
        yield line
        if step.kernels is not None:
            for text in in_words(step.changes()):
                yield from wrap(text, PAGE, initial_indent=" " * 7, subsequent_indent=" " * 11)


class ErrorMethods(Printed):
    """The methods of an error."""

    def _html(self) -> Any:
        from loopkit._display.answers import error_html

        return error_html(cast(LoopkitError, self))

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows: without loopkit's own frames, unless asked for."""
        from loopkit._display.ipython import traceback_of

        return traceback_of(cast(LoopkitError, self))


class WitnessMethods(Printed):
    """The methods of a witness."""

    def _html(self) -> Any:
        from loopkit._display.answers import witness_html

        return witness_html(cast(Witness, self))

    def _text(self) -> str:
        from loopkit._display.answers import witness_text

        return witness_text(cast(Witness, self))
