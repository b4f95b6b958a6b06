"""What add_prefetch, precompute and buffer_array share: a copy of a tile, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from itertools import chain, repeat
from types import MappingProxyType

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _footprint, _sets
from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace, ArrayArg, DType, TemporaryVariable, parse_address_space
from loopkit._assertions.cells import data_of, may_hold
from loopkit._cached import cached_property
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import replace_accesses, to_text, variable_names
from loopkit._footprint import Axis, Range, Use
from loopkit._frozen import dataclass
from loopkit._guarded import (
    Guards,
    are_decided,
    flags_of,
    guarded_accesses,
    guarded_reads,
    where_all_hold,
)
from loopkit._hidden import BASE, OTHER, labelled
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._places import space_of
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, inside
from loopkit._relations import grouped
from loopkit._rules import expand_in, reduced_inames
from loopkit._simplify import simplify_indices
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._tree import Entry, Path, build, entries_of
from loopkit.transforms._chosen import check_ranges, with_ranges
from loopkit.transforms._common import is_parallel, map_reads, with_statements
from loopkit.transforms._placement import AXES, Place, find_place, is_thread_iname
from loopkit.transforms._rule_exchange import replaced_within_rules, with_operands
from loopkit.transforms._transfer_loops import Nest, by_stride, make_nest, name_axes

Indices = tuple[Expression, ...]
Value = Callable[[Indices], Expression]
"""What is in a cell, by its indices."""


def choose_space(
    kernel: Kernel,
    given: AddressSpace | str | None,
    swept: Collection[str],
    tags: Collection[Tag | None],
    outer: str | Iterable[str] | None = None,
    uses: Iterable[Use] = (),
) -> AddressSpace:
    """Shared memory where threads fill the copy together, else private memory.

    They do, too, where the caller says which axes are ``outer``, and those of threads are not among
    them, nor in the ``uses``.
    """
    space = parse_address_space(given)
    if space is not AddressSpace.AUTO:
        return space
    together = any(is_thread_iname(kernel, i) for i in swept)
    outside = frozenset(names_in(outer or ()))
    if any(is_parallel(kernel, iname) for iname in outside):
        together = together or _have_threads(kernel, uses, outside.union(swept))
    if together or any(isinstance(tag, (LocalAuto, LocalAxis)) for tag in tags):
        return AddressSpace.LOCAL
    return AddressSpace.PRIVATE


def _have_threads(kernel: Kernel, uses: Iterable[Use], apart: Collection[str]) -> bool:
    """Whether threads share what ``uses`` touch: they run apart, and move none of them."""
    users, moving = set[str](), set[str]()
    for use in uses:
        users |= use.statement.inames
        moving |= {name for index in use.indices for name in variable_names(index)}
    threads = {iname for iname in users.difference(apart) if is_thread_iname(kernel, iname)}
    return bool(threads) and threads.isdisjoint(moving)


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


def uses_of(
    kernel: Kernel, statement: Statement, name: str, found: Sequence[tuple[Indices, Guards]]
) -> list[Use]:
    """Uses of ``name`` with these indices, under these conditions of the statement's text.

    Where data decide whether one happens, it may happen; where they choose an index, it may be
    all that is known of them.
    """
    if not found:
        return []
    domain = kernel.statement_domain(statement) & kernel.assumptions.set
    around = domain & where_all_hold(statement.predicates, kernel.integers)
    from_data = not _sets.involved_names(domain) <= kernel.integers
    domains: dict[Guards, isl.Set] = {(): around}
    shape = kernel.array(name).shape if kernel.is_array(name) else None
    uses = []
    for indices, guards in found:
        inner = tuple(g for g in guards if g not in statement.predicates)
        if inner not in domains:
            domains[inner] = around & where_all_hold(inner, kernel.integers)
        text = to_text(element(name, indices))
        by_data = from_data or not are_decided((*statement.predicates, *inner), kernel.integers)
        use = Use(statement, indices, text, domains[inner], around, by_data)
        uses.append(with_ranges(kernel, use, shape))
    return uses


def reads_in(statement: Statement, name: str) -> list[tuple[Indices, Guards]]:
    """The reads of an array in a statement's text (not the one that an update implies)."""
    return list(dict.fromkeys((i, g) for n, i, g in guarded_reads(statement) if n == name))


def reads_of(kernel: Kernel, statement: Statement, name: str) -> list[Use]:
    """The uses that :func:`reads_in` finds."""
    return uses_of(kernel, statement, name, reads_in(statement, name))


