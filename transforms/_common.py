"""What the loop transforms share: names, statements, and instance maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import substitute, variable_names
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import called_names
from loopkit._nodes import Expression
from loopkit._simplify import simplify_indices
from loopkit._spelling import check_name

Values = Mapping[str, Expression]


# {{{ names


def new_name(kernel: Kernel, given: str | None, default: str, taken: Iterable[str] = ()) -> str:
    """The name of something new: ``given``, which must be free, or one like ``default``."""
    if given is None:
        return kernel.fresh_name(default, taken)
    given = check_name(given)
    if given in kernel.all_names or given in set(taken):
        free = kernel.fresh_name(given, taken)
        raise InvalidArgumentError(f"the name '{given}' is taken", instead=f"'{free}' is free")
    return given


def statements_with(kernel: Kernel, inames: Iterable[str]) -> frozenset[str]:
    """Ids of the statements that are inside any of ``inames``."""
    wanted = set(inames)
    return frozenset(s.id for s in kernel.statements if s.inames & wanted)


def refuse_tagged(kernel: Kernel, iname: str, verb: str) -> None:
    """An error if ``iname`` has a tag: what it becomes would have none."""
    tag = kernel.iname_tags.get(iname)
    if tag is not None:
        raise IllegalTransformError(
            f"cannot {verb} iname '{iname}': it is tagged {tag}",
            instead=f"untag it first: untag_inames('{iname}')",
        )


def is_parallel(kernel: Kernel, iname: str) -> bool:
    """Whether ``iname`` is a hardware coordinate."""
    tag = kernel.iname_tags.get(iname)
    return tag is not None and tag.is_parallel


# }}}

# {{{ instances


def then(kernel: Kernel, first: Change, second: Change) -> Change:
    """Two changes as one: the first of ``kernel``, the second of what the first made of it."""
    before = {m.new: m for m in first.instances}
    result: dict[str, InstanceMap] = {}
    for step in second.instances:
        earlier = before.get(step.old)
        if earlier is None:
            result[step.new] = step
            continue
        values = {n: substitute(e, step.values) for n, e in earlier.values.items()}
        for name, expr in step.values.items():
            if name in kernel.home_domain:
                values.setdefault(name, expr)
        result[step.new] = InstanceMap(step.new, earlier.old, values)
    kept = {s.id for s in second.kernel.statements}
    for new, step in before.items():
        if new not in result and new in kept:
            result[new] = step
    moves = (first.moves | second.moves) & kept
    return Change(second.kernel, tuple(result.values()), moves)


def maps_for(kernel: Kernel, ids: Iterable[str], values: Values) -> tuple[InstanceMap, ...]:
    """Maps of the statements in ``ids``, each with those of ``values`` that concern it."""
    result = []
    for id_ in sorted(ids):
        inames = kernel.statement_by_id[id_].inames
        mine = {name: expr for name, expr in values.items() if name in inames}
        if mine:
            result.append(InstanceMap(id_, id_, mine))
    return tuple(result)


# }}}

# {{{ statements


def _rules_used(kernel: Kernel, expressions: Iterable[Expression]) -> frozenset[str]:
    rules = {r.name: r for r in kernel.substitutions}
    found: set[str] = set()
    waiting = list(expressions)
    while waiting:
        for name in called_names(waiting.pop()) & rules.keys():
            if name not in found:
                found.add(name)
                waiting.append(rules[name].expression)
    return frozenset(found)


def rules_of(kernel: Kernel, statement: Statement) -> frozenset[str]:
    """The substitution rules that a statement uses, also through others."""
    if not kernel.substitutions:
        return frozenset()
    return _rules_used(kernel, [statement.lhs, statement.rhs, *statement.predicates])


def rename_functions(expr: Expression, names: Mapping[str, str]) -> Expression:
    """``expr`` with uses of substitution rules renamed."""
    from loopkit._expression import ExpressionMapper, is_constant

    class Renamer(ExpressionMapper):
        def map_call(self, call: prim.Call) -> Expression:
            function = prim.Variable(names.get(call.function.name, call.function.name))
            return prim.Call(function, tuple(self.rec(p) for p in call.parameters))

        def map_variable(self, variable: prim.Variable) -> Expression:
            return prim.Variable(names[variable.name]) if variable.name in names else variable

    return expr if is_constant(expr) else Renamer()(expr)


def rewrite_statements(
    kernel: Kernel,
    ids: Iterable[str],
    values: Values,
    new_inames: Iterable[str],
    *,
    copies: bool = False,
) -> tuple[tuple[Statement, ...], tuple[SubstitutionRule, ...]]:
    """Statements and rules after ``values`` replace inames in the statements ``ids``.

    A statement gets those of ``new_inames`` that the values of its inames use.
    A rule that mentions a replaced iname, and that other statements use too, is
    copied; where the statements are to be ``copies``, the old ones use it too.
    """
    chosen, fresh = set(ids), frozenset(new_inames)
    rules = _rewritten_rules(kernel, chosen, values, copies)
    renamed = {old: new.name for old, new in rules.items() if old != new.name}
    statements = []
    for statement in kernel.statements:
        if statement.id not in chosen or not statement.inames & values.keys():
            statements.append(statement)
            continue
        gone = statement.inames & values.keys()
        used = frozenset().union(*(variable_names(values[name]) for name in gone))
        mine = {name: values[name] for name in values}
        changed = statement.map_expressions(lambda e, mine=mine: substitute(e, mine))
        if renamed:
            changed = changed.map_expressions(lambda e: rename_functions(e, renamed))
        inames = (statement.inames - gone) | (used & fresh)
        statements.append(replace(changed, inames=inames))
    result: list[SubstitutionRule] = []
    for rule in kernel.substitutions:
        new = rules.get(rule.name)
        if new is None or new.name != rule.name:
            result.append(rule)
        if new is not None:
            result.append(new)
    return tuple(statements), tuple(result)


def _rewritten_rules(
    kernel: Kernel, ids: set[str], values: Values, copies: bool
) -> dict[str, SubstitutionRule]:
    """New rules by the name of the old one, for those rules that mention an iname."""
    if not kernel.substitutions:
        return {}
    inside: set[str] = set()
    outside: set[str] = set()
    for statement in kernel.statements:
        concerned = statement.id in ids and bool(statement.inames & values.keys())
        (inside if concerned else outside).update(rules_of(kernel, statement))
    touched: set[str] = set()
    by_name = {r.name: r for r in kernel.substitutions}

    def mentions(rule: SubstitutionRule) -> bool:
        free = variable_names(rule.expression) - set(rule.arguments)
        return bool(free & values.keys())

    for name in inside:
        below = {name} | _rules_used(kernel, [by_name[name].expression])
        if any(mentions(by_name[n]) for n in below):
            touched.add(name)
    names: dict[str, str] = {}
    for name in sorted(touched):
        shared = copies or name in outside
        names[name] = kernel.fresh_name(name, names.values()) if shared else name
    result = {}
    for name in touched:
        rule = by_name[name]
        free = {n: e for n, e in values.items() if n not in rule.arguments}
        expression = rename_functions(substitute(rule.expression, free), names)
        result[name] = SubstitutionRule(names[name], rule.arguments, expression)
    return result


def integer_names(kernel: Kernel) -> frozenset[str]:
    """Inames and sizes."""
    return frozenset(kernel.all_inames) | frozenset(kernel.sizes)


def simplified(kernel: Kernel, ids: Iterable[str]) -> Kernel:
    """The kernel with the subscripts and conditions of some statements simplified."""
    chosen = set(ids)
    integers = integer_names(kernel)
    contexts: dict[frozenset[str], isl.Set] = {}

    def context(inames: frozenset[str]) -> isl.Set:
        if inames not in contexts:
            contexts[inames] = kernel.domain_of(inames) & kernel.assumptions.set
        return contexts[inames]

    def simpler(statement: Statement) -> Statement:
        if statement.id not in chosen:
            return statement
        here = statement.inames
        return statement.map_expressions(
            lambda e: simplify_indices(e, integers, lambda: context(here))
        )

    return kernel.with_(statements=tuple(simpler(s) for s in kernel.statements))


# }}}
