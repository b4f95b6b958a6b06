"""Proof that threads combine partial results to the right total, or the right running result.

Four things are proven. Each partial result starts from the neutral element. Between the updates
and each line that reads the accumulator, the threads combine. An accumulator that was combined is
initialised again before it is updated or combined again. And the nodes of a combination, executed
symbolically for all threads of a block, leave in each thread the partial results of exactly those
threads that differ along the reduction's axes, each counted once. A scan leaves in each thread the
partial results of the threads up to it; a carry leaves all of them in the first thread, and the
neutral element in the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.polynomials import minus
from loopkit._cached import cached_property, memoised
from loopkit._collectives import CARRY, SCAN, TOGETHER, combined_axes, scanned_blocks
from loopkit._hidden import hidden
from loopkit._kernel import Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._promotion import components_of
from loopkit._relations import grouped
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.proof import term_makers as ops
from loopkit.codegen.proof.barrier_order import Order, orders
from loopkit.codegen.proof.forms import Form, is_affine, renamed
from loopkit.codegen.proof.lockstep import Lockstep, Mask, Sums, WrongError
from loopkit.codegen.proof.lookback_check import LookBack
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Group, Leaf, Touch
from loopkit.codegen.proof.tickets import rows_of, scanned_word
from loopkit.codegen.proof.typed_computations import Term
from loopkit.codegen.proof.value_compare import Comparison
from loopkit.codegen.proof.value_kernel import KernelValues
from loopkit.codegen.proof.value_text import TextValues

_FIRST, _SECOND = (prim.Variable(hidden("partial", number)) for number in range(2))


@dataclass(frozen=True)
class _Lines:
    """The lines that write or read one accumulator."""

    starts: list[Leaf]
    updates: list[Leaf]
    combinations: list[Leaf]
    carries: list[Leaf]
    readers: list[Leaf]


class CombinationCheck(Check):
    """Proves all combinations of a program."""

    def __init__(
        self, subject: Subject, recorder: Recorder, is_zero: Callable[[Scope, Form], bool]
    ) -> None:
        super().__init__(subject, recorder)
        self.is_zero = is_zero

    def run(self) -> None:
        """Check each accumulator of which threads have partial results."""
        touching = grouped((t.array, t.leaf) for t in self.subject.touches)
        for name, axes in combined_axes(self.subject.kernel).items():
            lines = self.lines(name, tuple(dict.fromkeys(touching.get(name, ()))))
            for start in lines.starts:
                self.start(name, start)
            self.placed(name, lines)
            for leaf in lines.combinations:
                for carry in (*lines.carries,) or (None,):
                    self.combination(name, axes, leaf, carry)
        for leaf in self.subject.leaves:
            own = self.subject.statement_of(leaf)
            if isinstance(leaf.node, c.Combine) and (own is None or own.kind not in TOGETHER):
                self.wrong("these lines combine nothing of the kernel", leaf)

    def wrong(self, what: str, leaf: Leaf, line: int | None = None) -> None:
        """A finding."""
        place = leaf.line if line is None else line
        self.recorder.wrong("combination", what, place, leaf.statement)

    def lines(self, name: str, leaves: tuple[Leaf, ...]) -> _Lines:
        """The lines that initialise, update, combine and read an accumulator."""
        found = _Lines([], [], [], [], [])
        for leaf in leaves:
            statement = self.subject.statement_of(leaf)
            if isinstance(leaf.node, c.Combine):
                is_carry = statement is not None and statement.kind == CARRY
                (found.carries if is_carry else found.combinations).append(leaf)
            elif statement is not None and statement.kind == "init" and statement.written == name:
                found.starts.append(leaf)
            elif statement is not None and _is_update(statement, name):
                found.updates.append(leaf)
            else:
                found.readers.append(leaf)
        return found

    def start(self, name: str, leaf: Leaf) -> None:
        """Check that each thread's partial result starts from the neutral element."""
        statement = self.subject.statement_of(leaf)
        temporary = self.subject.kernel.temporary_by_name[name]
        dtype = self.subject.names.types[name]
        assert statement is not None
        operation = operations_of(self.subject.kernel.reductions)[temporary.accumulates or ""]
        values = self.subject.meaning.values
        found = values.assigned(statement)
        due = values.assigned(replace(statement, rhs=operation.start(dtype)))
        if Comparison(self.subject, leaf.scope, self.is_zero).difference(found, due) is None:
            return
        if statement.reads:
            self.recorder.open("combination", f"what '{name}' starts from is loaded", [leaf])
        else:
            self.wrong(f"'{name}' starts from what every thread would add once more", leaf)

    def placed(self, name: str, lines: _Lines) -> None:
        """Check that combinations lie between updates and reads, and initialisations after them.

        A carry reads what was combined, and initialises and updates at the same time.
        """
        for update in (*lines.updates, *lines.carries):
            for reader in (*lines.readers, *lines.carries):
                if not all(
                    any(_between(update, one, reader, loop) for one in lines.combinations)
                    for loop in _orders(update, reader)
                ):
                    self.wrong(f"the line reads '{name}' before threads combined it", reader)
        starts = (*lines.starts, *lines.carries)
        for update in lines.updates:
            self.covered(name, update, lines.combinations)
        for one in lines.combinations:
            for later in (*lines.updates, *lines.combinations):
                if not all(
                    any(_between(one, start, later, order.carried) for start in starts)
                    or not self.meet(name, one, later, order)
                    for order in orders(one, later)
                    if one is not later or order.carried is not None
                ):
                    self.wrong(f"'{name}' was combined, and goes on as a partial result", later)

    @cached_property
    def space(self) -> Space:
        """A set space for two lines executed by one thread."""
        return self.subject.pair_space(tuple(self.subject.words))

    def pairs(self, one: Touch, two: Touch, order: Order) -> isl.Set | None:
        """Executions of two lines that change one cell of a thread, in this order.

        None if data decide.
        """
        space = self.space
        if not (is_affine(one.offset) and is_affine(two.offset)):
            return None
        loose = replace(order, cut=None, adjacent=False)
        cell = equal(one.offset, renamed(two.offset, space.renaming(1)))
        first = space.renamed(one.scope.set, space.renaming(0))
        second = space.renamed(two.scope.set, space.renaming(1))
        return first & second & space.all_of([*loose.conditions(0, 1), cell])

    def meet(self, name: str, one: Leaf, later: Leaf, order: Order) -> bool:
        """Whether a line may change a cell that an earlier line changed."""
        met = False
        with self.recorder.question("combination", f"which cells of '{name}' are combined", later):
            found = (
                self.pairs(a, b, order) for a in _writes(one, name) for b in _writes(later, name)
            )
            met = any(both is None or not both.is_empty() for both in found)
        return met

    def due(self, leaf: Leaf) -> isl.Set:
        """The instances of the kernel that a line executes; the line may execute for more."""
        space, statement = self.subject.space, self.subject.statement_of(leaf)
        assert statement is not None
        domain = self.subject.kernel.statement_domain(statement)
        known = {*_sets.involved_names(domain)} <= space.position.keys()
        return space.aligned(domain) if known else space.everything

    def covered(self, name: str, update: Leaf, combinations: list[Leaf]) -> None:
        """Check that each cell that a line updates is combined afterwards."""
        space, subject = self.space, self.subject
        copies = [n for n in space.names if n not in subject.space.position]
        what = f"whether threads combine all of '{name}' that the line updates"
        with self.recorder.question("combination", what, update):
            for touch in _writes(update, name):
                left = touch.scope.set & self.due(update)
                for one in combinations:
                    if not {*one.scope.unknown} <= {*touch.scope.unknown}:
                        continue
                    for order in orders(update, one):
                        found = (self.pairs(touch, t, order) for t in _writes(one, name))
                        for both in found if order.carried is None else ():
                            if both is None:
                                self.recorder.open("combination", what, [update])
                                return
                            left = left - subject.space.aligned(space.without(both, copies))
                if not left.is_empty():
                    self.wrong(f"threads do not combine all of '{name}' that they update", update)

    def combined(self, name: str, leaf: Leaf) -> Statement | None:
        """The combination of a line, or None if it does not combine this accumulator."""
        statement = self.subject.statement_of(leaf)
        if statement is None:
            return None
        if statement.kind not in TOGETHER or statement.written != name:
            self.wrong(f"'{statement.id}' is no combination of '{name}'", leaf)
            return None
        wanted = self.subject.meaning.offset(*statement.write)
        if not any(
            t.array == name and t.is_write and self.is_zero(t.scope, minus(t.offset, wanted))
            for t in leaf.touches
        ):
            self.wrong(f"the lines combine another cell than '{statement.id}'", leaf)
            return None
        return statement

    def combination(self, name: str, axes: tuple[int, ...], leaf: Leaf, carry: Leaf | None) -> None:
        """Execute the nodes of a combination, and of its carry, for all threads of a block."""
        node, statement = leaf.node, self.combined(name, leaf)
        if not isinstance(node, c.Combine) or statement is None:
            return
        after = None if carry is None else carry.node
        if carry is not None and self.combined(name, carry) is None:
            return
        block = self.subject.program.block
        operation = self.subject.kernel.temporary_by_name[name].accumulates or ""
        meaning = _Meaning(self, leaf, statement, operation)
        is_ordered = operations_of(self.subject.kernel.reductions)[operation].is_ordered
        threads, word = self.threads(name, node.target, meaning, is_ordered)
        everyone = np.ones(threads.threads, np.bool_)
        parts = threads.values[node.target]
        due, last = _due(block, axes, is_scan=statement.kind == SCAN)
        if word is not None:  # all that tiles before have comes first
            due = np.hstack([np.ones((len(due), 1), np.bool_), due])
            self.comes_by(name, leaf, word)
        try:
            for _ in range(2 if leaf.scope.loops else 1):
                # What it holds between two of its runs says nothing of the next.
                threads.values = {node.target: parts}
                threads.run(node.body, everyone)
                if not self.is_due(leaf, threads.values[node.target], due):
                    return
                if isinstance(threads, LookBack):
                    threads.finish(self.subject.program, leaf.line)
                if isinstance(after, c.Combine) and carry is not None:
                    if after.target != node.target:
                        self.recorder.open("combination", f"which '{name}' goes on", [carry])
                        return
                    threads.run(after.body, everyone)
                    if not self.is_due(carry, threads.values[node.target], last):
                        return
        except WrongError as error:
            is_after = carry is not None and error.line > carry.line
            self.wrong(error.what, carry if is_after and carry is not None else leaf, error.line)
        except UnreadableError as error:
            self.recorder.open("combination", f"what line {leaf.line} does: {error}", [leaf])

    def threads(
        self, name: str, target: c.Name | c.Element, meaning: _Meaning, is_ordered: bool
    ) -> tuple[Lockstep, str | None]:
        """The threads of a block, and the word for its number where it looks back at others."""
        subject, operation = self.subject, meaning.operation
        given = subject.names, subject.program.block, target, operation
        if not scanned_blocks(subject.kernel, name):
            return Lockstep(*given, meaning.joins, meaning.is_neutral, is_ordered), None
        word = scanned_word(subject.kernel) or ""
        return LookBack(*given, meaning.joins, meaning.is_neutral, is_ordered, word), word

    def comes_by(self, name: str, leaf: Leaf, word: str) -> None:
        """Check that all blocks of a row execute the lines once: others wait for their results."""
        if leaf.scope.loops:
            self.wrong(f"blocks look back for '{name}' in a loop", leaf)
        parent: Group | None = leaf.parent
        # The indices that identify a row are the same in all of its blocks.
        same = {*self.subject.shared_names, *rows_of(self.subject.program, word)}
        for let in leaf.scope.lets:
            if self.subject.names.used(let.value) <= same:
                same.add(let.name)
        while parent is not None:
            if isinstance(parent.node, c.If):
                used = self.subject.names.used(parent.node.condition)
                if not used <= same:
                    self.wrong(f"some blocks may not come to where they publish '{name}'", leaf)
            parent = parent.parent

    def is_due(self, leaf: Leaf, result: Sums, due: Mask) -> bool:
        """Whether each thread has the partial results that it must have."""
        bad = ~result.known | (result.counts != due).any(axis=1)
        if bad.any():
            thread = int(np.argmax(bad))
            self.wrong(f"thread {thread} of the block does not get each partial result once", leaf)
        return not bad.any()


