"""Copies of the data that a tile reads: cells of an array, and values of a rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, check_known
from loopkit._expression import called_names, replace_accesses, variable_names
from loopkit._footprint import Use
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._linear import linear_in_parts
from loopkit._match import Match, matching, name_first, rules_of
from loopkit._nodes import Expression
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import swept_in
from loopkit.transforms._computed_ahead import Uses, computed_ahead, copied, without_unused
from loopkit.transforms._rule_arguments import strange_parts
from loopkit.transforms._rule_uses import expand_rules_that_use, map_texts, without_rule
from loopkit.transforms._spanning import check_outer
from loopkit.transforms._staging import Request
from loopkit.transforms._uses import (
    Given,
    Indices,
    Selected,
    element,
    reads_of,
    uses_of_array,
    uses_of_rule,
)


@transform
def add_prefetch(
    kernel: Kernel,
    var_name: kind.Use,
    sweep_inames: kind.MaybeNames = (),
    dim_arg_names: kind.MaybeNames = None,
    default_tag: kind.TagLike = "l.auto",
    *,
    temporary_name: kind.NewName = None,
    temporary_address_space: kind.Space = None,
    footprint_subscripts: kind.Subscripts = None,
    fetch_bounding_box: kind.Flag = False,
    fetch_outer_inames: kind.MaybeNames = None,
    prefetch_insn_id: kind.NewName = None,
    within: kind.Within = None,
    unchecked: bool = False,
) -> Change:
    """Stage the cells of ``var_name`` that a tile reads, and read the copy instead.

    Before::

        for k_outer
            for k_inner
                acc += a[16*i_outer + i_inner, 16*k_outer + k_inner] * ...

    After ``add_prefetch("a", ["i_inner", "k_inner"])``::

        for k_outer
            a_s[a_dim_0, a_dim_1] = a[16*i_outer + a_dim_0, 16*k_outer + a_dim_1]
            for k_inner
                acc += a_s[i_inner, k_inner] * ...

    The copy holds all cells that are read while ``sweep_inames`` run over their full constant
    ranges and all other inames are fixed.  It has an axis for each axis of the array along which
    the cells differ, with a halo where reads are shifted against each other; with strided reads,
    the cells in between are left out.  Subscripts may be clamped (``a[max(i - 1, 0)]``) or
    conditional (``a[if(i < 4, i, 7 - i)]``) if they stay at a bounded distance from an affine one.
    Cells that are not read, for instance in a partial tile, are not fetched.  With data-dependent
    subscripts (``a[p[j]]``), the copy holds all cells that assertions (``assume_within``) allow.

    The fetch is inside the loops that the footprint depends on, and no others; if such a loop is
    inside of a swept one, it is moved out first.  A swept iname that has been split means all of
    its parts.  ``fetch_outer_inames`` puts it inside further loops, and no others: these move out
    of all others, and other loops that the footprint depends on are swept.

    ``default_tag`` says how the fetch runs: ``"l.auto"`` distributes it over all threads of the
    block, neighbouring threads along the array's fastest axis, once the thread axes are known;
    ``None`` and ``"unr"`` give a plain and an unrolled loop per axis, named ``dim_arg_names``.

    The copy is in shared memory where threads fill it or read it together (``default_tag`` or a
    swept iname is a thread axis; ``fetch_outer_inames`` names axes, and those of threads not), else
    in private memory, unless ``temporary_address_space`` says which.  If it does not, later tags
    count, too: a copy that several threads fill or read together after a later step is put into
    shared memory.  Private memory is filled by its own thread: ``"l.auto"`` then means ``None``.

    ``footprint_subscripts``, a subscript or a list of them, replaces the accesses in determining
    the footprint; accesses outside of it are not replaced.  It may contain ranges, ``"i, 0:16"`` or
    ``":, j"``, and inames, also those of the text that have been split.  A subscript of
    ``var_name`` says the same: ``add_prefetch("d[:, :]")``.  ``fetch_bounding_box`` fetches all of
    the box that is inside the array.  ``within`` selects statements; without it, all but those that
    earlier steps made to copy ``var_name``.

    Of accesses with a tag, ``x$near[i]``, ``add_prefetch("x$near")`` means these alone.

    ``temporary_name`` names the copy, ``prefetch_insn_id`` the statement that fills it.

    :raises IllegalTransformError: where the footprint has no constant size, no place is
        before all readers, nothing would be replaced, or the copy would be out of date.
    """
    given, spanning = _named(var_name, footprint_subscripts)
    chosen = uses_of_array(kernel, given)
    before, kernel, var_name = kernel, chosen.kernel, chosen.name
    array = before.array(chosen.of)
    swept = swept_in(kernel, sweep_inames)
    check_outer(kernel, swept, fetch_outer_inames, "fetch_outer_inames")
    selected = matching(before, within)
    if within is None:
        # A statement that was made to copy the array goes on copying the array.
        selected -= {s.id for s in kernel.statements if s.kind == "move"}

    def find(kernel: Kernel, ids: Collection[str]) -> Uses:
        opened = expand_rules_that_use(kernel, var_name, ids)
        readers = (s for s in opened.statements if s.id in ids)
        return opened, [use for s in readers for use in reads_of(opened, s, var_name)]

    found = find(kernel, selected)
    if not found[1]:
        raise _nothing_to_replace(before, chosen, within)
    request = Request(
        base=var_name,
        id=prefetch_insn_id,
        verb="fetch",
        made_by=f"add_prefetch('{given}')",
        what=f"the prefetch of '{given}'",
        swept=swept,
        spanning=spanning,
        outer=fetch_outer_inames,
        names=dim_arg_names,
        names_argument="dim_arg_names",
        tag=parse_tag(default_tag),
        space=temporary_address_space,
        whole_box=fetch_bounding_box,
        copy=temporary_name,
        dtype=array.dtype,
        kind="move",
        array=array,
    )
    shown = partial(element, var_name)
    if any(_is_apart(use, kernel.integers, swept) for use in found[1]):
        # While that happens a[i*m + j] is f(i, j), where f(y, x) is a[y*m + x].
        rule = _rule_of(kernel, chosen, kernel.fresh_name(var_name), len(array.shape or ()) or 1)
        users = {use.statement.id for use in found[1]}
        change = computed_ahead(
            _with_calls(kernel, var_name, rule, users),
            rule,
            users,
            replace(request, array=None, may_reuse=True),
            lambda _: _nothing_to_replace(before, chosen, within),
            shown,
        )
        new = without_rule(change.kernel, rule)
        return replace(change, kernel=chosen.restored(new))
    rule = _rule_of(kernel, chosen, var_name, len(found[1][0].indices))
    order, change = copied(kernel, rule, found, find, request, shown)
    change = replace(change, kernel=chosen.restored(change.kernel))
    if order.kernel is kernel:
        return change
    first = replace(order, kernel=chosen.restored(order.kernel))
    return Change(change.kernel, parts=(first, change))


def _rule_of(kernel: Kernel, chosen: Selected, name: str, rank: int) -> SubstitutionRule:
    """The elements of an array of some rank as a substitution rule of its indices."""
    arguments = tuple(kernel.fresh_name(f"axis_{axis}", [name]) for axis in range(rank))
    return SubstitutionRule(name, arguments, element(chosen.of, (*map(prim.Variable, arguments),)))


def _with_calls(
    kernel: Kernel, name: str, rule: SubstitutionRule, users: Collection[str]
) -> Kernel:
    """The kernel in which some statements and all rules read an array by uses of a rule."""

    def called(found: str, indices: Indices) -> Expression | None:
        return prim.Call(prim.Variable(rule.name), indices) if found == name else None

    new = map_texts(kernel, lambda e: replace_accesses(e, called), users, reads=True)
    return new.with_(substitutions=(*new.substitutions, rule))


def _is_apart(use: Use, integers: frozenset[str], swept: Collection[str]) -> bool:
    """Whether an index is not affine, and has no known range, so that it becomes part of a rule.

    A data-dependent part has a range if assertions give one, unless it is constant in the tile.
    """
    unknown = [index for axis, index in enumerate(use.indices) if axis not in use.chosen]
    parts = [p for index in unknown for p in strange_parts(linear_in_parts(index), integers)]
    names = [variable_names(part) for part in parts]
    return bool(parts) and all(n <= integers or n.isdisjoint(swept) for n in names)


def _nothing_to_replace(
    kernel: Kernel, chosen: Selected, within: str | Match | None
) -> IllegalTransformError:
    name, readers = chosen.given, chosen.users(kernel)
    where = "" if within is None else f" that `within` ('{within}') selects"
    if readers:
        instead = f"'{name}' is read by {', '.join(readers)}"
    else:
        read = sorted(n for n in kernel.readers if kernel.is_array(n))
        instead = f"no statement reads '{name}' at all; read are {', '.join(read) or 'no arrays'}"
    return IllegalTransformError(
        f"the prefetch would replace nothing: no statement{where} reads '{name}'", instead=instead
    )


def _named(used: Any, subscripts: Given | None) -> tuple[str, Given | None]:
    """The array to prefetch, and the subscripts that span its footprint, from either argument."""
    name, mine = used
    if mine is not None and subscripts is not None:
        raise InvalidArgumentError(
            f"the footprint of '{name}' is given twice: with its name, and by footprint_subscripts",
            instead="give one of these",
        )
    return name, mine if mine is not None else subscripts


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

    A swept iname that the rule's value depends on, other than through an argument, becomes an
    additional argument.  Flattened row indices with symbolic row lengths are split into row and
    column: ``f(i*n + j)`` and ``f((i + 1)*n + j)`` use the rows ``i`` and ``i + 1``.  Any other
    part of an argument that is not affine (``f(place[i] + j)``) becomes part of the rule, if it is
    the same in all uses.  Sweeping what it depends on gives the value an axis.  Then only values
    that are certainly used are computed, unless their reads are in bounds, which assertions may
    imply.  Where uses differ in data-dependent parts, assertions (``assume_within``) must give the
    ranges of these.

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
    given = name_first(kernel, given)
    name = given.partition("$")[0]
    check_known("substitution rule", [name], kernel.rule_by_name)
    chosen = uses_of_rule(kernel, given)
    swept = swept_in(kernel, sweep_inames)
    check_outer(kernel, swept, precompute_outer_inames, "precompute_outer_inames")
    request = Request(
        base=chosen.name,
        id=compute_insn_id,
        verb="compute",
        made_by=f"precompute('{given if chosen.tag else name}')",
        what=f"the precomputation of '{name}'",
        swept=swept,
        spanning=spanning,
        outer=precompute_outer_inames,
        names=precompute_inames,
        names_argument="precompute_inames",
        may_reuse=True,
        storage_axes=storage_axes,
        tag=parse_tag(default_tag),
        tags={axis: parse_tag(tag) for axis, tag in (storage_axis_to_tag or {}).items()},
        space=temporary_address_space,
        whole_box=fetch_bounding_box,
        copy=temporary_name,
        dtype=dtype,
    )
    rule = chosen.kernel.rule_by_name[chosen.name]
    change = computed_ahead(
        chosen.kernel,
        rule,
        matching(kernel, within),
        request,
        partial(_nothing_to_compute, kernel, given),
        partial(prim.Call, prim.Variable(chosen.name)),
    )
    left = without_unused(change.kernel, chosen.name)
    return replace(change, kernel=without_unused(chosen.restored(left), name))


def _nothing_to_compute(kernel: Kernel, given: str, found: Sequence[Use]) -> IllegalTransformError:
    """The error where no use is selected, or none of ``found`` is in the given invocations."""
    name = given.partition("$")[0]
    others = [s.id for s in kernel.statements if name in rules_of(kernel, s)]
    instead = f"it is used by {', '.join(others)}" if others else "it is not used anywhere"
    rule = kernel.rule_by_name.get(name)
    inner = called_names(rule.expression) & kernel.rule_by_name.keys() if rule else ()
    before = (step.kernels[0] for step in kernel.history if step.kernels is not None)
    if inner and not others and any(name in rules_of(k, s) for k in before for s in k.statements):
        instead = (
            f"it is not used anywhere: precompute '{name}' before '{min(inner)}', which it uses, "
            "and which may have been staged where it was"
        )
    if found:
        instead = "uses are " + ", ".join(dict.fromkeys(use.text for use in found))
    return IllegalTransformError(
        "precompute would replace nothing: no selected statement uses "
        + (f"'{name}' in the invocations given" if found else f"'{given}'"),
        instead=instead,
    )
