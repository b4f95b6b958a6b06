"""buffer_array: accesses use a copy, which is loaded before the loops and stored after them."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import substitute, variable_names
from loopkit._footprint import Use, outer_names, ranges_of
from loopkit._frozen import dataclass
from loopkit._hidden import READER, WRITER
from loopkit._kernel import Kernel, Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._match import Match, matching
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.pairs import Undecided, differ
from loopkit._poly.rows import Rows, rows_of
from loopkit._promotion import components_of
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit._tree import common_prefix, path_inames
from loopkit.transforms import _uses
from loopkit.transforms._common import swept_in, with_statements
from loopkit.transforms._expand import moved_out
from loopkit.transforms._placement import Place, is_thread_iname
from loopkit.transforms._rule_uses import expand_rules_that_use
from loopkit.transforms._staging import (
    Request,
    Staging,
    axis_tags,
    choose_space,
    inames_of_sources,
)
from loopkit.transforms._uses import element, reads_in, replace_reads, uses_of_array


@transform
def buffer_array(
    kernel: Kernel,
    var_name: kind.UsedName,
    buffer_inames: kind.Names = (),
    init_expression: kind.MaybeFormula = None,
    store_expression: kind.FormulaOrFlag = None,
    within: kind.Within = None,
    default_tag: kind.TagLike = "l.auto",
    temporary_scope: kind.Space = None,
    fetch_bounding_box: kind.Flag = False,
    *,
    partial: kind.Flag = False,
    unchecked: bool = False,
) -> Change:
    """Let all accesses of ``var_name`` in a tile use a copy.

    Before::

        for k
            for j
                c[i, j] = c[i, j] + a[i, k]*b[k, j]

    After ``buffer_array("c", ["j"], default_tag=None)``, with ``0 <= j < 8``::

        for c_init_dim_1
            c_buf[c_init_dim_1] = c[i, c_init_dim_1]
        for k
            for j
                c_buf[j] = c_buf[j] + a[i, k]*b[k, j]
        for c_store_dim_1
            c[i, c_store_dim_1] = c_buf[c_store_dim_1]

    The footprint is that of all reads and writes while ``buffer_inames`` run over
    their full constant ranges.  Exactly the cells that the tile writes are stored.
    Loading is left out where every read follows a write of its cell in the tile.

    ``init_expression`` is what a cell of the buffer begins with; in it, ``base``
    is the cell of the array (the default).  ``store_expression`` is what is
    stored; in it, ``base`` is the cell of the array and ``buffer`` that of the
    buffer (the default); ``False`` stores nothing.

    The buffer is in shared memory where threads fill it together (``default_tag`` or a
    buffered iname is a thread axis), in private memory where each thread has cells of its own,
    unless ``temporary_scope`` says which.  ``default_tag`` and ``within`` are those of
    :func:`add_prefetch`; ``fetch_bounding_box`` loads all of the box that is in
    the array.

    With ``partial``, the buffer holds partial results of updates (``{atomic}`` ones, or those of a
    reduction): it starts at the operation's neutral element, and what it holds is combined with the
    array at the end, inside of all loops around that are not among ``buffer_inames``.  All other
    statements use the array itself.  With data-dependent subscripts, all cells that
    ``assume_within`` allows are buffered.

    Before::

        for b
            for i
                h[c[b, i]] += 1                 atomic

    After ``buffer_array("h", ["i"], default_tag=None, partial=True)``, with 16 cells in ``h``::

        for b
            for h_init_dim_0 in [0, 16)
                h_buf[h_init_dim_0] = 0
            for i
                h_buf[c[b, i]] += 1             atomic
            for h_store_dim_0 in [0, 16)
                h[h_store_dim_0] += h_buf[h_store_dim_0]        atomic

    The buffer is filled inside the loops that the footprint depends on; if such a loop is inside of
    those over ``buffer_inames``, it is moved out first.

    Of accesses with a tag, ``c$mine[i]``, ``buffer_array("c$mine", ...)`` means these alone.

    :raises IllegalTransformError: where the footprint has no constant size, no place is
        before all users, or another statement would miss what is in the buffer.
    """
    asked = _Asked(init_expression, store_expression, within, partial)
    request = Request(
        base=var_name,
        made_by=f"buffer_array('{var_name}')",
        what=f"the buffer of '{var_name}'",
        swept=(),
        tag=parse_tag(default_tag),
        space=temporary_scope,
        whole_box=fetch_bounding_box,
    )
    name = uses_of_array(kernel, var_name, writes=True).of
    rows = rows_of([kernel], name)
    inames = kind.names_in(buffer_inames)
    if rows is None:
        return _buffered(kernel, inames, asked, request)
    return _laid_flat(_buffered(rows[0].of(kernel), inames, asked, request), rows[0], kernel)


def _laid_flat(change: Change, rows: Rows, before: Kernel) -> Change:
    """A change of the kernel in rows as one of the kernel ``before``, whose array lies flat."""
    if not change.parts:
        return replace(change, kernel=rows.laid_flat(change.kernel, before))
    parts = tuple(_laid_flat(part, rows, before) for part in change.parts)
    return Change(parts[-1].kernel, parts=parts)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Which uses go to a buffer, what it starts with, what is stored, and if that is partial."""

    init: Expression | None
    store: Expression | bool | None
    within: str | Match | None
    partial: bool


