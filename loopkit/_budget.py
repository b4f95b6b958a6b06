"""Limits on the work of every computation, and the lock around isl.

Limits count operations, never seconds, so that no answer depends on the speed of the machine.
All limits are in the table below.

isl counts its operations in one context for the whole process.  Therefore only one thread at a
time makes, transforms, proves, compares or lowers kernels.  This costs no parallelism, since
calls of isl hold the interpreter's lock anyway.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import islpy as isl

# Operations of isl's: an operation takes 0.3 to 50 microseconds.

KEPT = 400_000
"""Anything that is kept for later: a kernel's domains, the sources of a read, ..."""

STEP = 400_000
"""Proving one step of up to ``STATEMENTS``.  Those of the gallery need up to some ten thousand."""

STATEMENTS = 16
"""More statements are more questions: the proof of a step with more of them may spend more."""

CHANGE = 1_000_000
"""Making the kernel of one step, before anything is proven of it."""

EQUAL_VALUES = 200_000
"""Whether two writes of one cell, which nothing orders, write one value."""

REFUSAL = 500_000
"""Looking for the smallest cases that show why a step is refused."""

TRY = 200_000
"""Making, proving or lowering one step that may be suggested: up to half a second."""

BETWEEN_TRIES = 100_000
"""Looking for the next step to try."""

LOWERING = 1_000_000
"""Lowering, for each statement; the gallery needs up to 80,000."""

GRID = 20_000
"""The exact length of a grid, before a bound of it does."""

EXTENT = 100_000
"""The exact length of an axis where strides leave something out, before a bound of it does."""

CREATION = 10_000_000
"""Making a kernel of a text, of up to ``STATEMENTS``; those of the gallery need up to 100,000."""

PIECES = 12
"""Parts of a set whose ends are told apart; of more, as conditions of many cases make them, an
array holds what lies between."""

PROGRAM_TEXT = 2_000_000
"""Reading a generated text, before anything is proven of it."""

PROGRAM_QUESTION = 200_000
"""One question about a generated text.  Most need a few hundred, the hardest some ten thousand."""

PROGRAM_QUESTION_LATER = 20_000
"""What is still granted to a question about a text of which several ran past their budgets."""

EQUIVALENCE = 3_000_000
"""Proving one kernel a schedule of the other: a few seconds."""

EQUIVALENCE_EXAMPLES = 2_000_000
"""The instances of both kernels at small sizes."""

EQUIVALENCE_WITNESS = 300_000
"""The sizes at which a correspondence fails; or its words."""

OVERLAP = 100_000
"""Whether two arrays of the caller's share memory."""

# What loopkit's own searches may take.

VIOLATIONS = 40
"""As many violations of one step are gathered before the smallest is told."""

COPIES_FOLLOWED = 300
"""Copies of copies that one check follows back to what was copied."""

POINTS = 30_000_000
"""Numbers in a table of points that are enumerated: 240 MB of memory, half a second."""

DISTINCT = 1_000_000
"""Which values names have in a set with further names, before they are counted."""

PATTERNS = 20_000
"""Classes of requests of one access: some 10 microseconds each."""

CASES = 1_000_000
"""Classes of requests while they are put together: half a microsecond each."""

ROWS = 200
"""Constraints of a system from which names are eliminated."""

REMEMBERED = 1 << 14
"""Systems of constraints of which an answer is remembered, of each kind."""

DEGREE = 6
"""The highest degree of a count in one size."""

SAMPLES = 200
"""Launches that are counted to find polynomials of sizes: some 20 milliseconds each."""

PERIOD = 4096
"""The longest period of such a polynomial."""

BOX_ROUNDS = 64
"""Rounds in which bounds of names narrow each other before they count as good enough."""

TRIES = 120
"""Steps that are tried before a refusal is told."""

TRIES_EFFORT = 400
"""The statements of all kernels that they are tried on: large kernels have fewer tries."""

TRIES_SPENT = 40
"""What a try counts for, in statements, that isl did not end: as much as a large kernel."""

TRIES_LOWERED = 40
"""Statements of the largest kernel that is lowered for a try."""

BARRIER_PLACES = 5_000
"""Steps of the search for the fewest barriers; after them the best so far is taken."""

BARRIER_SPLITS = 6
"""Parts that the pairs of a dependence are split into, by the barriers between them."""

CORRESPONDENCE = 20_000
"""Steps of one search for statements of two kernels that correspond."""

EXAMPLE_CELLS = 500_000
"""Cells that two kernels read and write on examples, all orders counted; and as many again at the
sizes of witnesses."""

REPLAY_CELLS = 2_000
"""Cells of one run that shows whether a step that is refused computes something else."""

REPLAY_CELLS_TOLD = 40_000
"""The same where somebody reads the refusal, or data decide whether it is one."""

GLANCE_CELLS = 3_000
"""Cells of one example that is looked at before anything is proven."""

EXAMPLE_INSTANCES = 100_000
"""Instances of one statement of an example."""

RULE_NODES = 100_000
"""Nodes of an expression whose rules are expanded."""

OVERLAP_NUMPY = 10_000
"""What NumPy may try before isl is asked whether two arrays share memory."""


