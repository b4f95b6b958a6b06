"""Conditions of the text and the kernel, as truth values of the algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from loopkit._algebra.conditions import conjunction, disjunction, negation
from loopkit._algebra.conditions import conjuncts as parts_of
from loopkit._algebra.make import replace_terms
from loopkit._algebra.polynomials import plus, scaled
from loopkit._algebra.reading import compared
from loopkit._algebra.terms import FALSE, TRUE, Term, UnreadableError, node, number, truth
from loopkit.codegen.proof.forms import Form, is_affine, names_of

Condition = Term

__all__ = ["FALSE", "TRUE", "Condition"]


def _made(word: str, make: Callable[..., Condition], *parts: Term) -> Condition:
    """A condition; one with too many cases becomes uninterpreted."""
    try:
        return make(*parts)
    except UnreadableError:
        return node("call", "B", parts, (word,))


@lru_cache(1 << 14)
def comparison(operator: str, left: Form, right: Form) -> Condition:
    """``left operator right``; of two choices it is not looked into, which has many cases."""
    if left.op == right.op == "select" and left is not right:
        return node("call", "B", (left, right), (operator,))
    return _made(operator, lambda *sides: compared(operator, *sides), left, right)


def joined(word: str, parts: Iterable[Condition]) -> Condition:
    """The conjunction (``and``) or disjunction (``or``)."""
    return _made(word, conjunction if word == "and" else disjunction, *parts)


def negated(condition: Condition) -> Condition:
    """What holds exactly where ``condition`` does not."""
    return _made("not", negation, condition)


def negated_atom(condition: Condition) -> Condition | None:
    """The comparison of which a condition is the negation; None for other conditions."""
    is_negated = condition.op == "if" and condition.args[1:] == (FALSE, TRUE)
    return condition.args[0] if is_negated else None


def least(condition: Condition) -> Form | None:
    """What is not negative where a comparison of whole numbers holds; None for other conditions."""
    if condition.op == "ge0":
        return condition.args[0]
    atom = negated_atom(condition)
    if atom is None or atom.op != "ge0":
        return None
    return plus(scaled(atom.args[0], -1), number(-1))


def supposed(condition: Condition, atom: Condition, holds: bool) -> Condition:
    """What is left of a condition where it is known whether an atom holds."""
    return replace_terms(condition, {atom: truth(holds)}.get)


@lru_cache(1 << 14)
def is_known(condition: Condition) -> bool:
    """Whether sets can represent the condition."""
    if condition.op in ("ge0", "eq0"):
        return is_affine(condition.args[0])
    return condition.op in ("constant", "if") and all(map(is_known, condition.args))


@lru_cache(1 << 14)
def atoms_in(condition: Condition) -> frozenset[Condition]:
    """The comparisons that a condition is made of."""
    if condition.op == "if":
        return frozenset().union(*map(atoms_in, condition.args))
    return frozenset() if condition.op == "constant" else frozenset((condition,))


def conjuncts(condition: Condition) -> list[Condition]:
    """Conditions that hold together where one does."""
    return [part for part in parts_of(condition) if part is not TRUE]


def names_in(condition: Condition) -> frozenset[str]:
    """All names that a condition's forms use, as far as sets can hold them."""
    known = filter(is_known, atoms_in(condition))
    return frozenset().union(*(names_of(part) for atom in known for part in atom.args))


def split(*parts: Condition) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """The conditions that sets can hold, and the others."""
    known: list[Condition] = []
    unknown: list[Condition] = []
    for part in parts:
        for one in conjuncts(part):
            (known if is_known(one) else unknown).append(one)
    return tuple(known), tuple(unknown)
