"""Temporaries: an element per iteration or one for all, and arrays that lie over each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import AddressSpace
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    NothingToDoError,
)
from loopkit._expression import to_text, variable_names
from loopkit._footprint import FootprintError, iname_ranges
from loopkit._kernel import Kernel
from loopkit._linear import plain_terms
from loopkit._nodes import Expression
from loopkit._places import space_of
from loopkit._simplify import simplify
from loopkit._transform import transform
from loopkit.transforms._common import inames_in, temporaries_in, temporary_of, with_arrays
from loopkit.transforms._expand import with_axes, without_axes
from loopkit.transforms._loop_nests import extent_or, offset
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
                f"'{temporary.name}' would not change: it is written by {ids}, outside of "
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
        simplify(offset(prim.Variable(iname), low))
        for iname, (low, _) in zip(inames, ranges, strict=True)
    )
    old = kernel.temporary_by_name[name]
    if old.dim_tags is not None:
        raise IllegalTransformError(
            f"'{name}' has axes laid out by tag_array_axes, and no layout for a new axis",
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
        why, instead = f"'{name}' cannot get an axis: {error.why}", error.instead
        return [extent_or(kernel, iname, why, instead) for iname in inames]
    return [(numbers[i].lower.expression, numbers[i].span + 1) for i in inames]


@transform
def unprivatize_temporaries_with_inames(
    kernel: Kernel,
    privatizing_inames: kind.Names,
    only_var_names: kind.MaybeNames = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Remove axes of temporaries that only distinguish values of inames.

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
                    f"axis {axis} of '{name}' does more than distinguish iterations: a subscript "
                    f"of it is {to_text(index)}",
                    instead="only_var_names leaves it as it is",
                )
    return without_axes(plain, plain.temporary_by_name[name], axes)


@transform
def alias_temporaries(
    kernel: Kernel,
    names: kind.Names,
    base_name_prefix: kind.NewName = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Let shared temporaries share storage if their values are not needed at the same time.

    Before: ``a_s[32, 32]`` and ``w_s[512]``, 6 KiB.  After ``alias_temporaries("a_s, w_s")``:
    4 KiB, both at their beginning, with barriers between uses of one and writes of the other.

    :arg names: names of temporaries in shared memory, ``"a_s, w_s"`` or a sequence, two at least.
    :arg base_name_prefix: what the storage is called; such a name is made up without it.
    :raises IllegalTransformError: where one of them is in other memory, or a value would be
        overwritten before it was read for the last time.
    """
    chosen = kind.names_in(names)
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise InvalidArgumentError(
            f"names has {', '.join(map(repr, chosen)) or 'no name'}, and it takes two different "
            "temporaries, or more, to share a storage"
        )
    found = [temporary_of(kernel, name) for name in chosen]
    for temporary in found:
        space = space_of(kernel, temporary)
        if space is not AddressSpace.LOCAL:
            why = "; of registers, the compiler sees to it" if space is AddressSpace.PRIVATE else ""
            raise IllegalTransformError(
                f"'{temporary.name}' is in {space.word} memory, and only arrays in shared memory "
                f"can share storage{why}",
                instead=f"set_temporary_address_space('{temporary.name}', 'shared')",
            )
        if temporary.base_storage is not None:
            raise IllegalTransformError(
                f"'{temporary.name}' already lies in the storage '{temporary.base_storage}'",
                instead="name all that are to share one storage in one call",
            )
    taken = {t.base_storage for t in kernel.temporaries if t.base_storage is not None}
    wanted = base_name_prefix or f"{chosen[0]}_storage"
    base = kernel.fresh_name(wanted, taken)
    laid = [replace(t, base_storage=base, address_space=AddressSpace.LOCAL) for t in found]
    return Change(with_arrays(kernel, {t.name: t for t in laid}))
