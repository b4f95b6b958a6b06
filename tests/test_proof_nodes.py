"""Forms and conditions of the proof are compared as nodes, whatever they look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_scopes import anywhere, translator
from seams import CIf as If
from seams import (
    Matching,
    TypedForms,
    forms,
    joined,
    negated,
    shown,
    terms,
)
from seams import matching_definitions as matching
from test_proof_reader import read

X, Y = forms.variable("x"), forms.variable("y")


def asked(text: str) -> Any:
    """What a guard of the text asks."""
    function = read(f"if ({text})\n    a[0] = 1;")
    [guard] = function.body
    assert isinstance(guard, If)
    types = {"x": "int", "y": "int", "a": "int*", "b": "float*", "c": "float*"}
    known = translator(function, **types, z="lk_complex64*")
    return known.condition(guard.condition, anywhere())


# {{{ nodes


def test_what_looks_the_same_is_not() -> None:
    """A name, an element, an operation and a number that are shown by one text."""
    nodes = [
        forms.variable("v[x]"),
        forms.loaded("v", X),
        forms.opaque("v[x]"),
        forms.opaque("v[", X),
        forms.opaque(("v[", "x]")),
        forms.opaque(("v[x", "]")),
    ]
    assert len({shown(node) for node in nodes}) < len(nodes)
    assert len(set(nodes)) == len(nodes)
    assert all((a == b) == (a is b) for a in nodes for b in nodes)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("z[x].re > 0.5", "z[x].im > 0.5"),
        (
            "lk_complex64{(float)x, (float)y}.re > 0.5",
            "lk_complex128{(double)x, (double)y}.re > 0.5",
        ),
        ("(short)a[x] > 0", "(signed char)a[x] > 0"),
        ("(a[x] > 0 ? a[y] : a[0]) > 0", "(a[y] > 0 ? a[x] : a[0]) > 0"),
        ("(a[x] > 0 ? (a[y] > 0 ? x : y) : 0) > 0", "(a[x] > 0 ? a[y] > 0 : (x ? y : 0)) > 0"),
        ("~a[x] > 0", "-a[x] > 0"),
    ],
)
def test_conditions_of_other_nodes_differ(one: str, two: str) -> None:
    assert asked(one) == asked(one)
    assert asked(one) != asked(two)


def test_numbers_have_types() -> None:
    numbers = [
        terms.const(value, np.dtype(dtype))
        for value, dtype in (
            (0.5, "float64"),
            (0.5, "float32"),
            (0.1, "float32"),
            (0.1, "float64"),
            (2.0, "float64"),
            (2, "int32"),
            (0.5j, "complex64"),
            (float("nan"), "float64"),
        )
    ]
    typed = TypedForms(lambda read: X, lambda name: (0, 1))
    found = [typed.form(number) for number in numbers]
    assert len(set(found)) == len(found)
    assert found == [typed.form(number) for number in numbers]


def test_what_has_no_order() -> None:
    x, y = forms.loaded("a", X), forms.loaded("a", Y)
    assert forms.make_term("mul", x, y) is forms.make_term("mul", y, x)
    assert forms.minus(forms.make_term("mul", x, y), forms.make_term("mul", y, x)) is forms.number(
        0
    )
    assert forms.make_term("mul", forms.make_term("mul", x, x), y) is not forms.make_term(
        "mul", forms.make_term("mul", x, y), y
    )
    assert (
        forms.make_term("max", x, y) == forms.make_term("max", y, x) != forms.make_term("min", x, y)
    )
    one, two = asked("a[x] == a[y]"), asked("a[y] == a[x]")
    assert one == two and negated(one) == asked("a[y] != a[x]")
    assert joined("or", [asked("a[x] > 0"), one]) == joined("or", [two, asked("a[x] > 0")])
    assert asked("a[x] < a[y]") != asked("a[y] < a[x]")
    assert negated(negated(asked("a[x] < a[y]"))) == asked("a[x] < a[y]")


def test_nested_nodes_are_compared_in_linear_time() -> None:
    def nested(depth: int) -> Any:
        form = X
        for step in range(depth):
            form = forms.loaded("a", forms.floor(forms.plus(form, forms.number(step)), 3))
        return form

    one, two = nested(40), nested(40)
    assert one == two and hash(one) == hash(two)
    assert nested(40) != nested(39)


# }}}

# {{{ matching


def test_alike_up_to_subscripts() -> None:
    one, two = asked("a[x] * 2 + b[y] > c[x]"), asked("a[y] * 2 + b[x] > c[x + 1]")
    found = matching(one, two)
    assert found is not None
    assert found.words == {"a", "b", "c"}
    assert set(found.pairs) == {
        (Y, "==", X),
        (X, "==", Y),
        (forms.plus(X, forms.number(1)), "==", X),
    }


def test_subscripts_that_are_loaded_are_alike_up_to_their_own() -> None:
    found = matching(
        forms.loaded("a", forms.loaded("b", X)), forms.loaded("a", forms.loaded("b", Y))
    )
    assert found == Matching(frozenset(("a", "b")), ((Y, "==", X),))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a[x] > 0", "b[x] > 0"),
        ("a[x] > 0", "a[y] > 1"),
        ("a[x] > 0", "a[y] >= 0"),
        ("a[x] * 2 > b[y]", "a[y] * 3 > b[y]"),
        ("z[x].re > 0", "z[y].im > 0"),
        ("a[(int)b[x]] > 0", "a[(int)c[x]] > 0"),
    ],
)
def test_what_is_not_alike(one: str, two: str) -> None:
    found = matching(asked(one), asked(two))
    pairs = () if found is None else found.pairs
    numbers = [(forms.number_in(due), forms.number_in(mine)) for due, _, mine in pairs]
    apart = (None not in pair and pair[0] != pair[1] for pair in numbers)  # where 1 is 0
    assert found is None or any(apart)


def test_alike_where_what_is_left_is_equal() -> None:
    found = matching(asked("a[x] > x"), asked("a[x] > y"))
    assert found is not None and found.pairs == ((forms.scaled(Y, -1), "==", forms.scaled(X, -1)),)


# }}}
