"""Where temporaries live, and how arrays lie in memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import gcd, prod

import numpy as np

from loopkit import _arguments as kind
from loopkit._arrays import (
    AUTO,
    AddressSpace,
    ArrayArg,
    ConstantTable,
    DimTag,
    GivenStride,
    Nested,
    Strided,
    TemporaryVariable,
    axis_number,
    last_fastest,
    parse_address_space,
    storage_shape,
    strides_of,
)
from loopkit._called import frames_inside
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    LoopkitError,
    LoopkitWarning,
    UnknownNameError,
    Witness,
    counted,
)
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._registry import transform_named
from loopkit._swizzle import Swizzle, default_bits, default_by
from loopkit._syntax.expression_parser import parse_expression
from loopkit._syntax.tokens import split_outside_brackets
from loopkit._transform import transform
from loopkit.transforms._common import fixed_layout, temporary_of, with_arrays
from loopkit.transforms._placement import is_thread_iname

_MANY = 64  # elements of a thread's own array: more are hardly kept in registers


@transform
def set_temporary_address_space(
    kernel: Kernel,
    temp_var_names: kind.Names,
    address_space: kind.Space,
    *,
    unchecked: bool = False,
) -> Change:
    """Set the memory (address space) of temporaries.

    Before: ``t[16] private``.  After ``set_temporary_address_space("t", "shared")``:
    ``t[16] shared``.

    :arg temp_var_names: names of temporaries.
    :arg address_space: ``"private"``, one copy per thread; ``"shared"`` (or ``"local"``), one
        per block; ``"global"``, one in all.
    :raises IllegalTransformError: where an array that lies in one storage with others would not be
        shared.
    :raises RaceError: where threads would meet in a shared cell.
    """
    wanted = parse_address_space(address_space)
    chosen = kind.names_in(temp_var_names)
    if not chosen:
        raise InvalidArgumentError("temp_var_names names no temporary")
    temporaries = {t.name: t for t in kernel.temporaries}
    for name in chosen:
        temporary_of(kernel, name)
        base = temporaries[name].base_storage
        if base is not None and wanted is not AddressSpace.LOCAL:
            others = [t.name for t in kernel.temporaries if t.base_storage == base]
            raise IllegalTransformError(
                f"'{name}' shares its storage with {_others(others, name)}, and only arrays in "
                "shared memory can",
                instead="leave alias_temporaries out, or make it name other arrays",
            )
        if wanted is AddressSpace.PRIVATE and (hint := _own_part(kernel, name)):
            warnings.warn(LoopkitWarning(hint), stacklevel=frames_inside())
        temporaries[name] = replace(temporaries[name], address_space=wanted)
    return Change(kernel.with_(temporaries=tuple(temporaries.values())))


def _own_part(kernel: Kernel, name: str) -> str:
    """How each thread gets the elements of a large array that it uses alone; empty if not known."""
    shape = kernel.temporary_by_name[name].shape
    if not all(isinstance(extent, int) for extent in shape) or prod(shape) <= _MANY:
        return ""
    threads = [i for i in kernel.all_inames if is_thread_iname(kernel, i)]
    for axis, iname in product(range(len(shape)), threads):
        low, high = kernel.range_of(iname)
        if low is None or high is None or high == low:
            continue
        with suppress(LoopkitError):
            split = transform_named("split_array_dim")(kernel, [(name, axis)], high - low + 1)
            made = transform_named("unprivatize_temporaries_with_inames")(split, iname, name)
            return (
                f"each thread would have all {prod(shape)} elements of '{name}', and uses "
                f"{prod(made.temporary_by_name[name].shape)}: "
                f"{''.join(s.call() for s in [*made.history][-2:])} leaves these"
            )
    return ""


def _others(names: Sequence[str], name: str) -> str:
    return ", ".join(f"'{other}'" for other in names if other != name)


_NESTED = re.compile(r"N(\d+)")
_STRIDE = re.compile(r"stride:\s*(.+)")


@transform
def tag_array_axes(
    kernel: Kernel, ary_names: kind.Names, dim_tags: kind.DimTags, *, unchecked: bool = False
) -> Change:
    """Set the memory layout of the axes of arrays.

    ``dim_tags`` is ``"c"`` or ``"f"`` (last or first axis fastest), or a tag per
    axis, as a list or separated by commas: ``N0`` for the axis that varies
    fastest, ``N1`` for the next, and so on; or ``stride:17`` for a stride in
    elements, an expression over sizes; or ``stride:auto`` for that of the array that a call passes.
    A mapping by axis, of numbers or names, says it of some.

    Before: ``a[i, j]`` at ``8*i + j``.  After ``tag_array_axes("a", "f")``, with 4
    rows: at ``i + 4*j``.

    :arg ary_names: arguments and temporaries.
    :raises IllegalTransformError: where two cells would lie in one place.
    """
    names = kind.names_in(ary_names)
    if not names:
        raise InvalidArgumentError("ary_names names no array")
    changed: dict[str, ArrayArg | TemporaryVariable] = {}
    for name in names:
        array = kernel.array(name)
        if array.shape is None:
            raise IllegalTransformError(f"the shape of '{name}' is not known", instead="declare it")
        if isinstance(array, ConstantTable):
            raise fixed_layout(array)
        tags = _parse_dim_tags(dim_tags, array)
        is_own = isinstance(array, TemporaryVariable)
        if is_own and any(isinstance(tag, GivenStride) for tag in tags or ()):
            raise InvalidArgumentError(
                f"the strides of '{name}' cannot be those of a call's array: it is a temporary"
            )
        changed[name] = replace(array, dim_tags=tags)
    return Change(with_arrays(kernel, changed))


def _parse_dim_tags(
    tags: kind.DimTags, array: ArrayArg | TemporaryVariable
) -> tuple[DimTag, ...] | None:
    name, rank = array.name, len(array.shape or ())
    by_c = last_fastest(rank)
    if isinstance(tags, str) and tags.strip().lower() in ("c", "f"):
        return None if tags.strip().lower() == "c" else by_c[::-1]
    if isinstance(tags, Mapping):
        given: list[str | DimTag] = list(by_c)
        for axis, tag in tags.items():
            given[axis_number(array, axis)] = tag
    elif isinstance(tags, str):
        given = [tags[a:b] for a, b in split_outside_brackets(tags, 0, len(tags), ",")]
    else:
        given = list(tags)
    words = {str(tag).strip().lower() for tag in given}
    for word in sorted(words & _NOT_HERE.keys()):
        raise InvalidArgumentError(f"there are no '{word}' axes", instead=_NOT_HERE[word])
    if rank == len(given) > 1 and words in ({"c"}, {"f"}):
        return None if words == {"c"} else by_c[::-1]
    if len(given) != rank:
        raise InvalidArgumentError(
            f"dim_tags has {counted(len(given), 'tag')}, but '{name}' has "
            f"{counted(rank, 'axis', 'axes')}",
            instead=f"give one tag per axis, such as {','.join(map(str, by_c))!r}",
        )
    parsed = tuple(_parse_dim_tag(tag) for tag in given)
    levels = sorted(tag.level for tag in parsed if isinstance(tag, Nested))
    if levels != list(range(len(levels))):
        raise InvalidArgumentError(
            f"the tags N… of '{name}' are {', '.join(f'N{level}' for level in levels)}",
            instead="each of N0, N1, ... up to the number of such axes must be given once",
        )
    return parsed


def _parse_dim_tag(tag: str | DimTag) -> DimTag:
    if isinstance(tag, (Nested, Strided, GivenStride)):
        return tag
    text = str(tag).strip()
    nested = _NESTED.fullmatch(text)
    if nested is not None:
        return Nested(int(nested[1]))
    strided = _STRIDE.fullmatch(text)
    if strided is not None:
        if strided[1].strip() == AUTO:
            return GivenStride()
        stride = parse_expression(strided[1])
        if isinstance(stride, int) and stride < 0:
            raise InvalidArgumentError(f"a stride of {stride} elements is negative")
        return Strided(stride)
    if text.lower() in ("c", "f"):
        raise InvalidArgumentError(f"'{text}' is said of all axes, or of none")
    raise UnknownNameError("array axis tag", text, ["N0", "N1", "stride:17", "c", "f"])


_NOT_HERE = {
    "vec": "elements are scalars: where the axis is the last in memory, 'N0', and its loop is "
    "unrolled, the compiler makes wide accesses",
    "sep": "an array is one argument: where the axis is the first in memory, its parts are "
    "contiguous",
}
"""Tags of Loopy's, each with what to do instead."""


