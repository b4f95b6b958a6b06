"""Kernels that can be called from other kernels, and the renaming of their text for a caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pymbolic.primitives as prim

from loopkit._arrays import ArrayArg, ConstantTable, TemporaryVariable, ValueArg
from loopkit._device_functions import OwnFunction, called_by
from loopkit._errors import InvalidArgumentError, ParseError, SourcePosition, nearest
from loopkit._expression import Mapped, index_tuple, mapped, nodes_of, substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._make.domain_factors import Domains
from loopkit._make.operation import ReductionOperation
from loopkit._make.text_names import expressions_of, with_expressions
from loopkit._nodes import Expression, SubArray
from loopkit._syntax.items import RawAssignment, RawItem, RawSubstitution


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """A kernel that other texts may call: :func:`loopkit.make_function` makes one.

    ``kernel`` is what it is by itself; ``items`` and ``domains`` are its text.
    """

    name: str
    items: tuple[RawItem, ...]
    domains: Domains
    kernel: Kernel
    temporaries: tuple[TemporaryVariable, ...] = ()
    reductions: tuple[ReductionOperation, ...] = ()
    functions: tuple[OwnFunction, ...] = ()

    @property
    def results(self) -> tuple[ArrayArg, ...]:
        """The arrays that it writes, in order."""
        arrays = (a for a in self.kernel.args if isinstance(a, ArrayArg))
        return tuple(a for a in arrays if a.name in self.kernel.writers)

    @property
    def parameters(self) -> tuple[ArrayArg | ValueArg, ...]:
        """The arguments of a call: the arrays that it reads, and values, sizes among them."""
        return tuple(
            a for a in self.kernel.args if isinstance(a, ValueArg) or a.is_input is not False
        )

    @property
    def tables(self) -> tuple[ConstantTable, ...]:
        """Its tables of constants, which it brings to whoever calls it."""
        return tuple(a for a in self.kernel.args if isinstance(a, ConstantTable))

    @property
    def given_sizes(self) -> frozenset[str]:
        """Sizes that are extents of arrays, so that the parts in a call determine them."""
        arrays = (a for a in self.kernel.args if isinstance(a, ArrayArg))
        extents_ = [e for a in arrays for e in a.shape or ()]
        names = {e.name for e in extents_ if isinstance(e, prim.Variable)}
        return frozenset(names.intersection(self.kernel.sizes))

    def __str__(self) -> str:
        inside = ", ".join(a.name for a in self.parameters)
        return f"{self.name}({inside}) -> {', '.join(a.name for a in self.results)}"


def calls_in(items: Iterable[RawItem], names: Iterable[str]) -> Iterator[str]:
    """The names of functions that are called as an instruction of their own with parts of arrays,
    or that are among ``names``."""
    known = frozenset(names)
    for item in items:
        if not isinstance(item, RawAssignment) or not isinstance(item.rhs, prim.Call):
            continue
        if item.rhs.function.name in known or (":" in item.text and _parts_in(item)):
            yield item.rhs.function.name


class MissingFunctionError(ParseError):
    """A text calls the function ``name`` with parts of arrays, and does not know it."""

    def __init__(self, name: str, position: SourcePosition, known: Iterable[str]) -> None:
        super().__init__(
            f"there is no function '{name}' that takes parts of arrays",
            position=position,
            instead=nearest(name, known, _USAGE),
        )
        self.name = name


_USAGE = (
    "[i]: y[i] = f([j]: x[j]) calls what make_function has made: make_kernel(..., functions=[f]), "
    "or merge([kernel, f])"
)


def check_no_parts(items: Iterable[RawItem], known: Iterable[str] = ()) -> None:
    """Raise where a part of an array stands in what is no call of a function, of the ``known``.

    Such a call is an instruction, and no part of an expression or a rule.
    """
    items = list(items)
    apart = frozenset(known) - {i.name for i in items if isinstance(i, RawSubstitution)}
    for item in items:
        for name in _called_in(item) & apart if apart else ():
            raise ParseError(
                f"'{name}' is a kernel that is called by an instruction, and no part of an "
                "expression",
                position=item.position,
                instead=_USAGE,
            )
        if isinstance(item, RawAssignment) and ":" in item.text and _parts_in(item):
            name = item.rhs.function.name if isinstance(item.rhs, prim.Call) else ""
            if not name:
                raise ParseError(
                    "a part of an array is given to a function alone",
                    position=item.position,
                    instead=_USAGE,
                )
            raise MissingFunctionError(name, item.position, known)


def _parts_in(item: RawAssignment) -> bool:
    return any(isinstance(node, SubArray) for e in expressions_of(item) for node in nodes_of(e))


def _called_in(item: RawItem) -> frozenset[str]:
    """The functions that expressions of an item call."""
    nodes = (node for e in expressions_of(item) for node in nodes_of(e))
    return frozenset(node.function.name for node in nodes if isinstance(node, prim.Call))


def check_together(drafts: Iterable[Any], own: Iterable[str]) -> None:
    """All statements of a call are in the same loops, but for the ``own`` ones of functions.

    Scalars that a call uses may be in more loops than its text says.
    """
    inside: dict[Any, frozenset[str]] = {}
    mine = frozenset(own)
    for draft in drafts:
        if not called_by(draft.item.tags):
            continue
        at = draft.item.position.line, draft.item.position.column
        around = draft.inames - mine
        if inside.setdefault(at, around) != around:
            apart = min(inside[at] ^ around)
            raise ParseError(
                f"some of the calls here are inside the loop over '{apart}', and others are not",
                position=draft.item.position,
                instead=f"put 'for {apart}' around the call",
            )


def check_dtypes(kernel: Kernel, due: Iterable[tuple[str, Any, str]]) -> None:
    """Arrays that are given to functions have the types that these declare."""
    for name, dtype, function in due:
        found = kernel.array(name).dtype
        if found != dtype:
            raise InvalidArgumentError(
                f"'{name}' is {found or 'untyped'}, and '{function}' takes {dtype}",
                instead="a function without dtypes= takes arrays of any type",
            )


@dataclass(frozen=True)
class Parts:
    """The caller's parts of arrays, values and names for the names of a function."""

    arrays: Mapping[str, Any]
    values: Mapping[str, Expression]
    names: Mapping[str, str]


