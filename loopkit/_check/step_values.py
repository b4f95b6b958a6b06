"""Values that stay within an iteration, or on a thread: where a temporary's values are written.

This is known for the text, and holds for a schedule that accesses the array at the same places.
For other arrays it is known of the schedule before the step, which was proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pymbolic.primitives as prim

from loopkit._cached import cached_property, memoised
from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Image, Lineage
from loopkit._check.step_accesses import StepAxes, uses_of
from loopkit._expression import variable_names
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._poly.parallel_axes import Axis

NONE: frozenset[str] = frozenset()


class KeptValues:
    """Where the values of a step's temporaries come from; ``lineage`` is that after the step."""

    def __init__(self, axes: StepAxes, lineage: Lineage, injectivity: Injectivity) -> None:
        self.axes = axes
        self.pairs = axes.pairs
        self.new = axes.new
        self.of_text = lineage
        self.injectivity = injectivity

    @cached_property
    def of_step(self) -> Lineage:
        """The kernel after the step as a schedule of that before it."""
        images = []
        for pair in self.pairs.values():
            inames = sorted(pair.old.inames)
            values = tuple((i, pair.values.get(i, prim.Variable(i))) for i in inames)
            images.append(Image(pair.new.id, pair.old.id, values))
        return Lineage(self.axes.old.kernel, tuple(images))

    def known_of(self, name: str) -> Iterator[Lineage]:
        """Kernels of which it is known where a temporary's values come from, with their images."""
        return (k for k in (self.of_text, self.of_step) if self.is_used_as_in(k, name))

    @memoised
    def renewed_in(self, name: str) -> frozenset[str]:
        """Loops around all uses of a temporary, in each iteration of which it is set anew.

        All that is read in an iteration is written there, above: other iterations, which
        run before or after it, do not show.
        """
        if name not in self.new.kernel.temporary_by_name:
            return NONE
        users = [s.id for s in self.new.kernel.statements if s.id in self._users(name)]
        around = frozenset(self.new.order.shared_loops(users[0], users[0]))
        for other in users[1:]:
            around &= frozenset(self.new.order.shared_loops(users[0], other))
        for known in self.known_of(name):
            loops = around.intersection(
                *(same for _, writers in self.agreements(known, name) for _, same in writers)
            )
            if loops and self.is_prefix(loops, users):
                return loops
        return NONE

    def is_prefix(self, loops: frozenset[str], users: list[str]) -> bool:
        """Whether some loops are the outermost around all statements."""
        return all(
            frozenset(i for i, _ in self.new.order.place(u)[1][: len(loops)]) == loops
            for u in users
        )

    def are_kept(self, name: str) -> bool:
        """Whether all that is read from an array was written on the same new coordinates."""
        axes = [a for a in self.axes.changed_axes if a in self.new.copy_axes(name)]
        return any(self.are_kept_in(known, name, axes) for known in self.known_of(name))

    def are_kept_in(self, known: Lineage, name: str, axes: Sequence[Axis]) -> bool:
        """The same for some axes, by what is known of one kernel."""
        if self.is_set_anew(known, name, axes):
            return True
        for image, writers in self.agreements(known, name):
            for source, same in writers:
                for axis in axes:
                    here, there = (
                        self.axes.inames_on(self.pairs[i.statement], axis) for i in (image, source)
                    )
                    if self.axes.coordinate(self.pairs[source.statement], axis) is None:
                        continue
                    if here != there or not {*here} <= same:
                        return False
        return True

    def are_kept_at(self, name: str, told: Mapping[str, Sequence[Expression]]) -> bool:
        """Whether all that is read was written where some expressions had the values they have.

        ``told`` are those of each statement that uses the temporary.
        """
        inames = self.injectivity.inames
        return any(
            all(
                told[image.statement] == told[source.statement]
                and all(variable_names(e) & inames <= same for e in told[source.statement])
                for image, writers in self.agreements(known, name)
                for source, same in writers
            )
            for known in self.known_of(name)
        )

    def is_set_anew(self, known: Lineage, name: str, axes: Sequence[Axis]) -> bool:
        """Whether each iteration of outermost loops sets what it reads, on the axes that these say.

        They are loops of the kernel of which that is known, around all uses of the array.  Then it
        need not be known which write it is that a read sees.
        """
        text = model_of(known.root)
        images = [known.images_from[origin][0] for origin in uses_of(text, name)]
        on_axes = {
            tuple(self.axes.inames_on(self.pairs[i.statement], axis) for axis in axes)
            for i in images
        }
        if len(on_axes) > 1:
            return False
        needed = frozenset(iname for inames in on_axes.pop() for iname in inames)
        if not needed:
            return True
        first, *others = (image.origin for image in images)
        loops = text.order.shared_loops(first, first)
        for other in others:
            loops = loops[: len(text.order.shared_loops(first, other))]
        for depth in range(1, len(loops) + 1):
            values = [tuple(image.value_of[i] for i in loops[:depth]) for image in images]
            if any(mine != values[0] for mine in values):
                return False
            told = self._determined_by(values[0])
            if needed <= told:
                flow = dataflow_of(known.root)
                return all(
                    flow.is_set_within(image.origin, access, depth)
                    for image in images
                    for access in dict.fromkeys(text.kernel.reads_of(text.statement[image.origin]))
                    if access[0] == name
                )
        return False

    def is_used_as_in(self, known: Lineage, name: str) -> bool:
        """Whether a schedule touches a temporary where another kernel does, and nowhere else."""
        if name not in known.root.temporary_by_name:
            return False
        mine: dict[str, tuple[bool, int]] = {}
        for statement, uses in self._users(name).items():
            image = known.image_of.get(statement)
            if image is None or len(known.images_from[image.origin]) != 1 or known.every(image):
                return False
            mine[image.origin] = uses
        return mine == uses_of(model_of(known.root), name)

    @memoised
    def _users(self, name: str) -> dict[str, tuple[bool, int]]:
        return uses_of(self.new, name)

    @memoised
    def agreements(
        self, known: Lineage, name: str
    ) -> tuple[tuple[Image, tuple[tuple[Image, frozenset[str]], ...]], ...]:
        """For each read of a temporary its sources, and the inames that it shares with them."""
        text, found = model_of(known.root), []
        for origin in uses_of(text, name):
            (image,) = known.images_from[origin]
            for access in dict.fromkeys(text.kernel.reads_of(text.statement[origin])):
                if access[0] == name:
                    agreeing = dataflow_of(known.root).agreeing(origin, access)
                    writers = tuple(
                        self.shared(image, known.images_from[w][0], i) for w, i in agreeing.items()
                    )
                    found.append((image, writers))
        return tuple(found)

    def shared(
        self, image: Image, source: Image, inames: frozenset[str]
    ) -> tuple[Image, frozenset[str]]:
        """The image of a write, and the inames that it has in common with that of a read."""
        mine, its = image.value_of, source.value_of
        values = tuple(mine[i] for i in sorted(inames) if mine[i] == its[i])
        return source, self._determined_by(values)

    @memoised
    def _determined_by(self, values: tuple[Expression, ...]) -> frozenset[str]:
        return self.injectivity.determined_by(values)
