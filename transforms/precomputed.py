"""precompute: values of a substitution rule are computed once, into a temporary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import pymbolic.primitives as prim

from loopkit import _arguments as kind
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
from loopkit._match import matching, rules_of
from loopkit._nodes import Expression
from loopkit._rules import expand_in, results_of
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit._types import concrete
from loopkit.transforms import _staging
from loopkit.transforms._common import inames_in, known_dtype, map_reads, new_name, then
from loopkit.transforms._free_order import moved_out
from loopkit.transforms._rule_arguments import with_free_inames, without_data
from loopkit.transforms._rule_results import made_anew, names_of_bounds, taken_apart
from loopkit.transforms._rule_uses import expand_rules_that_use
from loopkit.transforms._spanning import Given, also_swept, footprint, in_inames
from loopkit.transforms._staging import Indices, Staging, element
from loopkit.transforms._tagged import uses_of_rule
from loopkit.transforms._transfer_loops import reused_axes


@transform
def precompute(
    kernel: Kernel,
    subst_use: kind.Invocations,
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
    all array accesses of the rule are in bounds are computed.  Rules that use the rule stay
    rules, which read the copy: a chain of them is precomputed one by one, in any order.

    An iname that the rule's value depends on, without being told by an argument, is one
    more argument where it is swept.  What is not affine in an argument (``f(place[j])``,
    ``f(i*n + j)``) is part of the value instead, if it is the same in all uses: of ``f(i*n + j)``
    and ``f(i*n + j + 1)`` the arguments are ``j`` and ``j + 1``.  Sweeping what it depends on gives
    the value an axis.  Then only values that are surely used are computed, unless assertions say
    that what they read is there.  Where uses differ in what data choose, assertions
    (``assume_within``) say which values these may be.

    ``storage_axes`` lists the arguments, by name or number, that get an axis of
    the temporary (all others must have one value only); by default those that
    move.  ``precompute_inames`` names the inames of the computing statement, new ones or such as
    exist: these run over the values if they are as long, with their tags; where their loop stands
    right in front, the statement is in it.
    ``storage_axis_to_tag`` gives tags for single axes, ``precompute_outer_inames``
    the loops it is to be inside of, all others being swept, ``compute_insn_id`` its id.
    ``dtype`` is inferred if not given.

    ``subst_use`` is the rule's name, or one or more invocations of it, ``"f(i, 0:8)"``: these
    span the footprint, as ``footprint_subscripts`` do for :func:`add_prefetch`, and uses outside
    stay, such as those in which what is not affine is another.  Of uses with a tag,
    ``f$near(i)``, ``precompute("f$near", ...)`` means these alone.
    ``temporary_name`` is the copy's name; ``temporary_address_space`` says in what memory that is.

    :raises IllegalTransformError: as for :func:`add_prefetch`; where arguments differ in what is
        not affine.
    :raises UndecidedError: where data decide whether a value is used, and what it reads might not
        be there.
    """
    given, spanning = cast(tuple[str, Given | None], subst_use)
    name = given.partition("$")[0]
    if name not in kernel.rule_by_name:
        raise UnknownNameError("substitution rule", name, kernel.rule_by_name)
    swept = inames_in(kernel, sweep_inames)
    selected = matching(kernel, within)
    text, chosen = kernel, uses_of_rule(kernel, given)
    start = kernel = chosen.kernel
    rule = kernel.rule_by_name[chosen.name]
    apart = taken_apart(kernel, rule, selected) if results_of(rule.expression) else None
    if apart is not None:
        start = kernel = apart.kernel
    axes = {*swept, *(axis for axis in storage_axes or () if isinstance(axis, str))}
    expanded, uses = _all_uses(kernel, rule, selected)
    spanning = in_inames(expanded, uses, spanning)
    bound = without_data(expanded, rule, uses, axes, spanning)
    if bound.kernel is not expanded:
        if apart is not None and spanning is not None:
            raise IllegalTransformError(
                f"what is not affine decides which values of '{name}' are used, and it holds "
                "reductions",
                instead=f"precompute('{given}', ...) without an invocation; `within` selects uses",
            )
        kernel, rule, spanning = bound.kernel, bound.rule, bound.spanning
    rank = len(rule.arguments)
    kernel, rule = with_free_inames(kernel, rule, axes)
    more = tuple(map(prim.Variable, rule.arguments[rank:]))
    spanning = spanning and [(*cells, *more) for cells in spanning]
    every = uses
    if kernel is not start:
        expanded, uses = _all_uses(kernel, rule, selected)
    if not uses:
        others = [s.id for s in text.statements if name in rules_of(text, s)]
        instead = f"it is used by {', '.join(others)}" if others else "it is not used anywhere"
        if every:
            instead = "uses are " + ", ".join(dict.fromkeys(use.text for use in every))
        raise IllegalTransformError(
            "precompute would replace nothing: no selected statement uses "
            + (f"'{name}' in the invocations given" if every else f"'{given}'"),
            instead=instead,
        )
    users = {use.statement.id: use.statement for use in uses}
    if spanning is None:
        swept = also_swept(kernel, uses, swept, precompute_outer_inames)
    order = moved_out(kernel, users.values(), swept, precompute_outer_inames)
    if order.kernel is not kernel:
        kernel = order.kernel
        expanded, uses = _all_uses(kernel, rule, users)
    if bound.old is not None:
        uses = [replace(use, text=to_text(bound.use(name, use.indices))) for use in uses]
    what = f"the precomputation of '{name}'"
    box, uses = footprint(expanded, uses, swept, spanning, rule.name, what)
    box = _with_storage_axes(box, rule, storage_axes)
    tags: dict[int, Tag | None] = dict.fromkeys(range(len(box)), parse_tag(default_tag))
    for axis, tag in (storage_axis_to_tag or {}).items():
        tags[_axis_number(rule, axis, "storage_axis_to_tag")] = parse_tag(tag)
    reused = reused_axes(kernel, box, precompute_inames)
    for axis in storage_axis_to_tag or {}:
        if iname := reused.get(_axis_number(rule, axis, "storage_axis_to_tag")):
            raise InvalidArgumentError(
                f"'{iname}' exists, and has its own tag or none",
                instead=f"tag_inames('{iname}:...')",
            )
    tags |= {axis: kernel.iname_tags.get(iname) for axis, iname in reused.items()}
    moving = {i: tag for i, tag in tags.items() if box[i].is_kept} or tags
    space = _staging.choose_space(
        kernel,
        temporary_address_space,
        swept,
        list(moving.values()),
        precompute_outer_inames,
        uses,
    )
    suffix = "s" if space is AddressSpace.LOCAL else "r"
    copy = new_name(kernel, temporary_name, f"{rule.name}_{suffix}")
    statement = new_name(kernel, compute_insn_id, f"compute_{rule.name}", [copy])
    body = expand_in(rule.expression, kernel.rule_by_name)
    free = unbound_names(body) - frozenset(rule.arguments)
    held = body
    if apart is not None:
        free |= names_of_bounds(kernel, rule)
        held = apart.value(body)
    arguments = dict(zip(rule.arguments, uses[0].indices, strict=True))
    inferred = None if dtype is not None else known_dtype(kernel, substitute(held, arguments))
    staging = Staging(
        made_by=f"precompute('{given if chosen.tag else rule.name}')",
        what=what,
        base=rule.name,
        name=copy,
        dtype=dtype if inferred is None else concrete(inferred),
        box=box,
        swept=swept,
        space=space,
        tags=_staging.axis_tags(tags, space, what),
        sources=sorted(n for n in free if kernel.is_array(n)),
        needed=free & frozenset(kernel.all_inames),
        outer=precompute_outer_inames,
        axis_names=precompute_inames,
        axis_argument="precompute_inames",
        reused=reused,
        whole_box=fetch_bounding_box,
        only_used=_staging.may_leave(expanded, body),
        may_move=temporary_address_space is None,
    )

    def value(cells: Indices) -> Expression:
        return substitute(rule.expression, dict(zip(rule.arguments, cells, strict=True)))

    change = _staging.stage(expanded, staging, uses, value, statement, "user", kernel)
    if spanning is not None:
        left = bound.restored(_with_calls(change.kernel, rule), chosen.name)
        change = replace(change, kernel=left)
    if apart is not None:
        change = made_anew(apart, change, statement)
    for unused in dict.fromkeys((rule.name, chosen.name)):
        change = replace(change, kernel=_without_unused(change.kernel, unused))
    change = replace(change, kernel=_without_unused(chosen.restored(change.kernel), name))
    return replace(then(text, order, change), is_text=apart is not None)


