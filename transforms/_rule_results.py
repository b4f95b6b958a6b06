"""Rules that hold reductions: their uses without the accumulators that hold their results.

A use ``f(i, acc)`` is ``f(i)`` while a transform looks at what the rule is of; what computes the
rule anew gets loops and accumulators of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, DType, TemporaryVariable
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._expression import accesses, substitute, unbound_names
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement, SubstitutionRule
from loopkit._make.reduction_operations import operations_of
from loopkit._match import rules_of
from loopkit._nodes import Expression, Reduction
from loopkit._rules import results_of, with_results
from loopkit._tags import LocalAuto
from loopkit._tree import Path, build, entries_of
from loopkit.transforms._loop_nests import ancestors_of, fresh_number
from loopkit.transforms._rule_arguments import Uses
from loopkit.transforms._rule_uses import expand_rules_that_use, rename_functions

Indices = tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Apart:
    """A kernel where the uses of a rule in some statements do not say what holds its results.

    These were ``given`` to each use, by its statement and arguments, and are ``results`` of all;
    all other uses are of a rule ``other``, which says the same.
    """

    kernel: Kernel
    rule: SubstitutionRule
    other: str
    given: Mapping[tuple[str, Indices], Indices]
    results: tuple[Expression, ...]

    def accumulators(self) -> tuple[str, ...]:
        """The temporaries that held the results."""
        return tuple(dict.fromkeys(accesses(value)[0][0] for value in self.results))

    def value(self, expr: Expression) -> Expression:
        """What the rule stands for, with the results of its reductions as one use has them."""
        return with_results(expr, next(iter(self.given.values())))

    def together(self, kernel: Kernel) -> Kernel:
        """A kernel in which uses that are left say what holds their results again."""
        name, count = self.rule.name, len(self.rule.arguments)

        def one(statement: Statement) -> Statement:
            def use(arguments: Indices) -> Expression:
                own = arguments[:count]
                return prim.Call(prim.Variable(name), (*own, *self.given[statement.id, own]))

            statement = statement.map_expressions(Uses(name, use))
            return statement.map_expressions(lambda e: rename_functions(e, {self.other: name}))

        rules = [
            replace(r, expression=rename_functions(r.expression, {self.other: name}))
            for r in kernel.substitutions
            if r.name not in (name, self.other)
        ]
        statements = tuple(map(one, kernel.statements))
        return kernel.with_(statements=statements, substitutions=(*rules, self.rule))


def taken_apart(kernel: Kernel, rule: SubstitutionRule, selected: Collection[str]) -> Apart:
    """A kernel where uses of a rule in the selected statements are without their results."""
    name, count = rule.name, len(rule.arguments)
    kernel = expand_rules_that_use(kernel, name, selected)
    bound = {iname for r in results_of(rule.expression) for iname in r.inames}
    for iname in sorted(bound - kernel.home_domain.keys()):
        raise IllegalTransformError(
            f"'{name}' reduces over '{iname}', which is no loop of this kernel any more",
            instead="precompute it before that loop is changed",
        )
    other = kernel.fresh_name(name)
    given: dict[tuple[str, Indices], Indices] = {}
    results: list[Expression] = []

    def one(statement: Statement) -> Statement:
        if statement.id not in selected:
            return statement.map_expressions(lambda e: rename_functions(e, {name: other}))

        def use(parts: Indices) -> Expression:
            given[statement.id, parts[:count]] = parts[count:]
            results.extend(parts[count:])
            head = prim.Variable(name)
            return prim.Call(head, parts[:count]) if count else head

        return statement.map_expressions(Uses(name, use))

    statements = tuple(map(one, kernel.statements))
    rules = [
        replace(r, expression=rename_functions(r.expression, {name: other}))
        for r in kernel.substitutions
    ]
    rules.append(replace(rule, name=other))
    new = kernel.with_(statements=statements, substitutions=tuple(rules))
    return Apart(new, rule, other, given, tuple(results))


def names_of_bounds(kernel: Kernel, rule: SubstitutionRule) -> frozenset[str]:
    """The names that the bounds of a rule's reductions depend on."""
    found: set[str] = set()
    for one in results_of(rule.expression):
        found |= _sets.involved_names(kernel.domain_of(one.inames)) - {*one.inames}
    return frozenset(found)


def without_unread(kernel: Kernel, accumulators: Iterable[str]) -> Kernel:
    """The kernel without those accumulators that nothing reads, and what computes them."""
    waiting = list(accumulators)
    while waiting:
        name = waiting.pop()
        writers = {s.id: s for s in kernel.writers.get(name, ())}
        is_read = any(s.id not in writers for s in kernel.readers.get(name, ()))
        if is_read or any(name in unbound_names(r.expression) for r in kernel.substitutions):
            continue
        waiting += [
            n
            for s in writers.values()
            for n in unbound_names(s.rhs)
            if n != name
            and n in kernel.temporary_by_name
            and kernel.temporary_by_name[n].accumulates is not None
        ]
        entries = [entry for entry in entries_of(kernel.tree) if entry[0] not in writers]
        kernel = kernel.with_(
            tree=build(entries),
            statements=tuple(
                replace(s, depends_on=s.depends_on - writers.keys())
                for s in kernel.statements
                if s.id not in writers
            ),
            temporaries=tuple(t for t in kernel.temporaries if t.name != name),
        )
    return kernel


