"""What add_prefetch, precompute and buffer_array share: a copy of a tile, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._footprint import (
    Axis,
    FootprintError,
    Use,
    bounding_box,
    box_set,
    hull,
    iname_ranges,
    outer_names,
    touched_cells,
)
from loopkit._guarded import Guards, where_all_hold
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import space_of
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._tree import Key, build, flatten
from loopkit.transforms._address_spaces import is_private, is_thread_iname, parse_address_space
from loopkit.transforms._common import integer_names
from loopkit.transforms._placement import Place, find_place
from loopkit.transforms._transfer_loops import Nest, by_stride, make_nest, name_axes

Indices = tuple[Expression, ...]


# {{{ arguments


def name_list(names: str | Collection[str] | None) -> tuple[str, ...]:
    """Names given as a list or as ``"i, j"``."""
    if names is None:
        return ()
    return names_in(names)


def check_sweep(kernel: Kernel, inames: str | Collection[str] | None) -> tuple[str, ...]:
    """Swept inames, known to exist and to stay inside a block."""
    swept = name_list(inames)
    for iname in swept:
        kernel.check_iname(iname)
        tag = kernel.iname_tags.get(iname)
        if isinstance(tag, GroupAxis):
            raise InvalidArgumentError(
                f"'{iname}' is a block axis ({tag}): blocks share no memory that could be filled "
                "for all of them",
                instead="sweep inames inside a block only",
            )
    return swept


def check_free(kernel: Kernel, names: Sequence[str]) -> None:
    """An error if one of ``names`` is taken."""
    for name in names:
        if name in kernel.all_names:
            raise InvalidArgumentError(f"the name '{name}' is taken", instead="choose another")


def choose_space(
    kernel: Kernel,
    given: AddressSpace | str | None,
    swept: Collection[str],
    tags: Collection[Tag | None],
) -> AddressSpace:
    """Shared memory where threads fill the copy together, else private memory."""
    if given is not None:
        space = parse_address_space(given)
        if space is not AddressSpace.AUTO:
            return space
    together = any(is_thread_iname(kernel, i) for i in swept)
    if together or any(isinstance(tag, (LocalAuto, LocalAxis)) for tag in tags):
        return AddressSpace.LOCAL
    return AddressSpace.PRIVATE


def axis_tags(
    tags: Mapping[int, Tag | None], space: AddressSpace, what: str
) -> Mapping[int, Tag | None]:
    """Tags of a nest for memory in ``space``: what one thread owns, that thread fills alone."""
    result = dict(tags)
    for axis, tag in tags.items():
        if isinstance(tag, GroupAxis):
            raise InvalidArgumentError(
                f"{what} cannot be spread over blocks ({tag})",
                instead="'l.auto' spreads it over the threads of the block",
            )
        if space is not AddressSpace.PRIVATE:
            continue
        if isinstance(tag, LocalAuto):
            result[axis] = None
        elif isinstance(tag, LocalAxis):
            raise InvalidArgumentError(
                f"{what} is private to each thread: other threads ({tag}) cannot fill it",
                instead="temporary_address_space='shared', or default_tag=None",
            )
    return result


# }}}

# {{{ accesses


@dataclass(frozen=True, eq=False)
class Access:
    """One place in a statement's text where the array (or rule) is used."""

    statement: Statement
    indices: Indices
    text: str
    guards: Guards = ()
    """The conditions in the text under which the access happens."""


def make_uses(kernel: Kernel, accesses: Sequence[Access]) -> list[Use]:
    """The accesses with the instances for which they happen; where data decide, may happen."""
    integers = integer_names(kernel)
    domains: dict[tuple[str, Guards], isl.Set] = {}
    uses = []
    for access in accesses:
        statement = access.statement
        whole = (statement.id, ())
        if whole not in domains:
            domain = kernel.statement_domain(statement) & kernel.assumptions.set
            domains[whole] = domain & where_all_hold(statement.predicates, integers)
        around = domains[whole]
        inner = tuple(g for g in access.guards if g not in statement.predicates)
        if (statement.id, inner) not in domains:
            domains[statement.id, inner] = around & where_all_hold(inner, integers)
        here = domains[statement.id, inner]
        uses.append(Use(access.indices, here, access.text, around))
    return uses


