"""Refuses data races that no barrier can prevent.

There are two kinds: instances of one statement in the same iteration of its loops on two threads
of a block, between which no barrier can be placed; and instances in two blocks, which execute in
no specified order within a launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._errors import Instance, RaceError, Witness
from loopkit._hidden import ONE, TWO
from loopkit._points import smallest_point
from loopkit._poly.equal_values import Computed, equal_values_of, value_key
from loopkit._poly.model import model_of
from loopkit._relations import grouped
from loopkit.codegen.access_families import Access
from loopkit.codegen.conflicts import ANY_ORDER, Conflicts, Order, Reach, thread_word


def check_races(conflicts: Conflicts) -> None:
    """Refuse a kernel in which unordered instances touch one cell and one of them writes it.

    Writes of equal values are allowed in any order. What depends on data (subscripts that are not
    affine, conditions on data, loaded bounds) is trusted here: the check that made loops parallel
    has decided it with the assertions about the data.
    """
    for accesses in conflicts.by_storage.values():
        for write in () if conflicts.single_thread else accesses:
            if write.is_write and conflicts.group(write) is not None:
                loops = frozenset(iname for iname, _ in conflicts.kernel.paths[write.statement])
                for other in conflicts.accesses[write.statement]:
                    _check_pair(conflicts, write, other, Order(loops), "l")
        is_global = model_of(conflicts.kernel).is_global(accesses[0].array)
        if is_global and conflicts.other_block:
            plain = filter(conflicts.is_plain_access, accesses)
            unlike = grouped((_kind(conflicts, access), access) for access in plain).values()
            for one, two in conflicts.meeting((some[0] for some in unlike), "g"):
                _check_pair(conflicts, one, two, ANY_ORDER, "g")


def _kind(conflicts: Conflicts, access: Access) -> tuple[object, ...]:
    """The key on which an access's races depend, including the stored value of a write."""
    statement = conflicts.kernel.statement_by_id[access.statement]
    value = value_key(model_of(conflicts.kernel), statement) if access.is_write else None
    return conflicts.kind(access), access.is_write, value


def _check_pair(conflicts: Conflicts, one: Access, two: Access, order: Order, kind: str) -> None:
    """Refuse accesses to a common cell in two blocks, or, for kind ``l``, on two threads of one.

    First the accesses without, then with the conditions within the statements' expressions.
    """

    def meet(one: Access, two: Access) -> bool:
        if one.array != two.array or not all(map(conflicts.is_plain_access, (one, two))):
            return False
        if one.commutes(two):
            return False
        if kind == "g":
            return conflicts.meet_across_blocks(one, two)
        return conflicts.reach(one, two, order) is not Reach.NOWHERE

    if meet(one, two):
        for first, second in product(conflicts.by_guards(one), conflicts.by_guards(two)):
            if meet(first, second):
                # The two may be swapped where that makes for the smaller example.
                witnesses = [*_witnesses(conflicts, first, second, order, kind)]
                if witnesses:
                    raise _race(first, witnesses, kind)


def _race(first: Access, witnesses: Sequence[Witness], kind: str) -> RaceError:
    """The error for two conflicting accesses, with the smallest case as the witness."""
    witness = min(
        witnesses, key=lambda w: (sorted(w.parameters.items()), str(w.source), str(w.sink))
    )
    cell = f"{first.array}{list(witness.cell or ())}"
    given = ", ".join(f"{n}={v}" for n, v in witness.parameters.items())
    if kind == "g":
        why, instead = "nothing orders blocks", "blocks wait for each other only between launches"
    else:
        why = "no barrier fits between the two"
        instead = "keep the thread axis a sequential loop, or let each thread have its own cells"
    return RaceError(
        f"{witness.source} and {witness.sink} touch {cell}, one of them writes it, and {why}"
        + (f", for example when {given}" if given else ""),
        witness=witness,
        instead=instead,
    )


def _witnesses(
    conflicts: Conflicts, first: Access, second: Access, order: Order, kind: str
) -> Iterator[Witness]:
    """Where two accesses meet, a smallest case for each of their cells and axes.

    Not where both store one value.
    """
    kernel = conflicts.kernel
    both = ((first, ONE), (second, TWO))
    sides = [conflicts.side(access, label, order.shared, blocks=True) for access, label in both]
    words = [
        thread_word(k, axis, label, True)
        for k in "gl"
        for label in (ONE, TWO)
        for axis in conflicts.hardware.used_axes(k)
    ]
    names = [
        {i: str(side.names.get(i, i)) for i in kernel.all_inames if i in statement.inames}
        for side, (access, _) in zip(sides, both, strict=True)
        for statement in (kernel.statement_by_id[access.statement],)
    ]
    both_write = first.is_write and second.is_write
    labelled = [{i: prim.Variable(n) for i, n in mine.items()} for mine in names]
    computed = [
        Computed(access.statement, mine) for mine, (access, _) in zip(labelled, both, strict=True)
    ]
    listed = (*sorted(kernel.sizes), *words, *(n for mine in names for n in sorted(mine.values())))
    differ = conflicts.other_block if kind == "g" else conflicts.other_thread
    for cell, _, pairs in conflicts.pairs(first, second, order, blocks=True):
        if kind == "l":
            for axis in conflicts.hardware.used_axes("g"):
                one, two = (thread_word("g", axis, label, True) for label in (ONE, TWO))
                pairs = pairs & _sets.equality(one, prim.Variable(two))
        for condition in differ:
            meeting = pairs & condition
            if both_write:
                meeting = meeting - equal_values_of(kernel).stored(
                    computed[0], computed[1], meeting
                )
            point = smallest_point(meeting, listed)
            if point is None:
                continue
            sizes = {n: point[n] for n in kernel.sizes if n in point}
            source, sink = (
                Instance(access.statement, {i: point[n] for i, n in mine.items() if n in point})
                for (access, _), mine in zip(both, names, strict=True)
            )
            values = {**source.inames, **sizes}
            indices = tuple(_sets.value_at(index, values) for index in cell)
            yield Witness("race", first.array, indices, source, sink, sizes)
