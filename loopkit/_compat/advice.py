"""Loopy's queries about kernels: candidates for loop fusion, and padding of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import lcm
from typing import Any

import numpy as np

from loopkit._arguments import (
    at_least,
    checked_kernel,
    name_or_number,
    names,
    names_in,
    needed_name,
)
from loopkit._arrays import axis_number, strides_of
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UndecidedError
from loopkit._expression import to_text
from loopkit._inspect import costs
from loopkit._kernel import Kernel
from loopkit._registry import transform_named
from loopkit._spelling import check_name, shown
from loopkit._tree import Path


@fitting
@in_turn
def get_kennedy_unweighted_fusion_candidates(
    kernel: Kernel,
    candidates: str | Iterable[str],
    *,
    prefix: str = "ifused",
    force_infusible: Callable[[str, str], bool] | None = None,
) -> Mapping[str, frozenset[str]]:
    """Find loops that can be fused, for :func:`rename_inames_in_batch`.

    Each loop, in the order of the text, joins the first of the loops before it, inside the same
    outer loops and of the same values and tag, with which it can be proven to be one: the greedy
    algorithm of Kennedy and McKinley, "Maximizing Loop Parallelism and Improving Data Locality via
    Loop Fusion and Distribution", LCPC 1993, without weights.

    :arg candidates: inames, as ``"i, j"`` or a collection.
    :arg prefix: what the names of the fused inames begin with.
    :arg force_infusible: whether two inames are to stay apart although they could be one.
    :returns: the inames that are to have each new name; every candidate is in one of them.
    :raises InvalidArgumentError: where one candidate stands inside another one.
    """
    checked_kernel(kernel)
    if force_infusible is not None and not callable(force_infusible):
        raise InvalidArgumentError(
            f"force_infusible is a function of two inames, not {shown(force_infusible)}"
        )
    check_name(prefix)
    first = {i: n for n, s in reversed([*enumerate(kernel.statements)]) for i in s.inames}
    inames = [
        kernel.check_iname(i) for i in dict.fromkeys(names_in(names("candidates", candidates)))
    ]
    _check_apart(kernel, inames)
    groups: list[tuple[Kernel, list[str]]] = []
    for iname in sorted(inames, key=lambda i: first.get(i, 0)):
        for number, (fused, members) in enumerate(groups):
            if force_infusible and any(force_infusible(one, iname) for one in members):
                continue
            with_iname = _fused(kernel, fused, members[0], iname)
            if with_iname is not None:
                groups[number] = with_iname, [*members, iname]
                break
        else:
            groups.append((kernel, [iname]))
    result: dict[str, frozenset[str]] = {}
    for _, members in groups:
        result[kernel.fresh_name(prefix, result)] = frozenset(members)
    return result


def _check_apart(kernel: Kernel, inames: Sequence[str]) -> None:
    for statement in kernel.statements:
        both = [i for i in inames if i in statement.inames]
        if len(both) > 1:
            raise InvalidArgumentError(
                f"'{both[0]}' and '{both[1]}' are both around statement '{statement.id}'",
                instead="fusion candidates must be loops of the same depth: call this once for "
                "each depth",
            )


def _fused(kernel: Kernel, fused: Kernel, target: str, iname: str) -> Kernel | None:
    """``fused``, with the loop over ``iname`` a part of that over ``target``, if that is legal."""
    if kernel.iname_tags.get(iname) != kernel.iname_tags.get(target):
        return None
    try:
        new = transform_named("rename_iname")(fused, iname, target, existing_ok=True)
    except (IllegalTransformError, UndecidedError):
        return None
    # Of a hardware coordinate there are none.
    places = {_place(path, target) for path in new.paths.values()} - {None}
    return new if len(places) <= 1 else None


def _place(path: Path, iname: str) -> Path | None:
    """The loops down to that over ``iname``."""
    return next((path[: n + 1] for n, (name, _) in enumerate(path) if name == iname), None)


_PAGE = 2**21  # bytes of a page of a GPU's memory, the largest unit that there is


@fitting
@in_turn
def find_padding_multiple(
    kernel: Kernel, variable: str, axis: int | str, align_bytes: int, allowed_waste: float = 0.1
) -> int:
    """How many steps along an axis fill whole units of memory without wasting too much.

    :arg variable: an array or a temporary, whose type is known.
    :arg axis: its name or number; its stride must be a constant.
    :arg align_bytes: the size of a unit, as of a sector or a line of the cache.
    :arg allowed_waste: the share of what is used that may stay empty.
    :returns: the smallest number of steps that need no more: a length for :func:`split_iname`, or
        for :func:`split_array_dim`.
    :raises InvalidArgumentError: where the stride is no constant, or 0.
    """
    checked_kernel(kernel)
    array = kernel.array(needed_name("variable", variable))
    axis = axis_number(array, name_or_number("axis", axis))
    unit = at_least(1)("align_bytes", align_bytes)
    if unit > _PAGE:
        raise InvalidArgumentError(f"no unit of memory has {unit:,} bytes: a page has {_PAGE:,}")
    if not isinstance(allowed_waste, (int, float)) or not allowed_waste >= 0:
        raise InvalidArgumentError(
            f"allowed_waste is a share, not {shown(allowed_waste)}",
            instead="0.1 is a tenth, and 0 lets nothing stay empty",
        )
    stride = strides_of(array)[axis]
    if array.dtype is None or not isinstance(stride, (int, np.integer)) or stride < 1:
        raise InvalidArgumentError(
            f"axis {axis} of '{variable}' has a stride of {to_text(stride)} elements of type "
            f"{array.dtype}, which is no constant number of bytes",
            instead="fix_parameters makes sizes constants, and add_dtypes says a type",
        )
    step = int(stride) * array.dtype.itemsize
    for multiple in range(1, lcm(step, unit) // step + 1):
        used = multiple * step
        if -used % unit <= allowed_waste * used:
            break
    return multiple


@fitting
@in_turn
def add_padding_to_avoid_bank_conflicts(kernel: Kernel, device: Any = None, **sizes: Any) -> Kernel:
    """Pad shared temporaries to avoid bank conflicts, as counted by ``costs``.

    Each shared array whose accesses conflict gets the padding that needs the fewest wavefronts,
    and among these the least memory; :func:`pad_temporary` does it, and is what the history says.
    Where no padding helps (a swizzle may), an array stays as it is.

    :arg device: as for ``costs``.
    :arg sizes: those of the launch that is counted; needed where the kernel has sizes.
    :returns: the kernel; the same where nothing conflicts.
    :raises InvalidArgumentError: where sizes are missing.
    """
    checked_kernel(kernel)
    missing = [name for name in kernel.sizes if name not in sizes]
    if missing:
        raise InvalidArgumentError(
            f"bank conflicts are counted for a launch, and '{missing[0]}' is not given",
            instead=f"add_padding_to_avoid_bank_conflicts(knl, {missing[0]}=...)",
        )
    for found in costs(kernel, device=device, sizes=sizes).layouts:
        padded = [b for b in found.better if b.transform == "pad_temporary"]
        if padded:
            kernel = transform_named("pad_temporary")(kernel, found.array, *padded[0].numbers)
    return kernel
