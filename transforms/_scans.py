"""Running reductions: an accumulator that is kept across the iterations of a loop.

The range of a reduction in one iteration of a loop may contain its ranges in all earlier
iterations, as in prefix sums.  Then a single accumulator suffices: it is initialized before the
loop, and each iteration adds only the new terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import conjuncts_of, decided
from loopkit._hidden import EARLIER, instances, variable
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._nodes import Expression
from loopkit._tags import LocalAxis
from loopkit._tree import Entry, build, entries_of, path_inames
from loopkit.transforms._common import (
    is_parallel,
    refuse_tagged,
    rewrite_statements,
    simplified,
)
from loopkit.transforms._loop_nests import (
    ancestors_of,
    check_nesting,
    fresh_number,
    is_bounded,
    kept_part,
    ordered_domains,
)


def with_running(
    kernel: Kernel, accumulators: Iterable[str], outer: str | None, *, if_any: bool
) -> Change:
    """The kernel in which the given accumulators are kept across the iterations of a loop.

    :arg outer: the iname of that loop; None for the innermost loop that bounds each reduction.
    :arg if_any: leave accumulators that no loop bounds as they are, if there are others.
    :raises IllegalTransformError: where there is no such loop, or the value cannot be kept.
    """
    found = [name for name in accumulators if _Scan(kernel, name).growing] if if_any else []
    change = Change(kernel)
    for name in found or accumulators:
        step = _Scan(change.kernel, name).along(outer)
        change = replace(step, instances=(*change.instances, *step.instances))
    return change


class _Scan:
    """One accumulator that is to be kept across the iterations of a loop."""

    def __init__(self, kernel: Kernel, accumulator: str) -> None:
        self.kernel = kernel
        self.name = accumulator
        writers = kernel.writers.get(accumulator, ())
        starts = [s for s in writers if s.kind == "init"]
        updates = [s for s in writers if s.kind == "update"]
        if len(starts) != 1 or len(updates) != 1 or len(writers) != 2:
            raise IllegalTransformError(
                f"'{accumulator}' is started or updated in several places, and cannot be a "
                "running reduction"
            )
        (self.start,), (self.update,) = starts, updates
        self.reduced = kernel.reduced_inames(self.update)
        self.path = kernel.paths[self.start.id]
        self.operation = kernel.temporary_by_name[accumulator].accumulates

    def refused(self, why: str, instead: str = "") -> IllegalTransformError:
        over = ", ".join(f"'{i}'" for i in self.reduced)
        what = f"'{self.name}', the {self.operation} over {over or 'nothing'},"
        return IllegalTransformError(f"{what} cannot run along a loop: {why}", instead=instead)

    @cached_property
    def bounding(self) -> frozenset[str]:
        """The candidates for the loop's iname: :attr:`growing`, else those with a single value."""
        ranges = {i: self.kernel.range_around(i) for i in self.start.inames}
        single = (i for i, (low, high) in ranges.items() if low is not None and low == high)
        return self.growing or frozenset(single)

    @cached_property
    def growing(self) -> frozenset[str]:
        """The inames around the reduction on which its range depends."""
        own = self.kernel.domain_around(self.start.inames)
        names = _sets.involved_names(self.domain.gist(own))
        return (names | ancestors_of(self.kernel, self.reduced)) & self.start.inames

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """Those of the candidate inames that are thread axes, highest axis first."""
        tags = self.kernel.iname_tags
        axes = {i: t.axis for i in self.bounding if isinstance(t := tags.get(i), LocalAxis)}
        return tuple(sorted(axes, key=lambda i: -axes[i]))

    def loops(self, outer: str | None) -> tuple[str, ...]:
        """The inames of the loops across which the accumulator is kept, ``outer`` first.

        Without ``outer``, the innermost loops around it along which the range of the reduction
        grows. Thread axes come last, the highest axis first.  Raises :class:`IllegalTransformError`
        where there are none.
        """
        kernel = self.kernel
        around = (*path_inames(self.path), *self.threads)
        wanted = outer
        if outer is None:
            inside = [*reversed(around), *kernel.all_inames]
            wanted = next((i for i in inside if i in self.bounding), None)
            if wanted is None:
                raise self.refused(
                    "no loop around it bounds what it runs over",
                    "a domain that grows with a loop, such as 0 <= j <= i",
                )
        assert wanted is not None
        if wanted not in self.start.inames:
            raise self.refused(f"it is not inside '{wanted}'")
        if is_parallel(kernel, wanted) and wanted not in self.threads:
            raise self.refused(
                f"'{wanted}' is tagged {kernel.iname_tags[wanted]}, and its iterations are in no "
                "order",
                f"untag_inames('{wanted}')",
            )
        loops = around[around.index(wanted) :]
        if not self.bounding.issuperset(loops[1:]):
            inner = next(i for i in loops[1:] if i not in self.bounding)
            raise self.refused(
                f"each iteration of '{inner}', inside the loop over '{wanted}', would need one",
                f"prioritize_loops, so that '{wanted}' is the innermost loop around it",
            )
        while outer is None and len(loops) < len(around):
            more = around[-len(loops) - 1 :]
            if more[0] not in self.bounding or not self.grows(more):
                break
            loops = more
        own = frozenset().union(*map(variable_names, self.start.write[1])) & {*loops}
        if own:
            raise self.refused(f"each '{min(own)}' has a separate scan")
        if kernel.paths[self.update.id][: len(self.path)] != self.path:
            raise self.refused(f"it starts in another loop over '{wanted}' than it is updated in")
        for iname in self.reduced:
            if is_parallel(kernel, iname):
                refuse_tagged(kernel, iname, "add in order, and not together, the terms of")
        return loops

    def grows(self, loops: tuple[str, ...]) -> bool:
        """Whether the range of the reduction in an iteration is part of that in all later ones."""
        return bool((_earlier(self.domain, loops) & self.steps).is_subset(self.domain))

    @cached_property
    def steps(self) -> isl.Set:
        """``{ inames, sizes : the accumulator starts }``, conditions on data left aside."""
        return self.conditioned(self.start)

    @cached_property
    def domain(self) -> isl.Set:
        """``{ inames, sizes : the update runs }``, conditions on data left aside."""
        return self.conditioned(self.update)

    def conditioned(self, statement: Statement) -> isl.Set:
        domain = self.kernel.domain_around(statement.inames) & self.kernel.assumptions.set
        for predicate in statement.predicates:
            where = decided(predicate, self.kernel.integers)
            domain = domain if where is None else domain & where
        return domain

    def along(self, outer: str | None) -> Change:
        """The change that keeps the accumulator across the loop, with its instance maps."""
        loops = self.loops(outer)
        outside = tuple(key for key in self.path if key[0] not in loops)
        parts = self.parts(loops)
        start = replace(
            self.start,
            inames=self.start.inames - {*loops},
            predicates=self.without(loops, self.start.predicates),
        )
        number = fresh_number(entries_of(self.kernel.tree))
        before: list[Entry] = [(start.id, outside)]
        within: list[Entry] = []
        statements: list[Statement] = [start]
        for part in parts:
            keys = tuple((iname, number + at) for at, iname in enumerate(part.names.values()))
            statements.append(replace(self.update, id=part.id, predicates=part.predicates))
            if part.is_ahead:
                before.append((part.id, (*outside, *keys)))
            else:
                within.append((part.id, (*self.path, *keys)))
        entries: list[Entry] = []
        around = self.path[: len(outside) + 1]
        is_inside = len(outside) < len(self.path)
        for leaf, path in entries_of(self.kernel.tree):
            if path[: len(around)] == around if is_inside else leaf == self.start.id:
                entries += before
                before = []
            if leaf == self.update.id:
                entries += within
            elif leaf != self.start.id:
                entries.append((leaf, path))
        others = [s for s in self.kernel.statements if s not in (self.start, self.update)]
        new = self.kernel.with_(
            tree=build(entries),
            statements=(*others, *statements),
            temporaries=tuple(
                replace(t, is_running=True) if t.name == self.name else t
                for t in self.kernel.temporaries
            ),
        )
        new = self.with_domains(new, parts)
        for part in parts:
            values = {part.id: part.values}
            changed, rules = rewrite_statements(new, values, part.names.values())
            new = new.with_(statements=changed, substitutions=rules)
        check_nesting(new)
        every = frozenset(loops)
        maps = [InstanceMap(start.id, start.id, every=every)]
        maps += [InstanceMap(part.id, self.update.id, part.of_text, every) for part in parts]
        return Change(simplified(new, [part.id for part in parts]), tuple(maps))

    def without(
        self, loops: tuple[str, ...], predicates: tuple[Expression, ...]
    ) -> tuple[Expression, ...]:
        """The predicates that do not depend on some inames; refuses those on data that do."""
        kept: list[Expression] = []
        for predicate in predicates:
            inner = [i for i in loops if i in variable_names(predicate)]
            if inner and decided(predicate, self.kernel.integers) is None:
                raise self.refused(f"data decide for which '{inner[0]}' there is one")
            kept += [] if inner else [predicate]
        return tuple(kept)

    def with_domains(self, kernel: Kernel, parts: Iterable[_Part]) -> Kernel:
        """The kernel without the inames that nothing runs over, and with those of the parts."""
        gone = frozenset(self.reduced) - self.used
        domains = [left for domain in kernel.domains for left in kept_part(domain, gone)]
        for part in parts:
            if part.names:
                where = _sets.rename(part.where, part.names)
                domains.append(Domain(tuple(part.names.values()), where))
        known = frozenset(i for d in domains for i in d.inames)
        tags = [(iname, tag) for iname, tag in kernel.tags if iname in known]
        return kernel.with_(domains=ordered_domains(domains), tags=tags)

    @cached_property
    def used(self) -> frozenset[str]:
        """The inames that other statements than the update are inside."""
        others = (s.inames for s in self.kernel.statements if s is not self.update)
        return frozenset().union(*others)

    # {{{ which terms are added where

    def parts(self, loops: tuple[str, ...]) -> list[_Part]:
        """The terms added in front of the loops, if any, and the terms that each iteration adds.

        An iteration adds those terms that no earlier one has added.
        """
        around = self.kernel.domain_around(self.start.inames) & self.kernel.assumptions.set
        new = (self.domain - _earlier(self.domain, loops)).coalesce()
        first = self.steps - _earlier(self.steps, loops)
        later = new - first
        name = self.update.id
        if later.is_empty():
            return [self.ahead(name, new, first, loops)]
        values = _functions(later, self.reduced)
        inside = new
        for iname, value in values.items():
            inside = inside & _sets.equality(iname, value)
        each = self.part(name, _sets.project_out(inside, values).gist(around), values)
        if not each.names:
            conditions = conjuncts_of(each.where)
            if any(decided(c, self.kernel.integers) is None for c in conditions):
                # A loaded bound stays one: its loop has one iteration, or none.
                each = self.part(name, inside.gist(around), {})
            else:
                each = replace(each, predicates=(*conditions, *self.by_data))
        front = (new - inside).coalesce()
        if front.is_empty():
            return [each]
        return [self.ahead(self.kernel.fresh_name(f"{name}_first"), front, first, loops), each]

    def ahead(self, name: str, where: isl.Set, first: isl.Set, loops: tuple[str, ...]) -> _Part:
        """The terms ``where`` of the first iteration, in front of the loops."""
        values = _functions(first, loops)
        if len(values) < len(loops):
            raise self.refused(f"the first '{loops[0]}' is no single expression of the sizes")
        part = self.part(name, _sets.project_out(where, loops), {})
        return replace(part, is_ahead=True, values={**part.values, **values})

    def part(self, name: str, where: isl.Set, known: Mapping[str, Expression]) -> _Part:
        """Terms that a statement adds, in loops over those inames that are not ``known``."""
        names: dict[str, str] = {}
        for iname in self.reduced:
            if iname not in known:
                taken = names.values()
                is_used = iname in self.used
                names[iname] = self.kernel.fresh_name(iname, taken) if is_used else iname
        values = {**known, **{old: prim.Variable(new) for old, new in names.items()}}
        return _Part(name, False, where, names, values, values, self.by_data)

    @cached_property
    def by_data(self) -> tuple[Expression, ...]:
        """The predicates of the update that depend on data."""
        integers = self.kernel.integers
        return tuple(p for p in self.update.predicates if decided(p, integers) is None)

    # }}}


