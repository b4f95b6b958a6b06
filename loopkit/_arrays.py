"""The data of a kernel: arguments and temporaries, with their types, shapes and memory layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Any, Final, TypeVar

import numpy as np
import pymbolic.primitives as prim

from loopkit._called import fitting_type
from loopkit._contents import Contents, contents_of
from loopkit._errors import InvalidArgumentError, UnknownNameError, counted
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._same import Exact
from loopkit._spelling import (
    check_declared,
    check_expression,
    check_flag,
    check_identifier,
    check_name,
    check_note,
    shown,
)
from loopkit._swizzle import Swizzle

DType = np.dtype[Any]


class AddressSpace(Enum):
    """The memory of a temporary.

    ``PRIVATE`` exists once per thread, ``LOCAL`` once per block (CUDA's shared
    memory), ``GLOBAL`` once.  ``AUTO`` is decided from the parallel inames in
    the subscripts that write it.
    """

    PRIVATE = "private"
    LOCAL = "local"
    GLOBAL = "global"
    AUTO = "auto"

    @property
    def word(self) -> str:
        """What CUDA calls it: ``"shared"`` for ``LOCAL``."""
        return "shared" if self is AddressSpace.LOCAL else self.value


def parse_address_space(space: AddressSpace | str | None) -> AddressSpace:
    """The address space that a name spells, ``"shared"`` being CUDA's for ``"local"``."""
    if space is None or isinstance(space, AddressSpace):
        return space or AddressSpace.AUTO
    spellings = {"shared": AddressSpace.LOCAL, **{known.value: known for known in AddressSpace}}
    if space.lower() not in spellings:
        raise UnknownNameError("address space", space, spellings)
    return spellings[space.lower()]


@dataclass(frozen=True)
class Nested:
    """An axis of an array: level 0 varies fastest; strides follow from the shape."""

    level: int

    def __str__(self) -> str:
        return f"N{self.level}"


@dataclass(frozen=True, eq=False)
class Strided(Exact):
    """An axis with an explicit stride, in elements."""

    stride: Expression

    def __str__(self) -> str:
        return f"stride:{self.stride}"


@dataclass(frozen=True)
class GivenStride:
    """An axis of an argument whose stride is that of the array which a call passes.

    Of an array that the call makes, it is that of an array without gaps.
    """

    def __str__(self) -> str:
        return f"stride:{AUTO}"


DimTag = Nested | Strided | GivenStride

AUTO: Final = "auto"
"""What is left to loopkit or to the call: a type, a shape, strides, an offset."""


@fitting_type
@dataclass(frozen=True, eq=False)
class ArrayArg(Exact):
    """An array argument in global memory, or several where ``name`` is a list, as in ``"a, b"``.

    ``shape`` in elements, one expression over sizes per axis, or None where it
    is to be inferred from the accesses; ``dtype`` None likewise.  ``dim_tags``
    None means row-major.  ``dim_names`` are what the axes are called, if they have names.
    """

    name: str
    dtype: DType | None = None
    shape: tuple[Expression, ...] | None = None
    dim_tags: tuple[DimTag, ...] | None = None
    offset: Expression = 0
    is_input: bool | None = None
    is_output: bool | None = None
    dim_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_declared(self.name, "the name of an array")
        _check_extents(self.name, self.shape, self.dim_tags)
        _check_dim_names(self)
        for what, flag in (("is_input", self.is_input), ("is_output", self.is_output)):
            if flag is not None:
                check_flag(flag, f"{what} of '{self.name}'")
        if not isinstance(self.offset, str):
            check_expression(self.offset, f"the offset of '{self.name}'")


@dataclass(frozen=True, eq=False)
class ConstantTable(ArrayArg):
    """An array whose elements stand in the source: it is read as an argument that nobody passes."""

    contents: Contents | None = None

    @property
    def array(self) -> Any:
        """The elements as a NumPy array."""
        assert self.contents is not None
        return self.contents.array


