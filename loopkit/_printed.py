"""The base class of values that notebooks display as HTML and terminals as text."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Printed:
    """A value that is displayed as HTML by :meth:`_html`, and as text by :meth:`_text`.

    By default both are its string.
    """

    def _html(self) -> Any:
        from loopkit._display.markup import printed

        return printed(str(self))

    def _text(self) -> str:
        return str(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from loopkit._display.markup import bundle

        return bundle(self._html, self._text, include, exclude)