@transform
def pad_temporary(
    kernel: Kernel,
    name: kind.Name,
    axis: kind.AnAxis,
    elements: kind.Natural = 1,
    *,
    unchecked: bool = False,
) -> Change:
    """Add ``elements`` unused elements to the storage of an axis of a temporary.

    Before: ``t[32, 32]``, whose columns lie 32 elements apart, all in one bank of
    shared memory.  After ``pad_temporary("t", 1)``: 33 apart, in different banks.

    :arg name: a temporary.
    :arg axis: its name, or number; from the end, if negative.
    :raises IllegalTransformError: where that would move no element.
    """
    temporary = temporary_of(kernel, name)
    rank = len(temporary.shape)
    position = axis_number(temporary, axis)
    tags = temporary.dim_tags or last_fastest(rank)
    tag = tags[position]
    if not isinstance(tag, Nested):
        raise IllegalTransformError(
            f"axis {position} of '{name}' has an explicit stride ({tag})",
            instead="change the strides by tag_array_axes",
        )
    nested = {i: t.level for i, t in enumerate(tags) if isinstance(t, Nested)}
    if tag.level == max(nested.values()):
        faster = [i for i, level in nested.items() if level < tag.level]
        raise IllegalTransformError(
            f"padding axis {position} of '{name}' would move no element: it is the slowest",
            instead=f"pad axis {faster[-1]}: this increases the distance between its rows"
            if faster
            else "",
        )
    changed = _padded(temporary, position, elements)
    if changed == temporary:
        raise IllegalTransformError(
            f"'{name}' would not change: axis {position} is padded by {elements} already"
        )
    return Change(with_arrays(kernel, {name: changed}))