def find_box(
    kernel: Kernel, uses: Sequence[Use], swept: Sequence[str], what: str
) -> tuple[Axis, ...]:
    """The box that ``uses`` touch; errors say what to do about them."""
    try:
        return bounding_box(uses, iname_ranges(kernel, swept))
    except FootprintError as error:
        raise IllegalTransformError(
            f"{what} has no footprint of constant size: {error.why}", instead=error.instead
        ) from None


# }}}

# {{{ the copy


@dataclass(frozen=True, eq=False)
class Copy:
    """A temporary that holds a box of cells."""

    temporary: TemporaryVariable
    box: tuple[Axis, ...]

    def at(self, indices: Sequence[Expression]) -> Expression:
        """The copy's element for the cell ``indices``."""
        return self.element(
            [a.local(i) for a, i in zip(self.box, indices, strict=True) if a.is_kept]
        )

    def element(self, positions: Sequence[Expression]) -> Expression:
        """The copy's element at positions along the axes that it has."""
        name = prim.Variable(self.temporary.name)
        return prim.Subscript(name, tuple(positions)) if positions else name


@dataclass(frozen=True, eq=False)
class Staging:
    """All that says how a copy is made; see :func:`stage`.

    ``value(cells)`` is what a cell holds; for ``accesses`` it stands for the
    reads ``sources``, by array, and it needs the inames ``needed`` beside those of
    the footprint.  ``inside(cells)`` is the set where it can be computed, or None.
    """

    made_by: str
    what: str
    accesses: Sequence[Access]
    box: tuple[Axis, ...]
    swept: tuple[str, ...]
    space: AddressSpace
    tags: Mapping[int, Tag | None]
    value: Callable[[Indices], Expression]
    inside: Callable[[Indices], isl.Set | None]
    sources: Mapping[str, Sequence[Use]]
    dtype: np.dtype[np.generic] | None
    temporary: str
    statement: str
    base: str
    kind: str = "move"
    array: ArrayArg | TemporaryVariable | None = None
    needed: frozenset[str] = frozenset()
    outer: Collection[str] | None = None
    axis_names: Sequence[str] | None = None
    names_argument: str = "dim_arg_names"
    whole_box: bool = False
    uses: Sequence[Use] = field(default=())


def stage(kernel: Kernel, staging: Staging) -> tuple[Kernel, Copy]:
    """Add the temporary, and the statement that fills it before its first user."""
    s = staging
    users = list({a.statement.id: a.statement for a in s.accesses}.values())
    if s.space is AddressSpace.GLOBAL:
        _check_one_block(kernel, users, s.what)
    hidden = inames_of_sources(kernel, s.sources)
    for iname in sorted((hidden | s.needed) & set(s.swept)):
        raise IllegalTransformError(
            f"{s.what} sweeps '{iname}', but what it stages differs along '{iname}' without an "
            "index that says so",
            instead=f"do not sweep '{iname}', or let an index (an argument of the rule) name it",
        )
    writers = [w for name in s.sources for w in kernel.writers.get(name, ())]
    needed = (outer_names(s.box) & frozenset(kernel.all_inames)) | s.needed | hidden
    place = find_place(
        kernel,
        users,
        what=s.what,
        swept=s.swept,
        needed=needed,
        writers=writers,
        space=s.space,
        outer=s.outer,
    )
    axis_names, positions = name_axes(kernel, s.box, s.base, s.axis_names, s.names_argument)
    cells = cells_in_use(kernel, s.uses, s.box, positions, place, whole_box=s.whole_box)
    at = tuple(
        axis.lower.expression if name is None else axis.cell_at(name)
        for axis, name in zip(s.box, positions, strict=True)
    )
    inside = s.inside(at)
    if inside is not None:
        cells = cells & inside
    kept = [i for i, axis in enumerate(s.box) if axis.is_kept]
    nest = make_nest(
        kernel,
        s.box,
        place,
        cells=cells,
        position_names=positions,
        axis_names=axis_names,
        base=s.base,
        tags=s.tags,
        order=by_stride(s.array, kept),
        together=s.space is not AddressSpace.PRIVATE,
    )
    shape = tuple(s.box[i].extent for i in kept)
    temporary = TemporaryVariable(s.temporary, s.dtype, shape, s.space, made_by=s.made_by)
    copy = Copy(temporary, s.box)
    fill = Statement(
        s.statement,
        copy.element(nest.kept(s.box)),
        s.value(nest.cells(s.box)),
        place.inames | frozenset(nest.inames),
        predicates=nest.predicates,
        kind=s.kind,
        made_by=s.made_by,
    )
    kernel = kernel.with_(temporaries=(*kernel.temporaries, temporary))
    return with_nest(kernel, fill, nest, place, place.first), copy


