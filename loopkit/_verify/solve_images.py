"""The inames of each origin as expressions of the inames of its statement.

If the cells that are read or written do not determine them, names do, or the order of execution:
the subscripts of a statement that overwrites one cell repeatedly, as in a time loop, say nothing
about the loop. Or one instance corresponds to many, as in a running sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.instance_maps import Image
from loopkit._hidden import NEW, OLD, instance, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided, equal
from loopkit._verify.search_state import SearchContext, State
from loopkit._verify.solver import Solver


def solve_images(context: SearchContext, state: State) -> Iterator[tuple[Image, ...]]:
    """The pairs with the inames of each origin as expressions, in some ways."""
    for guess in (for_all, by_name, by_digits, by_time):
        found = []
        guessed = False
        every: dict[str, list[str]] = {}
        for statement in context.new.kernel.statements:
            origin = state.origin.get(statement.id)
            if origin is None:
                continue
            where = state.where[statement.id] & context.both(origin, statement.id)
            pair = Pair(context, statement, origin, where)
            image, free = pair.image()
            if free:
                guessed = True
                with suppress(_sets.UnboundedError):
                    pair = replace(pair, where=guess(pair, free))
                image, free = pair.image()
            if guess is for_all:
                own = pair.context.root.model.statement[origin]
                every.setdefault(own.written, []).extend(free)
                # What starts for all of them is updated for all.
                image, _ = pair.image(every[own.written] if own.kind != "user" else free)
            if image is None:
                return
            found.append(image)
        yield tuple(found)
        if not guessed:
            return


@dataclass(frozen=True, eq=False)
class Pair:
    """A statement, its origin, and how the inames of the two relate."""

    context: SearchContext
    statement: Statement
    origin: str
    where: isl.Set

    @property
    def domains(self) -> tuple[isl.Set, isl.Set]:
        """The instances of the origin, and those of the statement."""
        root, new = self.context.root.model, self.context.new.model
        return root.domain(Instance(self.origin, OLD)), new.domain(Instance(self.statement.id, NEW))

    def image(self, without: Sequence[str] = ()) -> tuple[Image | None, list[str]]:
        """The inames of the origin as expressions of the statement's; and those that are open.

        ``without`` names some for all whose values the statement is to stand.
        """
        inames = sorted(self.context.root.model.statement[self.origin].inames)
        wanted = [instance(i, OLD) for i in inames]
        known = {instance(i, NEW): i for i in self.statement.inames}
        solver = Solver(self.where, wanted, known, self.context.sizes)
        values, free = {}, []
        for iname in inames:
            if iname in without:
                continue
            value = solver.value(instance(iname, OLD))
            if value is None:
                why = f"no '{iname}' of '{self.origin}' was found for '{self.statement.id}'"
                self.context.note(why)
                return None, []
            if solver.is_undetermined(instance(iname, OLD)):
                free.append(iname)
            values[iname] = value
        return Image(self.statement.id, self.origin, tuple(values.items())), free

    def undetermined(self) -> list[str]:
        """The statement's inames that those of its origin leave open, outermost first."""
        inames = self.statement.inames
        known = [instance(i, OLD) for i in self.context.root.model.statement[self.origin].inames]
        wanted = [instance(i, NEW) for i in inames]
        solver = Solver(self.where, wanted, {i: i for i in known}, self.context.sizes)
        found = [i for i in inames if solver.is_undetermined(instance(i, NEW))]
        return _in_loop_order(self.context.new.model, self.statement.id, found)

    def named_alike(self, free: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Inames of the origin, with those of the statement that are named after them."""
        inames = self.statement.inames
        model = self.context.new.model
        news = _in_loop_order(model, self.statement.id, sorted(inames))
        blocks = {i for a, them in model.inames_on.items() if a[0] == "g" for i in them}
        news.sort(key=lambda i: i not in blocks)
        for iname in free:
            alike = [iname] if iname in inames else [i for i in news if i.startswith(f"{iname}_")]
            if alike:
                yield iname, [instance(i, NEW) for i in alike]


def _in_loop_order(model: Model, statement: str, inames: Sequence[str]) -> list[str]:
    """Inames, those of loops first, outermost first."""
    loops = [i for i, _ in model.order.place(statement)[1]]
    return sorted(inames, key=lambda i: (i not in loops, loops.index(i) if i in loops else 0, i))


def by_name(pair: Pair, free: Sequence[str]) -> isl.Set:
    """Inames of one name have one value, and ``t`` is ``8*t_outer + t_inner``."""
    where, (_, domain) = pair.where, pair.domains
    for iname, digits in pair.named_alike(free):
        terms: list[Expression] = []
        weight = 1
        for digit in reversed(digits):
            terms.append(prim.Product((weight, prim.Variable(digit))))
            highest = _sets.maximum_value(domain, prim.Variable(digit))
            if highest is None and digit != digits[0]:
                break
            weight *= (highest or 0) + 1
        same = where & _sets.affine_equality(variable(iname, OLD), prim.Sum(tuple(terms)))
        where = where if same.is_empty() else same
    return where


def by_digits(pair: Pair, free: Sequence[str]) -> isl.Set:
    """As many steps as ``t`` is from its first value, as many ``t_outer, t_inner`` is."""
    where = pair.where
    for iname, digits in pair.named_alike(free):
        mine, its = (
            # Whatever the others are.
            _as_one_number(_sets.project_onto(domain, [*names, *pair.context.sizes]), names)
            for domain, names in zip(pair.domains, ([instance(iname, OLD)], digits), strict=True)
        )
        if mine is not None and its is not None:
            same = where & mine.eq_set(its)
            where = where if same.is_empty() else same
    return where


def by_time(pair: Pair, free: Sequence[str]) -> isl.Set:
    """The first instances on each side belong together, then the second ones, and so on."""
    where, (old_domain, new_domain) = pair.where, pair.domains
    ordered = _in_loop_order(pair.context.root.model, pair.origin, free)
    olds = [instance(i, OLD) for i in ordered]
    news = [instance(i, NEW) for i in pair.undetermined()]
    if len(olds) == len(news):
        for one, two in zip(olds, news, strict=True):
            mine = _iteration_number(old_domain, one, olds)
            where = where & mine.eq_set(_iteration_number(new_domain, two, news))
    elif olds and news:
        first, second = _as_one_number(old_domain, olds), _as_one_number(new_domain, news)
        if first is not None and second is not None:
            where = where & first.eq_set(second)
    return where


def for_all(pair: Pair, free: Sequence[str]) -> isl.Set:
    """Names tell, of arrays, too: these are read in one place.

    For all values of what is open then, one instance of the statement stands.
    """
    return in_one_place(replace(pair, where=by_name(pair, free)), reads_alone=True)


def in_one_place(pair: Pair, *, reads_alone: bool = False) -> isl.Set:
    """Arrays of one name are touched at the same subscripts, where that may be."""
    where, (root, new) = pair.where, (pair.context.root.model, pair.context.new.model)
    olds, news = (
        one.reads if reads_alone else one.accesses
        for one in (root.statement[pair.origin], pair.statement)
    )
    accesses = dict(olds)
    for array, its in news:
        for mine, index in zip(accesses.get(array, ()), its, strict=False):
            try:
                alike = equal(root.named(mine, OLD), new.named(index, NEW))
            except Undecided:  # data decide where
                continue
            same = where & alike
            where = where if same.is_empty() else same
    return where


def _iteration_number(domain: isl.Set, name: str, group: Sequence[str]) -> isl.PwAff:
    """How many steps a name is from its first value, given all but the later ones of ``group``."""
    later = group[group.index(name) + 1 :]
    onto = _sets.project_out(domain, later)
    away = _sets.pw_affine(prim.Variable(name)).sub(_sets.minimum(onto, name))
    stride = _sets.as_dimension(onto, name).get_stride(0)
    return away if stride.is_one() else away.scale_down_val(stride).floor()


def _as_one_number(domain: isl.Set, group: Sequence[str]) -> isl.PwAff | None:
    """Names as the digits of one number, the last one running fastest."""
    total: isl.PwAff | None = None
    weight = 1
    for name in reversed(group):
        digit = _iteration_number(domain, name, group).scale_val(_sets.val(weight))
        total = digit if total is None else total.add(digit)
        low, high = _sets.value_range(domain, prim.Variable(name))
        if name != group[0]:
            if low is None or high is None:
                return None
            weight *= high - low + 1
    return total
