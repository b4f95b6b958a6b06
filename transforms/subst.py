"""Substitution rules: expressions with a name, expanded in place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _expression
from loopkit._arrays import ArrayArg, TemporaryVariable
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    NothingToDoError,
    check_known,
)
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._make.free_names import could_reduce
from loopkit._make.reduction_operations import operations_of
from loopkit._make.text_names import as_in_text
from loopkit._match import matching, read_names, rules_of
from loopkit._nodes import Expression, TaggedVariable, TypeCast
from loopkit._rules import expand_in
from loopkit._same import same
from loopkit._transform import transform
from loopkit.transforms import _common
from loopkit.transforms._rule_exchange import replaced_within_rules, with_operands
from loopkit.transforms._rule_uses import map_reads, map_texts, use_of


@transform
def expand_subst(kernel: Kernel, within: kind.Within = None, *, unchecked: bool = False) -> Change:
    """Substitute rules at their uses.

    Before: f(x) := a[x]**2, b[i] = f(i + 1)      After: b[i] = a[i + 1]**2

    Rules that nothing uses any more are forgotten.

    :arg within: a match string: only in these statements.
    :raises IllegalTransformError: where no rule is used.
    """
    ids, rules = matching(kernel, within), kernel.rule_by_name
    touched = {s.id for s in kernel.statements if s.id in ids and rules_of(kernel, s)}
    if not touched and (within is not None or not rules):
        what = f"in the statements that match '{within}'" if within else "in this kernel"
        raise NothingToDoError(f"no substitution rule is used {what}")
    expanded = {
        id_: kernel.statement_by_id[id_].map_expressions(lambda e: expand_in(e, rules))
        for id_ in touched
    }
    new = _common.with_statements(kernel, expanded)
    before, after = (
        frozenset().union(*(rules_of(k, s) for s in k.statements)) for k in (kernel, new)
    )
    kept = tuple(
        r for r in kernel.substitutions if r.name in after or (within and r.name not in before)
    )
    return Change(_common.simplified(new.with_(substitutions=kept), touched))


@transform
def extract_subst(
    kernel: Kernel,
    subst_name: kind.NeededName,
    template: kind.Template,
    parameters: kind.Names = (),
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Make a substitution rule of all expressions that match a template.

    Before: b[i] = a[i]**2 + a[i + 1]**2
    After (``"f", "a[x]**2", "x"``): f(x) := a[x]**2, b[i] = f(i) + f(i + 1)

    Of a sum or product that is longer than the template, its beginning can
    match, because that is what is computed first; in a subscript the last parameter of a sum,
    ``y`` of ``a[x*m + y]``, stands for all that is left.  In a template a use with a tag,
    ``a$near[x]``, matches such uses alone.

    :arg parameters: names in the template that stand for any expression.
    :arg within: a match string: only in these statements.
    :arg subst_name: the name of the rule, which must be free.
    :raises IllegalTransformError: where nothing matches.
    """
    name = _common.new_name(kernel, subst_name, subst_name)
    arguments = kind.names_in(parameters)
    check_known("name", arguments, _expression.variable_names(template))
    template = as_in_text(kernel, template, arguments)
    replacer = _TemplateReplacer(
        template, arguments, lambda found: use_of(name, tuple(found[a] for a in arguments))
    )
    ids = matching(kernel, within)
    changed = {s.id: map_reads(s, replacer) for s in kernel.statements if s.id in ids}
    rules = kernel.substitutions
    if within is None:
        rules = tuple(replace(r, expression=replacer(r.expression)) for r in rules)
    if not replacer.count:
        free = _expression.variable_names(template).difference(arguments)
        if could_reduce(template, operations_of(kernel.reductions)) and free & {*kernel.all_inames}:
            raise IllegalTransformError(
                f"'{_expression.to_text(template)}' holds a reduction, which is statements here, "
                "that start and update an accumulator, and no expression for a template to match",
                instead="a rule of the text may hold it; reduction_arg_to_subst_rule makes one of "
                "what is reduced, and so does a template of that",
            )
        fixed = ", ".join(f"'{n}'" for n in sorted(free))
        means = "means itself" if len(free) == 1 else "mean themselves"
        raise IllegalTransformError(
            f"no expression matches the template '{_expression.to_text(template)}'",
            instead=f"only names in `parameters` match any expression: {fixed} {means}"
            if fixed
            else "",
        )
    rule = SubstitutionRule(name, arguments, template)
    new = _common.with_statements(kernel, changed)
    return Change(new.with_(substitutions=(*rules, rule)))


