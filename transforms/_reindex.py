"""One-to-one replacement of inames: by affine maps, or by renumbering the iterations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._change import Change, Joined, Renumbered, known_of_count, known_of_sizes
from loopkit._errors import IllegalTransformError, Instance, Witness
from loopkit._expression import substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import conjuncts_of
from loopkit._hidden import OTHER, hidden, instances
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._polynomials import are_one_polynomial
from loopkit._tree import Key, Path, entries_of
from loopkit.transforms._common import simplified, statements_with, with_inames, with_statements
from loopkit.transforms._expand import settled
from loopkit.transforms._loop_nests import (
    ancestors_of,
    fresh_number,
    ordered_domains,
    renamed_domain,
    replace_inames,
)


@dataclass(frozen=True)
class Reindexing:
    """A replacement of the inames ``old`` by the inames ``new``.

    ``graph`` relates the names in ``old`` to the names in ``marks``, placeholders for the names in
    ``new``, one each: a new iname may have the name of an old one.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    marks: tuple[str, ...]
    graph: isl.Set

    @property
    def final(self) -> Mapping[str, str]:
        """New names by mark."""
        return dict(zip(self.marks, self.new, strict=True))


def marks_for(count: int) -> tuple[str, ...]:
    """Names for the graph of a :class:`Reindexing`, which no kernel has."""
    return tuple(hidden("new", number) for number in range(count))


def solved(graph: isl.Set, name: str, others: Iterable[str]) -> Expression | None:
    """``name`` as one expression of the names that are not ``others``; None if there is none."""
    line = _sets.as_dimension(_sets.project_out(graph, others), name)
    if not isl.Map.from_range(line).is_single_valued():
        return None
    function = isl.PwMultiAff.from_map(isl.Map.from_range(line)).get_pw_aff(0)
    pieces = function.coalesce().get_pieces()
    if len(pieces) != 1:
        return None
    expr = _sets.from_affine(pieces[0][1], floor=True)
    return linear(expr).expression


@dataclass(frozen=True)
class _Solution:
    """Old inames in terms of new ones, and the other way round; ``inames`` are all of both."""

    r: Reindexing
    inverse: Mapping[str, Expression]
    forward: Mapping[str, Expression]
    inames: frozenset[str]

    def new_inames(self, statement: Statement) -> tuple[str, ...]:
        """The new inames of a statement that is inside some of the old ones."""
        mine = statement.inames & set(self.r.old)
        if len(mine) == len(self.r.old):
            return self.r.new
        used = {n: variable_names(self.forward[n]) & set(self.r.old) for n in self.r.new}
        return tuple(n for n in self.r.new if used[n] <= mine)

    def check(self, statement: Statement, verb: str) -> None:
        """Refuse a statement that is inside too few of the inames that give the old ones."""
        old = statement.inames & set(self.r.old)
        known = (statement.inames - old) | set(self.new_inames(statement))
        for iname in sorted(old):
            unknown = variable_names(self.inverse[iname]) & self.inames - known
            if unknown:
                missing = sorted(set(self.r.old) - old) + sorted(unknown)
                raise IllegalTransformError(
                    f"cannot {verb} {', '.join(self.r.old)}: statement '{statement.id}' is inside "
                    f"'{iname}' but not inside '{missing[0]}'",
                    instead=f"leave it out: within='not id:{statement.id}'",
                )


def reindexed(
    kernel: Kernel, r: Reindexing, verb: str, inverse: Mapping[str, Expression] | None = None
) -> Change:
    """The kernel with inames exchanged.

    The new loops take the places of the old ones, in the order of ``r.new``;
    ``inverse`` gives the old inames where the caller knows a good form.
    """
    solution = _solve(kernel, r, verb, inverse)
    ids = statements_with(kernel, r.old)
    for statement in kernel.statements:
        if statement.id in ids:
            solution.check(statement, verb)
    replaced = replace_inames(kernel, r.old, r.marks, r.graph)
    domains = [renamed_domain(domain, r.final) for domain in replaced]
    path, ordered = _Paths(kernel, solution), ordered_domains(domains)
    values = dict.fromkeys(ids, solution.inverse)
    # All of the new inames, also those that no old one is made of.
    change = with_inames(kernel, values, r.new, path, solution.new_inames, domains=ordered)
    return settled(kernel, replace(change, kernel=simplified(change.kernel, ids)))


