"""Arrays of open shape: as long as the caller's, and as long as their accesses need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Argument, ArrayArg, ValueArg
from loopkit._make.infer_arguments import Uses
from loopkit._make.shapes import Shapes
from loopkit._promotion import INT32


def extents_of_the_call(
    args: list[Argument], names: Collection[str], shapes: Shapes, uses: Uses, taken: set[str]
) -> isl.Set:
    """Give the arrays ``names`` extents that are arguments of their own, added to ``args``.

    So are those of arrays whose shape nothing says, where the proof of bounds is owed.
    Returns what accesses need of these extents, a condition on the sizes; of an axis whose
    cells only data tell, nothing.  ``taken`` are names that others have.
    """
    least = _sets.universe()
    for position, argument in enumerate(args):
        name = argument.name
        is_open = name in names or (shapes.owed and getattr(argument, "shape", ()) is None)
        if not isinstance(argument, ArrayArg) or not is_open or name not in uses.accesses:
            continue
        needs, extents = shapes.least_shape(uses.accesses[name]), []
        if name not in names and None not in needs:
            continue
        for axis, need in enumerate(needs):
            own = shapes.kernel.fresh_name(f"{name}_extent{axis}", taken)
            taken.add(own)
            extents.append(prim.Variable(own))
            args.append(ValueArg(own, INT32))
            if need is not None:
                enough = prim.Comparison(extents[-1], ">=", need)
                least = least & _sets.condition_set(enough)
        args[position] = replace(argument, shape=tuple(extents))
    return least
