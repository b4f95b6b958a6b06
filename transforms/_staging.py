"""Copies of a box of cells: the request, the statement that fills it, and the redirected reads.

:func:`add_prefetch`, :func:`precompute` and :func:`buffer_array` share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

import pymbolic.primitives as prim

from loopkit import _footprint, _sets
from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace, ArrayArg, DType, TemporaryVariable, parse_address_space
from loopkit._cached import cached_property
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import variable_names
from loopkit._footprint import Axis, Use
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, flags_of
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._linear import linear
from loopkit._nodes import Expression
from loopkit._places import space_of
from loopkit._relations import grouped
from loopkit._rules import expand_in, reduced_inames
from loopkit._simplify import simplify_indices
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit.transforms._common import is_parallel, with_statements
from loopkit.transforms._placement import AXES, Place, cells_to_fill, find_place, is_thread_iname
from loopkit.transforms._rule_exchange import replaced_within_rules, with_operands
from loopkit.transforms._transfer_loops import Nest, by_stride, make_nest, name_axes, with_nest
from loopkit.transforms._uses import Given, Indices, element, reads_in, replace_reads

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
    """Whether several threads use the same cells: no index depends on the users' thread inames."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """What a caller asks of a copy.

    The copy holds what is used while ``swept`` inames run, or what subscripts or invocations say
    that are ``spanning``; with ``whole_box`` all of the box around these.  It is called ``copy``,
    and ``id`` the statement that fills it; where these are not given, they begin with ``base``, and
    with ``verb`` and that.  It is filled inside the loops over ``outer``, where these are given,
    by inames called ``names``, which the argument ``names_argument`` gave, and which exist if it
    ``may_reuse`` them; ``tag`` is theirs, but for the axes in ``tags``.  ``array`` is laid out as
    loops over its cells should go.  ``what`` and ``made_by`` are what errors and remarks say.
    """

    base: str
    verb: str = ""
    made_by: str
    what: str
    swept: tuple[str, ...]
    tag: Tag | None
    spanning: Given | None = None
    outer: str | Iterable[str] | None = None
    names: str | Iterable[str] | None = None
    names_argument: str = ""
    may_reuse: bool = False
    space: AddressSpace | str | None = None
    whole_box: bool = False
    copy: str | None = None
    id: str | None = None
    tags: Mapping[str | int, Tag | None] = field(default_factory=dict)
    storage_axes: Sequence[str | int] | None = None
    dtype: DType | None = None
    kind: str = "user"
    array: ArrayArg | TemporaryVariable | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Staging:
    """A copy of a box of cells: how big it is, in what memory, and how threads fill it.

    ``base`` is what is copied, which rules may call ``base_in_rules``.  ``tags`` are those of the
    loops along the axes of ``box``; along the ``reused`` axes inames run that exist.  The copy's
    cells come from ``sources``, arrays, and depend on the inames ``needed`` beside those of the
    footprint.  With ``may_move`` a private copy becomes a shared one where later tags make it one
    for several threads.
    """

    request: Request
    base: str
    name: str
    dtype: DType | None
    box: tuple[Axis, ...]
    swept: tuple[str, ...]
    space: AddressSpace
    tags: Mapping[int, Tag | None]
    sources: Collection[str]
    needed: frozenset[str] = frozenset()
    base_in_rules: str = ""
    reused: Mapping[int, str] = field(default_factory=dict)
    may_move: bool = False

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """The names of the axes of what is copied."""
        return None if self.request.array is None else self.request.array.dim_names

    @cached_property
    def temporary(self) -> TemporaryVariable:
        """The copy."""
        kept = [axis for axis, one in enumerate(self.box) if one.is_kept]
        is_open = self.may_move and self.space is AddressSpace.PRIVATE
        return TemporaryVariable(
            self.name,
            self.dtype,
            tuple(self.box[axis].extent for axis in kept),
            AddressSpace.AUTO if is_open else self.space,
            made_by=self.request.made_by,
            dim_names=tuple(self.axis_names[axis] for axis in kept) or None
            if self.axis_names
            else None,
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
                f"{self.request.what} sweeps '{iname}', but what it stages differs along '{iname}' "
                "without an index that says so",
                instead=f"do not sweep '{iname}', or let an index (an argument of the rule) name "
                "it",
            )
        if writers is None:
            writers = [w for name in self.sources for w in kernel.writers.get(name, ())]
        return find_place(
            kernel,
            users,
            what=self.request.what,
            swept=self.swept,
            needed=needed | (_footprint.outer_names(self.box) & frozenset(kernel.all_inames)),
            writers=writers,
            space=self.space,
            outer=None if self.request.outer is None else names_in(self.request.outer),
        )

    def loops(
        self, kernel: Kernel, place: Place, uses: Sequence[Use], base: str, value: Value | None
    ) -> Nest:
        """Loops over the cells that ``uses`` touch, named after ``base``.

        Without ``value`` exactly over these.  With it, what is to be in each cell, over those
        around them where all that it accesses is in bounds.
        """
        request, reused = self.request, self.reused
        names = name_axes(
            kernel, self.box, base, request.names, request.names_argument, reused, self.axis_names
        )
        cells, guards = cells_to_fill(
            kernel, uses, self.box, names, place, value, whole_box=request.whole_box
        )
        nest = make_nest(
            kernel,
            self.box,
            place,
            cells=cells,
            names=names,
            base=base,
            tags=self.tags,
            order=by_stride(request.array, list(names)),
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
        statement = Statement(
            id_, lhs, rhs, inames, predicates, kind=kind, made_by=self.request.made_by
        )
        entry = place.last + 1 if after else place.first
        return with_nest(kernel, statement, loops, place, entry, self.sources)


def inames_of_sources(kernel: Kernel, names: Collection[str]) -> frozenset[str]:
    """The inames on which the contents of temporaries depend although no subscript shows it.

    A private temporary has one copy per thread, and a shared one has one per block.
    """
    found: set[str] = set()
    for temporary in (kernel.temporary_by_name[n] for n in names if n in kernel.temporary_by_name):
        axes = AXES[space_of(kernel, temporary)]
        for writer in kernel.writers.get(temporary.name, ()):
            found |= {i for i in writer.inames if isinstance(kernel.iname_tags.get(i), axes)}
    return frozenset(found)


def _loading(kernel: Kernel, inames: frozenset[str]) -> list[Expression]:
    """The guards under which the loaded bounds of loops are defined."""
    loads = [w for name in kernel.loaded_bounds(inames) for w in kernel.writers.get(name, ())]
    return [p for w in loads[:1] for p in w.predicates if all(p in o.predicates for o in loads)]


def _still_going(kernel: Kernel, users: Iterable[Statement], place: Place) -> Guards:
    """The flags of loops with ``break`` that contain a copy together with all its users.

    They become guards of the copy, so that the loop can be left once they are cleared.  They are
    not used for a copy that threads may share later: it needs a barrier, which all threads must
    reach.
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
    with_rules: Kernel,
) -> Change:
    """Add a copy, and the statement ``id_`` that fills it with ``value``; let ``uses`` be of it.

    ``with_rules`` is the kernel before rules were expanded for the sake of uses inside of them.
    """
    users = {use.statement.id: use.statement for use in uses}
    place = staging.place(kernel, list(users.values()))

    def written_out(cells: Indices) -> Expression:
        return expand_in(value(cells), kernel.rule_by_name)

    loops = staging.loops(kernel, place, uses, staging.request.base, written_out)
    kernel = kernel.with_(temporaries=(*kernel.temporaries, staging.temporary))
    filled = element(staging.name, tuple(loops.kept(staging.box)))
    source = simplify_indices(value(loops.cells(staging.box)), kernel.integers.union(loops.inames))
    own = staging.space is AddressSpace.PRIVATE and not staging.temporary.shape
    guards = _still_going(kernel, users.values(), place) if own else ()
    kernel = staging.transfer(
        kernel, place, loops, id_, filled, source, staging.request.kind, guards=guards
    )
    kernel = _reading_copies(kernel, with_rules, staging, uses)
    return Change(kernel, moves=frozenset([id_]))