@fitting_type
@dataclass(frozen=True, eq=False)
class ValueArg(Exact):
    """A scalar argument, passed by value; integer ones may be sizes.

    A ``name`` such as ``"s, t"`` declares several.  A ``default`` that is an expression of sizes
    computes a size that no call need pass: it always has that value.
    """

    name: str
    dtype: DType | None = None
    default: Any = None

    def __post_init__(self) -> None:
        check_declared(self.name, "the name of a value")


@fitting_type
@dataclass(frozen=True, eq=False)
class TemporaryVariable(Exact):
    """A scalar or array that lives only inside a kernel; ``name`` may list several, ``"p, q"``.

    ``padding[i]`` elements are added to the storage of axis ``i``; ``swizzles`` say how cells
    change places along axes, at most one for each.
    ``accumulates`` names the reduction whose accumulator loopkit made it to be:
    such a temporary may be expanded by the transforms that need it.  ``combined_by`` says how
    threads combine their partial results of it: by ``"shuffle"``, ``"shared"`` or ``"atomic"``,
    and by ``"lookback"`` running ones across blocks; None for what suits the block.
    ``is_running`` says that it lasts through a loop, in which what
    reads it sees the updates so far, also where threads run that loop together.  Temporaries of
    one ``base_storage`` begin at the same byte of shared memory.  With an
    ``initializer``, an array, and ``read_only=True`` it is a table of constants, and
    :func:`make_kernel` makes a :class:`ConstantTable` of it.  ``dim_names`` are those of its axes.
    """

    name: str
    dtype: DType | None = None
    shape: tuple[Expression, ...] = ()
    address_space: AddressSpace = AddressSpace.AUTO
    dim_tags: tuple[DimTag, ...] | None = None
    padding: tuple[int, ...] = ()
    swizzles: tuple[Swizzle, ...] = ()
    accumulates: str | None = None
    made_by: str | None = None
    combined_by: str | None = None
    is_running: bool = False
    base_storage: str | None = None
    initializer: Any = None
    read_only: bool = False
    dim_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_declared(self.name, "the name of a temporary")
        check_flag(self.is_running, f"is_running of '{self.name}'")
        check_flag(self.read_only, f"read_only of '{self.name}'")
        if self.initializer is not None:
            contents = contents_of(self.initializer, self.name)
            object.__setattr__(self, "initializer", contents)
        if self.read_only is not (self.initializer is not None):
            raise InvalidArgumentError(
                f"'{self.name}' is read only, and has no initializer"
                if self.read_only
                else f"'{self.name}' has an initializer, and is not read only",
                instead="a table of constants has both; what is written later is first written "
                "in the text",
            )
        _check_extents(self.name, self.shape, self.dim_tags)
        if self.accumulates is not None:
            check_identifier(self.accumulates, "a reduction")
        check_note(self.made_by, "the step that made a temporary")
        _check_dim_names(self)
        _check_padding(self)
        _check_swizzles(self)
        by = self.combined_by
        if by is not None and not (isinstance(by, str) and by in COMBINED_BY):
            raise InvalidArgumentError(
                f"threads do not combine their partial results by {shown(self.combined_by)}",
                instead=f"by is {', '.join(map(repr, COMBINED_BY))}, or None",
            )
        if self.base_storage is not None:
            check_name(self.base_storage, "a base storage")


COMBINED_BY = ("shuffle", "shared", "atomic", "lookback")
"""How threads may be asked to combine their partial results of a reduction."""


def _check_extents(name: str, shape: object, dim_tags: object) -> None:
    """A shape and strides: expressions, or texts that :func:`make_kernel` is to read."""
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    for extent in extents:
        if extent is not None and not isinstance(extent, str):
            check_expression(extent, f"an extent of '{name}'")
    if dim_tags is None or isinstance(dim_tags, str):
        return
    if not isinstance(dim_tags, (tuple, list)):
        raise InvalidArgumentError(f"{shown(dim_tags)} cannot be the dim tags of '{name}'")
    for tag in dim_tags:
        if isinstance(tag, Strided):
            check_expression(tag.stride, f"a stride of '{name}'")