def _check_one_block(kernel: Kernel, users: Sequence[Statement], what: str) -> None:
    for user in users:
        for iname in sorted(user.inames):
            tag = kernel.iname_tags.get(iname)
            if isinstance(tag, GroupAxis):
                raise InvalidArgumentError(
                    f"{what} in global memory would be shared by blocks ('{iname}' is {tag}), "
                    "which nothing orders within a launch",
                    instead="stage in shared or private memory",
                )


def inames_of_sources(kernel: Kernel, names: Collection[str]) -> frozenset[str]:
    """The inames by which temporaries differ although no index says so.

    A private temporary differs from thread to thread, and a shared one from
    block to block.
    """
    found: set[str] = set()
    for name in names:
        temporary = kernel.temporary_by_name.get(name)
        if temporary is None or space_of(kernel, temporary) is AddressSpace.GLOBAL:
            continue
        kinds = (GroupAxis, LocalAxis) if is_private(kernel, temporary) else (GroupAxis,)
        for writer in kernel.writers.get(name, ()):
            found |= {i for i in writer.inames if isinstance(kernel.iname_tags.get(i), kinds)}
    return frozenset(found)


def cells_in_use(
    kernel: Kernel,
    uses: Sequence[Use],
    box: Sequence[Axis],
    positions: Sequence[str | None],
    place: Place,
    *,
    exact: bool = False,
    whole_box: bool = False,
) -> isl.Set:
    """The positions to move: a convex set around those that are used, or these exactly."""
    kept = [(n, a.extent) for n, a in zip(positions, box, strict=True) if n is not None]
    full = box_set([n for n, _ in kept], [e for _, e in kept])
    if whole_box:
        return full
    keep = place.inames | frozenset(kernel.sizes)
    cells = touched_cells(uses, box, positions, keep, exact=exact)
    return (cells if exact else hull(cells)) & full


def inside_array(shape: Sequence[Expression] | None, cells: Sequence[Expression]) -> isl.Set | None:
    """The set where ``cells`` are in an array; None where that cannot be said."""
    if shape is None or len(shape) != len(cells):
        return None
    result = _sets.universe()
    for cell, extent in zip(cells, shape, strict=True):
        try:
            value, end = _sets.pw_affine(cell), _sets.pw_affine(extent)
        except _sets.NotAffineError:
            continue
        result = result & value.nonneg_set() & value.lt_set(end)
    return result


def with_nest(kernel: Kernel, statement: Statement, nest: Nest, place: Place, entry: int) -> Kernel:
    """The kernel with one statement more, in ``nest``, before entry number ``entry``."""
    entries = flatten(kernel.tree)
    loops: tuple[Key, ...] = tuple((iname, 0) for iname in nest.loops)
    entries.insert(entry, (statement.id, (*place.path, *loops)))
    domains = kernel.domains if nest.domain is None else (*kernel.domains, nest.domain)
    return kernel.with_(
        domains=domains,
        statements=(*kernel.statements, statement),
        tags=(*kernel.tags, *nest.tags),
        tree=build(entries),
    )


def with_statements(kernel: Kernel, changed: Mapping[str, Statement]) -> Kernel:
    """The kernel with some statements exchanged."""
    return kernel.with_(statements=tuple(changed.get(s.id, s) for s in kernel.statements))


# }}}
