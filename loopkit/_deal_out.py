"""Distribution of the cells of a box over the threads of a block.

With ``T`` threads and ``N`` cells, thread ``thread`` gets the cells ``T*round + thread``, one per
round.  Neighbouring threads get neighbouring cells, so that reads of rows are coalesced, and no
thread is idle except in the last round.  Where the box and the block have matching axes, this
maps each axis of the box to an axis of the block.

A copy may be tagged ``l.auto`` before the thread axes exist; its cells are distributed once these
are known.  Until then proofs assume that any thread of the block may execute any of its instances.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._errors import IllegalTransformError
from loopkit._expression import substitute
from loopkit._footprint import box_set
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._linear import Linear, Ranges, total, variable
from loopkit._nodes import Expression
from loopkit._open_lengths import thread_inames, thread_range
from loopkit._poly.model import model_of
from loopkit._rules import expand_rules
from loopkit._simplify import simplify_indices
from loopkit._tags import LocalAuto, LocalAxis, Tag, Unroll
from loopkit._tree import Path, Tree, common_prefix, entries_of, rewrite_paths

# Longer loops over rounds are left to the compiler.
UNROLLED_ROUNDS = 64


def block_shape(kernel: Kernel) -> tuple[int, int, int]:
    """The number of threads along l.0, l.1 and l.2, as tags say it."""
    shape = [1, 1, 1]
    for iname, tag in thread_inames(kernel):
        low, high = thread_range(kernel, iname, tag)
        shape[tag.axis] = max(shape[tag.axis], high - low + 1)
    return shape[0], shape[1], shape[2]


@dataclass(frozen=True)
class Part:
    """One iname of a nest, with values from 0 to ``extent - 1``."""

    iname: str
    extent: int
    tag: Tag | None


@dataclass(frozen=True, eq=False)
class Layout:
    """Which cell each thread handles in each round.

    ``parts`` are the inames, sequential ones first.  Those in ``given`` have one value
    each, once these are known; ``ties`` says which.  ``{ parts, given }`` with a cell is
    ``cells``, exactly, and ``positions`` along the axes of the box are forms over both.
    """

    parts: tuple[Part, ...]
    positions: tuple[Linear, ...]
    given: tuple[str, ...]
    ties: isl.Set
    cells: isl.Set


def thread_layout(
    kernel: Kernel, extents: Sequence[int], names: Sequence[str], base: str, taken: Collection[str]
) -> Layout:
    """Distribute a box over threads; neighbouring threads get neighbours along its last axis.

    ``names`` are the names of the box's axes; ``base`` is the prefix of the names of inames that
    belong to no single axis.
    """
    block = block_shape(kernel)
    cells, threads = math.prod(extents), math.prod(block)
    rounds = -(-cells // threads)
    digits: list[tuple[Part, int]] = []  # an iname whose name is found below, and its weight
    if rounds > 1:
        tag = Unroll() if rounds <= UNROLLED_ROUNDS else None
        digits.append((Part("round", rounds, tag), threads))
    weight = threads
    for axis in (2, 1, 0):
        weight //= block[axis]
        if block[axis] > 1:
            digits.append((Part(f"thread_{axis}", block[axis], LocalAxis(axis)), weight))
    ranges: Ranges = {part.iname: (0, part.extent - 1) for part, _ in digits}
    number = total(variable(part.iname) * weight for part, weight in digits)
    positions: list[Linear] = []
    weights: list[int] = []
    below = cells
    for axis, extent in enumerate(extents):
        below //= extent
        weights.append(below)
        quotient = number.floor_div(below, ranges)
        positions.append(quotient.remainder(extent, ranges) if axis else quotient)
    renamed = {digit: f"{base}_{digit}" for digit in ranges} | _readable(positions, names)
    for digit, name in renamed.items():
        if name not in names:
            others = (new for old, new in renamed.items() if old != digit)
            renamed[digit] = kernel.fresh_name(name, {*taken, *others})
    values = {old: variable(new) for old, new in renamed.items()}
    number = number.substitute(values)
    positions = [p.substitute(values) for p in positions]
    # Positions with quotients become inames with one value each: what is said of them then
    # needs no quotients.
    given = [
        k for k, p in enumerate(positions) if any(isinstance(a, prim.FloorDiv) for a in p.terms)
    ]
    for k in given:
        positions[k] = variable(names[k])
    ties = _sets.universe()
    if given:
        row_major = total(p * w for p, w in zip(positions, weights, strict=True))
        ties = _sets.pw_affine((number - row_major).expression).zero_set()
        bounded = [k for k in given if k > 0]
        ties = ties & box_set([names[k] for k in bounded], [extents[k] for k in bounded])
    dealt = ties
    if cells < rounds * threads:
        dealt = ties & _sets.pw_affine((number * -1 + (cells - 1)).expression).nonneg_set()
    parts = tuple(Part(renamed[p.iname], p.extent, p.tag) for p, _ in digits)
    return Layout(parts, tuple(positions), tuple(names[k] for k in given), ties, dealt)


def _readable(positions: Sequence[Linear], names: Sequence[str]) -> dict[str, str]:
    """Inames that alone give a position are called after its axis."""
    renamed: dict[str, str] = {}
    for position, name in zip(positions, names, strict=True):
        atoms = sorted(position.terms.items(), key=lambda item: -item[1])
        used = [a.name for a, _ in atoms if isinstance(a, prim.Variable)]
        elsewhere = frozenset().union(*(p.names for p in positions if p is not position))
        if len(used) != len(atoms) or elsewhere & set(used) or len(used) > 2:
            continue
        endings = ("_outer", "_inner") if len(used) == 2 else ("",)
        renamed |= {old: name + ending for old, ending in zip(used, endings, strict=False)}
    return renamed


def dealt_domain(
    parts: Sequence[Part],
    layout: Layout | None,
    cells: isl.Set,
    positions: Mapping[str, Linear],
    context: isl.Set,
) -> tuple[isl.Set, Expression]:
    """The domain of some parts that run over ``cells``, and a condition beside it.

    ``positions`` say where the names of the cells are, ``context`` is what holds around them.
    """
    if layout is not None:
        cells = cells & layout.cells
    for name, form in positions.items():
        if form.expression != prim.Variable(name):
            position = _sets.equality(name, form.expression)
            cells = _sets.project_out(cells & position, [name])
    full = box_set([p.iname for p in parts], [p.extent for p in parts])
    domain = (cells & full).gist(context)
    if layout is not None and _leaves_threads_out(domain & context, parts):
        full = full & layout.ties
        return full, _sets.conditions(domain.gist(full & context))
    return domain, True


def _leaves_threads_out(domain: isl.Set, parts: Sequence[Part]) -> bool:
    """Whether a thread axis would appear shorter than the block is, were this the domain."""
    threads = [p for p in parts if isinstance(p.tag, LocalAxis)]
    for corner in (0, 1):
        at = [_sets.equality(p.iname, (p.extent - 1) * corner) for p in threads]
        everywhere = domain
        for one in at:
            everywhere = everywhere & one
        if everywhere.is_empty() and any((domain & one).is_empty() for one in at):
            return True
    return False


def deal_out(kernel: Kernel) -> Kernel:
    """The kernel without inames tagged ``l.auto``.

    Before: a_s[p, q] = a[p, q] for all p, q        After: cell 256*round + thread of the box

    Without threads the inames are loops, and so they are where one of the statements is on
    threads already.  These are the innermost loops of each statement: then all that one statement
    does for their values is done before the next statement begins, as if threads had met at a
    barrier.  Statements that pass values on in private memory, as those of a sum and what reads
    it do, share the loops.  Raises :class:`~loopkit.IllegalTransformError` where they cannot.
    """
    return dealt(kernel)[0]


def check_waiting(kernel: Kernel) -> None:
    """Raise where statements inside of an iname tagged ``l.auto`` cannot be distributed.

    A thread may execute them for no value of the iname or for several.  So they must not write
    private values that statements outside of the iname use.
    """
    waiting = [iname for iname, tag in kernel.tags if isinstance(tag, LocalAuto)]
    kernel = expand_rules(kernel) if waiting else kernel
    for iname, one in ((i, s) for i in waiting for s in kernel.statements if i in s.inames):
        is_used = any(iname not in user.inames for user in kernel.users(one.written))
        if is_used and ("l", iname) in model_of(kernel).copy_axes(one.written):
            why = f"'{one.id}' writes '{one.written}', of which each thread has a separate copy"
            raise _undealt(iname, why)
    if any(sum(i in s.inames for s in kernel.statements) > 1 for i in waiting):
        deal_out(kernel)


def _undealt(iname: str, why: str) -> IllegalTransformError:
    return IllegalTransformError(
        f"'{iname}' (l.auto) cannot be distributed over threads: {why}",
        instead=f"leave the tag out: untag_inames('{iname}')",
    )


def dealt(kernel: Kernel) -> tuple[Kernel, Mapping[str, Mapping[str, Expression]]]:
    """The kernel without inames tagged ``l.auto``, and their values by distributed statement."""
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
        together = _passed_on(kernel, sharing, mine) is not None
        if together and not _may_share_loops(kernel, sharing, mine):
            continue
        if threads and all(s.inames.isdisjoint(threads) for s in sharing):
            kernel, values = _laid_out(kernel, sharing, mine, together)
            forms |= {s.id: values for s in sharing}
        elif together:
            tags = tuple((i, t) for i, t in kernel.tags if i not in mine)
            kernel = kernel.with_(tags=tags, tree=_placed(kernel, sharing, mine, together))
        else:
            continue
        waiting = [iname for iname in waiting if iname not in mine]
    for iname in waiting:
        kernel = _in_loops(kernel, iname)
    return kernel, forms


def _is_box(kernel: Kernel, sharing: Sequence[Statement], inames: list[str]) -> bool:
    """Whether inames are all of one domain, from 0 on, and of all of the same statements."""
    homes = {kernel.home_domain[iname] for iname in inames}
    return (
        len(homes) == 1
        and {*kernel.domains[homes.pop()].inames} == {*inames}
        and all({*inames} <= s.inames for s in sharing)
        and not any(d.parameters & {*inames} for d in kernel.domains)
        and all(None not in r and (r[0] or 0) >= 0 for r in map(kernel.range_of, inames))
    )


def _passed_on(kernel: Kernel, sharing: Sequence[Statement], inames: list[str]) -> str | None:
    """A temporary in which a statement keeps a value for others that run on the same thread."""
    axes, names = {("l", iname) for iname in inames}, dict.fromkeys(s.written for s in sharing)
    for name in (n for n in names if n in kernel.temporary_by_name):
        is_shared = sum(s in sharing for s in kernel.users(name)) > 1
        is_private = not axes.isdisjoint(model_of(kernel).copy_axes(name))
        if is_shared and is_private and not all(_has_place(kernel, name, i) for i in inames):
            return name
    return None


def _may_share_loops(kernel: Kernel, sharing: Sequence[Statement], inames: list[str]) -> bool:
    """Whether statements can run for one value of some inames after the other.

    They do so if nothing else is in the loops that they share, and if none needs what an earlier
    one did for another value.
    """
    ids, model = {s.id for s in sharing}, model_of(kernel)
    depth = len(common_prefix([kernel.paths[name] for name in ids]))
    places = [n for n, (leaf, _) in enumerate(entries_of(kernel.tree)) if leaf in ids]
    inner = {path[: depth + 1] for s, path in kernel.paths.items() if s in ids and path[depth:]}
    others = (path[: depth + 1] for s, path in kernel.paths.items() if s not in ids)
    if places[-1] - places[0] >= len(places) or not inner.isdisjoint(others):
        return False
    axes = {("l", iname) for iname in inames}
    shared = {s.written for s in sharing if axes.isdisjoint(model.copy_axes(s.written))}
    reads = (name for s in sharing for name, _ in s.reads[: -1 if s.operation else None])
    stores = {s.written for s in sharing if s.operation is None} & shared
    has_places = all(_has_place(kernel, name, iname) for name in stores for iname in inames)
    return has_places and shared.isdisjoint(reads)


def _laid_out(
    kernel: Kernel, sharing: Sequence[Statement], inames: list[str], together: bool
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
        return replace(moved, inames=mine, predicates=(*more, *moved.predicates))

    tags = [(part.iname, part.tag) for part in layout.parts if part.tag is not None]
    loops = [p.iname for p in layout.parts if p.tag is None or not p.tag.is_parallel]
    kept = tuple((i, t) for i, t in kernel.tags if i not in inames)
    domains = list(kernel.domains)
    domains[home] = Domain(new, domain)
    new_kernel = kernel.with_(
        statements=tuple(changed(s) if s in sharing else s for s in kernel.statements),
        domains=tuple(domains),
        tags=(*kept, *tags),
        tree=_placed(kernel, sharing, (*loops, *layout.given), together),
    )
    return new_kernel, values


def _placed(
    kernel: Kernel, statements: Iterable[Statement], loops: Sequence[str], together: bool
) -> Tree:
    """The tree with loops inside of all others, or ``together`` around statements.

    Those are inside of what all of these share.
    """
    paths = {s.id: kernel.paths[s.id] for s in statements}
    shared = len(common_prefix([*paths.values()]))
    # Loops with one number are one loop, where they stand side by side.
    numbers = {name: 0 if together else -1 - at for at, name in enumerate(paths)}

    def rewrite(statement: str, path: Path) -> Path:
        depth = shared if together else len(path)
        more = ((i, numbers[statement]) for i in loops if statement in paths)
        return (*path[:depth], *more, *path[depth:])

    return rewrite_paths(kernel.tree, rewrite)


def _in_loops(kernel: Kernel, iname: str) -> Kernel:
    """The kernel with an iname as the innermost loop of each statement that is inside of it."""
    inside = [s for s in kernel.statements if iname in s.inames]
    if name := _passed_on(kernel, inside, [iname]):
        mine = [s.id for s in kernel.users(name) if s in inside]
        shared = f"'{mine[0]}' and '{mine[1]}' share it, would have a loop each"
        raise _undealt(iname, f"{shared}, and '{name}' keeps one value")
    tags = tuple((i, t) for i, t in kernel.tags if i != iname)
    return kernel.with_(tags=tags, tree=_placed(kernel, inside, (iname,), together=False))


def _has_place(kernel: Kernel, name: str, iname: str) -> bool:
    """Whether each write of a temporary has an own cell for each value of an iname, at sight."""
    writers = kernel.writers.get(name, ())
    return all(prim.Variable(iname) in s.write[1] for s in writers if iname in s.inames)
