"""Peeling of the first and last iterations of a loop, so that the others need no guards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError
from loopkit._expression import substitute, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, conjuncts_of
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._match import read_names
from loopkit._nodes import Expression
from loopkit._slabs import recorded_for, slabs_named, with_slabs
from loopkit._transform import transform
from loopkit._tree import LaunchBarrier, Loop, Node, Path, Tree, entries_of, statements_in
from loopkit.transforms import _common
from loopkit.transforms._loop_nests import ancestors_of, kept_part, ordered_domains


@dataclass(frozen=True)
class Part:
    """A range of the loop's iterations: ``suffix`` names its copies, "" is the original.

    A part of one iteration, at ``value``, has no loop.
    """

    suffix: str
    where: isl.Set
    value: int | None = None


def _parts(kernel: Kernel, iname: str, domain: isl.Set, first: int, last: int) -> list[Part]:
    """The iterations at the start, in the middle and at the end; none if the middle is empty."""
    value = _sets.pw_affine(prim.Variable(iname))
    middle, at_start, at_end = _sets.universe(), list[Part](), list[Part]()
    if first:
        start = _sets.minimum(domain, iname).add(_sets.pw_affine(first))
        at_start = [Part("_first", value.lt_set(start))]
        middle = value.ge_set(start)
    if last:
        end = _sets.maximum(domain, iname).sub(_sets.pw_affine(last))
        at_end = [Part("_last", value.gt_set(end) & middle)]
        middle = middle & value.le_set(end)
    if (domain & kernel.assumptions.set & middle).is_empty():
        return []
    return [*at_start, Part("", middle), *at_end]


def _parts_of_loop(kernel: Kernel, iname: str, first: int, last: int) -> list[Part]:
    is_parallel = _common.is_parallel(kernel, iname)
    domain = kernel.domain_of([iname]) if is_parallel else _values_of(kernel, iname)
    return _parts(kernel, iname, domain, first, last)


def check_peeled(kernel: Kernel, iname: str, first: int, last: int) -> list[Part]:
    """The parts of a loop; raises where nothing is left in the middle."""
    if parts := _parts_of_loop(kernel, iname, first, last):
        return parts
    raise IllegalTransformError(
        f"loop '{iname}' has no iterations between its first {first} and last {last}",
        instead="peel fewer iterations",
    )


def _peeled(kernel: Kernel, iname: str, parts: Sequence[Part]) -> Change:
    if _common.is_parallel(kernel, iname):
        return _peeled_by_predicates(kernel, iname, parts)
    return in_parts(kernel, iname, parts)


def _copied_tree(
    tree: Tree,
    is_copied: Callable[[Node], bool],
    names: Sequence[Callable[[str], str]],
    in_runs: bool,
) -> Tree:
    """The tree with a copy per part of each node that is copied, or of each run of these.

    ``names`` are those of statements and barriers in the copies.
    """
    nodes: list[Node] = []
    for copied, run in groupby(tree, is_copied):
        if copied:
            for units in [list(run)] if in_runs else [[node] for node in run]:
                nodes += (_renamed(node, name) for name in names for node in units)
            continue
        for node in run:
            if isinstance(node, Loop):
                node = Loop(node.iname, _copied_tree(node.body, is_copied, names, in_runs))
            nodes.append(node)
    return tuple(nodes)


def _renamed(node: Node, name: Callable[[str], str]) -> Node:
    if isinstance(node, Loop):
        return Loop(node.iname, tuple(_renamed(n, name) for n in node.body))
    return name(node) if isinstance(node, str) else replace(node, id=name(node.id))


def _with_copies(
    kernel: Kernel, iname: str, parts: Sequence[Part], parallel: bool
) -> tuple[Change, list[dict[str, str]]]:
    """A copy of what is inside ``iname`` for each part, and the ids of its statements by the old.

    Accumulators that no other statement uses are copied with loops.
    """
    inside = [s for s in kernel.statements if iname in s.inames]
    outside = [s for s in kernel.statements if iname not in s.inames]
    used = {name for s in outside for name in (s.written, *read_names(kernel, s))}
    own = [t for t in kernel.temporaries if t.accumulates and t.name not in used and not parallel]
    temporaries, copied, taken = list(kernel.temporaries), list(outside), set[str]()
    copies: list[dict[str, str]] = []

    def fresh(name: str, part: Part) -> str:
        new = kernel.fresh_name(name + part.suffix, taken) if part.suffix else name
        taken.add(new)
        return new

    ids = {s.id for s in inside}

    def is_copied(node: Node) -> bool:
        if parallel:  # what a barrier parts stays parted
            barriers = (leaf for leaf, _ in entries_of((node,)) if isinstance(leaf, LaunchBarrier))
            return ids.issuperset(statements_in(node)) and not any(barriers)
        return isinstance(node, Loop) and node.iname == iname

    def named(part: Part, its: Mapping[str, str], id_: str) -> str:
        return its[id_] if id_ in its else fresh(id_, part)

    for part in parts:
        copies.append({s.id: fresh(s.id, part) for s in inside})
        names = {t.name: fresh(t.name, part) for t in own}
        temporaries += [replace(t, name=names[t.name]) for t in own if part.suffix]
        renamed = {old: prim.Variable(new) for old, new in names.items() if part.suffix}
        for statement in inside:
            copy = statement.map_expressions(lambda e, new=renamed: substitute(e, new))
            copied.append(replace(copy, id=copies[-1][statement.id]))
    # Statements that depend on one that was copied depend on all of its copies.
    copied = [
        replace(s, depends_on=s.depends_on | {n[d] for d in s.depends_on & ids for n in copies})
        for s in copied
    ]
    names_of = [partial(named, part, its) for part, its in zip(parts, copies, strict=True)]
    new = kernel.with_(
        tree=_copied_tree(kernel.tree, is_copied, names_of, in_runs=parallel),
        statements=tuple(copied),
        temporaries=tuple(temporaries),
    )
    maps = tuple(InstanceMap(new, old) for names in copies for old, new in names.items())
    return Change(new, maps), copies


def _peeled_by_predicates(kernel: Kernel, iname: str, parts: Sequence[Part]) -> Change:
    """Copies under conditions: a parallel iname has the same range for all statements."""
    context = kernel.domain_of([iname]) & kernel.assumptions.set
    change, copies = _with_copies(kernel, iname, parts, parallel=True)
    changed: dict[str, Statement] = {}
    for part, ids in zip(parts, copies, strict=True):
        added = conjuncts_of(part.where.gist(context))
        for statement in (change.kernel.statement_by_id[id_] for id_ in ids.values()):
            predicates = added + statement.predicates
            changed[statement.id] = replace(statement, predicates=predicates)
    return replace(change, kernel=_common.with_statements(change.kernel, changed))


def _inner_inames(kernel: Kernel, iname: str, axes: Collection[str] = ()) -> tuple[str, ...]:
    """``iname`` and those inames inside its loop whose values it limits."""
    outside = set(axes)
    for path in kernel.paths.values():
        names = [name for name, _ in path]
        if iname in names:
            outside |= set(names[: names.index(iname)])
    inside = {i for s in kernel.statements if iname in s.inames for i in s.inames} - outside
    whole = kernel.domains[kernel.home_domain[iname]]
    group = {iname} | (set(whole.inames) & inside)
    group |= {i for i in inside if ancestors_of(kernel, [i]) & group}
    return tuple(i for i in kernel.all_inames if i in group)


def _values_of(kernel: Kernel, iname: str) -> isl.Set:
    """The values of ``iname`` inside the loops around all that is inside of it."""
    home = kernel.domains[kernel.home_domain[iname]]
    kept = inames_around(kernel, iname) - set(_inner_inames(kernel, iname))
    return home.without(frozenset(home.inames) - kept - {iname})


def inames_around(kernel: Kernel, iname: str) -> frozenset[str]:
    """The inames around all that is inside ``iname``, itself among them."""
    return frozenset.intersection(*(s.inames for s in kernel.statements if iname in s.inames))


def in_parts(
    kernel: Kernel, iname: str, parts: Sequence[Part], axes: Collection[str] = ()
) -> Change:
    """One loop per part, each over an iname of its own, or none where it has one value.

    Inames inside that depend on it get copies, too, but for the hardware ``axes``.
    """
    ids = [s.id for s in kernel.statements if iname in s.inames]
    group = _inner_inames(kernel, iname, axes)
    around = inames_around(kernel, iname)
    # Inames of the group that other statements are inside, too, keep their values there.
    elsewhere = {i for s in kernel.statements if s.id not in ids for i in s.inames} & set(group)
    domains, homes = _without_group(kernel, group, elsewhere)
    # An axis, or a loop elsewhere, that loops bound, of which there are other ones now, is as long
    # as these let it be.
    lost, all_inames = {*group} - elsewhere, {*kernel.all_inames}
    domains = [
        Domain(d.inames, kernel.domain_around({*d.inames, *d.parameters - lost} & all_inames))
        if d.parameters & lost
        else d
        for d in domains
    ]
    tags = [(i, t) for i, t in kernel.tags if i not in group or i in elsewhere]
    change, copies = _with_copies(kernel, iname, parts, parallel=False)
    taken: dict[str, str] = {}
    slabs = [row for row in kernel.slabs if row[0] not in group or row[0] in elsewhere]
    values: dict[str, Mapping[str, Expression]] = {}
    fixed: dict[str, int] = {}
    for part, names in zip(parts, copies, strict=True):
        inames: dict[str, str] = {}
        if part.value is not None:
            fixed = {iname: part.value}
        mine = [i for i in group if i not in fixed]
        for old in mine:
            if part.suffix or old in elsewhere:
                inames[old] = change.kernel.fresh_name(f"{old}{part.suffix or '_0'}", taken)
                taken[inames[old]] = old
        its = {**{old: prim.Variable(new) for old, new in inames.items()}, **fixed}
        values |= dict.fromkeys(names.values(), its)
        for domain in homes:
            own = tuple(inames.get(i, i) for i in domain.inames if i in mine)
            if not own:
                continue
            everything = domain.without(frozenset(domain.inames) - around - frozenset(group))
            if iname in domain.inames:
                everything = everything & part.where
            everything = _sets.at_values(everything, fixed).coalesce().remove_redundancies()
            domains.append(Domain(own, _sets.rename(everything, inames)))
        tags += [(inames.get(i, i), t) for i, t in kernel.tags if i in mine]
        slabs += [(inames.get(i, i), a, b) for i, a, b in kernel.slabs if i in mine]

    def path(id_: str, old: Path) -> Path:
        its = ((values[id_].get(i, prim.Variable(i)), number) for i, number in old)
        return tuple((v.name, number) for v, number in its if isinstance(v, prim.Variable))

    more = _common.with_inames(
        change.kernel,
        values,
        taken,
        path,
        domains=ordered_domains(domains),
        tags=tuple(dict(tags).items()),
        slabs=slabs_named(tuple(slabs), {}),
    )
    new = _common.with_statements(more.kernel, _guarded(kernel, more.kernel, copies, values))
    change = replace(_common.then(kernel, change, more), kernel=new)
    return replace(change, kernel=_common.simplified(new, values))


def _guarded(
    old: Kernel,
    new: Kernel,
    copies: Sequence[Mapping[str, str]],
    values: Mapping[str, Mapping[str, Expression]],
) -> dict[str, Statement]:
    """Copies with the constraints that their loops no longer imply as guards."""
    found: dict[str, Statement] = {}
    for names in copies:
        conditions: dict[frozenset[str], Guards] = {}
        for before, now in names.items():
            statement, its = new.statement_by_id[now], values[now]
            constants = {i: v for i, v in its.items() if isinstance(v, int)}
            if not constants:
                continue
            inames = old.statement_by_id[before].inames
            if inames not in conditions:
                wanted = _sets.at_values(old.domain_of(inames), constants)
                renamed = {i: v.name for i, v in its.items() if isinstance(v, prim.Variable)}
                known = new.domain_of(statement.inames) & new.assumptions.set
                conditions[inames] = conjuncts_of(_sets.rename(wanted, renamed).gist(known))
            if added := conditions[inames]:
                found[now] = replace(statement, predicates=added + statement.predicates)
    return found


def _without_group(
    kernel: Kernel, group: Sequence[str], elsewhere: Collection[str]
) -> tuple[list[Domain], list[Domain]]:
    """The domains without the inames that get copies, and the original domains of these.

    Inames that shared a domain with them keep all of their values, since a copy may run for some
    only.
    """
    gone = {*group}.difference(elsewhere)
    rest = [part for domain in kernel.domains for part in kept_part(domain, gone)]
    return rest, [d for d in kernel.domains if not {*group}.isdisjoint(d.inames)]


@transform
def peel_iname(
    kernel: Kernel,
    iname: kind.Name,
    first: kind.Natural = 0,
    last: kind.Natural = 0,
    *,
    at: kind.MaybeFormula = None,
    unchecked: bool = False,
) -> Change:
    """Give the first and last iterations of a loop separate code.

    Before: for i in [0, n): S(i)
    After (``last=1``): for i in [0, n - 1): S(i)  and then  for i_last in [n - 1, n): S(i_last)

    What holds for all other iterations, such as that a tile is full, then needs
    no test there.  A sequential loop becomes up to three, over inames
    ``<iname>_first``, ``<iname>`` and ``<iname>_last``; inames inside whose
    values depend on it are copied in the same way.  For an iname that is a block
    or thread axis, copies of the statements get predicates on it instead: blocks
    at the edge run one copy, all others the other.

    Where a split recorded ``slabs``, these are peeled if nothing is said here; if something
    is, it takes their place.

    ``at`` cuts the loop elsewhere: its iterations below ``at``, a text such as
    ``"16*k_outer + 16"`` of sizes and inames around, are the first ones.

    :arg first: how many iterations at the start.
    :arg last: how many iterations at the end.
    :arg at: in place of these, the first value of the iname that is not peeled.
    :raises IllegalTransformError: where nothing would be left in the middle.
    """
    kernel.check_iname(iname)
    recorded, plain = recorded_for(kernel, iname), with_slabs(kernel, {iname: (0, 0)})
    if at is not None:
        return _cut(plain, iname, at, first or last)
    if any(recorded) and not first and not last:
        _check_used(kernel, iname)
        # Sizes that became numbers since may have left nothing in the middle.
        parts = _parts_of_loop(plain, iname, *recorded)
        return _peeled(plain, iname, parts) if parts else Change(plain)
    if not first and not last:
        raise IllegalTransformError(
            f"no iteration of '{iname}' is to be peeled", instead="give first=, last= or at="
        )
    _check_used(kernel, iname)
    return _peeled(plain, iname, check_peeled(plain, iname, first, last))


def _check_used(kernel: Kernel, iname: str) -> None:
    if not any(iname in s.inames for s in kernel.statements):
        raise IllegalTransformError(f"no statement is inside '{iname}'")


def _cut(kernel: Kernel, iname: str, at: Expression, is_counted: int) -> Change:
    """A loop in two, of the iterations below ``at`` and of all others."""
    _check_used(kernel, iname)
    if is_counted:
        raise InvalidArgumentError(
            "first= and last= are numbers of iterations, at= is a position",
            instead="give either, or peel twice",
        )
    known = {*inames_around(kernel, iname) - {iname}, *kernel.sizes}
    for name in sorted(variable_names(at) - known):
        raise UnknownNameError("size or iname around the loop", name, known, asked="at")
    if not _sets.is_affine(at):
        raise InvalidArgumentError(f"at: {to_text(at)} is not affine in sizes and inames")
    value, start = _sets.pw_affine(prim.Variable(iname)), _sets.pw_affine(at)
    parts = [Part("_first", value.lt_set(start)), Part("", value.ge_set(start))]
    for part in parts:
        inside = kernel.domain_around(inames_around(kernel, iname)) & kernel.assumptions.set
        if (inside & part.where).is_empty():
            raise IllegalTransformError(
                f"the cut at {to_text(at)} has all iterations of '{iname}' on one side"
            )
    return _peeled(kernel, iname, parts)
