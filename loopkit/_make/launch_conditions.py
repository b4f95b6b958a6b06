"""Conditions under which launches end: the call tests them, so that it must know what they say."""

from __future__ import annotations

from collections.abc import Iterable

from loopkit._errors import ParseError
from loopkit._expression import to_text, variable_names
from loopkit._kernel import Kernel
from loopkit._make.making import Draft, Nop
from loopkit._tree import LaunchBarrier, entries_of


def check_launch_conditions(drafts: Iterable[Draft | Nop], kernel: Kernel) -> None:
    """Refuse a barrier for all blocks whose condition the call cannot test.

    What is around a barrier in an 'if' block has the condition itself; where it does not hold,
    nothing of the launches before and after runs, and it does not matter where they end.
    """
    around = {
        leaf.id: [iname for iname, _ in path]
        for leaf, path in entries_of(kernel.tree)
        if isinstance(leaf, LaunchBarrier)
    }
    for draft in drafts:
        if not (isinstance(draft, Nop) and draft.ends_launch):
            continue
        known = {*kernel.sizes, *around[draft.id]}
        for condition in draft.item.predicates:
            for name in sorted(variable_names(condition) - known):
                raise ParseError(
                    f"a launch ends where {to_text(condition)}, which the call tests: it cannot "
                    f"know '{name}', which is neither a size nor a loop around the launches",
                    position=draft.item.position,
                    instead="put '... gbarrier' outside of this 'if' block: what stands in it "
                    "keeps its condition",
                )
