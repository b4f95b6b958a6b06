"""Arrays that exist once per thread or block, where they existed once before."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Lineage
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import Model
from loopkit._poly.parallel_axes import Axis


@dataclass(frozen=True, eq=False)
class PerThreadCopies:
    """Asks whether no value is lost when arrays exist once per index of some new ``axes``.

    ``axes`` names the inames on each; every statement is inside one of them.
    """

    new: Model
    lineage: Lineage
    injectivity: Injectivity
    axes: Mapping[Axis, tuple[str, ...]]

    def keep_values(self, name: str) -> bool:
        """Whether all that is read from an array was written on the same new coordinates.

        That is known of the text, and carries over where the schedule touches
        the array where the text does.
        """
        if name not in self.lineage.root.temporary_by_name:
            return False
        mine: dict[str, tuple[bool, int]] = {}
        for statement, uses in _uses(self.new.kernel, name).items():
            image = self.lineage.image_of.get(statement)
            if image is None or len(self.lineage.images_from[image.origin]) != 1:
                return False
            mine[image.origin] = uses
        text = dataflow_of(self.lineage.root).model
        if mine != _uses(text.kernel, name):
            return False
        return all(self.reads_inside(text.statement[origin], name) for origin in mine)

    def reads_inside(self, origin: Statement, name: str) -> bool:
        (image,) = self.lineage.images_from[origin.id]
        for access in dict.fromkeys(origin.reads):
            if access[0] != name:
                continue
            agreeing = dataflow_of(self.lineage.root).agreeing(origin.id, access)
            for writer, inames in agreeing.items():
                (source,) = self.lineage.images_from[writer]
                mine = [
                    image.value_of[i]
                    for i in sorted(inames)
                    if image.value_of[i] == source.value_of[i]
                ]
                same = self.injectivity.determined_by(mine)
                for axis in self.new.copy_axes(name):
                    on = self.axes.get(axis, ())
                    # Both run on one index of the axis.
                    here, there = (
                        self.new.statement[i.statement].inames.intersection(on)
                        for i in (image, source)
                    )
                    if here != there or not here <= same:
                        return False
        return True


def _uses(kernel: Kernel, name: str) -> dict[str, tuple[bool, int]]:
    """For each statement that uses a name, whether it is written and how often it is read there."""
    users = kernel.users(name)
    return {s.id: (s.written == name, sum(n == name for n, _ in s.reads)) for s in users}
