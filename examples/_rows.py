"""Schedules of whatever works on rows ``x[i]``: a row for a block of threads, or for a warp."""

from __future__ import annotations

from collections.abc import Iterable

import loopkit as lk


def by_blocks(kernel: lk.Kernel, inames: Iterable[str], threads: int = 256) -> lk.Kernel:
    """A block for each row ``i``; its threads share what ``inames`` run over."""
    for iname in inames:
        kernel = kernel.split_iname(iname, threads, inner_tag="l.0")
    return kernel.tag_inames("i: g.0")


def by_warps(kernel: lk.Kernel, inames: Iterable[str], rows: int = 4, lanes: int = 32) -> lk.Kernel:
    """A warp for each row ``i``, and so many rows a block: no thread waits at a barrier.

    With 8 or 16 ``lanes`` a row, several rows share a warp: where rows are short, few idle.
    """
    for iname in inames:
        kernel = kernel.split_iname(iname, lanes, inner_tag="l.0")
    return kernel.split_iname("i", rows, outer_tag="g.0", inner_tag="l.1")


def by_blocks_at_once(
    kernel: lk.Kernel, inames: Iterable[str], threads: int = 256, longest: int = 4096
) -> lk.Kernel:
    """A block for each row, of ``longest`` numbers at most: it is read once, into shared memory.

    Its loops have constant lengths and are written out, so that loads do not wait for each other.
    """
    kernel = kernel.assume(f"m <= {longest}")
    kernel = kernel.add_prefetch("x", list(inames), fetch_outer_inames="i", default_tag=None)
    for iname in (*inames, "x_dim_1"):
        kernel = kernel.split_iname(iname, threads, outer_tag="unr", inner_tag="l.0")
    return kernel.tag_inames("i: g.0")


def by_blocks_ahead(kernel: lk.Kernel, iname: str, threads: int = 128, ahead: int = 8) -> lk.Kernel:
    """A block for each row; a thread loads so many numbers before it uses the first of them."""
    return (
        kernel.split_iname(iname, threads * ahead)
        .split_iname(f"{iname}_inner", threads, outer_tag="unr", inner_tag="l.0")
        .tag_inames("i: g.0")
        .add_prefetch(
            "x",
            f"{iname}_inner_outer",
            temporary_address_space="private",
            default_tag="unr",
        )
    )
