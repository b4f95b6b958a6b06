"""Two instances that no barrier can order must not meet in a cell that one of them writes.

There are two such cases.  Instances of one statement in the same iteration of
its loops, on two threads of a block: no barrier fits between.  And instances in
two blocks, of whatever statements: blocks run in no order within a launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import islpy as isl

from loopkit import _sets
from loopkit._errors import IllegalTransformError, Instance, RaceError, Witness
from loopkit._expression import evaluate, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import ONE, TWO
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._tree import common_prefix
from loopkit.codegen.accesses import Access
from loopkit.codegen.conflicts import (
    ANY_ORDER,
    Conflicts,
    Order,
    Reach,
    thread_word,
)


def check_races(conflicts: Conflicts) -> None:
    """Refuse a kernel in which unordered instances touch one cell and one of them writes it.

    What data decides, cells of subscripts that are not affine and instances under
    conditions or in bounds that are loaded, is trusted: whether those meet was
    asked when loops became parallel, of assertions about the data.
    """
    _check_bounds(conflicts)
    for array, accesses in conflicts.by_array.items():
        if not any(access.is_write for access in accesses) or conflicts.keeps_apart(array):
            continue
        for access in accesses:
            if access.is_write and not conflicts.single_thread:
                _check_statement(conflicts, access)
        if conflicts.is_global(array) and conflicts.other_block:
            _check_blocks(conflicts, accesses)


def _check_bounds(conflicts: Conflicts) -> None:
    """Temporaries that bound loops must be there for every thread: no barrier waits for them."""
    kernel = conflicts.kernel
    for domain in kernel.domains:
        for name in sorted(domain.parameters & kernel.temporary_by_name.keys()):
            others = not conflicts.single_thread
            others = others or (conflicts.is_global(name) and bool(conflicts.other_block))
            if others and conflicts.crosses_threads(name):
                raise IllegalTransformError(
                    f"'{name}' bounds the loop over '{domain.inames[0]}', but is shared by threads",
                    instead=f"set_temporary_address_space('{name}', 'private')",
                )


def _check_statement(conflicts: Conflicts, write: Access) -> None:
    """Instances of one statement in the same iteration, on two threads of one block."""
    order = Order(frozenset(iname for iname, _ in conflicts.kernel.paths[write.statement]))
    for other in conflicts.accesses[write.statement]:
        if other.array != write.array or not conflicts.is_plain_access(write, other):
            continue
        if conflicts.reach(write, other, order) is Reach.NOWHERE:
            continue
        for part in conflicts.by_guards(other):
            plain = conflicts.is_plain_access(write, part)
            if plain and conflicts.reach(write, part, order) is not Reach.NOWHERE:
                # The two may be swapped where that makes for the smaller example.
                raise _race(conflicts, write, part, order, "l")


def _check_blocks(conflicts: Conflicts, accesses: list[Access]) -> None:
    """Instances in two blocks."""
    seen: set[tuple[object, ...]] = set()
    kinds = [(conflicts.kind(access), access) for access in accesses]
    for position, (kind, access) in enumerate(kinds):
        for other_kind, other in kinds[position:]:
            key = (kind, other_kind)
            if not (access.is_write or other.is_write) or key in seen:
                continue
            seen.add(key)
            if not conflicts.is_plain_access(access, other):
                continue
            if conflicts.meet_across_blocks(access, other):
                _check_guarded(conflicts, access, other)


def _check_guarded(conflicts: Conflicts, access: Access, other: Access) -> None:
    """Like :func:`_check_blocks`, with the conditions within the statements' expressions."""
    for one, two in product(conflicts.by_guards(access), conflicts.by_guards(other)):
        plain = conflicts.is_plain_access(one, two)
        if plain and conflicts.meet_across_blocks(one, two):
            raise _race(conflicts, one, two, ANY_ORDER, "g")


# {{{ the message


@dataclass(frozen=True)
class _Meeting:
    """The smallest case of a race: sizes, and on each side the values of inames and indices."""

    conflicts: Conflicts
    first: Access
    second: Access
    values: Mapping[str, int]
    names: tuple[Mapping[str, str], Mapping[str, str]]
    cell: tuple[int, ...]
    axis: str

    @property
    def sizes(self) -> dict[str, int]:
        return {n: self.values[n] for n in self.conflicts.kernel.sizes if n in self.values}

    def instance(self, side: int) -> Instance:
        kernel = self.conflicts.kernel
        statement = kernel.statement_by_id[(self.first, self.second)[side].statement]
        return Instance(
            statement.id,
            {
                i: self.values[self.names[side][i]]
                for i in kernel.all_inames
                if i in statement.inames and self.names[side][i] in self.values
            },
        )

    def index(self, kind: str, side: int) -> str:
        """The three hardware indices of one side."""
        label = (ONE, TWO)[side]
        words = (thread_word(kind, axis, label, True) for axis in range(3))
        return "(" + ", ".join(str(self.values.get(word, 0)) for word in words) + ")"


