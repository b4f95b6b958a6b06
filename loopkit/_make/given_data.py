"""Arguments and temporaries as the user declares them, and their normal form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _arrays
from loopkit._arguments import names_in, values_of
from loopkit._arrays import AUTO
from loopkit._called import fitting
from loopkit._contents import contents_of
from loopkit._errors import InvalidArgumentError, UnknownNameError, counted
from loopkit._expression import accesses, to_text
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._promotion import as_dtype
from loopkit._spelling import check_declared, check_expression, is_name, shown
from loopkit._syntax.expression_parser import parse_expression
from loopkit._syntax.tokens import split_outside_brackets


@fitting
def GlobalArg(
    name: str,
    dtype: Any = None,
    shape: Any = AUTO,
    order: str | None = None,
    *,
    strides: Any = None,
    dim_tags: Any = None,
    offset: Any = 0,
    is_input: bool | None = None,
    is_output: bool | None = None,
    dim_names: Any = None,
) -> _arrays.ArrayArg:
    """An array argument in global memory.

    :arg name: what the text calls it; ``"a, b"`` declares several that are alike.
    :arg dtype: what NumPy takes for a type; left out, it is inferred.
    :arg shape: an expression over sizes per axis, as in ``"n, m + 2"``, or ``"auto"`` (also: left
        out) to infer it from the accesses. With None, or one for each axis, each is as long as
        that of the array that a call passes: extents are sizes of their own, which the accesses
        bound from below.
    :arg order: ``"C"``, the last axis fastest, or ``"F"``, the first.
    :arg strides: in elements, an expression per axis; ``"auto"`` for one, or for all, is what the
        array of a call has, passed as an argument more.
    :arg dim_tags: as of :func:`tag_array_axes`; one of these three is enough.
    :arg offset: 0, or ``"auto"``: an array that a call passes says itself where it begins.
    :arg is_input: whether a call must pass it; left out, whether it is read before it is written.
    :arg is_output: whether a call returns it; left out, whether it is written.
    :arg dim_names: what its axes are called, as by :func:`set_array_axis_names`.
    :raises InvalidArgumentError: for what is none of that.
    """
    name = check_declared(name, "the name of an array")
    if isinstance(shape, (tuple, list)) and shape and all(extent is None for extent in shape):
        shape = None
    extents = as_shape(shape)
    tags = _dim_tags(name, extents, order, strides, dim_tags)
    return _arrays.ArrayArg(
        name,
        as_open_dtype(dtype),
        OF_THE_CALL if shape is None else extents,
        tags,
        as_offset(offset),
        is_input,
        is_output,
        None if dim_names is None else kind.names("dim_names", dim_names),
    )


OF_THE_CALL: Any = "of the call"
"""In the place of a shape: that of the array that a call passes."""


def _is_of_the_call(shape: object) -> bool:
    return isinstance(shape, str) and shape == OF_THE_CALL


@fitting
def ConstantArg(name: str, dtype: Any = None, shape: Any = AUTO, **rest: Any) -> _arrays.ArrayArg:
    """An array argument that is only read.

    ``name``, ``dtype``, ``shape`` and the ``rest`` (``order``, ``strides``, ``dim_tags``,
    ``offset``, ``dim_names``) are those of :func:`GlobalArg`, and so are the errors raised.
    """
    unknown = sorted(rest.keys() - _REST)
    if unknown:
        raise UnknownNameError("argument of ConstantArg", unknown[0], _REST)
    return replace(GlobalArg(name, dtype, shape, **rest), is_input=True, is_output=False)


_REST = ("order", "strides", "dim_tags", "offset", "dim_names")


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
        if _is_auto(strides):
            return _BY_THE_CALL if shape is None else (_arrays.GivenStride(),) * len(shape)
        tags = _strides(strides)
    elif "dim_tags" in given:
        tags = as_dim_tags(dim_tags)
    elif not given:
        return None
    elif isinstance(order, str) and order in _IN_ORDER:
        is_known = order == "F" and shape is not None
        return column_major(len(shape or ())) if is_known else _IN_ORDER[order]
    else:
        raise InvalidArgumentError(f"an order is 'C' or 'F', not {shown(order)}")
    if shape is not None and len(tags) != len(shape):
        raise InvalidArgumentError(
            f"'{name}' has {counted(len(shape), 'axis', 'axes')}, but {given[0]} for {len(tags)}"
        )
    return tags


_BY_THE_CALL: Any = AUTO
"""In the place of dim tags: all strides are given by the call, however many axes there are."""
_IN_ORDER: Mapping[str, Any] = {"C": "C", "F": "F"}
"""In the place of dim tags: the last axis, or the first, varies fastest, however many there are."""


def _strides(given: Any) -> tuple[_arrays.DimTag, ...]:
    parts = _pieces(given) if isinstance(given, str) else given
    if not isinstance(parts, (tuple, list)):
        parts = (parts,)
    return tuple(map(as_stride, parts))


def as_stride(given: Any) -> _arrays.DimTag:
    """How an axis with a stride lies, ``"auto"`` for that of the caller's array."""
    if _is_auto(given):
        return _arrays.GivenStride()
    return _arrays.Strided(as_expression(given, "a stride"))


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value.strip() == AUTO


