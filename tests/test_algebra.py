"""The algebra of whole numbers and conditions means what Python's numbers mean."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from seams import algebra
from term_texts import in_the_table, make_term, ranges, read_term, rules, substitute_names, terms

OPERATIONS, value_of = algebra.evaluate.OPERATIONS, algebra.evaluate.value_of
INTEGERS, range_of = ranges.INTEGERS, ranges.range_of
name, number, subterms = terms.name, terms.number, terms.subterms
Meaning = Callable[[Mapping[str, int]], int]
BOUNDS = {"x": (-9, 9), "y": (0, 7), "z": (1, 12), "u": (-float("inf"), float("inf"))}
ONE_OR_TWO = {"inv": 1, "abs": 1, "sign": 1, "neg": 1}
WHOLE = (
    *("add", "sub", "mul", "neg", "fdiv", "mod", "inv", "and", "or", "xor"),
    *("shl", "shr", "min", "max", "abs", "sign"),
)


def drawn(r: random.Random, depth: int) -> tuple[Any, Meaning]:
    """A whole number, and what it is by definition."""
    if depth == 0 or r.random() < 0.15:
        if r.random() < 0.4:
            value = r.choice((0, 1, 2, 3, 4, 7, 8, 15, 16, 31, -1, -2, -3, -8, r.randint(-99, 99)))
            return number(value), lambda names: value
        which = r.choice([*BOUNDS])
        return name(which, *BOUNDS[which]), lambda names: names[which]
    kind = r.random()
    if kind < 0.12:
        (c, holds), (a, one), (b, two) = (
            drawn_condition(r, depth - 1),
            *(drawn(r, depth - 1) for _ in "ab"),
        )
        return make_term(
            "select", c, a, b
        ), lambda names: one(names) if holds(names) else two(names)
    if kind < 0.2:
        dtype = r.choice([*INTEGERS])
        low, high = map(int, INTEGERS[dtype])
        a, one = drawn(r, depth - 1)
        return make_term(
            "wrap", a, data=dtype
        ), lambda names: (one(names) - low) % (high - low + 1) + low
    op = r.choice(WHOLE)
    args = [drawn(r, depth - 1) for _ in range(ONE_OR_TWO.get(op, 2))]
    if op in ("shl", "shr"):
        shift = r.randint(-2, 9)
        args[1] = number(shift), lambda names: shift
    meanings = [meaning for _, meaning in args]
    return make_term(op, *(t for t, _ in args)), lambda names: OPERATIONS[op](
        *(m(names) for m in meanings)
    )


def drawn_condition(r: random.Random, depth: int) -> tuple[Any, Meaning]:
    """A condition, and what it is by definition."""
    if depth <= 0 or r.random() < 0.5:
        op = r.choice(("lt", "le", "eq"))
        (a, one), (b, two) = (drawn(r, max(0, depth - 1)) for _ in "ab")
        return make_term(op, a, b), lambda names: OPERATIONS[op](one(names), two(names))
    op = r.choice(("all", "any", "not", "if"))
    parts = [drawn_condition(r, depth - 1) for _ in range({"not": 1, "if": 3}.get(op, 2))]
    every = [meaning for _, meaning in parts]
    by = {
        "all": lambda names: all(m(names) for m in every),
        "any": lambda names: any(m(names) for m in every),
        "not": lambda names: not every[0](names),
        "if": lambda names: every[1 if every[0](names) else 2](names),
    }
    return make_term(op, *(t for t, _ in parts)), by[op]


def points(r: random.Random, count: int) -> list[dict[str, int]]:
    """Values of names within their bounds."""
    return [
        {
            n: r.randint(max(-50, int(max(low, -50))), int(min(high, 50)))
            for n, (low, high) in BOUNDS.items()
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_normal_forms_have_the_value_of_what_was_written(seed: int) -> None:
    r = random.Random(f"algebra {seed}")
    for _ in range(100):
        draw = drawn if r.random() < 0.6 else drawn_condition
        term, meaning = draw(r, r.randint(1, 4))
        for names in points(r, 6):
            assert value_of(term, names) == meaning(names), (term, names)
            if term.sort == "Z":
                low, high = range_of(term)
                assert low <= value_of(term, names) <= high


@pytest.mark.parametrize("seed", range(10))
def test_names_are_replaced_by_terms(seed: int) -> None:
    r = random.Random(f"replace {seed}")
    for _ in range(60):
        term, _ = drawn(r, 3)
        values = {n: drawn(r, 2) for n in "xy"}
        bounded = {
            n: make_term("min", make_term("max", t, number(low)), number(high))
            for (n, (t, _)), (low, high) in zip(
                values.items(), (BOUNDS["x"], BOUNDS["y"]), strict=True
            )
        }
        now = substitute_names(term, bounded)
        for names in points(r, 4):
            given = {**names, **{n: value_of(t, names) for n, t in bounded.items()}}
            assert value_of(now, names) == value_of(term, given)


def wrong_case(rule: Any) -> Any:
    """Numbers for which the code, in which a rule is, gives something else than Python does."""
    numbers = range(-131, 132)
    kinds = [part.id if hasattr(part, "id") else part.value for part in rule.pattern.args]
    x, y = name("x", -131, 131), name("y", 1, 131)
    compared = 0
    constants = numbers if any(isinstance(k, str) and k.startswith("c") for k in kinds) else (0,)
    for c in constants:
        if rule.op in ("shl", "shr") and not -3 <= c <= 12:
            continue
        by = {"x": x, "y": y}
        args = [number(k) if isinstance(k, int) else by.get(k) or number(c) for k in kinds]
        term = make_term(rule.op, *args)
        steps = numbers if c in (0, 1, -1, 2, 7, 8, 100, -128) else range(-131, 132, 7)
        for a, b in product(steps, (1, 2, 3, 8, 131) if "y" in kinds else (1,)):
            given = [k if isinstance(k, int) else {"x": a, "y": b}.get(k, c) for k in kinds]
            if value_of(term, {"x": a, "y": b}) != OPERATIONS[rule.op](*given):
                return term, given
            compared += 1
    assert compared > 200
    return None


@pytest.mark.parametrize("rule", [*rules.rules_in(rules.WHOLE_NUMBERS)], ids=lambda rule: rule.name)
def test_each_rule_holds_for_all_numbers_of_8_bits(rule: Any) -> None:
    """Through the code itself: all values of the names, all constants of 8 bits and more."""
    assert wrong_case(rule) is None


WRONG_RULES = """
not                inv(x)     -> scaled(x, -1)
shift-left         shl(x, c)  -> scaled(x, 2**c + 1) if 0 <= c < 128
shift-right-below  shr(x, c)  -> x if c < 0
divide-by-zero     fdiv(x, 0) -> x
divide-by-less     fdiv(x, c) -> scaled(floor(x, -c), -1) if c < 0
remainder          mod(x, c)  -> minus(x, scaled(floor(x, c*c), c*c)) if c != 0
and-ones           and_(x, c) -> mod(x, number(c + 1)) if c > 0
magnitude          abs(x)     -> max(x, number(0))
sign               sign(x)    -> min(number(1), x)
"""


@pytest.mark.parametrize("wrong", [*rules.rules_in(WRONG_RULES)], ids=lambda rule: rule.name)
def test_wrong_rules_are_found(wrong: Any) -> None:
    with in_the_table("WHOLE_NUMBERS", wrong):
        assert wrong_case(wrong) is not None


BY_TEXT = {"s": (0, 15), "n": (1, float("inf"))}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("(16*t + s)//128", "t//8"),
        ("(16*o + s) % 16", "s"),
        ("(a + b)*(a - b)", "a*a - b*b"),
        ("-(a - b) + a", "b"),
        ("(a//4)*4 + a % 4", "a"),
        ("(n*a + b)//n", "a + b//n"),
        ("((a//3) + 2)//5", "(a + 6)//15"),
        ("a ^ a ^ b", "b"),
        ("a & 7", "a % 8"),
        ("~a", "-a - 1"),
        ("max(a, a + 1)", "a + 1"),
        ("wrap(int8, wrap(int32, a) + wrap(int16, b))", "wrap(int8, a + b)"),
        ("wrap(int32, s)", "s"),
        ("not (a < b)", "b <= a"),
        ("not (a < b and c < 1)", "b <= a or 1 <= c"),
        ("2*a < 7", "a < 4"),
        ("3*a == 7", "1 == 0"),
    ],
)
def test_equal_texts_are_one_term(one: str, two: str) -> None:
    assert read_term(one, BY_TEXT) is read_term(two, BY_TEXT)


def test_ranges_of_many_remainders_take_little_time() -> None:
    """A sum of 22 digits: all subsets of them would be four million."""
    i = name("i", 0, 2**22 - 1)
    digits = (make_term("mod", make_term("fdiv", i, number(2**k)), number(2)) for k in range(22))
    term = make_term("add", *(make_term("mul", d, number(4**k)) for k, d in enumerate(digits)))
    low, high = range_of(term)
    assert low <= 0 and high >= (4**22 - 1) // 3
    assert len([*subterms(term)]) < 100


def test_ranges_of_many_remainders_are_exact() -> None:
    """Bits of two numbers in turns are a number of twice as many bits."""
    both = [terms.name(text, 0, 1023) for text in "ij"]
    found = terms.number(0)
    for bit, (at, value) in product(range(10), enumerate(both)):
        digit = make_term("mod", make_term("fdiv", value, terms.number(2**bit)), terms.number(2))
        found = make_term("add", found, make_term("mul", digit, terms.number(2**at * 4**bit)))
    assert range_of(found) == (0, 4**10 - 1)
