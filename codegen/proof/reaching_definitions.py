"""Reaching definitions: what the text has written of a temporary when a line reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

import islpy as isl

from loopkit._algebra.polynomials import Monomial, minus, plus, polynomial, scaled, sum_of
from loopkit._algebra.terms import FALSE, TRUE, ZERO, Term, subterms
from loopkit._cached import memoised, once
from loopkit._hidden import hidden
from loopkit.codegen.c.tree import Assign, For, If, Let, Number
from loopkit.codegen.proof.barrier_order import route
from loopkit.codegen.proof.forms import (
    DATA,
    Form,
    is_affine,
    names_of,
    number_in,
    renamed,
    variable,
)
from loopkit.codegen.proof.proof_conditions import (
    Condition,
    atoms_in,
    comparison,
    joined,
    least,
    names_in,
    negated_atom,
    supposed,
)
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import less
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Group, Leaf, Touch

_EARLIER = hidden("earlier")

_MOST_ATOMS = 8
"""Branches on more conditions are not told apart: each doubles the cases."""

Cell = tuple[Form, ...]


class ReachingDefinitions:
    """The cells of one array that were written before a read of it, as sets.

    ``cells`` name the indices of a cell in ``space``, beside all names of the proof.
    """

    def __init__(
        self, subject: Subject, array: str, rank: int, writes: list[Touch], varying: set[str]
    ) -> None:
        self.subject = subject
        self.place = subject.place_of(array)
        self.writes = writes
        self.varying = varying
        self.cells = [hidden("cell", axis) for axis in range(rank)]
        self.space = self.subject.cell_space(rank)
        self._pieces: dict[tuple[object, ...], isl.Set | None] = {}

    def is_fixed(self, write: Touch, read: Touch) -> bool:
        """Whether the written cell is called the same until it is read."""
        names = self.memory(write.cell)
        return not names or not self._written_in(self._between(write.leaf, read.leaf), names)

    def held(self, one: Leaf, two: Leaf, loops: Collection[str]) -> frozenset[str]:
        """A thread's integers in memory that are the same for two lines, as ``loops`` are."""
        first, second = sorted((one, two), key=lambda leaf: leaf.position)
        spans = [self._between(first, second)]
        for group, _ in route(one):
            loop = group.node
            if isinstance(loop, For) and loop.name not in loops and two.scope.is_inside(loop):
                spans.append(group.span)
        places = self.subject.names.places
        own = frozenset(
            n for n in self.subject.data_names if places.get(n, "value") in ("private", "value")
        )
        return own - {t.array for span in spans for t in self._written_in(span, own)}

    def _written_in(self, span: tuple[int, int], names: frozenset[str]) -> list[Touch]:
        """What lines of a part of the text write of what lies in memory by these names."""
        leaves = self.subject.leaves[span[0] : span[1] + 1]
        return [t for leaf in leaves for t in leaf.touches if t.is_write and t.array in names]

    def _between(self, first: Leaf, second: Leaf) -> tuple[int, int]:
        """The span of all that may run between two lines in one iteration of what is around both.

        It begins where conditions on data are asked that the first line runs under.
        """
        # The groups around each, outermost first, and the line itself.
        one: list[Group | Leaf] = [*(group for group, _ in route(first)), first]
        two: list[Group | Leaf] = [*(group for group, _ in route(second)), second]
        depth = 0
        while depth < min(len(one), len(two)) and one[depth] is two[depth]:
            depth += 1
        if depth == min(len(one), len(two)):
            return one[depth - 1].span
        start = next(group for group in one[depth:] if not self._is_plain(group))
        return start.span[0], two[depth].span[1]

    def _is_plain(self, group: Group | Leaf) -> bool:
        """Whether a group is a guard that no data decide."""
        if not isinstance(group, Group) or not isinstance(group.node, If):
            return False
        asked = frozenset[str]().union(*map(names_in, group.scope.conditions))
        return not (group.scope.own_unknown or asked & self.subject.data_names)

    def _is_true_before(self, changed: Touch, write: Touch) -> bool:
        """Whether a condition of a write held at it if it holds behind a line that changes it.

        That is so for a variable of the thread's own that the line clears, or an element, if
        nothing but its being set is asked.
        """
        name, node = changed.array, changed.leaf.node
        if self.subject.place_of(name) != "private" or not isinstance(node, Assign):
            return False
        is_set = comparison("!=", variable(name), ZERO)
        asked = [c for c in write.scope.all_conditions if name in names_in(c)]
        elements = [c for c in write.scope.unknown if name in words_in(c)]
        return (
            node.operator == "="
            and node.value == Number(0, "bool")
            and all(c == is_set for c in asked)
            and all(_flag(c) == name for c in elements)
        )

    def memory(self, cell: Cell | None) -> frozenset[str]:
        """What lies in memory and decides which cell is meant."""
        words: set[str] = set()
        for form in cell or ():
            words |= names_of(form) & self.subject.data_names
            for atom in subterms(form):
                if atom.op in DATA:
                    words |= words_in(atom)
        places = self.subject.names.places
        return frozenset(w for w in words if places.get(w, "value") != "value")

    @memoised
    def aligned(self, scope: Scope) -> isl.Set:
        """Where a scope is reached, over the names of a cell's indices, too."""
        return self.space.aligned(scope.set)

    def pieces(self, read: Touch, after: Leaf | None = None) -> Iterator[isl.Set]:
        """The cells that were written before a read, by what is around both; nearest first.

        Only by what surely comes behind a line, if one is given that stands before the read.
        The last piece is what all branches write, whatever data decide which is taken.
        """
        branches = []
        for write, carried in self.before(read, after):
            same = self.same_data(write, read, carried)
            if same is not None and (found := self._piece(write, read, carried, same)) is not None:
                if same.open == TRUE:
                    yield found
                else:
                    branches.append((same.open, found))
        if len(branches) > 1:
            yield self._in_all_branches(branches, _MOST_ATOMS)

    def _in_all_branches(self, branches: list[tuple[Condition, isl.Set]], most: int) -> isl.Set:
        """The cells that are in one of the pieces whose conditions hold, whatever data are."""
        found = self.space.nothing
        for condition, piece in branches:
            if condition == TRUE:
                found = found | piece
        rest = [b for b in branches if b[0] not in (TRUE, FALSE)]
        if len(rest) < 2 or not most:
            return found
        atom = next(iter(sorted(atoms_in(rest[0][0]), key=lambda atom: atom.key)))
        both = [
            self._in_all_branches(
                [(supposed(c, atom, holds), piece) for c, piece in rest], most - 1
            )
            for holds in (True, False)
        ]
        return found | (both[0] & both[1])

    def perhaps(self, read: Touch) -> Iterator[isl.Set]:
        """Cells that may have been written before a read, as data have it, beside `pieces`."""
        for write, carried in self.before(read):
            same = self.same_data(write, read, carried)
            if same is None or same.open != TRUE:
                common = _common(write.scope, read.scope, carried)
                found = self.make_piece(write, common, carried, Matching())
                if found is not None:
                    yield found

    def before(self, read: Touch, after: Leaf | None = None) -> Iterator[tuple[Touch, For | None]]:
        """The writes that come before a read, and the loop in whose earlier iterations they do."""
        start = after.position if after is not None else -1
        for write in reversed(self.writes):
            if start < write.leaf.position < read.leaf.position:
                yield write, None
        for loop in reversed(read.scope.loops):
            if after is not None and after.scope.is_inside(loop):
                continue
            for write in reversed(self.writes):
                if write.scope.is_inside(loop):
                    yield write, loop

    def piece(self, write: Touch, read: Touch, carried: For | None) -> isl.Set | None:
        """The cells written by a line; ``carried``: in earlier iterations of a loop.

        None where only data decides that they are.
        """
        same = self.same_data(write, read, carried)
        if same is None or same.open != TRUE:
            return None
        return self._piece(write, read, carried, same)

    def _piece(
        self, write: Touch, read: Touch, carried: For | None, same: Matching
    ) -> isl.Set | None:
        common = _common(write.scope, read.scope, carried)
        # Cells that data decide are those of the read, which may not be those of the next one.
        cell = tuple(None if is_affine(a) else a for a in write.cell or ())
        key = (id(write), id(common), id(carried), same, cell)
        return once(self._pieces, key, self.make_piece, write, common, carried, same)

    def overwritten(self, write: Touch, loop: For) -> isl.Set:
        """The cells that a line surely writes in later iterations of a loop, too."""
        same, common = self.same_data(write, write, loop), _common(write.scope, write.scope, loop)
        is_sure = same is not None and same.open == TRUE
        found = self.make_piece(write, common, loop, same, later=True) if same and is_sure else None
        return self.space.nothing if found is None else found

    def same_data(self, write: Touch, read: Touch, carried: For | None) -> Matching | None:
        """Where what only data decides, conditions and cells, is the same for write and read.

        Conditions that the read does not ask for are left open.  None if it reads another cell,
        or what lies in memory may have changed.
        """
        same = Matching()
        left: list[Condition] = []
        flags: set[str] = set()
        asked = dict.fromkeys(read.scope.unknown)
        for condition in write.scope.unknown:
            several = [condition] if condition in asked else asked
            found = [m for one in several if (m := self._following(condition, one)) is not None]
            match = min(found, key=lambda m: len(m.pairs), default=None)
            if match is None:
                left.append(condition)
                match = Matching(words_in(condition))
            elif (flag := _flag(condition)) is not None:
                flags.add(flag)
                match = Matching(match.words - {flag}, match.pairs)
            same = same.joined(match)
        for own, due in zip(write.cell or (), read.cell or (), strict=True):
            if not is_affine(own):
                match = self._matching(own, due)
                if match is None:
                    return None
                same = same.joined(match)
        words = set(same.words)
        data = self.subject.data_names
        tested: set[str] = set()
        if data:
            for known in write.scope.all_conditions:
                tested |= names_in(known) & data
            used = (*(write.cell or ()), *(form for a, _, b in same.pairs for form in (a, b)))
            for form in used:
                words |= names_of(form) & data
        tested |= flags
        alone, words = tested - words, words | tested
        pairs = tuple((self._by_cell(due, read), sign, mine) for due, sign, mine in same.pairs)
        same = replace(same, open=joined("and", left), pairs=pairs)
        if not words:
            return same
        places = self.subject.names.places
        memory = frozenset(w for w in words if places.get(w, "value") != "value")
        if carried is not None and carried.name in words:
            return None
        if self.place != "private":
            threads_own = {m for m in memory if places[m] == "private"}
            if threads_own & self.varying:
                return None
        if memory:
            span = self._between(write.leaf, read.leaf)
            if carried is not None:
                span = next(g.span for g, _ in route(write.leaf) if g.node is carried)
            changed = self._written_in(span, memory)
            if any(t.array not in alone or not self._is_true_before(t, write) for t in changed):
                return None
        return replace(same, words=frozenset(words))

    def _following(self, mine: Condition, other: Condition) -> Matching | None:
        """Where a condition holds because another one does: of whole numbers the larger may."""
        own, due = least(mine), least(other)
        are_whole = words_in(mine) | words_in(other) <= self.space.position.keys()
        if own is None or due is None or not are_whole:
            return self._matching(mine, other)
        return _forms(own, due, "<=")

    def _matching(self, mine: Term, other: Term) -> Matching | None:
        """Where two nodes are the same, if sets know all that is then to be equal."""
        found = matching(mine, other)
        forms = () if found is None else (f for due, _, its in found.pairs for f in (due, its))
        return found if all(names_of(f) <= self.space.position.keys() for f in forms) else None

    def _by_cell(self, form: Form, read: Touch) -> Form:
        """A form of the read's names as one of its cell, where an index says what it is."""
        for name, index in zip(self.cells, read.cell or (), strict=True):
            for sign in (1, -1):
                rest = minus(form, scaled(index, sign))
                if number_in(rest) is not None:
                    return plus(scaled(variable(name), sign), rest)
        return form

    def make_piece(
        self, write: Touch, common: Scope, carried: For | None, same: Matching, later: bool = False
    ) -> isl.Set | None:
        """The cells that all executions of a write reach, by the names around it and the read."""
        kept = same.words
        space, subject = self.space, self.subject

        def name(old: str) -> str:
            return _EARLIER if carried is not None and old == carried.name else old

        if carried is None:
            where = self.aligned(write.scope)
        else:
            where = space.renamed(write.scope.set, name)
            two = variable(_EARLIER), variable(carried.name)
            where = where & space.where(less(*(reversed(two) if later else two)))
        cells = zip(self.cells, write.cell or (), strict=True)
        told = (("==", variable(cell), index) for cell, index in cells if is_affine(index))
        pairs = ((sign, due, mine) for due, sign, mine in same.pairs)
        equal = (comparison(sign, a, renamed(b, name)) for sign, a, b in chain(told, pairs))
        where = where & space.all_of(equal)
        # What equations fix goes first: isl then finds the simplest form.
        lets: list[str] = []
        loops: list[str] = []
        outer = set(map(id, common.chain()))
        for scope in write.scope.chain():
            node = scope.node
            if not isinstance(node, (For, Let)) or node.name in kept or node is carried:
                continue
            # Another thread has constants of its own.
            if id(scope) not in outer or (isinstance(node, Let) and self.place != "private"):
                (lets if isinstance(node, Let) else loops).append(node.name)
        words: tuple[str, ...] = ()
        if self.place != "private":
            words = subject.thread_words
        if self.place == "global":
            words += subject.block_words
        if carried is not None:
            loops.append(_EARLIER)
        gone = [one for one in (*lets, *words, *loops) if one not in kept]
        if any(names_of(due) & set(gone) for due, _, _ in same.pairs):
            # A name has another meaning at the read.
            return None
        return space.without(where, gone)


