"""Inames that no statement is inside."""

from __future__ import annotations

from collections.abc import Iterable

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Domain, Kernel
from loopkit._transform import transform


def without_inames(kernel: Kernel, inames: Iterable[str]) -> Kernel:
    """The kernel without some inames that no statement is inside."""
    gone = frozenset(inames)
    domains = []
    for domain in kernel.domains:
        rest = tuple(i for i in domain.inames if i not in gone)
        used = domain.parameters & gone
        if not rest:
            continue
        if len(rest) == len(domain.inames) and not used:
            domains.append(domain)
            continue
        projected = _sets.project_out(domain.set, sorted(gone)).coalesce()
        domains.append(Domain(rest, projected))
    return kernel.with_(
        domains=tuple(domains), tags=tuple((i, t) for i, t in kernel.tags if i not in gone)
    )


@transform
def remove_unused_inames(
    kernel: Kernel, inames: kind.MaybeNames = None, *, unchecked: bool = False
) -> Change:
    """Forget inames that no statement is inside.

    Before: {[i, j]: 0 <= i < n and 0 <= j < m}, S(i)     After: {[i]: 0 <= i < n}, S(i)

    :arg inames: which ones; without, all that are unused.
    :raises IllegalTransformError: where an iname is used, or none is unused.
    """
    used = {i for s in kernel.statements for i in s.inames}
    if inames is None:
        chosen = [i for i in kernel.all_inames if i not in used]
        if not chosen:
            raise IllegalTransformError("every iname is used by some statement")
    else:
        chosen = list(names_in(inames))
        for iname in chosen:
            kernel.check_iname(iname)
            if iname in used:
                statement = next(s.id for s in kernel.statements if iname in s.inames)
                raise IllegalTransformError(
                    f"iname '{iname}' is used: statement '{statement}' is inside it"
                )
    return Change(without_inames(kernel, chosen))
