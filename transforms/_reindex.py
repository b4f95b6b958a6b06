"""Exchanging some inames for others, one to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError, Instance, Witness
from loopkit._expression import substitute, variable_names
from loopkit._hidden import OTHER, hidden, instances
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._tree import Key, Path, flatten, rewrite_paths
from loopkit.transforms._common import rewrite_statements, simplified, statements_with
from loopkit.transforms._expand import expand_accumulators
from loopkit.transforms._nesting import (
    ancestors_of,
    check_nesting,
    fresh_number,
    ordered_domains,
    replace_inames,
)
from loopkit.transforms._witness import smallest_point


@dataclass(frozen=True)
class Reindexing:
    """New inames for old ones.

    ``graph`` relates the names in ``old`` to the names in ``marks``, one of
    which stands for each of ``new``: a new iname may have an old one's name.
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


def _differ(names: Sequence[str], twins: Mapping[str, str]) -> isl.Set:
    either = tuple(prim.Comparison(prim.Variable(n), "!=", prim.Variable(twins[n])) for n in names)
    return _sets.condition_set(either[0] if len(either) == 1 else prim.LogicalOr(either))


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


def check_bijective(kernel: Kernel, r: Reindexing, verb: str) -> None:
    """Refuse a graph that loses instances, makes several of one, or one of several."""
    domain = kernel.domain_of(ancestors_of(kernel, r.old)) & kernel.assumptions.set
    statement = _example(kernel, r)
    somewhere = kernel.statement_domain(statement) & domain

    def smallest(where: isl.Set, names: Sequence[str]) -> dict[str, int]:
        # Sizes for which the statement runs at all, if there are such.
        better = where & somewhere
        return smallest_point(where if better.is_empty() else better, kernel.sizes, names)

    lost = domain - _sets.project_out(r.graph, r.marks)
    if not lost.is_empty():
        point = smallest(lost, r.old)
        _refuse(kernel, r, verb, [point], "has no image, so that it would never run")
    both = domain & r.graph
    twins = instances(r.marks, OTHER)
    several = both & _sets.rename(r.graph, twins) & _differ(r.marks, twins)
    if not several.is_empty():
        point = smallest(several, [*r.old, *r.marks, *twins.values()])
        images = [
            "(" + ", ".join(str(point[m]) for m in ms) + ")" for ms in (r.marks, twins.values())
        ]
        _refuse(
            kernel,
            r,
            verb,
            [point],
            f"has several images, {' and '.join(images)}: it would run twice",
        )
    others = instances(r.old, OTHER)
    merged = both & _sets.rename(both, others) & _differ(r.old, others)
    if not merged.is_empty():
        point = smallest(merged, [*r.old, *others.values()])
        second = {**point, **{old: point[twin] for old, twin in others.items()}}
        _refuse(kernel, r, verb, [point, second], "have the same image")


def _example(kernel: Kernel, r: Reindexing) -> Statement:
    """A statement inside as many of the old inames as any."""
    return max(kernel.statements, key=lambda s: len(s.inames & set(r.old)))


def _refuse(
    kernel: Kernel, r: Reindexing, verb: str, points: Sequence[Mapping[str, int]], why: str
) -> None:
    id_ = _example(kernel, r).id
    instances = [Instance(id_, {n: p[n] for n in r.old}) for p in points]
    sizes = {n: points[0][n] for n in kernel.sizes if n in points[0]}
    where = f" (for {', '.join(f'{n}={v}' for n, v in sizes.items())})" if sizes else ""
    shown = " and ".join(str(i) for i in instances)
    raise IllegalTransformError(
        f"cannot {verb} {', '.join(r.old)}: {'instances' if len(points) > 1 else 'instance'} "
        f"{shown} {why}{where}",
        instead="each old instance must have exactly one new one, and the other way round",
        witness=Witness(
            "not one to one",
            source=instances[0],
            sink=instances[-1],
            parameters=sizes,
        ),
    )


