"""Fetches that were tagged ``l.auto`` before there were threads, dealt out once they are known.

Until then each of their instances may be on any thread of the block, which is what proofs take
them for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._errors import IllegalTransformError
from loopkit._expression import substitute
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._nodes import Expression
from loopkit._open_lengths import thread_inames
from loopkit._simplify import simplify_indices
from loopkit._tags import LocalAuto
from loopkit._thread_layout import dealt_domain, thread_layout
from loopkit._tree import Path, Tree, common_prefix, entries_of, rewrite_paths


def deal_out(kernel: Kernel) -> Kernel:
    """The kernel without inames tagged ``l.auto``.

    Before: a_s[p, q] = a[p, q] for all p, q        After: cell 256*round + thread of the box

    Statements that share such inames and stand together, as those of a sum and what reads it do,
    are dealt out together.  Without threads the inames are loops, and so they are where one of the
    statements is on threads already, or others stand between them.  Raises
    :class:`~loopkit.IllegalTransformError` where loops would hand on what each thread has for
    itself.
    """
    return dealt(kernel)[0]


def dealt(kernel: Kernel) -> tuple[Kernel, Mapping[str, Mapping[str, Expression]]]:
    """The same, and for statements that were dealt out what the inames are that are gone."""
    waiting = [iname for iname, tag in kernel.tags if isinstance(tag, LocalAuto)]
    forms: dict[str, Mapping[str, Expression]] = {}
    if not waiting:
        return kernel, forms
    threads = {iname for iname, _ in thread_inames(kernel)}
    for statement in kernel.statements:
        mine = [iname for iname in waiting if iname in statement.inames]
        sharing = [s for s in kernel.statements if not s.inames.isdisjoint(mine)]
        if not mine or not _is_box(kernel, sharing, mine):
            continue
        if threads and all(s.inames.isdisjoint(threads) for s in sharing):
            kernel, values = _laid_out(kernel, sharing, mine)
            forms |= {s.id: values for s in sharing}
        elif len(sharing) > 1:
            tags = tuple((i, t) for i, t in kernel.tags if i not in mine)
            kernel = kernel.with_(tags=tags, tree=_around(kernel, sharing, mine))
        else:
            continue
        waiting = [iname for iname in waiting if iname not in mine]
    for iname in waiting:
        kernel = _in_loops(kernel, iname)
    return kernel, forms


def _is_box(kernel: Kernel, sharing: Sequence[Statement], inames: list[str]) -> bool:
    """Whether inames are all of one domain, from 0 on, and of statements that stand together."""
    homes = {kernel.home_domain[iname] for iname in inames}
    ids = {s.id for s in sharing}
    places = [n for n, (leaf, _) in enumerate(entries_of(kernel.tree)) if leaf in ids]
    return (
        len(homes) == 1
        and {*kernel.domains[homes.pop()].inames} == {*inames}
        and all({*inames} <= s.inames for s in sharing)
        and places[-1] - places[0] == len(places) - 1
        and not any(d.parameters & {*inames} for d in kernel.domains)
        and all(None not in r and (r[0] or 0) >= 0 for r in map(kernel.range_of, inames))
    )


def _laid_out(
    kernel: Kernel, sharing: Sequence[Statement], inames: list[str]
) -> tuple[Kernel, Mapping[str, Expression]]:
    home = kernel.home_domain[inames[0]]
    extents = [(kernel.range_of(iname)[1] or 0) + 1 for iname in inames]
    layout = thread_layout(kernel, extents, inames, sharing[-1].id, inames)
    positions = dict(zip(inames, layout.positions, strict=True))
    around = frozenset.intersection(*(s.inames for s in sharing)) - {*inames}
    context = kernel.domain_around(around) & kernel.assumptions.set
    cells = kernel.domains[home].set
    domain, condition = dealt_domain(layout.parts, layout, cells, positions, context)
    new = (*(part.iname for part in layout.parts), *layout.given)
    values = {name: form.expression for name, form in positions.items()}
    integers = kernel.integers | {*new}
    more = () if condition is True else (condition,)

    def changed(statement: Statement) -> Statement:
        moved = statement.map_expressions(
            lambda e: simplify_indices(substitute(e, values), integers, domain & context)
        )
        mine = (statement.inames - {*inames}) | {*new}
        return replace(moved, inames=mine, predicates=(*moved.predicates, *more))

    tags = [(part.iname, part.tag) for part in layout.parts if part.tag is not None]
    loops = [p.iname for p in layout.parts if p.tag is None or not p.tag.is_parallel]
    kept = tuple((i, t) for i, t in kernel.tags if i not in inames)
    domains = list(kernel.domains)
    domains[home] = Domain(new, domain)
    new_kernel = kernel.with_(
        statements=tuple(changed(s) if s in sharing else s for s in kernel.statements),
        domains=tuple(domains),
        tags=(*kept, *tags),
        tree=_around(kernel, sharing, (*loops, *layout.given)),
    )
    return new_kernel, values


def _around(kernel: Kernel, statements: Sequence[Statement], loops: Iterable[str]) -> Tree:
    """The tree with loops around statements that stand together, inside of what all share."""
    paths = {s.id: kernel.paths[s.id] for s in statements}
    depth = len(common_prefix([*paths.values()]))
    more = tuple((iname, 0) for iname in loops)

    def rewrite(statement: str, path: Path) -> Path:
        return (*path[:depth], *more, *path[depth:]) if statement in paths else path

    return rewrite_paths(kernel.tree, rewrite)


def _in_loops(kernel: Kernel, iname: str) -> Kernel:
    """The kernel with an iname as the innermost loop of each statement that is inside of it."""
    inside = {s.id for s in kernel.statements if iname in s.inames}
    for temporary in kernel.temporaries:
        users = kernel.users(temporary.name)
        mine = [s.id for s in users if s.id in inside]
        is_written = any(s.written == temporary.name for s in users if s.id in inside)
        if is_written and len(mine) > 1 and not _has_place(kernel, temporary.name, iname):
            raise IllegalTransformError(
                f"'{iname}' (l.auto) cannot be dealt out to threads: '{mine[0]}' and '{mine[1]}' "
                f"share it, would have a loop each, and '{temporary.name}' keeps one value",
                instead=f"leave the tag out: untag_inames('{iname}')",
            )
    tags = tuple((i, t) for i, t in kernel.tags if i != iname)
    return kernel.with_(tags=tags, tree=_inside(kernel, inside, (iname,)))


def _has_place(kernel: Kernel, name: str, iname: str) -> bool:
    """Whether each write of a temporary has an own cell for each value of an iname, at sight."""
    writers = kernel.writers.get(name, ())
    return all(prim.Variable(iname) in s.write[1] for s in writers if iname in s.inames)


def _inside(kernel: Kernel, statements: set[str], loops: Iterable[str]) -> Tree:
    """The tree where some statements are in further loops, inside of all others."""

    def rewrite(statement: str, path: Path) -> Path:
        return (*path, *((i, 0) for i in loops)) if statement in statements else path

    return rewrite_paths(kernel.tree, rewrite)
