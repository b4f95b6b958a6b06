"""Buffers of partial results: they start at the neutral element, and are combined at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import variable_names
from loopkit._footprint import Use, ranges_of
from loopkit._kernel import Kernel, Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._tree import common_prefix, flatten, path_inames
from loopkit.transforms._common import with_statements
from loopkit.transforms._placement import Place
from loopkit.transforms._staging import Staging, element, reads_in


def updates_among(name: str, users: Sequence[Statement]) -> list[Statement]:
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


def operation_of(name: str, users: Sequence[Statement]) -> str:
    """The operation by which all of some statements update ``name``, and do nothing else with it.

    Raises :class:`IllegalTransformError` where they do.
    """
    for user in users:
        plain = reads_in(user, name)
        if plain or user.operation != users[0].operation:
            what = "reads it beside" if plain else f"updates it by another, {user.operation}"
            raise IllegalTransformError(
                f"the buffer of '{name}' would hold partial results of {users[0].operation} "
                f"updates, and '{user.id}' {what}",
                instead="select updates by one operation by `within`, or leave out partial=True",
            )
    assert users[0].operation is not None
    return users[0].operation


def check_expressions(init: object, store: object) -> None:
    """The operation says what a buffer of partial results starts with, and how it ends."""
    for argument, given in (("init_expression", init), ("store_expression", store)):
        if given is not None:
            raise InvalidArgumentError(
                f"a buffer of partial results takes no {argument}",
                instead="it starts at the neutral element and is combined by its operation",
            )


def names_in_indices(uses: Sequence[Use]) -> frozenset[str]:
    """The names by which cells differ."""
    cells = frozenset().union(*(variable_names(index) for use in uses for index in use.cells))
    return cells.union(*(found.lower.names for found in ranges_of(uses).values()))


def loops_around(kernel: Kernel, users: Sequence[Statement], swept: Collection[str]) -> list[str]:
    """The loops that all of some statements share, outermost first, up to the first swept one."""
    paths = dict(flatten(kernel.tree))
    found: list[str] = []
    for iname in path_inames(common_prefix([paths[u.id] for u in users])):
        if iname in swept:
            break
        found.append(iname)
    return found


def collect(
    kernel: Kernel, staging: Staging, place: Place, uses: Sequence[Use], operation: str
) -> Change:
    """The change in which updates go to a buffer of partial results, ``kernel`` being expanded."""
    name, box = staging.base, staging.box
    if staging.dtype is None:
        raise IllegalTransformError(
            f"the type of '{name}' is not known, and so not what a partial result starts with",
            instead=f"add_dtypes({{'{name}': ...}}) first",
        )
    users = {use.statement.id: use.statement for use in uses}
    temporary = replace(staging.temporary, accumulates=operation)
    result = kernel.with_(temporaries=(*kernel.temporaries, temporary))
    buffered = {s.id: replace(s, lhs=staging.at(s.write[1])) for s in users.values()}
    result = with_statements(result, buffered)
    moves = []
    for verb in ("store", "init"):
        storing = verb == "store"
        loops = staging.loops(result, place, uses, f"{name}_{verb}", None)
        base = element(name, tuple(loops.cells(box)))
        buffer = element(staging.name, tuple(loops.kept(box)))
        id_ = result.fresh_name(f"{verb}_{name}")
        if storing:
            atomic = all(s.is_atomic for s in users.values())
            parts = (base, buffer, "atomic" if atomic else "update")
        else:
            neutral = operations_of(kernel.reductions)[operation].start(staging.dtype)
            parts = (buffer, neutral, "init")
        result = staging.transfer(result, place, loops, id_, *parts, after=storing)
        if storing:
            flush = replace(result.statement_by_id[id_], operation=operation)
            result = with_statements(result, {id_: flush})
        moves.append(id_)
    return Change(result, moves=frozenset(moves))
