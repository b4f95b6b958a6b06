"""Replacement of an array or a rule by a copy, inside the substitution rules that use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import rules_of, rules_used
from loopkit._nodes import Expression
from loopkit._rules import (
    beside_reductions,
    expand_in,
    inner_first,
    map_beside,
    results_of,
    with_parameters,
    with_results,
)
from loopkit.transforms._rule_uses import computing, rename_functions, rename_in_rule

Indices = tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Spelling:
    """What rules are called where some statements have what they say of a name exchanged.

    These are the rules ``used`` for it, which are called ``names`` then.  Of those that are
    ``shared``, both are there.  ``following`` have sums that only such statements compute, so that
    these say what the statements do.  What nothing uses is ``idle``, and goes on saying what it
    said, of rules that are called ``older``.
    """

    used: tuple[str, ...]
    names: Mapping[str, str]
    shared: frozenset[str]
    following: frozenset[str]
    idle: frozenset[str]
    older: Mapping[str, str]

    @classmethod
    def of(cls, kernel: Kernel, name: str, users: Collection[str]) -> Spelling | None:
        """The rules that ``users`` read ``name`` by; None where they use none."""
        rules = kernel.rule_by_name
        seen = _used_beside(kernel, [s for s in kernel.statements if s.id in users]) - {name}
        used = tuple(n for n in rules if n in seen and _reaches(kernel, n, {name}))
        if not used:
            return None
        idle = rules.keys() - frozenset().union(*(rules_of(kernel, s) for s in kernel.statements))
        following, shared = _in_sums(kernel, used, users, idle)
        shared |= _used_beside(kernel, [s for s in kernel.statements if s.id not in users])
        names: dict[str, str] = {}
        for n in used:
            names[n] = kernel.fresh_name(n, names.values()) if n in shared else n
        older: dict[str, str] = {}
        meant = rules_used(kernel, [rules[r].expression for r in idle])
        for n in used:
            if n in meant and n not in shared:
                older[n] = kernel.fresh_name(n, [*names.values(), *older.values()])
        return cls(used, names, shared, following, frozenset(idle), older)

    def as_before(self, rule: SubstitutionRule) -> SubstitutionRule:
        """A rule that says what it said."""
        name = self.older.get(rule.name, rule.name)
        return replace(rename_in_rule(rule, self.older), name=name)


def replaced_within_rules(
    kernel: Kernel,
    name: str,
    users: Collection[str],
    new: Callable[[str, Indices, SubstitutionRule | None], Expression | None],
    mentioned: Collection[str] = (),
) -> Kernel | None:
    """The kernel where ``users`` use ``new(name, indices, rule)`` for ``name[indices]``, in rules.

    Rules stay rules; those that others use, too, get copies.  None where ``new`` gives none for
    what stands in a rule.  What a rule's reductions read stays: :func:`with_operands`.  Where
    ``name`` is a rule with reductions, uses of those that use it say no more what holds these.
    What is ``mentioned`` in the new expressions is no argument of a rule.
    """
    rules = kernel.rule_by_name
    chosen = [s for s in kernel.statements if s.id in users]
    if any(name in _expression.called_names(i) for s in chosen for i in s.write[1]):
        return None
    spelling = Spelling.of(kernel, name, users)
    if spelling is None:
        return None
    left: dict[str, tuple[int, ...]] = {}

    def respelled(expr: Expression) -> Expression:
        return rename_functions(with_parameters(expr, left), spelling.names)

    def rewritten(expr: Expression, rule: SubstitutionRule | None = None) -> Expression:
        exchanged = _exchanged(expr, {name}, rules, lambda n, indices: new(n, indices, rule))
        return respelled(exchanged)

    def followed(rule: SubstitutionRule, of: str) -> SubstitutionRule:
        if of not in spelling.following:
            return rule
        results = map(respelled, results_of(rule.expression))
        return replace(rule, expression=with_results(rule.expression, results))

    exchanged: dict[str, SubstitutionRule] = {}
    try:
        for n in inner_first({n: rules[n] for n in spelling.used}):
            rule = _clear_of(kernel, rules[n], mentioned)
            expression, results = map_beside(rule.expression, partial(rewritten, rule=rule))
            left[n] = (*range(len(rule.arguments)), *(len(rule.arguments) + r for r in results))
            exchanged[n] = replace(rule, name=spelling.names[n], expression=expression)
        changed = {
            s.id: replace(
                s,
                lhs=rename_functions(s.lhs, spelling.names),
                rhs=rewritten(s.rhs),
                predicates=tuple(map(rewritten, s.predicates)),
            )
            for s in chosen
        }
    except _OpenError:
        return None
    substitutions: list[SubstitutionRule] = []
    for n, rule in rules.items():
        if n in spelling.idle or n in spelling.older:
            substitutions.append(spelling.as_before(rule))
        elif n not in exchanged:
            substitutions.append(followed(rule, n))
        elif n in spelling.shared:
            substitutions.append(rule)
        if n in exchanged:
            substitutions.append(followed(exchanged[n], n))
    statements = tuple(changed.get(s.id, s) for s in kernel.statements)
    return kernel.with_(statements=statements, substitutions=tuple(substitutions))


class _OpenError(Exception):
    """An access or use in an expression has no replacement."""


def _exchanged(
    expr: Expression,
    names: Collection[str],
    rules: Mapping[str, SubstitutionRule],
    new: Callable[[str, Indices], Expression | None],
) -> Expression:
    """``expr`` with ``new(name, indices)`` for what it reads of ``names``, arrays or rules.

    Raises :class:`_OpenError` where that is None.
    """

    def one(found: str, indices: Indices) -> Expression | None:
        if found not in names:
            return None
        made = new(found, tuple(expand_in(i, rules) for i in indices))
        if made is None:
            raise _OpenError
        return made

    return _expression.replace_accesses(_as_access(expr, names), one)


def _used_beside(kernel: Kernel, statements: Collection[Statement]) -> frozenset[str]:
    """The rules that statements use, also through others, but not in sums of these."""
    expressions = [e for s in statements for e in s.expressions]
    return rules_used(kernel, expressions, in_reductions=False)


def _in_sums(
    kernel: Kernel, names: Collection[str], users: Collection[str], idle: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The rules whose sums use rules of ``names``, all computed by ``users``; and others of these.

    Those others are of ``names``: sums use them that somebody else computes, too.
    """
    following: set[str] = set()
    shared: set[str] = set()
    for n, rule in kernel.rule_by_name.items():
        mine = rules_used(kernel, results_of(rule.expression)) & {*names}
        if not mine or n in idle:
            continue
        computed = [s for s in computing(kernel, rule) if _used_beside(kernel, [s]) & mine]
        if all(s.id in users for s in computed):
            following.add(n)
        else:
            shared |= mine
    return frozenset(following), frozenset(shared)