def _all_uses(
    kernel: Kernel, rule: SubstitutionRule, selected: Collection[str]
) -> tuple[Kernel, Sequence[Use]]:
    """The kernel where the uses of a rule in the selected statements show, and these."""
    expanded = expand_rules_that_use(kernel, rule.name, selected)
    chosen = (s for s in expanded.statements if s.id in selected)
    return expanded, [use for s in chosen for use in _uses_of(expanded, s, rule)]


def _uses_of(kernel: Kernel, statement: Statement, rule: SubstitutionRule) -> list[Use]:
    """The uses of a rule, in a statement for which they are accesses of an array."""
    if not any(rule.name in called_names(e) for e in statement.expressions):
        return []
    if not rule.arguments:
        return _staging.reads_of(kernel, statement, rule.name)
    access = element(rule.name, tuple(map(prim.Variable, rule.arguments)))
    as_access = {rule.name: replace(rule, expression=access)}
    changed = statement.map_expressions(lambda e: expand_in(e, as_access))
    found = _staging.reads_of(kernel, changed, rule.name)
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

    def called(statement: Statement) -> Statement:
        return map_reads(statement, lambda e: replace_accesses(e, call))

    return kernel.with_(statements=tuple(map(called, kernel.statements)))


def _without_unused(kernel: Kernel, name: str) -> Kernel:
    """The kernel without the rule ``name``, if nothing uses it any more."""
    expressions = [e for s in kernel.statements for e in s.expressions]
    expressions += [r.expression for r in kernel.substitutions]
    if any(name in called_names(e) for e in expressions):
        return kernel
    return kernel.with_(substitutions=tuple(r for r in kernel.substitutions if r.name != name))


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