def _padded(temporary: TemporaryVariable, axis: int, elements: int) -> TemporaryVariable:
    """A temporary with so many unused elements behind an axis."""
    padding = list(temporary.padding or [0] * len(temporary.shape))
    padding[axis] = elements
    return replace(temporary, padding=tuple(padding) if any(padding) else ())


@transform
def swizzle_array(
    kernel: Kernel,
    array: kind.Name,
    axis: kind.AnAxis = -1,
    by: kind.MaybeAxis = None,
    bits: kind.MaybeNatural = None,
    *,
    base: kind.Natural = 0,
    skip: kind.Natural = 0,
    pad: kind.Flag = False,
    unchecked: bool = False,
) -> Change:
    """Permute the cells of a temporary along an axis, by the index on another one.

    Before: cell ``t[i, j]`` of ``t[32, 32]`` lies at ``t[i][j]``, and a column in one bank of
    shared memory.  After ``swizzle_array("t")``: at ``t[i][j ^ i]``, and a column in all banks.

    In general index ``j`` of ``axis`` has the place ``j ^ ((i >> skip) % 2**bits << base)``, where
    ``i`` is the index of axis ``by``: its ``bits`` bits above the lowest ``skip`` change those of
    ``j`` above the lowest ``base``.  In rows of ``2**r`` elements that is CuTe's
    ``Swizzle<bits, base, r + skip - base>``.  No memory is taken, and what the kernel means does
    not change.

    :arg array: a temporary in shared or private memory.
    :arg axis: along which cells change places; from the end, if negative.
    :arg by: the axis whose index says how; left out, the one in front, or for the first the last.
    :arg bits: how many bits change; 0 takes the swizzle of the axis away.  If it is left out, as
        many as the index of ``by`` has above ``skip``, if the axis has as many above ``base``.
    :arg base: so many of the lowest bits stay: ``2**base`` elements remain beside each other.
    :arg skip: so many of the lowest bits of the other index do not count: ``2**skip`` rows in
        turn are permuted alike.
    :arg pad: add to the axis the unused elements that places need beyond its end.
    :raises IllegalTransformError: where two cells would have one place, or one none.
    """
    temporary = temporary_of(kernel, array)
    rank = len(temporary.shape)
    position = axis_number(temporary, axis)
    other = axis_number(temporary, default_by(position, rank) if by is None else by)
    if bits is None:
        mine, its = (_number(temporary, temporary.shape[a], a) for a in (position, other))
        bits = default_bits(mine, its, base, skip)
        if bits < 1:
            raise InvalidArgumentError(
                f"no bits are left: of the indices of axes {position} and {other} of '{array}' "
                f"the lowest {base} and {skip} do not count"
            )
    others = tuple(s for s in temporary.swizzles if s.axis != position)
    if bits:
        others = (*others, Swizzle(position, other, bits, base, skip))
    changed = replace(temporary, swizzles=tuple(sorted(others, key=lambda s: s.axis)))
    if pad and bits:
        changed = _with_room(changed, position)
    if changed == temporary:
        raise IllegalTransformError(f"'{array}' would not change")
    return Change(with_arrays(kernel, {array: changed}))