def _reading_copies(
    kernel: Kernel, before: Kernel, staging: Staging, uses: Sequence[Use]
) -> Kernel:
    """The kernel where ``uses`` are of the copy: in statements, or in the rules that these use.

    Rules stay where all uses of a statement are replaced, and each names the copy's element for any
    of its arguments: by a form that is linear in these.  Their reductions read the copy where all
    that compute them do.
    """
    used = {
        id_: {*found} for id_, found in grouped((u.statement.id, u.indices) for u in uses).items()
    }
    users = {use.statement.id: use.statement for use in uses}
    outer = staging.outer_names

    def element_of(_: str, indices: Indices, rule: SubstitutionRule | None) -> Expression | None:
        indices = indices[: len(staging.box)]  # without what holds the results of a rule
        if rule is not None and not all(_sets.is_taken_by(linear, i) for i in indices):
            return None
        return staging.at(indices)

    def operand_of(name: str, indices: Indices, rule: SubstitutionRule) -> Expression | None:
        is_apart = outer.isdisjoint(reduced_inames(rule.expression))
        return element_of(name, indices, rule) if is_apart else None

    def read_by(statement: Statement) -> set[Indices]:
        return {indices for indices, _ in reads_in(statement, staging.base)}

    kept = None
    if before.substitutions and all(read_by(users[id_]) == its for id_, its in used.items()):
        kept = replaced_within_rules(before, staging.base, used, element_of, outer)
    if kept is None:
        changed = {
            id_: replace_reads(user, staging.base, _by_copy(staging, uses, id_))
            for id_, user in users.items()
        }
    else:
        changed = {id_: kept.statement_by_id[id_] for id_ in users}
        kernel = kernel.with_(substitutions=kept.substitutions)
    whole = {id_ for id_, its in used.items() if read_by(before.statement_by_id[id_]) <= its}
    names = {staging.base, staging.base_in_rules or staging.base}
    rules = with_operands(kernel, names, whole, operand_of, outer)
    return with_statements(kernel.with_(substitutions=rules), changed)


def _by_copy(
    staging: Staging, uses: Sequence[Use], statement: str
) -> Callable[[Indices], Expression | None]:
    wanted = {use.indices for use in uses if use.statement.id == statement}
    return lambda indices: staging.at(indices) if indices in wanted else None
