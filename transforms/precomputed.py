"""precompute: values of a substitution rule are computed once, into a temporary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, check_known
from loopkit._expression import called_names
from loopkit._footprint import Use
from loopkit._kernel import Kernel
from loopkit._match import matching, name_first, rules_of
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import swept_in
from loopkit.transforms._computed_ahead import computed_ahead, without_unused
from loopkit.transforms._spanning import check_outer
from loopkit.transforms._staging import Request
from loopkit.transforms._uses import Given, uses_of_rule


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
    more argument where it is swept.  Rows of any length are told apart: of ``f(i*n + j)`` and
    ``f((i + 1)*n + j)`` the rows are ``i`` and ``i + 1``.  What is not affine in an argument
    otherwise (``f(place[i] + j)``) is part of the value instead, if it is the same in all uses.
    Sweeping what it depends on gives the value an axis.  Then only values that are surely used
    are computed, unless what they read is there, as assertions may say.  Where uses differ in what
    data choose, assertions (``assume_within``) say which values these may be.

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
        partial(_nothing_to_replace, kernel, given),
        partial(prim.Call, prim.Variable(chosen.name)),
    )
    left = without_unused(change.kernel, chosen.name)
    return replace(change, kernel=without_unused(chosen.restored(left), name))


def _nothing_to_replace(kernel: Kernel, given: str, found: Sequence[Use]) -> IllegalTransformError:
    """No use is selected, or of those ``found`` none is in the invocations that were given."""
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
