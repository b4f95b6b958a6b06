"""Which accesses of different threads may meet in one cell, decided with sets.

Two instances stand side by side, labelled ``ONE`` and ``TWO``.  What both have in
common, sizes, the loops that are in the same iteration, the block, has one name for
both, which keeps the sets small.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._assertions.cells import data_of, equal_cells
from loopkit._assertions.follow import asserted
from loopkit._cached import cached_property, memoised, once
from loopkit._digits import told_by
from loopkit._expression import substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, all_guarded_reads, decided, where_all_hold
from loopkit._hidden import ONE, TWO, hidden, instance, labelled, plain
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import runs_once_along, shared_storage
from loopkit._poly.in_bounds import inside
from loopkit._poly.pairs import steps
from loopkit._poly.program_order import before
from loopkit._poly.touched import Touched, farthest, touched_by
from loopkit._relations import grouped
from loopkit._same import key_of, remembered
from loopkit._target import CUDA
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.instances import Instances, split_predicates
from loopkit.codegen.meeting_points import apart, common, equal, holds_somewhere

Cell = tuple[Expression, ...]


@dataclass(frozen=True)
class Access:
    """What a statement reads of an array, or writes to it: index tuples, one per access.

    All of them happen under ``guards`` alone, conditions within the statement's expressions.
    ``atomic`` is the operation of an atomic update, which reads and writes at once.
    """

    statement: str
    array: str
    cells: tuple[Cell, ...]
    is_write: bool
    guards: Guards = ()
    atomic: str | None = None

    def commutes(self, other: Access) -> bool:
        """Whether both are atomic updates by one operation: they need no order."""
        return self.atomic is not None and self.atomic == other.atomic


class Reach(IntEnum):
    """How far apart the threads of a block are that meet in a cell."""

    NOWHERE = 0
    WARP = 1
    BLOCK = 2


@dataclass(frozen=True)
class Order:
    """Which instances of two accesses are looked at.

    Loops in ``shared`` are in the same iteration on both sides; that of
    ``carried`` is earlier on the first side, by one if ``adjacent``.
    """

    shared: frozenset[str] = frozenset()
    carried: str | None = None
    adjacent: bool = False


ANY_ORDER = Order()
_LABELS = (ONE, TWO)


@dataclass(frozen=True, eq=False)
class _Side:
    """Instances of an access, and what their statement's names are called there."""

    domain: isl.Set
    names: Mapping[str, Expression]

    @memoised
    def called(self, cell: Cell) -> Cell:
        """A cell that the statement names, in the names of this side."""
        return tuple(substitute(index, self.names) for index in cell)


@lru_cache(1 << 10)
def _beside(one: _Side, two: _Side) -> isl.Set:
    """The instances of both sides, next to each other."""
    return _budget.kept(isl.Set.intersect, one.domain, two.domain)


def _met(both: isl.Set, one: _Side, cell: Cell, two: _Side, other: Cell) -> isl.Set | None:
    """Where two affine cells are one, of instances of both sides; None where they never are."""
    return common(both, equal(one.called(cell), two.called(other)))


@lru_cache(1 << 12)
def _meets(one: _Side, cell: Cell, two: _Side, other: Cell) -> isl.Set | None:
    """The same of all instances; whoever asks next has it for nothing."""
    return _budget.kept(_met, _beside(one, two), one, cell, two, other)


