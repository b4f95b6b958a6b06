"""Numbers that are counted when they are first asked for: at most sizes, few of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

Value = int | None
Part = Callable[[], Sequence[tuple[str, Value]]]
"""Numbers that are counted together, and words for what each counts."""
Change = Callable[[str, Value], Any]


def part(change_all: Callable[[Change], object]) -> Part:
    """The numbers that a function changes, in the order in which it does (memoised)."""

    @cache
    def noted() -> Sequence[tuple[str, Value]]:
        found: list[tuple[str, Value]] = []

        def note(what: str, value: Value) -> Value:
            found.append((what, value))
            return value

        change_all(note)
        return found

    return noted


class OnDemand(Sequence[Value]):
    """The numbers of some parts, one after the other.

    ``places`` say of each number which part it is in, and where: as in what was counted before.
    Without them all are counted.
    """

    def __init__(
        self, parts: Iterable[Part], places: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self.parts = tuple(parts)
        if places is None:
            counted = enumerate(part() for part in self.parts)
            places = [(n, position) for n, found in counted for position in range(len(found))]
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        place, position = self.places[number]
        return self.parts[place]()[position][1]

    def what(self, number: int) -> str:
        """What a number counts."""
        place, position = self.places[number]
        return self.parts[place]()[position][0]
