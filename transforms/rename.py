"""Renaming of inames, and removal of inames that no statement uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, InvalidArgumentError, NothingToDoError
from loopkit._kernel import Domain, Kernel
from loopkit._match import Match
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, new_name, statements_with, then, with_names
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import settled_tree
from loopkit.transforms.arguments import Renaming, renamed
from loopkit.transforms.duplicate import chosen_statements, duplicated
from loopkit.transforms.fusion import fused_where_legal


def _renamed(kernel: Kernel, old: str, new: str) -> Change:
    """All of ``old`` called ``new``, a name that is free."""
    maps = (InstanceMap(s, s, {old: prim.Variable(new)}) for s in statements_with(kernel, [old]))
    return Change(renamed(kernel, Renaming({old: new}, {})), tuple(maps))


def _moved(kernel: Kernel, old: str, new: str, ids: frozenset[str]) -> Change:
    """The kernel with statements ``ids`` inside ``new``, an existing iname, instead of ``old``."""
    for id_ in sorted(ids):
        statement = kernel.statement_by_id[id_]
        if new in statement.inames:
            raise IllegalTransformError(
                f"'{old}' cannot be renamed to '{new}': statement '{id_}' is inside both"
            )
    for domain in kernel.domains:
        if old in domain.parameters and any(
            i in kernel.statement_by_id[id_].inames for i in domain.inames for id_ in ids
        ):
            raise IllegalTransformError(
                f"'{old}' cannot be renamed to '{new}': the bounds of '{domain.inames[0]}' "
                f"depend on '{old}'",
                instead=f"rename '{domain.inames[0]}' first",
            )
    change = with_names(kernel, ids, {old: new})
    return replace(change, kernel=settled_tree(change.kernel))


def _rename(
    kernel: Kernel,
    old: str,
    new: str,
    existing_ok: bool,
    within: str | Match | None,
    preserve_tags: bool,
) -> Change:
    kernel.check_iname(old)
    if old == new:
        raise InvalidArgumentError(f"'{old}' is called '{new}' already")
    ids = chosen_statements(kernel, [old], within)
    if new in kernel.home_domain:
        if not existing_ok:
            raise InvalidArgumentError(
                f"there is an iname '{new}' already",
                instead="existing_ok=True uses it, if it has the same values",
            )
        change = _moved(kernel, old, new, ids)
    else:
        name = new_name(kernel, new, new)
        if ids == chosen_statements(kernel, [old], None):
            return _renamed(kernel, old, name)
        tag = kernel.iname_tags.get(old) if preserve_tags else None
        return duplicated(kernel, {old: name}, ids, {name: tag})
    after = change.kernel
    if not any(old in s.inames for s in after.statements):
        change = replace(change, kernel=without_inames(after, [old]))
    return settled(kernel, change)


@transform
def rename_iname(
    kernel: Kernel,
    old_iname: kind.Name,
    new_iname: kind.Name,
    existing_ok: kind.Flag = False,
    within: kind.Within = None,
    preserve_tags: kind.Flag = True,
    *,
    unchecked: bool = False,
) -> Change:
    """Rename an iname.

    Before: for i: S(i)        After: for j: S(j)

    :arg existing_ok: ``new_iname`` may exist already, if it has the same values.  A loop over it
        in the same place is shared where that is legal; :func:`fuse_loops` says why it is not.
    :arg within: a match string: rename only around these statements, which gives
        them a loop of their own.
    :arg preserve_tags: a new iname gets the tag of the old one.
    :arg old_iname: what it is called now.
    :raises IllegalTransformError: where ``new_iname`` exists and its values are others.
    """
    change = _rename(kernel, old_iname, new_iname, existing_ok, within, preserve_tags)
    return fused_where_legal(change, new_iname)


@transform
def rename_inames(
    kernel: Kernel,
    old_inames: kind.Names,
    new_iname: kind.Name,
    existing_ok: kind.Flag = False,
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Rename several inames with the same values to one name.

    Before: for i: S(i)  and then  for j: T(j)
    After: for k: (S(k); T(k)), or for k: S(k)  and then  for k: T(k)  where that is not legal

    :arg old_inames: what they are called now.
    :arg new_iname: as ``existing_ok``, ``within`` and ``raise_on_domain_mismatch``, see
        :func:`rename_iname`.
    :raises IllegalTransformError: where their values differ.
    """
    return _in_one(kernel, old_inames, new_iname, existing_ok, within)


@transform
def rename_inames_in_batch(
    kernel: Kernel, batches: kind.Batches, *, unchecked: bool = False
) -> Change:
    """Rename groups of inames with the same values to one name each.

    Before: for i: S(i)  and then  for j: T(j)      After (``{"k": "i, j"}``): for k: (S(k); T(k))

    Loops that come to have one name are one where that is legal, as :func:`rename_iname` says.

    :arg batches: what is to be called by each name, as
        :func:`get_kennedy_unweighted_fusion_candidates` finds it.
    :raises IllegalTransformError: where the values of inames that get one name differ.
    """
    change = Change(kernel)
    for new_iname, old_inames in batches.items():
        after = change.kernel
        wish = _in_one(after, old_inames, new_iname, new_iname in after.home_domain, None)
        change = then(kernel, change, wish)
    return change


def _in_one(
    kernel: Kernel,
    old_inames: kind.Names,
    new_iname: str,
    existing_ok: bool,
    within: str | Match | None,
) -> Change:
    """Inames ``old_inames`` called by one name, and their loops fused where that is legal."""
    old = inames_in(kernel, old_inames)
    change = Change(kernel)
    for number, iname in enumerate(i for i in old if i != new_iname):
        reuse = existing_ok or number > 0 or new_iname in old
        change = then(kernel, change, _rename(change.kernel, iname, new_iname, reuse, within, True))
    return fused_where_legal(change, new_iname)


def without_inames(kernel: Kernel, inames: Iterable[str]) -> Kernel:
    """The kernel without some inames that no statement is inside."""
    gone = frozenset(inames)
    domains = []
    for domain in kernel.domains:
        rest = tuple(i for i in domain.inames if i not in gone)
        if gone & (domain.parameters | set(domain.inames)):
            domain = Domain(rest, _sets.project_out(domain.set, sorted(gone)).coalesce())
        if rest:
            domains.append(domain)
    tags = tuple((i, t) for i, t in kernel.tags if i not in gone)
    return kernel.with_(domains=tuple(domains), tags=tags)


@transform
def remove_unused_inames(
    kernel: Kernel, inames: kind.MaybeNames = None, *, unchecked: bool = False
) -> Change:
    """Remove inames that no statement is inside of.

    Before: {[i, j]: 0 <= i < n and 0 <= j < m}, S(i)     After: {[i]: 0 <= i < n}, S(i)

    :arg inames: which ones; without, all that are unused.
    :raises IllegalTransformError: where an iname is used, or none is unused.
    """
    inside = {iname: s.id for s in reversed(kernel.statements) for iname in s.inames}
    unused = [i for i in kernel.all_inames if i not in inside]
    if inames is None and not unused:
        raise NothingToDoError("every iname is used by some statement")
    chosen = unused if inames is None else inames_in(kernel, inames)
    for iname in chosen:
        if iname in inside:
            raise IllegalTransformError(
                f"iname '{iname}' is used: statement '{inside[iname]}' is inside it"
            )
    return Change(without_inames(kernel, chosen))
