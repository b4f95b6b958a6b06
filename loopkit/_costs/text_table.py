"""Tables, and remarks between them, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loopkit._frozen import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text under heads: ``names`` columns of names, then numbers.

    ``statements`` are those that the rows are of, where they are of some.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    statements: tuple[str, ...] = ()
    names: int = 2


def table(
    columns: tuple[str, ...],
    rows: Iterable[Sequence[object]],
    names: int = 2,
    statements: tuple[str, ...] = (),
) -> Iterator[Table]:
    """A table of names, numbers and polynomials; without rows there is none."""
    if texts := tuple(tuple(map(text_of, row)) for row in rows):
        yield Table(columns, texts, statements, names)


def text_of(value: object) -> str:
    """A number or a polynomial, or that it is not known; text as it is."""
    return f"{value:,}" if isinstance(value, int) else "not known" if value is None else str(value)


class Head(str):
    """What stands above tables: its first line is a title."""


def as_text(parts: Iterable[Table | str]) -> str:
    """Tables and remarks as text, a blank line between them."""
    return "\n\n".join(
        "\n".join(lines_of([part.columns, *part.rows], part.names))
        if isinstance(part, Table)
        else part
        for part in parts
    )


def lines_of(cells: Sequence[Sequence[str]], names: int) -> Iterator[str]:
    """Rows of text as lines: columns of ``names`` begin at the left, numbers end at the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        texts = [
            text.ljust(width) if at < names else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(texts).rstrip()
