"""The state of the search for a correspondence: facts, decisions and pending tasks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import islpy as isl

from loopkit import _sets
from loopkit._cached import cached_property
from loopkit._device_functions import OwnFunction
from loopkit._expression import Access, nodes_of, substitute, to_text, variable_names
from loopkit._hidden import NEW, OLD, READER, WRITER, instance, label_of, labelled, plain, variable
from loopkit._kernel import Statement
from loopkit._linear import NotAffineError, linear
from loopkit._nodes import Expression
from loopkit._poly.pairs import Instance, Undecided, equal, renamed
from loopkit._same import key_of
from loopkit._verify.kernel_view import KernelView, Source
from loopkit._verify.solver import Solver

_LONG = 500
"""Of how many parts a value may consist."""


@dataclass(frozen=True, eq=False)
class State:
    """The decisions so far, and the pending tasks.

    ``origin`` and ``where`` hold the origin of each paired statement and the relation of the
    inames; ``copies`` only copy values; the operands of ``swapped`` nodes of the new kernel are
    exchanged. ``pending`` tasks come first, and ``later`` ones when none is pending. ``followed``
    holds keys (:meth:`MatchValues.key`, by number) of tasks that are done or pending, and need not
    be repeated.
    """

    origin: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, isl.Set] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()
    swapped: tuple[Expression, ...] = ()
    pending: Pending = None
    later: tuple[MatchWriters, ...] = ()
    followed: frozenset[int] = frozenset()

    def paired(self, new: str, old: str, where: isl.Set) -> State:
        """With one pair more."""
        return replace(self, origin={**self.origin, new: old}, where={**self.where, new: where})

    def still_to(self, *todos: Obligation) -> State:
        """With more that has still to be done, the last of them first."""
        pending = self.pending
        for todo in todos:
            pending = (todo, pending)
        return replace(self, pending=pending)


@dataclass(frozen=True, eq=False)
class Reader:
    """A statement in whose inames an expression is written.

    It is one of a pair, or has written what another reader reads; its inames
    are then found from that reader's as they are needed.
    """

    statement: Statement
    label: str
    behind: Reader | None = None
    solver: Solver | None = None

    @property
    def depth(self) -> int:
        """How many readers stand before it."""
        return 0 if self.behind is None else self.behind.depth + 1

    def value(self, iname: str) -> Expression | None:
        """An iname's value, over the inames of the pair; None where it is not known."""
        if self.solver is None or self.behind is None:
            return variable(iname, self.label)
        value = self.solver.value(instance(iname, WRITER))
        found = None if value is None else self.behind.over(value)
        if found is None or not _is_short(found):
            return None
        with suppress(NotAffineError):
            return linear(found).expression
        return found

    @cached_property
    def key(self) -> tuple[object, ...]:
        """The same for readers of one statement whose value is made of inames of equal values."""
        if self.behind is None:
            return (self.label, self.statement.id)
        told = variable_names(self.statement.rhs)
        values = map(self.value, sorted(told & self.statement.inames))
        return (self.label, self.statement.id, *(None if v is None else key_of(v) for v in values))

    def over(self, expr: Expression) -> Expression | None:
        """``expr`` over the inames of the pair."""
        values = {}
        for iname in variable_names(expr) & self.statement.inames:
            value = self.value(iname)
            if value is None:
                return None
            values[iname] = value
        return substitute(expr, values)


def _is_short(expr: Expression | None) -> bool:
    """Whether a value is worth following: cases of cases triple with each reader behind another."""
    return not any(True for _ in itertools.islice(nodes_of(expr), _LONG, None))


@dataclass(frozen=True, eq=False)
class ChooseOrigin:
    """Task: choose an origin of ``new`` among statements, each with the inames' relation.

    ``optional``: it may also be a mere copy; ``is_partial``: what it adds is flushed to the cell
    that the origin updates.
    """

    new: str
    candidates: tuple[tuple[str, isl.Set], ...]
    optional: bool = False
    is_partial: bool = False


@dataclass(frozen=True, eq=False)
class MatchValues:
    """Task: compare two expressions of the pair of ``new``.

    ``is_bound``: a scalar that is a loop bound of the pair.
    """

    new: str
    old_reader: Reader
    new_reader: Reader
    old_expr: Expression
    new_expr: Expression
    is_bound: bool = False

    def key(self) -> tuple[object, ...]:
        """The same for what takes the same: equal values to be found by equal expressions."""
        readers = self.old_reader.key, self.new_reader.key
        return (self.new, *readers, *map(key_of, (self.old_expr, self.new_expr)), self.is_bound)


@dataclass(frozen=True, eq=False)
class MatchWriters:
    """Task: pair the statements that wrote what the two sides read.

    It waits until the two sides' own expressions have been compared, which gives the relation of
    their inames.
    """

    todo: MatchValues
    mine: Access
    its: Access


