"""Temporaries that hold precomputed values of a substitution rule, or copies of array cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError, counted
from loopkit._expression import (
    called_names,
    replace_accesses,
    substitute,
    to_text,
    unbound_names,
    variable_names,
)
from loopkit._footprint import Axis, Use
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._nodes import Expression
from loopkit._rules import expand_in, results_of
from loopkit._tags import Tag
from loopkit._types import concrete
from loopkit.transforms._common import known_dtype, new_name, then
from loopkit.transforms._rule_arguments import told_apart, with_free_inames
from loopkit.transforms._rule_results import Apart, made_anew, names_of_bounds, taken_apart
from loopkit.transforms._rule_uses import expand_rules_that_use, map_texts
from loopkit.transforms._spanning import Spanned, also_swept, footprint, in_inames, within_reach
from loopkit.transforms._staging import Request, Staging, axis_tags, choose_space, stage
from loopkit.transforms._transfer_loops import reused_axes
from loopkit.transforms._uses import Indices, element, reads_of

Uses = tuple[Kernel, Sequence[Use]]
"""A kernel where rules are expanded so that the uses of something show, and these uses."""


def copied(
    kernel: Kernel,
    rule: SubstitutionRule,
    found: Uses,
    find: Callable[[Kernel, Collection[str]], Uses],
    request: Request,
    shown: Callable[[Indices], Expression],
    apart: Apart | None = None,
) -> tuple[Change, Change]:
    """The loops in an order in which a copy of values of a rule has a place, and the copy then.

    ``found`` are the uses that are to be of the copy, ``find`` gives those in some statements of
    a kernel, and ``shown`` is what errors call a use with some arguments.
    """
    what, swept = request.what, request.swept
    users = {use.statement.id: use.statement for use in found[1]}
    if request.spanning is None:
        swept = also_swept(kernel, found[1], swept, request.outer)

    def spanned(moved: Kernel) -> Spanned:
        opened, uses = found if moved is kernel else find(moved, users)
        uses = [replace(use, text=to_text(shown(use.indices))) for use in uses]
        box, uses = footprint(opened, uses, swept, request.spanning, rule.name, what, shown)
        return Spanned(opened, box, uses)

    body = expand_in(rule.expression, kernel.rule_by_name)
    order, its = within_reach(
        kernel, users.values(), swept, request.outer, spanned, unbound_names(body)
    )
    kernel, used = order.kernel, its.uses
    box = _with_storage_axes(its.box, rule, request.storage_axes)
    reused = reused_axes(kernel, box, request.names) if request.may_reuse else {}
    tags = _tags(kernel, rule, request, len(box), reused)
    moving = {i: tag for i, tag in tags.items() if box[i].is_kept} or tags
    of_threads = [request.tag] if request.array and not rule.arguments else [*moving.values()]
    space = choose_space(kernel, request.space, swept, of_threads, request.outer, used)
    suffix = "s" if space is AddressSpace.LOCAL else "r"
    copy = new_name(kernel, request.copy, f"{request.base}_{suffix}")
    statement = new_name(kernel, request.id, f"{request.verb}_{request.base}", [copy])
    body = expand_in(rule.expression, kernel.rule_by_name)
    free = unbound_names(body) - frozenset(rule.arguments)
    if apart is not None:
        free |= names_of_bounds(kernel, rule)
    dtype = request.dtype
    if dtype is None:
        arguments = dict(zip(rule.arguments, used[0].indices, strict=True))
        held = body if apart is None else apart.value(body)
        inferred = known_dtype(kernel, substitute(held, arguments))
        dtype = None if inferred is None else concrete(inferred)
    in_place = apart is not None and kernel is apart.kernel
    staging = Staging(
        request=request,
        base=rule.name,
        base_in_rules=apart.other if apart is not None and in_place else "",
        name=copy,
        dtype=dtype,
        box=box,
        swept=swept,
        space=space,
        tags=axis_tags(tags, space, what),
        sources=sorted(n for n in free if kernel.is_array(n)),
        needed=free & frozenset(kernel.all_inames),
        reused=reused,
        may_move=request.space is None,
    )

    def value(cells: Indices) -> Expression:
        return substitute(rule.expression, dict(zip(rule.arguments, cells, strict=True)))

    with_rules = apart.text if apart is not None and in_place else kernel
    return order, stage(its.kernel, staging, used, value, statement, with_rules)


def computed_ahead(
    kernel: Kernel,
    rule: SubstitutionRule,
    selected: Collection[str],
    request: Request,
    nothing: Callable[[Sequence[Use]], IllegalTransformError],
    shown: Callable[[Indices], Expression],
) -> Change:
    """Compute values of a rule ahead; uses in ``selected`` statements are of the temporary.

    Before: out[i, j] = f(i + j)      After: f_r[x] = ... for x, then out[i, j] = f_r[j]

    Uses that stay are of the rule again.  ``nothing`` is the error where none of the uses is in an
    invocation, or there is no use, and ``shown`` how an error shows a use with some arguments.
    """
    text, name = kernel, rule.name
    apart = taken_apart(kernel, rule, selected) if results_of(rule.expression) else None
    if apart is not None:
        kernel = apart.kernel
    start = kernel
    axes = {*request.swept, *(axis for axis in request.storage_axes or () if isinstance(axis, str))}
    expanded, every = found = _all_uses(rule, kernel, selected)
    spanning = in_inames(expanded, every, request.spanning)

    def uses_in(kernel: Kernel, rule: SubstitutionRule) -> Sequence[Use]:
        return _all_uses(rule, kernel, selected)[1]

    bound = told_apart(expanded, rule, uses_in, axes, spanning)
    if bound.kernel is not expanded:
        if apart is not None and spanning is not None:
            raise IllegalTransformError(
                f"what is not affine decides which values of '{name}' are used, and it holds "
                "reductions",
                instead=f"precompute('{name}', ...) without an invocation; `within` selects uses",
            )
        kernel, rule, spanning = bound.kernel, bound.rule, bound.spanning
    rank = len(rule.arguments)
    kernel, rule = with_free_inames(kernel, rule, axes)
    more = tuple(map(prim.Variable, rule.arguments[rank:]))
    spanning = spanning and [(*cells, *more) for cells in spanning]
    if kernel is not start:
        found = _all_uses(rule, kernel, selected)
    if not found[1]:
        raise nothing(every)
    order, change = copied(
        kernel,
        rule,
        found,
        partial(_all_uses, rule),
        replace(request, spanning=spanning),
        lambda indices: shown(bound.arguments(indices)),
        apart,
    )
    if spanning is not None:
        change = replace(change, kernel=bound.restored(_with_calls(change.kernel, rule), name))
    if apart is not None:
        change = made_anew(apart, change)
    new = without_unused(change.kernel, rule.name, *bound.names)
    return replace(then(text, order, replace(change, kernel=new)), is_text=apart is not None)


def _tags(
    kernel: Kernel,
    rule: SubstitutionRule,
    request: Request,
    rank: int,
    reused: Mapping[int, str],
) -> dict[int, Tag | None]:
    """The tags of the loops along the axes; of inames that exist, their own."""
    tags: dict[int, Tag | None] = dict.fromkeys(range(rank), request.tag)
    for axis, tag in request.tags.items():
        number = _axis_number(rule, axis, "storage_axis_to_tag")
        tags[number] = tag
        if number in reused:
            raise InvalidArgumentError(
                f"'{reused[number]}' exists, and has its own tag or none",
                instead=f"tag_inames('{reused[number]}:...')",
            )
    return tags | {axis: kernel.iname_tags.get(iname) for axis, iname in reused.items()}


def _all_uses(rule: SubstitutionRule, kernel: Kernel, selected: Collection[str]) -> Uses:
    """The kernel where the uses of a rule in the selected statements show, and these."""
    expanded = expand_rules_that_use(kernel, rule.name, selected)
    chosen = (s for s in expanded.statements if s.id in selected)
    return expanded, [use for s in chosen for use in _uses_of(expanded, s, rule)]


def _uses_of(kernel: Kernel, statement: Statement, rule: SubstitutionRule) -> list[Use]:
    """The uses of a rule, in a statement for which they are accesses of an array."""
    if not any(rule.name in called_names(e) for e in statement.expressions):
        return []
    if not rule.arguments:
        return reads_of(kernel, statement, rule.name)
    access = element(rule.name, tuple(map(prim.Variable, rule.arguments)))
    as_access = {rule.name: replace(rule, expression=access)}
    changed = statement.map_expressions(lambda e: expand_in(e, as_access))
    found = reads_of(kernel, changed, rule.name)
    if any(rule.name in variable_names(i) for use in found for i in use.indices):
        raise IllegalTransformError(
            f"statement '{statement.id}' uses '{rule.name}' within its own arguments",
            instead=f"expand_subst('{rule.name}') first",
        )
    call = prim.Variable(rule.name)
    return [replace(u, text=to_text(prim.Call(call, u.indices))) for u in found]


def _with_calls(kernel: Kernel, rule: SubstitutionRule) -> Kernel:
    """The kernel where uses that stay are uses of the rule again, not accesses of an array."""

    def call(name: str, indices: Indices) -> Expression | None:
        return prim.Call(prim.Variable(name), indices) if name == rule.name and indices else None

    return map_texts(kernel, lambda e: replace_accesses(e, call), reads=True, rules=False)


def without_unused(kernel: Kernel, *names: str) -> Kernel:
    """The kernel without those of the rules ``names`` that nothing uses any more."""
    for name in dict.fromkeys(names):
        expressions = [e for s in kernel.statements for e in s.expressions]
        expressions += [r.expression for r in kernel.substitutions]
        if not any(name in called_names(e) for e in expressions):
            rules = tuple(r for r in kernel.substitutions if r.name != name)
            kernel = kernel.with_(substitutions=rules)
    return kernel


def _axis_number(rule: SubstitutionRule, axis: str | int, argument: str) -> int:
    if isinstance(axis, str):
        if axis not in rule.arguments:
            raise UnknownNameError(
                f"argument of '{rule.name}'", axis, rule.arguments, asked=argument
            )
        return rule.arguments.index(axis)
    if not 0 <= axis < len(rule.arguments):
        raise InvalidArgumentError(
            f"{argument}: '{rule.name}' has {counted(len(rule.arguments), 'argument')}; "
            f"there is no {axis}"
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
