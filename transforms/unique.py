"""Inames of their own for reductions."""

from __future__ import annotations

from collections.abc import Hashable

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import NothingToDoError
from loopkit._kernel import Kernel, Statement
from loopkit._match import matching
from loopkit._relations import reachable
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, is_parallel, then
from loopkit.transforms.duplicate import duplicated


@transform
def make_reduction_inames_unique(
    kernel: Kernel,
    inames: kind.MaybeNames = None,
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Give reductions that share an iname inames of their own.

    Before: ``a[i] = sum(k, x[i, k])``, ``b[i] = sum(k, y[i, k])``
    After: ``a[i] = sum(k, x[i, k])``, ``b[i] = sum(k_0, y[i, k_0])``

    The first one keeps the name, if nothing else is inside the iname; tags are kept.

    :arg inames: only these.
    :arg within: a match string: only the reductions whose updates match.
    :raises IllegalTransformError: where no reduction shares an iname with anything.
    """
    ids = matching(kernel, within)
    wanted = kernel.all_inames if inames is None else inames_in(kernel, inames)
    change = Change(kernel)
    for iname in wanted:
        groups: dict[Hashable, frozenset[str]] = {}
        for update in kernel.statements:
            if update.operation is None or update.id not in ids:
                continue
            if iname in kernel.reduced_inames(update):
                key, inside = _inside(kernel, iname, update)
                groups[key] = groups.get(key, frozenset()) | inside
        users = {s.id for s in kernel.statements if iname in s.inames}
        others = users.difference(*groups.values())
        for number, group in enumerate(groups.values()):
            if number == 0 and not others:
                continue
            current = change.kernel
            new = current.fresh_name(iname)
            tags = {new: kernel.iname_tags.get(iname)}
            change = then(kernel, change, duplicated(current, {iname: new}, group, tags))
    if change.kernel is kernel:
        updates = [s.id for s in kernel.statements if s.operation is not None]
        missed = within is not None and ids.isdisjoint(updates)
        raise NothingToDoError(
            "no such reduction shares an iname with anything",
            instead=f"'{within}' matches no update; those are {', '.join(updates)}"
            if missed and updates
            else "",
        )
    return change


def _inside(kernel: Kernel, iname: str, update: Statement) -> tuple[Hashable, frozenset[str]]:
    """Which loop over ``iname`` an update is in, and the statements in it.

    A parallel iname has no loop: those then are what the update needs inside of it.
    """
    if is_parallel(kernel, iname):
        writers = kernel.writers

        def needed(id_: str) -> list[str]:
            reads = dict(kernel.reads_of(kernel.statement_by_id[id_]))
            return [w.id for n in reads for w in writers.get(n, ()) if iname in w.inames]

        return update.written, reachable([update.id], needed)
    (key,) = (k for k in kernel.paths[update.id] if k[0] == iname)
    return key, frozenset(id_ for id_, path in kernel.paths.items() if key in path)