class _TemplateReplacer(_expression.ExpressionMapper):
    """Replaces what matches a template; of a longer sum or product, its beginning.

    Sums and products associate to the left, so that their beginning is the only
    part that is an operand by itself.
    """

    def __init__(
        self,
        template: Expression,
        parameters: Collection[str],
        make: Callable[[Mapping[str, Expression]], Expression],
    ) -> None:
        super().__init__()
        self.template = template
        self.parameters = parameters
        self.make = make
        self.count = 0

    def rec(self, expr: Expression, *args: Any, **kwargs: Any) -> Expression:
        kind, rest = type(self.template), ()
        first = expr
        if isinstance(expr, (prim.Sum, prim.Product)) and type(expr) is kind:
            length = len(self.template.children)
            if length < len(expr.children):
                first, rest = kind(expr.children[:length]), expr.children[length:]
        found: dict[str, Expression] = {}
        if not _unify(self.template, first, self.parameters, found):
            return super().rec(expr, *args, **kwargs)
        self.count += 1
        new = self.make(found)
        return kind((new, *(self.rec(c) for c in rest))) if rest else new

    __call__ = rec


def _unify(
    template: Any,
    expr: Any,
    parameters: Collection[str],
    found: dict[str, Expression],
    *,
    in_subscript: bool = False,
) -> bool:
    """Whether values of ``parameters``, which are added to ``found``, make the two equal.

    Sums in subscripts are matched exactly: the last parameter of a sum is its remaining part.
    """
    if isinstance(template, prim.Variable) and template.name in parameters:
        return same(found.setdefault(template.name, expr), expr)
    if isinstance(template, TaggedVariable) or isinstance(expr, TaggedVariable):
        untagged = type(template) is prim.Variable and template.name == getattr(expr, "name", "")
        return untagged or bool(template == expr)  # a template without tags matches any use
    if type(template) is not type(expr):
        return False
    if _expression.is_constant(template) or not (
        is_dataclass(template) or isinstance(template, tuple)
    ):
        return same(template, expr)
    mine, its = _parts(template), _parts(expr)
    in_subscript |= isinstance(template, prim.Subscript)
    if in_subscript and isinstance(template, prim.Sum):
        mine, its = template.children, expr.children
        last = mine[-1]
        if len(mine) < len(its) and isinstance(last, prim.Variable) and last.name in parameters:
            its = (*its[: len(mine) - 1], prim.Sum(its[len(mine) - 1 :]))
    return len(mine) == len(its) and all(
        _unify(t, e, parameters, found, in_subscript=in_subscript)
        for t, e in zip(mine, its, strict=True)
    )


def _parts(node: Any) -> tuple[Any, ...]:
    """What a tuple or a node is made of; one index is like a tuple of it."""
    if isinstance(node, tuple):
        return node
    if isinstance(node, prim.Subscript):
        return (node.aggregate, *_expression.index_tuple(node))
    return tuple(getattr(node, f.name) for f in fields(node))