@remembered(1 << 10)
def _side_of(
    domain: isl.Set,
    inames: frozenset[str],
    own: frozenset[str],
    fixed: frozenset[str],
    hardware: Hardware,
    alone: frozenset[tuple[str, int]],
    label: str,
    blocks: bool,
) -> _Side:
    """The instances in ``domain`` of a statement with some ``inames``, whose names get a label.

    Those that are ``fixed`` do not, beside its ``own``. On axes where it has no coordinate it
    runs on all indices, or on index 0 where these are ``alone``. Launches of one kernel mostly
    run alike.
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
        self._tables: dict[int, Touched | None] = {}
        self._alike: dict[Hashable, list[tuple[isl.Set, Touched | None]]] = {}
        self._conditions: dict[str, tuple[Expression, ...]] = {}
        self._far: dict[tuple[int, int], int] = {}
        self._happens: dict[tuple[object, ...], bool] = {}
        self._arounds: dict[str, isl.Set] = {}
        self._across_blocks: dict[tuple[int, int], bool] = {}
        self._kinds: dict[int, tuple[int, tuple[object, ...], Access]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self.accesses = {s.id: self._find(s) for s in kernel.statements}
        self.by_array = grouped((a.array, a) for found in self.accesses.values() for a in found)

    def is_global(self, array: str) -> bool:
        """Whether all blocks share ``array``."""
        temporary = self.kernel.temporary_by_name.get(array)
        return temporary is None or temporary.address_space is AddressSpace.GLOBAL

    def storage_of(self, access: Access) -> str:
        """What names the memory of an access: the first array that lies there."""
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
        """An access taken apart by the conditions under which the expressions make it."""
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
        """What decides an access's conflicts; statements that differ elsewhere share it."""
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
        where = (number, statement.inames, self._alone(statement), conditions)
        return (access.array, access.cells, access.atomic, *where)

    @memoised
    def _alone(self, statement: Statement) -> frozenset[tuple[str, int]]:
        """The axes on which the statement has no coordinate, and runs on index 0 alone."""
        hardware = self.hardware
        mine = {(c.kind, c.axis) for c in hardware.coordinates if c.iname in statement.inames}
        used = {(kind, axis) for kind in "gl" for axis in hardware.used_axes(kind)}
        return runs_once_along(self.kernel, statement) & (used - mine)

    def conditions(self, statement: Statement) -> tuple[Expression, ...]:
        """Predicates that the statement's instances leave out although sets can hold them."""
        if not statement.predicates:
            return ()
        return once(self._conditions, statement.id, self._find_conditions, statement)

    def _find_conditions(self, statement: Statement) -> tuple[Expression, ...]:
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
        alone = self._alone(statement)
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
        """How far apart threads are that the accesses meet on, in one block (memoised)."""
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
        listed = self._listed_reach(first, second, order)
        if listed is not None:
            return listed
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

    def _listed_reach(self, first: Access, second: Access, order: Order) -> Reach | None:
        """The same, by listing what each thread touches; None where that does not tell."""
        if first.array != second.array:
            return None
        one = self._touched(first)
        two = None if one is None else self._touched(second)
        if one is None or two is None:
            return None
        fixed = order.shared if order.carried is None else order.shared | {order.carried}
        if any(plain(name) in fixed for name in one.names | two.names):
            return None
        reach = Reach(once(self._far, (id(one), id(two)), farthest, one, two, CUDA.warp))
        if reach is Reach.NOWHERE or self._happen(one.whole, two.whole, order):
            return reach
        return None if self._happen(one.around, two.around, order) else Reach.NOWHERE

    def _happen(self, one: isl.Set, two: isl.Set, order: Order) -> bool:
        """Whether two accesses happen, at places around them, in some order (memoised)."""
        return once(self._happens, (id(one), id(two), order), self._find_happen, one, two, order)

    def _find_happen(self, one: isl.Set, two: isl.Set, order: Order) -> bool:
        def named(where: isl.Set, label: str) -> isl.Set:
            mine = {name: plain(name) for name in labelled(_sets.names_of(where), ONE)}
            its = {old: n if n in order.shared else instance(n, label) for old, n in mine.items()}
            return _sets.rename(where, its)

        both = named(one, ONE) & named(two, TWO)
        if order.carried is not None:
            both = both & self._ordered(order.carried, order.adjacent)
        return not (both & self.kernel.assumptions.set).is_empty()

    @memoised
    def _ordered(self, loop: str, adjacent: bool) -> isl.Set:
        """Where the first side is in an earlier iteration of a loop, by one if ``adjacent``."""
        times = steps([loop], ONE, TWO)
        [(earlier, later)], [ordered] = times, before(times)
        return _sets.affine_equality(later, prim.Sum((earlier, 1))) if adjacent else ordered

    def _touched(self, access: Access) -> Touched | None:
        """What each thread touches by an access, as a list (memoised)."""
        return once(self._tables, self._kind_of(access)[0], self._find_touched, access)

    def _find_touched(self, access: Access) -> Touched | None:
        declared = self.kernel.temporary_by_name.get(access.array)
        if declared is None or not all(isinstance(e, int) for e in declared.shape):
            return None
        if not self.is_plain_access(access):
            return None
        side = self.side(access, ONE, frozenset(), blocks=False)
        cells = tuple(map(side.called, access.cells))
        words = {
            thread_word("l", axis, ONE, False): prod(self.hardware.block[:axis])
            for axis in self.hardware.used_axes("l")
        }
        own = tuple(labelled(_sets.names_of(side.domain), ONE))
        # Statements that threads run alike touch the same: by threads, inames have one name.
        alike = self._alike.setdefault((key_of(cells), own, declared.shape), [])
        for domain, known in alike:
            if domain.plain_is_equal(side.domain):
                return known
        found = touched_by(side.domain, own, cells, words, declared.shape)
        if found is not None:
            both = (self._arounds.setdefault(str(s), s) for s in (found.around, found.whole))
            found = replace(found, **dict(zip(("around", "whole"), both, strict=True)))
        alike.append((side.domain, found))
        return found

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

    @memoised
    def keeps_apart(self, array: str) -> bool:
        """Whether no cell of ``array`` is ever touched by two threads.

        Only the indices that all accesses share are looked at, which is quick
        also where there are many accesses; in doubt, the answer is False.
        """
        if array in shared_storage(self.kernel):
            return False
        found = self.by_array[array]
        statements = [self.kernel.statement_by_id[a.statement] for a in found]
        parallel = self.hardware.local_inames | self.hardware.group_inames
        columns = list(zip(*(cell for a in found for cell in a.cells), strict=True))
        same = [axis for axis, column in enumerate(columns) if len(set(column)) == 1]
        if len({s.inames & parallel for s in statements}) > 1 or not same:
            return False
        kept = tuple(found[0].cells[0][axis] for axis in same)
        if not all(map(self.is_plain, kept)):
            return False
        blocks = self.is_global(array)
        if self._tells_threads(statements[0], kept, blocks):
            return True
        alike = {self.kind(a)[3:]: a.statement for a in found}
        kinds = [Access(statement, array, (kept,), True) for statement in alike.values()]
        if len(kinds) > 4:
            return False
        differ = (*self.other_block, *self.other_thread) if blocks else self.other_thread
        for position, a in enumerate(kinds):
            for b in kinds[position:]:
                for _, _, pairs in self.pairs(a, b, ANY_ORDER, blocks):
                    # One access beside itself is symmetric: every other condition suffices.
                    if holds_somewhere(pairs, differ[::2] if a is b else differ):
                        return False
        return True

    def _tells_threads(self, statement: Statement, cell: Cell, blocks: bool) -> bool:
        """Whether a cell tells on which thread a statement touches it, and in which block."""
        told = frozenset().union(*(told_by(self.kernel, index) for index in cell))
        mine = [c for c in self.hardware.coordinates if c.iname in statement.inames & told]
        axes = {(c.kind, c.axis) for c in mine}
        kinds = "gl" if blocks else "l"
        return all((k, axis) in axes for k in kinds for axis in self.hardware.used_axes(k))

    @cached_property
    def other_thread(self) -> tuple[isl.Set, ...]:
        """Pieces of where the two threads differ, each followed by its mirror image."""
        return self._differing("l")

    @cached_property
    def other_block(self) -> tuple[isl.Set, ...]:
        """Pieces of where the two blocks differ."""
        return self._differing("g")

    def _differing(self, kind: str) -> tuple[isl.Set, ...]:
        return tuple(
            part
            for axis in self.hardware.used_axes(kind)
            for part in apart(*(prim.Variable(thread_word(kind, axis, x, True)) for x in _LABELS))
        )

    @cached_property
    def other_warp(self) -> tuple[isl.Set, ...]:
        """Pieces of where the two threads of a block are of different warps."""
        x, y, z = self.hardware.block
        if x * y * z <= CUDA.warp:
            return ()
        return apart(*map(self._warp, _LABELS))

    @cached_property
    def same_warp(self) -> isl.Set:
        """Where the two threads of a block are of one warp."""
        if not self.other_warp:
            return _sets.universe()
        one, two = map(self._warp, _LABELS)
        return _sets.condition_set(prim.Comparison(one, "==", two))

    def _warp(self, label: str) -> Expression:
        """The number of a thread's warp: threads are numbered x first, and dealt out in turn.

        Axes that a warp is a whole number of rows of tell nothing of it.
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