def find_box(
    kernel: Kernel,
    uses: Sequence[Use],
    swept: Sequence[str],
    what: str,
    more: Mapping[str, Range] = MappingProxyType({}),
) -> tuple[Axis, ...]:
    """The box that ``uses`` touch; errors say what to do about them.

    ``more`` are names beside inames that run, and how far.
    """
    try:
        check_ranges(kernel, uses)
        ranges = _footprint.iname_ranges(kernel, swept)
        return _footprint.bounding_box(uses, {**ranges, **more})
    except _footprint.FootprintError as error:
        raise IllegalTransformError(
            f"{what} has no footprint of constant size: {error.why}", instead=error.instead
        ) from None


def element(name: str, cells: Indices) -> Expression:
    """``name[cells]``, or the bare name of a scalar."""
    return prim.Subscript(prim.Variable(name), cells) if cells else prim.Variable(name)


def replace_reads(
    statement: Statement, name: str, new: Callable[[Indices], Expression | None]
) -> Statement:
    """The statement with reads of an array replaced; what it writes stays."""

    def one(found: str, indices: Indices) -> Expression | None:
        return new(indices) if found == name else None

    return map_reads(statement, lambda e: replace_accesses(e, one))


@dataclass(frozen=True, eq=False, kw_only=True)
class Staging:
    """A copy of a box of cells: how big it is, in what memory, and how threads fill it.

    ``base`` is what is copied, which rules may call ``base_in_rules``, and ``loops_base`` what
    names of loops begin with.  ``tags`` are those of the loops along the axes of ``box``, which are
    called ``axis_names``, if the argument of that ``axis_argument`` gave some; along the ``reused``
    axes inames run that exist.
    The copy's cells come from ``sources``, arrays, and depend on the inames ``needed`` beside
    those of the footprint; with ``whole_box`` all of them are filled.  It is filled inside
    the loops over ``outer``, where these are given.  ``array`` is laid out as loops over its
    cells should go.  With ``may_move`` a private copy becomes a shared one where
    later tags make it one for several threads.
    """

    made_by: str
    what: str
    base: str
    name: str
    dtype: DType | None
    box: tuple[Axis, ...]
    swept: tuple[str, ...]
    space: AddressSpace
    tags: Mapping[int, Tag | None]
    sources: Collection[str]
    array: ArrayArg | TemporaryVariable | None = None
    needed: frozenset[str] = frozenset()
    outer: str | Iterable[str] | None = None
    axis_names: str | Iterable[str] | None = None
    axis_argument: str = ""
    loops_base: str = ""
    base_in_rules: str = ""
    reused: Mapping[int, str] = field(default_factory=dict)
    whole_box: bool = False
    may_move: bool = False

    @cached_property
    def temporary(self) -> TemporaryVariable:
        """The copy."""
        shape = tuple(axis.extent for axis in self.box if axis.is_kept)
        is_open = self.may_move and self.space is AddressSpace.PRIVATE
        space = AddressSpace.AUTO if is_open else self.space
        called = None if self.array is None else self.array.dim_names
        kept = zip(called, self.box, strict=True) if called else ()
        names = tuple(name for name, axis in kept if axis.is_kept) or None
        made_by = self.made_by
        return TemporaryVariable(
            self.name, self.dtype, shape, space, made_by=made_by, dim_names=names
        )

    @property
    def outer_names(self) -> frozenset[str]:
        """The names that say which cell an element of the copy is."""
        return _footprint.outer_names([axis for axis in self.box if axis.is_kept])

    def at(self, indices: Sequence[Expression]) -> Expression:
        """The copy's element for the cell ``indices``."""
        local = [a.local(i) for a, i in zip(self.box, indices, strict=True) if a.is_kept]
        return element(self.name, tuple(local))

    def place(
        self, kernel: Kernel, users: Sequence[Statement], writers: Sequence[Statement] | None = None
    ) -> Place:
        """Where the copy is filled: before all users, where what ``writers`` write is there.

        Without ``writers``, these are all that write one of the sources.
        """
        needed = self.needed | inames_of_sources(kernel, self.sources)
        for iname in sorted(needed & set(self.swept)):
            raise IllegalTransformError(
                f"{self.what} sweeps '{iname}', but what it stages differs along '{iname}' "
                "without an index that says so",
                instead=f"do not sweep '{iname}', or let an index (an argument of the rule) name "
                "it",
            )
        if writers is None:
            writers = [w for name in self.sources for w in kernel.writers.get(name, ())]
        return find_place(
            kernel,
            users,
            what=self.what,
            swept=self.swept,
            needed=needed | (_footprint.outer_names(self.box) & frozenset(kernel.all_inames)),
            writers=writers,
            space=self.space,
            outer=None if self.outer is None else names_in(self.outer),
        )

    def loops(
        self,
        kernel: Kernel,
        place: Place,
        uses: Sequence[Use],
        base: str,
        value: Value | None,
    ) -> Nest:
        """Loops over the cells that ``uses`` touch, named after ``base``.

        Without ``value`` exactly over these.  With it, what is to be in each cell, over those
        around them where all that it accesses is in bounds.
        """
        reused = self.reused
        called = None if self.array is None else self.array.dim_names
        names = name_axes(
            kernel, self.box, base, self.axis_names, self.axis_argument, reused, called
        )
        positions = [names.get(axis) for axis in range(len(self.box))]
        used = partial(cells_in_use, kernel, uses, self.box, positions, place)
        guards: Guards = ()
        if value is None:
            cells = used(exact=True)
        else:
            at = tuple(
                axis.lower.expression if name is None else axis.cell_at(name)
                for axis, name in zip(self.box, positions, strict=True)
            )
            is_open = self.whole_box or any(use.chosen for use in uses)
            there = where_in_bounds(kernel, value(at), at, is_open=is_open)
            cells = used(whole_box=self.whole_box) & there
            around = cells & kernel.domain_around(place.inames) & kernel.assumptions.set
            left = partial(limits_left, kernel, value(at), positions=names.values())
            if left(around) != ():
                cells = used(exact=True, whole_box=self.whole_box) & there
                if are_beyond_sets(kernel, uses):
                    guards = left(around & cells) or ()
        nest = make_nest(
            kernel,
            self.box,
            place,
            cells=cells,
            names=names,
            base=base,
            tags=self.tags,
            order=by_stride(self.array, list(names)),
            together=self.space is not AddressSpace.PRIVATE,
            reused=reused,
        )
        return replace(nest, predicates=(*nest.predicates, *guards))

    def transfer(
        self,
        kernel: Kernel,
        place: Place,
        loops: Nest,
        id_: str,
        lhs: Expression,
        rhs: Expression,
        kind: str = "move",
        *,
        after: bool = False,
        guards: Guards = (),
    ) -> Kernel:
        """The kernel with a statement in ``loops`` before (or after) the users of the copy.

        It runs where all ``guards`` hold, and the bounds of its loops have been loaded.
        """
        inames = place.inames | frozenset(loops.inames)
        predicates = (*dict.fromkeys((*_loading(kernel, inames), *guards)), *loops.predicates)
        statement = Statement(id_, lhs, rhs, inames, predicates, kind=kind, made_by=self.made_by)
        entry = place.last + 1 if after else place.first
        return with_nest(kernel, statement, loops, place, entry, self.sources)