def _is_in_order(value: object) -> bool:
    return isinstance(value, str) and value in _IN_ORDER


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
        if isinstance(tag, (_arrays.Nested, _arrays.Strided, _arrays.GivenStride)):
            tags.append(tag)
        elif isinstance(tag, str) and _NESTED.fullmatch(tag):
            tags.append(_arrays.Nested(int(tag[1:])))
        elif isinstance(tag, str) and tag.startswith("stride:"):
            tags.append(as_stride(tag.removeprefix("stride:")))
        else:
            raise InvalidArgumentError(
                f"{shown(tag)} is no dim tag",
                instead="dim tags are 'N0', 'N1', ..., 'stride:4' or 'stride:auto'",
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
        return tuple(map(as_expression, _pieces(kind.text("a shape", given))))
    if isinstance(given, prim.ExpressionNode) or kind.is_integer(given):
        return (as_expression(given),)
    if isinstance(given, (tuple, list)):
        if any(isinstance(g, str) and g == AUTO for g in given):
            return None
        return tuple(as_expression(g) for g in given)
    raise InvalidArgumentError(
        f"{shown(given)} is no shape", instead="a shape is written 'n, m + 2'"
    )


def _pieces(given: str) -> list[str]:
    """The parts of ``"n, m"``, ``"(n, m)"`` or ``"n,"``."""
    given = given.strip()
    if given.startswith("(") and _closing(given) == len(given) - 1:
        given = given[1:-1].strip()
        if not given:
            return []
    pieces = split_outside_brackets(given, 0, len(given), ",")
    texts = [given[start:stop].strip() for start, stop in pieces]
    return texts if texts[-1] else texts[:-1]


def _closing(given: str) -> int:
    """Where the bracket closes that a text begins with; -1 if nowhere."""
    depth = 0
    for place, sign in enumerate(given):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place
    return -1


def as_open_dtype(given: Any) -> Any:
    """A type, or None where it is to be inferred."""
    return None if given is None or (isinstance(given, str) and given == AUTO) else as_dtype(given)


def as_offset(given: Any, what: str = "an offset") -> Expression:
    """Zero, which is all that an offset can be: arrays say themselves where they begin."""
    if given is None or (isinstance(given, str) and given == AUTO):
        return 0
    offset = as_expression(given, what)
    if not (kind.is_integer(offset) and offset == 0):
        raise InvalidArgumentError(
            f"{what} of {to_text(offset)} would skip elements of an array, and an array that a "
            "call passes begins at its first element",
            instead=f"to read from an offset, pass the slice a[3:] or write x[i + 3]; {what} of "
            "'auto' takes the offset from the array",
        )
    return 0


def as_address_space(given: Any) -> _arrays.AddressSpace:
    """An address space from its name, or from the value itself."""
    if given is None or (isinstance(given, str) and given == AUTO):
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
    dtype = as_open_dtype(given.dtype)
    if isinstance(given, _arrays.ValueArg):
        return replace(given, dtype=dtype)
    is_open = given.dim_tags is None or _is_auto(given.dim_tags) or _is_in_order(given.dim_tags)
    tags = None if is_open else as_dim_tags(given.dim_tags)
    return replace(
        given,
        dtype=dtype,
        shape=as_shape(given.shape),
        dim_tags=tags,
        offset=as_offset(given.offset),
    )


def table_of(given: _arrays.TemporaryVariable) -> _arrays.ConstantTable:
    """The table of constants that a declaration with an initializer means."""
    name, dtype = given.name, as_open_dtype(given.dtype)
    contents = contents_of(given.initializer, name, dtype)
    shape = as_shape(given.shape)
    if shape and shape != contents.shape:
        raise InvalidArgumentError(
            f"the shape of '{name}' is ({', '.join(map(to_text, shape))}), but its initializer "
            f"has the shape {contents.shape}",
            instead="leave the shape out",
        )
    if as_address_space(given.address_space) not in (
        _arrays.AddressSpace.AUTO,
        _arrays.AddressSpace.GLOBAL,
        _arrays.AddressSpace.PRIVATE,  # constants are the same for each thread
    ):
        raise InvalidArgumentError(
            f"'{name}' is a table of constants, which is in global memory",
            instead="add_prefetch copies it to where it is needed",
        )
    if given.dim_tags is not None or given.base_storage is not None:
        raise InvalidArgumentError(f"the layout of the table '{name}' is that of its initializer")
    return _arrays.ConstantTable(
        name,
        contents.dtype,
        contents.shape,
        is_input=False,
        is_output=False,
        dim_names=given.dim_names,
        contents=contents,
    )


def normal_temporary(given: _arrays.TemporaryVariable) -> _arrays.TemporaryVariable:
    """A temporary in the form that kernels hold; without axes where its shape is to be inferred."""
    if given.base_storage is not None:
        raise InvalidArgumentError(
            f"'{given.name}' cannot be made in the storage '{given.base_storage}': it must be "
            "proven that no value is overwritten there",
            instead="alias_temporaries lets temporaries of a kernel share memory",
        )
    tags = None if given.dim_tags is None else as_dim_tags(given.dim_tags)
    if any(isinstance(tag, _arrays.GivenStride) for tag in tags or ()):
        raise InvalidArgumentError(
            f"the strides of '{given.name}' cannot be those of a call's array: it is a temporary"
        )
    return replace(
        given,
        dtype=as_open_dtype(given.dtype),
        shape=as_shape(given.shape) or (),
        address_space=as_address_space(given.address_space),
        dim_tags=tags,
    )


_DATA = (_arrays.ArrayArg, _arrays.ValueArg, _arrays.TemporaryVariable)


@dataclass
class Given:
    """What ``kernel_data`` says: arguments in order, temporaries, and what is left open.

    ``order`` holds names and, at most once, None for "whatever else there is";
    ``unshaped`` the temporaries whose shape is to be inferred, ``of_the_call`` the arrays whose
    shape is that of the caller's, ``strided`` those of which all strides are.  ``layouts`` are
    orders, ``"C"`` or ``"F"``, of the arrays that say one.
    """

    order: list[str | None] = field(default_factory=list)
    arguments: dict[str, _arrays.Argument] = field(default_factory=dict)
    temporaries: dict[str, _arrays.TemporaryVariable] = field(default_factory=dict)
    unshaped: set[str] = field(default_factory=set)
    of_the_call: set[str] = field(default_factory=set)
    strided: set[str] = field(default_factory=set)
    layouts: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """All names in it."""
        return {*self.arguments, *self.temporaries, *(n for n in self.order if n is not None)}

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
        elif isinstance(item, _DATA):
            items.extend(replace(item, name=name) for name in names_in(item.name))
        else:
            items.append(item)
    if isinstance(temporaries, Mapping):
        temporaries = list(temporaries.values())
    for item in values_of("temporary_variables", temporaries, _arrays.TemporaryVariable):
        items.extend(replace(item, name=name) for name in names_in(item.name))
    for item in items:
        if item is Ellipsis or (isinstance(item, str) and item == "..."):
            if not result.is_open:
                result.order.append(None)
            continue
        name = item if isinstance(item, str) else item.name if isinstance(item, _DATA) else ""
        if not is_name(name):
            raise InvalidArgumentError(
                f"{shown(item)} is not allowed in kernel_data",
                instead="it holds arguments, temporary variables, names, and '...'",
            )
        if name in result.order or name in result.temporaries:
            raise InvalidArgumentError(f"kernel_data declares '{name}' twice")
        if isinstance(item, _arrays.TemporaryVariable):
            if item.initializer is None:
                result.temporaries[name] = normal_temporary(item)
                if as_shape(item.shape) is None:
                    result.unshaped.add(name)
                continue
            result.arguments[name] = table_of(item)
        elif isinstance(item, (_arrays.ArrayArg, _arrays.ValueArg)):
            if isinstance(item, _arrays.ArrayArg):
                if _is_of_the_call(item.shape):
                    item = replace(item, shape=None)
                    result.of_the_call.add(name)
                if _is_auto(item.dim_tags):
                    result.strided.add(name)
                elif _is_in_order(item.dim_tags):
                    result.layouts[name] = str(item.dim_tags)
            result.arguments[name] = normal_argument(item)
        result.order.append(name)
    return result
