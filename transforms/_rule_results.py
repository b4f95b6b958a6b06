"""Substitution rules with reductions: their uses without the accumulators of the results.

Transforms work on a use ``f(i, acc)`` as ``f(i)``.  A statement that computes the rule again, such
as a precomputation, gets loops and accumulators of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import DType, TemporaryVariable
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._expression import accesses, substitute, unbound_names
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement, SubstitutionRule
from loopkit._make import infer_known_types
from loopkit._make.reduction_operations import operations_of
from loopkit._make.split_reductions import accumulator_of
from loopkit._match import rules_of
from loopkit._nodes import Expression, Reduction
from loopkit._rules import reduced_inames, results_of, with_results
from loopkit._tree import Path, build, entries_of
from loopkit.transforms._common import without_statements
from loopkit.transforms._loop_nests import ancestors_of, fresh_number, ordered_domains
from loopkit.transforms._rule_arguments import replace_uses
from loopkit.transforms._rule_uses import (
    accumulators_read,
    expand_rules_that_use,
    rename_functions,
    rename_in_rule,
    use_of,
)

Indices = tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Apart:
    """A kernel in which the uses of a rule in some statements do not list their accumulators.

    ``text`` is the kernel before.  ``given`` holds the accumulators of each use, by statement and
    arguments, and ``results`` those of all uses; all other uses are of a rule ``other`` with the
    same expression.
    """

    text: Kernel
    kernel: Kernel
    rule: SubstitutionRule
    other: str
    given: Mapping[tuple[str, Indices], Indices]
    results: tuple[Expression, ...]

    def accumulators(self) -> tuple[str, ...]:
        """The temporaries that held the results of the reductions."""
        return tuple(dict.fromkeys(accesses(value)[0][0] for value in self.results))

    def value(self, expr: Expression) -> Expression:
        """The expression of the rule, in which accumulators of one use replace its reductions."""
        return with_results(expr, next(iter(self.given.values())))

    def together(self, kernel: Kernel) -> Kernel:
        """The kernel in which the remaining uses list their accumulators again."""
        name, count = self.rule.name, len(self.rule.arguments)

        def one(statement: Statement) -> Statement:
            def use(arguments: Indices) -> Expression:
                own = arguments[:count]
                return prim.Call(prim.Variable(name), (*own, *self.given[statement.id, own]))

            statement = statement.map_expressions(lambda e: replace_uses(e, name, use))
            return statement.map_expressions(lambda e: rename_functions(e, {self.other: name}))

        rules = [
            rename_in_rule(r, {self.other: name})
            for r in kernel.substitutions
            if r.name not in (name, self.other)
        ]
        statements = tuple(map(one, kernel.statements))
        return kernel.with_(statements=statements, substitutions=(*rules, self.rule))


def taken_apart(kernel: Kernel, rule: SubstitutionRule, selected: Collection[str]) -> Apart:
    """The kernel in which uses of a rule in the selected statements list no accumulators."""
    name, count, text = rule.name, len(rule.arguments), kernel
    kernel = expand_rules_that_use(kernel, name, selected)
    for iname in sorted(reduced_inames(rule.expression) - kernel.home_domain.keys()):
        raise IllegalTransformError(
            f"'{name}' reduces over '{iname}', which is no loop of this kernel any more",
            instead="precompute it before that loop is changed",
        )
    other = kernel.fresh_name(f"{name}_whole")
    given: dict[tuple[str, Indices], Indices] = {}
    results: list[Expression] = []

    def one(statement: Statement) -> Statement:
        if statement.id not in selected:
            return statement.map_expressions(lambda e: rename_functions(e, {name: other}))

        def use(parts: Indices) -> Expression:
            given[statement.id, parts[:count]] = parts[count:]
            results.extend(parts[count:])
            return use_of(name, parts[:count])

        return statement.map_expressions(lambda e: replace_uses(e, name, use))

    statements = tuple(map(one, kernel.statements))
    rules = [rename_in_rule(r, {name: other}) for r in kernel.substitutions]
    rules.append(replace(rule, name=other))
    new = kernel.with_(statements=statements, substitutions=tuple(rules))
    return Apart(text, new, rule, other, given, tuple(results))


def names_of_bounds(kernel: Kernel, rule: SubstitutionRule) -> frozenset[str]:
    """The names that the bounds of a rule's reductions depend on."""
    bound = reduced_inames(rule.expression)
    sets = (_bounds(kernel, domain, bound) for domain in kernel.domains)
    return frozenset().union(*map(_sets.involved_names, sets)) - bound


