"""Proof that the text has no data races: conflicting accesses are ordered by barriers.

Accesses of different threads of a block to one cell, at least one of them a write, need a barrier
between them. Accesses of different blocks must not conflict at all. Stores of equal values are the
exception in both cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement, product
from operator import itemgetter

import islpy as isl

from loopkit._algebra.polynomials import plus, polynomial, scaled
from loopkit._algebra.terms import number
from loopkit._budget import PROGRAM_QUESTION_LATER, SpentError, at_most
from loopkit._cached import cached_property, memoised, once
from loopkit._places import shared_storage
from loopkit._relations import grouped
from loopkit._same import key_of
from loopkit._target import CUDA
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.barrier_order import Order, orders, route
from loopkit.codegen.proof.data import DataFacts
from loopkit.codegen.proof.equal_stores import EqualStores
from loopkit.codegen.proof.families import Family, Kind, families_of, matched, one_cell
from loopkit.codegen.proof.forms import (
    Form,
    floor,
    has_digits,
    is_affine,
    names_of,
    opaque,
    renamed,
    values_of,
    variable,
)
from loopkit.codegen.proof.initialized import InitializedCheck
from loopkit.codegen.proof.proof_conditions import Condition, names_in, split
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import Space, copy_of, equal, less, values_in
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf, Touch

_MANY = 4
"""So many pairs are asked about one by one."""
_MANY_TERMS = 6
"""With how many terms, quotients mostly, sets slow down."""
_LISTED = 1 << 16
"""How many points indices with digits are computed at."""
Way = tuple[Order, Touch, Touch]


def _passed(touch: Touch) -> tuple[int, int]:
    """The numbers of barriers for the block before an access, and before the end of its braces.

    Only barriers of the function's own body count, each of which all threads execute once.
    """
    body, index = route(touch.leaf)[0]
    return body.barriers[index][0], body.barriers[index + 1][0]


def _is_hard(form: Form) -> bool:
    return has_digits(form) or len(polynomial(form)) > _MANY_TERMS


class ConflictCheck(Check):
    """Checks all pairs of accesses to shared and global memory.

    One question asks whether any accesses of two families touch a common cell. If so, it is asked
    for halves of the families, down to pairs.
    """

    def __init__(
        self,
        subject: Subject,
        recorder: Recorder,
        data: DataFacts,
        initialized: InitializedCheck,
    ) -> None:
        super().__init__(subject, recorder)
        self.data = data
        self.equal_stores = EqualStores(subject, initialized)
        self.barriers = [leaf for leaf in subject.leaves if leaf.barrier is not None]
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._sets: dict[isl.Set, isl.Set] = {}
        self._bases: dict[tuple[str, Kind, Kind], list[isl.Set]] = {}

    def run(self) -> None:
        """Check all memory that is written; arrays in one storage are checked together."""
        subject, storage = self.subject, shared_storage(self.subject.kernel)
        places = ((storage.get(t.array, (t.array,)), t) for t in subject.touches)
        for (array, *_), touches in grouped(places).items():
            place = subject.place_of(array)
            if subject.block_words and place == "global":
                what, value = f"whether blocks meet in a cell of '{array}'", self.equal_stores.kind
                keys = (((self.kind(t), t.is_write, t.atomic, value(t)), t) for t in touches)
                unlike = (some[0] for some in grouped(keys).values())
                for one, two in self.pairs("block", unlike):
                    with self.recorder.question("cross-block", what, one.leaf, two.leaf):
                        self.blocks(array, one, two)
            if subject.thread_words and place != "private":
                what = f"whether threads meet in a cell of '{array}'"
                for some in self.between_barriers(touches):
                    for one, two in self.pairs("thread", some):
                        if ways := self.ways(one, two):
                            with self.recorder.question("barrier", what, one.leaf, two.leaf):
                                self.threads(one.array, one, two, ways)

    def between_barriers(self, touches: Iterable[Touch]) -> Iterator[list[Touch]]:
        """Groups of accesses that no barrier in the function's body separates for all threads."""
        some: list[Touch] = []
        last = 0
        for (begin, end), touch in sorted(((_passed(t), t) for t in touches), key=itemgetter(0)):
            if begin > last:
                yield some
                some = []
            some.append(touch)
            last = max(last, end)
        yield some

    def pairs(self, how: str, touches: Iterable[Touch]) -> Iterator[tuple[Touch, Touch]]:
        """Pairs of accesses, one of them a write, that may touch a common cell."""
        families = families_of((self.kind(touch), touch) for touch in touches)
        for one, two in combinations_with_replacement(families, 2):
            (_, first), (_, second) = one.members[0], two.members[0]
            # Atomic updates of one kind need no order.
            if (first.is_write or second.is_write) and not first.atomic == second.atomic != "":
                for mine, its in matched(one, two):
                    for a, b in self.close(how, mine, its):
                        yield (a, b) if a.leaf.position <= b.leaf.position else (b, a)

    def close(self, how: str, one: Family, two: Family) -> Iterator[tuple[Touch, Touch]]:
        """Pairs of accesses of two families that may touch a common cell."""
        count, other = len(one.members), len(two.members)
        if count * other > _MANY and not self.may_meet(how, one, two):
            return
        if count * other <= _MANY or len(one.kinds) == len(two.kinds) == 1:
            members = one.members, two.members
            found = (
                combinations_with_replacement(members[0], 2) if one is two else product(*members)
            )
            yield from ((a, b) for (_, a), (_, b) in found)
            return
        if one is two:
            low, high = one.halves
            parts = [(low, low), (low, high), (high, high)]
        elif len(two.kinds) == 1 or (len(one.kinds) > 1 and count > other):
            parts = [(half, two) for half in one.halves]
        else:
            parts = [(one, half) for half in two.halves]
        for half, its in parts:
            yield from self.close(how, half, its)

    def may_meet(self, how: str, one: Family, two: Family) -> bool:
        """Whether accesses of two families may touch a common cell."""
        first, second, space = one.kinds[0], two.kinds[0], self.spaces[how]
        if len(one.kinds) == len(two.kinds) == 1:
            return bool(self.base(how, first, second))
        if not one.is_like(two):
            return True
        try:
            with at_most(PROGRAM_QUESTION_LATER):
                both = space.all_of(one_cell(one, two, space.renaming(1)))
                both = both & self.side(space, one.where, 0) & self.side(space, two.where, 1)
                parts = map(space.where, self.apart(how, is_mirrored=one is two))
                return not all((both & part).is_empty() for part in parts)
        except SpentError:
            return True

    @cached_property
    def spaces(self) -> dict[str, Space]:
        """The set space for two threads of one block, for two warps of it, or for two blocks."""
        near, far = map(self.subject.pair_space, (self.subject.block_words, ()))
        return {"thread": near, "warp": near, "block": far}

    def ways(self, first: Touch, second: Touch) -> list[Way]:
        """The orders of two accesses that no barrier for the block cuts."""
        found: list[Way] = []
        for one, two in ((first, second), (second, first)):
            found += [(o, one, two) for o in orders(one.leaf, two.leaf) if o.cut != "block"]
            if first is second:
                break
        return found

    def threads(self, array: str, first: Touch, second: Touch, ways: list[Way]) -> None:
        """Check that no two threads of a block conflict in one of these orders."""
        for order, one, two in ways:
            how = "thread" if order.cut is None else order.cut
            for meeting in self.base(how, self.kind(one), self.kind(two)):
                if known := order.conditions(0, 1):
                    meeting = meeting & self.spaces[how].all_of(known)
                if meeting.is_empty():
                    continue
                meeting = self.without_conditional_cuts(meeting, order)
                meeting = self.unequal(how, one, two, meeting)
                if not meeting.is_empty():
                    self.report("barrier", array, one, two, meeting)
                    return

    def unequal(self, how: str, one: Touch, two: Touch, meeting: isl.Set) -> isl.Set:
        """The pairs of executions that are not known to store equal values, over all names."""
        space = self.spaces[how]
        for copy, touch in enumerate((one, two)):
            meeting = meeting & self.side(space, touch.scope.set, copy)
        return self.equal_stores.without(space, one, two, meeting)

    def base(self, how: str, first: Kind, second: Kind) -> list[isl.Set]:
        """Pairs of executions by different threads (or blocks) that touch one cell (memoised)."""
        return once(self._bases, (how, first, second), self._find_base, how, first, second)

    def _find_base(self, how: str, first: Kind, second: Kind) -> list[isl.Set]:
        space = self.spaces[how]
        both = self.side(space, first.where, 0) & self.side(space, second.where, 1)
        both = both & self.one_cell(space, first, second)
        if both.is_empty():
            return []
        both = both & self.data.loaded(space, first.touch, second.touch)
        # Loops order the two otherwise: only without any are they exchangeable.
        is_mirrored = first is second and (how == "block" or not first.touch.scope.loops)
        parts = (both & space.where(apart) for apart in self.apart(how, is_mirrored=is_mirrored))
        return [part for part in parts if not part.is_empty()]

    @memoised
    def kind(self, touch: Touch) -> Kind:
        """The key on which an access's conflicts depend (memoised)."""
        cell, place, where = touch.cell, touch.offset, touch.scope.set
        own = touch.leaf.statement  # what data decides may have changed from one to the next
        is_open = self.data.decides(cell)
        if cell is not None and not is_open and not self.data.names_of(touch.leaf):
            names, where = self.reached(touch.scope)
            place, *cells = (renamed(f, lambda n: names.get(n, n)) for f in (place, *cell))
            cell, own = tuple(cells), None
        is_simple = cell is not None and not is_open and not any(map(_is_hard, cell))
        found = Kind(touch, where, cell, place, is_simple)
        named = cell if cell is not None else touch.origin and key_of(touch.origin)
        loops = tuple(map(id, touch.scope.loops))
        key = (touch.array, where, loops, named, place, own)
        return self._kinds.setdefault(key, found)

    @memoised
    def reached(self, scope: Scope) -> tuple[dict[str, str], isl.Set]:
        """The scope of an access, as constants equal to hardware indices, and a set (memoised).

        The set does not involve these constants.
        """
        text, names = self.subject.text, {}
        for let in scope.lets:
            form = text.form(let.value, scope)
            if form.op == "name" and form.data[0] in self.subject.words:
                names[let.name] = form.data[0]
        where = self.subject.space.without(scope.set, names)
        return names, self._sets.setdefault(where, where)

    @memoised
    def side(self, space: Space, where: isl.Set, copy: int) -> isl.Set:
        """A set renamed to one of the two instances (memoised)."""
        return space.renamed(where, space.renaming(copy))

    def one_cell(self, space: Space, first: Kind, second: Kind) -> isl.Set:
        """The pairs for which two accesses touch one cell (a superset if data decide)."""
        known = space.everything
        if first.touch.array != second.touch.array:
            begin, end = self.bytes_of(first)
            start, stop = (renamed(form, space.renaming(1)) for form in self.bytes_of(second))
            return known & space.all_of(split(less(begin, stop), less(start, end))[0])
        if self.data.decides(first.cell) or self.data.decides(second.cell):
            known = self.data.one_cell(space, first.touch, second.touch)
        if first.cell is None or second.cell is None or len(first.cell) != len(second.cell):
            return known
        if first.cell == second.cell:
            told, left = self.told(first.cell, first.where | second.where)
            sides = [*zip(left, left, strict=True), *((variable(n), variable(n)) for n in told)]
        else:
            sides = [*zip(first.cell, second.cell, strict=True)]
        known_sides = ((a, renamed(b, space.renaming(1))) for a, b in sides)
        return known & space.all_of(
            equal(a, b) for a, b in known_sides if is_affine(a) and is_affine(b)
        )

    def bytes_of(self, kind: Kind) -> tuple[Form, Form]:
        """The first byte of an element of a shared array, and the one after its last.

        Both are opaque if the offset is not known as a number.
        """
        array = kind.touch.array
        declared = self.subject.names.declarations.get(array)
        if declared is None or declared.offset is None:
            return opaque(array), opaque(array)
        size = TYPES[declared.ctype].itemsize
        begin = plus(scaled(kind.place, size), number(declared.offset))
        return begin, plus(begin, number(size))

    def told(self, cell: tuple[Form, ...], where: isl.Set) -> tuple[list[str], tuple[Form, ...]]:
        """The names that hard indices determine, and the remaining indices of a cell.

        Hard indices contain exclusive ors or many quotients, which make sets slow. If no two
        points have the same values of them, equality of these indices is equality of the names.
        """
        hard = [*filter(_is_hard, cell)]
        names = frozenset[str]().union(*(names_of(form) for form in hard))
        mine = tuple(form for form in cell if names_of(form) and names_of(form) <= names)
        is_known = all(is_affine(form) for form in mine) and not names & self.subject.data_names
        values = values_in(where, mine, _LISTED) if names and is_known else None
        if values is None or len({*zip(*values, strict=True)}) != len(values[0]):
            return [], cell
        return sorted(names), tuple(form for form in cell if form not in mine)

    def apart(self, how: str, *, is_mirrored: bool) -> list[Condition]:
        """The ways in which two threads, warps or blocks differ, up to exchanging the two."""
        number = self.subject.thread_number
        if how == "warp":
            number = floor(number, CUDA.warp)
        forms = map(variable, self.subject.block_words) if how == "block" else [number]
        found = []
        for form in forms:
            other = renamed(form, lambda n: copy_of(n, 1))
            found.append(less(form, other))
            if not is_mirrored:
                found.append(less(other, form))
        return found

    def without_conditional_cuts(self, meeting: isl.Set, order: Order) -> isl.Set:
        """The pairs without those between which a barrier in a guard or a loop is executed."""
        for barrier in self.barriers:
            if barrier.scope.unknown:
                continue
            cut = self.executed_between(barrier, order)
            if cut is not None:
                meeting = meeting - cut
        return meeting

    def executed_between(self, barrier: Leaf, order: Order) -> isl.Set | None:
        """The pairs between which an execution of ``barrier`` lies."""
        subject = self.subject
        space = subject.pair_space(subject.block_words, 3)
        if any(names_in(c) & subject.data_names for c in barrier.scope.all_conditions):
            return None
        executed = space.renamed(barrier.scope.set, space.renaming(2))
        between = space.nothing
        for before in orders(order.first, barrier):
            loose = Order(before.first, before.second, before.same, before.carried, None)
            early = executed & space.all_of(loose.conditions(0, 2))
            for after in orders(barrier, order.second):
                loose = Order(after.first, after.second, after.same, after.carried, None)
                between = between | (early & space.all_of(loose.conditions(2, 1)))
        if barrier.barrier == "warp":
            number = floor(self.subject.thread_number, CUDA.warp)
            between = between & space.where(equal(number, renamed(number, space.renaming(1))))
        near = self.spaces["thread"]
        return near.aligned(
            space.without(between, (n for n in space.names if n not in near.position))
        )

    def blocks(self, array: str, first: Touch, second: Touch) -> None:
        """Check that no two blocks conflict."""
        for meeting in self.base("block", self.kind(first), self.kind(second)):
            meeting = self.unequal("block", first, second, meeting)
            if meeting.is_empty():
                continue
            self.report("cross-block", array, first, second, meeting)
            return

    def report(self, kind: str, array: str, first: Touch, second: Touch, meeting: isl.Set) -> None:
        """Report two executions that conflict."""
        subject = self.subject
        verbs = ["writes" if touch.is_write else "reads" for touch in (first, second)]
        who = "threads of a block" if kind == "barrier" else "blocks"
        why = self.doubts(first, second)
        if why:
            what = f"two {who} may meet in a cell of '{array}': only data decides ({why})"
            self.recorder.open(kind, what, (first.leaf, second.leaf))
            return
        if self.equal_stores.is_open(first, second):
            what = f"two {who} meet in a cell of '{array}', where they may store one value"
            self.recorder.open(kind, what, (first.leaf, second.leaf))
            return
        inames = [i for touch in (first, second) for i in subject.inames_of(touch.leaf)]
        others = [copy_of(n, 1) for n in (*subject.words, *inames)]
        point = self.point(meeting, *inames, *others)
        order = "with no barrier between" if kind == "barrier" else "in no order"
        what = f"one of two {who} {verbs[0]} what the other {verbs[1]}, {order}"
        cell = None if first.cell is None else values_of(first.cell, point)
        there = subject.place(second.leaf, point, 1)
        self.found(kind, what, first.leaf, point, second=there, array=array, cell=cell)

    def doubts(self, first: Touch, second: Touch) -> str:
        """What about two accesses depends on data; empty if the sets are exact."""
        found: dict[str, None] = {}
        for touch in (first, second):
            around = self.data.names_around(touch)
            if around:
                found[around] = None
            if touch.cell is None:
                found[f"{touch.array}[{shown(touch.offset)}]"] = None
                continue
            for index in touch.cell:
                if not is_affine(index):
                    found[f"{touch.array}[.. {shown(index)} ..]"] = None
        return ", ".join(found)
