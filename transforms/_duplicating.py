"""New inames with the values of old ones, for some of the statements."""

from __future__ import annotations

from collections.abc import Mapping

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Domain, Kernel
from loopkit._tags import Tag
from loopkit._tree import Path, rewrite_paths
from loopkit.transforms._common import maps_for, rewrite_statements
from loopkit.transforms._loop_nests import ordered_domains, settled_tree


def duplicated(
    kernel: Kernel,
    names: Mapping[str, str],
    ids: frozenset[str],
    tags: Mapping[str, Tag | None] | None = None,
) -> Change:
    """The statements ``ids`` moved from inames to new ones of the same values."""
    _check_descendants(kernel, names, ids)
    values = {old: prim.Variable(new) for old, new in names.items()}
    statements, rules = rewrite_statements(kernel, ids, values, names.values())

    def rename(statement: str, path: Path) -> Path:
        if statement not in ids:
            return path
        return tuple((names.get(iname, iname), number) for iname, number in path)

    domains: list[Domain] = []
    for domain in kernel.domains:
        domains += _with_duplicates(kernel, domain, names, ids)
    new = kernel.with_(
        domains=ordered_domains(domains),
        statements=statements,
        substitutions=rules,
        tree=rewrite_paths(kernel.tree, rename),
        tags=(*kernel.tags, *((i, t) for i, t in (tags or {}).items() if t is not None)),
    )
    return Change(settled_tree(new), maps_for(kernel, ids, values))


def _check_descendants(kernel: Kernel, names: Mapping[str, str], ids: frozenset[str]) -> None:
    """Inames whose bounds use a duplicated one must be duplicated with it."""
    for domain in kernel.domains:
        needed = domain.parameters & names.keys()
        for child in domain.inames:
            if not needed or child in names:
                continue
            for statement in kernel.statements:
                if statement.id in ids and child in statement.inames:
                    one = min(needed)
                    raise IllegalTransformError(
                        f"the bounds of '{child}' around statement '{statement.id}' depend on "
                        f"'{one}': a duplicate of '{one}' needs one of '{child}' beside it",
                        instead=f"duplicate both: duplicate_inames(['{one}', '{child}'], ...)",
                    )


def _with_duplicates(
    kernel: Kernel, domain: Domain, names: Mapping[str, str], ids: frozenset[str]
) -> list[Domain]:
    """``domain``, and what the duplicates of its inames need."""
    old = [i for i in domain.inames if i in names]
    if not old:
        return [domain]
    fresh = [names[i] for i in old]
    parts = [Domain(i, s) for i, s in _sets.factors(domain.set, domain.inames)]
    if len(parts) > 1:
        return [d for part in parts for d in _with_duplicates(kernel, part, names, ids)]
    copy = _sets.rename(domain.set, names)
    if len(old) == len(domain.inames):
        return [domain, Domain(tuple(fresh), copy)]
    # The copies share inames with the originals.  Where these are around every copied statement
    # they serve as parameters; else one set holds all, and projections of it are what is needed.
    rest = set(domain.inames) - set(old)
    inside = [s for s in kernel.statements if s.id in ids and s.inames & set(old)]
    if domain.parameters & names.keys() or all(rest <= s.inames for s in inside):
        return [domain, Domain(tuple(fresh), copy)]
    return [Domain((*domain.inames, *fresh), domain.set & copy)]