def _solve(
    kernel: Kernel, r: Reindexing, verb: str, inverse: Mapping[str, Expression] | None
) -> _Solution:
    names = {mark: prim.Variable(new) for mark, new in r.final.items()}
    back: dict[str, Expression] = dict(inverse or {})
    for old in r.old:
        if old in back:
            continue
        others = [o for o in r.old if o != old]
        expr = solved(r.graph, old, others)
        if expr is None:
            expr = solved(r.graph & _domain(kernel, r), old, others)
        if expr is None:
            raise _unsolvable(kernel, r, old, verb)
        back[old] = substitute(expr, names)
    forward: dict[str, Expression] = {}
    for mark, new in r.final.items():
        expr = solved(r.graph, mark, [m for m in r.marks if m != mark])
        if expr is None and (found := _apart(kernel, r, r.marks))[2] is not None:
            source = Instance(found[0].id, {n: found[2][n] for n in r.old})
            raise IllegalTransformError(
                f"cannot {verb} {', '.join(r.old)}: instance {source} has several images",
                instead="each old instance must have exactly one new one, and the other way round",
            )
        # Where a new iname is no single expression, it counts as using all old ones.
        forward[new] = prim.Sum(tuple(map(prim.Variable, r.old))) if expr is None else expr
    return _Solution(r, back, forward, frozenset({*kernel.all_inames, *r.new}))


def _domain(kernel: Kernel, r: Reindexing) -> isl.Set:
    """``{ old inames, others around all of them, parents, sizes }``: what is to be mapped."""
    inside = (kernel.statement_by_id[id_].inames for id_ in statements_with(kernel, r.old))
    around = frozenset.intersection(*inside).union(r.old)
    return kernel.domain_of(ancestors_of(kernel, around)) & kernel.assumptions.set


def _unsolvable(kernel: Kernel, r: Reindexing, name: str, verb: str) -> IllegalTransformError:
    """The error where ``name`` is no expression of the new inames.

    It shows two instances that have the same image, if there are any.
    """
    statement, twins, point = _apart(kernel, r, r.old)
    what = f"cannot {verb} {', '.join(r.old)}"
    if point is None:
        return IllegalTransformError(
            f"{what}: '{name}' is not one affine expression of {', '.join(r.new)}",
            instead="treat the pieces of the domain one by one: duplicate_inames, then a map "
            "for each",
        )
    source = Instance(statement.id, {n: point[n] for n in r.old})
    sink = Instance(statement.id, {n: point[t] for n, t in twins.items()})
    sizes = {n: point[n] for n in kernel.sizes if n in point}
    where = f" (for {', '.join(f'{n}={v}' for n, v in sizes.items())})" if sizes else ""
    return IllegalTransformError(
        f"{what}: instances {source} and {sink} have the same image{where}",
        instead="each old instance must have exactly one new one, and the other way round",
        witness=Witness("not one to one", source=source, sink=sink, parameters=sizes),
    )


def _apart(
    kernel: Kernel, r: Reindexing, names: Sequence[str]
) -> tuple[Statement, Mapping[str, str], Mapping[str, int] | None]:
    """Two instances of a statement that have one image and differ in ``names``.

    Returns the statement, the ``names`` of the second instance, and one point that holds both; None
    for the point if there are none.
    """
    statement = max(kernel.statements, key=lambda s: len(s.inames & set(r.old)))
    twins = instances(names, OTHER)
    mapped = kernel.statement_domain(statement) & _domain(kernel, r) & r.graph
    differ = [prim.Comparison(prim.Variable(n), "!=", prim.Variable(t)) for n, t in twins.items()]
    pairs = (
        mapped & _sets.rename(mapped, twins) & _sets.condition_set(prim.LogicalOr(tuple(differ)))
    )
    point = smallest_point(pairs, [*kernel.sizes, *r.old, *names, *twins.values()])
    return statement, twins, point


class _Paths:
    """New paths: new inames in the places of the old ones."""

    def __init__(self, kernel: Kernel, solution: _Solution) -> None:
        self.kernel = kernel
        self.solution = solution
        self.first_number = fresh_number(entries_of(kernel.tree))
        self.numbers: dict[tuple[str, tuple[Key, ...]], int] = {}

    def __call__(self, id_: str, path: Path) -> Path:
        solution = self.solution
        old = [key for key in path if key[0] in solution.r.old]
        if not old:
            return path
        new: list[Key] = []
        for name in solution.new_inames(self.kernel.statement_by_id[id_]):
            # Loops over the same new iname are one loop where the old loops were that its value
            # is made of, and those outside of it.
            used = variable_names(solution.forward[name])
            source = name, tuple(key for key in old if key[0] in used)
            number = self.numbers.setdefault(source, self.first_number + len(self.numbers))
            new.append((name, number))
        result: list[Key] = []
        left = len(old)
        for key in path:
            if key[0] not in solution.r.old:
                result.append(key)
                continue
            left -= 1
            take = 1 if left else len(new)
            result += new[:take]
            new = new[take:]
        return tuple(result)


INT32 = np.dtype(np.int32)