def _common(one: Scope, two: Scope, carried: For | None) -> Scope:
    """The innermost scope around both; with ``carried`` that of the loop."""
    around = set(map(id, two.chain()))
    for scope in one.chain():
        if (scope.node is carried) if carried is not None else (id(scope) in around):
            return scope
    raise AssertionError("all scopes lie in that of the function")


def _flag(condition: Condition) -> str | None:
    """The array of which a condition asks whether one element is set, and nothing else."""
    atom = negated_atom(condition)
    if atom is None or atom.op != "eq0" or atom.args[0].op != "read":
        return None
    array: str = atom.args[0].data[0]
    return array


@dataclass(frozen=True)
class Matching:
    """Where two nodes are equal: all ``words`` have equal values, and all ``pairs`` hold.

    A pair relates a form of the second node by ``==`` or ``<=`` to one of the first. Words are
    names of loops, constants, hardware indices, and variables in memory. A condition that is
    ``open`` belongs to the first node only.
    """

    words: frozenset[str] = frozenset()
    pairs: tuple[tuple[Form, str, Form], ...] = ()
    open: Condition = TRUE

    def joined(self, other: Matching) -> Matching:
        """Where two pairs of nodes are the same."""
        return Matching(self.words | other.words, (*self.pairs, *other.pairs))