def _buffered(kernel: Kernel, inames: Sequence[str], asked: _Asked, request: Request) -> Change:
    """The change of :func:`buffer_array`, for an array that does not lie flat."""
    given = request.base
    chosen = uses_of_array(kernel, given, writes=True)
    name, array = chosen.name, kernel.array(chosen.of)
    swept = swept_in(kernel, inames)
    selected = matching(kernel, asked.within)
    before, kernel = kernel, chosen.kernel
    expanded = expand_rules_that_use(kernel, name, selected)
    reads, writes = _accesses(expanded, name, selected)
    touching = [s for s in expanded.statements if s.names & {name, chosen.of}]
    if not reads and not writes:
        others = ", ".join(s.id for s in touching if name in s.names)
        raise IllegalTransformError(
            f"the buffer would replace nothing: no selected statement reads or writes '{given}'",
            instead=f"'{given}' is used by {others}" if others else "",
        )
    users = list({use.statement.id: use.statement for use in (*reads, *writes)}.values())
    operation = None
    request = replace(request, base=name, swept=swept, array=array)
    if asked.partial:
        _check_expressions(asked)
        users = _updates_among(name, users)
        operation = _operation_of(name, users)
        reads = writes = [use for use in writes if use.statement in users]
        request = replace(request, outer=_loops_around(expanded, users, swept))
    # Of loops that no subscript knows of, the length does not matter to partial results.
    lengths = [i for i in swept if operation is None or i in _names_in_indices(writes)]
    box = _uses.find_box(expanded, [*reads, *writes], lengths, request.what)
    order = moved_out(before, users, swept, None, outer_names(box))
    if order.kernel is not before:
        rest = _buffered(order.kernel, swept, asked, replace(request, base=given))
        return Change(rest.kernel, parts=(order, rest))
    threads = {i for s in users for i in s.inames if is_thread_iname(expanded, i)}
    own = threads & (outer_names(box) | inames_of_sources(before, [chosen.of]))
    # Cells that no thread has for itself, all of them fill together; partial results are those
    # of one thread, until there are more.
    is_shared = not own and bool(threads or operation is None)
    space = choose_space(kernel, request.space, swept, [request.tag] if is_shared else [])
    if space is AddressSpace.GLOBAL:
        raise InvalidArgumentError(
            "a buffer is in shared or private memory", instead="temporary_scope='shared'"
        )
    tags = dict.fromkeys(range(len(box)), request.tag)
    staging = Staging(
        request=request,
        base=name,
        name=kernel.fresh_name(f"{name}_buf"),
        dtype=array.dtype,
        box=box,
        swept=swept,
        space=space,
        tags=axis_tags(tags, space, request.what),
        sources=[chosen.of],
    )
    place = staging.place(expanded, users, [s for s in touching if s not in users])
    temporary = replace(staging.temporary, accumulates=operation)
    result = expanded.with_(temporaries=(*expanded.temporaries, temporary))
    result = with_statements(result, {s.id: _on_copy(s, name, staging) for s in users})
    if operation is not None:
        change = _collect(result, staging, place, writes, operation)
        return replace(change, kernel=chosen.restored(change.kernel))
    moves = []
    if asked.store is not False and writes:
        if asked.store is True:
            raise InvalidArgumentError(
                "store_expression is an expression, None or False, not True",
                instead="None stores the buffer unchanged",
            )
        stored = _given(array, asked.store, "buffer", "store_expression")
        result, id_ = _with_transfer(result, staging, place, "store", writes, stored)
        moves.append(id_)
    loaded = _given(array, asked.init, "base", "init_expression")
    # What nothing sees is not loaded: a temporary may hold nothing yet.
    is_load = loaded == prim.Variable("base")
    text = chosen.restored(expanded)
    if chosen.of in text.temporary_by_name:  # others may read what was in it before
        every = [s.id for s in text.statements]
        text = expand_rules_that_use(text, chosen.of, every)
        reads, _ = _accesses(text, chosen.of, every)
    if not (is_load and _reads_follow_writes(text, chosen.of, place, reads, writes)):
        result, id_ = _with_transfer(result, staging, place, "init", [*reads, *writes], loaded)
        moves.append(id_)
    return Change(chosen.restored(result), moves=frozenset(moves))


