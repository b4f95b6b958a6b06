"""The blocks and threads on which instances execute, and the copies of arrays on them."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._cached import cached_property, memoised
from loopkit._collectives import spread_inames
from loopkit._expression import variable_names
from loopkit._hidden import hidden, instance, variable
from loopkit._kernel import Kernel, Statement
from loopkit._launches import inames_by_launch, is_one_launch, launch_of
from loopkit._nodes import Expression
from loopkit._places import first_block_alone
from loopkit._poly.pairs import Instance, between
from loopkit._relations import grouped, reachable
from loopkit._tags import GroupAxis, InstructionParallel, LocalAuto, LocalAxis

Axis = tuple[str, object]


def index_name(axis: Axis, at: Instance) -> str:
    """The name of an instance's index on an axis that it has no coordinate on."""
    return instance(hidden("index", *axis), at.label)


class ParallelAxes:
    """A kernel's blocks and threads; its address spaces have been decided."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.statement = kernel.statement_by_id

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Block and thread axes that the kernel's tags use, and inames tagged ``ilp``."""
        used = frozenset().union(*(s.inames for s in self.kernel.statements))
        return tuple(sorted({a for i in used if (a := self.axis_of(i)) is not None}, key=str))

    def axis_of(self, iname: str) -> Axis | None:
        """The hardware axis that an iname is a coordinate on."""
        tag = self.kernel.iname_tags.get(iname)
        if isinstance(tag, GroupAxis):
            return ("g", tag.axis)
        if isinstance(tag, LocalAxis):
            return ("l", tag.axis)
        if isinstance(tag, LocalAuto):
            return ("l", iname)
        if isinstance(tag, InstructionParallel):
            return ("ilp", iname)
        return None

    @cached_property
    def inames_on(self) -> dict[Axis, tuple[str, ...]]:
        """The inames on each axis."""
        inames = (i for i in self.kernel.iname_tags if i in self.kernel.home_domain)
        return grouped((a, i) for i in inames if (a := self.axis_of(i)) is not None)

    @memoised
    def lower(self, iname: str) -> int:
        """The smallest value of a parallel iname, which hardware index 0 stands for.

        The loops around bound it, too: of ``i >= k``, where ``k >= 2``, it is 2.
        """
        return self.kernel.range_around(iname)[0] or 0

    def coordinate(self, at: Instance, axis: Axis) -> Expression | None:
        """An instance's index on a hardware axis: a value, or None where it runs on all.

        A statement without an iname there runs once, on index 0, unless what it
        writes exists once per index, and is needed on others, too.
        """
        assert at.statement is not None
        if axis[0] == "launch":
            launch = launch_of(self.kernel)[at.statement]
            if axis[1] in launch.loops:
                return variable(str(axis[1]), at.label)
            return launch.number if axis[1] == 0 else 0
        statement = self.statement[at.statement]
        for iname in self.inames_on.get(axis, ()):
            if iname in statement.inames:
                name = variable(iname, at.label)
                low = self.lower(iname)
                return name if low == 0 else prim.Sum((name, -low))
        if axis[0] == "ilp":
            # Copies are numbered from 0; what is outside the iname belongs to none of them.
            return -1
        return None if axis in self.replicated_axes(statement.written) else 0

    def everywhere(self, at: Instance) -> tuple[isl.Set, dict[Axis, Expression]]:
        """``{ index··axis·label, sizes }`` of axes on all of which an instance runs, and names."""
        bounds = _sets.universe()
        values: dict[Axis, Expression] = {}
        for axis in self.axes:
            if self.coordinate(at, axis) is not None:
                continue
            name = index_name(axis, at)
            values[axis] = prim.Variable(name)
            bounds = bounds & self._indices(self.launched_on(at.statement, axis), name)
        return bounds, values

    def launched_on(self, statement: str | None, axis: Axis) -> tuple[str, ...]:
        """The inames on an axis in a statement's launch."""
        inames = self.inames_on[axis]
        if statement is not None and not is_one_launch(self.kernel):
            used = inames_by_launch(self.kernel)[launch_of(self.kernel)[statement].number]
            inames = tuple(i for i in inames if i in used)
        return inames

    @memoised
    def _indices(self, inames: tuple[str, ...], name: str) -> isl.Set:
        """``{ name, sizes : 0, or an index up to the largest of some inames }``.

        Blocks have as many threads as the longest loop at any sizes; grids follow the sizes.
        """
        result = _sets.equality(name, 0)
        for iname in inames:
            longest = self.kernel.range_around(iname)[1]
            if longest is not None and not isinstance(self.kernel.iname_tags[iname], GroupAxis):
                result = result | between(name, 0, longest - self.lower(iname))
                continue
            reach = _sets.project_onto(
                self.kernel.domain_around([iname]) & self.kernel.assumptions.set,
                [iname, *self.kernel.sizes],
            )
            value = prim.Sum((prim.Variable(iname), -self.lower(iname)))
            result = result | _sets.project_out(reach & between(name, 0, value), [iname])
        # Where a loop is never empty, its index 0 is one of its own: several such axes would
        # else double the pieces of all that is asked.
        assumed = self.kernel.assumptions.set
        return (result & assumed).coalesce().gist(assumed)

    def is_global(self, name: str) -> bool:
        """Whether all blocks see the same array."""
        temporary = self.kernel.temporary_by_name.get(name)
        return temporary is None or temporary.address_space is AddressSpace.GLOBAL

    def copy_axes(self, name: str) -> tuple[Axis, ...]:
        """The hardware axes along which an array exists once per index; launches among them.

        The accumulator of a reduction over threads is one, whichever of them update it.
        """
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is None or temporary.address_space is AddressSpace.GLOBAL:
            return ()
        if temporary.address_space is AddressSpace.LOCAL:
            return (*self._launches(name), *(a for a in self.axes if a[0] == "g"))
        combined = self.combined_axes(name)
        copies = (
            a
            for a in self.axes
            if a not in combined and (a[0] != "ilp" or self._is_copied(name, str(a[1])))
        )
        return (*self._launches(name), *(a for a in copies if self._is_looked_at(name, a)))

    def _is_looked_at(self, name: str, axis: Axis) -> bool:
        """Whether statements on an axis with ``l.auto`` copies use a private array.

        Everything else executes on index 0 of that axis.
        """
        return axis[0] != "l" or isinstance(axis[1], int) or name in self._needed_on(axis)

    @memoised
    def _needed_on(self, axis: Axis) -> frozenset[str]:
        """What statements with a coordinate on an axis use, and what that is computed from."""
        kernel, inames = self.kernel, frozenset(self.inames_on[axis])

        def used_by(statements: Iterable[Statement]) -> set[str]:
            used = {n for s in statements for n in (*s.names, *kernel.loaded_bounds(s.inames))}
            return used & kernel.temporary_by_name.keys()

        start = used_by(s for s in kernel.statements if s.inames & inames)
        return reachable(start, lambda name: used_by(kernel.writers.get(name, ())))

    @memoised
    def combined_axes(self, name: str) -> frozenset[Axis]:
        """The axes that the updates of an accumulator run over: one reduction of all of them."""
        inames = spread_inames(self.kernel).get(name, ())
        return frozenset(a for i in inames if (a := self.axis_of(i)) is not None)

    @memoised
    def _launches(self, name: str) -> tuple[Axis, ...]:
        """What tells the launches apart that use an array, each with its own."""
        if is_one_launch(self.kernel):
            return ()
        users = {launch_of(self.kernel)[s.id] for s in self.kernel.users(name)}
        loops = sorted({("launch", iname) for launch in users for iname in launch.loops})
        return (*((("launch", 0),) if len(users) > 1 else ()), *loops)

    @memoised
    def replicated_axes(self, name: str) -> tuple[Axis, ...]:
        """Those of :meth:`copy_axes` on all indices of which a statement without a coordinate runs.

        Where only block 0 looks at what an array holds, it runs there alone.
        """
        alone = first_block_alone(self.kernel).get(name, frozenset())
        return tuple(a for a in self.copy_axes(name) if a[0] != "g" or a[1] not in alone)

    def _is_copied(self, name: str, iname: str) -> bool:
        """Whether a private temporary exists once per value of an iname tagged ``ilp``."""
        inside = [w for w in self.kernel.writers.get(name, ()) if iname in w.inames]
        return bool(inside) and not any(
            iname in variable_names(index) for w in inside for index in w.write[1]
        )