def _bounds(kernel: Kernel, domain: Domain, bound: Collection[str]) -> isl.Set:
    """Which values those inames of a domain have that are ``bound``.

    Its other inames stand in the set where they decide.
    """
    mine = [iname for iname in domain.inames if iname in bound]
    others = [iname for iname in domain.inames if iname not in bound]
    alone = kernel.domain_of(mine)
    if not mine or (alone & kernel.domain_of(others)).is_equal(domain.set):
        return alone
    return domain.set


def without_unread(kernel: Kernel, accumulators: Iterable[str]) -> Kernel:
    """The kernel without those accumulators that nothing reads, and what computes them."""
    waiting = list(accumulators)
    while waiting:
        name = waiting.pop()
        writers = {s.id for s in kernel.writers.get(name, ())}
        is_read = any(s.id not in writers for s in kernel.readers.get(name, ()))
        if is_read or any(name in unbound_names(r.expression) for r in kernel.substitutions):
            continue
        waiting += accumulators_read(kernel, name)
        kernel = without_statements(kernel, writers, {name})
    return kernel


@dataclass(frozen=True, eq=False)
class Held:
    """The type of a reduction's accumulator, and those of the reductions nested in it."""

    dtype: DType | None
    within: tuple[Held, ...]


def held_by(kernel: Kernel, reduction: Reduction, name: str | None) -> Held:
    """The accumulator types of a reduction, given the name of its accumulator."""
    inner = results_of(reduction.operand)
    accumulator = kernel.temporary_by_name.get(name or "")
    updates = [s for s in kernel.writers.get(name or "", ()) if s.kind == "update"]
    held = accumulators_read(kernel, name or "")
    read = dict.fromkeys(n for s in updates for n, _ in s.reads if n in held)
    if updates and inner and not read:
        raise IllegalTransformError(
            f"'{updates[0].id}' reads what was computed ahead, where the rule has a "
            f"{inner[0].operation} over {', '.join(inner[0].inames)}",
            instead="precompute a rule before those that it uses in this way",
        )
    names = [*read] if len(read) == len(inner) else [None] * len(inner)
    within = (held_by(kernel, r, n) for r, n in zip(inner, names, strict=True))
    dtype = reduction.dtype if accumulator is None else accumulator.dtype
    return Held(dtype, tuple(within))


def made_anew(apart: Apart, change: Change) -> Change:
    """A change that stages a rule in one statement, with new loops for the reductions of the rule.

    The statements that computed the results of the replaced uses are removed.
    """
    given = (accesses(value)[0][0] for value in next(iter(apart.given.values())))
    found = zip(results_of(apart.rule.expression), given, strict=True)
    (id_,) = change.moves
    held = [held_by(apart.kernel, one, name) for one, name in found]
    kernel, gone = apart.together(change.kernel), apart.accumulators()
    used = frozenset().union(*(rules_of(kernel, s) for s in kernel.statements))
    rules = (
        r
        for r in kernel.substitutions
        if r.name in used or unbound_names(r.expression).isdisjoint(gone)
    )
    kernel = without_unread(kernel.with_(substitutions=tuple(rules)), gone)
    kernel, made = with_loops(kernel, id_, held, apart.kernel.all_names)
    return replace(change, kernel=kernel, moves=change.moves | made)


