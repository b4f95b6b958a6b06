"""The inames of each origin as expressions of the inames of its statement."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit._check.instance_maps import Image
from loopkit._hidden import NEW, OLD, instance
from loopkit._kernel import Statement
from loopkit._verify.guesses import by_digits, by_name, by_time
from loopkit._verify.sides import Sides
from loopkit._verify.solve import Solver
from loopkit._verify.tasks import State


def images(sides: Sides, state: State) -> Iterator[tuple[Image, ...]]:
    """The pairs with the inames of each origin as expressions, in some ways."""
    for guess in (by_name, by_digits, by_time):
        found = []
        guessed = False
        for statement in sides.new.kernel.statements:
            origin = state.origin.get(statement.id)
            if origin is None:
                continue
            where = state.where[statement.id] & sides.both(origin, statement.id)
            image, free = _image(sides, statement, origin, where)
            if free:
                guessed = True
                where = guess(sides, statement, origin, where, free)
                image, _ = _image(sides, statement, origin, where)
            if image is None:
                return
            found.append(image)
        yield tuple(found)
        if not guessed:
            return


def _image(
    sides: Sides, statement: Statement, origin: str, where: isl.Set
) -> tuple[Image | None, list[str]]:
    """The inames of an origin as expressions of a statement's; and those that are open."""
    inames = sorted(sides.root.model.statement[origin].inames)
    solver = Solver(
        where,
        [instance(i, OLD) for i in inames],
        {instance(i, NEW): i for i in statement.inames},
        sides.sizes,
    )
    values, free = {}, []
    for iname in inames:
        value = solver.value(instance(iname, OLD))
        if value is None:
            sides.note(f"no '{iname}' of '{origin}' was found for '{statement.id}'")
            return None, []
        if solver.is_open(instance(iname, OLD)):
            free.append(iname)
        values[iname] = value
    return Image(statement.id, origin, tuple(values.items())), free
