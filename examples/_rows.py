"""Two schedules of whatever works on rows: a row for a block of threads, and one for a warp."""

from __future__ import annotations

from collections.abc import Iterable

import loopkit as lk


def by_blocks(kernel: lk.Kernel, inames: Iterable[str], threads: int = 256) -> lk.Kernel:
    """A block for each row ``i``; its threads share what ``inames`` run over."""
    for iname in inames:
        kernel = kernel.split_iname(iname, threads, inner_tag="l.0")
    return kernel.tag_inames("i: g.0")


def by_warps(kernel: lk.Kernel, inames: Iterable[str], rows: int = 4) -> lk.Kernel:
    """A warp for each row ``i``, and so many rows a block: no thread waits at a barrier."""
    for iname in inames:
        kernel = kernel.split_iname(iname, 32, inner_tag="l.0")
    return kernel.split_iname("i", rows, outer_tag="g.0", inner_tag="l.1")
