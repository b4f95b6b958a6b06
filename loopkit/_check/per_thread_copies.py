"""Arrays that exist once per thread or block, where they existed once before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from loopkit._cached import cached_property
from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Image, Lineage
from loopkit._kernel import Statement
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import Model
from loopkit._poly.parallel_axes import Axis


class PerThreadCopies:
    """Asks whether no value is lost when arrays exist once per index of some new ``axes``.

    ``axes`` names the inames on each; every statement is inside one of them.
    """

    def __init__(
        self,
        new: Model,
        lineage: Lineage,
        injectivity: Injectivity,
        axes: Mapping[Axis, tuple[str, ...]],
    ) -> None:
        self.new = new
        self.lineage = lineage
        self.dataflow = dataflow_of(lineage.root)
        self.injectivity = injectivity
        self.axes = axes

    def keep_values(self, name: str) -> bool:
        """Whether all that is read from an array was written on the same new coordinates.

        That is known of the text, and carries over where the schedule touches
        the array where the text does.
        """
        if name not in self.lineage.root.temporary_by_name:
            return False
        mine: dict[str, tuple[int, int]] = {}
        for statement, uses in self._uses.get(name, {}).items():
            image = self.lineage.image_of.get(statement)
            if image is None or len(self.lineage.images_from[image.origin]) != 1:
                return False
            mine[image.origin] = uses
        if mine != self._uses_of_text.get(name):
            return False
        return all(self.reads_inside(self.dataflow.model.statement[o], name) for o in mine)

    @cached_property
    def _uses(self) -> dict[str, dict[str, tuple[int, int]]]:
        return _uses(self.new.kernel.statements)

    @cached_property
    def _uses_of_text(self) -> dict[str, dict[str, tuple[int, int]]]:
        return _uses(self.dataflow.model.kernel.statements)

    def reads_inside(self, origin: Statement, name: str) -> bool:
        (image,) = self.lineage.images_from[origin.id]
        for access in dict.fromkeys(origin.reads):
            if access[0] != name:
                continue
            for writer, inames in self.dataflow.agreeing(origin.id, access).items():
                (source,) = self.lineage.images_from[writer]
                mine = [
                    image.value_of[i]
                    for i in sorted(inames)
                    if image.value_of[i] == source.value_of[i]
                ]
                same = self.injectivity.determined_by(mine)
                for axis in self.new.copy_axes(name):
                    on = self.axes.get(axis)
                    if on is not None and not self.is_same_index(on, image, source, same):
                        return False
        return True

    def is_same_index(
        self, on: tuple[str, ...], reader: Image, source: Image, same: frozenset[str]
    ) -> bool:
        """Whether two statements run on one index of an axis, ``same`` inames being equal."""
        one, two = (self.new.statement[i.statement].inames for i in (reader, source))
        mine, its = [i for i in on if i in one], [i for i in on if i in two]
        return mine == its and set(mine) <= same


def _uses(statements: Sequence[Statement]) -> dict[str, dict[str, tuple[int, int]]]:
    """By name and statement, how often the name is written and read there."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for statement in statements:
        reads = Counter(name for name, _ in statement.reads)
        for name in {statement.written, *reads}:
            uses = (int(statement.written == name), reads[name])
            found.setdefault(name, {})[statement.id] = uses
    return found