@dataclass(frozen=True)
class _Solution:
    """Old inames in terms of new ones, and the other way round."""

    r: Reindexing
    inverse: Mapping[str, Expression]
    forward: Mapping[str, Expression]

    def new_inames(self, statement: Statement) -> tuple[str, ...]:
        """The new inames of a statement that is inside some of the old ones."""
        mine = statement.inames & set(self.r.old)
        if len(mine) == len(self.r.old):
            return self.r.new
        return tuple(n for n in self.r.new if self._old_names(n) <= mine)

    def _old_names(self, new: str) -> frozenset[str]:
        return variable_names(self.forward[new]) & set(self.r.old)

    def check(self, statement: Statement, verb: str) -> None:
        """Refuse a statement that is inside too few of the inames."""
        mine = statement.inames & set(self.r.old)
        new = set(self.new_inames(statement))
        for iname in sorted(mine):
            if not variable_names(self.inverse[iname]) & set(self.r.new) <= new:
                missing = sorted(set(self.r.old) - mine)
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
    check_bijective(kernel, r, verb)
    solution = _solve(kernel, r, verb, inverse)
    ids = statements_with(kernel, r.old)
    for statement in kernel.statements:
        if statement.id in ids:
            solution.check(statement, verb)
    statements, rules = rewrite_statements(kernel, ids, solution.inverse, r.new)
    maps = []
    for statement in kernel.statements:
        if statement.id in ids:
            mine = {i: solution.inverse[i] for i in r.old if i in statement.inames}
            maps.append(InstanceMap(statement.id, statement.id, mine))
    domains = [
        Domain(tuple(r.final.get(i, i) for i in d.inames), _sets.rename(d.set, r.final))
        for d in replace_inames(kernel, r.old, r.marks, r.graph)
    ]
    changed = kernel.with_(
        domains=ordered_domains(domains),
        statements=statements,
        substitutions=rules,
        tree=rewrite_paths(kernel.tree, _Paths(kernel, solution)),
    )
    _check_values(kernel, changed, r, solution, verb)
    changed = simplified(changed, ids)
    check_nesting(changed)
    return expand_accumulators(kernel, Change(changed, tuple(maps)))


def _solve(
    kernel: Kernel, r: Reindexing, verb: str, inverse: Mapping[str, Expression] | None
) -> _Solution:
    names = {mark: prim.Variable(new) for mark, new in r.final.items()}
    back: dict[str, Expression] = {}
    for old in r.old:
        expr = (inverse or {}).get(old)
        if expr is None:
            expr = solved(r.graph, old, [o for o in r.old if o != old])
            expr = None if expr is None else substitute(expr, names)
        if expr is None:
            raise IllegalTransformError(
                f"cannot {verb} {', '.join(r.old)}: '{old}' is not one affine expression of "
                f"{', '.join(r.new)}",
                instead="treat the pieces of the domain one by one: duplicate_inames, then a map "
                "for each",
            )
        back[old] = expr
    forward: dict[str, Expression] = {}
    for mark, new in r.final.items():
        expr = solved(r.graph, mark, [m for m in r.marks if m != mark])
        # Where a new iname is no single expression, it counts as using all old ones.
        forward[new] = prim.Sum(tuple(map(prim.Variable, r.old))) if expr is None else expr
    return _Solution(r, back, forward)


def _check_values(
    kernel: Kernel, new: Kernel, r: Reindexing, solution: _Solution, verb: str
) -> None:
    """Refuse where a statement would run for other values than before.

    Inames that come to share a domain limit one another: where one has no value
    at all, statements that are only inside the other would not run.
    """
    homes = {kernel.home_domain[i] for i in r.old}
    affected = {i for number in homes for i in kernel.domains[number].inames}
    known = kernel.assumptions.set
    seen: set[frozenset[str]] = set()
    for statement in kernel.statements:
        if statement.inames in seen or not statement.inames & affected:
            continue
        seen.add(statement.inames)
        expected = kernel.statement_domain(statement)
        mine = statement.inames & set(r.old)
        if mine:
            names = solution.new_inames(statement)
            gone = [m for m in r.marks if r.final[m] not in names] + sorted(set(r.old) - mine)
            expected = expected & _sets.project_out(r.graph, gone)
            expected = _sets.rename(_sets.project_out(expected, sorted(mine)), r.final)
        actual = new.statement_domain(new.statement_by_id[statement.id])
        if not (expected & known).is_equal(actual & known):
            shared = min(statement.inames & affected)
            raise IllegalTransformError(
                f"cannot {verb} {', '.join(r.old)}: statement '{statement.id}' is inside "
                f"'{shared}' but not inside the others, and would not run where these are empty",
                instead=f"give the others a loop of their own: within=, or "
                f"duplicate_inames('{shared}', 'id:{statement.id}')",
            )


class _Paths:
    """New paths: new inames in the places of the old ones."""

    def __init__(self, kernel: Kernel, solution: _Solution) -> None:
        self.kernel = kernel
        self.solution = solution
        self.next_number = fresh_number(flatten(kernel.tree))
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
            source = tuple(key for key in old if key[0] in used)
            new.append((name, self._number(name, source)))
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

    def _number(self, name: str, source: tuple[Key, ...]) -> int:
        key = (name, source)
        if key not in self.numbers:
            self.numbers[key] = self.next_number
            self.next_number += 1
        return self.numbers[key]
