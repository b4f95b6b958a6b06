"""Faults where a factor leaves a sum, in a transform that says something else or does more."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do

from faults.making import var
from faults.planting import Patch, fault
from loopkit import Kernel, make_kernel

COLLECT = do("collect_common_factors_on_increment", "acc")
SIZES = {"n": 3, "m": 4}


def weighted() -> Kernel:
    """Sums of whole numbers, each with a weight of its own, read twice."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <int32> acc = 0 {id=start}
            acc = acc + 3*w[i]*x[j] + 3*w[i]*z[i, j] {id=add}
            w[i] = w[i] + 1 {id=next}
            y[i] = acc {id=use}
            z[i, 0] = acc {id=too}
        end
        """,
        dtypes={"w, x, y, z": "int32"},
        assumptions="n, m >= 1",
    )


def constant() -> Kernel:
    """The same with a weight that stays."""
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <int32> acc = 0 {id=start}
            acc = acc + w[i]*x[j] + w[i]*z[i, j] {id=add}
            y[i] = acc {id=use}
            v[i] = acc {id=too}
        end
        """,
        dtypes={"v, w, x, y, z": "int32"},
        assumptions="n, m >= 1",
    )


def statement(id_: str, change: Any) -> Patch:
    """A statement of the kernel that comes out is another one."""

    def make(original: Any) -> Any:
        def multiplied(given: Any, claim: Any) -> Any:
            found = original(given, claim)
            return change(given, found) if given.id == id_ else found

        return multiplied

    return Patch("transforms.factors:multiplied", make)


fault(
    "factors: what changes before the sum is read leaves it",
    weighted,
    COLLECT,
    Patch("transforms.factors:_is_kept", lambda _: lambda *_: True),
    sizes=SIZES,
)
fault(
    "factors: one read is not multiplied",
    constant,
    COLLECT,
    statement("too", lambda given, _: given),
    sizes=SIZES,
)
fault(
    "factors: multiplied twice",
    constant,
    COLLECT,
    statement(
        "too", lambda _, found: dataclasses.replace(found, rhs=prim.Product((var("n"), found.rhs)))
    ),
    sizes=SIZES,
)
fault(
    "factors: one term keeps the factor",
    constant,
    COLLECT,
    Patch(
        "transforms.factors:_without",
        lambda original: (
            lambda factors, common: original(
                factors, Counter() if any("z" in str(f) for f in factors) else common
            )
        ),
    ),
    sizes=SIZES,
)
