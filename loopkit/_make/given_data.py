"""What a user says about data: argument constructors, and the normal form of what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _arrays
from loopkit._arguments import values_of
from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._expression import accesses
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._promotion import as_dtype
from loopkit._spelling import check_expression, check_name, is_name, shown
from loopkit._syntax.expression_parser import parse_expression
from loopkit._syntax.tokens import split_outside_brackets

AUTO = "auto"


@fitting
def GlobalArg(
    name: str,
    dtype: Any = None,
    shape: Any = None,
    *,
    order: str | None = None,
    strides: Any = None,
    dim_tags: Any = None,
    offset: Any = 0,
    is_input: bool | None = None,
    is_output: bool | None = None,
) -> _arrays.ArrayArg:
    """An array argument in global memory.

    :arg name: what the text calls it.
    :arg dtype: what NumPy takes for a type; left out, it is inferred.
    :arg shape: an expression over sizes per axis, as in ``"n, m + 2"``, or ``"auto"`` (also: left
        out) to infer it from the accesses.
    :arg order: ``"C"``, the last axis fastest, or ``"F"``, the first.
    :arg strides: in elements, an expression per axis.
    :arg dim_tags: as of :func:`tag_array_axes`; one of these three is enough.
    :arg offset: elements from where the array begins to its first element.
    :arg is_input: whether a call must pass it; left out, whether it is read before it is written.
    :arg is_output: whether a call returns it; left out, whether it is written.
    :raises InvalidArgumentError: for what is none of that.
    """
    name = check_name(name, "the name of an array")
    extents = as_shape(shape)
    tags = _dim_tags(name, extents, order, strides, dim_tags)
    return _arrays.ArrayArg(
        name,
        None if dtype is None else as_dtype(dtype),
        extents,
        tags,
        as_expression(offset, "an offset"),
        is_input,
        is_output,
    )


@fitting
def ConstantArg(name: str, dtype: Any = None, shape: Any = None, **rest: Any) -> _arrays.ArrayArg:
    """An array argument that is only read.

    ``name``, ``dtype``, ``shape`` and the ``rest`` (``order``, ``strides``, ``dim_tags``,
    ``offset``) are those of :func:`GlobalArg`, and so are the errors raised.
    """
    unknown = sorted(rest.keys() - _REST)
    if unknown:
        raise UnknownNameError("argument of ConstantArg", unknown[0], _REST)
    return replace(GlobalArg(name, dtype, shape, **rest), is_input=True, is_output=False)


_REST = ("order", "strides", "dim_tags", "offset")


def _dim_tags(
    name: str,
    shape: tuple[Expression, ...] | None,
    order: str | None,
    strides: Any,
    dim_tags: Any,
) -> tuple[_arrays.DimTag, ...] | None:
    several = (("order", order), ("strides", strides), ("dim_tags", dim_tags))
    given = [w for w, v in several if not _is_nothing(v)]
    if len(given) > 1:
        raise InvalidArgumentError(f"'{name}' has {' and '.join(given)}: one of them is enough")
    if "strides" in given:
        tags: tuple[_arrays.DimTag, ...] = tuple(
            _arrays.Strided(s) for s in as_shape(strides) or ()
        )
    elif "dim_tags" in given:
        tags = as_dim_tags(dim_tags)
    elif not given or (isinstance(order, str) and order == "C"):
        return None
    elif isinstance(order, str) and order == "F":
        if shape is None:
            raise InvalidArgumentError(
                f"the order of '{name}' is 'F', but its number of axes is not known here",
                instead="give its shape, or default_order='F' to make_kernel",
            )
        return column_major(len(shape))
    else:
        raise InvalidArgumentError(f"an order is 'C' or 'F', not {shown(order)}")
    if shape is not None and len(tags) != len(shape):
        raise InvalidArgumentError(
            f"'{name}' has {len(shape)} axes, but {given[0]} for {len(tags)}"
        )
    return tags


def _is_nothing(value: object) -> bool:
    """Whether an argument was left out, or is empty."""
    return value is None or (isinstance(value, (str, tuple, list)) and not value)


def column_major(axes: int) -> tuple[_arrays.DimTag, ...] | None:
    """The dim tags of an array whose first axis varies fastest; None if they say nothing."""
    return tuple(_arrays.Nested(level) for level in range(axes)) if axes > 1 else None


def as_dim_tags(given: Any) -> tuple[_arrays.DimTag, ...]:
    """Dim tags from ``"N1, N0"``, ``"stride:n, stride:1"``, ``"C"``-like words or tags."""
    if isinstance(given, str):
        given = [part.strip() for part in kind.text("dim_tags", given).split(",")]
    tags: list[_arrays.DimTag] = []
    for tag in kind.items("dim_tags", given, "a tag for each axis"):
        if isinstance(tag, (_arrays.Nested, _arrays.Strided)):
            tags.append(tag)
        elif isinstance(tag, str) and _NESTED.fullmatch(tag):
            tags.append(_arrays.Nested(int(tag[1:])))
        elif isinstance(tag, str) and tag.startswith("stride:"):
            tags.append(_arrays.Strided(as_expression(tag.removeprefix("stride:"), "a stride")))
        else:
            raise InvalidArgumentError(
                f"{shown(tag)} is no dim tag", instead="dim tags are 'N0', 'N1', ... or 'stride:4'"
            )
    return tuple(tags)


_NESTED = re.compile("N[0-9]{1,4}")


def as_expression(given: Any, what: str = "an extent") -> Expression:
    """An integer expression from text, a number or an expression."""
    if kind.is_integer(given):
        return int(given)
    if isinstance(given, str):
        expr = parse_expression(kind.text(what, given))
    elif isinstance(given, prim.ExpressionNode):
        expr = check_expression(given, what)
    else:
        raise kind.unfit(what, "an integer expression such as 'n + 1'", given)
    arrays = sorted({name for name, indices in accesses(expr) if indices})
    if arrays:
        raise InvalidArgumentError(
            f"{what} is an expression over sizes, and cannot hold cells of '{arrays[0]}'"
        )
    return expr


def as_shape(given: Any) -> tuple[Expression, ...] | None:
    """A shape from text, a number, an expression, or a sequence of them; None if automatic."""
    if given is None or (isinstance(given, str) and given == AUTO):
        return None
    if isinstance(given, str):
        given = kind.text("a shape", given)
        pieces = split_outside_brackets(given, 0, len(given), ",")
        texts = [given[start:stop].strip() for start, stop in pieces]
        return tuple(as_expression(t) for t in (texts if texts[-1] else texts[:-1]))
    if isinstance(given, prim.ExpressionNode) or kind.is_integer(given):
        return (as_expression(given),)
    if isinstance(given, (tuple, list)):
        if any(isinstance(g, str) and g == AUTO for g in given):
            return None
        return tuple(as_expression(g) for g in given)
    raise InvalidArgumentError(
        f"{shown(given)} is no shape", instead="a shape is written 'n, m + 2'"
    )


def as_address_space(given: Any) -> _arrays.AddressSpace:
    """An address space from its name, or from the value itself."""
    if given is None:
        return _arrays.AddressSpace.AUTO
    if isinstance(given, _arrays.AddressSpace):
        return given
    try:
        return _arrays.AddressSpace(str(given).lower() if isinstance(given, str) else "")
    except ValueError:
        raise InvalidArgumentError(
            f"{shown(given)} is no address space",
            instead="there are " + ", ".join(f"'{s.value}'" for s in _arrays.AddressSpace),
        ) from None


def normal_argument(given: _arrays.Argument) -> _arrays.Argument:
    """An argument with its type, shape and offset in the form that kernels hold."""
    dtype = None if given.dtype is None else as_dtype(given.dtype)
    if isinstance(given, _arrays.ValueArg):
        return replace(given, dtype=dtype)
    tags = None if given.dim_tags is None else as_dim_tags(given.dim_tags)
    return replace(
        given,
        dtype=dtype,
        shape=as_shape(given.shape),
        dim_tags=tags,
        offset=as_expression(given.offset, "an offset"),
    )


def normal_temporary(given: _arrays.TemporaryVariable) -> _arrays.TemporaryVariable:
    """A temporary in the form that kernels hold; without axes where its shape is to be inferred."""
    if given.base_storage is not None:
        raise InvalidArgumentError(
            f"'{given.name}' cannot be made in the storage '{given.base_storage}': it must be "
            "proven that no value is overwritten there",
            instead="alias_temporaries lays temporaries of a kernel over each other",
        )
    return replace(
        given,
        dtype=None if given.dtype is None else as_dtype(given.dtype),
        shape=as_shape(given.shape) or (),
        address_space=as_address_space(given.address_space),
        dim_tags=None if given.dim_tags is None else as_dim_tags(given.dim_tags),
    )


_DATA = (_arrays.ArrayArg, _arrays.ValueArg, _arrays.TemporaryVariable)


@dataclass
class Given:
    """What ``kernel_data`` says: arguments in order, temporaries, and what is left open.

    ``order`` holds names and, at most once, None for "whatever else there is";
    ``unshaped`` the temporaries whose shape is to be inferred.
    """

    order: list[str | None] = field(default_factory=list)
    arguments: dict[str, _arrays.Argument] = field(default_factory=dict)
    temporaries: dict[str, _arrays.TemporaryVariable] = field(default_factory=dict)
    unshaped: set[str] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Whether arguments that are not named are inferred."""
        return None in self.order


