"""How errors and their witnesses show themselves in notebooks: the methods of
:class:`~loopkit.LoopkitError` and :class:`~loopkit.Witness` that need more than what they hold.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from loopkit._errors import LoopkitError, Witness


class ErrorMethods:
    """What one does with an error."""

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from loopkit._display.markup import bundle
        from loopkit._display.refusal import error_html

        error = cast(LoopkitError, self)
        return bundle(lambda: error_html(error), lambda: str(error), include, exclude)

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows: without loopkit's own frames, unless asked for."""
        from loopkit._display.ipython import traceback_of

        return traceback_of(cast(LoopkitError, self))


class WitnessMethods:
    """What one does with a witness."""

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from loopkit._display.markup import bundle
        from loopkit._display.refusal import witness_html, witness_text

        found = cast(Witness, self)
        return bundle(lambda: witness_html(found), lambda: witness_text(found), include, exclude)
