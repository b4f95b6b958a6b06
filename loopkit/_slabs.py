"""Loop iterations that get code of their own: recorded with the loop, and peeled before lowering.

The transforms before that, for example a prefetch, see one loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loopkit._kernel import Kernel, Slabs
from loopkit._registry import transform_named


def with_slabs(kernel: Kernel, given: Mapping[str, tuple[int, int]]) -> Kernel:
    """The kernel with slabs by iname; ``(0, 0)`` takes away what was recorded."""
    if not given:
        return kernel
    recorded = {i: (first, last) for i, first, last in kernel.slabs} | dict(given)
    rows = ((i, first, last) for i, (first, last) in recorded.items() if first or last)
    return kernel.with_(slabs=tuple(rows))


def slabs_named(slabs: Slabs, names: Mapping[str, str]) -> Slabs:
    """Slabs of inames that have other names; of two that get one name each counts the larger."""
    found: dict[str, tuple[int, int]] = {}
    for iname, first, last in slabs:
        new = names.get(iname, iname)
        one, other = found.get(new, (0, 0))
        found[new] = max(first, one), max(last, other)
    return tuple((i, first, last) for i, (first, last) in sorted(found.items()))


def recorded_for(kernel: Kernel, iname: str) -> tuple[int, int]:
    """How many iterations at the start and at the end of a loop are to have code of their own."""
    return next(((first, last) for i, first, last in kernel.slabs if i == iname), (0, 0))


def without_lost(kernel: Kernel, inames: Iterable[str]) -> Kernel:
    """The kernel with its slabs peeled of those ``inames`` that statements are inside."""
    for iname in inames:
        kernel = transform_named("peel_iname")(kernel, iname)
    return kernel


def used_slabs(kernel: Kernel) -> Iterator[str]:
    """The inames with slabs that statements are inside, outer ones first."""
    inside = frozenset().union(*(s.inames for s in kernel.statements))
    recorded = {i for i, _, _ in kernel.slabs}
    return (i for i in kernel.all_inames if i in recorded & inside)


def settled(kernel: Kernel) -> Kernel:
    """The kernel with all its slabs peeled, and proven: the input of code generation.

    Raises what :func:`~loopkit.peel_iname` raises.
    """
    return kernel._settled if kernel.slabs else kernel


def peel_slabs(kernel: Kernel) -> Kernel:
    """Compute the result that :func:`settled` caches."""
    while inames := [*used_slabs(kernel)]:
        kernel = without_lost(kernel, inames[:1])
    return kernel
