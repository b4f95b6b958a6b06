"""The search for a correspondence between the statements of two kernels.

Work begins at what is left in the output arrays.  Two statements that write
the same cells are paired, which gives equations between their inames; their
right-hand sides are laid side by side, which gives more, and leads to the
statements that wrote what they read.  Where one side reads what another
statement has only passed on, that statement is followed.  Several
correspondences may be possible; they come one after the other, and are only
guesses: each is proven afterwards or thrown away.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from loopkit._check.instance_maps import Lineage
from loopkit._check.model import Model
from loopkit._kernel import Kernel
from loopkit._verify.beside import Expressions
from loopkit._verify.forms import with_swapped
from loopkit._verify.images import images
from loopkit._verify.origins import Origins
from loopkit._verify.sides import Sides
from loopkit._verify.tasks import Choose, Meet, Obligation, Pending, State
from loopkit._verify.through import Arrays
from loopkit._verify.views import View

_STATES = 16


class Search:
    """Finds correspondences: statements of ``new`` with their origins in ``root``."""

    def __init__(self, root: View, new: View, context: isl.Set, steps: int = 20_000) -> None:
        self.sides = Sides(root, new, context)
        self.steps = steps
        self._arrays = Arrays(self.sides)
        self._origins = Origins(self.sides, self._arrays)
        self._expressions = Expressions(self.sides, self._arrays)

    @property
    def farthest(self) -> str:
        """What stopped the attempt that came farthest."""
        return self.sides.farthest[1]

    @property
    def parts(self) -> dict[str, list[isl.Set]]:
        """For each statement the sets of instances that have counterparts of their own."""
        return self.sides.parts

    def lineages(self, root: Kernel) -> Iterator[tuple[Lineage, Model]]:
        """Correspondences as lineages from ``root``, the likeliest first.

        With each comes the new kernel, operands in the order of the root's.
        """
        seen = set()
        for state in itertools.islice(self.states(), _STATES):
            model = self.sides.new.model
            if state.swapped:
                model = Model(with_swapped(model.kernel, state.swapped))
            for found in images(self.sides, state):
                key = (found, frozenset(id(node) for node in state.swapped))
                if key not in seen:
                    seen.add(key)
                    yield Lineage(root, found), model

    def states(self) -> Iterator[State]:
        """All ways to pair statements, depth first, until the steps are used up."""
        pending: Pending = None
        arguments = self.sides.new.kernel.arg_by_name
        for array in self.sides.new.kernel.writers:
            if array in arguments:
                for writer in self.sides.new.model.writers(array):
                    pending = (self._origins.at_the_end(writer), pending)
        stack: list[tuple[Iterator[tuple[State, Pending]], int]] = [(iter([(State(), pending)]), 0)]
        while stack and self.steps > 0:
            options, depth = stack[-1]
            found = next(options, None)
            if found is None:
                stack.pop()
                continue
            self.steps -= 1
            state, pending = found
            if pending is None and state.later:
                state, pending = replace(state, later=state.later[1:]), (state.later[0], None)
            if pending is None:
                yield state
                continue
            first, rest = pending
            self.sides.depth = depth
            stack.append((self.expand(first, rest, state), depth + 1))

    def expand(
        self, todo: Obligation, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The ways to do one thing."""
        if isinstance(todo, Choose):
            yield from self._origins.choose(todo, rest, state)
        elif isinstance(todo, Meet):
            yield from self._arrays.pair_sources(todo.todo, todo.mine, todo.its, rest, state)
        else:
            yield from self._expressions.same(todo, rest, state)
