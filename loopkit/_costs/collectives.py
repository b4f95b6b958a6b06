"""The combinations of a launch: how often blocks make each, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopkit._costs.barrier_counts import times_combined
from loopkit._costs.calls import ONCE, Calls
from loopkit._costs.combinations import Combination, combinations_in
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit.codegen.combinations import combination_note
from loopkit.codegen.prepare import prepare


@dataclass(frozen=True)
class CombinationCosts:
    """A combination of the program: its statement, who combines how, and what a launch does for it.

    ``times`` it is made, once for each block that does; None where data decide.  ``each`` is what
    one block does.
    """

    statement: str
    what: str
    times: int | None
    each: Combination

    def total(self, name: str) -> int | None:
        """One of the counts of :class:`Combination`, of the whole launch."""
        count: int = getattr(self.each, name)
        return None if self.times is None else count * self.times


def combinations_of(
    kernel: Kernel, sizes: Mapping[str, int], grid: Sequence[Expression], calls: Calls = ONCE
) -> tuple[CombinationCosts, ...]:
    """The combinations of a launch, in the order of the source."""
    times = times_combined(kernel, sizes, grid, calls)
    each = combinations_in(kernel) if times else {}
    made, block = prepare(kernel), kernel.program().block

    def what(name: str) -> str:
        return combination_note(made, made.statement_by_id[name], block)

    return tuple(CombinationCosts(name, what(name), n, each[name]) for name, n in times.items())