def _still_going(kernel: Kernel, users: Iterable[Statement], place: Place) -> Guards:
    """The flags of loops that data end, in which a copy stands with all its users.

    So it does nothing more where they do nothing more, and the loop can be left.  A copy that
    threads may share some day is not asked: at its barrier nobody waits for those that have left.
    """
    found: list[Expression] = []
    for flag in flags_of(kernel).values():
        outer = kernel.paths[flag.start.id]
        inside = place.path[: len(outer) + 1]
        if len(inside) > len(outer) and all(
            flag.guards(u) and kernel.paths[u.id][: len(inside)] == inside for u in users
        ):
            found.append(prim.Variable(flag.name))
    return tuple(found)


def stage(
    kernel: Kernel,
    staging: Staging,
    uses: Sequence[Use],
    value: Value,
    id_: str,
    kind: str,
    with_rules: Kernel,
) -> Change:
    """Add a copy, and the statement ``id_`` that fills it with ``value``; let ``uses`` be of it.

    ``with_rules`` is the kernel before rules were expanded for the sake of uses inside of them.
    """
    users = {use.statement.id: use.statement for use in uses}
    place = staging.place(kernel, list(users.values()))

    def written_out(cells: Indices) -> Expression:
        return expand_in(value(cells), kernel.rule_by_name)

    base = staging.loops_base or staging.base
    loops = staging.loops(kernel, place, uses, base, written_out)
    kernel = kernel.with_(temporaries=(*kernel.temporaries, staging.temporary))
    filled = element(staging.name, tuple(loops.kept(staging.box)))
    source = simplify_indices(value(loops.cells(staging.box)), kernel.integers.union(loops.inames))
    own = staging.space is AddressSpace.PRIVATE and not staging.temporary.shape
    guards = _still_going(kernel, users.values(), place) if own else ()
    kernel = staging.transfer(kernel, place, loops, id_, filled, source, kind, guards=guards)
    changed = {
        user.id: replace_reads(user, staging.base, _by_copy(staging, uses, user.id))
        for user in users.values()
    }
    kept = _in_rules(with_rules, staging, uses)
    if kept is not None:
        changed = {id_: kept.statement_by_id[id_] for id_ in changed}
        kernel = kernel.with_(substitutions=kept.substitutions)
    kernel = kernel.with_(substitutions=_in_reductions(kernel, with_rules, staging, uses))
    return Change(with_statements(kernel, changed), moves=frozenset([id_]))


