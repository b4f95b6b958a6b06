"""Faults where subscripts multiply and divide by sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from seams import substitute

from faults.making import RENAME, statement, total, var
from faults.planting import fault
from loopkit import GlobalArg, Kernel, TemporaryVariable, ValueArg, make_kernel

SIZES = {"n": 3, "m": 7}


def rows() -> Kernel:
    """Rows that are laid out by hand, copied."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i*m + j] = a[i*m + j] {id=s}",
        [GlobalArg("a, b", "float32", shape="n*m"), ValueArg("n, m", "int32")],
        assumptions="n, m >= 1",
    )


def kept() -> Kernel:
    """Rows that one statement puts into a temporary, and another one takes out."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "t[i*m + j] = 2*a[i, j] {id=s}\nb[i, j] = t[i*m + j] + 1 {id=u}",
        [
            GlobalArg("a, b", "float32", shape="n, m"),
            TemporaryVariable("t", "float32", shape="n*m", address_space="global"),
            ValueArg("n, m", "int32"),
        ],
        assumptions="n, m >= 1",
    )


def counted() -> Kernel:
    """Elements in one loop, each with its row and its column."""
    return make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i//m, i%m] = a[i] {id=s}",
        [
            GlobalArg("a", "float32", "n"),
            GlobalArg("b", "float32", "n, m"),
            ValueArg("n, m", "int32"),
        ],
        assumptions="n, m >= 1",
    )


def to(change: Callable[[Any], Any]) -> Any:
    """The cell that a statement writes becomes another one."""
    return statement(
        "s",
        lambda s: dataclasses.replace(
            s, lhs=prim.Subscript(s.lhs.aggregate, tuple(map(change, s.lhs.index_tuple)))
        ),
    )


def turned(name: str = "j") -> Callable[[Any], Any]:
    """Columns from the last to the first."""
    last = total(var("m"), -1, prim.Product((-1, var(name))))
    return lambda index: substitute(index, {name: last})


def of(id_: str, change: Callable[[Any], Any]) -> Any:
    """The value of a statement becomes another one."""
    return statement(id_, lambda s: dataclasses.replace(s, rhs=change(s.rhs)))


for where, kernel in (("an argument", rows), ("a temporary", kept)):
    fault(f"flat: rows of {where} are written backwards", kernel, RENAME, to(turned()), sizes=SIZES)
fault("flat: rows of an argument are read backwards", rows, RENAME, of("s", turned()), sizes=SIZES)
fault("flat: rows of a temporary are read backwards", kept, RENAME, of("u", turned()), sizes=SIZES)
fault(
    "flat: a row is one shorter",
    rows,
    RENAME,
    to(lambda index: prim.Sum((index, prim.Product((-1, var("row")))))),
    sizes=SIZES,
)
fault(
    "flat: every other row is written twice",
    counted,
    RENAME,
    to(lambda index: substitute(index, {"row": prim.Product((2, prim.FloorDiv(var("row"), 2)))})),
    sizes={"n": 13, "m": 5},
)
