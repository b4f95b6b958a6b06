"""The sizes of a launch."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit import _sets
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._kernel import Kernel
from loopkit._launches import check_one_launch
from loopkit._spelling import shown


def check_sizes(kernel: Kernel, sizes: Mapping[str, int], what: str) -> None:
    """Refuse sizes that no call could have."""
    check_names(kernel, sizes)
    check_one_launch(kernel, what)
    if missing := [name for name in kernel.sizes if name not in sizes]:
        raise InvalidArgumentError(
            f"{what} needs the sizes {', '.join(missing)}",
            instead=f"{what}({', '.join(f'{m}=...' for m in (*sizes, *missing))})",
        )
    if _sets.at_values(kernel.assumptions.set, sizes).is_empty():
        these = ", ".join(f"{n} = {v}" for n, v in sizes.items())
        raise InvalidArgumentError(
            f"no launch of '{kernel.name}' has {these}: it assumes {kernel.assumptions.text}"
        )


def check_names(kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """Refuse what is no size of a kernel, or no whole number."""
    for name in sizes:
        if name not in kernel.sizes:
            raise UnknownNameError("size", name, kernel.sizes)
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidArgumentError(f"the size '{name}' is a whole number, not {shown(value)}")
