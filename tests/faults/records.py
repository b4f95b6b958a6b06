"""Faults in reductions with several results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Component, Record

import loopkit as lk
from faults.kernels import make
from faults.making import RENAME, changed, statement
from faults.planting import Patch, fault
from faults.printing import text
from faults.rewording import reworded_expression

# {{{ kernels


def least() -> lk.Kernel:
    """The smallest number of each row, and where it stands."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "b[i], c[i] = argmin(j, a[i, j], j) {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def places() -> lk.Kernel:
    """Where the smallest number of each row stands."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "<>_, c[i] = argmin(j, a[i, j], j) {id=s}",
        "a",
        assumptions="n >= 1",
    )


def _turned(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def turned() -> lk.Kernel:
    """The product of complex numbers whose parts stand in two arrays."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "b[i], c[i] = turned(j, a[i, j], d[j]) {id=s}",
        "a, b, c, d",
        assumptions="n >= 1",
        reductions=[lk.register_reduction("turned", (1, 0), _turned, components=("re", "im"))],
    )


def rows(*row: float) -> Callable[[Any], Mapping[str, Any]]:
    """The same numbers in each row."""
    return lambda sizes: {"a": np.tile(np.array(row, "f4"), (sizes["n"], 1))}


# }}}

# {{{ code generation


def joining(old: str, new: str) -> Patch:
    """The function that joins two records computes something else."""

    def rewritten(text_: str) -> str:
        assert old in text_, text_
        return text_.replace(old, new)

    return Patch(
        "codegen.joins:JoinLowering.value",
        lambda f: lambda self: reworded_expression(f(self), rewritten),
    )


fault(
    "records: of equal numbers the last one counts",
    least,
    None,
    joining("b.index < a.index", "b.index > a.index"),
    sizes={"n": 2},
    values=rows(2, 1, 1, 3),
)
fault(
    "records: of equal numbers any counts",
    least,
    None,
    joining("b.value < a.value", "b.value <= a.value"),
    sizes={"n": 2},
    values=rows(2, 1, 1, 3),
)
fault(
    "records: the largest number is taken",
    least,
    None,
    joining("b.value < a.value", "b.value > a.value"),
    sizes={"n": 2},
)
fault(
    "records: what is no number is passed over",
    places,
    None,
    joining("(isnan(b.value) && !isnan(a.value)) || ", ""),
    sizes={"n": 2},
    values=rows(2, np.nan, 1, 3),
)
fault(
    "records: the last of what are no numbers counts",
    places,
    None,
    joining(" && !isnan(a.value)", ""),
    sizes={"n": 2},
    values=rows(2, np.nan, np.nan, 3),
)
fault(
    "records: one component is joined with itself",
    turned,
    None,
    joining("a.re * b.im", "a.im * b.im"),
    sizes={"n": 2},
)
fault(
    "records: results change places",
    turned,
    None,
    text(r"acc\.re", "acc.im"),
    sizes={"n": 2},
)
fault(
    "records: operands change places",
    turned,
    None,
    text(r"\{(a\[.*\]), (d\[j\])\}", r"{\2, \1}"),
    sizes={"n": 2},
    values=lambda sizes: {"d": np.arange(4, dtype="f4")},
)
fault(
    "records: one component starts from something else",
    least,
    None,
    text("LK_INFINITY", "0.5f"),
    sizes={"n": 2},
    values=rows(2, 1, 1, 3),
)
fault(
    "records: the place starts from something else",
    least,
    None,
    text(r"9223372036854775807LL", "-1LL"),
    sizes={"n": 2},
    values=rows(*[np.inf] * 4),
)
fault(
    "records: an update is printed as an assignment",
    least,
    None,
    text(r"lk_argmin_of_two\(acc, (.*)\);", r"\1;"),
    sizes={"n": 2},
    values=rows(2, 1, 1, 3),
)
fault(
    "records: the components of the type change places",
    turned,
    None,
    Patch(
        "codegen.preamble:struct_of",
        lambda f: lambda dtype: f(dtype).replace("float re; float im;", "float im; float re;"),
    ),
    sizes={"n": 2},
)

# }}}

# {{{ steps


def _with_parts(order: tuple[int, ...]) -> Callable[[Any], Any]:
    def swapped(one: Any) -> Any:
        rhs = Record(one.rhs.names, tuple(one.rhs.parts[place] for place in order))
        return dataclasses.replace(one, rhs=rhs)

    return swapped


fault(
    "records: a step exchanges the operands",
    turned,
    RENAME,
    statement("s_update", _with_parts((1, 0))),
    sizes={"n": 2},
    values=lambda sizes: {"d": np.arange(4, dtype="f4")},
)
fault(
    "records: a step exchanges the results",
    turned,
    RENAME,
    statement("s", lambda one: dataclasses.replace(one, rhs=Component(one.rhs.operand, "im"))),
    sizes={"n": 2},
)
fault(
    "records: a step makes an argmax of an argmin",
    least,
    RENAME,
    statement("s_update", lambda one: dataclasses.replace(one, operation="argmax")),
    sizes={"n": 2},
)
fault(
    "records: a step drops one component's start",
    least,
    RENAME,
    statement(
        "s_init",
        lambda one: dataclasses.replace(one, rhs=Record(one.rhs.names, (0.0, one.rhs.parts[1]))),
    ),
    sizes={"n": 2},
    values=rows(2, 1, 1, 3),
)
fault(
    "records: a step adds another place",
    least,
    RENAME,
    statement(
        "s_update",
        lambda one: dataclasses.replace(
            one, rhs=Record(one.rhs.names, (one.rhs.parts[0], prim.Sum((one.rhs.parts[1], 1))))
        ),
    ),
    sizes={"n": 2},
)
fault(
    "records: a step exchanges the operation",
    turned,
    RENAME,
    changed(
        lambda kernel: kernel.with_(
            reductions=(
                lk.register_reduction(
                    "turned",
                    (1, 0),
                    lambda a, b: (a[0] * b[0], a[1] + b[1]),
                    components=("re", "im"),
                ),
            )
        )
    ),
    sizes={"n": 2},
)
fault(
    "records: all values of an ilp iname share an accumulator",
    least,
    None,
    Patch("codegen.prepare:_expand_private", lambda f: lambda kernel, iname: kernel),
    chain=(do("split_iname", "i", 4, inner_tag="ilp"),),
    sizes={"n": 6},
)

# }}}