@transform
def assignment_to_subst(
    kernel: Kernel,
    lhs_name: kind.Name,
    extra_arguments: kind.Names = (),
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Compute a value where it is used, instead of storing it.

    Before: t[i] = 2*a[i], b[i] = t[i] + t[i + 1]
    After: t_subst(i) := 2*a[i], b[i] = t_subst(i) + t_subst(i + 1)

    A temporary that nobody reads any more goes, with its assignment; an argument
    stays and is still written.

    :arg lhs_name: what the assignment writes; exactly one statement may write it.
    :arg extra_arguments: inames of the assignment that become arguments of the
        rule beside its subscripts.
    :arg within: a match string: only where these statements read it.
    :raises IllegalTransformError: where the value is updated, conditional, or not known by
        its subscripts alone where it is used; or where what it is made of has changed there.
    """
    array = kernel.array(lhs_name)
    definition = _definition(kernel, lhs_name)
    if lhs_name in kernel.bounding:
        raise _unfit(lhs_name, "it bounds a loop, and domains use no rules")
    extra = kind.names_in(extra_arguments)
    rule = _rule_from(kernel, array, definition, extra)
    readers = {s.id for s in kernel.statements if lhs_name in read_names(kernel, s)}
    ids = matching(kernel, within) & readers
    if not ids:
        raise IllegalTransformError(f"no such statement reads '{lhs_name}'")
    for id_ in sorted(ids):
        _checkuse_of(kernel, definition, kernel.statement_by_id[id_], rule)

    def access(name: str, indices: tuple[Expression, ...], _: Any = None) -> Expression | None:
        more = map(prim.Variable, extra)
        return use_of(rule.name, (*indices, *more)) if name == lhs_name else None

    changed = replaced_within_rules(kernel, lhs_name, ids, access)
    if changed is None:
        changed = map_texts(
            kernel, lambda e: _expression.replace_accesses(e, access), ids, rules=False
        )
    before = kernel.with_(substitutions=changed.substitutions)
    operands = with_operands(before, {lhs_name}, ids, access)
    new = changed.with_(substitutions=(*operands, rule))
    if isinstance(array, TemporaryVariable) and ids == readers:
        new = _common.without_statements(new, {definition.id}, {lhs_name})
    return Change(new)


def _unfit(name: str, why: str, instead: str = "") -> IllegalTransformError:
    why = f"'{name}' cannot become a substitution rule: {why}"
    return IllegalTransformError(why, instead=instead)


def _definition(kernel: Kernel, name: str) -> Statement:
    writers = kernel.writers.get(name, ())
    if len(writers) != 1:
        ids = ", ".join(s.id for s in writers) or "none"
        raise IllegalTransformError(
            f"'{name}' must be written by exactly one statement to become a substitution rule; "
            f"it is written by {len(writers)} ({ids})"
        )
    definition = writers[0]
    if definition.operation is not None or name in _expression.variable_names(definition.rhs):
        raise _unfit(name, f"statement '{definition.id}' updates it")
    if definition.predicates:
        raise _unfit(name, f"statement '{definition.id}' writes it only under a condition")
    return definition


def _rule_from(
    kernel: Kernel,
    array: ArrayArg | TemporaryVariable,
    definition: Statement,
    extra: tuple[str, ...],
) -> SubstitutionRule:
    name, indices = definition.write
    arguments: list[str] = []
    for index in indices:
        if not isinstance(index, prim.Variable) or index.name not in kernel.home_domain:
            where = f"in statement '{definition.id}'"
            raise _unfit(name, f"its subscript '{index}' {where} is not an iname")
        arguments.append(index.name)
    for iname in extra:
        if kernel.check_iname(iname) not in definition.inames:
            raise InvalidArgumentError(
                f"the extra argument '{iname}' is no iname of statement '{definition.id}'"
            )
        arguments.append(iname)
    if len(set(arguments)) < len(arguments):
        raise _unfit(name, f"an iname is used in two of its subscripts ({', '.join(arguments)})")
    expression = definition.rhs
    if array.dtype is not None and _common.known_dtype(kernel, expression) != array.dtype:
        expression = TypeCast(array.dtype, expression)
    return SubstitutionRule(kernel.fresh_name(f"{name}_subst"), tuple(arguments), expression)


def _checkuse_of(
    kernel: Kernel, definition: Statement, use: Statement, rule: SubstitutionRule
) -> None:
    """Refuse where the expression names an iname that the use is not inside.

    Whether it has the same value there is for the proof to say.
    """
    extra = rule.arguments[len(definition.write[1]) :]
    body = expand_in(definition.rhs, kernel.rule_by_name)
    free = (_expression.variable_names(body) & definition.inames) - set(rule.arguments)
    for iname in (*sorted(free), *sorted(extra)):
        if iname not in use.inames:
            raise _unfit(
                definition.written,
                f"its value depends on '{iname}', which is no subscript of it, and statement "
                f"'{use.id}' is not inside '{iname}'",
                "`within` leaves that statement out",
            )
