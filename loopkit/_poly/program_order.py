"""Program order: which of two instances executes first according to loops and text.

An instance's time is the tuple of its loops' inames, interleaved with the positions of loops and
statements in the tree; times are compared lexicographically (Feautrier's schedules). The shared
loops decide first, outermost first, then the position in the text. Loops run upwards. Parallel
inames are not loops: barriers and launches order their instances. Exception: if threads compute a
scan, the running result that a thread sees is ordered as in the sequential loop;
:mod:`loopkit._check.meeting_check` proves that no other access depends on that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import once
from loopkit._collectives import thread_scans
from loopkit._kernel import Kernel
from loopkit._launches import Launch, launch_of
from loopkit._nodes import Expression
from loopkit._poly.pairs import Instance, equal_inames, intersection, steps
from loopkit._tags import InstructionParallel
from loopkit._tree import Path, flatten

Steps = Sequence[tuple[Expression, Expression]]
"""Two tuples of affine expressions, element by element."""


def before(steps: Steps, *, or_equal: bool = False) -> list[isl.Set]:
    """``{ names of the steps : first tuple < second tuple }``, lexicographically and exactly.

    One piece for each element that decides, the first element first; they are disjoint.  Behind
    them, with ``or_equal``, that in which the tuples are equal.
    """
    pieces = []
    equal = _sets.universe()
    for one, two in steps:
        pieces.append(equal & _sets.condition_set(prim.Comparison(one, "<", two)))
        equal = equal & _sets.affine_equality(one, two)
    return [*pieces, equal] if or_equal else pieces


def all_equal(steps: Steps) -> isl.Set:
    """``{ names of the steps : first tuple = second tuple }``, exactly."""
    return intersection(_sets.affine_equality(one, two) for one, two in steps)


def _before_by_loop(
    loops: Sequence[str], a: str, b: str, above: bool
) -> tuple[tuple[int, isl.Set], ...]:
    pieces = before(steps(loops, a, b), or_equal=above)
    return tuple(reversed(list(enumerate(pieces))))


def _scanned(kernel: Kernel) -> dict[str, tuple[int, Path]]:
    """For statements of running results that threads make together how deep, and their threads."""
    last = -1 - len(kernel.statements)
    return {
        statement: (len(scan.path), tuple((iname, last - number) for iname in scan.inames))
        for number, scan in enumerate(thread_scans(kernel))
        for statement in scan.statements
    }


class ProgramOrder:
    """The order of one kernel's instances (memoised)."""

    def __init__(self, kernel: Kernel) -> None:
        self._places: dict[str, tuple[int, Path]] = {}
        self._before: dict[tuple[object, ...], tuple[tuple[int, isl.Set], ...]] = {}
        self._launches = launch_of(kernel)
        tags = kernel.iname_tags
        scanned = _scanned(kernel)
        side = {i for i, tag in tags.items() if isinstance(tag, InstructionParallel)}
        self._threads = {i for i, tag in tags.items() if tag.is_parallel} - side
        for number, (statement, path) in enumerate(flatten(kernel.tree)):
            # Copies side by side (ilp) are innermost, each statement's for itself.
            own = sorted(side & kernel.statement_by_id[statement].inames)
            outer = tuple(k for k in path if k[0] not in own)
            depth, threads = scanned.get(statement, (0, ()))
            outer = (*outer[:depth], *threads, *outer[depth:])
            self._places[statement] = (number, (*outer, *((i, -1 - number) for i in own)))

    def place(self, statement: str) -> tuple[int, Path]:
        """The statement's number in the text, and its loops, outermost first.

        Threads that make running results together are a loop around what makes and reads these.
        """
        return self._places[statement]

    def loops(self, statement: str) -> tuple[str, ...]:
        """The inames of a statement's own loops, outermost first, threads left out."""
        return tuple(i for i, _ in self._places[statement][1] if i not in self._threads)

    def nest(self, statements: Iterable[str]) -> tuple[Path, ...]:
        """The loops around each of some statements, numbered as they come among these alone.

        Behind them the number of the launch, under the names of the loops around it.
        """
        numbers: dict[object, int] = {}
        return tuple(
            tuple(
                (loop[0], numbers.setdefault(loop, len(numbers)))
                for loop in (*self.place(s)[1], self._launch_key(s))
            )
            for s in statements
        )

    def _launch_key(self, statement: str) -> tuple[str, int]:
        launch = self.launch(statement)
        return ",".join(("", *launch.loops)), launch.number

    def launch(self, statement: str) -> Launch:
        """The launch that runs a statement."""
        return self._launches[statement]

    def in_one_launch(self, a: str, b: str, one: str, two: str) -> isl.Set | None:
        """``{ inames of both : one launch runs both }``; None for statements of two launches.

        Instances of two launches are ordered as :meth:`before` says, wherever they run.
        """
        mine, its = self.launch(a), self.launch(b)
        if mine.number != its.number:
            return None
        return equal_inames(mine.loops, one, two) if mine.loops else _sets.universe()

    def is_above(self, a: str, b: str) -> bool:
        """Whether a statement stands above another one in the text."""
        return self._places[a][0] < self._places[b][0]

    def shared_loops(self, a: str, b: str) -> tuple[str, ...]:
        """The inames of the loops that two statements share, outermost first."""
        pairs = zip(self._places[a][1], self._places[b][1], strict=False)
        return tuple(one[0] for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def before(self, a: Instance, b: Instance) -> tuple[isl.Set, ...]:
        """``{ inames of both : a comes before b }``, exactly: a union, innermost first."""
        return tuple(piece for _, piece in self.before_by_loop(a, b))

    def before_by_loop(self, a: Instance, b: Instance) -> tuple[tuple[int, isl.Set], ...]:
        """Like :meth:`before`, each piece with the number of the shared loop that carries it.

        The number of shared loops stands for the same iteration of all of
        them, with ``a`` above ``b`` in the text.
        """
        if b.statement is None:
            return ((0, _sets.universe()),)
        if a.statement is None:
            return ()
        # Most statements share their loops with many others.
        loops = self.shared_loops(a.statement, b.statement)
        key = (loops, a.label, b.label, self.is_above(a.statement, b.statement))
        return once(self._before, key, _before_by_loop, *key)

    def is_replaced(self, far: str, level: int, near: str, reader: str) -> bool:
        """Whether ``far`` precedes ``near`` wherever it precedes ``reader``.

        ``level`` is the loop, of those shared with the reader, that carries ``far``
        (:meth:`before_by_loop`); ``near`` is above the reader, in the same iteration of all loops
        that they share.
        """
        shared = len(self.shared_loops(far, reader))
        depth = len(self.shared_loops(near, reader))
        if level < shared:
            return level < depth
        return (
            shared <= depth
            and self.is_above(far, near)
            and len(self.shared_loops(far, near)) == shared
        )

    def together(self, a: Instance, b: Instance) -> isl.Set | None:
        """``{ inames of both : a and b run at the same time }``; None for two statements."""
        if a.statement is None or a.statement != b.statement:
            return None
        return equal_inames(self.loops(a.statement), a.label, b.label)
