"""The inames of each origin as expressions of the inames of its statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import islpy as isl

from loopkit._check.instance_maps import Image
from loopkit._hidden import NEW, OLD, instance
from loopkit._kernel import Statement
from loopkit._sets import UnboundedError
from loopkit._verify.iname_heuristics import by_digits, by_name, by_time
from loopkit._verify.search_context import SearchContext
from loopkit._verify.search_state import State
from loopkit._verify.solver import Solver


def solve_images(context: SearchContext, state: State) -> Iterator[tuple[Image, ...]]:
    """The pairs with the inames of each origin as expressions, in some ways."""
    for guess in (by_name, by_digits, by_time):
        found = []
        guessed = False
        for statement in context.new.kernel.statements:
            origin = state.origin.get(statement.id)
            if origin is None:
                continue
            where = state.where[statement.id] & context.both(origin, statement.id)
            image, free = _image(context, statement, origin, where)
            if free:
                guessed = True
                with suppress(UnboundedError):
                    where = guess(context, statement, origin, where, free)
                image, _ = _image(context, statement, origin, where)
            if image is None:
                return
            found.append(image)
        yield tuple(found)
        if not guessed:
            return


def _image(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set
) -> tuple[Image | None, list[str]]:
    """The inames of an origin as expressions of a statement's; and those that are open."""
    inames = sorted(context.root.model.statement[origin].inames)
    solver = Solver(
        where,
        [instance(i, OLD) for i in inames],
        {instance(i, NEW): i for i in statement.inames},
        context.sizes,
    )
    values, free = {}, []
    for iname in inames:
        value = solver.value(instance(iname, OLD))
        if value is None:
            context.note(f"no '{iname}' of '{origin}' was found for '{statement.id}'")
            return None, []
        if solver.is_undetermined(instance(iname, OLD)):
            free.append(iname)
        values[iname] = value
    return Image(statement.id, origin, tuple(values.items())), free
