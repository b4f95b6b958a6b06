"""A factor that all terms of a sum have, multiplied by once: where the sum is read."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit._expression import replace_accesses, substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._same import same


@dataclass(frozen=True)
class Factored:
    """``factor`` leaves what is added to the temporary ``name``, and multiplies what is read of it.

    It is an expression of inames that all of these have in common, and of the names in ``axes``,
    each of which stands for the index along an axis of the temporary.
    """

    name: str
    factor: Expression
    axes: tuple[tuple[str, int], ...] = ()

    def at(self, indices: tuple[Expression, ...]) -> Expression:
        """The factor for one element."""
        return substitute(self.factor, {name: indices[axis] for name, axis in self.axes})


def added_by(statement: Statement) -> Expression | None:
    """What a statement adds to the cell that it writes; None where it does something else."""
    if statement.operation is not None:
        return statement.rhs if statement.operation == "sum" else None
    if not isinstance(statement.rhs, prim.Sum):
        return None
    own = [same(child, statement.lhs) for child in statement.rhs.children]
    if sum(own) != 1:
        return None
    rest = tuple(c for c, mine in zip(statement.rhs.children, own, strict=True) if not mine)
    return rest[0] if len(rest) == 1 else prim.Sum(rest)


def adding(statement: Statement, term: Expression) -> Expression:
    """The right side of a statement that adds ``term`` instead of what it adds."""
    return term if statement.operation is not None else prim.Sum((statement.lhs, term))


def multiplied(statement: Statement, claim: Factored) -> Statement:
    """A statement with each value that it reads of the temporary multiplied by the factor."""

    def value(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        if name != claim.name:
            return None
        old = prim.Subscript(prim.Variable(name), indices) if indices else prim.Variable(name)
        return prim.Product((claim.at(indices), old))

    return statement.map_expressions(lambda e: replace_accesses(e, value))
