"""Loops written out, iteration by iteration."""

from __future__ import annotations

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._transform import transform
from loopkit.transforms._common import (
    check_is_loop,
    is_parallel,
)
from loopkit.transforms._loop_nests import extent, hull
from loopkit.transforms.slabs import Part, in_parts, inames_around

MOST = 1024


@transform
def unroll(kernel: Kernel, iname: kind.Name, *, unchecked: bool = False) -> Change:
    """Write a loop out: a copy of its statements for each iteration, and no loop.

    Before: for i in [0, 3): S(i)        After: S(0)  and then  S(1)  and then  S(2)

    A loop that is tagged ``unr`` stays one, which the generated code writes out; here the
    iterations become statements of their own, which further steps can tell apart.

    :arg iname: a loop whose values lie between two constants, at most 1,024 of them.
    :raises IllegalTransformError: where the values have no such bounds.
    """
    kernel.check_iname(iname)
    check_is_loop(kernel, iname)
    if not any(iname in s.inames for s in kernel.statements):
        raise IllegalTransformError(f"no statement is inside '{iname}'")
    values = _values(kernel, iname)
    parts = [Part(f"_{n}" if n else "", _sets.equality(iname, v), v) for n, v in enumerate(values)]
    axes = [i for i in inames_around(kernel, iname) if is_parallel(kernel, i)]
    return in_parts(kernel, iname, parts, axes)


def _values(kernel: Kernel, iname: str) -> list[int]:
    """The values that the loop takes."""
    low, high = kernel.range_around(iname)
    if low is None or high is None:
        found = extent(kernel, iname)
        shown = f" but {to_text(found[1])}" if found else ""
        raise IllegalTransformError(
            f"loop '{iname}' has no constant number of iterations{shown}",
            instead=f"a part of it has: split_iname('{iname}', 4).unroll('{iname}_inner')",
        )
    if high - low >= MOST:
        raise IllegalTransformError(
            f"loop '{iname}' has {high - low + 1:,} iterations",
            instead=f"at most {MOST:,} are written out",
        )
    taken = hull(kernel, iname)
    return [v for v in range(low, high + 1) if not (taken & _sets.equality(iname, v)).is_empty()]
