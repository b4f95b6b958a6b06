"""Each rule of floating-point numbers holds: for all numbers of 16 bits, and by z3 for others."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from float_values import are_same, values_of
from seams import algebra
from term_texts import in_the_table, make_term, rules, terms

RULES = [*rules.rules_in(rules.FLOATS)]
SMALL = ("F16", "BF16")
WIDER = {"F16": "F32", "BF16": "F32", "F32": "F64", "F64": "F64"}
SORTS = {
    "cast-to-itself": lambda s: [(s, s)],
    "cast-of-cast": lambda s: [
        (s, WIDER[s]),
        (s, "F64"),
        ("F64", "F32"),
        ("F32", "F64"),
        ("F32", "BF16"),
    ],
    "cast-of-negative": lambda s: [(WIDER[s], s), ("F64", s), ("F16", s), ("BF16", s)],
    "number-in-type": lambda s: [(WIDER[s], s), ("BF16", s)],
}
WHOLE = ("whole-in-type", "cast-of-whole", "round-trip")
"""Rules of whole numbers that are in some type of floating-point numbers."""


def constants(sort: str) -> list[float]:
    """Powers of two, all of them but for the widest types, and other numbers, with both signs."""
    numbers = [math.ldexp(1, e) for e in range(-140, 128) if abs(e) < 30 or e % 9 == 0]
    numbers += [0.0, 1.5, 3.0, 5.0, 6.0, 0.1, 1000.0]
    numbers += [math.ldexp(1, e) for e in (-1074, -1022, -1000, 127, 600, 1000, 1022, 1023)]
    every = {terms.constant(sign * n, sort) for n in numbers for sign in (1, -1)}
    return sorted(t.data for t in every if math.isfinite(t.data))


def names_in(rule: Any) -> list[str]:
    """The names of a pattern."""
    called = {n.func for n in ast.walk(rule.pattern) if isinstance(n, ast.Call)}
    found = (n for n in ast.walk(rule.pattern) if isinstance(n, ast.Name) and n not in called)
    return sorted({n.id for n in found})


def built(pattern: Any, known: dict[str, Any], sort: str, inner: str, make: Any) -> Any:
    """The term of a pattern; ``make`` is what makes its outermost operation."""
    if isinstance(pattern, ast.Name):
        return known[pattern.id]
    if isinstance(pattern, ast.Constant):
        return terms.constant(pattern.value, sort)
    op = pattern.func.id
    args = [built(a, known, inner, inner, terms.node) for a in pattern.args]
    sort = {"lt": "B", "le": "B", "toint": "Z"}.get(op, sort)
    data = "int16" if op == "toint" else None
    if make is terms.node:
        return make(op, sort, args, data)
    return make(op, *args, sort=sort, data=data)


def cases(rule: Any, sort: str) -> Iterator[tuple[Any, Any]]:
    """A term as the pattern of a rule has it, and its normal form, where these differ."""
    names = names_in(rule)
    numbers = constants(sort)
    if "c2" in names:  # of two at once some: the other rules are about signs
        numbers = sorted({*numbers[len(numbers) // 2 :: 7], 0.5, 1.0, 2.0, 3.0, 4.0})
    of = "Z" if rule.name in WHOLE else sort
    free = {
        n: terms.name(n, -200, 200) if of == "Z" else terms.node("name", sort, (), (n,))
        for n in names
        if not n.startswith("c")
    }
    for out, inner in SORTS.get(rule.name, lambda s: [(s, s)])(sort):
        wider = dict.fromkeys(("casts-less", "casts-at-most"), WIDER.get(sort, sort))
        inside = {"cast-of-cast": inner, **wider}.get(rule.name, sort)
        for values in itertools.product(numbers, repeat=len(names) - len(free)):
            held = (n for n in names if n not in free)
            known = {
                n: terms.number(int(v) % 200) if of == "Z" else terms.constant(v, sort)
                for n, v in zip(held, values, strict=True)
            }
            made = (
                built(rule.pattern, free | known, out, inside, m) for m in (terms.node, make_term)
            )
            written, normal = made
            if written is not normal:
                yield written, normal


def wrong_case(rule: Any, sort: str) -> Any:
    """A pattern, and what the code, in which a rule is, makes of it, that differ somewhere."""
    kind = terms.SORTS[sort]
    every = np.arange(1 << 16, dtype=np.uint16).view(kind) if sort in SMALL else drawn(kind)
    some = np.concatenate([every[::1021], np.asarray([0.0, -0.0, 1, -1, 3, np.inf, np.nan], kind)])
    values = {"x": np.arange(-200, 201) if rule.name in WHOLE else every}
    if "y" in names_in(rule):
        values = {"x": every[::7], "y": some[:, None]}
    count = 0
    for written, normal in cases(rule, sort):
        one, two = (values_of(t, values) for t in (written, normal))
        if not np.all(are_same(one, two)):
            return written, normal
        count += 1
    assert count
    return None


def drawn(kind: np.dtype[Any]) -> Any:
    """Numbers of a type by their bits, the smallest and the largest ones among them."""
    info, numbers = np.finfo(kind), np.random.default_rng(0)
    drawn = numbers.integers(0, 256, 8000 * kind.itemsize, np.uint8).view(kind)
    ends = [0, info.smallest_subnormal, info.tiny, info.max, 1, 3, np.inf, np.nan]
    return np.concatenate([drawn, np.asarray([*ends, *(-e for e in ends)], kind)])


@pytest.mark.parametrize("sort", SMALL)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_holds_for_all_numbers_of_16_bits(rule: Any, sort: str) -> None:
    """Through the code itself, with each constant that the rule takes."""
    assert wrong_case(rule, sort) is None


@pytest.mark.parametrize("sort", ["F32", "F64"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_holds_for_some_numbers_of_more_bits(rule: Any, sort: str) -> None:
    """Constants whose products and sums are too large for any type among them."""
    assert wrong_case(rule, sort) is None


WRONG_RULES = """
plus-zero          add(x, 0) -> x
times-zero         mul(x, 0) -> K(0)
by-itself          div(x, x) -> K(1)
by-power           div(x, c) -> mul(x, K(1 / c)) if c > 0
negative-number    mul(x, c) -> mul(x, K(-c)) if is_negative(c)
once-more          add(x, mul(x, c)) -> mul(x, K(c + 1)) if c >= 1
like-terms         add(mul(x, c), mul(x, c2)) -> mul(x, K(c + c2)) if c > 0 and c2 > 0
less-and-less      add(neg(x), neg(y)) -> neg(add(x, y))
multiple           mul(mul(x, c), c2) -> mul(x, K(c * c2)) if c > 0 and c2 > 0
sign-of-size       copysign(abs(x), y) -> abs(x)
cast-of-cast       cast(cast(x)) -> cast(x)
negatives-less     lt(neg(x), neg(y)) -> lt(x, y)
at-most-itself     le(x, x) -> FALSE
"""


@pytest.mark.parametrize("wrong", [*rules.rules_in(WRONG_RULES)], ids=lambda rule: rule.name)
def test_wrong_rules_are_found(wrong: Any) -> None:
    with in_the_table("FLOATS", wrong):
        assert wrong_case(wrong, "F16") is not None


def test_constants_that_get_infinite_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the widest type the product of two constants is no number that a rule may make."""
    always = {"is_once": lambda c, c2: c >= 1 <= c2, "is_multiple": lambda c, c2: c >= 1 <= c2}
    conditions = algebra.floats.conditions_in
    words = algebra.make._words_of
    monkeypatch.setattr(algebra.make, "conditions_in", lambda s: {**conditions(s), **always})
    words.cache_clear()
    (rule,) = (r for r in RULES if r.name == "multiple")
    found = wrong_case(rule, "F64")
    words.cache_clear()
    assert found is not None


