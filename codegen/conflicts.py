"""Which accesses of different threads may touch a common cell, decided with integer sets.

Two instances are in one set with the labels ``ONE`` and ``TWO``. Values that both share (sizes,
the inames of loops that are in the same iteration, the block indices) have a single name, which
keeps the sets small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from itertools import combinations_with_replacement, product
from operator import itemgetter
from types import MappingProxyType

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._assertions.asserted_cells import data_of, equal_cells
from loopkit._assertions.follow import asserted
from loopkit._cached import cached_property, memoised, once
from loopkit._determined import determined_by
from loopkit._expression import substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, all_guarded_reads, decided, where_all_hold
from loopkit._hidden import ONE, TWO, hidden, instance
from loopkit._kernel import Kernel, Statement
from loopkit._linear import linear_in_parts
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._poly.pairs import inside, steps
from loopkit._poly.program_order import before
from loopkit._relations import grouped
from loopkit._same import remembered
from loopkit._target import CUDA
from loopkit.codegen.access_families import (
    Access,
    Cell,
    Family,
    apart,
    common,
    equal,
    holds_somewhere,
    hull,
    matched,
    one_cell,
)
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.instances import Instances, split_predicates


class Reach(IntEnum):
    """The distance between threads of a block that access a common cell."""

    NOWHERE = 0
    WARP = 1
    BLOCK = 2


@dataclass(frozen=True)
class Order:
    """Which pairs of instances of two accesses are considered.

    Loops in ``shared`` are in the same iteration for both instances. The loop ``carried`` is in an
    earlier iteration for the first one: the directly preceding one if ``adjacent``.
    """

    shared: frozenset[str] = frozenset()
    carried: str | None = None
    adjacent: bool = False


ANY_ORDER = Order()
Groups = Mapping[int, list[int]]
"""For the number of each kind of access those of a group that it is in."""
_MANY = 4
"""So many pairs are asked about one by one."""
_LABELS = (ONE, TWO)


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two instances: the set of its values, and its statement's names in that set."""

    domain: isl.Set
    names: Mapping[str, Expression]

    @memoised
    def called(self, cell: Cell) -> Cell:
        """A cell of the statement, in the names of this side."""
        return tuple(substitute(index, self.names) for index in cell)


@lru_cache(1 << 10)
def _beside(one: _Side, two: _Side) -> isl.Set:
    """The pairs of an instance of each side."""
    return _budget.kept(isl.Set.intersect, one.domain, two.domain)


def _met(both: isl.Set, one: _Side, cell: Cell, two: _Side, other: Cell) -> isl.Set | None:
    """The pairs in ``both`` for which two affine cells are equal; None if there are none."""
    return common(both, equal(one.called(cell), two.called(other)))


@lru_cache(1 << 12)
def _meets(one: _Side, cell: Cell, two: _Side, other: Cell) -> isl.Set | None:
    """Like :func:`_met` for all pairs of instances (memoised)."""
    return _budget.kept(_met, _beside(one, two), one, cell, two, other)


@remembered(1 << 10)
def _side_of(
    domain: isl.Set,
    inames: frozenset[str],
    own: frozenset[str],
    fixed: frozenset[str],
    hardware: Hardware,
    alone: tuple[tuple[str, int], ...],
    label: str,
    blocks: bool,
) -> _Side:
    """The instances in ``domain`` of a statement; its ``inames`` get a label.

    Names that are ``fixed`` and not its ``own`` get none. On axes without a coordinate the
    statement executes at all indices, or at index 0 only for axes that are ``alone``. Memoised, as
    launches of one kernel mostly have equal domains.
    """
    names = {**{name: instance(name, label) for name in own}, **{name: name for name in fixed}}
    words: set[str] = set()
    extra = _sets.universe()
    for c in hardware.coordinates:
        if c.iname not in inames:
            continue
        word = thread_word(c.kind, c.axis, label, blocks)
        if c.lower == 0 and word not in words:
            names[c.iname] = word
        else:
            value = prim.Sum((prim.Variable(names[c.iname]), -c.lower))
            extra = extra & _sets.equality(word, value)
        words.add(word)
    for kind in "gl":
        for axis in hardware.used_axes(kind):
            word = thread_word(kind, axis, label, blocks)
            if word not in words:
                extent = 1 if (kind, axis) in alone else hardware.extents(kind)[axis]
                extra = extra & inside(prim.Variable(word), extent)
    domain = _sets.rename(domain, names) & extra
    return _Side(domain, {old: prim.Variable(new) for old, new in names.items() if old != new})