def in_names_of_caller(item: RawItem, parts: Parts, fresh: Callable[[str], str]) -> RawItem:
    """An item of a function in the caller's names; ``fresh`` makes new names."""
    bound: dict[str, str] = {}
    if isinstance(item, RawSubstitution):
        # What a part of an array says could hold a name like that of a rule's argument.
        bound = {name: fresh(name) for name in item.arguments}
    names = {**parts.names, **bound}

    def variable(expr: prim.Variable, inside: Mapped) -> Expression:
        if expr.name not in bound:
            if expr.name in parts.values:
                return parts.values[expr.name]
            if expr.name in parts.arrays:
                return _element(parts.arrays[expr.name], ())
        return prim.Variable(names.get(expr.name, expr.name))

    def subscript(expr: prim.Subscript, inside: Mapped) -> Expression:
        indices = tuple(map(inside, index_tuple(expr)))
        name = expr.aggregate.name
        if name in parts.arrays:
            return _element(parts.arrays[name], indices)
        return prim.Subscript(prim.Variable(names.get(name, name)), indices)

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        name = expr.function.name
        function = prim.Variable(parts.names[name]) if name in parts.names else expr.function
        return prim.Call(function, tuple(map(inside, expr.parameters)))

    # Reductions are still calls.
    rules = partial(mapped, variable=variable, subscript=subscript, call=call)
    found = with_expressions(item, rules)
    if isinstance(found, RawSubstitution):
        return replace(found, name=parts.names[found.name], arguments=tuple(bound.values()))
    return found


def _element(given: Any, indices: tuple[Expression, ...]) -> Expression:
    if not isinstance(given, SubArray):
        return given
    return substitute(given.subscript, dict(zip(given.inames, indices, strict=True)))
