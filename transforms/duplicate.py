"""Duplicating inames, so that some statements get loops of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._match import Match, matching
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import new_name, statements_with
from loopkit.transforms._duplicating import duplicated
from loopkit.transforms._expand import expand_accumulators
from loopkit.transforms._loop_nests import check_nesting
from loopkit.transforms._tagging import with_tags


def chosen_statements(
    kernel: Kernel, inames: Iterable[str], within: str | Match | None
) -> frozenset[str]:
    """The statements inside any of ``inames`` that match; an error where there are none."""
    inames = tuple(inames)
    found = statements_with(kernel, inames)
    if within is not None:
        found &= matching(kernel, within)
    if not found:
        shown = ", ".join(f"'{i}'" for i in inames)
        raise IllegalTransformError(
            f"no statement is inside {shown}" + (f" and matches '{within}'" if within else "")
        )
    return found


def duplicate_for(
    kernel: Kernel,
    inames: Iterable[str],
    ids: frozenset[str],
    names: Mapping[str, str],
    tags: Mapping[str, Tag | None] | None = None,
) -> Change:
    """Duplicate, and check what became of the nests and the temporaries in them."""
    change = duplicated(kernel, {i: names[i] for i in inames}, ids, tags)
    check_nesting(change.kernel)
    return expand_accumulators(kernel, change)


@transform(
    inames=kind.names,
    within=kind.within,
    new_inames=kind.optional(kind.names),
    suffix=kind.optional(kind.text),
    tags=kind.optional(kind.tags_by_name),
)
def duplicate_inames(
    kernel: Kernel,
    inames: str | Iterable[str],
    within: str | Match | None,
    new_inames: str | Iterable[str] | None = None,
    suffix: str | None = None,
    tags: Mapping[str, str | Tag | None] | None = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Give the statements that match ``within`` loops of their own.

    Before: for i: (S(i); T(i))
    After (``"i", "id:T"``): for i: S(i)  and then  for i_0: T(i_0)

    :arg inames: the inames to duplicate for those statements.
    :arg within: a match string.
    :arg new_inames: names of the duplicates.
    :arg suffix: makes their names where ``new_inames`` is not given.
    :arg tags: tags for the duplicates, by the name of the original; without,
        the duplicates are plain loops.
    """
    old = names_in(inames)
    for iname in old:
        kernel.check_iname(iname)
    given = [None] * len(old) if new_inames is None else list(names_in(new_inames))
    if len(given) != len(old):
        raise InvalidArgumentError(f"{len(old)} inames are duplicated, {len(given)} names given")
    names: dict[str, str] = {}
    for iname, name in zip(old, given, strict=True):
        default = iname + suffix if suffix else f"{iname}_0"
        names[iname] = new_name(kernel, name, default, names.values())
    for iname in tags or {}:
        if iname not in names:
            raise InvalidArgumentError(
                f"a tag is given for '{iname}', which is not duplicated here"
            )
    change = duplicate_for(kernel, old, chosen_statements(kernel, old, within), names)
    if tags:
        new = with_tags(change.kernel, {names[i]: parse_tag(t) for i, t in tags.items()})
        change = Change(new, change.instances, change.moves)
    return change
