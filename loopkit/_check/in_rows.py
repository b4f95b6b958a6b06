"""The proof of a step over arrays of rows, where flat ones leave a question open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopkit._check.instance_maps import lineage_of
from loopkit._poly.rows import kernels_in_rows

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel


def in_rows(before: Kernel, change: Change) -> tuple[Kernel, Change] | None:
    """A step with arrays of rows in place of flat ones, all that are; None where none is.

    The text, the kernel before and the one after it have the same elements, so that the step is
    legal if this one is.
    """
    if change.parts or change.claim is not None or change.arguments is not None or change.fixed:
        return None
    lineage = lineage_of(before)
    kernels = kernels_in_rows([lineage.root, before, change.kernel], dict(lineage.fixed))
    if kernels is None:
        return None
    root, old, new = kernels
    old = old.recorded(old.history, replace(lineage, root=root))
    return old, replace(change, kernel=new, wishes=())