class Conflicts:
    """The accesses of all statements to shared and global arrays that the kernel writes.

    It is decided whether two of them may meet on different threads.
    """

    def __init__(self, kernel: Kernel, hardware: Hardware, instances: Instances) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self.instances = instances
        self.single_thread = hardware.block == (1, 1, 1)
        self._reaches: dict[tuple[object, ...], Reach] = {}
        self._sides: dict[tuple[object, ...], _Side] = {}
        self._domains: dict[tuple[object, ...], isl.Set] = {}
        self._groups: dict[str, dict[int, list[int]]] = {}
        self._across_blocks: dict[tuple[int, int], bool] = {}
        self._kinds: dict[int, tuple[int, tuple[object, ...], Access]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self.accesses = {s.id: self._find(s) for s in kernel.statements}
        every = [access for found in self.accesses.values() for access in found]
        self.by_storage = grouped((self.storage_of(access), access) for access in every)

    def storage_of(self, access: Access) -> str:
        """The representative of an access's memory: the first array in the same storage."""
        return shared_storage(self.kernel).get(access.array, (access.array,))[0]

    def crosses_threads(self, name: str) -> bool:
        """Whether several threads share ``name``, and the kernel writes it."""
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is not None:
            return temporary.address_space in (AddressSpace.LOCAL, AddressSpace.GLOBAL)
        array = self.kernel.arg_by_name.get(name)
        return isinstance(array, ArrayArg) and bool(self.kernel.writers.get(name))

    def _find(self, statement: Statement) -> tuple[Access, ...]:
        name, indices = statement.write
        atomic = statement.operation if statement.is_atomic else None
        found = [Access(statement.id, name, (self._cell(statement, indices),), True, atomic=atomic)]
        # Its own cell, an update reads last.
        mine = self.kernel.reads_of(statement)[: -1 if atomic else None]
        reads = grouped(dict.fromkeys((n, self._cell(statement, i)) for n, i in mine))
        found += [Access(statement.id, name, cells, False) for name, cells in reads.items()]
        return tuple(access for access in found if self.crosses_threads(access.array))

    def _cell(self, statement: Statement, indices: Cell) -> Cell:
        """A cell with its indices followed to the index arrays they were loaded from."""
        return tuple(asserted(self.kernel, statement, index) for index in indices)

    def by_guards(self, access: Access) -> tuple[Access, ...]:
        """An access split by the conditions under which its expressions execute it."""
        if access.is_write:
            return (access,)
        statement = self.kernel.statement_by_id[access.statement]
        found: dict[tuple[Guards, Cell], None] = {}
        for name, indices, guards in all_guarded_reads(self.kernel, statement):
            if name == access.array:
                inner = tuple(g for g in guards if g not in statement.predicates)
                found[inner, self._cell(statement, indices)] = None
        return tuple(replace(access, cells=c, guards=g) for g, c in grouped(found).items())

    def kind(self, access: Access) -> tuple[object, ...]:
        """The key on which an access's conflicts depend; several statements may share it."""
        return self._kind_of(access)[1]

    def _kind_of(self, access: Access) -> tuple[int, tuple[object, ...], Access]:
        """A number for the kind of an access, and the kind (memoised; the access keeps its id)."""
        found = self._kinds.get(id(access))
        if found is None:
            kind = self._find_kind(access)
            number = self._numbers.setdefault(kind, len(self._numbers))
            found = self._kinds[id(access)] = number, kind, access
        return found

    def _find_kind(self, access: Access) -> tuple[object, ...]:
        statement = self.kernel.statement_by_id[access.statement]
        number = self.instances.keys[access.statement]
        conditions = self.conditions(statement) + access.guards
        alone = self.hardware.alone(self.kernel, statement)
        where = (number, statement.inames, alone, conditions)
        return (access.array, access.cells, access.atomic, *where)

    @memoised
    def conditions(self, statement: Statement) -> tuple[Expression, ...]:
        """Predicates that the statement's instances leave out although sets can hold them."""
        _, rest = split_predicates(self.kernel, statement)
        return tuple(
            p for p in rest if variable_names(p) <= self.kernel.integers and _sets.is_condition(p)
        )

    @memoised
    def is_plain_access(self, access: Access) -> bool:
        """Whether sets hold exactly the instances and the cells of an access (memoised)."""
        integers = self.kernel.integers
        statement = self.kernel.statement_by_id[access.statement]
        _, rest = split_predicates(self.kernel, statement)
        names = _sets.involved_names(self.instances.of[access.statement])
        if len(self.conditions(statement)) < len(rest) or not names <= integers:
            return False
        if any(decided(guard, integers) is None for guard in access.guards):
            return False
        return all(self.is_plain(index) for cell in access.cells for index in cell)

    @memoised
    def is_plain(self, index: Expression) -> bool:
        """Whether an index is affine in inames and sizes."""
        return variable_names(index) <= self.kernel.integers and _sets.is_pw_affine(index)

    def side(self, access: Access, label: str, shared: frozenset[str], blocks: bool) -> _Side:
        """The instances of an access (memoised); ``blocks``: block indices are its own, too."""
        key = (self.kind(access)[3:], label, shared, blocks)
        return once(self._sides, key, self._make_side, access, label, shared, blocks)

    def _make_side(self, access: Access, label: str, shared: frozenset[str], blocks: bool) -> _Side:
        statement = self.kernel.statement_by_id[access.statement]
        domain = once(self._domains, self.kind(access)[3:], self._domain, access)
        used = frozenset((*_sets.names_of(domain), *statement.inames))
        fixed = used & shared.union(self.kernel.sizes)
        alone = self.hardware.alone(self.kernel, statement)
        own = used - fixed
        return _side_of(domain, statement.inames, own, fixed, self.hardware, alone, label, blocks)

    def _domain(self, access: Access) -> isl.Set:
        """The instances of an access, or more where data decide."""
        domain = self.instances.of[access.statement] & self.kernel.assumptions.set
        for condition in self.conditions(self.kernel.statement_by_id[access.statement]):
            domain = domain & _sets.condition_set(condition)
        domain = domain & where_all_hold(access.guards, self.kernel.integers)
        return domain.drop_unused_params()

    def _meeting(
        self, one: _Side, cell: Cell, two: _Side, other: Cell, both: isl.Set | None
    ) -> isl.Set | None:
        """Where two cells are one, or may be where data decide; None where they never are.

        ``both`` are the instances that are looked at, where they are not all of both sides.
        """
        if not all(map(self.is_plain, (*cell, *other))):
            mine, its = one.called(cell), two.called(other)
            possible = equal_cells(self.kernel.assertions, mine, its, data_of(self.kernel))
            return common(_beside(one, two) if both is None else both, possible)
        if both is None:
            return _meets(one, cell, two, other)
        return _met(both, one, cell, two, other)

    def pairs(
        self, first: Access, second: Access, order: Order, blocks: bool = False
    ) -> Iterator[tuple[Cell, Cell, isl.Set]]:
        """For each two of their cells the pairs of instances in which these are the same one.

        They may be on one thread.
        """
        one = self.side(first, ONE, order.shared, blocks)
        two = self.side(second, TWO, order.shared, blocks)
        both = None
        if order.carried is not None:
            both = _beside(one, two) & self._ordered(order.carried, order.adjacent)
        if first.array != second.array:
            # One storage: any cell may lie in the place of any other one.
            yield first.cells[0], second.cells[0], _beside(one, two) if both is None else both
            return
        for cell in first.cells:
            for other in second.cells:
                found = self._meeting(one, cell, two, other, both)
                if found is not None:
                    yield cell, other, found

    def reach(self, first: Access, second: Access, order: Order) -> Reach:
        """The distance of threads of a block whose accesses touch a common cell (memoised)."""
        if self.single_thread or self.storage_of(first) != self.storage_of(second):
            return Reach.NOWHERE
        if not (first.is_write or second.is_write) or first.commutes(second):
            return Reach.NOWHERE
        alone = first.statement == second.statement and order != ANY_ORDER
        # One look answers for all loops around a statement.
        if alone and self.reach(first, second, ANY_ORDER) is Reach.NOWHERE:
            return Reach.NOWHERE
        # Where neither comes first, it does not matter which of the two is named first.
        key = (*self._two(first, second, ordered=order.carried is not None), order)
        return once(self._reaches, key, self._find_reach, first, second, order)

    def _find_reach(self, first: Access, second: Access, order: Order) -> Reach:
        found = Reach.NOWHERE
        alone = first.statement == second.statement
        # One kind beside itself is symmetric: one of two mirror images suffices.
        step = 2 if self.kind(first) == self.kind(second) and order.carried is None else 1
        for _, _, pairs in self.pairs(first, second, order):
            # Threads mostly keep to themselves within a statement, and meet between two.
            if alone and not holds_somewhere(pairs, self.other_thread[::step]):
                continue
            if holds_somewhere(pairs, self.other_warp[::step]):
                return Reach.BLOCK
            if found is Reach.NOWHERE and holds_somewhere(pairs, self.other_thread):
                found = Reach.WARP
        return found

    @memoised
    def _ordered(self, loop: str, adjacent: bool) -> isl.Set:
        """Where the first side is in an earlier iteration of a loop, by one if ``adjacent``."""
        times = steps([loop], ONE, TWO)
        [(earlier, later)], [ordered] = times, before(times)
        return _sets.affine_equality(later, prim.Sum((earlier, 1))) if adjacent else ordered

    def meet_across_blocks(self, first: Access, second: Access) -> bool:
        """Whether two accesses touch one cell in different blocks, whenever they run (memoised)."""
        kinds = self._two(first, second, ordered=False)
        return once(self._across_blocks, kinds, self._find_across_blocks, first, second)

    def _two(self, first: Access, second: Access, *, ordered: bool) -> tuple[int, int]:
        """The numbers of the kinds of two accesses."""
        one, two = self._kind_of(first)[0], self._kind_of(second)[0]
        return (one, two) if ordered or one < two else (two, one)

    def _find_across_blocks(self, first: Access, second: Access) -> bool:
        # One kind beside itself is symmetric: one of two mirror images suffices.
        step = 2 if self.kind(first) == self.kind(second) else 1
        return any(
            holds_somewhere(pairs, self.other_block[::step])
            for _, _, pairs in self.pairs(first, second, ANY_ORDER, blocks=True)
        )

    def group(self, access: Access) -> tuple[str, int] | None:
        """The group of an access: accesses linked by chains of common cells on different threads.

        None for an access that has no cell in common with any other thread's.
        """
        storage = self.storage_of(access)
        if storage not in self._groups:
            groups = self._groups[storage] = {}
            unlike = {(self._kind_of(a)[0], a.is_write): a for a in self.by_storage[storage]}
            for pair in self.meeting(unlike.values(), "l", groups):
                one, two = (groups.setdefault(n, [n]) for n in self._two(*pair, ordered=False))
                if one is not two:
                    one += two
                    groups.update(dict.fromkeys(two, one))
        found = self._groups[storage].get(self._kind_of(access)[0])
        return None if found is None else (storage, found[0])

    def meeting(
        self, accesses: Iterable[Access], how: str, groups: Groups = MappingProxyType({})
    ) -> Iterator[tuple[Access, Access]]:
        """Pairs of accesses to a common cell, at least one a write, by different threads or
        blocks.

        ``how`` is ``l`` for two threads and ``g`` for two blocks. One question asks about all
        pairs of two families; only if some pair has a common cell are their halves asked about.
        Pairs within one of the ``groups`` are skipped.
        """
        found = grouped(
            (
                (access.array, access.is_write, access.atomic, *kind[4:6], terms),
                (constants, access, cell),
            )
            for access in accesses
            for kind in (self.kind(access),)
            for cell in access.cells
            for terms, constants in (self._parted(cell, kind),)
        )
        families = [Family(tuple(sorted(own, key=itemgetter(0)))) for own in found.values()]
        for one, two in combinations_with_replacement(families, 2):
            (_, first, _), (_, second, _) = one.members[0], two.members[0]
            if (first.is_write or second.is_write) and not first.commutes(second):
                for mine, its in matched(one, two):
                    yield from self._meeting_of(mine, its, how, groups)

    def _parted(self, cell: Cell, kind: object) -> tuple[object, tuple[int, ...]]:
        """The key of a cell's family, and the cell's constants, in which members differ."""
        if not all(map(self.is_plain, cell)):
            return (kind, cell), (0,) * len(cell)
        forms = [*map(linear_in_parts, cell)]
        return tuple(frozenset(f.terms.items()) for f in forms), tuple(f.constant for f in forms)

    def _meeting_of(
        self, one: Family, two: Family, how: str, groups: Groups
    ) -> Iterator[tuple[Access, Access]]:
        size, mine, others = len(one.members) * len(two.members), one.accesses, two.accesses
        known = [groups.get(self._kind_of(access)[0]) for access in (*mine, *others)]
        if known[0] is not None and all(group is known[0] for group in known):
            return
        if self._told_apart(one, two, how) or (size > _MANY and not self._may_meet(one, two, how)):
            return
        if size <= _MANY or len(mine) == len(others) == 1:
            pairs = combinations_with_replacement(mine, 2) if one is two else product(mine, others)
            for a, b in pairs:
                if self.meet_across_blocks(a, b) if how == "g" else self.reach(a, b, ANY_ORDER):
                    yield a, b
        elif one is two:
            low, high = one.halves
            for half, its in ((low, low), (low, high), (high, high)):
                yield from self._meeting_of(half, its, how, groups)
        else:
            is_first = len(others) == 1 or (len(mine) > 1 and len(one.members) > len(two.members))
            for half in (one if is_first else two).halves:
                pair = (half, two) if is_first else (one, half)
                yield from self._meeting_of(*pair, how, groups)

    def _told_apart(self, one: Family, two: Family, how: str) -> bool:
        """Whether subscripts common to both families determine the thread, or the block.

        Then accesses to a common cell are on the same thread, or in the same block.
        """
        (_, first, cell), (_, second, other) = one.members[0], two.members[0]
        statement, its = (self.kernel.statement_by_id[a.statement] for a in (first, second))
        parallel = self.hardware.local_inames | self.hardware.group_inames
        if first.array != second.array or (statement.inames ^ its.inames) & parallel:
            return False
        same = (
            index
            for axis, index in enumerate(cell)
            if index == other[axis]
            and self.is_plain(index)
            and not any(one.constants(axis))
            and not any(two.constants(axis))
        )
        told = determined_by(self.kernel, same) & statement.inames
        axes = {c.axis for c in self.hardware.coordinates if c.kind == how and c.iname in told}
        return axes.issuperset(self.hardware.used_axes(how))

    def _may_meet(self, one: Family, two: Family, how: str) -> bool:
        """Whether any accesses of two families may touch a common cell, as one question.

        It asks about supersets of the instances: True may be wrong, False may not.
        """
        (_, first, cell), (_, second, other) = one.members[0], two.members[0]
        if first.array != second.array or not all(map(self.is_plain, (*cell, *other))):
            return True
        sides = []
        for family, label in ((one, ONE), (two, TWO)):
            found = [self.side(a, label, frozenset(), how == "g") for a in family.accesses]
            domain = hull(tuple(dict.fromkeys(side.domain for side in found)))
            sides.append(replace(found[0], domain=domain))
        both = _beside(*sides) & one_cell(one, sides[0].called(cell), two, sides[1].called(other))
        differ = self.other_block if how == "g" else self.other_thread
        return holds_somewhere(both, differ[::2] if one is two else differ)

    @cached_property
    def other_thread(self) -> tuple[isl.Set, ...]:
        """Disjoint sets in which the two threads differ, each followed by its mirror image."""
        return self._differing("l")

    @cached_property
    def other_block(self) -> tuple[isl.Set, ...]:
        """Disjoint sets in which the two blocks differ."""
        return self._differing("g")

    def _differing(self, kind: str) -> tuple[isl.Set, ...]:
        return tuple(
            part
            for axis in self.hardware.used_axes(kind)
            for part in apart(*(prim.Variable(thread_word(kind, axis, x, True)) for x in _LABELS))
        )

    @cached_property
    def other_warp(self) -> tuple[isl.Set, ...]:
        """Sets in which the two threads of a block are in different warps."""
        x, y, z = self.hardware.block
        if x * y * z <= CUDA.warp:
            return ()
        return apart(*map(self._warp, _LABELS))

    @cached_property
    def same_warp(self) -> isl.Set:
        """The set in which the two threads of a block are in the same warp."""
        if not self.other_warp:
            return _sets.universe()
        one, two = map(self._warp, _LABELS)
        return _sets.condition_set(prim.Comparison(one, "==", two))

    def _warp(self, label: str) -> Expression:
        """The number of a thread's warp; threads are numbered with x running fastest.

        Axes of which a warp contains a whole number of rows do not affect it.
        """
        terms: list[Expression] = []
        stride, warp = 1, CUDA.warp
        for axis, extent in enumerate(self.hardware.block):
            if not terms and warp % extent == 0:
                warp //= extent
            elif extent != 1:
                word = prim.Variable(thread_word("l", axis, label, True))
                terms.append(word if stride == 1 else prim.Product((stride, word)))
                stride *= extent
        number = terms[0] if len(terms) == 1 else prim.Sum(tuple(terms))
        return number if warp == 1 else prim.FloorDiv(number, warp)


def thread_word(kind: str, axis: int, label: str, blocks: bool) -> str:
    """The name of a hardware index of one side; that of the block is shared, or not."""
    return instance(hidden("index", kind, axis), label if kind == "l" or blocks else "")