def _accesses(kernel: Kernel, name: str, selected: Collection[str]) -> tuple[list[Use], list[Use]]:
    reads: list[Use] = []
    writes: list[Use] = []
    for statement in kernel.statements:
        if statement.id not in selected:
            continue
        reading = reads_in(statement, name)
        writing = [(statement.write[1], ())] if statement.written == name else []
        uses = _uses.uses_of(kernel, statement, name, [*reading, *writing])
        writes += uses[len(reading) :]
        reads += uses if statement.operation is not None else uses[: len(reading)]
    return reads, writes


def _on_copy(statement: Statement, name: str, staging: Staging) -> Statement:
    changed = replace_reads(statement, name, staging.at)
    if statement.written != name:
        return changed
    return replace(changed, lhs=staging.at(statement.write[1]))


def _reads_follow_writes(
    kernel: Kernel, name: str, place: Place, reads: Sequence[Use], writes: Sequence[Use]
) -> bool:
    """Whether each cell of ``name`` that is read is set before, in the same run of ``place``.

    What is stored afterwards reads the buffer, too: where data decide whether a cell of an argument
    is written, the old value is stored again.  Nothing is in a temporary before the first write.
    """
    is_given = name not in kernel.temporary_by_name
    if is_given and any(write.by_data for write in writes):
        return False
    dataflow = dataflow_of(kernel)
    own = {w.statement.id: w.statement.inames for w in writes}
    run = place.inames
    for read in reads:
        try:
            sources = dataflow.of_read(read.statement.id, (name, read.indices))
        except Undecided:
            return False
        if is_given and not sources.untouched.is_empty():
            return False
        for writer, pairs in sources.writes.items():
            if not run <= own.get(writer, frozenset()):
                return False
            if any(not (pairs & differ(i, WRITER, READER)).is_empty() for i in sorted(run)):
                return False
    return True


def _given(
    array: ArrayArg | TemporaryVariable, expr: Expression | None, default: str, argument: str
) -> Expression:
    """The expression of an argument: of ``base``, and of ``buffer`` if that is the default."""
    if expr is None:
        return prim.Variable(default)
    names = {"base", default}
    unknown = sorted(variable_names(expr) - names)
    if unknown:
        raise InvalidArgumentError(
            f"{argument} uses '{unknown[0]}'",
            instead="it may use " + " and ".join(f"'{n}'" for n in sorted(names)),
        )
    if array.dtype and components_of(array.dtype) and expr != prim.Variable(default):
        raise InvalidArgumentError(
            f"{argument} computes with '{array.name}', which holds a value and its place",
            instead=f"leave {argument} out: such elements are copied",
        )
    return expr


