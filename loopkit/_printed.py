"""The base class of values that notebooks display as HTML and terminals as text."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Printed:
    """A value that shows itself, as the element :meth:`_html` in HTML and as text.

    Its text is all that there is to see of it, if nothing else is said.
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
