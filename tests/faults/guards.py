"""Faults in guards, in bounds of loops, and in what is launched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do

from faults import kernels, programs
from faults.barriers import ODD, ROLLING, TILED
from faults.planting import Patch, fault

# {{{ guards

GUARDED = (do("split_iname", "i", 64, outer_tag="g.0", inner_tag="l.0"),)


def guards(change: Callable[[Any], Any]) -> Patch:
    """Guards of statements test something else."""
    return Patch("codegen.nest:guard_with_quotients", lambda f: lambda *a: change(f(*a)))


def _looser(condition: Any) -> Any:
    if isinstance(condition, prim.Comparison):
        operator = {"<": "<=", ">": ">="}.get(condition.operator, condition.operator)
        return prim.Comparison(condition.left, operator, condition.right)
    if isinstance(condition, prim.LogicalAnd):
        return prim.LogicalAnd(tuple(map(_looser, condition.children)))
    return condition


def _tighter(condition: Any) -> Any:
    if isinstance(condition, prim.Comparison):
        operator = {"<=": "<", ">=": ">"}.get(condition.operator, condition.operator)
        left = prim.Sum((condition.left, 1)) if operator == condition.operator else condition.left
        return prim.Comparison(left, operator, condition.right)
    if isinstance(condition, prim.LogicalAnd):
        return prim.LogicalAnd(tuple(map(_tighter, condition.children)))
    return condition


def _first_only(condition: Any) -> Any:
    return condition.children[0] if isinstance(condition, prim.LogicalAnd) else condition


fault(
    "guards: dropped",
    kernels.added,
    None,
    guards(lambda condition: True),
    chain=GUARDED,
    sizes={"n": 70},
    sanitize=True,
)
fault(
    "guards: < becomes <=",
    kernels.added,
    None,
    guards(_looser),
    chain=GUARDED,
    sizes={"n": 70},
    sanitize=True,
)
fault(
    "guards: one too tight", kernels.added, None, guards(_tighter), chain=GUARDED, sizes={"n": 70}
)
fault(
    "guards: half of one is dropped",
    kernels.product,
    None,
    guards(_first_only),
    chain=TILED,
    sizes=ODD,
    sanitize=True,
)
fault(
    "guards: no thread is chosen where all would do the same",
    programs.one_for_all,
    None,
    Patch("codegen.nest:_Walker.chosen_thread", lambda f: lambda self, statement: []),
    chain=GUARDED,
    sizes={"n": 70},
)
fault(
    "guards: a thread is chosen, but in every block",
    programs.one_for_all,
    None,
    Patch(
        "codegen.nest:_Walker.chosen_thread",
        lambda f: (
            lambda self, statement: [c for c in f(self, statement) if "thread" in c.left.name]
        ),
    ),
    chain=GUARDED,
    sizes={"n": 70},
)
fault(
    "guards: a condition of the text is dropped",
    kernels.conditional_on_data,
    None,
    Patch(
        "codegen.nest:split_predicates",
        lambda f: lambda kernel, statement: (f(kernel, statement)[0], ()),
    ),
    chain=GUARDED,
    sizes={"n": 70},
    values=lambda sizes: {"a": [float(i % 16) for i in range(sizes["n"])]},
)

# }}}

# {{{ loops


def bounds(**changes: Callable[[Any], Any]) -> Patch:
    """Loops have other bounds."""

    def make(original: Any) -> Any:
        def find(*arguments: Any) -> Any:
            found = original(*arguments)
            return dataclasses.replace(
                found, **{name: change(getattr(found, name)) for name, change in changes.items()}
            )

        return find

    return Patch("codegen.nest:loop_bounds", make)


def more(expr: Any) -> Any:
    return prim.Sum((expr, 1))


def less(expr: Any) -> Any:
    return prim.Sum((expr, -1))


PLAIN = {"n": 7}
fault(
    "loops: one iteration too many",
    kernels.added,
    None,
    bounds(upper=more),
    sizes=PLAIN,
    sanitize=True,
)
fault("loops: one iteration too few", kernels.added, None, bounds(upper=less), sizes=PLAIN)
fault("loops: begin one too late", kernels.added, None, bounds(lower=more), sizes=PLAIN)
fault(
    "loops: begin one too early",
    kernels.added,
    None,
    bounds(lower=less),
    sizes=PLAIN,
    sanitize=True,
)
fault(
    "loops: a stride is forgotten",
    programs.every_third,
    None,
    bounds(step=lambda step: 1),
    sizes={"n": 11},
)
fault(
    "loops: a strided loop begins elsewhere",
    programs.every_third,
    None,
    bounds(lower=lambda lower: lower + 1),
    sizes={"n": 11},
)
fault(
    "loops: minimum and maximum of bounds exchanged",
    programs.corner,
    None,
    Patch(
        "codegen.bounds:_extreme",
        lambda f: lambda parts, kind: f(parts, prim.Max if kind is prim.Min else prim.Min),
    ),
    sizes={"n": 9, "m": 8},
    sanitize=True,
)
fault(
    "loops: only one of two bounds",
    programs.corner,
    None,
    Patch("codegen.bounds:_extreme", lambda f: lambda parts, kind: parts[-1]),
    sizes={"n": 9, "m": 8},
    sanitize=True,
)
fault(
    "loops: bounds around a barrier follow the thread",
    programs.overwritten,
    None,
    Patch("codegen.nest:has_barrier", lambda f: lambda node: False),
    chain=ROLLING,
)
fault(
    "loops: the value of a loop that runs once",
    kernels.added,
    None,
    Patch(
        "codegen.nest:loop_bounds",
        lambda f: (
            lambda *a: (
                b if (b := f(*a)).value is None else dataclasses.replace(b, value=more(b.value))
            )
        ),
    ),
    chain=(do("peel_iname", "i", last=1),),
    sizes=PLAIN,
    sanitize=True,
)
fault(
    "loops: statements in reverse order",
    kernels.handed_on,
    None,
    Patch(
        "codegen.nest:_Walker.sequence",
        lambda f: (
            lambda self, nodes, context, known: f(self, tuple(reversed(nodes)), context, known)
        ),
    ),
    sizes=PLAIN,
)
fault(
    "loops: an unrolled loop is too short",
    kernels.added_ten,
    None,
    Patch(
        "codegen.nest:_Walker.bounds",
        lambda f: (
            lambda self, *a: dataclasses.replace(
                b := f(self, *a), upper=b.upper - 1 if isinstance(b.upper, int) else b.upper
            )
        ),
    ),
    chain=(do("tag_inames", "i:unr"),),
)

# }}}

# {{{ blocks and threads


def hardware(change: Callable[[Any], Any]) -> Patch:
    return Patch("codegen.nest:find_hardware", lambda f: lambda kernel: change(f(kernel)))


fault(
    "launch: one block too few",
    kernels.added,
    None,
    hardware(lambda h: dataclasses.replace(h, grid=(prim.Sum((h.grid[0], -1)), *h.grid[1:]))),
    chain=GUARDED,
    sizes={"n": 150},
)
fault(
    "launch: one thread too few",
    kernels.added,
    None,
    hardware(lambda h: dataclasses.replace(h, block=(h.block[0] - 1, *h.block[1:]))),
    chain=GUARDED,
    sizes={"n": 150},
)
fault(
    "launch: thread indices begin at zero",
    programs.late,
    None,
    hardware(
        lambda h: dataclasses.replace(
            h, coordinates=tuple(dataclasses.replace(c, lower=0) for c in h.coordinates)
        )
    ),
    chain=(do("tag_inames", "i:l.0"),),
)
UNLIKE = (
    do("set_temporary_address_space", "s", "shared"),
    do("tag_inames", "i:l.1, j:l.0, k:l.0, l:l.1"),
)
fault(
    "launch: an axis as long as the shortest of its inames",
    programs.oblong,
    None,
    Patch("codegen.hardware:_longest", lambda f: lambda extents, context: min(extents)),
    chain=UNLIKE,
)
fault(
    "launch: an iname is taken to be as long as its axis",
    programs.oblong,
    None,
    Patch("codegen.hardware:_on_axis", lambda f: lambda coordinate, extent: coordinate),
    chain=UNLIKE,
    sanitize=True,
)

fault(
    "launch: axes of the grid exchanged",
    kernels.product,
    None,
    hardware(lambda h: dataclasses.replace(h, grid=(h.grid[1], h.grid[0], h.grid[2]))),
    chain=TILED,
    sizes={"n": 17, "m": 5, "l": 4},
    sanitize=True,
)
fault(
    "launch: axes of the block exchanged",
    programs.oblong,
    None,
    hardware(lambda h: dataclasses.replace(h, block=(h.block[1], h.block[0], h.block[2]))),
    chain=(
        do("tag_inames", "i:l.1, j:l.0, k:l.1, l:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sanitize=True,
)

# }}}
