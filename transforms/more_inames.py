"""Statements inside more inames than their text needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopkit import _arguments as kind
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._match import matching
from loopkit._relations import grouped
from loopkit._tags import GroupAxis, LocalAxis
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, with_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import settled_tree
from loopkit.transforms.fusion import fused_where_legal


@transform
def add_inames_to_insn(
    kernel: Kernel, inames: kind.Names, insn_match: kind.Within, *, unchecked: bool = False
) -> Change:
    """Put statements inside inames that they do not need: they run once for each value.

    Before: t = x[0]  and then  for i: y[i] = t*a[i]
    After (``"i", "writes:t"``): for i: (t = x[0]; y[i] = t*a[i])

    What runs more often must not show: its result stays in a temporary, and is no update.  A loop
    that stands beside one over the same iname becomes part of that where it is legal.

    :arg inames: inames that exist, with those that their bounds depend on.
    :arg insn_match: a match string.
    :raises IllegalTransformError: where the statements are inside of them already, or what they
        do more often could be seen.
    """
    wanted = inames_in(kernel, inames)
    if not wanted:
        raise InvalidArgumentError("inames names no iname")
    ids = matching(kernel, insn_match)
    added = {s.id: frozenset(wanted) - s.inames for s in kernel.statements if s.id in ids}
    if not any(added.values()):
        shown = ", ".join(f"'{i}'" for i in wanted)
        raise IllegalTransformError(f"what matches '{insn_match}' is inside of {shown} already")
    return _inside(kernel, {id_: more for id_, more in added.items() if more})


@transform
def add_inames_for_unused_hw_axes(
    kernel: Kernel, within: kind.Within = None, *, unchecked: bool = False
) -> Change:
    """Put statements inside the parallel inames of the axes that others use, and they do not.

    Before: t = x[0]  and  y[threadIdx.x] = t
    After: t = x[0] for each threadIdx.x  and  y[threadIdx.x] = t

    That concerns statements whose results stay in temporaries.  Others run once along an axis
    on which they have no iname, as they should.

    :arg within: a match string: only these statements.
    :raises IllegalTransformError: where every such statement is inside an iname of each axis, or
        several inames are on an axis that one lacks.
    """
    ids = matching(kernel, within)
    on_axis = grouped((t, i) for i, t in kernel.tags if isinstance(t, (GroupAxis, LocalAxis)))
    added: dict[str, frozenset[str]] = {}
    for statement in kernel.statements:
        stays = statement.written in kernel.temporary_by_name and statement.operation is None
        if statement.id not in ids or not stays:
            continue
        mine = {kernel.iname_tags.get(i) for i in statement.inames}
        lacking = [(tag, found) for tag, found in on_axis.items() if tag not in mine]
        for tag, found in lacking:
            if len(found) > 1:
                raise IllegalTransformError(
                    f"'{statement.id}' has no iname on axis {tag}, and {len(found)} are there: "
                    f"{', '.join(found)}",
                    instead=f"say which: add_inames_to_insn('{found[0]}', 'id:{statement.id}')",
                )
        if lacking:
            added[statement.id] = frozenset(found[0] for _, found in lacking)
    if not added:
        raise IllegalTransformError(
            "no statement that sets a temporary lacks an iname on an axis that others use"
        )
    return _inside(kernel, added)


def _inside(kernel: Kernel, added: Mapping[str, frozenset[str]]) -> Change:
    """Statements, by their ids, inside more inames."""
    changed = {}
    for id_, more in added.items():
        statement = kernel.statement_by_id[id_]
        inames = statement.inames | more
        for iname in sorted(more):
            missing = sorted(kernel.parents_of(iname) - inames)
            if missing:
                raise IllegalTransformError(
                    f"'{id_}' cannot be inside '{iname}' alone: the bounds of that depend on "
                    f"'{missing[0]}'",
                    instead=f"add_inames_to_insn('{missing[0]}, {iname}', 'id:{id_}')",
                )
        changed[id_] = replace(statement, inames=inames)
    new = settled_tree(with_statements(kernel, changed))
    change = settled(kernel, Change(new, tuple(InstanceMap(id_, id_) for id_ in added)))
    for iname in sorted(frozenset().union(*added.values())):
        change = fused_where_legal(change, iname)
    return change
