"""From statements in order to the loop tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopkit._frozen import dataclass
from loopkit._make.drafts import Draft
from loopkit._make.reductions import Part
from loopkit._make.scopes import Inames
from loopkit._tree import Entry, Key


@dataclass
class _Open:
    """A loop that the last statement stands in.

    ``block`` is the number of the ``for`` block that it is, 0 as long as only
    statements were in it that no block encloses.
    """

    iname: str
    block: int
    number: int


class Nest:
    """Gives every statement its path; neighbours share the loops that both are in.

    Two ``for`` blocks are two loops, also over one iname.  A statement that is
    in a loop only because its text uses the iname joins the loop beside it.
    """

    def __init__(self, inames: Inames, numbers: Iterator[int]) -> None:
        self.inames = inames
        self.numbers = numbers
        self.open: list[_Open] = []

    def entries(self, split: Iterable[tuple[Draft, Iterable[Part]]]) -> list[Entry]:
        """``(statement id, path)`` for all parts of all drafts."""
        result: list[Entry] = []
        for draft, parts in split:
            path = self._path(draft)
            for part in parts:
                result.append((part.statement.id, (*path, *part.loops)))
        return result

    def _path(self, draft: Draft) -> tuple[Key, ...]:
        blocks = {iname: number for number, group in draft.item.scopes for iname in group}
        scoped = [i for _, group in draft.item.scopes for i in group]
        wanted = self.inames.nested(draft.inames, scoped)
        depth = 0
        while depth < len(wanted) and depth < len(self.open):
            loop = self.open[depth]
            block = blocks.get(wanted[depth], 0)
            if loop.iname != wanted[depth] or (block and loop.block and block != loop.block):
                break
            loop.block = loop.block or block
            depth += 1
        del self.open[depth:]
        for iname in wanted[depth:]:
            self.open.append(_Open(iname, blocks.get(iname, 0), next(self.numbers)))
        return tuple((loop.iname, loop.number) for loop in self.open)