def _in_rules(kernel: Kernel, staging: Staging, uses: Sequence[Use]) -> Kernel | None:
    """The kernel with all ``uses`` replaced where they stand, in rules; None where they cannot be.

    A rule names the copy's element for any of its arguments: by a form that is linear in these.
    """
    if not kernel.substitutions:
        return None
    found = grouped((use.statement.id, use) for use in uses)
    for mine in found.values():
        every = {indices for indices, _ in reads_in(mine[0].statement, staging.base)}
        if every != {use.indices for use in mine}:
            return None

    def element_of(indices: Indices, rule: SubstitutionRule | None) -> Expression | None:
        indices = indices[: len(staging.box)]  # without what holds the results of a rule
        if rule is not None and not all(_sets.is_taken_by(linear, i) for i in indices):
            return None
        return staging.at(indices)

    outer = staging.outer_names
    return replaced_within_rules(kernel, staging.base, found.keys(), element_of, outer)


def _in_reductions(
    kernel: Kernel, before: Kernel, staging: Staging, uses: Sequence[Use]
) -> tuple[SubstitutionRule, ...]:
    """The rules of a kernel, whose reductions read the copy where all that compute them do."""
    found = grouped((use.statement.id, use.indices) for use in uses)
    whole = {
        id_
        for id_, mine in found.items()
        if {i for i, _ in reads_in(before.statement_by_id[id_], staging.base)} <= {*mine}
    }
    outer = staging.outer_names

    def element_of(_: str, indices: Indices, rule: SubstitutionRule) -> Expression | None:
        inner, indices = reduced_inames(rule.expression), indices[: len(staging.box)]
        if not outer.isdisjoint(inner) or not all(_sets.is_taken_by(linear, i) for i in indices):
            return None
        return staging.at(indices)

    names = {staging.base, staging.base_in_rules or staging.base}
    return with_operands(kernel, names, whole, element_of, outer)


def _by_copy(
    staging: Staging, uses: Sequence[Use], statement: str
) -> Callable[[Indices], Expression | None]:
    wanted = {use.indices for use in uses if use.statement.id == statement}
    return lambda indices: staging.at(indices) if indices in wanted else None


def inames_of_sources(kernel: Kernel, names: Collection[str]) -> frozenset[str]:
    """The inames by which temporaries differ although no index says so.

    A private temporary differs from thread to thread, and a shared one from
    block to block.
    """
    found: set[str] = set()
    for temporary in (kernel.temporary_by_name[n] for n in names if n in kernel.temporary_by_name):
        axes = AXES[space_of(kernel, temporary)]
        for writer in kernel.writers.get(temporary.name, ()):
            found |= {i for i in writer.inames if isinstance(kernel.iname_tags.get(i), axes)}
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
    """Conditions beyond ``where`` under which what an expression of ``positions`` reads is there.

    Of affine subscripts sets know all (:func:`where_in_bounds`).  None where data decide.
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


def _loading(kernel: Kernel, inames: frozenset[str]) -> list[Expression]:
    """The conditions under which the bounds of loops are loaded: nothing is there without them."""
    loads = [w for name in kernel.loaded_bounds(inames) for w in kernel.writers.get(name, ())]
    return [p for w in loads[:1] for p in w.predicates if all(p in o.predicates for o in loads)]


def are_beyond_sets(kernel: Kernel, uses: Iterable[Use]) -> bool:
    """Whether statements run under conditions of inames and sizes that no set holds."""
    guards = [p for use in uses for p in use.statement.predicates]
    return any(variable_names(p) <= kernel.integers and not _sets.is_condition(p) for p in guards)


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
