"""No two threads meet in a cell unordered, and no two blocks at all, but to store one value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, combinations_with_replacement, product
from operator import itemgetter

import islpy as isl

from loopkit._cached import cached_property, memoised
from loopkit._places import shared_storage
from loopkit._points import listed
from loopkit._relations import grouped
from loopkit._same import key_of
from loopkit._target import CUDA
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof import conditions
from loopkit.codegen.proof.barrier_order import Order, orders, route
from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.data import DataFacts
from loopkit.codegen.proof.equal_stores import EqualStores
from loopkit.codegen.proof.forms import Form, constant, floor, opaque, values_of, variable
from loopkit.codegen.proof.pointwise import equal_pairs
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import Space, copy_of, equal, less
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Leaf, Touch, split

_MANY = 4
_MANY_TERMS = 6
"""With how many terms, quotients mostly, sets slow down."""
_LISTED = 1 << 16
"""How many points indices with digits are computed at."""
Way = tuple[Order, Touch, Touch]


def _passed(touches: tuple[Touch, ...]) -> tuple[int, int]:
    """How many barriers for a block stand above all of some accesses, and above their last end.

    Those of the function's body count, which all threads execute once.
    """
    places = [route(touch.leaf)[0] for touch in touches]
    return (
        min(body.barriers[index][0] for body, index in places),
        max(body.barriers[index + 1][0] for body, index in places),
    )


class ConflictCheck(Check):
    """Looks at all pairs of accesses of memory that threads share."""

    def __init__(self, subject: Subject, recorder: Recorder, data: DataFacts) -> None:
        super().__init__(subject, recorder)
        self.data = data
        self.equal_stores = EqualStores(subject)
        self.barriers = [leaf for leaf in subject.leaves if leaf.barrier is not None]
        self._bases: dict[tuple[object, ...], list[isl.Set]] = {}

    def run(self) -> None:
        """Check every array that is written."""
        subject = self.subject
        if not subject.words:
            return
        for array, touches in grouped((t.array, t) for t in subject.touches).items():
            if subject.place_of(array) != "private" and any(t.is_write for t in touches):
                is_shared = subject.place_of(array) == "shared"
                ordered = sorted(((*_passed(t), t) for t in self.alike(touches)), key=itemgetter(0))
                for number, (_, end, first) in enumerate(ordered):
                    for begin, _, second in ordered[number:]:
                        if is_shared and begin > end:
                            break  # all behind a barrier for all threads, here and further on
                        self.groups(array, first, second)
        for names in dict.fromkeys(shared_storage(subject.kernel).values()):
            for one, two in combinations(names, 2):
                self.storage(one, two)

    def storage(self, one: str, two: str) -> None:
        """Check two arrays of one storage, where cells of one lie in the place of the other's."""
        touches = [[t for t in self.subject.touches if t.array == name] for name in (one, two)]
        for first, second in product(*map(self.alike, touches)):
            self.groups(one, first, second)

    def alike(self, touches: Iterable[Touch]) -> Iterable[tuple[Touch, ...]]:
        """Accesses by what is asked of them: those of one group agree in cells and guards."""
        kind = self.equal_stores.kind
        keys = (((self._key(t), t.is_write, t.atomic, kind(t)), t) for t in touches)
        return grouped(keys).values()

    def groups(self, array: str, first: tuple[Touch, ...], second: tuple[Touch, ...]) -> None:
        """Check accesses of one array; those of one list agree in cells, guards and values."""
        subject, one, two = self.subject, first[0], second[0]
        if not (one.is_write or two.is_write):
            return
        if one.atomic and one.atomic == two.atomic:
            return  # updates of one kind, in any order
        leaves = (one.leaf, two.leaf)
        if subject.block_words and subject.place_of(array) == "global":
            what = f"whether blocks meet in a cell of '{array}'"
            with self.recorder.question("cross-block", what, *leaves):
                self.blocks(array, one, two)
        if not subject.thread_words:
            return
        what = f"whether threads meet in a cell of '{array}'"
        if len(first) * len(second) > _MANY:
            # Order matters only where cells are shared at all.
            with self.recorder.question("barrier", what, *leaves):
                if not self.base(self.near, one, two, same_block=True):
                    return
        same = combinations_with_replacement(first, 2)
        for a, b in same if first is second else product(first, second):
            if ways := self.ways(a, b):
                with self.recorder.question("barrier", what, a.leaf, b.leaf):
                    self.threads(array, a, b, ways)

    @cached_property
    def near(self) -> Space:
        """Names of two threads of one block."""
        return self.subject.pair_space(self.subject.block_words)

    def ways(self, first: Touch, second: Touch) -> list[Way]:
        """The orders of two accesses that no barrier for all threads cuts."""
        found: list[Way] = []
        for one, two in ((first, second), (second, first)):
            found += [(o, one, two) for o in orders(one.leaf, two.leaf) if o.cut != "block"]
            if first is second:
                break
        return found

    def threads(self, array: str, first: Touch, second: Touch, ways: list[Way]) -> None:
        """Whether two threads of a block meet in one of these orders."""
        for order, one, two in ways:
            for base in self.base(self.near, one, two, same_block=True, far=order.cut == "warp"):
                meeting = base & self.near.all_of(order.conditions(0, 1))
                if meeting.is_empty():
                    continue
                meeting = self.without_conditional_cuts(meeting, order)
                meeting = self.equal_stores.without(self.near, one, two, meeting)
                if not meeting.is_empty():
                    self.report("barrier", array, one, two, meeting)
                    return

    def one_warp(self, first: int, second: int) -> Condition:
        """Both threads are in one warp."""
        number = self.subject.thread_number

        def warp(copy: int) -> Form:
            return floor(number.renamed(lambda name: copy_of(name, copy)), CUDA.warp)

        return equal(warp(first), warp(second))

    def base(
        self, space: Space, first: Touch, second: Touch, *, same_block: bool, far: bool = False
    ) -> list[isl.Set]:
        """Pairs of executions, by different threads (or blocks), that touch one cell.

        Those of different warps, if they are to be ``far`` from each other.
        """
        key = (same_block, far, self._key(first), self._key(second))
        if far and key not in self._bases:
            apart = self.near.where(conditions.negated(self.one_warp(0, 1)))
            parts = (part & apart for part in self.base(space, first, second, same_block=True))
            self._bases[key] = [part for part in parts if not part.is_empty()]
        if key not in self._bases:
            both = self.sides(space, first.scope, second.scope)
            both = both & self.one_cell(space, first, second)
            if not both.is_empty():
                both = both & self.data.loaded(space, first, second)
            found = []
            if not both.is_empty():
                for apart in self.apart(same_block, first, second):
                    part = both & space.where(apart)
                    if not part.is_empty():
                        found.append(part)
            self._bases[key] = found
        return self._bases[key]

    def _key(self, touch: Touch) -> tuple[object, ...]:
        cell = touch.cell if touch.cell is not None else touch.origin and key_of(touch.origin)
        # What data decides may have changed from one statement to the next.
        is_open = self.data.decides(touch.cell) or self.data.names_of(touch.leaf)
        own = touch.leaf.statement if is_open else None
        return (touch.array, id(touch.scope), cell, touch.offset, own)

    @memoised
    def sides(self, space: Space, first: Scope, second: Scope) -> isl.Set:
        """Where two scopes are reached, each in the names of its copy (memoised)."""
        return self.side(space, first, 0) & self.side(space, second, 1)

    @memoised
    def side(self, space: Space, scope: Scope, copy: int) -> isl.Set:
        """Where a scope is reached, in the names of that copy (memoised)."""
        return space.renamed(scope.set, space.renaming(copy))

    def one_cell(self, space: Space, first: Touch, second: Touch) -> isl.Set:
        """Where two accesses touch one cell, or may: what data decides is not excluded."""
        known = space.everything
        if first.array != second.array:
            begin, end = self.bytes_of(first)
            start, stop = (form.renamed(space.renaming(1)) for form in self.bytes_of(second))
            return known & space.all_of(split(less(begin, stop), less(start, end))[0])
        if self.data.decides(first.cell) or self.data.decides(second.cell):
            known = self.data.one_cell(space, first, second)
        if first.cell is None or second.cell is None or len(first.cell) != len(second.cell):
            return known
        if first.cell == second.cell:
            told, left = self.told(first.cell, first.scope, second.scope)
            sides = [*zip(left, left, strict=True), *((variable(n), variable(n)) for n in told)]
        else:
            sides = [*zip(first.cell, second.cell, strict=True)]
        pairs, renaming = [], space.renaming(1)
        for a, b in sides:
            if not (a.is_affine and b.is_affine):
                continue
            found = equal_pairs(space, (first.scope.set, a), (second.scope.set, b), renaming)
            if found is None:
                pairs.append(equal(a, b.renamed(renaming)))
            else:
                known = known & found
        return known & space.all_of(pairs)

    def bytes_of(self, touch: Touch) -> tuple[Form, Form]:
        """Where an element of a shared array begins, and where it ends; no number if not known."""
        declared = self.subject.names.declarations.get(touch.array)
        if declared is None or declared.offset is None:
            return opaque(touch.array), opaque(touch.array)
        size = TYPES[declared.ctype].itemsize
        begin = touch.offset.scaled(size).plus(constant(declared.offset))
        return begin, begin.plus(constant(size))

    def told(
        self, cell: tuple[Form, ...], first: Scope, second: Scope
    ) -> tuple[list[str], tuple[Form, ...]]:
        """Names that indices with digits, or many quotients, tell; and the other indices.

        Where no two points of two scopes have the same values there, to say that the names are
        equal says the same: sets are slow with digits.
        """
        hard = [f for f in cell if f.has_digits or len(f.terms) > _MANY_TERMS]
        names = frozenset[str]().union(*(form.names for form in hard))
        mine = tuple(form for form in cell if form.names and form.names <= names)
        is_known = all(form.is_affine for form in mine) and not names & self.subject.data_names
        points = None
        if names and is_known:
            points = listed(first.set | second.set, sorted(names), _LISTED)
        if points is None:
            return [], cell
        columns = dict(zip(sorted(names), points.T.astype(object), strict=True))
        try:
            values = [form.value(columns) for form in mine]
        except ValueError:  # what has no one value for many points
            return [], cell
        if len({*zip(*values, strict=True)}) != len(points):
            return [], cell
        return sorted(names), tuple(form for form in cell if form not in mine)

    def apart(self, same_block: bool, first: Touch, second: Touch) -> list[Condition]:
        """The ways in which two threads, or blocks, differ; one of each two that mirror."""
        subject = self.subject
        mirrored = first.leaf is second.leaf and self._key(first) == self._key(second)
        if same_block:
            forms = [self.subject.thread_number]
        else:
            forms = [variable(w) for w in subject.block_words]
        found = []
        for form in forms:
            other = form.renamed(lambda n: copy_of(n, 1))
            found.append(less(form, other))
            # Loops order the two otherwise: only without any are they exchangeable.
            if not mirrored or (same_block and first.leaf.scope.loops):
                found.append(less(other, form))
        return found

    def without_conditional_cuts(self, meeting: isl.Set, order: Order) -> isl.Set:
        """Take out the pairs between which a barrier under a guard, or in a loop, is executed."""
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
        if any(conditions.names_in(c) & subject.data_names for c in barrier.scope.all_conditions):
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
            between = between & space.where(self.one_warp(0, 1))
        copies = [n for n in space.names if n not in self.near.position]
        return self.near.aligned(space.without(between, copies))

    @cached_property
    def far(self) -> Space:
        """Names of two threads of any blocks."""
        return self.subject.pair_space(())

    def blocks(self, array: str, first: Touch, second: Touch) -> None:
        """Whether two blocks meet."""
        for meeting in self.base(self.far, first, second, same_block=False):
            meeting = self.equal_stores.without(self.far, first, second, meeting)
            if meeting.is_empty():
                continue
            self.report("cross-block", array, first, second, meeting)
            return

    def report(self, kind: str, array: str, first: Touch, second: Touch, meeting: isl.Set) -> None:
        """Two executions that meet in a cell."""
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
        """What only data decides about two accesses; empty where sets are exact."""
        found: dict[str, None] = {}
        for touch in (first, second):
            around = self.data.names_around(touch)
            if around:
                found[around] = None
            if touch.cell is None:
                found[f"{touch.array}[{shown(touch.offset)}]"] = None
                continue
            for index in touch.cell:
                if not index.is_affine:
                    found[f"{touch.array}[.. {shown(index)} ..]"] = None
        return ", ".join(found)