def read_kernel_data(given: Any, temporaries: Any) -> Given:
    """The normal form of ``kernel_data`` and ``temporary_variables``."""
    result = Given()
    if given is None:
        given = ["..."]
    if isinstance(given, (str, *_DATA)) or given is Ellipsis:
        given = [given]
    items: list[Any] = []
    for item in kind.items("kernel_data", given, "a list of arguments and names"):
        if isinstance(item, str):
            items.extend(part.strip() for part in item.split(",") if part.strip())
        else:
            items.append(item)
    if isinstance(temporaries, Mapping):
        temporaries = list(temporaries.values())
    items.extend(values_of("temporary_variables", temporaries, _arrays.TemporaryVariable))
    for item in items:
        if item is Ellipsis or (isinstance(item, str) and item == "..."):
            if not result.is_open:
                result.order.append(None)
            continue
        name = item if isinstance(item, str) else item.name if isinstance(item, _DATA) else ""
        if not is_name(name):
            raise InvalidArgumentError(
                f"{shown(item)} cannot stand in kernel_data",
                instead="it holds arguments, temporary variables, names, and '...'",
            )
        if name in result.order or name in result.temporaries:
            raise InvalidArgumentError(f"kernel_data declares '{name}' twice")
        if isinstance(item, _arrays.TemporaryVariable):
            result.temporaries[name] = normal_temporary(item)
            if as_shape(item.shape) is None:
                result.unshaped.add(name)
            continue
        if isinstance(item, (_arrays.ArrayArg, _arrays.ValueArg)):
            result.arguments[name] = normal_argument(item)
        result.order.append(name)
    return result