@dataclass(frozen=True)
class _Part:
    """Terms that the statement ``id`` adds, in front of the loop or inside it.

    ``where`` is its iteration domain over the inames of the update, ``names`` are the names of its
    own loops.  ``values`` replace inames of the update in its text, and ``of_text`` maps its
    instances to those of the original update.
    """

    id: str
    is_ahead: bool
    where: isl.Set
    names: Mapping[str, str]
    values: Mapping[str, Expression]
    of_text: Mapping[str, Expression]
    predicates: tuple[Expression, ...]


def _earlier(where: isl.Set, loops: tuple[str, ...]) -> isl.Set:
    """The points of ``where`` in any earlier iteration of given loops, at each later iteration."""
    before = _sets.rename(where, instances(loops, EARLIER))
    order: list[Expression] = []
    for at, iname in enumerate(loops):
        same = (prim.Comparison(variable(i, EARLIER), "==", prim.Variable(i)) for i in loops[:at])
        less = prim.Comparison(variable(iname, EARLIER), "<", prim.Variable(iname))
        order.append(prim.LogicalAnd((*same, less)))
    both = before & _sets.condition_set(prim.LogicalOr(tuple(order)))
    return _sets.project_out(both, instances(loops, EARLIER).values())


def _functions(where: isl.Set, inames: Iterable[str]) -> dict[str, Expression]:
    """Those of some inames that are functions of the others, if one expression says each."""
    found: dict[str, Expression] = {}
    for iname in inames:
        own = _sets.project_out(where, [i for i in inames if i != iname])
        if not is_bounded(own, iname):
            continue
        least, most = _sets.minimum(own, iname), _sets.maximum(own, iname)
        pieces = least.coalesce().get_pieces()
        if len(pieces) == 1 and least.ne_set(most).is_empty():
            value = _sets.value_by_equality(own, iname)
            found[iname] = _sets.from_affine(pieces[0][1]) if value is None else value
    return found