def _number(temporary: TemporaryVariable, extent: Expression, axis: int) -> int:
    if not isinstance(extent, (int, np.integer)):
        raise IllegalTransformError(
            f"axis {axis} of '{temporary.name}' has {to_text(extent)} elements, which is no "
            "constant",
            instead="fix_parameters makes sizes constants",
        )
    return int(extent)


def _with_room(temporary: TemporaryVariable, axis: int) -> TemporaryVariable:
    """The same with the elements that an axis needs, so that it ends where bits change no more."""
    block = max(1 << (s.base + s.bits) for s in temporary.swizzles if s.axis == axis)
    more = -_number(temporary, storage_shape(temporary)[axis], axis) % block
    before = temporary.padding[axis] if temporary.padding else 0
    return _padded(temporary, axis, before + more)


@transform
def add_padding(
    kernel: Kernel,
    variable: kind.Name,
    axis: kind.AnAxis,
    align_bytes: kind.Positive,
    *,
    unchecked: bool = False,
) -> Change:
    """Make the stride of an axis a multiple of ``align_bytes``.

    Before: ``t[10, 10]`` of float32, rows 40 bytes apart.  After
    ``add_padding("t", 0, 16)``: 48 bytes apart.  The cells of an argument lie where its caller
    has them; :func:`tag_array_axes` says where that is.

    :arg variable: a temporary whose type is known.
    :arg axis: its name, or number; from the end, if negative.
    :raises IllegalTransformError: where strides are no constants, or multiples already, and of an
        argument, with a cell that the caller has elsewhere.
    """
    array = kernel.array(variable)
    position = axis_number(array, axis)
    if array.dtype is None:
        raise IllegalTransformError(
            f"the type of '{variable}' is not known yet", instead="add_dtypes says it"
        )
    itemsize = array.dtype.itemsize
    elements = align_bytes // gcd(align_bytes, itemsize)
    strides = _constant_strides(array)
    step = strides[position]
    wanted = -(-step // elements) * elements
    if wanted == step:
        raise IllegalTransformError(
            f"'{variable}' would not change: axis {position} has a stride of {wanted * itemsize} "
            f"bytes, a multiple of {align_bytes}"
        )
    for other, stride in enumerate(strides):
        if stride > step and stride % step:
            raise IllegalTransformError(
                f"axis {other} of '{variable}' has a stride of {stride} elements, which is no "
                f"multiple of that of axis {position} ({step})",
                instead="set all strides by tag_array_axes",
            )
    scaled = [stride if stride < step else stride // step * wanted for stride in strides]
    if not isinstance(array, TemporaryVariable):
        table = isinstance(array, ConstantTable)
        raise fixed_layout(array) if table else _seen_by_the_caller(array, position, step, scaled)
    tags = tuple(Strided(stride) for stride in scaled)
    return Change(with_arrays(kernel, {variable: replace(array, padding=(), dim_tags=tags)}))


def _seen_by_the_caller(
    array: ArrayArg, axis: int, step: int, wanted: Sequence[int]
) -> IllegalTransformError:
    """The refusal to pad an argument, which shows a cell that would be looked for elsewhere."""
    cell = tuple(int(a == axis) for a in range(len(wanted)))
    shown = f"{array.name}[{', '.join(map(str, cell))}]"
    first = f"{array.name}[{', '.join('0' * len(cell))}]"
    strides = ", ".join(f"stride:{stride}" for stride in wanted)
    return IllegalTransformError(
        f"'{array.name}' is an argument, whose memory layout the caller decides: {shown} is "
        f"{step} elements after {first}, and would be read {wanted[axis]} after it",
        witness=Witness("layout", array.name, cell),
        instead=f"add_prefetch and buffer_array make copies that may be padded; "
        f"tag_array_axes('{array.name}', '{strides}') says that callers have such rows",
    )


def _constant_strides(array: ArrayArg | TemporaryVariable) -> list[int]:
    found: list[int] = []
    for number, stride in enumerate(strides_of(array)):
        if not isinstance(stride, (int, np.integer)):
            raise IllegalTransformError(
                f"axis {number} of '{array.name}' has a stride of {to_text(stride)} elements, "
                "which is no constant",
                instead="fix_parameters makes sizes constants; tag_array_axes takes expressions",
            )
        found.append(int(stride))
    return found