def with_operands(
    kernel: Kernel,
    names: Collection[str],
    ids: Collection[str],
    new: Callable[[str, Indices, SubstitutionRule], Expression | None],
    mentioned: Collection[str] = (),
) -> tuple[SubstitutionRule, ...]:
    """The rules, with ``new(name, indices, rule)`` for what their reductions read of ``names``.

    Only where all that compute a rule's reductions and read such are the statements ``ids``, and
    where ``new`` gives something for each of these reads.  ``names`` are arrays or other rules;
    what is ``mentioned`` in the new expressions is no argument of a rule.
    """

    rules = kernel.rule_by_name

    def reads(expr: Expression) -> bool:
        return not _expression.called_names(expr).isdisjoint(names)

    def changed(rule: SubstitutionRule) -> SubstitutionRule:
        found = results_of(rule.expression)
        if not any(map(reads, found)) or not {*rule.arguments}.isdisjoint(names):
            return rule
        readers = {s.id for s in computing(kernel, rule) if reads(s.rhs)}
        if not readers or not readers <= {*ids}:
            return rule
        own = _clear_of(kernel, rule, mentioned)
        try:
            results = [
                _exchanged(r, names, rules, lambda name, indices: new(name, indices, own))
                for r in results_of(own.expression)
            ]
        except _OpenError:
            return rule
        return replace(own, expression=with_results(own.expression, results))

    return tuple(map(changed, kernel.substitutions))


def _reaches(kernel: Kernel, start: str, names: Collection[str]) -> bool:
    """Whether a rule uses some of ``names``, also through other rules."""

    def called(rule: SubstitutionRule) -> frozenset[str]:
        return _expression.called_names(beside_reductions(rule.expression))

    body = beside_reductions(kernel.rule_by_name[start].expression)
    used = rules_used(kernel, [body], in_reductions=False)
    below = (kernel.rule_by_name[n] for n in {start} | used)
    return any(not (called(rule) - {*rule.arguments}).isdisjoint(names) for rule in below)


def _as_access(expr: Expression, names: Collection[str]) -> Expression:
    """``expr`` with each use of one of some rules as an access of an array."""

    def access(call: prim.Call, inside: _expression.Mapped) -> Expression:
        parts = tuple(map(inside, call.parameters))
        is_use = call.function.name in names and parts
        return (prim.Subscript if is_use else prim.Call)(call.function, parts)

    return _expression.mapped(expr, call=access)


def _clear_of(kernel: Kernel, rule: SubstitutionRule, names: Collection[str]) -> SubstitutionRule:
    """A rule with no argument that is called as one of ``names``."""
    other = {a: kernel.fresh_name(a, rule.arguments) for a in rule.arguments if a in names}
    if not other:
        return rule
    values = {old: prim.Variable(new) for old, new in other.items()}
    return replace(
        rule,
        arguments=tuple(other.get(a, a) for a in rule.arguments),
        expression=_expression.substitute(rule.expression, values),
    )
