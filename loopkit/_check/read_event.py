"""What is asked about: executions of a read, and the writes that it may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from loopkit._cached import cached_property
from loopkit._check.instance_maps import Image
from loopkit._check.violation import Side, Violation
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import READER, variable
from loopkit._nodes import Expression
from loopkit._poly.dataflow import Access, Sources
from loopkit._poly.model import Cell
from loopkit._poly.pairs import Instance, equal
from loopkit._poly.parallel_axes import Axis


@dataclass(frozen=True, eq=False)
class ReadEvent:
    """Executions of a read.

    ``where`` holds the names of all instances involved; ``time`` is the
    instance that reads now, ``reader`` and ``values`` the instance of the text
    whose read this is.  ``sources``, where given, replace the text's answer.
    """

    where: isl.Set
    time: Instance
    reader: str
    values: Mapping[str, Expression]
    everywhere: Mapping[Axis, Expression]
    base: Instance | None
    sources: Sources | None = None
    access: Access | None = None
    depth: int = 0
    by_data: bool = False
    """Whether data decide if the read happens: where it would leave its array, it does not."""

    @cached_property
    def bound(self) -> isl.Set:
        """``{ names of where, inames·READER of the text }``: each case with the text's instance."""
        result = self.where
        for iname, value in self.values.items():
            result = result & equal(variable(iname, READER), value)
        return result

    @property
    def side(self) -> Side:
        """The reader in a violation."""
        return Side(self.base, self.reader, self.values)

    @property
    def meant(self) -> tuple[str, tuple[Expression, ...]] | None:
        """The cell that the text reads, over the names of the event."""
        if self.access is None:
            return None
        return self.access[0], tuple(substitute(i, self.values) for i in self.access[1])

    def violation(
        self,
        kind: str,
        where: isl.Set,
        cell: Cell,
        *,
        source: Side | None = None,
        other: Side | None = None,
        how: str = "after",
        detail: str = "",
    ) -> Violation:
        """What is wrong with the event where it reads ``cell``."""
        return Violation(
            kind,
            where,
            self.side,
            source,
            other,
            how,
            cell.array,
            cell.indices,
            meant=self.meant,
            detail=detail,
        )

    def narrowed(self, where: isl.Set) -> ReadEvent:
        """The event in fewer cases."""
        return replace(self, where=where)


@dataclass(frozen=True, eq=False)
class SourceImage:
    """A source of an event: an image, the pairs of source and reader, and how near they are.

    ``equal`` counts the shared loops, outermost first, whose values agree.
    """

    image: Image
    at: Instance
    pairs: isl.Set
    equal: int
