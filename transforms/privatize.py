"""A temporary gets an element per iteration, or one for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    NothingToDoError,
)
from loopkit._expression import to_text, variable_names
from loopkit._footprint import FootprintError, iname_ranges
from loopkit._kernel import Kernel
from loopkit._linear import plain_terms
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, temporaries_in
from loopkit.transforms._expand import with_axes, without_axes
from loopkit.transforms._loop_nests import extent
from loopkit.transforms._rule_uses import expand_rules_that_use


@transform
def privatize_temporaries_with_inames(
    kernel: Kernel,
    privatizing_inames: kind.Names,
    only_var_names: kind.MaybeNames = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Give temporaries an axis per iname, so that iterations do not share an element.

    Before::

        for i
            t = a[i]
            b[i] = 2*t

    After ``privatize_temporaries_with_inames("i", "t")``, with ``0 <= i < 16``::

        for i
            t[i] = a[i]
            b[i] = 2*t[i]

    All temporaries that are written inside one of ``privatizing_inames`` get the
    axes of those inames that they are inside of, or only ``only_var_names``.  All
    statements that use such a temporary must be inside the same of these inames:
    otherwise what they read would have no index.

    An axis may be as long as sizes say; memory of a thread or block needs numbers in the end,
    by ``fix_parameters`` for instance, and global memory does not.

    :raises IllegalTransformError: where a use is outside of an iname, the length of an iname does
        not follow from the sizes, the temporary is a bound, or an iteration needs another one's
        value.
    """
    inames = inames_in(kernel, privatizing_inames, "privatizing_inames")
    chosen = _chosen(kernel, inames, only_var_names)
    result = kernel
    for name, axes in chosen.items():
        result = _privatized(result, name, axes)
    return Change(result)


def _chosen(
    kernel: Kernel, inames: Sequence[str], only: kind.MaybeNames
) -> dict[str, tuple[str, ...]]:
    """The inames that each temporary gets an axis for."""
    chosen: dict[str, tuple[str, ...]] = {}
    for temporary in temporaries_in(kernel, only):
        writers = kernel.writers.get(temporary.name, ())
        axes = tuple(i for i in inames if any(i in w.inames for w in writers))
        if axes:
            chosen[temporary.name] = axes
        elif only is not None:
            ids = ", ".join(w.id for w in writers) or "no statement"
            raise IllegalTransformError(
                f"'{temporary.name}' would stay as it is: it is written by {ids}, outside of "
                + ", ".join(f"'{i}'" for i in inames)
            )
    if not chosen:
        raise NothingToDoError(
            "nothing would be privatized: no temporary is written inside of "
            + ", ".join(f"'{i}'" for i in inames)
        )
    return chosen


def _privatized(kernel: Kernel, name: str, inames: Sequence[str]) -> Kernel:
    every = [s.id for s in kernel.statements]
    kernel = expand_rules_that_use(kernel, name, every, in_reductions=True)
    users = [s for s in kernel.statements if name in s.names]
    for user in users:
        missing = [i for i in inames if i not in user.inames]
        if missing:
            raise IllegalTransformError(
                f"statement '{user.id}' uses '{name}' outside of '{missing[0]}': which of its "
                "elements is meant?",
                instead=f"duplicate or move the loop so that '{user.id}' is inside "
                f"'{missing[0]}', or name other temporaries in only_var_names",
            )
    ranges = _ranges(kernel, name, inames)
    indices = tuple(
        simplify(prim.Sum((prim.Variable(iname), prim.Product((-1, low)))))
        for iname, (low, _) in zip(inames, ranges, strict=True)
    )
    old = kernel.temporary_by_name[name]
    if old.dim_tags is not None:
        raise IllegalTransformError(
            f"'{name}' has axes laid out by tag_array_axes, which says nothing of a new one",
            instead="privatize first, then tag_array_axes",
        )
    bounded = {p: d.inames[0] for d in reversed(kernel.domains) for p in d.parameters}
    if name in bounded:
        others = [t.name for t in kernel.temporaries if t.name not in bounded]
        raise IllegalTransformError(
            f"'{name}' cannot get an axis: it bounds the loop over '{bounded[name]}', and "
            "bounds are no elements of arrays",
            instead=f"only_var_names={others!r} leaves '{name}' as it is" if others else "",
        )
    lengths = [length for _, length in ranges]
    return with_axes(kernel, old, lengths, {user.id: indices for user in users})


def _ranges(
    kernel: Kernel, name: str, inames: Sequence[str]
) -> list[tuple[Expression, Expression]]:
    """The first value of each iname and how many there are: by numbers if these suffice."""
    try:
        numbers = iname_ranges(kernel, inames)
    except FootprintError as error:
        of_sizes = [extent(kernel, iname) for iname in inames]
        if None in of_sizes:
            raise IllegalTransformError(
                f"'{name}' cannot get an axis: {error.why}", instead=error.instead
            ) from None
        return [found for found in of_sizes if found is not None]
    return [(numbers[i].lower.expression, numbers[i].span + 1) for i in inames]


@transform
def unprivatize_temporaries_with_inames(
    kernel: Kernel,
    privatizing_inames: kind.Names,
    only_var_names: kind.MaybeNames = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Take axes of temporaries away that only tell the values of inames apart.

    Before: for i: (t[i] = a[i]; b[i] = 2*t[i])      After: for i: (t = a[i]; b[i] = 2*t)

    :arg privatizing_inames: an axis goes whose subscript is one of them, or a constant more.
    :arg only_var_names: of these temporaries only.
    :raises IllegalTransformError: where no temporary has such an axis, one has a layout of its
        own or other subscripts there, or an iteration needs another one's value.
    """
    inames = inames_in(kernel, privatizing_inames, "privatizing_inames")
    result = kernel
    for temporary in temporaries_in(kernel, only_var_names):
        result = _shared(result, temporary.name, inames, only_var_names is not None)
    if result is kernel:
        shown = " or ".join(f"'{i}'" for i in inames)
        raise IllegalTransformError(f"no temporary has an axis whose subscript is {shown}")
    return Change(result)


def _shared(kernel: Kernel, name: str, inames: Sequence[str], needed: bool) -> Kernel:
    """The kernel with one temporary without its axes of ``inames``; itself where it has none."""
    every = [s.id for s in kernel.statements]
    plain = expand_rules_that_use(kernel, name, every, in_reductions=True)
    found = [i for s in plain.statements for n, i in s.accesses if n == name and i]
    axes = [
        axis
        for axis in range(len(plain.temporary_by_name[name].shape))
        if any(not variable_names(i[axis]).isdisjoint(inames) for i in found)
    ]
    if not axes:
        if needed:
            raise IllegalTransformError(f"'{name}' has no axis whose subscript is such an iname")
        return kernel
    for axis in axes:
        for index in (i[axis] for i in found):
            used = variable_names(index) & kernel.home_domain.keys()
            if len(used) != 1 or not used <= set(inames) or plain_terms(index) != used:
                raise IllegalTransformError(
                    f"axis {axis} of '{name}' does more than tell iterations apart: a subscript "
                    f"of it is {to_text(index)}",
                    instead="only_var_names leaves it as it is",
                )
    return without_axes(plain, plain.temporary_by_name[name], axes)
