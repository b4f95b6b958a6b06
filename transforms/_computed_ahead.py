"""Values of a substitution rule that a tile uses, computed ahead into a temporary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, DType
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
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._nodes import Expression
from loopkit._rules import expand_in, results_of
from loopkit._tags import Tag
from loopkit._types import concrete
from loopkit.transforms import _staging
from loopkit.transforms._common import known_dtype, map_reads, new_name, then
from loopkit.transforms._rule_arguments import told_apart, with_free_inames
from loopkit.transforms._rule_results import made_anew, names_of_bounds, taken_apart
from loopkit.transforms._rule_uses import expand_rules_that_use
from loopkit.transforms._spanning import (
    Given,
    Spanned,
    also_swept,
    footprint,
    in_inames,
    within_reach,
)
from loopkit.transforms._staging import Indices, Staging, element
from loopkit.transforms._transfer_loops import reused_axes


@dataclass(frozen=True, eq=False, kw_only=True)
class Values:
    """Which values of a rule are computed ahead, where, and by which threads.

    ``spanning`` are invocations of the rule, if such say which; ``outer`` are the loops that the
    computation is to be in, ``names`` its inames, which the argument ``names_argument`` gave, and
    ``tag`` theirs, but for the axes in ``tags``.  The temporary is ``copy`` and the statement
    ``id``; where these are not given, they begin with ``base``, and with ``verb`` and that.
    ``nothing`` is the error where none of the uses is in an invocation, or there is no use, and
    ``shown`` how an error shows a use.
    """

    base: str
    verb: str
    made_by: str
    what: str
    nothing: Callable[[Sequence[Use]], IllegalTransformError]
    swept: tuple[str, ...]
    tag: Tag | None
    spanning: Given | None
    outer: str | Iterable[str] | None
    names: str | Iterable[str] | None
    names_argument: str
    space: AddressSpace | str | None
    whole_box: bool
    copy: str | None
    id: str | None
    tags: Mapping[str | int, Tag | None] = field(default_factory=dict)
    storage_axes: Sequence[str | int] | None = None
    dtype: DType | None = None
    kind: str = "user"
    shown: Callable[[str, Indices], Expression] = lambda name, cells: prim.Call(
        prim.Variable(name), cells
    )


def computed_ahead(
    kernel: Kernel, rule: SubstitutionRule, selected: Collection[str], values: Values
) -> Change:
    """Compute ``values`` of a rule ahead; uses in ``selected`` statements are of the temporary.

    Before: out[i, j] = f(i + j)      After: f_r[x] = ... for x, then out[i, j] = f_r[j]

    Uses that stay are of the rule again.
    """
    text, name, what = kernel, rule.name, values.what
    apart = taken_apart(kernel, rule, selected) if results_of(rule.expression) else None
    if apart is not None:
        kernel = apart.kernel
    start, swept = kernel, values.swept
    axes = {*swept, *(axis for axis in values.storage_axes or () if isinstance(axis, str))}
    expanded, uses = _all_uses(kernel, rule, selected)
    every = uses
    spanning = in_inames(expanded, uses, values.spanning)

    def uses_in(kernel: Kernel, rule: SubstitutionRule) -> Sequence[Use]:
        return _all_uses(kernel, rule, selected)[1]

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
        expanded, uses = _all_uses(kernel, rule, selected)
    if not uses:
        raise values.nothing(every)
    users = {use.statement.id: use.statement for use in uses}
    if spanning is None:
        swept = also_swept(kernel, uses, swept, values.outer)

    def shown(indices: Indices) -> Expression:
        return values.shown(name, bound.arguments(indices))

    def spanned(moved: Kernel) -> Spanned:
        opened, found = (expanded, uses) if moved is kernel else _all_uses(moved, rule, users)
        found = [replace(use, text=to_text(shown(use.indices))) for use in found]
        return Spanned(opened, *footprint(opened, found, swept, spanning, rule.name, what, shown))

    free = unbound_names(expand_in(rule.expression, kernel.rule_by_name))
    order, its = within_reach(kernel, users.values(), swept, values.outer, spanned, free)
    kernel, box, used = order.kernel, its.box, its.uses
    box = _with_storage_axes(box, rule, values.storage_axes)
    reused = reused_axes(kernel, box, values.names)
    tags = _tags(kernel, rule, values, len(box), reused)
    moving = {i: tag for i, tag in tags.items() if box[i].is_kept} or tags
    space = _staging.choose_space(
        kernel, values.space, swept, list(moving.values()), values.outer, used
    )
    suffix = "s" if space is AddressSpace.LOCAL else "r"
    copy = new_name(kernel, values.copy, f"{values.base}_{suffix}")
    statement = new_name(kernel, values.id, f"{values.verb}_{values.base}", [copy])
    body = expand_in(rule.expression, kernel.rule_by_name)
    free = unbound_names(body) - frozenset(rule.arguments)
    dtype = values.dtype
    if apart is not None:
        free |= names_of_bounds(kernel, rule)
    if dtype is None:
        arguments = dict(zip(rule.arguments, used[0].indices, strict=True))
        held = body if apart is None else apart.value(body)
        inferred = known_dtype(kernel, substitute(held, arguments))
        dtype = None if inferred is None else concrete(inferred)
    staging = Staging(
        made_by=values.made_by,
        what=what,
        base=rule.name,
        loops_base=values.base,
        base_in_rules=apart.other if apart is not None and kernel is apart.kernel else "",
        name=copy,
        dtype=dtype,
        box=box,
        swept=swept,
        space=space,
        tags=_staging.axis_tags(tags, space, what),
        sources=sorted(n for n in free if kernel.is_array(n)),
        needed=free & frozenset(kernel.all_inames),
        outer=values.outer,
        axis_names=values.names,
        axis_argument=values.names_argument,
        reused=reused,
        whole_box=values.whole_box,
        may_move=values.space is None,
    )

    def value(cells: Indices) -> Expression:
        return substitute(rule.expression, dict(zip(rule.arguments, cells, strict=True)))

    with_rules = text if apart is not None and kernel is apart.kernel else kernel
    change = _staging.stage(its.kernel, staging, used, value, statement, values.kind, with_rules)
    new = change.kernel
    if spanning is not None:
        new = bound.restored(_with_calls(new, rule), name)
    change = replace(change, kernel=new)
    if apart is not None:
        change = made_anew(apart, change, statement)
    new = without_unused(change.kernel, rule.name, *bound.names)
    return replace(then(text, order, replace(change, kernel=new)), is_text=apart is not None)


def _tags(
    kernel: Kernel,
    rule: SubstitutionRule,
    values: Values,
    rank: int,
    reused: Mapping[int, str],
) -> dict[int, Tag | None]:
    """The tags of the loops along the axes; of inames that exist, their own."""
    tags: dict[int, Tag | None] = dict.fromkeys(range(rank), values.tag)
    for axis, tag in values.tags.items():
        number = _axis_number(rule, axis, "storage_axis_to_tag")
        tags[number] = tag
        if number in reused:
            raise InvalidArgumentError(
                f"'{reused[number]}' exists, and has its own tag or none",
                instead=f"tag_inames('{reused[number]}:...')",
            )
    return tags | {axis: kernel.iname_tags.get(iname) for axis, iname in reused.items()}


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
