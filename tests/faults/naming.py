"""Faults in what loopkit calls things: its names are such as a user may give to a size."""

from __future__ import annotations

from functools import cache, partial

from refusals.case import do

import loopkit as lk
from faults.planting import Patch, fault

DOT = "__"
SPELLED = Patch("_hidden:_DOT", lambda dot: DOT)
"""Two underscores stand where no user can write."""


@cache
def product(rows: str) -> lk.Kernel:
    """A product of matrices, with a name for its rows."""
    return lk.make_kernel(
        f"{{ [i, j, k]: 0 <= i < {rows} and 0 <= j < m and 0 <= k < l }}",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions=f"{rows}, m, l >= 1",
    )


@cache
def quarters(limit: str) -> lk.Kernel:
    """Where the remainder of a quotient is small."""
    return lk.make_kernel(
        f"{{ [i]: 0 <= i < n and (floor(i/4)) mod 3 < {limit} }}",
        "b[i] = a[(i//4) % 3]",
        dtypes={"a, b": "float32"},
        assumptions=f"1 <= {limit} <= 3",
    )


INDEX = f"index{2 * DOT}g{2 * DOT}0"
QUOTIENT = f"quotient{2 * DOT}0"

fault(
    "barriers: the index of a block is called as a size",
    partial(product, INDEX),
    None,
    SPELLED,
    Patch("codegen.conflicts:_side_of", lambda f: f.__wrapped__),  # which remembers names
    sizes={INDEX: 5, "m": 5, "l": 5},
    chain=(
        do("split_iname", "i", 4, outer_tag="g.1", inner_tag="l.1"),
        do("split_iname", "j", 4, outer_tag="g.0", inner_tag="l.0"),
        do("split_iname", "k", 4),
        do("add_prefetch", "a", ["i_inner", "k_inner"], default_tag="l.auto"),
        do("add_prefetch", "b", ["k_inner", "j_inner"], default_tag="l.auto"),
    ),
)

fault(
    "guards: a quotient is called as a size",
    partial(quarters, QUOTIENT),
    None,
    SPELLED,
    sizes={"n": 30, QUOTIENT: 2},
    chain=(do("split_iname", "i", 16, outer_tag="g.0", inner_tag="l.0"),),
)
