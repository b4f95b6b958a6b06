"""Faults around functions of users': other functions, other arguments, other definitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import pymbolic.primitives as prim
from seams import ExpressionMapper, OwnFunction

import loopkit as lk
from faults.kernels import make
from faults.making import RENAME, changed
from faults.planting import Patch, fault
from faults.printing import text

# {{{ kernels


@cache
def bent() -> Any:
    return lk.register_callable(
        "bent",
        {"x": "float32", "k": "int32"},
        "float32",
        body="return x > k ? x - k : 2*k - x;",
        meaning="x - float32(k) if x > k else float32(2*k) - x",
        within={"k": (-9, 9)},
    )


@cache
def bent_too() -> Any:
    """An overload for wider numbers, which means something else."""
    return lk.register_callable(
        "bent", {"x": "float64", "k": "int32"}, "float64", body="return x + 3*k;", meaning="x + 3*k"
    )


def calling() -> lk.Kernel:
    return make(
        "{ [i]: 0 <= i < n }",
        "b[i] = bent(a[i], i - 1) + bent(bent(a[i], 2), 1) {id=s}",
        "a, b",
        functions=[bent()],
        assumptions="n >= 1",
    )


def overloaded() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = bent(a[i], 2) + float32(bent(d[i], 2)) {id=s}",
        dtypes={"a, b": "float32", "d": "float64"},
        functions=[bent(), bent_too()],
        assumptions="n >= 1",
    )


@cache
def turned() -> Any:
    return lk.register_callable(
        "turned",
        {"z": "complex64"},
        "complex64",
        body="return {-z.im, z.re};",
        meaning=lambda z: type(z)(complex(-z.imag, z.real)),
    )


def complex_calls() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = turned(a[i]) + turned(r[i]) {id=s}",
        dtypes={"a, b": "complex64", "r": "float32"},
        functions=[turned()],
        assumptions="n >= 1",
    )


@cache
def parted() -> Any:
    return lk.register_callable(
        "parted",
        {"x": "float32", "k": "int32"},
        {"most, least": "float32"},
        body="most = x + k; least = x - k;",
        meaning=("x + float32(k)", "x - float32(k)"),
        within={"k": (-9, 9)},
    )


def several_results() -> lk.Kernel:
    return make(
        "{ [i]: 0 <= i < n }",
        "<> u, b[i] = parted(a[i], 1) {id=s}\nc[i] = 2*u",
        "a, b, c",
        functions=[parted()],
        assumptions="n >= 1",
    )


# }}}

# {{{ transforms


class _Calls(ExpressionMapper):
    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change = change

    def map_call(self, expr: Any) -> Any:
        return self.change(super().map_call(expr))


def calls(change: Callable[[Any], Any]) -> Patch:
    """The transform rewrites the calls of the first statement."""

    def rewritten(kernel: Any) -> Any:
        first, *rest = kernel.statements
        return kernel.with_(statements=(first.map_expressions(_Calls(change)), *rest))

    return changed(rewritten)


def _with_arguments(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Any], Any]:
    return lambda call: prim.Call(call.function, change(call.parameters))


fault(
    "rename_iname: a function gets another number",
    calling,
    RENAME,
    calls(_with_arguments(lambda given: (given[0], prim.Sum((given[1], 1))))),
    sizes={"n": 3},
)
fault(
    "rename_iname: what a function is called with is left out",
    calling,
    RENAME,
    calls(lambda call: call.parameters[0]),
    sizes={"n": 3},
)


def _other(function: Any) -> Any:
    """A function of the same name whose text says something else."""
    head = "__device__ float bent(float x, int k)"
    texts = (f"{head} {{ return x; }}",)
    changed_ = (dataclasses.replace(o, texts=texts) for o in function.overloads)
    return OwnFunction(function.name, tuple(changed_))


fault(
    "rename_iname: a call takes a function of another text",
    calling,
    RENAME,
    calls(lambda call: prim.Call(_other(call.function), call.parameters)),
    changed(lambda kernel: kernel.with_(functions=tuple(map(_other, kernel.functions)))),
    sizes={"n": 3},
)

# }}}

# {{{ code generation

fault(
    "calls: a function gets another number",
    calling,
    None,
    text(r"i - 1\)", "i)"),
    sizes={"n": 3},
)
fault(
    "calls: one of two calls is left out",
    calling,
    None,
    text(r"bent\(bent\(a\[i\], 2\), 1\)", "bent(a[i], 1)"),
    sizes={"n": 3},
)
fault(
    "calls: the overload of wider numbers is called",
    overloaded,
    None,
    text(r"bent\(a\[i\], 2\)", "(float)bent((double)a[i], 2)"),
    sizes={"n": 3},
)

fault(
    "calls: a real number is passed as the imaginary part",
    complex_calls,
    None,
    text(r"lk_complex64\{r\[i\], 0.0f\}", "lk_complex64{0.0f, r[i]}"),
    sizes={"n": 3},
)
fault(
    "calls: a function gets the conjugate",
    complex_calls,
    None,
    text(r"turned\(a\[i\]\)", "turned(lk_conj(a[i]))"),
    sizes={"n": 3},
)

fault(
    "calls: the first of several results is taken for the second",
    several_results,
    None,
    text(r"results\.least", "results.most"),
    sizes={"n": 3},
)
fault(
    "calls: a call for several results gets another number",
    several_results,
    None,
    text(r"parted\(a\[i\], 1\)", "parted(a[i], 2)"),
    sizes={"n": 3},
)


def _wrapper(original: Any) -> Any:
    """What calls the function for all results changes their places."""
    places = ("all.most, all.least", "all.least, all.most")
    return lambda kernel: [line.replace(*places) for line in original(kernel)]


fault(
    "calls: results are stored in each other's places",
    several_results,
    None,
    Patch("codegen.lower:lines_above", _wrapper),
    sizes={"n": 3},
)


def _another(original: Any) -> Any:
    """A definition in the source is not the one that was declared."""
    return lambda kernel: [line.replace("x - k", "x + k") for line in original(kernel)]


fault(
    "calls: another definition stands above",
    calling,
    None,
    Patch("codegen.lower:lines_above", _another),
    sizes={"n": 3},
)

# }}}
