"""Numbers and tables as text: four digits and a unit, columns of equal width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loopkit._frozen import dataclass


def seconds_text(seconds: float) -> str:
    """``2.054 ms``"""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def number_text(number: float) -> str:
    """``68,719,476,736`` or, of more than twelve digits, ``1.1e+15``."""
    return f"{number:,.0f}" if number < 1e12 else f"{number:.4g}"


def bytes_text(number: float) -> str:
    """``201.3 MB``: powers of 1000, as data sheets have them."""
    return _scaled(number, "B")


def rate_text(rate: float, unit: str) -> str:
    """``3.352 TB/s``, ``33.45 T instructions/s``"""
    return _scaled(rate, "B" if unit == "bytes" else f" {unit}") + "/s"


def _scaled(number: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor * 0.9995:
            return f"{number / factor:.4g} {prefix}{unit.lstrip() if unit == 'B' else unit}"
    return f"{number:.4g} {unit.strip()}"


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
