"""Where the statement that fills a copy is inserted in the loop tree, and which cells it fills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, repeat, takewhile

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _footprint, _sets
from loopkit._arrays import AddressSpace
from loopkit._assertions.asserted_cells import data_of, may_hold
from loopkit._errors import IllegalTransformError
from loopkit._expression import variable_names
from loopkit._footprint import Axis, Use
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, guarded_accesses, where_all_hold
from loopkit._hidden import BASE, OTHER, labelled
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, inside
from loopkit._rules import reduced_inames
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._tree import Entry, LaunchBarrier, Path, common_prefix, entries_of, path_inames
from loopkit.transforms._uses import Indices

AXES: Mapping[AddressSpace, tuple[type[Tag], ...]] = {
    AddressSpace.GLOBAL: (),
    AddressSpace.LOCAL: (GroupAxis,),
    AddressSpace.PRIVATE: (GroupAxis, LocalAxis),
}
"""Along which axes memory exists several times."""


def is_thread_iname(kernel: Kernel, iname: str) -> bool:
    """Whether ``iname`` is a thread axis, or is to become one."""
    return isinstance(kernel.iname_tags.get(iname), (LocalAxis, LocalAuto))


@dataclass(frozen=True)
class Place:
    """A place in the loop tree: inside ``path``, before entry ``first``.

    All users stand between the entries ``first`` and ``last`` (inclusive).
    ``coordinates`` are the parallel inames that a statement there has.
    """

    path: Path
    first: int
    last: int
    coordinates: frozenset[str]

    @property
    def inames(self) -> frozenset[str]:
        """All inames of a statement at this place."""
        return frozenset(path_inames(self.path)) | self.coordinates


def find_place(
    kernel: Kernel,
    users: Sequence[Statement],
    *,
    what: str,
    swept: Collection[str],
    needed: Collection[str],
    writers: Iterable[Statement],
    space: AddressSpace,
    outer: Collection[str] | None = None,
) -> Place:
    """The outermost place before all ``users`` where the inames in ``needed`` are known.

    It is inside every loop around users that holds one of ``writers``, so that
    what they write is there, and inside no loop over a ``swept`` iname.  With
    ``outer``, the place is inside exactly the shared loops over these inames.
    """
    entries = entries_of(kernel.tree)
    paths = kernel.paths
    shared = common_prefix([paths[u.id] for u in users])
    free = tuple(takewhile(lambda key: key[0] not in swept, shared))
    parallel = coordinates(kernel, users, swept, needed, space)
    for name in sorted(needed):
        if name not in path_inames(free) and name not in parallel:
            raise _out_of_reach(kernel, what, name, users, shared, swept, space)
    written_by = {writer.id for writer in writers}
    holding = {key for id_ in written_by for key in paths[id_]}
    depth = 0
    for number, key in enumerate(free, 1):
        wanted = key[0] in outer if outer is not None else key[0] in needed
        if wanted or key in holding:
            depth = number
    place = free[:depth]
    if outer is not None:
        _check_outer(what, place, needed, outer, parallel)
    first, last = span(entries, {u.id for u in users}, place)
    first = _in_front_of_sharing(kernel, entries, first, len(place), written_by)
    return Place(place, first, last, parallel)


def _in_front_of_sharing(
    kernel: Kernel, entries: Sequence[Entry], first: int, depth: int, writers: Collection[str]
) -> int:
    """The entry in front of those that wait for threads together with entry ``first``.

    A sum and its reader are distributed over threads together, if they are adjacent.  None of the
    statements passed is one of ``writers``, or outside of the loops at ``depth``.
    """
    path = entries[first][1][:depth]
    while first > 0:
        (leaf, around), own = entries[first - 1], entries[first][0]
        if not isinstance(leaf, str) or not isinstance(own, str) or leaf in writers:
            break
        both = kernel.statement_by_id[leaf].inames & kernel.statement_by_id[own].inames
        waits = any(isinstance(kernel.iname_tags.get(iname), LocalAuto) for iname in both)
        if not waits or around[:depth] != path:
            break
        first -= 1
    return first


def coordinates(
    kernel: Kernel,
    users: Sequence[Statement],
    swept: Collection[str],
    needed: Collection[str],
    space: AddressSpace,
) -> frozenset[str]:
    """The parallel inames of a statement that fills memory in ``space`` for ``users``.

    Every block fills its own shared memory, every thread its private memory.  A user
    without an iname on an axis runs everywhere along it, so that it is filled there, too.
    """
    chosen: dict[object, str] = {}
    common: set[Tag | None] | None = None
    for user in users:
        tags = {kernel.iname_tags.get(iname) for iname in user.inames}
        common = tags if common is None else common & tags
        for iname in sorted(user.inames, key=lambda i: (i not in needed, i)):
            tag = kernel.iname_tags.get(iname)
            if isinstance(tag, AXES[space]) and iname not in swept:
                chosen.setdefault(tag, iname)
    return frozenset(i for tag, i in chosen.items() if i in needed or tag in (common or ()))


def _out_of_reach(
    kernel: Kernel,
    what: str,
    name: str,
    users: Sequence[Statement],
    shared: Path,
    swept: Collection[str],
    space: AddressSpace,
) -> IllegalTransformError:
    tag, path = kernel.iname_tags.get(name), path_inames(shared)
    without = next((u.id for u in users if name not in u.inames), None)
    if is_thread_iname(kernel, name):
        why = f" ({tag}), but shared memory exists once for all threads of a block"
        instead = (
            f"sweep '{name}' too, or give each thread a separate copy "
            "(temporary_address_space='private')"
        )
    elif isinstance(tag, GroupAxis):
        why = f" ({tag}), but global memory exists once for all blocks"
        instead = "stage in shared or private memory"
    elif name in path:
        front = [i for i in path[: path.index(name) + 1] if i not in swept]
        order = ",".join([*front, *(i for i in path if i not in front)])
        around = next(i for i in path if i in swept)
        why = f", which is a loop inside the swept loop '{around}'"
        instead = f"prioritize_loops('{order}') moves '{name}' out; or sweep '{name}', too"
    elif without is not None:
        why = f", but statement '{without}' that uses it is outside of that loop"
        instead = f"sweep '{name}', too, or select statements by `within`"
    else:
        why = f", but its users do not share one loop over '{name}'"
        instead = f"sweep '{name}', too, or select one of the users by `within`"
    return IllegalTransformError(f"{what} depends on '{name}'{why}", instead=instead)


def _check_outer(
    what: str,
    path: Path,
    needed: Collection[str],
    outer: Collection[str],
    parallel: Collection[str],
) -> None:
    for name in sorted(needed):
        if name not in outer and name not in parallel:
            raise IllegalTransformError(
                f"{what} depends on '{name}', which is not among fetch_outer_inames",
                instead=f"add '{name}' there, or sweep it",
            )
    inames = path_inames(path)
    for number, name in enumerate(inames):
        if name in outer:
            continue
        within = [other for other in inames[number + 1 :] if other in outer]
        if within:
            raise IllegalTransformError(
                f"{what} is to be filled inside of loop '{within[0]}', which is inside of loop "
                f"'{name}'; but fetch_outer_inames does not name '{name}'",
                instead=f"add '{name}' there, or move the loop by prioritize_loops",
            )
        raise IllegalTransformError(
            f"what is copied is written inside of loop '{name}', so {what} must be filled there, "
            f"too; but fetch_outer_inames does not name '{name}'",
            instead=f"add '{name}' there",
        )


def span(
    entries: Sequence[Entry], users: Collection[LaunchBarrier | str], place: Path
) -> tuple[int, int]:
    """The entries of the first and the last user, widened to whole loops inside ``place``."""
    numbers = [i for i, (statement, _) in enumerate(entries) if statement in users]
    first, last = min(numbers), max(numbers)
    depth = len(place)

    def together(a: int, b: int) -> bool:
        left, right = entries[a][1][: depth + 1], entries[b][1][: depth + 1]
        return len(left) > depth and left == right

    while first > 0 and together(first - 1, first):
        first -= 1
    while last + 1 < len(entries) and together(last, last + 1):
        last += 1
    return first, last


Names = Mapping[int, str]
"""What positions along the axes of a box are called, by the axis."""


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
    """The positions to copy: a convex set around those that are used, or exactly these."""
    kept = [(n, a.extent) for n, a in zip(positions, box, strict=True) if n is not None]
    full = _footprint.box_set([n for n, _ in kept], [e for _, e in kept])
    if whole_box:
        return full
    keep = place.inames | frozenset(kernel.sizes)
    cells = _footprint.touched_cells(uses, box, positions, keep, exact=exact)
    return (cells.coalesce() if exact else _footprint.hull(cells)) & full


def where_in_bounds(kernel: Kernel, value: Expression, cells: Indices, *, is_open: bool) -> isl.Set:
    """``{ names of the cells }``: where all that a function of ``cells`` accesses is in bounds.

    Exact for affine subscripts and shapes; of others nothing is said. Where it ``is_open`` which
    cells are used, those of temporaries are left out that nothing ever writes.
    """
    integers = kernel.integers.union(*map(variable_names, cells))
    result = _sets.universe()
    bound = reduced_inames(value)
    terms = kernel.domain_of(bound) if bound else None
    for name, indices, guards in guarded_accesses(value):
        if indices and kernel.is_array(name):
            inside = inside_array(kernel.array(name).shape, indices)
            if is_open:
                inside = inside & where_written(kernel, name, indices)
            if guards:
                inside = inside | where_all_hold(guards, integers).complement()
            if terms is not None and not bound.isdisjoint(_sets.names_of(inside)):
                outside = _sets.project_out(terms & inside.complement(), sorted(bound))
                inside = outside.complement()
            result = result & inside
    return result


def where_written(kernel: Kernel, name: str, indices: Indices) -> isl.Set:
    """``{ names in indices, sizes }``: where a temporary's cell may ever be written."""
    held, writers = kernel.temporary_by_name.get(name), kernel.writers.get(name, ())
    if held is None or held.initializer is not None or not writers:
        return _sets.universe()
    model = model_of(kernel)
    cell = model.cell(name, indices, Instance(None, BASE))
    writing = (model.writing(Instance(w.id, OTHER), cell) for w in writers)
    found = reduce(isl.Set.union, writing)
    return _sets.project_out(found, labelled(_sets.names_of(found), OTHER))