def made_anew(apart: Apart, change: Change, id_: str) -> Change:
    """A change that stages a rule in the statement ``id_``, with loops for what that reduces.

    What computed the results of uses that are gone goes with them.
    """
    held = next(iter(apart.given.values()))
    arrays = (accesses(value)[0][0] for value in held)
    dtypes = [apart.kernel.temporary_by_name[name].dtype for name in arrays]
    kernel, gone = apart.together(change.kernel), apart.accumulators()
    used = frozenset().union(*(rules_of(kernel, s) for s in kernel.statements))
    rules = (
        r
        for r in kernel.substitutions
        if r.name in used or unbound_names(r.expression).isdisjoint(gone)
    )
    kernel = without_unread(kernel.with_(substitutions=tuple(rules)), gone)
    kernel, made = with_loops(kernel, id_, dtypes, apart.kernel.all_names)
    return replace(change, kernel=kernel, moves=change.moves | made)


def with_loops(
    kernel: Kernel, id_: str, dtypes: Iterable[DType | None], taken: Collection[str]
) -> tuple[Kernel, frozenset[str]]:
    """The kernel where a statement's reductions are loops in front of it, and what is new.

    ``dtypes`` are the types that they accumulate in; no accumulator has a name that is ``taken``.
    """
    made: set[str] = set()
    statement = kernel.statement_by_id[id_]
    for iname in sorted(statement.inames):
        if isinstance(kernel.iname_tags.get(iname), LocalAuto):
            raise IllegalTransformError(
                f"'{id_}' holds reductions, and there are no threads yet to share them",
                instead="tag threads first, or default_tag=None",
            )
    results: list[Expression] = []
    for reduction, dtype in zip(results_of(statement.rhs), dtypes, strict=True):
        kernel, parts, name = _with_reduction(kernel, statement, reduction, dtype, taken)
        results.append(prim.Variable(name))
        made |= parts
    whole = replace(statement, rhs=with_results(statement.rhs, results))
    statements = tuple(whole if s.id == id_ else s for s in kernel.statements)
    return kernel.with_(statements=statements), frozenset(made)


def _with_reduction(
    kernel: Kernel,
    statement: Statement,
    reduction: Reduction,
    dtype: DType | None,
    taken: Collection[str],
) -> tuple[Kernel, set[str], str]:
    kernel, names = _with_inames(kernel, reduction.inames)
    operand = substitute(reduction.operand, {i: prim.Variable(n) for i, n in names.items()})
    operation = operations_of(kernel.reductions)[reduction.operation]
    name = kernel.fresh_name("acc", taken)
    start = replace(
        statement,
        id=kernel.fresh_name(f"{statement.id}_init"),
        lhs=prim.Variable(name),
        rhs=operation.start(dtype),
        kind="init",
    )
    update = replace(
        start,
        id=kernel.fresh_name(f"{statement.id}_update", [start.id]),
        rhs=operand,
        inames=statement.inames.union(names.values()),
        operation=operation.name,
        kind="update",
    )
    entries = entries_of(kernel.tree)
    place, path = next((n, p) for n, (leaf, p) in enumerate(entries) if leaf == statement.id)
    number = fresh_number(entries)
    nested = sorted(names.values(), key=lambda i: len(ancestors_of(kernel, [i])))
    loops: Path = tuple((iname, number) for iname in nested)
    entries[place:place] = [(start.id, path), (update.id, (*path, *loops))]
    accumulator = TemporaryVariable(
        name,
        dtype,
        address_space=AddressSpace.PRIVATE,
        accumulates=operation.name,
        made_by="reduction",
    )
    new = kernel.with_(
        statements=(*kernel.statements, start, update),
        temporaries=(*kernel.temporaries, accumulator),
        tree=build(entries),
    )
    return new, {start.id, update.id}, name


def _with_inames(kernel: Kernel, inames: tuple[str, ...]) -> tuple[Kernel, Mapping[str, str]]:
    """The kernel with inames that run as some do, and what they are called.

    These are the same where nothing uses them any more.
    """
    used = frozenset().union(*(s.inames for s in kernel.statements))
    known = {*kernel.iname_tags, *(i for i, _, _ in kernel.slabs)}
    if used.isdisjoint(inames) and known.isdisjoint(inames):
        return kernel, {i: i for i in inames}
    names: dict[str, str] = {}
    for iname in inames:
        names[iname] = kernel.fresh_name(iname, names.values())
    domain = Domain(tuple(names.values()), _sets.rename(kernel.domain_of(inames), names))
    return kernel.with_(domains=(*kernel.domains, domain)), names
