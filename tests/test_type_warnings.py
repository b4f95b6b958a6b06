"""What a kernel's types make of its text that surprises is said once, when it is made."""

from __future__ import annotations

import warnings

import pytest

import loopkit as lk

WIDER = "around an operand computes it in the wider type"
DOUBLE = "in a kernel of floats: float32(...) around an operand avoids it"
# An instruction, the types of its arrays, and what is said of it.
SAID = {
    ("c[i] = a[i]*a[i]", "a: int32, c: int64"): (
        f"'a[i]*a[i]' is computed in int32, though 'c' is int64: int64(...) {WIDER}",
    ),
    ("c[i] = b[i] + a[i]*a[i]", "a: float32, b: float32, c: float64"): (
        f"'b[i] + a[i]*a[i]' is computed in float32, though 'c' is float64: float64(...) {WIDER}",
    ),
    ("c[i] = 16777217*a[i]", "a: float32"): ("the literal 16777217 is 16777216 in float32",),
    ("c[i] = a[i] + 0.12345678912345", "a: float32"): (
        "the literal 0.12345678912345 is 0.12345679 in float32",
    ),
    ("c[i] = 1e39*a[i]", "a: float32"): ("the literal 1e+39 is inf in float32",),
    ("c[i] = 1e-60*a[i]", "a: float32"): ("the literal 1e-60 is 0.0 in float32",),
    ("c[i] = a[i] if a[i] < 100000 else 0", "a: float16"): (
        "the literal 100000 is inf in float16",
    ),
    ("c[i] = a[i] + b[i]/2", "a: float32, b: int32"): (
        f"'b[i] / 2' is computed in double precision, {DOUBLE}",
    ),
    ("c[i] = a[i] + i/2*b[i]", "a: float32, b: int32"): (
        f"'i / 2' is computed in double precision, {DOUBLE}",
    ),
    ("c[i] = a[i]*(0.1*b[i]) + b[i]*0.5", "a: float32, b: int32"): (
        f"'0.1*b[i]' is computed in double precision, {DOUBLE}",
        f"'b[i]*0.5' is computed in double precision, {DOUBLE}",
    ),
    ("c[i] = 0.123456789*a[i] + 0.123456789 + M_PI", "a: float32"): (
        "the literal 0.123456789 is 0.12345679 in float32",
    ),
    ("c[i] = 1.00000001*a[i] + 16777217*a[i]*2.00000001 + 3.00000001", "a: float32"): (
        (
            "the literals 1.00000001 is 1.0 in float32, 16777217 is 16777216 in float32, "
            "2.00000001 is 2.0 in float32, and 1 more"
        ),
    ),
    ("f(x) := 16777217*x + 16777217\nc[i] = f(a[i])", "a: float32"): (
        "the literal 16777217 is 16777216 in float32",
    ),
}
# Nothing is said of values that are kept as they are, of casts, of numbers that are near, ...
QUIET = {
    "c[i] = a[i]": "a: float32, c: float64",
    "c[i] = int64(a[i])*a[i]": "a: int32, c: int64",
    "c[i] = 16777216*a[i] + 0.1": "a: float32",
    "c[i] = a[i] + float32(b[i])/2": "a: float32, b: int32",
    "c[i] = a[i]*i/n + sqrt(n)": "a: float32",
    "c[i] = a[i]/3 + b[i]": "a: float64, b: float32",
    "c[i] = b[i]/2": "b: int32",
    "c[i] = sum(k, a[k])": "a: int8",
}


def said(text: str, types: str) -> list[warnings.WarningMessage]:
    """The warnings that making a kernel gives."""
    dtypes = dict(part.split(": ") for part in types.split(", "))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        lk.make_kernel("{ [i, k]: 0 <= i, k < n }", text, dtypes=dtypes)
    return given


@pytest.mark.parametrize(("text", "types"), SAID)
def test_what_is_said(text: str, types: str) -> None:
    """Once each, with the statement, the expression, the line, and the place of the call."""
    given = said(text, types)
    assert [str(w.message).splitlines()[0] for w in given] == [
        f"in 'insn': {expected}" for expected in SAID[text, types]
    ]
    for warning in given:
        assert warning.category is lk.LoopkitWarning
        assert warning.filename == __file__
        assert text.splitlines()[-1] in str(warning.message)


@pytest.mark.parametrize("text", QUIET)
def test_what_is_not_worth_a_word(text: str) -> None:
    assert [str(w.message) for w in said(text, QUIET[text])] == []


def test_transforms_repeat_nothing() -> None:
    with pytest.warns(lk.LoopkitWarning):
        knl = lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "c[i] = a[i]*a[i]",
            dtypes={"a": "int32", "c": "int64"},
            assumptions="n >= 1",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", lk.LoopkitWarning)
        knl.split_iname("i", 4).rename_iname("i_inner", "k").cuda()


def test_types_that_come_later_are_looked_at_when_they_come() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = 16777217*a[i]")
    with pytest.warns(lk.LoopkitWarning, match="the literal 16777217 is 16777216 in float32"):
        knl.add_dtypes({"a": "float32"})
