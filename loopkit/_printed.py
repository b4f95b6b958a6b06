"""What shows itself in notebooks as it prints."""

from __future__ import annotations

from collections.abc import Collection


class Printed:
    """A value whose text is all that there is to see of it."""

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from loopkit._display.markup import bundle, printed

        return bundle(lambda: printed(str(self)), lambda: str(self), include, exclude)
