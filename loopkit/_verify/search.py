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

from loopkit import _budget
from loopkit._check.instance_maps import Lineage
from loopkit._kernel import Kernel
from loopkit._poly.model import Model
from loopkit._verify.canonicalize import with_swapped
from loopkit._verify.kernel_view import KernelView
from loopkit._verify.match_expressions import ExpressionMatcher
from loopkit._verify.match_sources import SourceMatcher
from loopkit._verify.match_statements import StatementMatcher
from loopkit._verify.search_context import SearchContext
from loopkit._verify.search_state import ChooseOrigin, MatchWriters, Obligation, Pending, State
from loopkit._verify.solve_images import solve_images

_STATES = 16


class Search:
    """Finds correspondences: statements of ``new`` with their origins in ``root``."""

    def __init__(
        self,
        root: KernelView,
        new: KernelView,
        assumptions: isl.Set,
        steps: int = _budget.CORRESPONDENCE,
    ) -> None:
        self.context = SearchContext(root, new, assumptions)
        self.steps = steps
        self._sources = SourceMatcher(self.context)
        self._statements = StatementMatcher(self.context, self._sources)
        self._expressions = ExpressionMatcher(self.context, self._sources)

    @property
    def farthest(self) -> str:
        """What stopped the attempt that came farthest."""
        return self.context.farthest[1]

    @property
    def parts(self) -> dict[str, list[isl.Set]]:
        """For each statement the sets of instances that have counterparts of their own."""
        return self.context.parts

    def lineages(self, root: Kernel) -> Iterator[tuple[Lineage, Model]]:
        """Correspondences as lineages from ``root``, the likeliest first.

        With each comes the new kernel, operands in the order of the root's.
        """
        seen = set()
        for state in itertools.islice(self.states(), _STATES):
            model = self.context.new.model
            if state.swapped:
                model = Model(with_swapped(model.kernel, state.swapped))
            for found in solve_images(self.context, state):
                key = (found, frozenset(id(node) for node in state.swapped))
                if key not in seen:
                    seen.add(key)
                    yield Lineage(root, found), model

    def states(self) -> Iterator[State]:
        """All ways to pair statements, depth first, until the steps are used up."""
        pending: Pending = None
        arguments = self.context.new.kernel.arg_by_name
        for array in self.context.new.kernel.writers:
            if array in arguments:
                for writer in self.context.new.model.writers(array):
                    pending = (self._statements.at_the_end(writer), pending)
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
            self.context.depth = depth
            stack.append((self.expand(first, rest, state), depth + 1))

    def expand(
        self, todo: Obligation, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The ways to do one thing."""
        if isinstance(todo, ChooseOrigin):
            yield from self._statements.choose(todo, rest, state)
        elif isinstance(todo, MatchWriters):
            yield from self._sources.pair_sources(todo.todo, todo.mine, todo.its, rest, state)
        else:
            yield from self._expressions.same(todo, rest, state)
