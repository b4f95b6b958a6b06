"""save_and_reload_temporaries: private and shared values that are live across launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _footprint, _sets
from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._cached import cached_property
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    NothingToDoError,
)
from loopkit._expression import Access, variable_names
from loopkit._footprint import Axis
from loopkit._frozen import dataclass
from loopkit._hidden import READER, WRITER, instances
from loopkit._kernel import Kernel, Statement
from loopkit._launches import Launch, is_one_launch, launch_of
from loopkit._linear import Linear
from loopkit._nodes import Expression
from loopkit._places import one_loop_per_statement, outlives_launch, space_in_launch
from loopkit._poly.dataflow import dataflow_of, is_own_read
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, Undecided, differ
from loopkit._rules import expand_rules
from loopkit._simplify import simplify
from loopkit._tags import GroupAxis, InstructionParallel, LocalAuto, LocalAxis
from loopkit._transform import transform
from loopkit._tree import common_prefix, entries_of, path_inames
from loopkit.transforms._common import temporaries_in, with_arrays
from loopkit.transforms._loop_nests import extent_or, offset
from loopkit.transforms._placement import Place, span
from loopkit.transforms._transfer_loops import make_nest, name_axes, with_nest
from loopkit.transforms._uses import element
from loopkit.transforms.statements import with_barrier

_MADE_BY = "save_and_reload_temporaries"

_COPIES = {
    AddressSpace.PRIVATE: (GroupAxis, LocalAxis, LocalAuto, InstructionParallel),
    AddressSpace.LOCAL: (GroupAxis,),
}
"""Along which tags a temporary has several values at a time, by its address space."""


@transform
def save_and_reload_temporaries(
    kernel: Kernel,
    insn_before: kind.Within = None,
    insn_after: kind.Within = None,
    id_based_on: kind.NewName = None,
    tags: kind.MaybeNames = None,
    *,
    within_inames: kind.MaybeNames = None,
    only_var_names: kind.MaybeNames = None,
    unchecked: bool = False,
) -> Change:
    """Save private and shared temporaries in global memory between launches.

    Before::

        for i
            t = 2*x[i]
            a[i] = t
            b[i] = t + 1

    After ``save_and_reload_temporaries("id:a", "id:b", within_inames="")``::

        for i
            t = 2*x[i]
            a[i] = t
            t_save[i] = t
        ==== launch 2
        for i
            t = t_save[i]
            b[i] = t + 1

    The lifetime of private and shared temporaries is a launch.  Those that a later launch reads are
    saved after their last write, and reloaded there before their first use: exactly the cells that
    are read, once for each thread (or block), and for each iteration of the loops that the barrier
    splits.  If the thread axes are tagged, accesses of neighbouring threads are coalesced.

    With ``insn_before`` or ``insn_after`` a launch ends there, as by :func:`add_barrier`.  Without,
    the launches are those that there are: temporaries that live in global memory because they
    outlive a launch, and for no other reason, become private or shared, as their subscripts say.

    :arg insn_before: what comes first, as in :func:`add_barrier`.
    :arg insn_after: what comes then, as there.
    :arg id_based_on: what the barrier's id begins with, as there.
    :arg tags: tags of the barrier.
    :arg within_inames: the loops that stay around the barrier, as there.
    :arg only_var_names: the temporaries; without, all that outlive a launch and have constant
        lengths, but for accumulators that several launches update.
    :raises IllegalTransformError: where no such value is live across launches, or a loop that
        indexes the saved values is unbounded.
    """
    parted = kernel = one_loop_per_statement(kernel)
    if insn_before is not None or insn_after is not None:
        parted = with_barrier(kernel, insn_before, insn_after, id_based_on, tags, within_inames)
    elif id_based_on is not None or tags is not None or within_inames is not None:
        raise InvalidArgumentError(
            "without insn_before and insn_after no barrier is added, of which something could "
            "be said",
            instead='for example insn_before="id:first"',
        )
    if is_one_launch(parted):
        raise NothingToDoError(
            "a call of the kernel is one launch, which no value outlives",
            instead="say by insn_before and insn_after where a launch is to end",
        )
    result, moves = parted, frozenset[str]()
    for temporary in _candidates(kernel, only_var_names):
        values = _Values(kernel, parted, temporary)
        if outlives_launch(expand_rules(parted), temporary.name) and not values.are_accumulated:
            own = replace(temporary, address_space=values.space)
            result, made = values.kept_in(with_arrays(result, {temporary.name: own}))
            moves |= made
    if not moves:
        raise IllegalTransformError(
            "no value of a private or shared temporary outlives a launch",
            instead="leave the step out, or take add_barrier",
        )
    return Change(result, moves=moves)


def _candidates(kernel: Kernel, only: kind.MaybeNames) -> list[TemporaryVariable]:
    """The temporaries of constant lengths that could be private or shared."""
    return [
        t
        for t in temporaries_in(kernel, only)
        if space_in_launch(expand_rules(kernel), t) is not AddressSpace.GLOBAL
        and all(isinstance(length, (int, np.integer)) for length in t.shape)
    ]


@dataclass(frozen=True, eq=False)
class _Crossing:
    """A read of a value from another launch: ``{ inames·WRITER, inames·READER }``."""

    writer: Statement
    reader: Statement
    access: Access
    where: isl.Set

    def user(self, label: str) -> Statement:
        """The writer or the reader."""
        return self.writer if label == WRITER else self.reader

    def indices(self, label: str) -> tuple[Expression, ...]:
        """The cell that the writer or the reader accesses."""
        return self.writer.write[1] if label == WRITER else self.access[1]


_Side = tuple[_Crossing, str]
"""What one of the two statements does, by its label."""


class _Values:
    """The values of one temporary that are live across launches.

    ``kernel``, without the barrier, determines the dataflow; ``parted`` the launch of each
    statement.
    """

    def __init__(self, kernel: Kernel, parted: Kernel, temporary: TemporaryVariable) -> None:
        self.kernel = kernel
        self.model = model_of(kernel)
        self.launches = launch_of(parted)
        self.temporary = temporary
        self.space = space_in_launch(expand_rules(kernel), temporary)
        self.crossings = [c for c in self.flows() if not c.where.is_empty()]

    @property
    def are_accumulated(self) -> bool:
        """Whether a launch updates a value that an earlier one wrote."""
        return any(is_own_read(c.reader, c.access) for c in self.crossings)

    def flows(self) -> Iterator[_Crossing]:
        """The reads that may see a value of another launch, or of another host iteration."""
        name = self.temporary.name
        kernel = self.model.kernel
        for reader in kernel.readers.get(name, ()):
            for access in dict.fromkeys(a for a in kernel.reads_of(reader) if a[0] == name):
                for writer, where in self.sources(reader, access).items():
                    mine = self.launches[reader.id]
                    if mine is self.launches[writer]:
                        others = (differ(i, WRITER, READER) for i in mine.loops)
                        where = where & reduce(isl.Set.union, others, where - where)
                    yield _Crossing(self.model.statement[writer], reader, access, where)

    def sources(self, reader: Statement, access: Access) -> Mapping[str, isl.Set]:
        """The writes whose values a read may see; all of the temporary's if undecided."""
        try:
            return dataflow_of(self.kernel).of_read(reader.id, access).writes
        except Undecided:
            at = self.model.domain(Instance(reader.id, READER))
            writers = self.model.writers(self.temporary.name)
            return {w.id: at & self.model.domain(Instance(w.id, WRITER)) for w in writers}

    @cached_property
    def users(self) -> list[Statement]:
        """The statements that write or read such values."""
        return [s for c in self.crossings for s in (c.writer, c.reader)]

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The loops around all users that the barrier splits."""
        around = [len(self.launches[u.id].loops) for u in self.users]
        shared = path_inames(common_prefix([self.kernel.paths[u.id] for u in self.users]))
        return shared[min(around) :]

    @cached_property
    def copies(self) -> tuple[str, ...]:
        """The parallel inames of all users; each of their values has a copy of the temporary."""
        tags, common = (
            self.kernel.iname_tags,
            frozenset.intersection(*(u.inames for u in self.users)),
        )
        found = (i for i in self.kernel.all_inames if isinstance(tags.get(i), _COPIES[self.space]))
        return tuple(i for i in found if i in common)

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """Those of :attr:`copies` that are thread axes, neighbouring threads last."""
        tags = self.kernel.iname_tags
        axes = {i: tag.axis for i in self.copies if isinstance(tag := tags[i], LocalAxis)}
        return tuple(sorted(axes, key=lambda i: -axes[i]))

    @cached_property
    def side_by_side(self) -> tuple[str, ...]:
        """Those of :attr:`copies` that are tagged ``ilp``."""
        tags = self.kernel.iname_tags
        return tuple(i for i in self.copies if isinstance(tags[i], InstructionParallel))

    @cached_property
    def outer(self) -> tuple[str, ...]:
        """The inames, except threads, that index the saved values."""
        return tuple(i for i in dict.fromkeys((*self.copies, *self.loops)) if i not in self.threads)

    def kept_in(self, kernel: Kernel) -> tuple[Kernel, frozenset[str]]:
        """A kernel with statements that save and reload the values, and the ids of these."""
        if not self.crossings:
            return kernel, frozenset()
        temporary = self.temporary
        shape = (
            *(self.extent(i)[1] for i in self.outer),
            *temporary.shape,
            *(self.extent(i)[1] for i in self.threads),
        )
        name = kernel.fresh_name(f"{temporary.name}_save")
        slot = TemporaryVariable(
            name, temporary.dtype, shape, AddressSpace.GLOBAL, made_by=_MADE_BY
        )
        kernel = kernel.with_(temporaries=(*kernel.temporaries, slot))
        made = []
        for launch in dict.fromkeys(self.launches.values()):
            saved = [(c, WRITER) for c in self.crossings if self.launches[c.writer.id] is launch]
            loaded = [(c, READER) for c in self.crossings if self.launches[c.reader.id] is launch]
            if self.may_be_older(launch, saved):
                loaded += saved
            for sides, is_save in ((loaded, False), (saved, True)):
                if sides:
                    kernel, id_ = self.moved(kernel, name, launch, sides, is_save=is_save)
                    made.append(id_)
        return kernel, frozenset(made)

    def extent(self, iname: str) -> tuple[Expression, Expression]:
        """The smallest value of an iname, and the number of its values."""
        return extent_or(
            self.kernel,
            iname,
            f"'{self.temporary.name}' has a value for each '{iname}', and the number of these "
            "does not follow from the sizes",
            "give the iname bounds in its domain, or assume them",
        )

    def may_be_older(self, launch: Launch, saved: Sequence[_Side]) -> bool:
        """Whether it depends on data if a launch, or an earlier one, wrote the saved value."""
        is_open = any(
            self.model.cells_by_data(c.writer)
            or not {*self.conditions} >= {*self.model.conditions_on_data(c.writer)}
            for c, _ in saved
        )
        earlier = (self.launches[c.writer.id].number < launch.number for c in self.crossings)
        return is_open and (bool(launch.loops) or any(earlier))

    @cached_property
    def conditions(self) -> tuple[Expression, ...]:
        """The conditions on data under which all these values are written, and read."""
        inner = frozenset().union(*(u.inames for u in self.users)) - {*self.outer, *self.threads}
        return tuple(
            p
            for p in self.model.conditions_on_data(self.users[0])
            if inner.isdisjoint(variable_names(p)) and all(p in u.predicates for u in self.users)
        )

    def moved(
        self, kernel: Kernel, slot: str, launch: Launch, sides: Sequence[_Side], *, is_save: bool
    ) -> tuple[Kernel, str]:
        """A kernel with one more statement that saves, or reloads, in one launch; and its id."""
        name, verb = self.temporary.name, "save" if is_save else "reload"
        deep = len(launch.loops) + len(self.loops)
        path = kernel.paths[sides[0][0].user(sides[0][1]).id][:deep]
        here = launch_of(kernel)
        if is_save:
            users = {c.writer.id for c, _ in sides}
        else:
            users = {
                u.id
                for u in expand_rules(kernel).users(name)
                if here[u.id].number == launch.number and kernel.paths[u.id][:deep] == path
            }
        first, last = span(entries_of(kernel.tree), users, path)
        place = Place(path, first, last, frozenset(self.copies))
        box = [Axis(Linear({}), int(length), 1, True) for length in self.temporary.shape]
        base = f"{verb}_{name}"
        names = name_axes(kernel, box, base, None, "")
        cells = self.cells(sides, names, place)
        together = self.space is AddressSpace.LOCAL
        nest = make_nest(
            kernel,
            box,
            place,
            cells=cells if is_save else _footprint.hull(cells),
            names=names,
            base=base,
            tags=dict.fromkeys(names, LocalAuto() if together else None),
            order=list(names),
            together=together,
        )
        nest = replace(nest, loops=(*nest.loops, *self.side_by_side))
        own = element(name, tuple(nest.kept(box)))
        kept = element(
            slot, (*map(self.index, self.outer), *nest.kept(box), *map(self.index, self.threads))
        )
        lhs, rhs = (kept, own) if is_save else (own, kept)
        statement = Statement(
            kernel.fresh_name(base),
            lhs,
            rhs,
            place.inames | frozenset(nest.inames),
            (*self.conditions, *nest.predicates),
            kind="move",
            made_by=_MADE_BY,
        )
        at = last + 1 if is_save else first
        return with_nest(kernel, statement, nest, place, at), statement.id

    def index(self, iname: str) -> Expression:
        """The position of an iname's value among all of its values."""
        return simplify(offset(prim.Variable(iname), self.extent(iname)[0]))

    def cells(self, sides: Sequence[_Side], names: Mapping[int, str], place: Place) -> isl.Set:
        """``{ names of axes, inames of place, sizes : the cell is written, or read }``."""
        found = []
        for crossing, label in sides:
            where = crossing.where
            for axis, index in enumerate(crossing.indices(label)):
                if _sets.is_pw_affine(index) and variable_names(index) <= self.kernel.integers:
                    value = self.model.named(index, label)
                    position = prim.Comparison(prim.Variable(names[axis]), "==", value)
                    where = where & _sets.condition_set(position)
            own = {at: iname for iname, at in instances(place.inames, label).items()}
            where = _sets.project_onto(where, [*own, *names.values(), *self.kernel.sizes])
            found.append(_sets.rename(where, own))
        return reduce(isl.Set.union, found).coalesce()
