"""The loop nest that fills or empties a copy of a tile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import ArrayArg, Nested, TemporaryVariable, strides_of
from loopkit._errors import InvalidArgumentError
from loopkit._footprint import Axis
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel
from loopkit._linear import Linear, variable
from loopkit._nodes import Expression
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._thread_layout import Layout, Part, dealt_domain, thread_inames, thread_layout
from loopkit.transforms._common import new_name
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
) -> Nest:
    """A nest over ``cells``, a set over the names of the kept axes and the inames of ``place``.

    ``order`` lists the kept axes, the one that neighbouring threads go along
    last.  An axis tagged ``l.auto`` is laid over the threads of the block
    together with all others so tagged, at once if there are threads, else when code
    is generated; the others run as their tags say.
    ``together`` says that all threads of the block see the copy.
    """
    context = kernel.domain_around(place.inames) & kernel.assumptions.set
    auto = [axis for axis in order if isinstance(tags[axis], LocalAuto)]
    if auto and not thread_inames(kernel):
        auto = []  # dealt out once there are threads
    plain = [axis for axis in order if axis not in auto]
    forms = {axis: variable(names[axis]) for axis in plain}
    parts = [Part(names[axis], box[axis].extent, tags[axis]) for axis in plain]
    layout: Layout | None = None
    if auto or (together and not order):
        # Of a single cell, too: one thread fills it.
        extents = [box[axis].extent for axis in auto]
        mine = [names[axis] for axis in auto]
        layout = thread_layout(kernel, extents, mine, base, names.values())
        parts += layout.parts
        forms |= dict(zip(auto, layout.positions, strict=True))
    _check_axes(parts)
    positions = {name: forms[axis] for axis, name in names.items()}
    domain, condition = dealt_domain(parts, layout, cells, positions, context)
    given = () if layout is None else layout.given
    inames = (*(p.iname for p in parts), *given)
    if not inames:
        # One cell: when there is anything to move, no iname can say.
        condition = _sets.conditions(domain)
    return Nest(
        tuple(forms.get(axis, Linear({})) for axis in range(len(box))),
        inames,
        (*(p.iname for p in parts if p.tag is None or not p.tag.is_parallel), *given),
        tuple((p.iname, p.tag) for p in parts if p.tag is not None),
        Domain(inames, domain) if inames else None,
        () if condition is True else (condition,),
    )


def _check_axes(parts: Sequence[Part]) -> None:
    seen: dict[Tag, str] = {}
    for part in parts:
        if not isinstance(part.tag, (LocalAxis, GroupAxis)):
            continue
        if seen.setdefault(part.tag, part.iname) != part.iname:
            raise InvalidArgumentError(
                f"inames '{seen[part.tag]}' and '{part.iname}' would both be {part.tag}",
                instead="'l.auto' lays all axes over the threads of the block",
            )


def name_axes(
    kernel: Kernel,
    box: Sequence[Axis],
    base: str,
    given: str | Iterable[str] | None,
    argument: str,
) -> dict[int, str]:
    """Names for the kept axes of a box: ``given`` ones, or such as begin with ``base``."""
    kept = [i for i, axis in enumerate(box) if axis.is_kept]
    if given is None:
        return {axis: kernel.fresh_name(f"{base}_dim_{axis}") for axis in kept}
    wanted, rank = names_in(given), len(box)
    if len(wanted) not in (rank, len(kept)):
        count = str(rank) if rank == len(kept) else f"{rank} (or {len(kept)})"
        raise InvalidArgumentError(
            f"{argument} has {len(wanted)} names for {count} axes",
            instead="give one name per axis",
        )
    if len(wanted) == rank:
        wanted = tuple(wanted[axis] for axis in kept)
    for number, name in enumerate(wanted):
        new_name(kernel, name, name, wanted[:number])
    return dict(zip(kept, wanted, strict=True))


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
