"""Lengths that code generation needs as numbers, of thread axes and private arrays, still symbolic.

No transform is refused for a symbolic length, since a later step may make it a number:
``fix_parameters``, an assumption, a split.  The printed kernel lists such lengths, and lowering
refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from loopkit import _sets
from loopkit._arrays import AddressSpace, TemporaryVariable, storage_shape
from loopkit._errors import IllegalTransformError, LoopkitError, ResourceError
from loopkit._expression import to_text, variable_names
from loopkit._kernel import Kernel
from loopkit._places import decide_address_spaces, drop_own_axes
from loopkit._rules import expand_rules
from loopkit._tags import GroupAxis, LocalAxis, Tag


def thread_inames(kernel: Kernel) -> list[tuple[str, LocalAxis]]:
    """The inames on thread axes that some statement is inside of."""
    used = frozenset().union(*(s.inames for s in kernel.statements))
    return [(i, t) for i, t in kernel.tags if isinstance(t, LocalAxis) and i in used]


def never_runs(kernel: Kernel, iname: str) -> bool:
    """Whether the domain of an iname is empty for all sizes."""
    return bool((kernel.domain_around([iname]) & kernel.assumptions.set).is_empty())


def first_index(kernel: Kernel, iname: str, tag: Tag) -> int | None:
    """The smallest value of an iname on a hardware axis; None if its domain is empty.

    Raises :class:`IllegalTransformError` where this is not a constant.
    """
    lower, _ = kernel.range_around(iname)
    if lower is None and not never_runs(kernel, iname):
        raise IllegalTransformError(
            f"iname '{iname}' is tagged {tag}, but has no constant lower bound",
            instead=f"map_domain or affine_map_inames can shift '{iname}' to begin at 0",
        )
    return lower


def thread_range(kernel: Kernel, iname: str, tag: LocalAxis) -> tuple[int, int]:
    """The first and last value of an iname on a thread axis; one value if its domain is empty.

    Raises :class:`IllegalTransformError` where these are not constants.
    """
    lower, upper = kernel.range_around(iname)
    if lower is not None and upper is not None:
        return lower, upper
    if first_index(kernel, iname, tag) is None or never_runs(kernel, iname):
        return 0, 0
    domain = kernel.domain_around([iname])
    computed = {n: variable_names(value) for n, value in kernel.computed_sizes.items()}
    asked = {*_sets.involved_names(domain)}
    asked = (asked - computed.keys()).union(*(computed[n] for n in asked & computed.keys()))
    by = ", ".join(f"{n}=..." for n in kernel.sizes if n in asked)
    split = f"split_iname('{iname}', 128, inner_tag='{tag}') in its place gives 128 threads"
    sizes = f"; fix_parameters({by}) or assume may make it constant" if by else ""
    why = f"iname '{iname}' is tagged {tag}, but has no constant length"
    raise IllegalTransformError(why, instead=split + sizes)


def constant_shape(temporary: TemporaryVariable) -> tuple[int, ...]:
    """The storage shape; raises :class:`ResourceError` where it depends on sizes.

    An axis has at least one element, since C has no arrays of length zero.
    """
    shape = storage_shape(temporary)
    for extent in shape:
        if not isinstance(extent, (int, np.integer)):
            where = "shared" if temporary.address_space is AddressSpace.LOCAL else "private"
            raise ResourceError(
                f"temporary '{temporary.name}' in {where} memory has "
                f"{' x '.join(to_text(s) for s in shape)} elements, which is not a constant",
                instead="split the loops that index it by constant lengths, fix the size with "
                "fix_parameters, or put it into global memory with set_temporary_address_space",
            )
    return tuple(max(int(s), 1) for s in shape)


def open_lengths(kernel: Kernel) -> Iterator[LoopkitError]:
    """The errors for which lowering refuses a kernel whose lengths are still symbolic."""
    used = frozenset().union(*(s.inames for s in kernel.statements))
    tags = [(iname, tag) for iname, tag in kernel.tags if iname in used]
    asked: list[Callable[[], object]]
    asked = [partial(thread_range, kernel, i, t) for i, t in tags if isinstance(t, LocalAxis)]
    asked += [partial(first_index, kernel, i, t) for i, t in tags if isinstance(t, GroupAxis)]
    placed = drop_own_axes(decide_address_spaces(expand_rules(kernel)))
    own = (t for t in placed.temporaries if t.address_space is not AddressSpace.GLOBAL)
    asked += [partial(constant_shape, t) for t in own]
    for ask in asked:
        try:
            ask()
        except LoopkitError as error:
            yield error
