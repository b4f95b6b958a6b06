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
from loopkit._verify import search_state
from loopkit._verify.canonicalize import with_swapped
from loopkit._verify.kernel_view import KernelView
from loopkit._verify.matching import at_the_end, choose, pair_sources, same
from loopkit._verify.solve_images import solve_images

_STATES = 16


class Search(search_state.SearchContext):
    """Finds correspondences: statements of ``new`` with their origins in ``root``."""

    def __init__(self, root: KernelView, new: KernelView, assumptions: isl.Set) -> None:
        super().__init__(root, new, assumptions)
        self.steps = _budget.CORRESPONDENCE

    def lineages(self, root: Kernel) -> Iterator[tuple[Lineage, Model]]:
        """Correspondences as lineages from ``root``, the likeliest first.

        With each comes the new kernel, operands in the order of the root's.
        """
        seen = set()
        for state in itertools.islice(self.states(), _STATES):
            model = self.new.model
            if state.swapped:
                model = Model(with_swapped(model.kernel, state.swapped))
            for found in solve_images(self, state):
                key = (found, frozenset(id(node) for node in state.swapped))
                if key not in seen:
                    seen.add(key)
                    yield Lineage(root, found), model

    def states(self) -> Iterator[search_state.State]:
        """All ways to pair statements, depth first, until the steps are used up."""
        pending: search_state.Pending = None
        for array, writers in self.new.kernel.writers.items():
            if array in self.new.kernel.arg_by_name:
                for writer in writers:
                    pending = (at_the_end(self, writer), pending)
        stack: list[tuple[search_state.Options, int]] = [
            (iter([(search_state.State(), pending)]), 0)
        ]
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
            self.depth = depth
            stack.append((self.ways_to_do(first, rest, state), depth + 1))

    def ways_to_do(
        self, todo: search_state.Obligation, rest: search_state.Pending, state: search_state.State
    ) -> search_state.Options:
        """What may be decided where one thing is done."""
        if isinstance(todo, search_state.ChooseOrigin):
            return choose(self, todo, rest, state)
        if isinstance(todo, search_state.MatchWriters):
            return pair_sources(self, todo, rest, state)
        return same(self, todo, rest, state)
