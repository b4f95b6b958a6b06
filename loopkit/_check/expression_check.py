"""Whether an expression of a schedule has the value of an expression of the text.

Both expressions are walked in parallel; at reads, the values are followed to the statements that
computed them (Shashidhar and others, functional equivalence of array programs, 2005; Verdoolaege
and others, equivalence of static affine programs, 2009).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial, reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._check import chosen_cells, made_anew
from loopkit._check.compare_statements import (
    ANYTHING,
    Untouched,
    couples,
    differ_somewhere,
    is_integer,
    with_rests,
)
from loopkit._check.copy_chains import CopyChains
from loopkit._check.data_dependent_order import DataDependentOrder
from loopkit._check.like_values import Likeness, claim, likeness, times_of
from loopkit._check.read_check import ReadCheck
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._check.value_types import ValueTypes
from loopkit._check.violation import Violation
from loopkit._expression import (
    Access,
    access_of,
    is_constant,
    substitute,
    to_text,
    unlabelled,
    variable_names,
)
from loopkit._guarded import where_all_hold
from loopkit._hidden import READER, WRITER, inlined, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression, TypeCast, subtrahend
from loopkit._poly.dataflow import Sources
from loopkit._poly.pairs import FLAT, Undecided, renamed, without
from loopkit._polynomials import are_one_polynomial
from loopkit._same import key_of, same
from loopkit._simplify import simplify

DEPTH = 8
"""As deep are statements of the text looked for inside of one of the schedule."""


class ExpressionCheck:
    """Walks an expression of the text and one of a schedule in parallel."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.root = check.root
        self.new = check.new
        self.order = DataDependentOrder(check)
        self.copies = CopyChains(check)
        self.reads = ReadCheck(check)
        self.root_types = ValueTypes(check.root)
        self.new_types = ValueTypes(check.new)
        self.hops = 0
        self.unchanged: frozenset[int] = frozenset()
        self.claims: list[tuple[object, Callable[[], isl.Set]]] = []
        self.claimed = 0
        self.alike: dict[object, isl.Set] = {}
        self.shown: set[object] = set()

    def different(self, event: ReadEvent, detail: str = "") -> None:
        """Report that another expression is computed."""
        image = self.check.lineage.image_of.get(event.base.statement or "") if event.base else None
        if image is not None and (every := self.check.lineage.every(image)) and not detail:
            detail = f"it now has one value for every {' and '.join(map(repr, every))}"
        self.check.report(Violation("expression", event.where, event.side, detail=detail))

    def same(self, old: Expression, new: Expression, event: ReadEvent) -> None:
        """Check that ``new``, read at the event's time, has the value of ``old`` in the text."""
        if old is ANYTHING or (id(new) in self.unchanged and event.time == event.base):
            return
        its = self.access(new, self.new.data)
        # Rules that use rules make long expressions of a few parts.
        keys: list[object] = []
        if not isinstance(old, Untouched) and not is_constant(old):
            keys.append((event, key_of(old), key_of(new)))
            known = keys[0] in self.shown
            one = likeness(old, self.root) if its is not None and not known else None
            two = likeness(new, self.new) if one is not None else None
            if one is not None and two is not None:
                keys.append((event, one.key, two.key))
        if self.shown.isdisjoint(keys):
            before, claimed = len(self.check.found), self.claimed
            self.same_read(old, its, new, event)
            if len(self.check.found) == before and self.claimed == claimed:
                self.shown.update(keys)

    def same_read(
        self, old: Expression, its: Access | None, new: Expression, event: ReadEvent
    ) -> None:
        if (
            its is not None
            and not isinstance(old, Untouched)
            and chosen_cells.is_chosen(self.check, its)
        ):
            found = chosen_cells.named(self.check, old, its, event, self.same)
            if found is not None:
                old, its, event = found
        mine = self.access(old, self.root.data)
        if its is not None and mine is None and self.check.is_copy(its[0]):
            self.hop(old, None, its, event)
            return
        if mine is not None and not isinstance(old, Untouched) and self.is_inlined(mine, its):
            self.inline(mine, new, event)
            return
        if mine is None or its is None:
            if mine is not None or its is not None:
                self.different(event, "an access replaces another expression")
                return
            self.same_parts(old, new, event)
            return
        self.same_access(old, mine, its, event)

    def access(self, expr: Expression, data: frozenset[str]) -> Access | None:
        """An expression that is one use of an array or scalar of data."""
        return (expr.array, expr.indices) if isinstance(expr, Untouched) else access_of(expr, data)

    def is_inlined(self, mine: Access, its: Access | None) -> bool:
        """Whether the schedule computes in place what the text reads from a temporary."""
        if mine[0] not in self.root.written:
            return False
        images = [
            image
            for writer in self.root.writers(mine[0])
            for image in self.check.lineage.images_from[writer.id]
        ]
        if its is None:
            return True
        if not images:
            is_idle = its[0] in self.new.kernel.temporary_by_name and its[0] not in self.new.written
            return not is_idle
        written = {self.new.statement[image.statement].written for image in images}
        return its[0] not in written and not self.check.copy_statements(its[0])

    def same_access(self, old: Expression, mine: Access, its: Access, event: ReadEvent) -> None:
        if isinstance(old, Untouched):
            sources = Sources({}, _sets.universe())
            event = dataclasses.replace(event, sources=sources, values={})
        if event.by_data and mine[0] != its[0]:
            event = self.in_array(mine, event)
            if event.where.is_empty():
                return
        if mine[0] not in self.root.written and its[0] not in self.new.written:
            if mine[0] != its[0]:
                self.different(event, f"it reads '{its[0]}' where '{mine[0]}' was read")
                return
            self.same_indices(old, mine, its, event)
            return
        is_beyond = any(map(self.root.is_beyond_sets, mine[1]))
        if mine[0] == its[0] and (is_beyond or mine[0] in self.new.kernel.arg_by_name):
            self.same_indices(old, mine, its, event)
        self.read(event, mine, its, old)

    def in_array(self, mine: Access, event: ReadEvent) -> ReadEvent:
        """The event restricted to cases in which the text's read is in bounds, as far as sets can.

        The text guarantees that reads which depend on data are in bounds; unconditional reads were
        checked when the kernel was made.
        """
        shape = self.root.array(mine[0]).shape
        where = event.where
        for index, extent in zip(mine[1], shape or (), strict=False):
            value = substitute(index, event.values)
            inside = (prim.Comparison(value, ">=", 0), prim.Comparison(value, "<", extent))
            if variable_names(index) | variable_names(extent) <= self.root.integers:
                names = variable_names(value) | variable_names(extent)
                where = where & where_all_hold(inside, names)
        return event.narrowed(where)

    def same_indices(self, old: Expression, mine: Access, its: Access, event: ReadEvent) -> None:
        if len(mine[1]) != len(its[1]):
            self.different(event, "subscripts differ in number")
            return
        for a, b in zip(mine[1], its[1], strict=True):
            if not isinstance(old, Untouched):
                self.same_index(a, b, event)
            elif not self.same_integers(a, self.new.named(b, event.time.label), event):
                raise Undecided(f"which cell of '{its[0]}' a copy holds is beyond sets")

    def same_index(self, old: Expression, new: Expression, event: ReadEvent) -> None:
        """Like :meth:`same`, of a subscript: its terms are whole numbers, added in any order."""
        if self.are_integers(old, new):
            whole = substitute(old, event.values), self.new.named(new, event.time.label)
            if self.same_integers(self.fixed(whole[0]), whole[1], event):
                return
        both = with_rests(old, new, self.root, self.new)
        if both is None:
            self.same(old, new, event)
            return
        for a, b in both.beyond:
            self.same(a, b, event)
        mine = self.fixed(substitute(both.old, event.values))
        its = self.new.named(both.new, event.time.label)
        if not self.same_integers(mine, its, event):
            if not differ_somewhere(mine, its, event.where):
                raise _beyond_sets(mine, its)
            self.different(event)

    def fixed(self, expr: Expression) -> Expression:
        """An integer of the text with the numbers of sizes that were fixed."""
        numbers = dict(self.check.lineage.fixed)
        return simplify(substitute(expr, numbers)) if numbers else expr

    def same_parts(self, old: Expression, new: Expression, event: ReadEvent) -> None:
        if is_constant(old) and same(old, new):
            return
        fixed = dict(self.check.lineage.fixed)
        if isinstance(old, prim.Variable) and type(new) is int and fixed.get(old.name) == new:
            return
        if self.are_integers(old, new):
            mine = self.fixed(substitute(old, event.values))
            its = self.new.named(new, event.time.label)
            if self.same_integers(mine, its, event):
                return
            found = self.check.supposed(partial(self.same_structure, old, new, event))
            # Whole numbers may be one number in two forms.
            if found and not differ_somewhere(mine, its, event.where):
                raise _beyond_sets(mine, its)
            self.check.found += found
            return
        self.same_structure(old, new, event)

    def same_structure(self, old: Expression, new: Expression, event: ReadEvent) -> None:
        """Compare two expressions part by part."""
        if type(old) is not type(new) or is_constant(old):
            self.different(event)
            return
        if isinstance(old, (prim.Sum, prim.Product)):
            self.same_terms(old.children, new.children, type(old), event)
            return
        if isinstance(old, prim.If):
            self.same(old.condition, new.condition, event)
            self.same_where(old.then, new.then, event, (new.condition,))
            self.same_where(old.else_, new.else_, event, (prim.LogicalNot(new.condition),))
            return
        if isinstance(old, (prim.LogicalAnd, prim.LogicalOr)):
            self.same_conditions(old, new, event)
            return
        found = couples(old, new)
        if found is None:
            self.different(event)
        for a, b in found or ():
            self.same(a, b, event)

    def same_terms(
        self, old: tuple[Expression, ...], new: tuple[Expression, ...], kind: type, event: ReadEvent
    ) -> None:
        """Compare sums or products, which are evaluated from left to right.

        If one side has fewer terms, its first one corresponds to several first terms of the other.
        """
        more = len(old) - len(new)
        if more > 0:
            old = (kind(old[: more + 1]), *old[more + 1 :])
        elif more < 0:
            new = (kind(new[: 1 - more]), *new[1 - more :])
        for number, (a, b) in enumerate(zip(old, new, strict=True), 1):
            if number > 1 and kind is prim.Sum and not self.is_term(old[:number], new[:number]):
                self.different(event, "what is subtracted from more bits is negated in fewer")
            self.same(a, b, event)

    def is_term(self, old: tuple[Expression, ...], new: tuple[Expression, ...]) -> bool:
        """Whether terms of one value add the same, if one of them is written as a subtraction."""
        mine, its = subtrahend(old[-1]) is not None, subtrahend(new[-1]) is not None
        if mine == its:
            return True
        return self.root_types.is_negated(old) if mine else self.new_types.is_negated(new)

    def same_conditions(
        self,
        old: prim.LogicalAnd | prim.LogicalOr,
        new: prim.LogicalAnd | prim.LogicalOr,
        event: ReadEvent,
    ) -> None:
        """Compare the parts of ``and`` or ``or``: one matters where those before leave it open."""
        if len(old.children) != len(new.children):
            self.different(event)
            return
        is_and = isinstance(new, prim.LogicalAnd)
        open_: tuple[Expression, ...] = ()
        for a, b in zip(old.children, new.children, strict=True):
            self.same_where(a, b, event, open_)
            open_ = (*open_, b if is_and else prim.LogicalNot(b))

    def same_where(
        self, old: Expression, new: Expression, event: ReadEvent, guards: tuple[Expression, ...]
    ) -> None:
        """Like :meth:`same`, of what is evaluated where all ``guards`` of the schedule hold."""
        if is_constant(old) and is_constant(new):
            self.same(old, new, event)
            return
        here = event.where & self.new.where_evaluated(guards, event.time.label)
        if not here.is_empty():
            by_data = event.by_data or any(self.new.condition(g) is None for g in guards)
            self.same(old, new, dataclasses.replace(event, where=here, by_data=by_data))

    def are_integers(self, old: Expression, new: Expression) -> bool:
        return is_integer(old, self.root.integers) and is_integer(new, self.new.integers)

    def same_integers(self, mine: Expression, its: Expression, event: ReadEvent) -> bool:
        """Whether two integer expressions agree; False if neither sets nor polynomials show it."""
        if mine == its:
            return True
        try:
            difference = _sets.pw_affine(mine).ne_set(_sets.pw_affine(its))
        except _sets.NotAffineError:
            if not (_sets.is_condition(mine) and _sets.is_condition(its)):
                return are_one_polynomial(mine, its, _sets.values_by_equalities(event.where))
            one, other = _sets.condition_set(mine), _sets.condition_set(its)
            difference = (one - other) | (other - one)
        bad = event.where & difference
        if not bad.is_empty():
            self.different(event.narrowed(bad))
        return True

    def read(self, event: ReadEvent, mine: Access, its: Access, old: Expression = None) -> None:
        """Check that a read sees what the text's read sees, itself or through copies."""
        is_copy = its[0] in self.new.kernel.temporary_by_name and self.check.is_copy(its[0])
        if self.order.concerns(mine) and not is_copy:
            if event.depth and mine[0] == its[0]:  # behind a copy
                self.same_indices(old, mine, its, event)
            self.order.read(event, mine, its)
            return
        if made_anew.is_made_anew(self.check, mine[0], its[0]):
            other = made_anew.compare(self.check, mine[0], its[0], event, self.same)
            if other is not None:
                self.different(other, f"'{its[0]}' adds up other terms than '{mine[0]}'")
            return
        if mine[0] in self.root.kernel.temporary_by_name and self.check.copy_statements(its[0]):
            # A temporary's value from before the kernel is undefined and does not matter.
            sources = event.sources or self.check.dataflow.of_read(event.reader, mine)
            found = (self.check.onto(event.bound & r, event.where) for r in sources.writes.values())
            event = event.narrowed(reduce(isl.Set.union, found, event.where - event.where))
            if event.where.is_empty():
                return
        if is_copy:
            self.follow(old, mine, its, event)
            return
        if self.check.copy_statements(its[0]):
            via = self.copies.behind_copies(event, its)
            if not via.is_empty():
                rest = event.where - via
                self.follow(old, mine, its, event.narrowed(via))
                if rest.is_empty():
                    return
                event = event.narrowed(rest)
        self.reads.direct(event, mine, its)

    def follow(self, old: Expression, mine: Access, its: Access, event: ReadEvent) -> None:
        """Like :meth:`hop`, for copies that may have copied an earlier copy of themselves.

        A claim about a copy may rest on the same claim about copies made before:
        that is induction over time.
        """
        key = (event.reader, mine, its, event.time.statement)
        cell = mine if isinstance(old, Untouched) else None
        made = [c for k, c in self.claims if k == key] if event.depth else []
        if made:
            claimed = claim(event, cell, self.new)
            if any(claimed.is_subset(c()) for c in made):
                self.claimed += 1
                return
        # Most claims are never looked at.
        self.claims.append((key, cache(partial(claim, event, cell, self.new))))
        try:
            self.hop(old, mine, its, event)
        finally:
            self.claims.pop()

    def hop(self, old: Expression, mine: Access | None, its: Access, event: ReadEvent) -> None:
        """The schedule reads a copy: compare with what the copying statement read."""
        self.hops += 1
        if self.hops > _budget.COPIES_FOLLOWED:
            raise Undecided(
                f"more than {_budget.COPIES_FOLLOWED} copies of copies lead to what '{its[0]}' "
                "holds",
                "unchecked=True skips the proof, and shows in the history",
            )
        for later, statement in self.copies.through_copies(event, its):
            rounding = self.new_types.rounds(its[0], statement.rhs)
            if rounding:
                self.different(later, rounding)
                continue
            if mine is None and self.is_known(old, statement, later):
                continue
            found = self.check.supposed(partial(self.copied, old, mine, statement.rhs, later))
            if not found:
                continue
            latest = self.copies.latest(later, its, event)
            if latest.is_equal(later.where):
                self.check.found += found
            elif not latest.is_empty():
                self.copied(old, mine, statement.rhs, later.narrowed(latest))

    def is_known(self, old: Expression, copy: Statement, event: ReadEvent) -> bool:
        """Whether a copy holds ``old``, as it was found once to do at all places like these."""
        like = None if event.by_data or event.sources else likeness(old, self.root)
        if like is None or not like.is_lasting:
            return False
        times, key = times_of(event, self.new), (copy.id, like.shape)
        here = like.places(event, times, self.new.kernel.sizes)
        if key not in self.alike:
            self.alike[key] = self.known(old, like, copy, event, here.affine_hull().to_set())
        return bool(here.is_subset(self.alike[key]))

    def known(
        self, old: Expression, like: Likeness, copy: Statement, event: ReadEvent, places: isl.Set
    ) -> isl.Set:
        """Those of ``places`` that instances of a copy have, if it holds ``old`` in all of them."""
        times = times_of(event, self.new)
        bounds, everywhere = self.new.everywhere(event.time)
        back = {hidden_: name for name, hidden_ in times.items()}
        domain = self.new.domain(event.time) & self.check.lineage.sizes
        values, names = like.values(event.depth)
        where = _sets.rename(_sets.rename(places, back), names) & domain
        before, claimed = len(self.check.found), self.claimed
        whole = dataclasses.replace(
            event, where=where & bounds, values=values, everywhere=everywhere
        )
        try:
            found = self.check.supposed(partial(self.copied, old, None, copy.rhs, whole))
        except Undecided:
            del self.check.found[before:]
            return places - places
        if found or self.claimed > claimed:
            return places - places
        # Sizes that were fixed are no names of places.
        held = _sets.project_out(domain, [name for name, _ in self.check.lineage.fixed])
        return places & _sets.rename(held, times)

    def copied(
        self, old: Expression, mine: Access | None, new: Expression, event: ReadEvent
    ) -> None:
        if mine is None:
            self.same(old, new, event)
            return
        its = self.access(new, self.new.data)
        if its is None:
            if isinstance(old, Untouched):
                self.different(event, "a copy holds another expression")
            elif old is None:
                self.inline(mine, new, event)
            else:
                self.same(old, new, event)
        elif old is None:
            self.read(event, mine, its)
        else:
            self.same_access(old, mine, its, event)

    def inline(self, mine: Access, new: Expression, event: ReadEvent) -> None:
        """The text reads what a statement wrote that the schedule no longer has."""
        its = self.access(new, self.new.data)
        if its is not None and made_anew.is_result(self.root, mine[0]):
            self.read(event, mine, its)
            return
        if event.depth > DEPTH:
            self.different(event, f"what '{mine[0]}' holds is not computed in place")
            return
        sources = event.sources or self.check.dataflow.of_read(event.reader, mine)
        rest = event.where
        held = self.root_types.array(mine[0])
        is_cast = isinstance(new, TypeCast) and new.dtype == held
        for origin, relation in sources.writes.items():
            label = inlined(event.depth)
            where = event.bound & renamed(relation, {WRITER: label})
            if where.is_empty():
                continue
            where = without(where, READER)
            statement = self.root.statement[origin]
            if statement.operation is not None or not self.root.is_exact(statement):
                raise Undecided(
                    f"'{mine[0]}' is computed in place, and '{origin}' is not all that it holds"
                )
            values = {i: variable(i, label) for i in statement.inames}
            inner = dataclasses.replace(
                event,
                where=where,
                reader=origin,
                values=values,
                sources=None,
                depth=event.depth + 1,
            )
            rest = rest - self.check.onto(where, rest)
            rounding = self.root_types.rounds(mine[0], statement.rhs)
            if rounding and not is_cast:
                self.different(inner, rounding)
                return
            is_kept = isinstance(statement.rhs, TypeCast) and statement.rhs.dtype == held
            within = is_cast and (rounding or not is_kept)
            self.same(statement.rhs, new.operand if within else new, inner)
        if not rest.is_empty():
            self.different(event.narrowed(rest), "a value is read that nothing computed")


def _beyond_sets(mine: Expression, its: Expression) -> Undecided:
    """The reason that it is unknown whether two integers are equal."""
    shown = (to_text(unlabelled(e)) for e in (mine, its))
    return Undecided("whether '{}' is '{}' is beyond sets".format(*shown), FLAT)
