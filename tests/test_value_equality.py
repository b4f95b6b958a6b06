"""Values are compared as nodes, with their types and never by their texts."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import Constantly, Model, accesses, digest_of, evaluate, key_of, linear, remembered, same
from seams import PolyInstance as Instance
from seams import sets as _sets

import loopkit as lk
from loopkit import ArrayArg, ValueArg

X = prim.Variable("x")
NUMBERS: list[Any] = [
    *(1, 1.0, True, 1 + 0j, np.int32(1), np.int64(1), np.float32(1), np.bool_(True)),
    *(0, 0.0, -0.0, False, complex(0.0, -0.0), 0j, np.float32(-0.0), np.float32(0.0)),
    *(float("nan"), np.float32("nan"), np.float64("nan"), "1", None, 2**70),
]
WRAPPERS: list[Callable[[Any], Any]] = [
    lambda n: n,
    lambda n: prim.Sum((X, n)),
    lambda n: prim.Subscript(X, (prim.Product((2, n)),)),
    lambda n: (n, ("a",)),
    lambda n: frozenset([n, "a"]),
    lambda n: {"a": n},
    lambda n: ValueArg("v", default=n),
    lambda n: ArrayArg("a", shape=(n, X)),
    Constantly,
]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_only_the_same_numbers_are_the_same(wrap: Callable[[Any], Any]) -> None:
    for i, first in enumerate(NUMBERS):
        for j, second in enumerate(NUMBERS):
            one, other = wrap(first), wrap(second)
            assert same(one, other) == (i == j), (first, second)
            assert (key_of(one) == key_of(other)) == (i == j)
            assert (digest_of(one) == digest_of(other)) == (i == j)


def test_structure_counts() -> None:
    a, b, c = (prim.Variable(name) for name in "abc")
    distinct = [
        prim.Sum((a, b, c)),
        prim.Sum((prim.Sum((a, b)), c)),
        prim.Sum((a, prim.Sum((b, c)))),
        prim.Product((a, b, c)),
        prim.Max((a, b, c)),
        (a, b, c),
        ((a, b), c),
        ("a", "b", "c"),
        prim.Call(a, (b, c)),
        prim.Subscript(a, (b, c)),
        prim.Comparison(a, "<", b),
        prim.Comparison(a, "<=", b),
    ]
    assert len({key_of(value) for value in distinct}) == len(distinct)
    assert len({digest_of(value) for value in distinct}) == len(distinct)


def test_depth_is_no_matter() -> None:
    def nested(innermost: str) -> Any:
        found: Any = prim.Variable(innermost)
        for _ in range(5_000):
            found = prim.Sum((found, 1))
        return found

    assert same(nested("a"), nested("a"))
    assert not same(nested("a"), nested("b"))
    assert digest_of(nested("a")) != digest_of(nested("b"))


def test_caches_tell_numbers_apart() -> None:
    two, real = prim.Sum((X, 2)), prim.Sum((X, 2.0))
    for _ in range(2):
        assert _sets.is_affine(two)
        assert not _sets.is_affine(real)
        assert linear(two).constant == 2
        with pytest.raises(_sets.NotAffineError):
            linear(real)
    assert type(evaluate(two, {"x": 1})) is int
    for number in (1, True, 1.0, np.int32(1)):
        ((_, (index,)), *_) = accesses(prim.Subscript(X, (number,)))
        assert type(index) is type(number)


def test_what_was_asked_before_changes_nothing() -> None:
    code = (
        "import sys, pymbolic.primitives as prim\n"
        "from loopkit._sets import is_affine, condition_set, NotAffineError\n"
        "x = prim.Variable('x')\n"
        "made = [prim.Sum((x, 2.0)), prim.Sum((x, 2))]\n"
        "made += [prim.Product((x, 1)), prim.Product((x, True))]\n"
        "order = [int(n) for n in sys.argv[1]]\n"
        "print(sorted((n, is_affine(made[n])) for n in order))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, order], capture_output=True, text=True, check=True
        ).stdout
        for order in ("0123", "3210")
    }
    assert said == {"[(0, False), (1, True), (2, True), (3, False)]\n"}


def test_remembered_functions_forget_the_oldest() -> None:
    asked: list[Any] = []

    @remembered(2)
    def noted(value: Any) -> Any:
        asked.append(value)
        return value

    for value in (1, 2, 1, 3, 1):
        noted(value)
    assert asked == [1, 2, 3, 1]


def deep(operator: str, constant: str = "2") -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"d[i] = ((((a[i] {operator} b[i])*c[i] + 1)*{constant} + 3)*4 + 5)",
        dtypes={"a, b, c, d": "float32"},
    )


def of_shape(extent: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "d[i] = a[i]",
        [lk.GlobalArg("a", shape=f"((((({extent}) * 2 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2"), ...],
        dtypes={"a, d": "float32"},
    )


def test_equal_kernels_are_the_same() -> None:
    assert deep("+") == deep("+")
    assert hash(deep("+")) == hash(deep("+"))
    assert deep("+").key == deep("+").key
    others = [deep("-"), deep("+", "2.0"), of_shape("n + 1"), of_shape("n + 9")]
    assert len({deep("+"), *others}) == 5
    assert len({deep("+").key, *(k.key for k in others)}) == 5


def test_keys_and_equality_outlive_the_process() -> None:
    kernel = deep("+")
    hash(kernel)
    code = (
        "import pickle, sys\n"
        "kernel = pickle.loads(sys.stdin.buffer.read())\n"
        "sys.path.insert(0, 'tests')\n"
        "from test_value_equality import deep\n"
        "print(kernel.key, kernel == deep('+'), hash(kernel) == hash(deep('+')))\n"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(kernel),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.decode().split() == [kernel.key, "True", "True"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("((((a[i] + b[i])*c[i] + 1)*2 + 3)*4 + 5)", "((((a[i] - b[i])*c[i] + 1)*2 + 3)*4 + 5)"),
        ("b[i//2 + n + m + 9]", "b[i%2 + n + m + 9]"),
        ("max(max(max(b[i]*2, c[i]), 3), 4)", "max(max(max(b[i]*5, c[i]), 3), 4)"),
    ],
)
def test_what_differs_deep_inside_is_not_equal(one: str, other: str) -> None:
    def kernel(text: str) -> lk.Kernel:
        return lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            f"d[i] = {text}",
            [*(lk.GlobalArg(name, shape="4*n + 4*m + 20") for name in "abc"), ...],
            dtypes={"a, b, c, d": "float32"},
            assumptions="n, m >= 1",
        )

    assert lk.verify(kernel(one), kernel(other)).answer != "equal"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_predicates_of_two_types_have_domains_of_their_own(order: tuple[int, int]) -> None:
    text = "d[i] = a[i] {id=one}\nd[i] = a[i] + 1 {id=two}"
    kernel = lk.make_kernel("{ [i]: 0 <= i < 9 }", text, dtypes={"a, d": "float32"})
    limits = (2, 2.0)
    guards = {
        name: (prim.Comparison(prim.Variable("i"), "<", limits[number]),)
        for name, number in zip(("one", "two"), order, strict=True)
    }
    model = Model(
        kernel.with_(
            statements=tuple(replace(s, predicates=guards[s.id]) for s in kernel.statements)
        )
    )
    whole = kernel.statement_domain("one")
    for name, number in zip(("one", "two"), order, strict=True):
        narrowed = not whole.is_subset(model.domain(Instance(name, "")))
        assert narrowed == (limits[number] is limits[0])
