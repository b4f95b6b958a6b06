"""The loop nest that fills or empties a copy of a tile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, Nested, TemporaryVariable, strides_of
from loopkit._errors import InvalidArgumentError
from loopkit._footprint import Axis, box_set
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel
from loopkit._linear import Linear, total, variable
from loopkit._nodes import Expression
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit.transforms._placement import Place
from loopkit.transforms._thread_layout import block_shape, thread_layout


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
    position_names: Sequence[str | None],
    axis_names: Sequence[str],
    base: str,
    tags: Mapping[int, Tag | None],
    order: Sequence[int],
    together: bool,
    taken: Collection[str] = (),
) -> Nest:
    """A nest over ``cells``, a set over ``position_names`` and the inames of ``place``.

    ``order`` lists the kept axes, the one that neighbouring threads go along
    last.  An axis tagged ``l.auto`` is laid over the threads of the block
    together with all others so tagged; the others run as their tags say.
    ``together`` says that all threads of the block see the copy.
    """
    context = kernel.domain_around(place.inames) & kernel.assumptions.set
    auto = [axis for axis in order if isinstance(tags[axis], LocalAuto)]
    plain = [axis for axis in order if not isinstance(tags[axis], LocalAuto)]
    forms = {axis: variable(axis_names[axis]) for axis in plain}
    parts = [Part(axis_names[axis], box[axis].extent, tags[axis]) for axis in plain]
    deal: _Deal | None = None
    if auto or (together and not order):
        # Of a single cell, too: one thread fills it.
        names = [axis_names[axis] for axis in auto]
        extents = [box[axis].extent for axis in auto]
        deal = _deal(kernel, extents, names, base, {*taken, *axis_names})
        parts += deal.parts
        forms |= dict(zip(auto, deal.positions, strict=True))
        cells = cells & deal.cells
    _check_axes(parts)
    forms_of = {name: forms[axis] for axis, name in enumerate(position_names) if name is not None}
    cells = _rewritten(cells, forms_of)
    full = box_set([p.iname for p in parts], [p.extent for p in parts])
    domain_set = (cells & full).gist(context)
    predicates: tuple[Expression, ...] = ()
    if deal is not None and _leaves_threads_out(domain_set & context, parts):
        full = full & deal.ties
        condition = _sets.conditions(domain_set.gist(full & context))
        predicates = () if condition is True else (condition,)
        domain_set = full
    given = () if deal is None else deal.given
    if not parts and not given:
        # One cell: when there is anything to move, no iname can say.
        condition = _sets.conditions(domain_set)
        predicates = () if condition is True else (condition,)
    inames = (*(p.iname for p in parts), *given)
    return Nest(
        tuple(forms.get(axis, Linear({})) for axis in range(len(box))),
        inames,
        (*(p.iname for p in parts if p.tag is None or not p.tag.is_parallel), *given),
        tuple((p.iname, p.tag) for p in parts if p.tag is not None),
        Domain(inames, domain_set) if inames else None,
        predicates,
    )


@dataclass(frozen=True)
class Part:
    """One iname of a nest, with values from 0 to ``extent - 1``."""

    iname: str
    extent: int
    tag: Tag | None


@dataclass(frozen=True, eq=False)
class _Deal:
    """Axes dealt out to threads.

    The inames in ``given`` have one value each, once those in ``parts`` are known;
    ``ties`` says which.  ``cells`` are the values for which there is a cell.
    """

    parts: tuple[Part, ...]
    positions: tuple[Linear, ...]
    given: tuple[str, ...]
    ties: isl.Set
    cells: isl.Set


def _deal(
    kernel: Kernel, extents: Sequence[int], names: Sequence[str], base: str, taken: Collection[str]
) -> _Deal:
    layout = thread_layout(extents, block_shape(kernel), names, base)
    used = {name for name, _, _ in layout.inames}
    renamed = _fresh(kernel, sorted(used - set(names)), taken)
    values = {old: variable(new) for old, new in renamed.items()}
    parts = tuple(Part(renamed.get(n, n), extent, tag) for n, extent, tag in layout.inames)
    number = layout.number.substitute(values)
    positions = [p.substitute(values) for p in layout.positions]
    # Positions with quotients become inames with one value each: what is said of them then
    # needs no quotients.
    given = [k for k, position in enumerate(positions) if layout.has_quotient(k)]
    for k in given:
        positions[k] = variable(names[k])
    ties = _sets.universe()
    if given:
        row_major = total(p * w for p, w in zip(positions, layout.weights, strict=True))
        ties = isl.PwAff.from_aff(_sets.affine((number - row_major).expression)).zero_set()
        bounded = [k for k in given if k > 0]
        ties = ties & box_set([names[k] for k in bounded], [extents[k] for k in bounded])
    cells = ties if layout.is_even else ties & _nonneg(number * -1 + (layout.cells - 1))
    return _Deal(parts, tuple(positions), tuple(names[k] for k in given), ties, cells)


def _nonneg(form: Linear) -> isl.Set:
    return isl.PwAff.from_aff(_sets.affine(form.expression)).nonneg_set()


def _rewritten(cells: isl.Set, forms: Mapping[str, Linear]) -> isl.Set:
    """``cells`` with names replaced by forms over others."""
    for name, form in forms.items():
        if form.expression != prim.Variable(name):
            cells = _sets.project_out(cells & _sets.equality(name, form.expression), [name])
    return cells


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


def _fresh(kernel: Kernel, names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found[name] = kernel.fresh_name(name, {*taken, *found.values()})
    return found


def name_axes(
    kernel: Kernel,
    box: Sequence[Axis],
    base: str,
    given: Sequence[str] | None,
    argument: str,
) -> tuple[list[str], list[str | None]]:
    """Names of the axes of a box: those of inames, and those of positions in sets."""
    rank = len(box)
    kept = [i for i, axis in enumerate(box) if axis.is_kept]
    names = {i: f"{base}_dim_{i}" for i in range(rank)}
    if given is not None:
        if len(given) not in (rank, len(kept)):
            wanted = str(rank) if rank == len(kept) else f"{rank} (or {len(kept)})"
            raise InvalidArgumentError(
                f"{argument} has {len(given)} names for {wanted} axes",
                instead="give one name per axis",
            )
        for axis, name in zip(range(rank) if len(given) == rank else kept, given, strict=True):
            if axis in kept and name in kernel.all_names:
                raise InvalidArgumentError(
                    f"{argument}: '{name}' is taken", instead="choose another name"
                )
            names[axis] = name
    else:
        names = dict(zip(names, _fresh(kernel, [*names.values()], ()).values(), strict=True))
    axis_names = [names[i] for i in range(rank)]
    return axis_names, [axis_names[i] if i in kept else None for i in range(rank)]


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