P = ParamSpec("P")
R = TypeVar("R")


class SpentError(Exception):
    """isl has used up its budget of operations."""


class _Turns(threading.local):
    """The nesting depth of this thread's locks on isl."""

    depth = 0
    sets_apart = False
    """Whether what is kept has a budget of its own."""
    glances = False
    """Whether more would be allowed than the bound says."""


_turns = _Turns()
_lock = threading.RLock()


@contextmanager
def turn() -> Iterator[None]:
    """Hold the lock on isl: wait for other threads first, and make them wait meanwhile."""
    with _lock:
        _turns.depth += 1
        try:
            yield
        finally:
            _turns.depth -= 1


def in_turn(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that uses isl, so that several threads may call it."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with turn():
            return function(*args, **kwargs)

    return alone


def _begin_anew() -> None:
    """Reset the lock in a forked process, where the thread that held it does not exist."""
    global _lock
    if not _turns.depth:
        _lock = threading.RLock()
        isl.DEFAULT_CONTEXT.set_max_operations(0)
        isl.DEFAULT_CONTEXT.reset_operations()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class _GlanceError(BaseException):
    """isl has used up the small first budget of :func:`within`, which alone may catch this."""


def at_most(operations: int) -> AbstractContextManager[None]:
    """Limit isl to ``operations`` inside of the context; raises :class:`SpentError` beyond.

    A nested limit cannot exceed the one around it, whose count restarts from zero when the nested
    one ends.  The computation of cached values counts, unlike with :func:`within` and
    :func:`apart_from_kept`.
    """
    return _bound(operations)


def apart_from_kept(operations: int) -> AbstractContextManager[None]:
    """Like :func:`at_most`, without the cost of cached values, which have budgets of their own.

    Then the result does not depend on which values were computed earlier.  Each cached value takes
    0.2 milliseconds more.
    """
    return _bound(operations, sets_apart=True)


def within(operations: int, work: Callable[[], R]) -> R:
    """The result of ``work``, limited as by :func:`apart_from_kept`.

    ``work`` may be called twice, and must have no side effects: the first call has a small limit
    that includes the cost of cached values, and nearly always suffices.
    """
    try:
        with _bound(min(operations, KEPT), glances=True, sets_apart=False):
            return work()
    except _GlanceError:
        pass
    with apart_from_kept(operations):
        return work()


@contextmanager
def _bound(
    operations: int, *, glances: bool = False, sets_apart: bool | None = None
) -> Iterator[None]:
    context = isl.DEFAULT_CONTEXT
    with turn():
        before = int(context.get_max_operations())
        outside = _turns.glances, _turns.sets_apart
        if before and before <= operations:
            operations = before
            # The first try counts cached values: where these have own budgets, it must not fail.
            _turns.glances |= glances and outside[1]
        else:
            _turns.glances = glances
        if sets_apart is not None:
            _turns.sets_apart = sets_apart
        context.reset_operations()
        context.set_max_operations(operations)
        try:
            yield
        except isl.Error:
            if not is_spent():
                raise
            raise (_GlanceError if _turns.glances else SpentError) from None
        finally:
            _turns.glances, _turns.sets_apart = outside
            context.set_max_operations(before)
            context.reset_operations()


def kept(find: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of ``find``, which the caller will cache.

    Inside of :func:`apart_from_kept` the computation has a budget of its own, and does not use the
    caller's, so that it makes no difference whether the value was cached before.
    """
    if not _turns.sets_apart:
        return find(*args, **kwargs)
    context = isl.DEFAULT_CONTEXT
    limit = int(context.get_max_operations())
    left, glances = limit - _spent(limit), _turns.glances
    _turns.glances = False
    context.set_max_operations(KEPT)
    context.reset_operations()
    try:
        return find(*args, **kwargs)
    except isl.Error:
        if not is_spent():
            raise
        raise SpentError from None
    finally:
        _turns.glances = glances
        # A limit of 0 is none.
        context.set_max_operations(max(left, 1))
        context.reset_operations()
        if left == 0:
            _ONE.neg()


def _spent(most: int) -> int:
    """The operations that isl has counted, of ``most``.

    isl does not report the number, only whether it exceeds a limit, by failing to do one more.
    """
    context = isl.DEFAULT_CONTEXT
    low, high, done = 0, most, 0
    while low < high:
        middle = min((low + high) // 2, 2 * low + 32)
        context.set_max_operations(middle + done + 1)
        try:
            _ONE.neg()
        except isl.Error:
            low = middle + 1
        else:
            high, done = middle, done + 1
    return low


_ONE = isl.Val(1)


def for_statements(operations: int, count: int) -> int:
    """The budget of work that asks the same question for each of some number of statements."""
    return operations * max(count, STATEMENTS) // STATEMENTS


def is_spent() -> bool:
    """Whether isl failed because its budget is used up.

    isl's error message cannot tell this from other failures, such as a syntax error in a text.
    """
    return _ONE.to_str() is None


def is_over(error: Exception) -> bool:
    """Whether an error that was caught says that isl has spent all that it will be allowed."""
    return isinstance(error, SpentError) or (is_spent() and not _turns.glances)
