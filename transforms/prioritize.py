"""The order in which loops nest."""

from __future__ import annotations

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._transform import transform
from loopkit._tree import Path, rewrite_paths
from loopkit.transforms._common import is_parallel
from loopkit.transforms._expand import expand_accumulators
from loopkit.transforms._loop_nests import check_nesting


@transform
def prioritize_loops(
    kernel: Kernel, loop_priority: kind.Names, *, unchecked: bool = False
) -> Change:
    """Nest loops in the order given, outermost first.

    Before: for i: for k: S(i, k)      After (``"k, i"``): for k: for i: S(i, k)

    The named loops are put into the places that they hold now; other loops stay
    where they are, and so do parallel inames, which are no loops.  A loop that
    holds other statements beside is cut in two.  An accumulator that loses its
    common loop by that gets an axis for it; a temporary of the person's own
    needs ``privatize_temporaries_with_inames`` first.

    :arg loop_priority: ``"i, j, k"`` or a sequence.
    :raises IllegalTransformError: where bounds forbid the order, a temporary would have to hold
        several values, or a result would change.
    """
    wanted = names_in(loop_priority)
    for iname in wanted:
        kernel.check_iname(iname)
    if len(set(wanted)) < len(wanted):
        raise InvalidArgumentError(f"an iname is named twice in {', '.join(wanted)}")
    rank = {iname: number for number, iname in enumerate(wanted)}
    nests = [[key for key in path if key[0] in rank] for path in kernel.paths.values()]
    if max(map(len, nests), default=0) < 2:
        loops = [i for i in wanted if not is_parallel(kernel, i)]
        raise IllegalTransformError(
            f"no statement is inside two of the loops {', '.join(loops) or 'named'}"
            if len(loops) > 1
            else "an order needs two loops, and parallel inames are no loops"
        )

    def reorder(statement: str, path: Path) -> Path:
        keys = iter(sorted((k for k in path if k[0] in rank), key=lambda k: rank[k[0]]))
        return tuple(next(keys) if key[0] in rank else key for key in path)

    new = kernel.with_(tree=rewrite_paths(kernel.tree, reorder))
    check_nesting(new)
    return expand_accumulators(kernel, Change(new))
