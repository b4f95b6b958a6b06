"""The loop nest that fills or empties a copy of a tile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import ArrayArg, Nested, TemporaryVariable, strides_of
from loopkit._deal_out import Layout, Part, dealt_domain, thread_layout
from loopkit._errors import IllegalTransformError, InvalidArgumentError, counted
from loopkit._footprint import Axis
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._linear import Linear, variable
from loopkit._nodes import Expression
from loopkit._open_lengths import thread_inames
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._tree import Entry, Path, build, entries_of
from loopkit.transforms._common import is_parallel, new_name
from loopkit.transforms._placement import Place


@dataclass(frozen=True, eq=False)
class Nest:
    """Inames that run over the cells of a box.

    ``positions`` are forms over ``inames``, one per axis of the box (zero for an
    axis of one cell); ``loops`` are the sequential inames, outermost first.
    """

    positions: tuple[Linear, ...]
    inames: tuple[str, ...]
    loops: tuple[str, ...]
    tags: tuple[tuple[str, Tag], ...]
    domain: Domain | None
    predicates: tuple[Expression, ...]

    def kept(self, box: Sequence[Axis]) -> list[Expression]:
        """Positions along the axes that the copy has."""
        pairs = zip(self.positions, box, strict=True)
        return [p.expression for p, axis in pairs if axis.is_kept]

    def cells(self, box: Sequence[Axis]) -> tuple[Expression, ...]:
        """The cells of the array."""
        pairs = zip(self.positions, box, strict=True)
        return tuple(axis.cell(p).expression for p, axis in pairs)


def make_nest(
    kernel: Kernel,
    box: Sequence[Axis],
    place: Place,
    *,
    cells: isl.Set,
    names: Mapping[int, str],
    base: str,
    tags: Mapping[int, Tag | None],
    order: Sequence[int],
    together: bool,
    reused: Mapping[int, str] = MappingProxyType({}),
) -> Nest:
    """A nest over ``cells``, a set over the names of the kept axes and the inames of ``place``.

    ``order`` lists the kept axes, the one that neighbouring threads go along
    last.  An axis tagged ``l.auto`` is laid over the threads of the block
    together with all others so tagged, at once if there are threads, else when code
    is generated; the others run as their tags say.
    ``together`` says that all threads of the block see the copy.  Along the axes that are
    ``reused`` an iname runs that exists.
    """
    outside = place.inames | frozenset(reused.values())
    context = kernel.domain_around(outside) & kernel.assumptions.set
    forms = {axis: along(kernel, iname) for axis, iname in reused.items()}
    _check_reused(kernel, place, cells, {names[axis]: forms[axis] for axis in reused})
    mine = [axis for axis in order if axis not in reused]
    auto = [axis for axis in mine if isinstance(tags[axis], LocalAuto)]
    if auto and not thread_inames(kernel):
        auto = []  # dealt out once there are threads
    threads = [i for i in reused.values() if is_parallel(kernel, i)]
    if auto and threads:
        raise InvalidArgumentError(
            f"'l.auto' distributes an axis over the threads of the block, of which '{threads[0]}' "
            "is one",
            instead="name an iname that exists for that axis, too, or default_tag=None",
        )
    plain = [axis for axis in mine if axis not in auto]
    forms |= {axis: variable(names[axis]) for axis in plain}
    parts = [Part(names[axis], box[axis].extent, tags[axis]) for axis in plain]
    layout: Layout | None = None
    if auto or (together and not order):
        # Of a single cell, too: one thread fills it.
        extents = [box[axis].extent for axis in auto]
        spelled = [names[axis] for axis in auto]
        layout = thread_layout(kernel, extents, spelled, base, names.values())
        parts += layout.parts
        forms |= dict(zip(auto, layout.positions, strict=True))
    _check_axes(parts)
    positions = {name: forms[axis] for axis, name in names.items()}
    domain, condition = dealt_domain(parts, layout, cells, positions, context)
    given = () if layout is None else layout.given
    inames = (*(p.iname for p in parts), *given)
    if not inames:
        # One cell, or loops that exist: when there is anything to move, no new iname can say.
        condition = _sets.conditions(domain)
    old = tuple(reused[axis] for axis in order if axis in reused)
    return Nest(
        tuple(forms.get(axis, Linear({})) for axis in range(len(box))),
        (*old, *inames),
        (
            *(i for i in old if not is_parallel(kernel, i)),
            *(p.iname for p in parts if p.tag is None or not p.tag.is_parallel),
            *given,
        ),
        tuple((p.iname, p.tag) for p in parts if p.tag is not None),
        Domain(inames, domain) if inames else None,
        () if condition is True else (condition,),
    )


def along(kernel: Kernel, iname: str) -> Linear:
    """The position that an iname which exists has along an axis: 0 at its first value."""
    return variable(iname) - (kernel.range_of(iname)[0] or 0)


def _check_reused(
    kernel: Kernel, place: Place, cells: isl.Set, positions: Mapping[str, Linear]
) -> None:
    """Raise where an iname that exists does not run over all ``cells``, or not at ``place``."""
    for form in positions.values():
        (iname,) = form.names
        if iname in place.inames:
            raise IllegalTransformError(
                f"'{iname}' runs around what is to be computed, and is no loop over its values",
                instead="name another iname, or a new one",
            )
        missing = sorted(kernel.parents_of(iname) - place.inames)
        if missing:
            raise IllegalTransformError(
                f"the bounds of '{iname}' need '{missing[0]}', which does not run there",
                instead="name another iname, or a new one",
            )
    around = kernel.domain_around(place.inames) & kernel.assumptions.set
    for name, form in positions.items():
        (iname,) = form.names
        needed = _sets.project_onto(cells & around, {name, *place.inames, *kernel.sizes})
        needed = _sets.project_out(needed & _sets.equality(name, form.expression), [name])
        beyond = needed & around - kernel.domain_around(place.inames | {iname})
        if not beyond.is_empty():
            raise IllegalTransformError(
                f"'{iname}' does not run over all that is to be computed along its axis",
                instead="name another iname, or a new one, which has the length that it needs",
            )


def _check_axes(parts: Sequence[Part]) -> None:
    seen: dict[Tag, str] = {}
    for part in parts:
        if not isinstance(part.tag, (LocalAxis, GroupAxis)):
            continue
        if seen.setdefault(part.tag, part.iname) != part.iname:
            raise InvalidArgumentError(
                f"inames '{seen[part.tag]}' and '{part.iname}' would both be {part.tag}",
                instead="'l.auto' distributes all axes over the threads of the block",
            )


def reused_axes(
    kernel: Kernel, box: Sequence[Axis], given: str | Iterable[str] | None
) -> dict[int, str]:
    """The kept axes of a box for which inames are ``given`` that exist."""
    wanted, kept = names_in(given), [i for i, axis in enumerate(box) if axis.is_kept]
    axes = range(len(box)) if len(wanted) == len(box) else kept
    found = {a: n for a, n in zip(axes, wanted, strict=False) if n in kernel.home_domain}
    for name in found.values():
        if wanted.count(name) > 1:
            raise InvalidArgumentError(f"the iname '{name}' is given for two axes")
    return {axis: name for axis, name in found.items() if axis in kept}


def name_axes(
    kernel: Kernel,
    box: Sequence[Axis],
    base: str,
    given: str | Iterable[str] | None,
    argument: str,
    reused: Collection[int] = (),
    axes: Sequence[str] | None = None,
) -> dict[int, str]:
    """Names for the kept axes of a box: ``given`` ones, or such as begin with ``base``.

    Axes along which inames run that exist, ``reused``, have names of their own as well.  ``axes``
    are the names of all axes, where they have some.
    """
    kept = [i for i, axis in enumerate(box) if axis.is_kept]
    called = {axis: axes[axis] if axes else str(axis) for axis in kept}
    if given is None:
        return {axis: kernel.fresh_name(f"{base}_dim_{called[axis]}") for axis in kept}
    wanted, rank = names_in(given), len(box)
    if len(wanted) not in (rank, len(kept)):
        count = str(rank) if rank == len(kept) else f"{rank} (or {len(kept)})"
        raise InvalidArgumentError(
            f"{argument} has {counted(len(wanted), 'name')} for {counted(count, 'axis', 'axes')}",
            instead="give one name per axis",
        )
    if len(wanted) == rank:
        wanted = tuple(wanted[axis] for axis in kept)
    names: dict[int, str] = {}
    for axis, name in zip(kept, wanted, strict=True):
        given_name = None if axis in reused else name
        names[axis] = new_name(kernel, given_name, f"{base}_dim_{called[axis]}", names.values())
    return names


def by_stride(array: ArrayArg | TemporaryVariable | None, kept: Sequence[int]) -> list[int]:
    """``kept`` axes, the one whose cells are closest in memory last."""
    if array is None or array.dim_tags is None:
        return list(kept)
    if all(isinstance(tag, Nested) for tag in array.dim_tags):
        levels = {a: tag.level for a, tag in enumerate(array.dim_tags) if isinstance(tag, Nested)}
        return sorted(kept, key=lambda axis: -levels[axis])
    strides = strides_of(array)

    def distance(axis: int) -> float:
        stride = strides[axis]
        return -float(stride) if isinstance(stride, (int, np.integer)) else float("-inf")

    return sorted(kept, key=distance)


def with_nest(
    kernel: Kernel,
    statement: Statement,
    nest: Nest,
    place: Place,
    entry: int,
    sources: Collection[str] = (),
) -> Kernel:
    """The kernel with one statement more, in ``nest``, before entry number ``entry``.

    Of loops that exist it is in the one that stands in front, if there is no writer of ``sources``.
    """
    entries = entries_of(kernel.tree)
    before = entries[entry - 1][1] if entry else ()
    loops = list(place.path)
    for iname in nest.loops:
        keys = {key for _, path in entries for key in path if key[0] == iname}
        found = before[len(loops)] if before[: len(loops)] == tuple(loops) != before else None
        if found not in keys or _writes_in(kernel, entries, (*loops, found), sources):
            found = (iname, max((number for _, number in keys), default=-1) + 1)
        loops.append(found)
    entries.insert(entry, (statement.id, tuple(loops)))
    domains = kernel.domains if nest.domain is None else (*kernel.domains, nest.domain)
    return kernel.with_(
        domains=domains,
        statements=(*kernel.statements, statement),
        tags=(*kernel.tags, *nest.tags),
        tree=build(entries),
    )


def _writes_in(
    kernel: Kernel, entries: Sequence[Entry], path: Path, names: Collection[str]
) -> bool:
    """Whether a loop holds a writer of some of ``names``, or the end of a launch."""
    inside = [leaf for leaf, own in entries if own[: len(path)] == path]
    return any(
        not isinstance(leaf, str) or kernel.statement_by_id[leaf].written in names
        for leaf in inside
    )