REFUSED = [
    ("add", ("x", 0.0), "x"),
    ("add", ("x", "-x"), 0.0),
    ("mul", ("x", 0.0), 0.0),
    ("div", ("x", "x"), 1.0),
    ("div", ("x", 3.0), ("mul", "x", 1 / 3)),
    ("mul", (("mul", "x", 2.0), 0.5), "x"),
    ("add", ("x", ("mul", "x", 5.0)), ("mul", "x", 6.0)),
    ("add", (("mul", "x", 4.0), "-x"), ("mul", "x", 3.0)),
    ("mul", (("mul", "x", 3.0), 3.0), ("mul", "x", 9.0)),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_is_no_rule_is_wrong_for_some_number(case: Any) -> None:
    x = terms.node("name", "F16", (), ("x",))

    def term(part: Any) -> Any:
        if part in ("x", "-x"):
            return x if part == "x" else make_term("neg", x, sort="F16")
        if isinstance(part, float):
            return terms.constant(part, "F16")
        return make_term(part[0], *map(term, part[1:]), sort="F16")

    op, args, wrong = case
    one, two = term((op, *args)), term(wrong)
    assert one is not two
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert not np.all(are_same(values_of(one, {"x": every}), values_of(two, {"x": every})))


RESOURCES = 40_000_000
BY_DEFINITION = ("whole-in-type", "number-in-type", "cast-of-whole", "round-trip")
LONG = ("like-terms", "less-and-less", "multiple", "once-more", "once-less")
"""Rules of which the widest sort takes minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["F16", "BF16", "F32", "F64"])
@pytest.mark.parametrize(
    "rule", [r for r in RULES if r.name not in BY_DEFINITION], ids=lambda rule: rule.name
)
def test_each_rule_is_proven(rule: Any, sort: str) -> None:
    """For all numbers of a sort, rounding included, and some of the constants."""
    z3 = pytest.importorskip("z3")
    if sort == "F64" and (rule.name in LONG or "cast" in rule.name):
        pytest.skip("the proof takes minutes, or no sort is wider")
    kinds = {
        "F16": z3.Float16(),
        "BF16": z3.FPSort(8, 8),
        "F32": z3.Float32(),
        "F64": z3.Float64(),
    }
    near = z3.RNE()

    def meant(term: Any) -> Any:
        match term.op:
            case "constant":
                return (
                    z3.FPVal(term.data, kinds[term.sort])
                    if term.sort != "B"
                    else z3.BoolVal(term.data)
                )
            case "name":
                return z3.FP(term.data[0], kinds[term.sort])
        a, *more = map(meant, term.args)
        b = more[0] if more else None
        match term.op:
            case "add" | "mul" | "div":
                by = {"add": z3.fpAdd, "mul": z3.fpMul, "div": z3.fpDiv}[term.op]
                return by(near, a, b)
            case "neg":
                return z3.fpNeg(a)
            case "abs":
                return z3.fpAbs(a)
            case "floor":
                return z3.fpRoundToIntegral(z3.RTN(), a)
            case "copysign":
                return z3.If(z3.fpIsNegative(b), z3.fpNeg(z3.fpAbs(a)), z3.fpAbs(a))
            case "max":
                return z3.If(z3.Or(z3.fpGT(a, b), z3.fpIsNaN(a)), a, b)
            case "min":
                return z3.If(z3.Or(z3.fpLT(a, b), z3.fpIsNaN(a)), a, b)
            case "lt":
                return z3.fpLT(a, b)
            case "le":
                return z3.fpLEQ(a, b)
            case "cast":
                return z3.fpFPToFP(near, a, kinds[term.sort])
        raise AssertionError(term.op)

    every = [*cases(rule, sort)]
    assert every
    for written, normal in every[:: max(1, len(every) // 12)]:
        asked = z3.Solver()
        asked.add(meant(written) != meant(normal))
        solver = z3.Solver(ctx=z3.Context())  # what was asked before costs it nothing
        solver.set("rlimit", RESOURCES)
        solver.from_string(asked.sexpr())
        assert solver.check() == z3.unsat, (written, normal)
