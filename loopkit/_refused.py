"""How errors and their witnesses show themselves in notebooks: the methods of
:class:`~loopkit.LoopkitError` and :class:`~loopkit.Witness` that need more than what they hold.
"""

from __future__ import annotations

from typing import Any, cast

from loopkit._errors import LoopkitError, Witness
from loopkit._printed import Printed


class ErrorMethods(Printed):
    """What one does with an error."""

    def _html(self) -> Any:
        from loopkit._display.refusal import error_html

        return error_html(cast(LoopkitError, self))

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows: without loopkit's own frames, unless asked for."""
        from loopkit._display.ipython import traceback_of

        return traceback_of(cast(LoopkitError, self))


class WitnessMethods(Printed):
    """What one does with a witness."""

    def _html(self) -> Any:
        from loopkit._display.refusal import witness_html

        return witness_html(cast(Witness, self))

    def _text(self) -> str:
        from loopkit._display.refusal import witness_text

        return witness_text(cast(Witness, self))
