"""Output of the commands: colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

#: The languages that are printed in colours, as pygments calls them.
LEXERS = ("cuda", "diff", "python")


class Output:
    """Writes to stdout what was asked for, and to stderr how far things are."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.progress = Console(stderr=True, highlight=False)

    def text(self, text: str = "", style: str | None = None) -> None:
        """Print ``text`` as it stands: no markup, nothing wrapped."""
        if self.console.is_terminal:
            self.console.print(Text(text, style=style or ""))
        else:
            print(text)

    def heading(self, text: str) -> None:
        """A line that starts a section."""
        self.text()
        self.text(text, style="bold")

    def code(self, source: str, language: str) -> None:
        """Print source text, in colours on a terminal."""
        source = source.rstrip("\n")
        if not self.console.is_terminal or language not in LEXERS:
            self.text(source)
            return
        syntax = Syntax(source, language, background_color="default", theme="ansi_light")
        text = syntax.highlight(source)
        text.rstrip()
        self.console.print(text)

    @contextmanager
    def working(self, message: str) -> Iterator[None]:
        """Show that ``message`` is going on: a spinner on a terminal, else a line."""
        sys.stdout.flush()
        if self.progress.is_terminal:
            with self.progress.status(message):
                yield
        else:
            print(f"... {message}", file=sys.stderr, flush=True)
            yield