def _check_dim_names(array: ArrayArg | TemporaryVariable) -> None:
    """Names, all different, one for each axis; a text lists them."""
    names: Any = array.dim_names
    if isinstance(names, str):
        names = tuple(part.strip() for part in names.split(","))
        object.__setattr__(array, "dim_names", names)
    if names is None:
        return
    if not isinstance(names, tuple):
        raise InvalidArgumentError(
            f"{shown(names)} are no names of the axes of '{array.name}'",
            instead="they are a tuple, or a text such as 'row, column'",
        )
    for name in names:
        check_name(name, f"the name of an axis of '{array.name}'")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"two axes of '{array.name}' would be called '{twice}'")
    rank = len(array.shape) if isinstance(array.shape, tuple) else 0
    if rank and rank != len(names):
        raise InvalidArgumentError(
            f"'{array.name}' has {counted(rank, 'axis', 'axes')}, but dim_names has "
            f"{counted(len(names), 'name')}",
            instead="give one name per axis",
        )


def without_names(data: Argument | TemporaryVariable) -> Argument | TemporaryVariable:
    """The same, its axes without names: these change nothing."""
    if isinstance(data, ValueArg) or data.dim_names is None:
        return data
    return replace(data, dim_names=None)


_WITH_EXPRESSIONS = ("shape", "dim_tags", "offset", "default")

D = TypeVar("D", bound="Argument | TemporaryVariable")


def expressions_of(data: Argument | TemporaryVariable) -> Iterator[Expression]:
    """The expressions of a declaration: extents and strides, the offset, and the default."""
    for field in _WITH_EXPRESSIONS:
        value = getattr(data, field, None)
        for part in value if isinstance(value, tuple) else (value,):
            expr = part.stride if isinstance(part, Strided) else part
            if isinstance(expr, prim.ExpressionNode):
                yield expr


def with_expressions(data: D, changed: Callable[[Expression], Expression]) -> D:
    """A declaration with others in the place of its expressions (:func:`expressions_of`)."""

    def value(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(value, part))
        if isinstance(part, Strided):
            return Strided(value(part.stride))
        return changed(part) if isinstance(part, prim.ExpressionNode) else part

    fields = (field for field in _WITH_EXPRESSIONS if hasattr(data, field))
    return replace(data, **{field: value(getattr(data, field)) for field in fields})


def if_distinct(names: Iterable[str] | None) -> tuple[str, ...] | None:
    """Names of axes that were made of others; none where two would be one, or there are no axes."""
    found = () if names is None else tuple(names)
    return found if found and len(set(found)) == len(found) else None


def axis_number(array: ArrayArg | TemporaryVariable, axis: int | str) -> int:
    """The number of an axis: itself, counted from the end if negative, or that of a name."""
    rank, names = len(array.shape or ()), array.dim_names
    if isinstance(axis, str):
        if names is None:
            raise InvalidArgumentError(
                f"the axes of '{array.name}' have no names, and none is '{axis}'",
                instead=f"set_array_axis_names('{array.name}', ...) gives them some",
            )
        if axis not in names:
            raise UnknownNameError(f"axis of '{array.name}'", axis, names)
        return names.index(axis)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"'{array.name}' has {counted(rank, 'axis', 'axes')}; there is no axis {axis}",
            instead=f"axes are 0 to {rank - 1}" if rank else "a scalar has none",
        )
    return axis % rank


def _check_padding(temporary: TemporaryVariable) -> None:
    """As many elements for each axis, none of them taken away."""
    padding, name = temporary.padding, temporary.name
    if not isinstance(padding, tuple) or not all(isinstance(p, int) and p >= 0 for p in padding):
        raise InvalidArgumentError(
            f"{shown(padding)} is no padding of '{name}'",
            instead="it is a tuple of numbers of elements, one for each axis",
        )
    rank = len(temporary.shape) if isinstance(temporary.shape, tuple) else len(padding)
    if padding and len(padding) != rank:
        raise InvalidArgumentError(f"'{name}' has {rank} axes, and {len(padding)} are padded")


