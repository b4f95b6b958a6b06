"""Separating the first and last iterations of a loop, so that the others need no guards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arrays import TemporaryVariable
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._match import read_names
from loopkit._nodes import Expression
from loopkit._transform import transform
from loopkit._tree import Loop, Node, Tree, statements_in
from loopkit.transforms._common import is_parallel, maps_for, rewrite_statements, simplified
from loopkit.transforms._loop_nests import ancestors_of, ordered_domains


@dataclass(frozen=True)
class _Part:
    """Some iterations of the loop: ``suffix`` names copies, "" stands for the original."""

    suffix: str
    where: isl.Set


def _parts(kernel: Kernel, iname: str, domain: isl.Set, first: int, last: int) -> list[_Part]:
    """The iterations at the start, in the middle and at the end, in this order."""
    value = _sets.pw_affine(prim.Variable(iname))
    middle, at_start, at_end = _sets.universe(), list[_Part](), list[_Part]()
    if first:
        start = _sets.minimum(domain, iname).add(_sets.pw_affine(first))
        at_start = [_Part("_first", value.lt_set(start))]
        middle = value.ge_set(start)
    if last:
        end = _sets.maximum(domain, iname).sub(_sets.pw_affine(last))
        at_end = [_Part("_last", value.gt_set(end) & middle)]
        middle = middle & value.le_set(end)
    if (domain & kernel.assumptions.set & middle).is_empty():
        raise IllegalTransformError(
            f"nothing of loop '{iname}' is left between its first {first} and last {last} "
            f"iterations",
            instead="peel fewer iterations",
        )
    return [*at_start, _Part("", middle), *at_end]


def peeled(kernel: Kernel, iname: str, first: int, last: int) -> Change:
    """The change that :func:`peel_iname` makes."""
    if is_parallel(kernel, iname):
        parts = _parts(kernel, iname, kernel.domain_of([iname]), first, last)
        return _peeled_by_predicates(kernel, iname, parts)
    return _peeled_loop(kernel, iname, first, last)


# {{{ copying statements and trees


def _copies(kernel: Kernel, ids: Sequence[str], suffix: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for id_ in ids:
        names[id_] = kernel.fresh_name(id_ + suffix, names.values()) if suffix else id_
    return names


def _is_unit(kernel: Kernel, node: Node, iname: str, parallel: bool) -> bool:
    """Whether a node is to be copied as a whole."""
    if not parallel:
        return isinstance(node, Loop) and node.iname == iname
    return all(iname in kernel.statement_by_id[s].inames for s in statements_in(node))


def _copied_tree(
    kernel: Kernel,
    tree: Tree,
    iname: str,
    parallel: bool,
    copies: Sequence[tuple[Mapping[str, str], Mapping[str, str]]],
) -> Tree:
    """The tree with each longest run of units replaced by one copy per part."""
    result: list[Node] = []
    run: list[Node] = []

    def flush() -> None:
        for ids, inames in copies:
            result.extend(_renamed(node, ids, inames) for node in run)
        run.clear()

    for node in tree:
        if _is_unit(kernel, node, iname, parallel):
            run.append(node)
            if not parallel:
                flush()
            continue
        flush()
        if isinstance(node, Loop):
            body = _copied_tree(kernel, node.body, iname, parallel, copies)
            node = Loop(node.iname, body)
        result.append(node)
    flush()
    return tuple(result)


def _renamed(node: Node, ids: Mapping[str, str], inames: Mapping[str, str]) -> Node:
    if isinstance(node, str):
        return ids[node]
    body = tuple(_renamed(n, ids, inames) for n in node.body)
    return Loop(inames.get(node.iname, node.iname), body)


def _with_dependencies(
    statements: Iterable[Statement], copies: Sequence[Mapping[str, str]]
) -> tuple[Statement, ...]:
    """Statements that depend on one that was copied depend on all of its copies."""
    return tuple(
        replace(s, depends_on=s.depends_on | {n[d] for n in copies for d in s.depends_on if d in n})
        for s in statements
    )


# }}}


def _peeled_by_predicates(kernel: Kernel, iname: str, parts: Sequence[_Part]) -> Change:
    """Copies under conditions: a parallel iname has the same range for all statements."""
    ids = [s.id for s in kernel.statements if iname in s.inames]
    context = kernel.domain_of([iname]) & kernel.assumptions.set
    statements = [s for s in kernel.statements if iname not in s.inames]
    maps: list[InstanceMap] = []
    copies = []
    for part in parts:
        names = _copies(kernel, ids, part.suffix)
        copies.append((names, dict[str, str]()))
        condition = _sets.conditions(part.where.gist(context))
        added = condition.children if isinstance(condition, prim.LogicalAnd) else (condition,)
        for id_ in ids:
            statement = kernel.statement_by_id[id_]
            predicates = statement.predicates + tuple(c for c in added if c is not True)
            statements.append(replace(statement, id=names[id_], predicates=predicates))
            maps.append(InstanceMap(names[id_], id_))
    new = kernel.with_(
        tree=_copied_tree(kernel, kernel.tree, iname, True, copies),
        statements=_with_dependencies(statements, [names for names, _ in copies]),
    )
    return Change(new, tuple(maps))


def _inner_inames(kernel: Kernel, iname: str) -> tuple[str, ...]:
    """``iname`` and those inames inside its loop whose values it limits."""
    outside: set[str] = set()
    for path in kernel.paths.values():
        names = [name for name, _ in path]
        if iname in names:
            outside |= set(names[: names.index(iname)])
    inside = {i for s in kernel.statements if iname in s.inames for i in s.inames} - outside
    whole = kernel.domains[kernel.home_domain[iname]]
    group = {iname} | (set(whole.inames) & inside)
    group |= {i for i in inside if ancestors_of(kernel, [i]) & group}
    return tuple(i for i in kernel.all_inames if i in group)


def _peeled_loop(kernel: Kernel, iname: str, first: int, last: int) -> Change:
    """One loop per part, each over an iname of its own."""
    ids = [s.id for s in kernel.statements if iname in s.inames]
    group = _inner_inames(kernel, iname)
    around = frozenset.intersection(*(kernel.statement_by_id[i].inames for i in ids))
    home = kernel.domains[kernel.home_domain[iname]]
    others = frozenset(home.inames) - (around - set(group)) - {iname}
    parts = _parts(kernel, iname, home.without(others), first, last)
    # Inames of the group that other statements are inside, too, keep their values there.
    elsewhere = {i for s in kernel.statements if s.id not in ids for i in s.inames} & set(group)
    domains, homes = _without_group(kernel, group, elsewhere)
    tags = [(i, t) for i, t in kernel.tags if i not in group or i in elsewhere]
    statements = {s.id: s for s in kernel.statements}
    rules = kernel.substitutions
    maps: list[InstanceMap] = []
    copies = []
    taken: list[str] = []
    own = _own_accumulators(kernel, ids)
    temporaries = list(kernel.temporaries)
    for part in parts:
        names = _copies(kernel, ids, part.suffix)
        inames: dict[str, str] = {}
        for old in group:
            if part.suffix or old in elsewhere:
                inames[old] = kernel.fresh_name(f"{old}{part.suffix or '_0'}", taken)
                taken.append(inames[old])
        copies.append((names, inames))
        values: dict[str, Expression] = {o: prim.Variable(n) for o, n in inames.items()}
        current = kernel.with_(substitutions=rules)
        rewritten, rules = rewrite_statements(current, ids, values, inames.values(), copies=True)
        accumulators: dict[str, Expression] = {}
        for temporary in own if part.suffix else ():
            name = kernel.fresh_name(temporary.name + part.suffix, taken)
            taken.append(name)
            temporaries.append(replace(temporary, name=name))
            accumulators[temporary.name] = prim.Variable(name)
        for statement in rewritten:
            if statement.id in names:
                copy = replace(statement, id=names[statement.id])
                if accumulators:
                    copy = copy.map_expressions(lambda e, a=accumulators: substitute(e, a))
                statements[copy.id] = copy
        found = {m.new: m.values for m in maps_for(kernel, ids, values)}
        maps += [InstanceMap(new, old, found.get(old, {})) for old, new in names.items()]
        for domain in homes:
            mine = tuple(inames.get(i, i) for i in domain.inames if i in group)
            strangers = frozenset(domain.inames) - around - frozenset(group)
            everything = domain.without(strangers)
            if iname in domain.inames:
                everything = everything & part.where
            everything = everything.coalesce().remove_redundancies()
            domains.append(Domain(mine, _sets.rename(everything, inames)))
        tags += [(inames.get(i, i), t) for i, t in kernel.tags if i in group]
    new = kernel.with_(
        tree=_copied_tree(kernel, kernel.tree, iname, False, copies),
        statements=_with_dependencies(list(statements.values()), [n for n, _ in copies]),
        domains=ordered_domains(domains),
        tags=tuple(dict(tags).items()),
        temporaries=tuple(temporaries),
        substitutions=rules,
    )
    changed = {name for names, _ in copies for name in names.values()}
    return Change(simplified(new, changed), tuple(maps))


def _own_accumulators(kernel: Kernel, ids: Collection[str]) -> list[TemporaryVariable]:
    """Accumulators that only the statements ``ids`` use: each copy of these gets its own."""
    used = {
        r for s in kernel.statements if s.id not in ids for r in (s.written, *read_names(kernel, s))
    }
    return [t for t in kernel.temporaries if t.accumulates and t.name not in used]


def _without_group(
    kernel: Kernel, group: Sequence[str], elsewhere: Collection[str]
) -> tuple[list[Domain], list[Domain]]:
    """The domains without the inames that get copies, and the domains that held these.

    What shared a domain with them keeps the values that it had: a copy that does
    not run for some of these must not take them from others.
    """
    rest: list[Domain] = []
    homes: list[Domain] = []
    for domain in kernel.domains:
        members = set(domain.inames) & set(group)
        if not members:
            rest.append(domain)
            continue
        homes.append(domain)
        gone = frozenset(members) - frozenset(elsewhere)
        staying = tuple(i for i in domain.inames if i not in gone)
        if staying:
            rest.append(Domain(staying, domain.without(gone)))
    return rest, homes


@transform
def peel_iname(
    kernel: Kernel,
    iname: kind.Name,
    first: kind.Natural = 0,
    last: kind.Natural = 0,
    *,
    unchecked: bool = False,
) -> Change:
    """Give the first and last iterations of a loop code of their own.

    Before: for i in [0, n): S(i)
    After (``last=1``): for i in [0, n - 1): S(i)  and then  for i_last in [n - 1, n): S(i_last)

    What holds for all other iterations, such as that a tile is full, then needs
    no test there.  A sequential loop becomes up to three, over inames
    ``<iname>_first``, ``<iname>`` and ``<iname>_last``; inames inside whose
    values depend on it are copied in the same way.  For an iname that is a block
    or thread axis, copies of the statements get predicates on it instead: blocks
    at the edge run one copy, all others the other.

    :arg first: how many iterations at the start.
    :arg last: how many iterations at the end.
    :raises IllegalTransformError: where nothing would be left in the middle.
    """
    kernel.check_iname(iname)
    if not first and not last:
        raise IllegalTransformError(
            f"no iteration of '{iname}' is to be peeled", instead="give first= or last="
        )
    if not any(iname in s.inames for s in kernel.statements):
        raise IllegalTransformError(f"no statement is inside '{iname}'")
    return peeled(kernel, iname, first, last)
