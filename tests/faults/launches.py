"""Faults in where launches end, in what order they run, and in what they hand to each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import launch_kernels as k
import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Launch, LaunchBarrier, Program, ProgramIf, ProgramLoop

from faults.planting import Patch, fault
from loopkit import AddressSpace

SUM = (do("split_iname", "b", 4, outer_tag="g.0", inner_tag="l.0"),)
SWEEPS = (
    do("split_iname", "i", 32, outer_tag="g.0", inner_tag="l.0"),
    do("split_iname", "j", 64, outer_tag="g.0", inner_tag="l.0"),
)
NINE = {"m": 9}
LONG = {"n": 100, "steps": 3}


def _one_launch(original: Any) -> Any:
    """No barrier is seen: all of the kernel is one launch."""

    def parts(kernel: Any) -> Any:
        nodes = tuple(node for node in kernel.tree if not isinstance(node, LaunchBarrier))
        return (Launch(0, (), nodes),)

    return parts


def launched(change: Callable[[Any], Any]) -> Patch:
    """Programs of launches end up otherwise than they were lowered."""
    return Patch("codegen.lower:_launches", lambda f: lambda *a: change(f(*a)))


def _first_like_second(found: Any) -> Any:
    """The first launch of a loop has as many blocks as the second."""
    if len(found) == 2 and all(isinstance(one, Program) for one in found):
        return dataclasses.replace(found[0], grid=found[1].grid), found[1]
    return found


def _looped(change: Callable[[ProgramLoop], ProgramLoop]) -> Callable[[Any], Any]:
    return lambda found: tuple(change(o) if isinstance(o, ProgramLoop) else o for o in found)


def _tested(change: Callable[[ProgramIf], Any]) -> Callable[[Any], Any]:
    """Conditions under which a call runs launches end up otherwise."""
    return lambda found: tuple(
        new for one in found for new in (change(one) if isinstance(one, ProgramIf) else (one,))
    )


def _private(original: Any) -> Any:
    """What launches hand to each other is kept in registers."""

    def decide(kernel: Any) -> Any:
        kernel = original(kernel)
        spaces = (
            dataclasses.replace(t, address_space=AddressSpace.PRIVATE) for t in kernel.temporaries
        )
        return kernel.with_(temporaries=tuple(spaces))

    return decide


fault(
    "launches: a barrier is not seen",
    k.full_sum,
    None,
    Patch("codegen.launches:launches_of", _one_launch),
    chain=SUM,
    sizes=NINE,
)
fault(
    "launches: they change places",
    k.jacobi,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, body=loop.body[::-1]))),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: the last one is left out",
    k.normalise,
    None,
    launched(lambda found: found[:-1]),
    sizes={"n": 5, "m": 7},
)
fault(
    "launches: the first one runs twice",
    k.eliminate,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, body=loop.body * 2))),
    sizes={"n": 6},
)
fault(
    "launches: one has the grid of another",
    k.jacobi,
    None,
    launched(_first_like_second),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: the last iteration around them is left out",
    k.jacobi,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, upper=loop.upper - 1))),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: an iteration too many runs around them",
    k.jacobi,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, upper=loop.upper + 1))),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: an iteration runs before the first one around them",
    k.jacobi,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, lower=loop.lower - 1))),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: every other iteration around them is left out",
    k.jacobi,
    None,
    launched(_looped(lambda loop: dataclasses.replace(loop, step=2))),
    chain=SWEEPS,
    sizes=LONG,
)
fault(
    "launches: they run whatever the condition around them says",
    k.now_and_then,
    None,
    launched(_tested(lambda guard: guard.body)),
    sizes={"n": 6, "steps": 3},
)
fault(
    "launches: they run where the condition around them does not hold",
    k.every_third_or_fifth,
    None,
    launched(_tested(lambda g: [dataclasses.replace(g, condition=prim.LogicalNot(g.condition))])),
    sizes={"n": 6, "steps": 3},
)
fault(
    "launches: a condition around them forgets a part",
    k.every_third_or_fifth,
    None,
    launched(_tested(lambda g: [dataclasses.replace(g, condition=g.condition.children[0])])),
    sizes={"n": 6, "steps": 11},
)
fault(
    "launches: they keep in registers what they hand to each other",
    k.in_turn,
    None,
    Patch("codegen.launches:decide_address_spaces", _private),
    chain=(do("fix_parameters", n=8),),
    sizes={"n": 8},
)
fault(
    "launches: too little memory between them",
    k.full_sum,
    None,
    Patch(
        "codegen.lower:global_temporaries",
        lambda f: lambda kernel: [dataclasses.replace(t, shape=(1,)) for t in f(kernel)],
    ),
    chain=SUM,
    sizes=NINE,
    sanitize=True,
)
fault(
    "add_barrier: it parts the loops around it",
    k.through_scalar,
    do("add_barrier", "id:first", "id:second"),
    Patch("transforms.statements:_around", lambda f: lambda *a: ()),
    sizes={"n": 3},
)
fault(
    "add_barrier: what comes first and then change places",
    k.plain_in_turn,
    do("add_barrier", "id:first", "id:second"),
    Patch("transforms.statements:build", lambda f: lambda entries: f(entries[::-1])),
    sizes={"n": 3},
)


def _no_bounds(original: Any) -> Any:
    """Nobody reads the bounds of loops."""
    return lambda kernel, statement: statement.reads


def _no_waiting(original: Any) -> Any:
    """No barrier waits for what bounds a loop."""

    def find(self: Any, statement: Any) -> Any:
        bounds = self.kernel.loaded_bounds(statement.inames)
        return tuple(a for a in original(self, statement) if a.array not in bounds)

    return find


def _counts(sizes: Any) -> Any:
    return {"cnt": np.array([sizes["n"] // 3, sizes["n"] // 2], np.int32)}


for what, tag in (("threads", "l.0"), ("blocks", "g.0")):
    fault(
        f"launches: bounds of loops are read by none, which {what} run",
        k.bounded,
        None,
        Patch("_kernel:Kernel.reads_of", _no_bounds),
        chain=(do("split_iname", "k", 4, inner_tag=tag),),
        sizes={"n": 30},
        values=_counts,
    )
fault(
    "barriers: none for what bounds a loop",
    k.bounded,
    None,
    Patch("codegen.conflicts:Conflicts._find", _no_waiting),
    chain=(do("split_iname", "i", 4, inner_tag="l.0"),),
    sizes={"n": 30},
    values=_counts,
)