def words_in(term: Term) -> frozenset[str]:
    """The names of all variables and arrays in a term."""
    return frozenset(part.data[0] for part in subterms(term) if part.op in ("name", "read"))


def matching(mine: Term, other: Term) -> Matching | None:
    """Where two terms are the same, up to the subscripts of what they read; None if nowhere."""
    if mine is other:
        return Matching(words_in(mine))
    own, due = least(mine), least(other)
    if own is not None and due is not None:
        return _forms(own, due)
    is_whole = mine.sort == other.sort == "Z"
    return _forms(mine, other) if is_whole else _of_one_kind(mine, other)


def _of_one_kind(mine: Term, other: Term) -> Matching | None:
    """The same of one operation on other operands."""
    if (mine.op, mine.sort, mine.data) != (other.op, other.sort, other.data):
        return None
    if mine.op != "read":
        return _in_turn(mine.args, other.args)
    words, (own,), (due,) = frozenset(mine.data[:1]), mine.args, other.args
    if is_affine(own) and is_affine(due):
        return Matching(words, ((due, "==", own),))
    inner = matching(own, due)
    return inner and Matching(words).joined(inner)


def _in_turn(first: Iterable[Term], second: Iterable[Term]) -> Matching | None:
    """All of some terms as the others, in their order."""
    one, two = tuple(first), tuple(second)
    if len(one) != len(two):
        return None
    found = Matching()
    for a, b in zip(one, two, strict=True):
        part = matching(a, b)
        if part is None:
            return None
        found = found.joined(part)
    return found


def _forms(mine: Form, other: Form, sign: str = "==") -> Matching | None:
    """Sums, product by product: any order in which all are the same will do.

    What is left of both must be affine, and the same number; with ``<=`` that of ``mine`` may
    be larger.
    """
    found, left = Matching(), dict(polynomial(other))
    rest, own = dict[Monomial, int](), dict[Monomial, int]()
    for monomial, factor in polynomial(mine).items():
        if left.get(monomial) == factor:
            del left[monomial]
            found = found.joined(Matching(frozenset().union(*map(words_in, monomial))))
        else:
            rest[monomial] = factor
    for monomial, factor in rest.items():
        for there in [m for m, c in left.items() if c == factor and len(m) == len(monomial)]:
            parts = [_of_one_kind(*pair) for pair in zip(monomial, there, strict=True)]
            if None not in parts:
                break
        else:
            own[monomial] = factor
            continue
        del left[there]
        found = reduce(Matching.joined, (part for part in parts if part), found)
    one, two = sum_of(own), sum_of(left)
    if not (own or left):
        return found
    if not (is_affine(one) and is_affine(two)):
        return None
    return found.joined(Matching(pairs=((two, sign, one),)))
