"""Reordering of loops, and the axes that accumulators need afterwards (scalar expansion)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import TemporaryVariable, if_distinct
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError
from loopkit._expression import replace_accesses, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import OTHER, hidden, variable
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.pairs import Undecided, equal, intersection, unequal
from loopkit._simplify import simplify
from loopkit._tags import InstructionParallel
from loopkit._tree import Path, common_prefix, path_inames, rewrite_paths
from loopkit.transforms._common import with_arrays, with_names, with_statements
from loopkit.transforms._loop_nests import (
    check_nesting,
    extent_or,
    kept_part,
    offset,
    ordered_domains,
)
from loopkit.transforms._rule_uses import expand_rules_that_use, map_texts

T = TypeVar("T")


@dataclass(frozen=True)
class _Use:
    """A statement that touches a temporary, before and after the change."""

    statement: Statement
    old: str
    values: Mapping[str, Expression]

    def value(self, iname: str) -> Expression:
        """An old iname in terms of the new ones."""
        return self.values.get(iname, prim.Variable(iname))


def settled(old: Kernel, change: Change) -> Change:
    """A change of the loops of ``old``, with accumulators expanded where the new loops need it.

    Two statements that access an accumulator inside a common loop pass its value on within an
    iteration.  If the change leaves them in different loops or iterations, the accumulator must
    hold one value per iteration, and gets an axis for it.  Loops must be nested inside those that
    their bounds depend on, which is checked here.  Other temporaries are left to the checker.
    """
    new = change.kernel
    check_nesting(new)
    maps = {m.new: m for m in change.instances}
    every = [s.id for s in new.statements]
    for temporary in new.temporaries:
        if temporary.accumulates is None or temporary.name not in old.temporary_by_name:
            continue
        shown = expand_rules_that_use(new, temporary.name, every, in_reductions=True)
        uses = _uses(old, shown, temporary.name, maps)
        lost = _lost_inames(old, new, temporary, uses)
        inside = {i: [u for u in uses if i in old.statement_by_id[u.old].inames] for i in lost}
        lost = [i for i in lost if not _is_separated(new, temporary, inside[i], i)]
        # An instance that merges all values of an iname has no index for it: left to the checker.
        merged = [maps[u.statement.id].every for u in uses if u.statement.id in maps]
        lost = [i for i in lost if not any(i in every_value for every_value in merged)]
        if lost:
            new = _expanded(old, shown, temporary, uses, lost)
    return replace(change, kernel=new)


def _uses(old: Kernel, new: Kernel, name: str, maps: Mapping[str, InstanceMap]) -> list[_Use]:
    result = []
    for statement in new.users(name):
        step = maps.get(statement.id, InstanceMap(statement.id, statement.id))
        if step.old in old.statement_by_id:
            result.append(_Use(statement, step.old, step.values))
    return result


def _pairs(name: str, uses: list[_Use]) -> Iterable[tuple[_Use, _Use]]:
    for writer in uses:
        if writer.statement.written == name:
            for other in uses:
                if other is not writer:
                    yield writer, other


def _lost_inames(
    old: Kernel, new: Kernel, temporary: TemporaryVariable, uses: list[_Use]
) -> list[str]:
    """Old inames whose loops two accesses shared and no longer share, outermost first."""
    lost: dict[str, int] = {}
    # One of the statements in the same loops, before and after, is enough.
    alike: dict[object, _Use] = {}
    for use in sorted(uses, key=lambda u: u.statement.written != temporary.name):
        paths = old.paths[use.old], new.paths[use.statement.id]
        alike.setdefault((*paths, frozenset(use.values.items())), use)
    for writer, other in _pairs(temporary.name, list(alike.values())):
        old_paths = old.paths[writer.old], old.paths[other.old]
        new_paths = new.paths[writer.statement.id], new.paths[other.statement.id]
        shared_before = [iname for iname, _ in common_prefix(old_paths)]
        shared_after = {iname for iname, _ in common_prefix(new_paths)}
        for depth, iname in enumerate(shared_before):
            if not _is_kept(new, iname, shared_after, writer, other):
                lost[iname] = min(depth, lost.get(iname, depth))
    return sorted(lost, key=lambda iname: (lost[iname], iname))


def _is_kept(new: Kernel, iname: str, shared: set[str], writer: _Use, other: _Use) -> bool:
    """Whether ``iname`` has one value where both statements run, without an order between."""
    axes: dict[str, Expression] = {}
    for use in (writer, other):
        for name in use.statement.inames:
            tag = new.iname_tags.get(name)
            if isinstance(tag, InstructionParallel):
                axes[name] = prim.Variable(hidden("ilp", name))
            elif tag is not None and tag.is_parallel:
                axes[name] = prim.Variable(str(tag))
    first, second = (substitute(u.value(iname), axes) for u in (writer, other))
    loops = variable_names(first) & new.home_domain.keys()
    return bool(first == second) and loops <= shared


def _is_separated(new: Kernel, temporary: TemporaryVariable, uses: list[_Use], iname: str) -> bool:
    """Whether different values of ``iname`` use different cells already, of what is inside it."""
    if not temporary.shape:
        return False
    for writer, other in _pairs(temporary.name, uses):
        marks = {i: variable(i, OTHER) for i in other.statement.inames}
        names = {i: v.name for i, v in marks.items()}
        here = new.statement_domain(writer.statement) & new.assumptions.set
        there = _sets.rename(new.statement_domain(other.statement), names)
        mine = _indices(writer.statement, temporary.name)
        its = _indices(other.statement, temporary.name)
        try:
            clash = unequal(writer.value(iname), substitute(other.value(iname), marks))
            meetings = [
                intersection(equal(a, substitute(b, marks)) for a, b in zip(*cells, strict=True))
                for cells in product(mine, its)
            ]
        except Undecided:
            return False
        if not all((here & there & clash & meeting).is_empty() for meeting in meetings):
            return False
    return True


def _indices(statement: Statement, name: str) -> list[tuple[Expression, ...]]:
    return list(dict.fromkeys(i for n, i in statement.accesses if n == name and i))


def _expanded(
    old: Kernel, new: Kernel, temporary: TemporaryVariable, uses: list[_Use], lost: list[str]
) -> Kernel:
    name = temporary.name
    extents = [
        extent_or(
            old,
            iname,
            f"accumulator '{name}' would have to hold one value for each '{iname}', and the number "
            "of these does not follow from the sizes",
        )
        for iname in lost
    ]
    added: dict[str, tuple[Expression, ...]] = {}
    for use in uses:
        for iname in lost:
            if iname not in old.statement_by_id[use.old].inames:
                raise IllegalTransformError(
                    f"accumulator '{name}' would have to hold one value for each '{iname}', but "
                    f"statement '{use.old}' uses it outside of '{iname}'"
                )
        domain, lows = new.statement_domain(use.statement), (low for low, _ in extents)
        pairs = zip(lost, lows, strict=True)
        added[use.statement.id] = tuple(
            simplify(offset(use.value(i), low), domain) for i, low in pairs
        )
    return with_axes(new, replace(temporary, dim_tags=None), [n for _, n in extents], added)


def with_axes(
    kernel: Kernel,
    temporary: TemporaryVariable,
    lengths: Sequence[Expression],
    added: Mapping[str, tuple[Expression, ...]],
) -> Kernel:
    """More axes for a temporary, where ``added`` are its subscripts, by statement."""
    name = temporary.name

    def longer(statement: Statement) -> Statement:
        def access(found: str, indices: tuple[Expression, ...]) -> Expression | None:
            indices = (*indices, *added[statement.id])
            return prim.Subscript(prim.Variable(name), indices) if found == name else None

        return statement.map_expressions(lambda e: replace_accesses(e, access))

    padding = (*temporary.padding, *(0 for _ in lengths)) if temporary.padding else ()
    names = temporary.dim_names
    if names is not None:
        # New axes are called as what runs along them.
        more = enumerate(next(iter(added.values())), len(names)) if added else ()
        names = if_distinct(
            (*names, *(i.name if isinstance(i, prim.Variable) else f"axis_{n}" for n, i in more))
        )
    shape = (*temporary.shape, *lengths)
    changed = replace(temporary, shape=shape, padding=padding, dim_names=names)
    statements = {id_: longer(kernel.statement_by_id[id_]) for id_ in added}
    return with_arrays(with_statements(kernel, statements), {name: changed})


def without_axes(kernel: Kernel, temporary: TemporaryVariable, axes: Collection[int]) -> Kernel:
    """A temporary with fewer axes; all that differs there alone is one cell."""
    name = temporary.name
    if temporary.dim_tags is not None or temporary.padding or temporary.swizzles:
        raise IllegalTransformError(
            f"'{name}' has a layout, which is not defined for fewer axes",
            instead="take axes away first; tag_array_axes, pad_temporary and swizzle_array then",
        )

    def kept(values: Sequence[T]) -> tuple[T, ...]:
        return tuple(v for axis, v in enumerate(values) if axis not in axes)

    def access(found: str, indices: tuple[Expression, ...]) -> Expression | None:
        if found != name or not indices:
            return None
        rest = kept(indices)
        return prim.Subscript(prim.Variable(name), rest) if rest else prim.Variable(name)

    kernel = map_texts(kernel, lambda e: replace_accesses(e, access), rules=False)
    names = temporary.dim_names and if_distinct(kept(temporary.dim_names))
    less = replace(temporary, shape=kept(temporary.shape), dim_names=names)
    return with_arrays(kernel, {name: less})


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
    """The kernel, its loops reordered so that a copy for ``users`` can be filled in front of them.

    Of the loops that all users share, those over ``outer`` become the outermost.  If ``outer`` is
    not given, loops over the ``needed`` inames move out of those over ``swept`` inames and of the
    loops inside these.  Loops of symbolic length do not: a private array for a reduction inside
    such a loop would have no constant size outside of it.
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