def _with_transfer(
    kernel: Kernel,
    staging: Staging,
    place: Place,
    verb: str,
    uses: Sequence[Use],
    expr: Expression,
    kind: str = "",
) -> tuple[Kernel, str]:
    """The kernel with a statement that loads (``"init"``) or stores (``"store"``), and its id.

    One of a ``kind`` that is given runs over exactly the cells of the ``uses``.
    """
    storing, name, box = verb == "store", staging.base, staging.box
    value = None if storing or kind else functools.partial(element, name)
    loops = staging.loops(kernel, place, uses, f"{name}_{verb}", value)
    base = element(name, tuple(loops.cells(box)))
    buffer = element(staging.name, tuple(loops.kept(box)))
    moved = substitute(expr, {"base": base, "buffer": buffer})
    id_ = kernel.fresh_name(f"{'load' if not storing and moved == base else verb}_{name}")
    target = base if storing else buffer
    kind = kind or ("move" if moved in (base, buffer) else "user")
    kernel = staging.transfer(kernel, place, loops, id_, target, moved, kind, after=storing)
    return kernel, id_


# {{{ partial results: they start at the neutral element, and are combined at the end


def _updates_among(name: str, users: Sequence[Statement]) -> list[Statement]:
    """Those of some statements that update ``name``.

    Raises :class:`IllegalTransformError` where there are none.
    """
    found = [s for s in users if s.operation is not None and s.written == name]
    if not found:
        others = ", ".join(f"'{s.id}'" for s in users)
        raise IllegalTransformError(
            f"no selected statement updates '{name}': {others} read or assign it",
            instead=f"an update is marked: {name} = {name} + ... {{atomic}}",
        )
    return found


def _operation_of(name: str, users: Sequence[Statement]) -> str:
    """The operation by which all of some statements update ``name``, and do nothing else with it.

    Raises :class:`IllegalTransformError` where they do.
    """
    for user in users:
        plain = reads_in(user, name)
        if plain or user.operation != users[0].operation:
            other = f"updates it by another, {user.operation}"
            what = "reads it outside of its update" if plain else other
            raise IllegalTransformError(
                f"the buffer of '{name}' would hold partial results of {users[0].operation} "
                f"updates, and '{user.id}' {what}",
                instead="select updates by one operation by `within`, or leave out partial=True",
            )
    assert users[0].operation is not None
    return users[0].operation


def _check_expressions(asked: _Asked) -> None:
    """The operation says what a buffer of partial results starts with, and how it ends."""
    for argument, given in (("init_expression", asked.init), ("store_expression", asked.store)):
        if given is not None:
            raise InvalidArgumentError(
                f"a buffer of partial results takes no {argument}",
                instead="it starts at the neutral element and is combined by its operation",
            )


def _names_in_indices(uses: Sequence[Use]) -> frozenset[str]:
    """The names by which cells differ."""
    cells = frozenset().union(*(variable_names(index) for use in uses for index in use.cells))
    return cells.union(*(found.lower.names for found in ranges_of(uses).values()))


def _loops_around(kernel: Kernel, users: Sequence[Statement], swept: Collection[str]) -> list[str]:
    """The loops that all of some statements share, outermost first, up to the first swept one."""
    shared = path_inames(common_prefix([kernel.paths[u.id] for u in users]))
    return [*takewhile(lambda iname: iname not in swept, shared)]


def _collect(
    kernel: Kernel, staging: Staging, place: Place, uses: Sequence[Use], operation: str
) -> Change:
    """The change that starts a buffer of partial results, and combines it with the array."""
    if staging.dtype is None:
        raise IllegalTransformError(
            f"the type of '{staging.base}' is not known, and so not what a partial result starts "
            "with",
            instead=f"add_dtypes({{'{staging.base}': ...}}) first",
        )
    atomic = all(kernel.statement_by_id[use.statement.id].is_atomic for use in uses)
    kind, stored = "atomic" if atomic else "update", prim.Variable("buffer")
    kernel, store = _with_transfer(kernel, staging, place, "store", uses, stored, kind)
    flush = replace(kernel.statement_by_id[store], operation=operation)
    kernel = with_statements(kernel, {store: flush})
    neutral = operations_of(kernel.reductions)[operation].start(staging.dtype)
    kernel, init = _with_transfer(kernel, staging, place, "init", uses, neutral, "init")
    return Change(kernel, moves=frozenset([store, init]))


# }}}
