"""Claims about whole numbers are proven, refuted by a point that was evaluated, or left open."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from decide_questions import EITHER, OPEN, PROVEN, QUESTIONS, REFUTED, Question
from seams import algebra, one_to_one
from term_texts import make_term, read_term, terms

decide, value_of = one_to_one.decide, algebra.evaluate.value_of
name, names_in, number = terms.name, terms.names_in, terms.number
pytest.importorskip("z3")


def answered(question: Question) -> Any:
    """What is decided."""
    terms = [read_term(text, question.bounds) for text in question.texts]
    context = [read_term(c, question.bounds) for c in question.context.split(" and ") if c]
    if question.names:
        return one_to_one.decide_one_to_one(
            terms, context, set(question.names) - {"n", "m"}, question.names
        )
    return decide(terms[0], context)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.about)
def test_questions_of_schedules_are_decided(question: Question) -> None:
    found = answered(question)
    assert question.answer in (type(found).__name__, EITHER), found


def drawn_number(r: random.Random, names: list[Any], depth: int) -> Any:
    """A whole number of few names, with products, quotients, bits and types."""
    if depth == 0 or r.random() < 0.2:
        return r.choice(names) if r.random() < 0.7 else number(r.randint(-5, 9))
    if r.random() < 0.1:
        return make_term(
            "wrap", drawn_number(r, names, depth - 1), data=r.choice(("int8", "uint8"))
        )
    op = r.choice(("add", "sub", "mul", "fdiv", "mod", "min", "max", "xor", "and", "or", "add"))
    return make_term(op, *(drawn_number(r, names, depth - 1) for _ in range(2)))


def drawn_claim(r: random.Random, names: list[Any], depth: int) -> Any:
    """A condition on few names."""
    if depth == 0 or r.random() < 0.4:
        op = r.choice(("le", "lt", "eq"))
        return make_term(op, *(drawn_number(r, names, 2) for _ in range(2)))
    op = r.choice(("all", "any", "not"))
    parts = 1 if op == "not" else 2
    return make_term(op, *(drawn_claim(r, names, depth - 1) for _ in range(parts)))


def audit(seed: int) -> dict[str, int]:
    """How many random claims about names of few values are decided; wrong answers fail."""
    r = random.Random(f"decide {seed}")
    answers = {PROVEN: 0, REFUTED: 0, OPEN: 0}
    for _ in range(40):
        count = r.randint(1, 3)
        ends = [sorted(r.sample(range(-4, 6), 2)) for _ in range(count)]
        names = [name(text, *e) for text, e in zip("xyz", ends, strict=False)]
        claim = drawn_claim(r, names, 2)
        context = [drawn_claim(r, names, 1) for _ in range(r.randint(0, 2))]
        found = decide(claim, context)
        answer = type(found).__name__
        answers[answer] += 1
        points = [
            dict(zip("xyz", values, strict=False))
            for values in product(*(range(low, high + 1) for low, high in ends))
        ]
        wrong = [
            p for p in points if all(value_of(c, p) for c in context) and not value_of(claim, p)
        ]
        if answer == PROVEN:
            assert not wrong, (claim, context)
        if answer == REFUTED:
            assert {n: found.point[n] for n in names_in(claim, *context)} == dict(found.point)
            assert all(value_of(c, found.point) for c in context)
            assert not value_of(claim, found.point)
    return answers


@pytest.mark.parametrize("seed", range(12))
def test_decisions_agree_with_all_points(seed: int) -> None:
    answers = audit(seed)
    assert not answers[OPEN] and answers[PROVEN] and answers[REFUTED]


def _without_correction(self: Any, term: Any, value: str, by: str) -> str:
    return f"({'bvsdiv' if term.op == 'fdiv' else 'bvsrem'} {value} {by})"


def _of_positive(self: Any, word: str, value: str, by: str, _: Any) -> None:
    below = f"(* {word} {by})"
    fact = f"(and (<= {below} {value}) (< {value} (+ {below} {by})))"
    self.lines += [f"(declare-const {word} Int)", f"(assert {fact})"]


FAULTS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "bit-vectors are too narrow": (
        "smt",
        "_greatest",
        lambda original: lambda term: min(1, original(term)),
    ),
    "bit-vectors are divided towards 0": (
        "smt",
        "BitsText._division_by_name",
        lambda _: _without_correction,
    ),
    "whole numbers do not wrap around": (
        "smt",
        "WholeText.wrap_text",
        lambda _: lambda self, term: self.word_for(term.args[0]),
    ),
    "exclusive or is or": (
        "smt",
        "BitsText.words",
        lambda original: {**original, "xor": "bvor"},
    ),
    "divisors are above 0": ("smt", "WholeText._define_quotient", lambda _: _of_positive),
    "bounds are too narrow": (
        "simpler_questions",
        "_bounds_by",
        lambda original: lambda c: [(n, low + 1, high) for n, low, high in original(c)],
    ),
    "sets refute nothing": ("by_isl", "refuting_point", lambda _: lambda *_: None),
    "solvers refute nothing": ("by_solver", "refuting_points", lambda _: lambda *_: iter([None])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_decisions_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, path, changed = FAULTS[fault]
    owner: Any = importlib.import_module(f"loopkit._decide.{where}")
    *parents, last = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    monkeypatch.setattr(owner, last, changed(getattr(owner, last)))
    with pytest.raises(AssertionError):
        for seed in range(12):
            audit(seed)


@pytest.mark.parametrize("seed", range(12))
def test_what_determines_names_agrees_with_all_points(seed: int) -> None:
    """Random cells of names of few values, against enumeration."""
    r = random.Random(seed)
    ends = {"i": (1, 3), "j": (0, 2), "k": (0, 3), "p": (1, 4)}
    names = {text: name(text, *both) for text, both in ends.items()}
    for _ in range(12):
        # Products and few quotients, as flat subscripts have them.
        made = [make_term("mul", *r.choices([*names.values()], k=2)) for _ in range(2)]
        made += [make_term("fdiv", names["k"], number(2)), *r.sample([*names.values()][:3], 2)]
        cells = [
            make_term("add", *(make_term("mul", t, number(r.randint(1, 4))) for t in part))
            for part in (r.sample(made, 3), r.sample(made, 2))[: r.randint(1, 2)]
        ]
        below = make_term("lt", *r.sample([*names.values()], 2))
        asked = r.choice([n for n in names_in(*cells) if n != "p"])
        found: dict[Any, set[int]] = {}
        for values in product(*(range(low, high + 1) for low, high in ends.values())):
            point = dict(zip(ends, values, strict=True))
            if value_of(below, point):
                key = (*(value_of(cell, point) for cell in cells), point["p"])
                found.setdefault(key, set()).add(point[asked])
        decision = one_to_one.decide_one_to_one(cells, [below], {"i", "j", "k"}, [asked])
        is_told = all(len(its) == 1 for its in found.values())
        assert type(decision).__name__ in ("Proven" if is_told else "Refuted", "Open"), cells


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    quick = [q for q in QUESTIONS if q.answer in ("Proven", "Refuted")]
    once = [str(answered(q)) for q in quick]
    again = [str(answered(q)) for q in reversed(quick)]
    assert once == again[::-1]


def test_a_question_of_too_many_cases_is_open() -> None:
    """Choices among many values, in cells of two instances."""
    numbers = range(12)
    cell_text = " + ".join(f"({3**n} if a{n} > b{n} else i)" for n in numbers)
    bounds = {f"{letter}{n}": (0, 9) for letter in "ab" for n in numbers} | {"i": (0, 9)}
    cell = read_term(cell_text, bounds)
    decision = one_to_one.decide_one_to_one([cell], [], set(bounds), ["i"])
    assert type(decision).__name__ == "Open"
