"""precompute: values of a substitution rule are computed once, into a temporary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    TypeInferenceError,
    UnknownNameError,
)
from loopkit._expression import (
    ExpressionMapper,
    index_tuple,
    is_constant,
    to_text,
    variable_names,
)
from loopkit._footprint import Axis
from loopkit._guarded import GuardedWalker, Guards
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import called_names, matching
from loopkit._nodes import Expression
from loopkit._promotion import as_dtype
from loopkit._rules import expand_in
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit._types import concrete, dtype_of, known_types
from loopkit.transforms._rule_uses import called_by, expand_rules_that_use
from loopkit.transforms._staging import (
    Access,
    CellValue,
    Indices,
    Staging,
    axis_tags,
    check_free,
    check_sweep,
    choose_space,
    find_box,
    make_uses,
    stage,
    with_statements,
)


@transform
def precompute(
    kernel: Kernel,
    subst_use: kind.Name,
    sweep_inames: kind.MaybeNames = (),
    within: kind.Within = None,
    *,
    storage_axes: kind.Axes = None,
    temporary_name: kind.NewName = None,
    precompute_inames: kind.MaybeNames = None,
    precompute_outer_inames: kind.MaybeNames = None,
    storage_axis_to_tag: kind.TagsByAxis = None,
    default_tag: kind.TagLike = "l.auto",
    dtype: kind.DTypeLike = None,
    fetch_bounding_box: kind.Flag = False,
    temporary_address_space: kind.Space = None,
    compute_insn_id: kind.NewName = None,
    unchecked: bool = False,
) -> Change:
    """Compute the values of a substitution rule that a tile uses once, and read them back.

    Before, with the rule ``f(x) := sin(a[x])``::

        for j
            out[i, j] = f(i + j)

    After ``precompute("f", ["j"], default_tag=None)``, with ``0 <= j < 8``::

        for f_dim_0
            f_r[f_dim_0] = sin(a[i + f_dim_0])
        for j
            out[i, j] = f_r[j]

    The footprint is that of the rule's arguments while ``sweep_inames`` run; it
    works as for :func:`add_prefetch`, and so do ``default_tag``, ``within``,
    ``fetch_bounding_box`` and the choice of memory.  Only arguments for which
    all array accesses of the rule are in bounds are computed.

    ``storage_axes`` lists the arguments, by name or number, that get an axis of
    the temporary (all others must have one value only); by default those that
    move.  ``precompute_inames`` names the inames of the computing statement,
    ``storage_axis_to_tag`` gives tags for single axes, ``precompute_outer_inames``
    the loops it is to be inside of, ``compute_insn_id`` its id.  ``dtype`` is
    inferred if not given.

    ``subst_use`` is the rule's name, ``temporary_name`` the copy's;
    ``temporary_address_space`` says in what memory that is.

    :raises IllegalTransformError: as for :func:`add_prefetch`.
    """
    rule = _rule_named(kernel, subst_use)
    swept = check_sweep(kernel, sweep_inames)
    selected = matching(kernel, within)
    expanded = expand_rules_that_use(kernel, rule.name, selected)
    found = [a for s in expanded.statements if s.id in selected for a in _uses_of(s, rule)]
    if not found:
        users = [s.id for s in kernel.statements if rule.name in called_by(s)]
        raise IllegalTransformError(
            f"precompute would replace nothing: no selected statement uses '{rule.name}'",
            instead=f"it is used by {', '.join(users)}" if users else "it is not used anywhere",
        )
    what = f"the precomputation of '{rule.name}'"
    uses = make_uses(expanded, found)
    box = _with_storage_axes(find_box(expanded, uses, swept, what), rule, storage_axes)
    tags: dict[int, Tag | None] = dict.fromkeys(range(len(box)), parse_tag(default_tag))
    for axis, tag in (storage_axis_to_tag or {}).items():
        tags[_axis_number(rule, axis, "storage_axis_to_tag")] = parse_tag(tag)
    moving = {i: tag for i, tag in tags.items() if box[i].is_kept} or tags
    space = choose_space(kernel, temporary_address_space, swept, list(moving.values()))
    suffix = "s" if space is AddressSpace.LOCAL else "r"
    statement = compute_insn_id or kernel.fresh_name(f"compute_{rule.name}")
    body = expand_in(rule.expression, {r.name: r for r in kernel.substitutions})
    free = variable_names(body) - frozenset(rule.arguments)
    staging = Staging(
        made_by=f"precompute('{rule.name}')",
        what=what,
        base=rule.name,
        temporary=temporary_name or kernel.fresh_name(f"{rule.name}_{suffix}"),
        dtype=as_dtype(dtype) if dtype is not None else _dtype_of(kernel, body),
        box=box,
        swept=swept,
        space=space,
        tags=axis_tags(tags, space, what),
        sources=sorted(n for n in free if kernel.is_array(n)),
        needed=free & frozenset(kernel.all_inames),
        outer=None if precompute_outer_inames is None else names_in(precompute_outer_inames),
    )
    check_free(kernel, [staging.temporary, statement])
    result, copy = stage(
        expanded,
        staging,
        found,
        uses,
        CellValue(rule.arguments, rule.expression),
        statement,
        "user",
        names=None if precompute_inames is None else names_in(precompute_inames),
        argument="precompute_inames",
        whole_box=fetch_bounding_box,
    )
    replacer = _CallReplacer(rule, copy.at)
    changed = {
        id_: result.statement_by_id[id_].map_expressions(replacer.apply)
        for id_ in {a.statement.id for a in found}
    }
    return Change(
        _without_unused(with_statements(result, changed), rule.name),
        moves=frozenset([statement]),
    )


# {{{ the rule and its uses


def _rule_named(kernel: Kernel, name: str) -> SubstitutionRule:
    rules = {r.name: r for r in kernel.substitutions}
    if not isinstance(name, str):
        raise InvalidArgumentError(f"subst_use is the name of a substitution rule, not {name!r}")
    if name not in rules:
        raise UnknownNameError("substitution rule", name, rules)
    return rules[name]


class _CallReplacer(ExpressionMapper):
    """Replaces uses of a rule; arguments are rewritten first."""

    def __init__(self, rule: SubstitutionRule, new: Callable[[Indices], Expression]) -> None:
        super().__init__()
        self.rule = rule
        self.new = new

    def apply(self, expr: Expression) -> Expression:
        return expr if is_constant(expr) else self(expr)

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name == self.rule.name:
            return self.new(arguments)
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        if expr.name == self.rule.name and not self.rule.arguments:
            return self.new(())
        return expr


class _CallCollector(GuardedWalker):
    """Collects the uses of a rule: its arguments, and the conditions of the text around."""

    def __init__(self, rule: SubstitutionRule, guards: Guards) -> None:
        super().__init__(guards)
        self.rule = rule
        self.found: dict[tuple[Indices, Guards], None] = {}

    def map_call(self, expr: prim.Call) -> None:
        super().map_call(expr)
        if expr.function.name == self.rule.name:
            self.found[expr.parameters, self.guards] = None

    def map_variable(self, expr: prim.Variable) -> None:
        if expr.name == self.rule.name and not self.rule.arguments:
            self.found[(), self.guards] = None

    def map_subscript(self, expr: prim.Subscript) -> None:
        for index in index_tuple(expr):
            self.rec(index)


def _uses_of(statement: Statement, rule: SubstitutionRule) -> list[Access]:
    function = prim.Variable(rule.name)
    found: list[Access] = []
    for expr in (statement.lhs, statement.rhs, *statement.predicates):
        collector = _CallCollector(rule, ())
        if not is_constant(expr):
            collector(expr)
        for arguments, guards in collector.found:
            if any(rule.name in called_names(a) for a in arguments):
                raise IllegalTransformError(
                    f"statement '{statement.id}' uses '{rule.name}' within its own arguments",
                    instead=f"expand_subst('{rule.name}') first",
                )
            text = to_text(prim.Call(function, arguments) if rule.arguments else function)
            found.append(Access(statement, arguments, text, guards))
    return list({(a.indices, a.guards): a for a in found}.values())


# }}}

# {{{ axes


def _axis_number(rule: SubstitutionRule, axis: str | int, argument: str) -> int:
    if isinstance(axis, str):
        if axis not in rule.arguments:
            raise UnknownNameError(
                f"argument of '{rule.name}'", axis, rule.arguments, asked=argument
            )
        return rule.arguments.index(axis)
    if not 0 <= axis < len(rule.arguments):
        raise InvalidArgumentError(
            f"{argument}: '{rule.name}' has {len(rule.arguments)} arguments; there is no {axis}"
        )
    return axis


def _with_storage_axes(
    box: tuple[Axis, ...], rule: SubstitutionRule, axes: Sequence[str | int] | None
) -> tuple[Axis, ...]:
    if axes is None:
        return box
    chosen = {_axis_number(rule, a, "storage_axes") for a in axes}
    for number, axis in enumerate(box):
        if axis.extent > 1 and number not in chosen:
            raise InvalidArgumentError(
                f"argument '{rule.arguments[number]}' of '{rule.name}' takes {axis.extent} values "
                "in the tile, but is not in storage_axes",
                instead=f"add '{rule.arguments[number]}', or sweep less",
            )
    return tuple(replace(axis, swept=number in chosen) for number, axis in enumerate(box))


def _dtype_of(kernel: Kernel, body: Expression) -> np.dtype[Any] | None:
    """The type of the rule's values; None where some type is not known yet."""

    try:
        return concrete(dtype_of(body, known_types(kernel).__getitem__))
    except (KeyError, TypeInferenceError):
        return None


def _without_unused(kernel: Kernel, name: str) -> Kernel:
    """The kernel without the rule ``name``, if nothing uses it any more."""
    used = any(name in called_by(s) for s in kernel.statements)
    if used or any(name in called_names(r.expression) for r in kernel.substitutions):
        return kernel
    return kernel.with_(substitutions=tuple(r for r in kernel.substitutions if r.name != name))


# }}}
