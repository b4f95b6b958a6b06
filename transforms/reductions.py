"""Reductions: how threads combine what each of them has."""

from __future__ import annotations

from dataclasses import replace

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel
from loopkit._match import matching
from loopkit._transform import transform


@transform
def realize_reduction(
    kernel: Kernel,
    insn_id_filter: kind.Within = None,
    *,
    by: kind.Text = None,
    unchecked: bool = False,
) -> Change:
    """Say how the threads that a reduction runs over combine their partial results.

    Before: ``combine acc: sum over j_inner: 256 threads, by shuffles and shared memory``.  After
    ``realize_reduction(by="shared")``: ``256 threads, by shared memory``.

    :arg insn_id_filter: a match string; the reductions that these statements make or use.
    :arg by: ``"shuffle"``, within warps, and from warp to warp through shared memory;
        ``"shared"``, a tree in shared memory; ``"atomic"``, one cell of shared memory to which
        all add; None for what suits the block.
    :raises IllegalTransformError: where there is no reduction, or it is so already.
    :raises InvalidArgumentError: for another ``by``.
    """
    ids = matching(kernel, insn_id_filter)
    touched = {name for s in kernel.statements if s.id in ids for name, _ in s.accesses}
    temporaries = tuple(
        replace(t, combined_by=by) if t.accumulates is not None and t.name in touched else t
        for t in kernel.temporaries
    )
    if temporaries == kernel.temporaries:
        raise IllegalTransformError(
            f"no reduction of these statements is to be combined otherwise than "
            f"{'as it suits the block' if by is None else 'by ' + by!r}",
            instead="statements that make or use a reduction",
        )
    return Change(kernel.with_(temporaries=temporaries))