def _due(block: tuple[int, int, int], axes: tuple[int, ...], *, is_scan: bool) -> tuple[Mask, Mask]:
    """The threads whose partial results each thread must have, after a combination and a carry."""
    numbers = np.arange(int(np.prod(block)))
    group, rank, stride, count = np.zeros_like(numbers), np.zeros_like(numbers), 1, 1
    for axis, extent in enumerate(block):
        if axis in axes:
            rank += count * (numbers // stride % extent)
            count *= extent
        else:
            group += stride * (numbers // stride % extent)
        stride *= extent
    whole = group[:, None] == group[None, :]
    due = whole & (rank[None, :] <= rank[:, None]) if is_scan else whole
    return due, whole & (rank == 0)[:, None]


class _Meaning:
    """The meaning of the expressions in one combination."""

    def __init__(
        self, check: CombinationCheck, leaf: Leaf, statement: Statement, operation: str
    ) -> None:
        self.check = check
        self.leaf = leaf
        self.statement = statement
        self.operation = operation
        self.dtype = check.subject.names.types[statement.written]

    def joins(self, node: c.Assign, operands: list[c.CExpression]) -> bool:
        """Whether an assignment combines two operands by the operation."""
        subject = self.check.subject
        first, second = (Term("name", self.dtype, (), v.name) for v in (_FIRST, _SECOND))
        text = TextValues(subject.names, lambda expr, bound: False)
        parts = [p for whole in (node.target, node.value) for p in c.walk(whole)]
        # The subexpressions of an operand are no operands themselves.
        for part in parts:
            if part in operands:
                text.stands_for(part, first if part == operands[0] else second)
        if any(operand not in (*parts,) for operand in operands):
            return False
        update = replace(
            self.statement, lhs=_FIRST, rhs=_SECOND, operation=self.operation, predicates=()
        )
        found = text.assigned(node)
        values = subject.meaning.values
        bound = {_FIRST.name: first, _SECOND.name: second}
        due = KernelValues(values.kernel, values.dtypes, bound).assigned(update)
        comparison = Comparison(subject, self.leaf.scope, self.check.is_zero)
        return comparison.difference(found, due) is None

    @memoised
    def is_neutral(self, expr: c.CExpression) -> bool:
        """Whether an expression is the neutral element of the operation."""
        if any(isinstance(p, (c.Element, c.Choice)) for p in c.walk(expr)):
            return False
        names = (p.name for p in c.walk(expr) if isinstance(p, c.Name))
        if not all(name.startswith("LK_") for name in names):
            return False
        check = self.check
        operations = operations_of(check.subject.kernel.reductions)
        neutral = operations[self.operation].start(self.dtype)
        start = replace(self.statement, rhs=neutral, operation=None, predicates=())
        due = check.subject.meaning.values.assigned(start)
        try:
            found = TextValues(check.subject.names, lambda expr, bound: False).value(expr)
            if not components_of(self.dtype):
                found = ops.cast(self.dtype, found)
        except (UnreadableError, KeyError):
            return False
        comparison = Comparison(check.subject, self.leaf.scope, check.is_zero)
        return comparison.difference(found, due) is None


def _writes(leaf: Leaf, name: str) -> list[Touch]:
    """How a line changes an accumulator."""
    return [touch for touch in leaf.touches if touch.array == name and touch.is_write]


def _is_update(statement: Statement, name: str) -> bool:
    return statement.operation is not None and statement.written == name


def _orders(first: Leaf, second: Leaf) -> list[c.For | None]:
    """The orders in which one line may execute before another: later in a common loop, or None.

    None is the order within one iteration of all common loops.
    """
    loops = [loop for loop in first.scope.loops if loop in second.scope.loops]
    return [*loops, *([None] if first.position < second.position else [])]


def _between(first: Leaf, middle: Leaf, last: Leaf, carried: c.For | None) -> bool:
    """Whether a line certainly executes between two others, in this order of theirs."""
    shared = [loop for loop in first.scope.loops if loop in last.scope.loops]
    if carried is None:
        inside = all(loop in middle.scope.loops for loop in shared)
        return inside and first.position < middle.position < last.position
    around = shared[: [loop is carried for loop in shared].index(True) + 1]
    if not all(loop in middle.scope.loops for loop in around):
        return False
    return middle.position > first.position or middle.position < last.position
