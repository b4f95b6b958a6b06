"""Loops that end when data say so: what a ``break`` of the text is in a kernel.

Such a loop has the instances of its whole domain.  A flag, which one statement sets in front of
the loop and each ``break`` clears, is a condition of all that the loop holds: what comes behind
the end does nothing.  So sets stay those of the domain, and what may be moved is what any
condition on data, carried from one iteration to the next, leaves free.  That nothing is left to
do once the flag is cleared, lowering knows, and leaves the loop.
"""

from __future__ import annotations

from collections.abc import Mapping

import pymbolic.primitives as prim

from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._same import same

BREAK = "break"
"""What makes a flag: :attr:`TemporaryVariable.made_by` of one."""


@dataclass(frozen=True)
class Flag:
    """A flag: the statement that sets it, and those that clear it."""

    name: str
    start: Statement
    stops: tuple[Statement, ...]

    def guards(self, statement: Statement) -> bool:
        """Whether a statement runs only where the flag is set."""
        return prim.Variable(self.name) in statement.predicates


@memoised
def flags_of(kernel: Kernel) -> Mapping[str, Flag]:
    """The flags of a kernel by name (memoised).

    Once cleared, one stays so until the statement that sets it runs again: there is one, which
    runs under no condition, and all others that write it clear it.
    """
    found = {}
    for temporary in kernel.temporaries:
        if temporary.made_by != BREAK or temporary.shape:
            continue
        writers = kernel.writers.get(temporary.name, ())
        # A write may be made in any case, and keep what is there.
        kept = {s.id: s.rhs.then for s in writers if getattr(s.rhs, "else_", None) == s.lhs}
        starts = [s for s in writers if same(kept.get(s.id, s.rhs), True)]
        stops = tuple(s for s in writers if same(kept.get(s.id, s.rhs), False))
        if len(starts) == 1 and len(starts) + len(stops) == len(writers):
            found[temporary.name] = Flag(temporary.name, starts[0], stops)
    return found