def inside_array(shape: Sequence[Expression] | None, cells: Sequence[Expression]) -> isl.Set:
    """``{ names of the cells }``: where these are in an array, as far as that can be said."""
    if shape is None or len(shape) != len(cells):
        return _sets.universe()
    known = (pair for pair in zip(cells, shape, strict=True) if all(map(_sets.is_pw_affine, pair)))
    return _sets.intersection(inside(cell, extent) for cell, extent in known)


def limits_left(
    kernel: Kernel, value: Expression, where: isl.Set, positions: Iterable[str]
) -> Guards | None:
    """Guards beyond ``where`` that keep all reads of an expression of ``positions`` in bounds.

    Affine subscripts need none (:func:`where_in_bounds`).  None where the guards depend on data.
    """
    data = replace(data_of(kernel), integers=kernel.integers.union(positions))
    known = where, kernel.assertions
    found: list[Expression] = []
    accessed = [(n, i) for n, i, _ in guarded_accesses(value) if i and kernel.is_array(n)]
    pairs = (zip(i, kernel.array(n).shape or repeat(None), strict=False) for n, i in accessed)
    for index, extent in chain.from_iterable(pairs):
        by_data = any(map(kernel.is_array, variable_names(index)))
        if _sets.is_pw_affine(index) and not by_data:
            continue
        if extent is None:
            return None
        limits = prim.Comparison(index, ">=", 0), prim.Comparison(index, "<", extent)
        against = [(limit, [prim.LogicalNot(limit)]) for limit in limits]
        left = [limit for limit, no in against if not may_hold(*known, no, data).is_empty()]
        if left and by_data:
            return None
        found += left
    return tuple(found)


