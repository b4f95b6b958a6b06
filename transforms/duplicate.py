"""Duplicating inames, so that some statements get loops of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, counted
from loopkit._kernel import Domain, Kernel
from loopkit._match import Match, matching
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, new_name, statements_with, with_names
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import ordered_domains, settled_tree
from loopkit.transforms.tag import with_tags


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


def isolated(
    kernel: Kernel, inames: Iterable[str], within: str | Match | None, taken: Iterable[str] = ()
) -> tuple[Change, Mapping[str, str]]:
    """Loops of their own for the statements that match, and the inames of these by the old ones.

    Nothing changes where all statements inside the inames match.
    """
    names = {iname: iname for iname in inames}
    ids = chosen_statements(kernel, names, within)
    if ids == statements_with(kernel, names):
        return Change(kernel), names
    for iname in names:
        names[iname] = kernel.fresh_name(iname, {*names.values(), *taken})
    return duplicated(kernel, names, ids), names


@transform
def duplicate_inames(
    kernel: Kernel,
    inames: kind.Names,
    within: kind.Within,
    new_inames: kind.MaybeNames = None,
    suffix: kind.Text = None,
    tags: kind.TagsByName = None,
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
    :raises IllegalTransformError: where bounds of inames that are not duplicated depend on
        them, or the new order of statements would change a result.
    """
    old = inames_in(kernel, inames)
    given = [None] * len(old) if new_inames is None else list(kind.names_in(new_inames))
    if len(given) != len(old):
        raise InvalidArgumentError(
            f"{counted(len(given), 'name')} given for {counted(len(old), 'iname')}"
        )
    names: dict[str, str] = {}
    for iname, name in zip(old, given, strict=True):
        default = iname + (suffix or "")
        names[iname] = new_name(kernel, name, default, names.values())
    for iname in tags or {}:
        if iname not in names:
            raise InvalidArgumentError(
                f"a tag is given for '{iname}', which is not duplicated here"
            )
    change = duplicated(kernel, names, chosen_statements(kernel, old, within))
    if tags:
        parsed = {names[i]: parse_tag(t) for i, t in tags.items()}
        change = replace(change, kernel=with_tags(change.kernel, parsed))
    return change


def duplicated(
    kernel: Kernel,
    names: Mapping[str, str],
    ids: frozenset[str],
    tags: Mapping[str, Tag | None] | None = None,
) -> Change:
    """The statements ``ids`` moved from inames to new ones of the same values."""
    _check_descendants(kernel, names, ids)
    parts = [d for domain in kernel.domains for d in _with_duplicates(kernel, domain, names, ids)]
    new_tags = (*kernel.tags, *((i, t) for i, t in (tags or {}).items() if t is not None))
    domains = ordered_domains(parts)
    slabs = (*kernel.slabs, *((names[i], *ends) for i, *ends in kernel.slabs if i in names))
    change = with_names(kernel, ids, names, domains=domains, tags=new_tags, slabs=slabs)
    return settled(kernel, replace(change, kernel=settled_tree(change.kernel)))


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
