"""Random kernels whose barriers brute force judges: enough, none too many, the cheapest there are.

Kernels are drawn with loops in loops, triangular and strided ones among them, and
statements that hand data from thread to thread.  For small sizes all pairs of
instances that meet are listed, each with the gaps that cut it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from barrier_kernels import V, random_kernel
from barrier_oracle import (
    Interpreter,
    Launch,
    barriers_of,
    cost,
    gaps_of,
    least_cost,
    meetings,
    uncut,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import (
    CUDA,
    check_races,
    conflicts,
    executed_instances,
    find_hardware,
    make_nest,
    place_barriers,
)
from seams import sets as _sets

from loopkit import Kernel, RaceError

# By the depth of loops: sizes that most kernels show all they have with, and those for the rest.
FEW = (6, 6, 6, 5)
MANY = ((14,), (9, 14, 18), (9, 14, 18), (7,))
# So many gaps are tried in all combinations.
GAPS = 9


class Judge:
    """What brute force says of a kernel's barriers, for sizes up to some limit."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        hardware = find_hardware(kernel)
        found = conflicts.Conflicts(kernel, hardware, executed_instances(kernel, hardware))
        self.race: RaceError | None = None
        self.barriers = {}
        try:
            check_races(found)
        except RaceError as error:
            self.race = error
        else:
            self.barriers = dict(barriers_of(place_barriers(found)))
        self.smallest = smallest_size(kernel)

    def complaint(self, sizes: Iterable[int]) -> str | None:
        """What these sizes do not show to be right; raises where they show it wrong."""
        found = set()
        hopeless = across_blocks = False
        for n in sizes:
            launch = Launch(self.kernel, {"n": n})
            more, never = meetings(launch)
            found |= more
            hopeless |= never
            across_blocks |= launch.crosses_blocks()
        if self.race is not None:
            assert self.race.witness is not None
            far = self.race.witness.parameters.get("n", 0) >= 9
            return None if hopeless or across_blocks or far else f"no race: {self.race}"
        assert not hopeless and not across_blocks, "a race was missed"
        assert not uncut(found, self.barriers), "something is not cut"
        for gap, of_warp in self.barriers.items():
            rest = {g: w for g, w in self.barriers.items() if g != gap}
            if not uncut(found, rest):
                return f"the barrier at {gap} is not needed"
            if not of_warp and not uncut(found, {**self.barriers, gap: True}):
                return f"a warp could wait at {gap}"
        candidates = sorted({gap for meeting in found for gap in meeting.gaps})
        if len(candidates) <= GAPS and cost(self.barriers) != least_cost(found, candidates):
            return f"there is something cheaper than {self.barriers}"
        return None


def smallest_size(kernel: Kernel) -> int:
    """The smallest ``n`` that a kernel's assumptions allow."""
    found = _sets.minimum_value(kernel.assumptions.set, V("n"))
    assert found is not None
    return found


def judge(kernel: Kernel) -> Judge:
    """Sees to it that all is well; what only large sizes can show of deep loops is left open."""
    found = Judge(kernel)
    depth = max(len(path) for path in kernel.paths.values())
    few = range(found.smallest, FEW[depth])
    if found.complaint(few) is not None:
        left = found.complaint((*few, *MANY[depth]))
        assert left is None or depth == 3, left
    return found


SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("warp", [32, 2, 4])
@settings(max_examples=40)
@given(seed=SEEDS)
def test_enough_none_too_many_and_the_cheapest(warp, seed):
    with pytest.MonkeyPatch.context() as patch:
        # Small warps: blocks are small, too, or brute force would take its time.
        patch.setattr(conflicts, "CUDA", replace(CUDA, warp=warp))
        judge(random_kernel(seed))


def test_kernels_that_are_drawn_have_barriers():
    kinds = {"none": 0, "some": 0, "inside": 0, "race": 0}
    for seed in range(40):
        found = Judge(random_kernel(seed))
        gaps = list(found.barriers)
        kinds["race" if found.race else "some" if gaps else "none"] += 1
        kinds["inside"] += any(len(gap) > 1 for gap in gaps)
        assert set(gaps) <= set(gaps_of(found.kernel.tree))
    assert kinds["some"] >= 15
    assert kinds["inside"] >= 10


@pytest.mark.parametrize("warp", [32, 3])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_all_threads_come_to_the_barriers_of_the_code(warp, seed):
    kernel = random_kernel(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conflicts, "CUDA", replace(CUDA, warp=warp))
        try:
            nest = make_nest(kernel)
        except RaceError:
            return
        for n in range(2, 5):
            Interpreter(Launch(kernel, {"n": n}), nest).check()


# Seeds that once showed something: sizes beyond the few, warps, loops that do not run.
@pytest.mark.parametrize(("seed", "warp"), [(74, 4), (240, 32), (251, 3), (104685, 2), (500945, 2)])
def test_seeds_that_showed_something(seed, warp, monkeypatch):
    monkeypatch.setattr(conflicts, "CUDA", replace(CUDA, warp=warp))
    judge(random_kernel(seed))
    make_nest(random_kernel(seed))
