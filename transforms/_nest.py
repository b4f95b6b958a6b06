"""The loop nest that fills or empties a copy of a tile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, Nested, TemporaryVariable, strides_of
from loopkit._errors import InvalidArgumentError
from loopkit._footprint import Axis, box_set
from loopkit._kernel import Domain, Kernel
from loopkit._linear import Linear, linear, total, variable
from loopkit._nodes import Expression
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit.transforms._lay_over_threads import block_shape, lay_over_threads
from loopkit.transforms._place import Place


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
    forms: dict[int, Linear] = {}
    parts: list[tuple[str, int, Tag | None]] = []
    number: Linear | None = None
    count = 1
    for axis in plain:
        forms[axis] = variable(axis_names[axis])
        parts.append((axis_names[axis], box[axis].extent, tags[axis]))
    if auto or (together and not order):
        # Of a single cell, too: one thread fills it.
        extents = [box[axis].extent for axis in auto]
        names = [axis_names[axis] for axis in auto]
        layout = lay_over_threads(extents, block_shape(kernel), names, base)
        used = {name for name, _, _ in layout.inames}
        renamed = _fresh(kernel, sorted(used - set(names)), {*taken, *axis_names})
        values = {old: variable(new) for old, new in renamed.items()}
        for axis, position in zip(auto, layout.positions, strict=True):
            forms[axis] = position.substitute(values)
        for name, extent, tag in layout.inames:
            parts.append((renamed.get(name, name), extent, tag))
            count *= extent
        if layout.number is not None:
            number = layout.number.substitute(values)
            cell_count = 1
            for axis in auto:
                cell_count *= box[axis].extent
            bound = _sets.affine((number * -1 + (cell_count - 1)).expression)
            cells = cells & isl.PwAff.from_aff(bound).nonneg_set()
    _check_axes(parts)
    values = {
        position: forms[axis]
        for axis, position in enumerate(position_names)
        if position is not None and forms[axis].expression != prim.Variable(position)
    }
    cells = _rewritten(cells, values)
    full = box_set([n for n, _, _ in parts], [e for _, e, _ in parts])
    domain_set = (cells & full).gist(context)
    predicates: tuple[Expression, ...] = ()
    if _leaves_threads_out(domain_set & context, parts):
        condition = _sets.conditions(domain_set.gist(full & context))
        predicates = () if condition is True else (condition,)
        domain_set = full
    inames = tuple(name for name, _, _ in parts)
    loops = tuple(name for name, _, tag in parts if tag is None or not tag.is_parallel)
    return Nest(
        tuple(forms.get(axis, Linear({})) for axis in range(len(box))),
        inames,
        loops,
        tuple((name, tag) for name, _, tag in parts if tag is not None),
        Domain(inames, domain_set) if inames else None,
        predicates,
    )


def _rewritten(cells: isl.Set, values: Mapping[str, Linear]) -> isl.Set:
    """``cells`` with names replaced, each constraint by itself.

    Unlike projecting the names out, this keeps quotients as they are written.
    """
    if not values:
        return cells
    result: isl.Set | None = None
    for basic in cells.get_basic_sets():
        piece = _sets.universe()
        for constraint in basic.get_constraints():
            terms, constant = _sets.constraint_terms(constraint)
            form = total(linear(e) * c for c, e in terms) + constant
            function = isl.PwAff.from_aff(_sets.affine(form.substitute(values).expression))
            if constraint.is_equality():
                piece = piece & function.zero_set()
            else:
                piece = piece & function.nonneg_set()
        result = piece if result is None else result | piece
    return cells if result is None else result


def _leaves_threads_out(domain: isl.Set, parts: Sequence[tuple[str, int, Tag | None]]) -> bool:
    """Whether a thread axis would appear shorter than the block is, were this the domain."""
    threads = [(n, e) for n, e, tag in parts if isinstance(tag, LocalAxis)]
    for corner in (0, 1):
        at = [_sets.equality(name, (extent - 1) * corner) for name, extent in threads]
        everywhere = domain
        for one in at:
            everywhere = everywhere & one
        if everywhere.is_empty() and any((domain & one).is_empty() for one in at):
            return True
    return False


def _check_axes(parts: Sequence[tuple[str, int, Tag | None]]) -> None:
    seen: dict[Tag, str] = {}
    for name, _, tag in parts:
        if isinstance(tag, (LocalAxis, GroupAxis)) and seen.setdefault(tag, name) != name:
            raise InvalidArgumentError(
                f"inames '{seen[tag]}' and '{name}' would both be {tag}",
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
        names = {i: kernel.fresh_name(name) for i, name in names.items()}
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
