"""Terms of typed expressions have the values, and the types, that NumPy computes."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from float_values import OPERATIONS as OF_FLOATS
from float_values import are_same
from seams import DTYPES, algebra, parse_expression, typed_terms
from term_texts import make_term, ranges, terms

import loopkit as lk

WHOLE = ("int8", "uint8", "int32", "uint32", "int64")
FLOATS = ("float16", "float32", "float64")
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 100), (0.0, 1.0, 2.0, 0.5, 0.1, 3.0, 8.0, 0.25, 2, 1)
EDGES = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 0.1, -2.5, 3.0, 65504.0, 6e-8, 1e38]


def text_of(r: random.Random, *, whole: bool, depth: int) -> str:
    """An expression of whole numbers ``a`` to ``d``, or of others ``x`` to ``z``."""
    if depth == 0 or r.random() < 0.15:
        if r.random() < 0.3:
            return str(r.choice(NUMBERS[not whole]))
        return r.choice("abcd" if whole else "xyz")
    which = r.random()

    def part(*, is_whole: bool = whole) -> str:
        return text_of(r, whole=is_whole, depth=depth - 1)

    if whole:
        if which < 0.6:
            return f"({part()} {r.choice('+-*')} {part()})"
        if which < 0.72:
            divisor = r.choice(("1", "2", "3", "4", "6", "8", "(-2)", "(-3)"))
            return f"({part()} {r.choice(('//', '%'))} {divisor})"
        if which < 0.84:
            return f"({part()} {r.choice('&|^')} {part()})"
        if which < 0.9:
            return f"({r.choice('abcd')} {r.choice(('<<', '>>'))} {r.choice((1, 2, 3, 7))})"
        return f"{r.choice(WHOLE)}({part()})" if which < 0.96 else f"(~{r.choice('abcd')})"
    if which < 0.6:
        return f"({part()} {r.choice('+-*/')} {part()})"
    if which < 0.7:
        return f"(-{part()})"
    if which < 0.85:
        return f"{r.choice(FLOATS)}({part(is_whole=which > 0.8)})"
    kind = r.choice(FLOATS)  # a choice of Python's has the type of one side
    condition = f"{part()} {r.choice(('<', '<=', '=='))} {part()}"
    return f"({kind}({part()}) if {condition} else {kind}({part()}))"


def drawn_value(r: random.Random, kind: str) -> Any:
    """A value of a type, the ends of its range among them."""
    with np.errstate(all="ignore"):
        if kind in FLOATS:
            return np.dtype(kind).type(r.choice(EDGES) if r.random() < 0.6 else r.uniform(-99, 99))
    low, high = map(int, ranges.INTEGERS[kind])
    ends = [low, high, 0, 1, low + 1, high - 1, 2, 3]
    return np.dtype(kind).type(r.choice(ends) if r.random() < 0.5 else r.randint(max(low, -50), 50))


def value_of(term: Any, values: dict[str, Any]) -> Any:
    """The value of a term: a whole number, a truth value or a number of NumPy's."""
    match term.op:
        case "constant":
            return term.data if term.sort in "ZB" else terms.SORTS[term.sort].type(term.data)
        case "read":
            return values[term.data[0]]
        case "select" | "if":
            return value_of(term.args[1 if value_of(term.args[0], values) else 2], values)
    args = [value_of(a, values) for a in term.args]
    match term.op:
        case "sum":
            return sum(c * a for c, a in zip(term.data, args, strict=True))
        case "wrap":
            low, high = map(int, ranges.INTEGERS[term.data])
            return (args[0] - low) % (high - low + 1) + low
        case "cast" | "tofloat":
            return terms.SORTS[term.sort].type(args[0])
        case "eq":
            return bool(args[0] == args[1])
    of_floats = any(a.sort not in "ZB" for a in term.args)
    found = (OF_FLOATS if of_floats else algebra.evaluate.OPERATIONS)[term.op](*args)
    return bool(found) if term.sort == "B" else found


@pytest.mark.parametrize("seed", range(12))
def test_terms_have_the_values_that_numpy_computes(seed: int) -> None:
    r, compared = random.Random(f"typed {seed}"), 0
    for _ in range(60):
        text = text_of(r, whole=r.random() < 0.5, depth=r.randint(1, 4))
        kinds = {n: r.choice(WHOLE if n in "abcd" else FLOATS) for n in "abcdxyz"}
        types = {n: DTYPES[k] for n, k in kinds.items()}

        def read(name: str, _: Any, types: Any = types) -> Any:
            dtype = types[name]
            return terms.node("read", typed_terms.sort_of(dtype), (), (name, dtype.name))

        reader = typed_terms.TypedReader(types, read)
        try:
            expr = parse_expression(text)
            kind = reader.kind(expr)
            term = reader.value(expr, kind) if isinstance(kind, np.dtype) else None
        except (lk.LoopkitError, terms.UnreadableError):
            continue
        if term is None:
            continue
        space = {k: np.dtype(k).type for k in (*WHOLE, *FLOATS)}
        space = {k: (lambda v, k=k: np.asarray(v).astype(k)[()]) for k in space}
        for _ in range(20):
            values = {n: drawn_value(r, k) for n, k in kinds.items()}
            with np.errstate(all="ignore"):
                try:
                    expected = eval(text, {}, {**space, **values})
                except (OverflowError, ZeroDivisionError):
                    continue
                found = value_of(term, {n: v if n in "xyz" else int(v) for n, v in values.items()})
            assert np.asarray(expected).dtype == kind, text
            assert are_same(np.asarray(expected), np.asarray(found, kind)), (text, kinds, values)
            compared += 1
    assert compared > 300


def test_conversions_of_choices_are_choices_of_conversions() -> None:
    condition = make_term("lt", *map(terms.name, "xy"))
    sides = terms.number(1), terms.number(2)
    choice = make_term("select", condition, *sides)
    found = make_term("tofloat", choice, sort="F32")
    assert found.op == "select"
    assert {*found.args[1:]} == {terms.constant(value, "F32") for value in (1, 2)}
