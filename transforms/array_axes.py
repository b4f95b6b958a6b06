"""Axes of arrays: their names, splitting of an axis, and concatenation of arrays along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import ArrayArg, ConstantTable, TemporaryVariable, axis_number, if_distinct
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import replace_accesses
from loopkit._kernel import Kernel
from loopkit._match import read_names
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._transform import transform
from loopkit.transforms import _common
from loopkit.transforms._common import fixed_layout, simplified, with_arrays, with_statements
from loopkit.transforms._rule_exchange import with_operands
from loopkit.transforms._rule_uses import expand_rules_that_use

Array = ArrayArg | TemporaryVariable
Indices = tuple[Expression, ...]
Access = Callable[[Indices], Indices]
T = TypeVar("T")


@transform
def set_array_axis_names(
    kernel: Kernel,
    ary_names: kind.Names,
    dim_names: kind.MaybeNames,
    *,
    unchecked: bool = False,
) -> Change:
    """Name the axes of arrays; transforms accept these names instead of numbers.

    Before: ``a[n, m]``, ``add_padding("a_s", 0, 16)``, copied by loops ``a_dim_0``, ``a_dim_1``
    After (``"a", "row, col"``): ``a[row: n, col: m]``, ``add_padding("a_s", "row", 16)``, by
    ``a_dim_row``, ``a_dim_col``

    Copies that are made of an array have the names of its axes.

    :arg ary_names: arguments and temporaries, with as many axes as there are names.
    :arg dim_names: one name per axis, all different; None takes them away.
    :raises InvalidArgumentError: where there are more axes or less, or names that are no names.
    :raises IllegalTransformError: where the axes are called so already.
    """
    arrays = [kernel.array(name) for name in kind.names_in(ary_names)]
    if not arrays:
        raise InvalidArgumentError("ary_names names no array")
    names = None if dim_names is None else kind.names_in(dim_names)
    for array in arrays:
        if names is not None and array.shape is not None and not array.shape:
            raise InvalidArgumentError(f"'{array.name}' is a scalar, which has no axes")
    if all(array.dim_names == names for array in arrays):
        called = f"are called {', '.join(names)}" if names else "have no names"
        raise IllegalTransformError(f"the axes of '{arrays[0].name}' {called} already")
    changed = {array.name: replace(array, dim_names=names) for array in arrays}
    return Change(with_arrays(kernel, changed))


@transform
def split_array_dim(
    kernel: Kernel,
    arrays_and_axes: kind.ArrayAxes,
    count: kind.Positive,
    *,
    unchecked: bool = False,
) -> Change:
    """Split an axis of temporaries in two.

    Before: ``t[64]``, ``t[i]``
    After (``("t", 0), 16``): ``t[4, 16]``, ``t[i // 16, i % 16]``

    If the loop over ``i`` is split in the same way, the subscripts are ``t[i_outer, i_inner]``.  A
    partial last row has unused elements.

    :arg arrays_and_axes: ``("t", 0)``, or ``("t", 0, "F")`` for the inner part in front of the
        outer one; or a list of such.  An axis is a number or a name, of which ``row_outer`` and
        ``row_inner`` are made.
    :arg count: the length of the inner axis.
    :raises IllegalTransformError: for an argument, whose cells are where the caller has them; for
        a table of constants; for a temporary with a layout of its own.
    """
    if not arrays_and_axes:
        raise InvalidArgumentError("arrays_and_axes names no array")
    for name, axis, order in arrays_and_axes:
        kernel = _split(kernel, name, axis, count, order)
    return Change(kernel)


def _split(kernel: Kernel, name: str, axis: int | str, count: int, order: str) -> Kernel:
    array = kernel.array(name)
    at = _plain_axis(array, axis)
    shape = array.shape or ()

    def both(outer: T, inner: T) -> tuple[T, T]:
        return (outer, inner) if order == "C" else (inner, outer)

    names = array.dim_names
    if names is not None:
        parts = both(f"{names[at]}_outer", f"{names[at]}_inner")
        names = if_distinct((*names[:at], *parts, *names[at + 1 :]))

    extents: Indices = both(simplify(_parts(shape[at], count)), count)

    def access(indices: Indices) -> Indices:
        index = indices[at]
        inner = prim.Remainder(index, count)
        return (*indices[:at], *both(prim.FloorDiv(index, count), inner), *indices[at + 1 :])

    padding = _padding(array)
    padding = (*padding[:at], 0, *padding[at:])
    shape = (*shape[:at], *extents, *shape[at + 1 :])
    return _reindexed(kernel, {name: name}, {name: access}, shape, padding, names)


def _parts(extent: Expression, count: int) -> Expression:
    return prim.FloorDiv(prim.Sum((extent, count - 1)), count)


@transform
def concatenate_arrays(
    kernel: Kernel,
    array_names: kind.Names,
    new_name: kind.NewName = None,
    axis_nr: kind.AnAxis = 0,
    *,
    unchecked: bool = False,
) -> Change:
    """Concatenate temporaries along an axis into one array.

    Before: ``u[16]``, ``v[8]``, ``u[i] + v[j]``
    After (``"u, v", "w"``): ``w[24]``, ``w[i] + w[16 + j]``

    :arg array_names: temporaries of one type, one memory, and equal extents on all other axes.
    :arg new_name: what the whole is called; as the first of them with ``_cat`` behind it if None.
    :arg axis_nr: the axis, by name or number; from the end if negative.
    :raises IllegalTransformError: for arguments, which are the caller's, and for temporaries that
        differ.
    """
    names = kind.names_in(array_names)
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise InvalidArgumentError("array_names names two different temporaries at least")
    arrays = [kernel.array(name) for name in names]
    for array in arrays:
        _check_alike(arrays[0], array, axis_nr)
    shape = arrays[0].shape or ()
    at = axis_number(arrays[0], axis_nr)
    alike = all(array.dim_names == arrays[0].dim_names for array in arrays)
    whole = _common.new_name(kernel, new_name, f"{names[0]}_cat")
    start: Expression = 0
    moves = {}
    for array in arrays:
        moves[array.name] = _moved(at, start)
        start = simplify(prim.Sum((start, (array.shape or ())[at])))
    shape = (*shape[:at], start, *shape[at + 1 :])
    called = arrays[0].dim_names if alike else None
    padding = _padding(arrays[0])
    return Change(_reindexed(kernel, dict.fromkeys(names, whole), moves, shape, padding, called))


def _moved(at: int, start: Expression) -> Access:
    """Subscripts that begin at ``start`` along an axis."""
    return lambda i: (*i[:at], prim.Sum((start, i[at])), *i[at + 1 :])


def _reindexed(
    kernel: Kernel,
    new: Mapping[str, str],
    accesses: Mapping[str, Access],
    shape: Indices,
    padding: tuple[int, ...],
    names: tuple[str, ...] | None,
) -> Kernel:
    """Arrays with other names, subscripts and one shape; those that become one are merged.

    ``names`` are those of the axes, where they have some.
    """
    for name in new:
        using = {s.id for s in kernel.statements if name in read_names(kernel, s)}
        kernel = expand_rules_that_use(kernel, name, using)

    def access(name: str, indices: Indices) -> Expression | None:
        if name not in new:
            return None
        return prim.Subscript(prim.Variable(new[name]), accesses[name](indices))

    every = [s.id for s in kernel.statements]
    rules = with_operands(kernel, new, every, lambda name, i, _: access(name, i))
    kernel = kernel.with_(substitutions=rules)
    users = [s for s in kernel.statements if not s.names.isdisjoint(new)]
    statements = {s.id: s.map_expressions(lambda e: replace_accesses(e, access)) for s in users}
    first = next(iter(new))
    array = kernel.array(first)
    changed: Array
    if isinstance(array, TemporaryVariable):
        padded = padding if any(padding) else ()
        changed = replace(array, name=new[first], shape=shape, dim_names=names, padding=padded)
    else:
        changed = replace(array, name=new[first], shape=shape, dim_names=names)
    kernel = with_arrays(with_statements(kernel, statements), {first: changed})
    gone = [name for name in new if name not in (first, new[name])]
    rest = tuple(t for t in kernel.temporaries if t.name not in gone)
    return simplified(kernel.with_(temporaries=rest), statements)


def _padding(array: Array) -> tuple[int, ...]:
    """How many unused elements each axis has."""
    padding = array.padding if isinstance(array, TemporaryVariable) else ()
    return padding or (0,) * len(array.shape or ())


def _plain_axis(array: Array, axis: int | str) -> int:
    """The number of an axis; an error for a layout that says where its elements lie."""
    if array.shape is None:
        raise IllegalTransformError(f"the extents of '{array.name}' are not known")
    if isinstance(array, ConstantTable):
        raise fixed_layout(array)
    at = axis_number(array, axis)
    laid_out = array.dim_tags is not None
    if isinstance(array, TemporaryVariable):
        laid_out |= bool(array.swizzles or array.base_storage)
    if laid_out:
        raise IllegalTransformError(
            f"'{array.name}' has a layout already, which is not defined for other axes",
            instead="change the axes first; tag_array_axes, pad_temporary and swizzle_array then",
        )
    if _padding(array)[at]:
        raise IllegalTransformError(
            f"axis {axis} of '{array.name}' is padded, and where its elements lie would change",
            instead="change the axis first, and then pad_temporary",
        )
    return at


def _check_alike(first: Array, array: Array, axis: int | str) -> None:
    """An error where two arrays cannot be one along an axis."""
    if isinstance(array, ArrayArg):
        raise fixed_layout(array)
    assert isinstance(first, TemporaryVariable)
    shapes = [list(a.shape or ()) for a in (first, array)]
    if not shapes[0]:
        raise IllegalTransformError(f"'{first.name}' has no axes")
    at = axis_number(first, axis)
    for what, one, other in (
        ("types", first.dtype, array.dtype),
        ("places in memory", first.address_space, array.address_space),
        ("numbers of axes", len(shapes[0]), len(shapes[1])),
        ("extents", shapes[0][:at] + shapes[0][at + 1 :], shapes[1][:at] + shapes[1][at + 1 :]),
        ("padding", _padding(first), _padding(array)),
        ("reductions", first.accumulates, array.accumulates),
    ):
        if one != other:
            raise IllegalTransformError(
                f"'{first.name}' and '{array.name}' cannot be one array: their {what} differ"
            )
    _plain_axis(array, at)