def joined(
    kernel: Kernel,
    old: tuple[str, ...],
    lows: tuple[Expression, ...],
    lengths: tuple[Expression, ...],
    name: str,
) -> Change:
    """Loops of whatever lengths as one, which counts to a size that is computed."""
    claim = Joined(old, lows, lengths, name, 0)
    whole = substitute(claim.product, kernel.computed_sizes)
    if _sets.is_affine(whole):
        return renumbered(kernel, replace(claim, count=whole))
    known = (n for n, e in kernel.computed_sizes.items() if are_one_polynomial(e, whole))
    size = next(known, None)
    if size is not None:
        return renumbered(kernel, replace(claim, count=prim.Variable(size)))
    parts = [n for length in lengths for n in sorted(variable_names(length))]
    size = kernel.fresh_name("_".join(dict.fromkeys(parts)), {name})
    types = [a.dtype or INT32 for n in parts if isinstance(a := kernel.arg_by_name[n], ValueArg)]
    argument = ValueArg(size, max(types, key=lambda t: (t.itemsize, t.kind == "i")), whole)
    claim = replace(claim, count=prim.Variable(size))
    return renumbered(kernel, claim, argument)


def apart(kernel: Kernel, inames: Collection[str]) -> Change:
    """Make the bounds of loops independent of ``inames``: guards inside replace exact bounds.

    Before: for i_outer: for i_inner in [0, min(16, n - 16*i_outer)): S
    After: for i_outer: for i_inner in [0, 16): S if 16*i_outer + i_inner < n
    """
    gone, domains = frozenset(inames), list[Domain]()
    for domain in kernel.domains:
        mine = tuple(i for i in domain.inames if i in gone)
        others = tuple(i for i in domain.inames if i not in gone)
        links = gone & {*mine, *domain.parameters}
        if not (others and links):
            domains.append(domain)
            continue
        if mine:
            domains.append(Domain(mine, domain.without(frozenset(others))))
        values = _sets.project_out(kernel.domain_of({*others, *links}), sorted(links)).coalesce()
        constant = _sets.project_out(values & kernel.assumptions.set, kernel.sizes).coalesce()
        ends = [end for i in others for end in _sets.value_range(constant, prim.Variable(i))]
        domains.append(Domain(others, values if None in ends else constant))
    new = kernel.with_(domains=ordered_domains(domains))
    changed: dict[str, Statement] = {}
    for statement in kernel.statements:
        known = new.statement_domain(statement) & new.assumptions.set
        lost = conjuncts_of(kernel.statement_domain(statement).gist(known))
        if lost:
            guards = (*lost, *statement.predicates)
            changed[statement.id] = replace(statement, predicates=guards)
    return Change(with_statements(new, changed))


def renumbered(kernel: Kernel, claim: Renumbered, size: ValueArg | None = None) -> Change:
    """The kernel with loops renumbered, and a size more that is computed."""
    old = frozenset(claim.old)
    ids = statements_with(kernel, claim.old)
    homes = {kernel.home_domain[iname] for iname in claim.old}
    domains = [d for number, d in enumerate(kernel.domains) if number not in homes]
    whole = reduce(isl.Set.intersect, (kernel.domains[number].set for number in homes))
    some, known = _sets.project_out(whole, claim.old), known_of_sizes(kernel)
    bounded = [i for domain in domains if domain.parameters & old for i in domain.inames]
    if bounded or not (whole & known).is_equal(claim.before & some & known):
        mine = [i for number in sorted(homes) for i in kernel.domains[number].inames]
        names = ", ".join((*mine, *bounded))
        raise IllegalTransformError(
            f"{' and '.join(map(repr, claim.old))} cannot be renumbered: the domains of {names} "
            "depend on each other or have holes, and their bounds are symbolic",
            instead="fix_parameters makes bounds numbers; split_iname takes any loop",
        )
    domains.insert(min(homes), Domain(claim.new, claim.after & some))
    args = kernel.args
    if size is not None:
        args = (*args, size)
        known = known_of_count(known, claim, size.name)

    def path(_: str, given: Path) -> Path:
        found: list[Key] = []
        inside = [key for key in given if key[0] in old]
        for key in given:
            if key[0] not in old:
                found.append(key)
            elif key == inside[-1]:  # the innermost one tells apart what is not all inside
                found += [(iname, key[1]) for iname in claim.new]
        return tuple(found)

    changes = {"domains": ordered_domains(domains), "args": args, "assumptions": Domain((), known)}
    values = dict.fromkeys(ids, claim.values)
    new = with_inames(kernel, values, claim.new, path, lambda _: claim.new, **changes).kernel
    return Change(new, claim=claim, is_text=True)


def with_short_subscripts(kernel: Kernel, inames: Iterable[str]) -> Change:
    """What is left to do: terms of the subscripts inside of new loops are put together."""
    return Change(simplified(kernel, statements_with(kernel, inames)))