def with_loops(
    kernel: Kernel, id_: str, held: Iterable[Held], taken: Collection[str]
) -> tuple[Kernel, frozenset[str]]:
    """The kernel where a statement's reductions are loops in front of it, and what is new.

    ``held`` says what they accumulate in; no accumulator has a name that is ``taken``.
    """
    statement = kernel.statement_by_id[id_]
    kernel, names = _with_inames(kernel, reduced_inames(statement.rhs))
    making = _Making(kernel, statement, names, taken)
    whole = replace(statement, rhs=making.replaced(statement.rhs, held, ()))
    entries = entries_of(kernel.tree)
    place, path = next((n, p) for n, (leaf, p) in enumerate(entries) if leaf == id_)
    entries[place:place] = [(s.id, (*path, *loops)) for s, loops in making.parts]
    statements = [whole if s.id == id_ else s for s in kernel.statements]
    new = kernel.with_(
        statements=(*statements, *(s for s, _ in making.parts)),
        temporaries=(*kernel.temporaries, *making.accumulators),
        tree=build(entries),
    )
    return infer_known_types(new), frozenset(s.id for s, _ in making.parts)


class _Making:
    """The statements that compute what a statement reduces, in loops with other ``names``."""

    def __init__(
        self, kernel: Kernel, own: Statement, names: Mapping[str, str], taken: Iterable[str]
    ) -> None:
        self.kernel = kernel
        self.own = own
        self.names = names
        self.values = {old: prim.Variable(new) for old, new in names.items()}
        self.fresh = kernel.fresh_names(taken)
        self.operations = operations_of(kernel.reductions)
        self.numbers = count(fresh_number(entries_of(kernel.tree)))
        self.parts: list[tuple[Statement, Path]] = []
        self.accumulators: list[TemporaryVariable] = []

    def replaced(self, expr: Expression, held: Iterable[Held], loops: Path) -> Expression:
        """``expr``, inside some loops, with accumulators in the place of its reductions."""
        found = zip(results_of(expr), held, strict=True)
        return with_results(expr, [self.made(one, by, loops) for one, by in found])

    def made(self, reduction: Reduction, held: Held, loops: Path) -> Expression:
        """What holds the value of a reduction, which statements inside some loops make."""
        made = accumulator_of(reduction, self.operations, self.fresh("acc"), held.dtype)
        self.accumulators.append(made.temporary)
        around = self.own.inames.union(iname for iname, _ in loops)
        start = made.start(replace(self.own, inames=around), self.fresh(f"{self.own.id}_init"))
        self.parts.append((start, loops))
        id_ = self.fresh(f"{self.own.id}_update")
        inames = [self.names.get(iname, iname) for iname in reduction.inames]
        inames.sort(key=lambda iname: len(ancestors_of(self.kernel, [iname])))
        inner = (*loops, *((iname, next(self.numbers)) for iname in inames))
        operand = self.replaced(reduction.operand, held.within, inner)
        operand = substitute(operand, self.values)
        self.parts.append((made.update(start, id_, operand, inames), inner))
        return made.value


def _with_inames(kernel: Kernel, inames: Collection[str]) -> tuple[Kernel, Mapping[str, str]]:
    """The kernel with inames that run as some do, and what they are called.

    These are the same where nothing uses them any more, nor any that their bounds need.
    """
    used = frozenset().union(*(s.inames for s in kernel.statements))
    used = used.union(kernel.iname_tags, (iname for iname, _, _ in kernel.slabs))
    names: dict[str, str] = {}
    domains = list(kernel.domains)
    for domain in kernel.domains:
        mine = tuple(iname for iname in domain.inames if iname in inames)
        if used.isdisjoint(mine) and names.keys().isdisjoint(domain.parameters):
            continue
        for iname in mine:
            names[iname] = kernel.fresh_name(iname, names.values())
        around = _sets.rename(_bounds(kernel, domain, inames), names)
        domains.append(Domain(tuple(names[iname] for iname in mine), around))
    return kernel.with_(domains=ordered_domains(domains)), names