def are_beyond_sets(kernel: Kernel, uses: Iterable[Use]) -> bool:
    """Whether statements have guards over inames and sizes that are not affine."""
    guards = [p for use in uses for p in use.statement.predicates]
    return any(variable_names(p) <= kernel.integers and not _sets.is_condition(p) for p in guards)


def cells_to_fill(
    kernel: Kernel,
    uses: Sequence[Use],
    box: Sequence[Axis],
    names: Names,
    place: Place,
    value: Callable[[Indices], Expression] | None,
    *,
    whole_box: bool,
) -> tuple[isl.Set, Guards]:
    """The positions to fill in a box, over ``names``, and the guards that no affine set expresses.

    Without ``value`` these are exactly the cells that ``uses`` access.  With it, the box around
    them is used, without the cells at which evaluating ``value`` would access an array out of
    bounds.
    """
    positions = [names.get(axis) for axis in range(len(box))]
    used = partial(cells_in_use, kernel, uses, box, positions, place)
    if value is None:
        return used(exact=True), ()
    at = tuple(
        axis.lower.expression if name is None else axis.cell_at(name)
        for axis, name in zip(box, positions, strict=True)
    )
    held, is_open = value(at), whole_box or any(use.chosen for use in uses)
    there = where_in_bounds(kernel, held, at, is_open=is_open)
    cells = used(whole_box=whole_box) & there
    around = cells & kernel.domain_around(place.inames) & kernel.assumptions.set
    left = partial(limits_left, kernel, held, positions=names.values())
    if left(around) == ():
        return cells, ()
    cells = used(exact=True, whole_box=whole_box) & there
    return cells, (left(around & cells) or ()) if are_beyond_sets(kernel, uses) else ()
