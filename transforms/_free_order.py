"""Loops that come to stand outside of those that their bounds depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._tree import Path, common_prefix, path_inames, rewrite_paths
from loopkit.transforms._common import with_names
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import kept_part, ordered_domains


def in_order(kernel: Kernel, inames: Sequence[str]) -> Change:
    """The loops over ``inames`` in this order, in the places that they hold now."""
    rank = {iname: number for number, iname in enumerate(inames)}

    def reorder(statement: str, path: Path) -> Path:
        keys = iter(sorted((k for k in path if k[0] in rank), key=lambda k: rank[k[0]]))
        return tuple(next(keys) if key[0] in rank else key for key in path)

    change = freely_nested(kernel.with_(tree=rewrite_paths(kernel.tree, reorder)))
    return settled(kernel, change)


def moved_out(
    kernel: Kernel,
    users: Iterable[Statement],
    swept: Collection[str],
    outer: str | Iterable[str] | None,
    needed: Collection[str],
) -> Change:
    """The kernel where a copy for ``users`` has a place in front of the loops that it serves.

    Of the loops that all users share, those over ``outer`` come to stand outside of all others.
    Where nobody says which these are, those over ``needed`` inames move out of ``swept`` ones and
    of what is in these, except of loops whose length is no number: what a reduction holds inside
    of such a loop would have no size outside of it.
    """
    shared = path_inames(common_prefix([kernel.paths[user.id] for user in users]))
    if outer is not None:
        named = names_in(outer)
        front = [i for i in shared if i in named and i not in swept]
    else:
        first = next((n for n, i in enumerate(shared) if i in swept), len(shared))
        last = max((n for n, i in enumerate(shared) if i in needed), default=-1)
        front = [
            i
            for n, i in enumerate(shared[: last + 1])
            if i not in swept and (n < first or i in needed or None in kernel.range_of(i))
        ]
    wanted = [*front, *(i for i in shared if i not in front)]
    return Change(kernel) if wanted == list(shared) else in_order(kernel, wanted)


def freely_nested(kernel: Kernel) -> Change:
    """The kernel with one domain for loops of which an outer one depends on an inner one.

    Before: { [i]: 0 <= i < n }, { [j]: 0 <= j <= i }
    After: { [i, j]: 0 <= i < n and 0 <= j <= i }, which bounds either loop outside of the other.

    Statements that are inside some of these loops only keep the values that these have around
    them: if need be, by inames of their own for those whose loops changed places.
    """
    movers = {s.id for s in kernel.statements if _turned(kernel, s.id)}
    if not movers:
        return Change(kernel)
    inames = _tied(kernel, movers)
    around = (kernel.statement_by_id[id_].inames for id_ in movers)
    outside = frozenset.intersection(*around) - inames
    merged = kernel.with_(domains=_with_one_domain(kernel, inames, outside, {}))
    others = [s for s in kernel.statements if s.id not in movers and s.inames & inames]
    context = kernel.assumptions.set
    if all(
        (merged.domain_around(s.inames) & context).is_equal(
            kernel.domain_around(s.inames) & context
        )
        for s in others
    ):
        return Change(merged)
    shared = inames & frozenset().union(*(s.inames for s in others))
    names: dict[str, str] = {}
    for iname in (i for i in kernel.all_inames if i in shared):
        names[iname] = kernel.fresh_name(iname, names.values())
    domains = _with_one_domain(kernel, inames, outside, names)
    tags = (*kernel.tags, *((names[i], t) for i, t in kernel.tags if i in names))
    return with_names(kernel, movers, names, domains=domains, tags=tags)


def _turned(kernel: Kernel, statement: str) -> frozenset[str]:
    """The inames around a statement that stand outside of a parent, and these parents."""
    inames = path_inames(kernel.paths[statement])
    found: set[str] = set()
    for position, iname in enumerate(inames):
        later = kernel.parents_of(iname) & {*inames[position + 1 :]}
        if later:
            found |= {iname, *later}
    return frozenset(found)


def _tied(kernel: Kernel, movers: Collection[str]) -> frozenset[str]:
    """The loops around ``movers`` that are to be of one domain.

    Those that changed places, and what is inside of these and depends on them.  What stays
    outside of them is a parameter of theirs.
    """
    found = frozenset().union(*(_turned(kernel, id_) for id_ in movers))
    size = 0
    while size < len(found):
        size = len(found)
        homes = {kernel.home_domain[i] for i in found}
        for id_ in movers:
            inames = path_inames(kernel.paths[id_])
            first = min((n for n, i in enumerate(inames) if i in found), default=len(inames))
            found |= {
                i
                for i in inames[first:]
                if kernel.home_domain[i] in homes or kernel.parents_of(i) & found
            }
    return found


def _with_one_domain(
    kernel: Kernel, inames: frozenset[str], outside: frozenset[str], names: dict[str, str]
) -> tuple[Domain, ...]:
    """The domains, one of them for all of ``inames``; those in ``names`` stay, and have copies.

    It is one for each value of the inames ``outside``.
    """
    homes = sorted({kernel.home_domain[i] for i in inames})
    own: list[str] = []
    together = _sets.universe()
    result: list[Domain] = []
    for number, domain in enumerate(kernel.domains):
        if number not in homes:
            result.append(domain)
            continue
        mine = [i for i in domain.inames if i in inames]
        own += (names.get(i, i) for i in mine)
        together = together & domain.without(frozenset(domain.inames) - inames - outside)
        result += kept_part(domain, inames - names.keys())
    together = together.coalesce().remove_redundancies()
    result.append(Domain(tuple(own), _sets.rename(together, names)))
    return ordered_domains(result)
