"""Separate loops for some statements or reductions, and loops written out as statements."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, NothingToDoError, counted
from loopkit._expression import to_text
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._match import Match, matching
from loopkit._relations import reachable
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import (
    check_is_loop,
    inames_in,
    is_parallel,
    new_name,
    statements_with,
    then,
    with_names,
)
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import extent, hull, ordered_domains, settled_tree
from loopkit.transforms.slabs import Part, in_parts, inames_around
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
    """Give the statements that match ``within`` separate loops over new inames.

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
                        f"'{one}': duplicating '{one}' also needs a duplicate of '{child}'",
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


@transform
def make_reduction_inames_unique(
    kernel: Kernel,
    inames: kind.MaybeNames = None,
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Give reductions that share an iname separate inames.

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


MOST = 1024


@transform
def unroll(kernel: Kernel, iname: kind.Name, *, unchecked: bool = False) -> Change:
    """Replace a loop by a copy of its statements for each iteration.

    Before: for i in [0, 3): S(i)        After: S(0)  and then  S(1)  and then  S(2)

    A loop that is tagged ``unr`` stays one, which the generated code writes out; here the
    iterations become statements of their own, which further steps can tell apart.

    :arg iname: a loop whose values lie between two constants, at most 1,024 of them.
    :raises IllegalTransformError: where the values have no such bounds.
    """
    kernel.check_iname(iname)
    check_is_loop(kernel, iname)
    if not any(iname in s.inames for s in kernel.statements):
        raise IllegalTransformError(f"no statement is inside '{iname}'")
    values = _values_taken(kernel, iname)
    parts = [Part(f"_{n}" if n else "", _sets.equality(iname, v), v) for n, v in enumerate(values)]
    axes = [i for i in inames_around(kernel, iname) if is_parallel(kernel, i)]
    return in_parts(kernel, iname, parts, axes)


def _values_taken(kernel: Kernel, iname: str) -> list[int]:
    """The values that the loop takes."""
    low, high = kernel.range_around(iname)
    if low is None or high is None:
        found = extent(kernel, iname)
        shown = f" but {to_text(found[1])}" if found else ""
        raise IllegalTransformError(
            f"loop '{iname}' has no constant number of iterations{shown}",
            instead=f"a part of it has: split_iname('{iname}', 4).unroll('{iname}_inner')",
        )
    if high - low >= MOST:
        raise IllegalTransformError(
            f"loop '{iname}' has {high - low + 1:,} iterations",
            instead=f"at most {MOST:,} are written out",
        )
    taken = hull(kernel, iname)
    return [v for v in range(low, high + 1) if not (taken & _sets.equality(iname, v)).is_empty()]