Obligation = ChooseOrigin | MatchValues | MatchWriters
Pending = tuple[Obligation, "Pending"] | None


class SearchContext:
    """A root, and a new kernel whose statements may correspond to the root's.

    ``farthest`` is the depth of the best attempt, and what stopped it; ``depth`` that of the
    present one.
    """

    def __init__(self, root: KernelView, new: KernelView, assumptions: isl.Set) -> None:
        self.root = root
        self.new = new
        self.assumptions = assumptions
        self.depth = 0
        self.farthest = (0, "")
        self.numbers: dict[tuple[object, ...], int] = {}
        self.integers: dict[tuple[int, int, str], tuple[Expression, bool]] = {}

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes of either kernel."""
        return tuple(dict.fromkeys((*self.root.kernel.sizes, *self.new.kernel.sizes)))

    def both(self, old: str, new: str) -> isl.Set:
        """All pairs of instances of two statements."""
        one = self.root.model.domain(Instance(old, OLD))
        return one & self.new.model.domain(Instance(new, NEW)) & self.assumptions

    def may_be_pair(self, old: Statement, new: Statement) -> bool:
        """Whether they are of one kind: the same reduction, as many conditions on data."""
        mine = len(self.root.model.conditions_on_data(old))
        its = len(self.new.model.conditions_on_data(new))
        return (old.kind, old.operation, mine) == (new.kind, new.operation, its)

    def ranked(self, candidates: tuple[Statement, ...], like: Statement) -> list[Statement]:
        """Statements of the root, those that look like ``like`` first."""
        position = {s.id: n for n, s in enumerate(self.new.model.writers(like.written))}
        place = position[like.id] / max(1, len(position) - 1)

        def rank(item: tuple[int, Statement]) -> tuple[bool, bool, bool, float]:
            number, other = item
            return (
                other.operation != like.operation,
                other.id != like.id,
                type(other.rhs) is not type(like.rhs),
                abs(number / max(1, len(candidates) - 1) - place),
            )

        return [s for _, s in sorted(enumerate(candidates), key=rank)]

    def is_integer(self, view: KernelView, expr: Expression, label: str) -> bool:
        """Whether an expression is made of inames and sizes alone, and affine."""
        # Nodes shared by many obligations are analysed once, by id: they must stay alive.
        asked = (id(expr), id(view), label)
        if asked not in self.integers:
            self.integers[asked] = (expr, self._find_integer(view, expr, label))
        return self.integers[asked][1]

    def _find_integer(self, view: KernelView, expr: Expression, label: str) -> bool:
        names = variable_names(expr)
        if label:
            names = frozenset(plain(n) if label_of(n) == label else n for n in names)
        return names <= view.model.integers and _sets.is_pw_affine(expr)

    def on_its_own(self, where: isl.Set, its: Statement) -> isl.Set:
        """The instances of a statement that a relation is about."""
        names = {instance(i, NEW): i for i in its.inames}
        onto = _sets.project_onto(where, [*names, *self.sizes])
        return _sets.rename(onto, names)

    def composed(self, relation: isl.Set, old: str, new: str) -> isl.Set:
        """A relation onto the names with the two labels, which become the pair's."""
        keep = [*self.sizes, *labelled(_sets.names_of(relation), old, new)]
        return renamed(_sets.project_onto(relation, keep), {old: OLD, new: NEW})

    def unlike(self, todo: MatchValues) -> None:
        """Remember two expressions that do not match."""
        old, new = to_text(todo.old_expr), to_text(todo.new_expr)
        if old == new:
            kind = type(todo.old_expr)
            is_function = issubclass(kind, OwnFunction)
            old = (
                "another of that name" if is_function else f"one of another type ({kind.__name__})"
            )
        mine, its = todo.old_reader.statement.id, todo.new_reader.statement.id
        if mine == its:
            self.note(f"in '{mine}', {new} replaces {old}")
        else:
            self.note(f"'{its}' has {new} where '{mine}' has {old}")

    def note(self, why: str) -> None:
        """Remember what stopped the attempt that came farthest."""
        if self.depth >= self.farthest[0]:
            self.farthest = (self.depth, why)


def placed(source: Source, reader: Reader, label: str) -> isl.Set:
    """A source's relation, its writer with ``label``, its reader's inames over the pair's."""
    result = renamed(source.relation, {WRITER: label})
    for iname in reader.statement.inames:
        value = reader.value(iname)
        if value is None:
            continue
        with suppress(Undecided):
            result = result & equal(variable(iname, READER), value)
    return _sets.project_out(result, labelled(_sets.names_of(result), READER))
