"""Like terms are collected as NumPy computes: all values of small types are tried."""

from __future__ import annotations

import operator
import random
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from pymbolic.mapper.evaluator import EvaluationMapper
from seams import DTYPES, Model, Multiples, ValueTypes, same, to_text, with_binary_operations

import loopkit as lk

X, Z = (prim.Subscript(prim.Variable(name), (prim.Variable("i"),)) for name in "xz")


def kernel_of(dtype: str, text: str = "x + z") -> lk.Kernel:
    data = [*(lk.GlobalArg(name, dtype, shape=(1,)) for name in "xyz"), ...]
    text = text.replace("x", "x[i]").replace("z", "z[i]")
    return with_binary_operations(lk.make_kernel("{ [i]: 0 <= i < 1 }", f"y[i] = {text}", data))


def collected(dtype: str, text: str) -> tuple[Any, Any]:
    """A right-hand side, and what becomes of it."""
    kernel = kernel_of(dtype, text)
    rhs = kernel.statements[0].rhs
    return rhs, Multiples(ValueTypes(Model(kernel)))(rhs)


def shown(expr: Any) -> str:
    return to_text(expr).replace("[i]", "")


class _Evaluator(EvaluationMapper):
    """NumPy's own operations, one after the other."""

    def map_subscript(self, expr: Any) -> Any:
        return self.rec(expr.aggregate)

    def map_constant(self, expr: Any) -> Any:
        # What ml_dtypes does with Python's own numbers is not what NumPy does.
        kind = self.context["x"].dtype
        return expr if kind.kind in "iu" else kind.type(expr)

    def map_sum(self, expr: Any) -> Any:
        first, *rest = (self.rec(c) for c in expr.children)
        for value in rest:
            first = operator.add(first, value)
        return first

    def map_product(self, expr: Any) -> Any:
        if expr.children[0] == -1:
            return operator.neg(self.rec(expr.children[1]))
        return operator.mul(*map(self.rec, expr.children))


def values_of(dtype: str, count: int) -> list[Any]:
    """All values of a type; of two names all pairs of values."""
    kind = DTYPES[dtype]
    bits = np.arange(1 << (8 * kind.itemsize), dtype=f"uint{8 * kind.itemsize}").view(kind)
    return [bits] if count == 1 else [a.ravel() for a in np.meshgrid(bits, bits)]


def computed(expr: Any, dtype: str, values: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        found = _Evaluator(dict(zip("xz", values, strict=False)))(expr)
    assert found.dtype == DTYPES[dtype]
    return found


def agree(dtype: str, one: Any, two: Any, count: int) -> bool:
    """Whether two expressions have the same bits everywhere; what is not a number is one value."""
    values = values_of(dtype, count)
    a, b = (computed(e, dtype, values) for e in (one, two))
    bits = f"uint{8 * DTYPES[dtype].itemsize}"
    equal = a.view(bits) == b.view(bits)
    return bool(np.all(equal | ((a != a) & (b != b))))


FLOATS = {
    "x + x": "2*x",
    "x + x + x": "3*x",
    "2*x + x": "3*x",
    "x + x + x + x": "4*x",
    "(x + x) + (x + x)": "4*x",
    "x + x + x + x + x": "5*x",
    "x + 8*x": "9*x",
    "-x - x": "-(2*x)",
    "-x - 3*x": "-(4*x)",
    "2*(4.0*x)": "8*x",
    "x*(-2)*2": "-(4*x)",
    "-(3*x)": "-(3*x)",
    "1.0*x": "x",
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("text", FLOATS)
def test_all_floats(dtype: str, text: str) -> None:
    before, after = collected(dtype, text)
    assert shown(after) == FLOATS[text]
    assert agree(dtype, before, after, 1)


SMALL = ["float16", "bfloat16", "int8", "uint8"]


@pytest.mark.host
@pytest.mark.parametrize("dtype", SMALL)
def test_a_square_is_a_product(dtype: str) -> None:
    _, after = collected(dtype, "x**2")
    assert same(after, prim.Product((X, X)))
    (values,) = values_of(dtype, 1)
    two = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]**2\nz[i] = x[i]*x[i]", dtypes={"x": dtype}
    )
    for executor in ("reference", "host"):
        one, other = two.executor(executor)(x=values)
        assert one.dtype == other.dtype
        bits = f"uint{8 * one.itemsize}"
        assert np.all((one.view(bits) == other.view(bits)) | ((one != one) & (other != other)))


@pytest.mark.parametrize("text", ["x**3", "x**0.5", "x**2.0", "x**-1"])
def test_other_powers_stay(text: str) -> None:
    before, after = collected("float32", text)
    assert same(before, after)


KEPT = ["x + x + x + x + x + x", "4*x - x", "x - x", "3*(3*x)", "0.5*(2*x)", "0.5*(0.25*x)"]


@pytest.mark.parametrize("text", KEPT)
def test_floats_that_may_not_be_collected(text: str) -> None:
    _, after = collected("float16", text)
    total = {"4*x - x": 3, "x - x": 0, "3*(3*x)": 9, "0.5*(2*x)": 1, "0.5*(0.25*x)": 0.125}
    multiple = prim.Product((total.get(text, 6), X))
    assert not same(after, multiple)
    # For some value it would be wrong.
    before, _ = collected("float16", text)
    assert not agree("float16", before, multiple, 1)


def drawn(r: random.Random, low: int, high: int, depth: int = 4) -> Any:
    """An expression of integers with many like terms."""
    kind = r.random()
    if depth == 0 or kind < 0.15:
        return r.choice([X, X, Z])
    left = drawn(r, low, high, depth - 1)
    if kind < 0.5:
        return prim.Sum((left, drawn(r, low, high, depth - 1)))
    if kind < 0.65:
        return prim.Product((r.randint(low, high), left))
    if kind < 0.72:
        return prim.Sum((left, r.randint(low, high)))
    if kind < 0.8:
        return prim.LeftShift(left, r.randint(0, 9))
    if kind < 0.88:
        return prim.Sum((left, prim.Product((-1, drawn(r, low, high, depth - 1)))))
    return prim.Product((left, drawn(r, low, high, depth - 2 if depth > 1 else 0)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_small_integers(dtype: str) -> None:
    known = np.iinfo(dtype)
    mapper = Multiples(ValueTypes(Model(kernel_of(dtype))))
    r = random.Random(7)
    changed = 0
    for _ in range(150):
        before = drawn(r, int(known.min), int(known.max))
        after = mapper(before)
        assert agree(dtype, before, after, 2), shown(before)
        changed += not same(before, after)
    assert changed > 100


def test_a_shift_by_the_width_is_no_product() -> None:
    before, after = collected("int8", "(x << 8) + (x << 4)")
    assert shown(after) == "16*x + (x << 8)"
    assert agree("int8", before, after, 1)