def _check_swizzles(temporary: TemporaryVariable) -> None:
    """Each is of axes that there are, and no two of one."""
    swizzles, name = temporary.swizzles, temporary.name
    if not isinstance(swizzles, tuple) or not all(isinstance(s, Swizzle) for s in swizzles):
        raise InvalidArgumentError(f"{shown(swizzles)} are no swizzles of '{name}'")
    axes = [swizzle.axis for swizzle in swizzles]
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(f"an axis of '{name}' is swizzled twice")
    rank = len(temporary.shape) if isinstance(temporary.shape, tuple) else 0
    if rank and any(axis >= rank for s in swizzles for axis in (s.axis, s.by)):
        raise InvalidArgumentError(
            f"'{name}' has {counted(rank, 'axis', 'axes')}, and is swizzled along others"
        )


Argument = ArrayArg | ValueArg


def is_computed(argument: Argument) -> bool:
    """Whether an argument is a size that is computed from others."""
    return isinstance(argument, ValueArg) and isinstance(argument.default, prim.ExpressionNode)


def product(factors: list[Expression]) -> Expression:
    """The product of integer expressions, constants folded in front."""
    constant = 1
    rest: list[Expression] = []
    for factor in factors:
        if isinstance(factor, (int, np.integer)):
            constant *= int(factor)
        else:
            rest.append(factor)
    if constant != 1 or not rest:
        rest.insert(0, constant)
    return rest[0] if len(rest) == 1 else prim.Product(tuple(rest))


def storage_shape(array: ArrayArg | TemporaryVariable) -> tuple[Expression, ...]:
    """The shape with padding added."""
    shape = array.shape or ()
    if isinstance(array, TemporaryVariable) and array.padding:
        return tuple(
            (s + p if isinstance(s, int) else prim.Sum((s, p))) if p else s
            for s, p in zip(shape, array.padding, strict=True)
        )
    return shape


def last_fastest(rank: int) -> tuple[Nested, ...]:
    """The axes as C lays them out."""
    return tuple(Nested(rank - 1 - axis) for axis in range(rank))


def strides_of(array: ArrayArg | TemporaryVariable) -> tuple[Expression, ...]:
    """Element strides, one per axis, from the shape and the dim tags.

    Where the call decides, those of an array without gaps; lowering has parameters for them.
    """
    shape = storage_shape(array)
    tags = array.dim_tags or last_fastest(len(shape))
    by_level = sorted((tag.level, axis) for axis, tag in enumerate(tags) if isinstance(tag, Nested))
    strides: dict[int, Expression] = {
        axis: tag.stride for axis, tag in enumerate(tags) if isinstance(tag, Strided)
    }
    inner: list[Expression] = []
    for _, axis in by_level:
        strides[axis] = product(inner)
        inner = [shape[axis], *inner]
    given = [axis for axis, tag in enumerate(tags) if isinstance(tag, GivenStride)]
    reached = [factor for axis in strides for factor in (shape[axis], strides[axis])]
    for axis in reversed(given):
        strides[axis] = product(reached)
        reached = [shape[axis], *reached]
    return tuple(strides[axis] for axis in range(len(shape)))


def swizzles_of(array: ArrayArg | TemporaryVariable) -> tuple[Swizzle, ...]:
    """The swizzles of an array with axes; arguments lie as the caller's arrays do."""
    return array.swizzles if isinstance(array, TemporaryVariable) and array.shape else ()


def swizzled_text(array: ArrayArg | TemporaryVariable) -> str:
    """How the cells of a swizzled array lie: ``[i, j ^ i]``; empty for others."""
    swizzles = swizzles_of(array)
    if not swizzles:
        return ""
    shape = array.shape or ()
    names = [_LETTERS[axis] if axis < len(_LETTERS) else f"i{axis}" for axis in range(len(shape))]
    texts = {s.axis: s.text(names, shape) for s in swizzles}
    return f"[{', '.join(texts.get(axis, name) for axis, name in enumerate(names))}]"


_LETTERS = "ijklmn"
