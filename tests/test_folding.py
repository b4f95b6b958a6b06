"""Constants: what is computed of them is what code computes."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from seams import folding as _folding

import loopkit as lk

KINDS = {"a": "float32", "h": "int8", "u": "uint8", "b": "bool"}
ARRAYS = {name: np.array([1, 2, 3, 0, 1]).astype(kind) for name, kind in KINDS.items()}
OF_SIZES = """
~(n>3) | (n>3)+(n>4) | (n>3)*(n>4) | -(n>3) | (n>3)^(n>4) | (n>3)&(n>9) | (n>3) and 2
min(n,2.5) | max(n,0.5) | clip(n,0.5,2.5) | max(n,nan) | min(nan,n) | fmin(n,nan) | fmax(nan,n)
n/2 | 2**n | n//2.5 | 1/n | n%3 | -n%3 | sqrt(n) | sqrt(-n) | log(-n) | log(n-5) | lgamma(-n)
tgamma(5-n) | 1/(n-5) | n//(n-5) | n%(n-5) | 0.5//(n-5) | ceil(-n/10) | trunc(-n/10)
round(-n/10) | sign(-n) | sign(-n*0.0) | n<<2 | n>>1 | 1<<(n-10) | n&3 | n^3 | ~n | abs(-n)
a[i]*n | a[i]+n*n | h[i]*n | h[i]//n | h[i]*(n/2) | a[i]*(n>3) | (n>3)+h[i] | 1 if n>3 else 2.5
int8(n*60) | fma(n,0.1,-0.5) | exp(1j*n) | sqrt(1j*n) | sin(1j*n) | (0.0*-n)**0.5 | (-n)**0.25
(n-5)**-1.0 | copysign(1,-0.0*n) | isnan(n) | isnan(1j*n) | (n>3)<<(n>3) | h[i]<<(n>3)
(n>3)/(n>4) | (n>3)//(n>4) | u[i]&(n>3) | 1000.0**(100*n) | exp(1000*n) | -(1j*n)
""".replace("\n", "|").split("|")


def used_in(text: str) -> dict[str, str]:
    return {name: kind for name, kind in KINDS.items() if f"{name}[" in text}


def alike(found: Any, due: Any) -> bool:
    if found.dtype != due.dtype:
        return False
    if found.dtype.kind == "c":
        return bool(np.allclose(found, due, rtol=1e-15, equal_nan=True))
    is_same = np.array_equal(found, due, equal_nan=found.dtype.kind == "f")
    signs = [np.copysign(1.0, x)[~np.isnan(due)] for x in (found, due)]
    return is_same and bool((signs[0] == signs[1]).all())


@pytest.mark.parametrize("text", [t.strip() for t in OF_SIZES if t.strip()])
def test_to_fix_a_size_changes_nothing(text: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 5 }", f"c[i] = {text}", dtypes=used_in(text), assumptions="n >= 1"
    )
    data = {name: ARRAYS[name] for name in used_in(text)}
    due = knl.executor("reference")(n=5, **data)
    fixed = knl.fix_parameters(n=5)
    assert fixed.prove().ok, fixed.prove()
    for found in (
        knl.executor("host")(n=5, **data),
        fixed.executor("reference")(**data),
        fixed.executor("host")(**data),
    ):
        assert alike(found, due), (found, due)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("min(i, 2.5)", [0, 1, 2, 2.5]),
        ("max(0.5, i)", [0.5, 1, 2, 3]),
        ("clip(i, 0.5, 1.5)", [0.5, 1, 1.5, 1.5]),
        ("max(0.5*i, 1)", [1, 1, 1, 1.5]),
        ("min(2.5, i, 1)", [0, 1, 1, 1]),
        ("max(i, nan)", [np.nan] * 4),
        ("max(1, nan)", [np.nan] * 4),
        ("min(nan, 1)", [np.nan] * 4),
        ("fmax(nan, 2)", [2.0] * 4),
        ("fmin(1, 2.5)", [1.0] * 4),
        ("ceil(-0.5)", [-0.0] * 4),
        ("floor(inf)", [np.inf] * 4),
        ("sign(nan)", [np.nan] * 4),
        ("sqrt(-1+0j)", [1j] * 4),
        ("abs(exp(1j))", [1.0] * 4),
        ("log(0)", [-np.inf] * 4),
    ],
)
def test_results_are_of_the_kind_that_holds_both(text: str, due: list[Any]) -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < 4 }", f"c[i] = {text}")
    assert knl.prove().ok
    for executor in ("host", "reference"):
        found = knl.executor(executor)()
        assert alike(found, np.array(due, complex if isinstance(due[0], complex) else float)), found


@pytest.mark.parametrize(
    ("text", "due"), [("True + True", 2), ("True*3", 3), ("-True", -1), ("~(1 < 2)", False)]
)
def test_truth_values_are_operands(text: str, due: Any) -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < 2 }", f"c[i] = {text}")
    assert knl.prove().ok
    for executor in ("host", "reference"):
        np.testing.assert_array_equal(knl.executor(executor)(), [due, due])


@pytest.mark.parametrize("one", [math.nan, 1, 2.5, True, -0.0])
@pytest.mark.parametrize("two", [math.nan, 0, 1.5, False, 0.0])
def test_extrema(one: Any, two: Any) -> None:
    for name in ("minimum", "maximum", "fmin", "fmax"):
        found = getattr(_folding, name)(one, two)
        np.testing.assert_equal(float(found), float(getattr(np, name)(one, two)))
        assert type(found) is max(type(one), type(two), key=_folding.KINDS.index)


ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 1e300, -1e300, 1e-320, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", sorted(_folding.FLOAT_FUNCTIONS))
def test_functions_of_constants_are_those_of_code(name: str) -> None:
    """No constant makes them raise, and what they give is what the host's library gives."""
    count = {"fma": 3, **dict.fromkeys(("atan2", "hypot", "copysign", "fmod"), 2)}.get(name, 1)
    x = np.array(ENDS)
    given = [x, np.roll(x, 1), np.roll(x, 3)][:count]
    texts = ", ".join(f"x{at}[i]" for at in range(count))
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"c[i] = {name}({texts})",
        dtypes={f"x{at}": "float64" for at in range(count)},
    )
    due = knl.executor("host")(**{f"x{at}": a for at, a in enumerate(given)})
    found = [
        _folding.FLOAT_FUNCTIONS[name](*map(float, values)) for values in zip(*given, strict=True)
    ]
    np.testing.assert_allclose(found, due, rtol=1e-14)
    known = ~np.isnan(due)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(due)[known])


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cosh", "tanh", "log10"])
def test_functions_of_complex_constants(name: str) -> None:
    value = _folding.FLOAT_FUNCTIONS[name](0.5 - 2j)
    assert cmath.isclose(value, getattr(cmath, name)(0.5 - 2j))


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("c[i] = a[i]*2**-n", lambda knl: knl.fix_parameters(n=3)),
        ("c[i] = a[i]*2**(i - n)", lambda knl: knl.fix_parameters(n=1).unroll("i")),
    ],
)
def test_an_integer_to_a_negative_power_becomes_no_fraction(text, step):
    """It is 0, and a literal 2**-3 is 0.125, as in Python."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 4 }", text, dtypes={"a": "float32"}, assumptions="0 < n < 9"
    )
    a = np.ones(4, "f4")
    assert (knl(a=a, n=4) == 0).all()
    with pytest.raises(lk.IllegalTransformError, match=r"an integer to a negative power is 0"):
        step(knl)
    real = lk.make_kernel(
        "{ [i]: 0 <= i < 4 }",
        text.replace("2**", "2.0**"),
        dtypes={"a": "float64"},
        assumptions="0 < n < 9",
    )
    assert (step(real)(a=a.astype("f8")) > 0).all()
