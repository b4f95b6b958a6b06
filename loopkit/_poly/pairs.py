"""Several statement instances in one set: their names, equality, and bounds.

An instance's inames carry its label (:mod:`loopkit._hidden`); sizes are shared. All sets here are
exact, over the names of the instances and the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import to_text, unlabelled
from loopkit._frozen import dataclass
from loopkit._hidden import instance, label_of, labelled, plain, variable
from loopkit._nodes import Expression

K = TypeVar("K")
intersection = _sets.intersection
"""Where all of some sets hold; everything where there are none."""


class Undecided(Exception):
    """A question that could not be decided: ``why``, and what would decide it."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


@dataclass(frozen=True)
class Instance:
    """A statement whose inames carry a label; ``statement`` None stands for the end."""

    statement: str | None
    label: str


def steps(inames: Iterable[str], one: str, two: str) -> list[tuple[Expression, Expression]]:
    """Inames of the instance labelled ``one``, each with that of ``two``."""
    return [(variable(i, one), variable(i, two)) for i in inames]


def equal_inames(inames: Iterable[str], one: str, two: str) -> isl.Set:
    """``{ i·one, i·two : i·one = i·two for all inames }``."""
    return intersection(_sets.equality(instance(i, one), variable(i, two)) for i in sorted(inames))


def differ(iname: str, one: str, two: str) -> isl.Set:
    """``{ i·one, i·two : i·one != i·two }``."""
    return _sets.condition_set(prim.Comparison(variable(iname, one), "!=", variable(iname, two)))


def ahead(inames: Iterable[str], one: str, two: str) -> list[isl.Set]:
    """``{ i·one < i·two }`` for each iname: of two mirror images of a pair, one is in any of them.

    Not of an instance with itself, which is in none.
    """
    steps_ = steps(sorted(inames), one, two)
    return [_sets.condition_set(prim.Comparison(a, "<", b)) for a, b in steps_]


FLAT = (
    "an array of several axes says more than a flat one: b[i, j] of shape (n, m) for b[i*m + j]; "
    "fix_parameters(m=...) makes a size a number"
)


def equal(a: Expression, b: Expression) -> isl.Set:
    """``{ a = b }`` for expressions that may hold ``min`` and ``max``.

    Raises :class:`Undecided` where a set cannot hold them.
    """
    return _compared(a, b, isl.PwAff.eq_set)


def unequal(a: Expression, b: Expression) -> isl.Set:
    """The complement of :func:`equal`."""
    return _compared(a, b, isl.PwAff.ne_set)


def _compared(
    a: Expression, b: Expression, compare: Callable[[isl.PwAff, isl.PwAff], isl.Set]
) -> isl.Set:
    try:
        return compare(_sets.pw_affine(a), _sets.pw_affine(b))
    except _sets.NotAffineError as error:
        shown = to_text(unlabelled(error.args[0] if error.args else a))
        raise Undecided(f"'{shown}' is not linear in inames and sizes", FLAT) from None


def nonempty(where: isl.Set, pieces: Iterable[tuple[K, isl.Set]]) -> Iterator[tuple[K, isl.Set]]:
    """The parts of ``where`` in each of some pieces, with their keys; no empty ones."""
    for key, piece in pieces:
        part = where & piece
        if not part.is_empty():
            yield key, part


def parts_in(where: isl.Set, pieces: Iterable[isl.Set]) -> Iterator[isl.Set]:
    """Like :func:`nonempty`, of pieces without keys."""
    return (part for _, part in nonempty(where, enumerate(pieces)))


def without(relation: isl.Set, *labels: str) -> isl.Set:
    """A relation with the names of some instances projected out."""
    return _sets.project_out(relation, labelled(_sets.names_of(relation), *labels))


def renamed(relation: isl.Set, labels: Mapping[str, str]) -> isl.Set:
    """A relation in which instances have other labels, by their labels now."""
    names = [name for name in _sets.names_of(relation) if label_of(name) in labels]
    return _sets.rename(relation, {n: instance(plain(n), labels[label_of(n)]) for n in names})


def within_any(base: isl.Set, pieces: Sequence[isl.Set]) -> isl.Set:
    """``base`` where one of the pieces holds."""
    result = base - base
    for piece in pieces:
        result = result | (base & piece)
    return result


def inside(index: Expression, extent: Expression) -> isl.Set:
    """``{ names of both : 0 <= index < extent }``, exactly.

    Raises :class:`NotAffineError` where no set can say so.
    """
    limits = (prim.Comparison(index, ">=", 0), prim.Comparison(index, "<", extent))
    return _sets.condition_set(prim.LogicalAnd(limits))


def between(name: str, low: Expression, high: Expression) -> isl.Set:
    """``{ name, names of both ends : low <= name <= high }``, exactly."""
    variable = prim.Variable(name)
    limits = (prim.Comparison(variable, ">=", low), prim.Comparison(variable, "<=", high))
    return _sets.condition_set(prim.LogicalAnd(limits))


def is_inside(domain: isl.Set, index: Expression, extent: Expression) -> bool:
    """Whether ``0 <= index < extent`` everywhere in ``domain``; False where no set can say so."""
    try:
        return bool(domain.is_subset(inside(index, extent)))
    except _sets.NotAffineError:
        return False


def outside(index: Expression, extent: Expression) -> Iterator[tuple[bool, isl.Set]]:
    """``(True, { index < 0 })`` and ``(False, { index >= extent })``, each exactly.

    What no set can say is left out.
    """
    for operator, limit in (("<", 0), (">=", extent)):
        try:
            yield operator == "<", _sets.condition_set(prim.Comparison(index, operator, limit))
        except _sets.NotAffineError:
            continue
