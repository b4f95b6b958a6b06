"""Domains and paths, as the loop transforms change them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._errors import IllegalTransformError
from loopkit._hidden import OTHER, instance
from loopkit._kernel import Domain, Kernel
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._places import one_loop_per_statement
from loopkit._relations import reachable
from loopkit._simplify import simplify
from loopkit._tree import Entry, LaunchBarrier, Path, build, common_prefix, entries_of, path_inames


def ancestors_of(kernel: Kernel, inames: Iterable[str]) -> frozenset[str]:
    """``inames`` and all inames that their bounds need."""
    return reachable(inames, kernel.parents_of)


def kept_part(domain: Domain, gone: Collection[str]) -> list[Domain]:
    """A domain without some of its inames; none where it has no others."""
    kept = tuple(i for i in domain.inames if i not in gone)
    if kept == domain.inames:
        return [domain]
    return [Domain(kept, domain.without(frozenset(domain.inames) - {*kept}))] if kept else []


def renamed_domain(domain: Domain, names: Mapping[str, str]) -> Domain:
    """A domain with other names for some of its inames, and of those that it depends on."""
    inames = tuple(names.get(iname, iname) for iname in domain.inames)
    return Domain(inames, _sets.rename(domain.set, names))


def ordered_domains(domains: Sequence[Domain]) -> tuple[Domain, ...]:
    """``domains`` with each behind those that hold its parents; otherwise in order."""
    home = {iname: number for number, d in enumerate(domains) for iname in d.inames}
    result: list[Domain] = []
    done: set[int] = set()

    def visit(number: int) -> None:
        if number in done:
            return
        done.add(number)
        for parent in sorted(home[p] for p in domains[number].parameters if p in home):
            visit(parent)
        result.append(domains[number])

    for number in range(len(domains)):
        visit(number)
    return tuple(result)


def replace_inames(
    kernel: Kernel,
    old: Sequence[str],
    new: Sequence[str],
    graph: isl.Set,
    box: isl.Set | None = None,
    *,
    box_is_all: bool = False,
) -> tuple[Domain, ...]:
    """The domains after inames ``old`` became ``new``.

    ``graph`` relates the two; ``box`` constrains the new ones further, in their
    home domain only.  With ``box_is_all`` it alone says which values they have:
    a simpler form of what ``graph`` would say.  Domains that hold some of
    ``old`` are merged.
    """
    gone = frozenset(old)
    homes = sorted({kernel.home_domain[name] for name in old})
    home_set = _sets.universe() if box_is_all else graph
    for number in homes:
        home_set = home_set & kernel.domains[number].set
    if box is not None:
        home_set = home_set & box
    home_set = _sets.project_out(home_set, old).coalesce().remove_redundancies()
    inames: list[str] = []
    for number in homes:
        for name in kernel.domains[number].inames:
            if name not in gone:
                inames.append(name)
            elif not set(new) <= set(inames):
                inames += new
    result: list[Domain] = []
    for number, domain in enumerate(kernel.domains):
        if number == homes[-1]:
            result.append(Domain(tuple(inames), home_set))
        elif number in homes:
            continue
        elif domain.parameters & gone:
            inner = _sets.project_out(domain.set & graph, old).coalesce()
            result.append(Domain(domain.inames, inner.remove_redundancies()))
        else:
            result.append(domain)
    return ordered_domains(result)


def hull(kernel: Kernel, iname: str) -> isl.Set:
    """``{ iname, sizes }``: the values that ``iname`` takes over all of the kernel, exactly."""
    domain = kernel.domain_of(ancestors_of(kernel, [iname])) & kernel.assumptions.set
    return _sets.project_onto(domain, {iname, *kernel.sizes})


def _bound(function: isl.PwAff, kind: type) -> Expression:
    """An expression that bounds ``function``, equal to it where that is one expression."""
    pieces = [aff for _, aff in function.coalesce().get_pieces()]
    domain = function.domain()
    affs = [isl.PwAff.from_aff(aff) for aff in pieces]
    for aff, pw in zip(pieces, affs, strict=True):
        worse = pw.lt_set(function) if kind is prim.Max else pw.gt_set(function)
        if (worse & domain).is_empty():
            return _sets.from_affine(aff)
    return kind(tuple(_sets.from_affine(aff) for aff in pieces))


def is_bounded(domain: isl.Set, iname: str) -> bool:
    """Whether ``iname`` has a lower and an upper bound in terms of the other names."""
    if domain.find_dim_by_name(_sets.PARAM, iname) < 0:
        return False
    line = _sets.as_dimension(domain, iname)
    sets = isl.dim_type.set
    return bool(line.dim_has_lower_bound(sets, 0) and line.dim_has_upper_bound(sets, 0))


def extent(kernel: Kernel, iname: str) -> tuple[Expression, Expression] | None:
    """The smallest value and the number of values of ``iname``, as expressions over sizes.

    A constant length that holds for all sizes is preferred.  None where the
    iname has no bounds that depend on sizes alone.
    """
    domain = hull(kernel, iname)
    if domain.is_empty() or not is_bounded(domain, iname):
        return None
    variable = prim.Variable(iname)
    low: Expression = _sets.minimum_value(domain, variable)
    high: Expression = _sets.maximum_value(domain, variable)
    try:
        if low is None:
            low = _bound(_sets.minimum(domain, iname), prim.Min)
        if high is None:
            high = _bound(_sets.maximum(domain, iname), prim.Max)
    except _sets.UnboundedError:
        # Bounded by names that are themselves unbounded for some sizes.
        return None
    length = prim.Sum((high, prim.Product((-1, low)), 1))
    length = simplify(length)
    return low, linear(length).expression if _sets.is_affine(length) else length


def extent_or(
    kernel: Kernel, iname: str, why: str, instead: str = ""
) -> tuple[Expression, Expression]:
    """Like :func:`extent`; where there is none, an :class:`IllegalTransformError` says ``why``."""
    found = extent(kernel, iname)
    if found is None:
        raise IllegalTransformError(why, instead=instead)
    return found


def offset(value: Expression, low: Expression) -> Expression:
    """How far a value is from the smallest one."""
    return prim.Sum((value, prim.Product((-1, low))))


def longest_run(kernel: Kernel, iname: str) -> int | None:
    """The largest number of iterations that one loop over ``iname`` makes; None if unbounded."""
    domain = kernel.domain_of(ancestors_of(kernel, [iname])) & kernel.assumptions.set
    if domain.is_empty():
        return 0
    other = instance(iname, OTHER)
    both = domain & _sets.rename(domain, {iname: other})
    distance = prim.Sum((prim.Variable(iname), prim.Product((-1, prim.Variable(other)))))
    longest = _sets.maximum_value(both, distance)
    return None if longest is None else longest + 1


def settled_tree(kernel: Kernel) -> Kernel:
    """The kernel with a tree that fits its tags.

    Parallel inames are taken out of all paths.  A sequential iname that a path
    lacks is put in: inside the loops that its bounds depend on and those that
    are shared with statements outside it, else as far out as the order of the
    domains says.  Loops tagged ``ilp`` are the innermost ones, one for each statement.
    """
    parallel = {i for i, tag in kernel.tags if tag.is_parallel}
    entries: list[Entry] = [
        (leaf, tuple(key for key in path if key[0] not in parallel))
        for leaf, path in entries_of(one_loop_per_statement(kernel).tree)
    ]
    lacking = (_inames(kernel, leaf) - {*path_inames(path)} for leaf, path in entries)
    missing = frozenset().union(*lacking) - parallel
    for iname in (name for name in kernel.all_inames if name in missing):
        entries = _with_loop(kernel, entries, iname)
    return kernel.with_(tree=build(entries))


def fresh_number(entries: Iterable[Entry]) -> int:
    """A loop number that no path uses."""
    return 1 + max((number for _, path in entries for _, number in path), default=0)


def _inames(kernel: Kernel, leaf: LaunchBarrier | str) -> frozenset[str]:
    """The inames that a leaf of the tree is inside of, or may be: none, of a barrier."""
    return kernel.statement_by_id[leaf].inames if isinstance(leaf, str) else frozenset()


def _with_loop(kernel: Kernel, entries: list[Entry], iname: str) -> list[Entry]:
    number = fresh_number(entries)
    outside = [path for leaf, path in entries if iname not in _inames(kernel, leaf)]
    blocked = {key for path in outside for key in path}
    parents = kernel.parents_of(iname)
    rank = {name: i for i, name in enumerate(kernel.all_inames)}
    result: list[Entry] = []
    for leaf, path in entries:
        inames = [name for name, _ in path]
        if iname not in _inames(kernel, leaf) or iname in inames:
            result.append((leaf, path))
            continue
        at = 0
        for position, key in enumerate(path):
            if key in blocked or key[0] in parents:
                at = position + 1
        while at < len(path) and rank[inames[at]] < rank[iname]:
            if iname in kernel.parents_of(inames[at]):
                break
            at += 1
        result.append((leaf, (*path[:at], (iname, number), *path[at:])))
    return result


def check_nesting(kernel: Kernel) -> None:
    """Refuse a tree where a loop stands outside of one that its bounds depend on."""
    seen: set[tuple[str, ...]] = set()
    for statement in kernel.statements:
        path = kernel.paths[statement.id]
        inames = tuple(iname for iname, _ in path)
        if inames in seen and not kernel.loaded_bounds(inames):
            continue
        seen.add(inames)
        for position, iname in enumerate(inames):
            for parent in sorted(kernel.parents_of(iname) & set(inames[position + 1 :])):
                raise IllegalTransformError(
                    f"loop '{iname}' cannot be outside of loop '{parent}': its bounds depend on "
                    f"'{parent}'",
                    instead=f"keep '{parent}' before '{iname}'",
                )
            for name in kernel.loaded_bounds([iname]):
                _check_loaded(kernel, iname, name, path[: position + 1])


def _check_loaded(kernel: Kernel, iname: str, name: str, path: Path) -> None:
    """A loop whose bounds are loaded must stand where their writer stands."""
    for writer in kernel.writers.get(name, ()):
        mine = common_prefix([kernel.paths[writer.id], path])
        around, kept = path_inames(kernel.paths[writer.id]), path_inames(mine)
        lost = [i for i in around if i not in kept and i in path_inames(path)]
        if lost:
            raise IllegalTransformError(
                f"loop '{iname}' takes its bounds from '{name}', which statement "
                f"'{writer.id}' loads once per '{lost[0]}': it must stay inside that loop",
            )
