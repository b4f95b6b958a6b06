"""Conditions in a form that the printed text and the kernel share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from loopkit._cached import cached_property
from loopkit.codegen.proof.forms import ONE, ZERO, Choice, Form, Node, member, members


@dataclass(frozen=True, eq=False)
class Compare(Node):
    """``form >= 0``, ``form == 0`` or ``form != 0`` of an affine form."""

    operator: str
    form: Form

    besides = member("operator")
    inside = members("form")


@dataclass(frozen=True, eq=False)
class Joined(Node):
    """All of the parts (``and``), or at least one (``or``)."""

    word: str
    parts: tuple[Condition, ...]

    besides = member("word")
    inside = member("parts")

    @cached_property
    def made_of(self) -> Hashable:
        return self.word, frozenset(self.parts)


@dataclass(frozen=True, eq=False)
class Unknown(Node):
    """``left operator right`` on data, or on products of sizes; or its negation.

    The operator is ``<``, ``<=``, ``==`` or ``!=``; the negation of the last two is the other.
    """

    operator: str
    left: Form
    right: Form
    is_negated: bool = False

    besides = members("operator", "is_negated")
    inside = members("left", "right")

    @cached_property
    def made_of(self) -> Hashable:
        sides = self.left, self.right
        return self.besides, frozenset(sides) if self.operator in _NEGATED else sides


Condition = Compare | Joined | Unknown

TRUE = Joined("and", ())
FALSE = Joined("or", ())

_NEGATED = {"==": "!=", "!=": "=="}
_MOST_CHOICES = 6
"""Comparisons with more choices than that are not taken apart: each doubles the cases."""


def comparison(operator: str, left: Form, right: Form, *, is_integer: bool) -> Condition:
    """``left operator right``; only integers make an affine condition."""
    if operator in (">", ">="):
        left, right, operator = right, left, {">": "<", ">=": "<="}[operator]
    difference = right.minus(left)
    if not is_integer:
        return Unknown(operator, left, right)
    chosen = _by_branches(operator, difference)
    if chosen is not None:
        return chosen
    if not difference.is_affine:
        return Unknown(operator, *_sides(difference))
    if operator == "<":
        difference, operator = difference.minus(ONE), "<="
    if operator == "<=":
        operator = ">="
    number = difference.constant
    if number is not None:
        holds = {">=": number >= 0, "==": number == 0, "!=": number != 0}[operator]
        return TRUE if holds else FALSE
    return Compare(operator, difference)


def _by_branches(operator: str, difference: Form) -> Condition | None:
    """``0 operator difference`` for each branch of a choice that it adds, if sets can say that.

    None also where there are more choices than are looked at one by one.
    """
    alone = (m for m in difference.terms if len(m) == 1 and isinstance(m[0], Choice))
    chosen = next(alone, None)
    if chosen is None or _choices(difference) > _MOST_CHOICES:
        return None
    (first,) = chosen
    assert isinstance(first, Choice)
    if not is_known(first.condition):
        return None
    rest = Form({m: c for m, c in difference.terms.items() if m != chosen})
    factor = difference.terms[chosen]
    cases = ((first.condition, first.then), (negated(first.condition), first.other))
    parts = [
        joined("and", [case, comparison(operator, ZERO, rest.plus(side, factor), is_integer=True)])
        for case, side in cases
    ]
    return joined("or", parts) if all(map(is_known, parts)) else None


def _choices(form: Form) -> int:
    found = [a for monomial in form.terms for a in monomial if isinstance(a, Choice)]
    return sum(1 + _choices(a.then) + _choices(a.other) for a in found)


def _sides(difference: Form) -> tuple[Form, Form]:
    """What is added in ``0 <= difference`` to the right, what is subtracted to the left."""
    above = {m: c for m, c in difference.terms.items() if c > 0}
    below = {m: -c for m, c in difference.terms.items() if c < 0}
    return Form(below), Form(above)


def joined(word: str, parts: Iterable[Condition]) -> Condition:
    """The conjunction or disjunction, nested ones flattened."""
    neutral, absorbing = (TRUE, FALSE) if word == "and" else (FALSE, TRUE)
    flat: dict[Condition, None] = {}
    for part in parts:
        inner = part.parts if isinstance(part, Joined) and part.word == word else (part,)
        flat.update(dict.fromkeys(inner))
    found = [p for p in flat if p != neutral]
    if absorbing in found:
        return absorbing
    return found[0] if len(found) == 1 else Joined(word, tuple(found))


def negated(condition: Condition) -> Condition:
    """What holds exactly where ``condition`` does not."""
    if isinstance(condition, Joined):
        word = "or" if condition.word == "and" else "and"
        return joined(word, [negated(p) for p in condition.parts])
    if isinstance(condition, Unknown):
        if condition.operator in _NEGATED:
            return replace(condition, operator=_NEGATED[condition.operator])
        return replace(condition, is_negated=not condition.is_negated)
    if condition.operator == ">=":
        return Compare(">=", condition.form.scaled(-1).minus(ONE))
    return Compare(_NEGATED[condition.operator], condition.form)


def least(condition: Condition) -> Form | None:
    """What is not negative where a comparison of whole numbers holds; None for other conditions."""
    if not isinstance(condition, Unknown) or condition.is_negated or condition.operator in _NEGATED:
        return None
    rest = condition.right.minus(condition.left)
    return rest.minus(ONE) if condition.operator == "<" else rest


def atom_in(condition: Condition) -> Condition:
    """A part of a condition that is not made of others."""
    return atom_in(condition.parts[0]) if isinstance(condition, Joined) else condition


def supposed(condition: Condition, atom: Condition, holds: bool) -> Condition:
    """What is left of a condition where it is known whether an atom holds."""
    if isinstance(condition, Joined):
        return joined(condition.word, [supposed(p, atom, holds) for p in condition.parts])
    if condition in (atom, negated(atom)):
        return TRUE if (condition == atom) == holds else FALSE
    return condition


def is_known(condition: Condition) -> bool:
    """Whether nothing in the condition is unknown."""
    if isinstance(condition, Joined):
        return all(is_known(p) for p in condition.parts)
    return isinstance(condition, Compare)


def conjuncts(condition: Condition) -> Iterator[Condition]:
    """The parts of a conjunction."""
    if isinstance(condition, Joined) and condition.word == "and":
        yield from condition.parts
    else:
        yield condition


def names_in(condition: Condition) -> frozenset[str]:
    """All names that a condition's forms use."""
    if isinstance(condition, Compare):
        return condition.form.names
    if isinstance(condition, Joined):
        return frozenset().union(*(names_in(p) for p in condition.parts))
    return frozenset()


def renamed(condition: Condition, name: Callable[[str], str]) -> Condition:
    """The condition with other names."""
    if isinstance(condition, Compare):
        return Compare(condition.operator, condition.form.renamed(name))
    if isinstance(condition, Joined):
        return Joined(condition.word, tuple(renamed(p, name) for p in condition.parts))
    return condition