def _meetings(
    conflicts: Conflicts, first: Access, second: Access, order: Order, kind: str
) -> Iterator[_Meeting]:
    """Where two accesses meet, a smallest case for each of their cells and axes."""
    kernel = conflicts.kernel
    sides = [
        conflicts.side(access, label, order.shared, blocks=True)
        for access, label in ((first, ONE), (second, TWO))
    ]
    names = [
        {i: str(side.names.get(i, i)) for i in kernel.statement_by_id[access.statement].inames}
        for side, access in zip(sides, (first, second), strict=True)
    ]
    words = [
        thread_word(k, axis, label, True)
        for k in "gl"
        for label in (ONE, TWO)
        for axis in conflicts.hardware.used_axes(k)
    ]
    listed = [*words, *(n for side in names for n in sorted(side.values()))]
    differ = conflicts.other_block if kind == "g" else conflicts.other_thread
    axes = [axis for axis in conflicts.hardware.used_axes(kind) for _ in "<>"]
    for cell, _, pairs in conflicts.pairs(first, second, order, blocks=True):
        if kind == "l":
            for axis in conflicts.hardware.used_axes("g"):
                pairs = pairs & _same(axis)
        for axis, condition in zip(axes, differ, strict=True):
            race = pairs & condition & kernel.assumptions.set
            if race.is_empty():
                continue
            values = smallest_point(race, (*sorted(kernel.sizes), *listed))
            assert values is not None
            found = _Meeting(
                conflicts, first, second, values, (names[0], names[1]), (), f"{kind}.{axis}"
            )
            where = {**found.instance(0).inames, **found.sizes}
            indices = tuple(_value(index, where) for index in cell)
            yield _Meeting(conflicts, first, second, values, found.names, indices, found.axis)


def _same(axis: int) -> isl.Set:
    import pymbolic.primitives as prim

    one, two = (thread_word("g", axis, label, True) for label in (ONE, TWO))
    return _sets.equality(one, prim.Variable(two))


def _value(index: Expression, where: Mapping[str, int]) -> int:
    return int(evaluate(index, {n: where.get(n, 0) for n in variable_names(index)}))


def _race(
    conflicts: Conflicts, first: Access, second: Access, order: Order, kind: str
) -> RaceError:
    found = min(
        _meetings(conflicts, first, second, order, kind),
        key=lambda m: (sorted(m.sizes.items()), m.axis, sorted(m.values.items())),
    )
    cell = f"{first.array}[{', '.join(map(str, found.cell))}]" if found.cell else first.array
    one, two = found.instance(0), found.instance(1)
    names = [str(i) if i.inames else i.statement for i in (one, two)]
    why = f", on different threads (along {found.axis}) in no order"
    if kind == "g":
        names = [f"{name} in block {found.index('g', n)}" for n, name in enumerate(names)]
        why = "; blocks run in no order"
    what = _verbs(conflicts, first, second)
    if what[0] == what[1]:
        text = f"{names[0]} and {names[1]} both {what[0]} {cell}"
    else:
        text = f"{names[0]} {what[0]}s {cell}, and {names[1]} {what[1]}s it"
    given = ", ".join(f"{n}={v}" for n, v in found.sizes.items())
    instead = _advice(conflicts, found, kind)
    witness = Witness("race", first.array, found.cell, one, two, found.sizes, instead)
    return RaceError(
        f"{text}{why}{f', for example when {given}' if given else ''}",
        witness=witness,
        instead=instead,
    )


def _verbs(conflicts: Conflicts, first: Access, second: Access) -> tuple[str, str]:
    verbs = []
    for access in (first, second):
        statement = conflicts.kernel.statement_by_id[access.statement]
        updates = statement.operation is not None and statement.written == access.array
        verbs.append("update" if updates else "write" if access.is_write else "read")
    return verbs[0], verbs[1]


def _advice(conflicts: Conflicts, found: _Meeting, kind: str) -> str:
    kernel = conflicts.kernel
    first, second = found.first.statement, found.second.statement
    around = common_prefix([kernel.paths[first], kernel.paths[second]])
    if kind == "l" or (first == second and not around):
        inames = kernel.statement_by_id[first].inames
        of_axis = [i for i, tag in kernel.tags if str(tag) == found.axis and i in inames]
        listed = " and ".join(f"'{i}'" for i in of_axis)
        if found.first.is_write and found.second.is_write:
            return f"keep {listed} a sequential loop, or give '{found.first.array}' an axis for it"
        return f"keep {listed} a sequential loop, or write to another array than is read"
    if around:
        return (
            "blocks wait for each other only between launches: take the loop over "
            f"'{around[0][0]}' out of the kernel, and launch it once per iteration"
        )
    return (
        "blocks wait for each other only between launches: split the kernel into two, the "
        f"statements up to '{first}' in the first, those from '{second}' on in the second"
    )


# }}}
