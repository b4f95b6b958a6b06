"""The arguments of a kernel, declared or implied by its text, and their types."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._arrays import (
    Argument,
    ArrayArg,
    ConstantTable,
    GivenStride,
    ValueArg,
    expressions_of,
)
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    UnknownNameError,
    counted,
)
from loopkit._expression import names_outside_accesses, variable_names
from loopkit._guarded import guarded_reads
from loopkit._make.free_names import names_beside_inames
from loopkit._make.given_data import column_major
from loopkit._make.making import Making, Use, Uses
from loopkit._promotion import INT32
from loopkit._syntax.condition_parser import NO_NUMBERS

_CONSTANT = re.compile(
    r"M_(LOG(2|10)E|LN(2|10)|PI_[24]|[12]_PI|2_SQRTPI|SQRT2|SQRT1_2)|HUGE_VALF?|CUDART_\w+"
    r"|(FLT|DBL|U?(CHAR|SHRT|INT|LONG|LLONG)|U?INT\d+|SIZE)_(MAX|MIN|EPSILON|BIT)"
)
"""What the headers of C and CUDA call constants."""


def find_uses(making: Making) -> None:
    """Find all uses of names other than inames, in order of execution."""
    making.uses = uses = Uses()
    inames = making.inames.order
    for statement in making.expanded.statements:
        for name, indices, guards in guarded_reads(statement, affinely=True):
            if name not in inames:
                uses.add(Use(statement, name, indices, guards))
        values = (*statement.predicates, statement.rhs)
        uses.in_values.update(*map(names_outside_accesses, values))
        uses.beside_inames |= names_beside_inames(statement, inames)
        uses.add(Use(statement, *statement.write, statement.predicates))
        uses.written.setdefault(statement.written, statement.id)


def find_arguments(making: Making) -> None:
    """Find all arguments in their order, with types from ``dtypes``; shapes may be missing.

    Sets the types of temporaries, too.  Where the proof of bounds is owed, sizes need no
    declaration beside those of other arguments: :func:`fix_parameters` may still make them numbers.
    """
    making.args = _ArgumentMaker(making).arguments()


class _ArgumentMaker:
    """Makes the arguments of a kernel from what was declared and from how names are used."""

    def __init__(self, making: Making) -> None:
        self.making = making
        self.given = making.given
        self.uses = making.uses
        self.domains = making.domains
        self.known = making.known
        self.temporaries = making.temporaries
        self.dtypes = making.dtypes

    def arguments(self) -> list[Argument]:
        """All arguments in their order."""
        parameters = self.domains.parameters
        for name in (*filter(None, self.given.order), *self.given.temporaries):
            what = self._kind_of(name)
            if what == "an iname" or (what and name in self.given.order):
                other = "an argument" if name in self.given.order else "a temporary"
                raise InvalidArgumentError(f"'{name}' is {what} and cannot be {other} as well")
        tiles = {n for t in self.temporaries.values() for s in t.shape for n in variable_names(s)}
        used = self.known.parameters.union(*(d.parameters for d in self.domains.domains))
        sizes = [*parameters, *sorted(used.difference(parameters))]
        args = self._in_order([s for s in sizes if not self._kind_of(s)], {*self.dtypes, *tiles})
        self._apply_dtypes(args)
        _check_sizes(parameters, args)
        self._check_assumptions(args, {*parameters, *self.uses.axes, *self.uses.in_indices, *tiles})
        return args

    def _kind_of(self, name: str) -> str:
        """What a name is that is no argument; empty where it may be one."""
        if name in self.domains.inames:
            return "an iname"
        return "a temporary" if name in self.temporaries else ""

    def _in_order(self, sizes: Sequence[str], declared: Collection[str]) -> list[Argument]:
        """The arguments that were declared, and in place of ``...`` those that the text implies.

        ``declared`` are names that the user mentions elsewhere, by their types say.
        What is inferred stands in the order of sizes, other values, arrays that are
        only read, arrays that are written; each by first appearance.
        """
        given, uses = self.given, self.uses
        mentioned = [n for a in given.arguments.values() for n in _names_of_data(a)]
        used = dict.fromkeys([*sizes, *uses.axes, *mentioned])
        unexplained = uses.in_indices.difference(sizes, declared, mentioned)
        uses.in_indices.update(mentioned)
        for argument in given.arguments.values():
            _check_use(argument, uses)
        there = {*given.order, *self.temporaries, *self.making.fixed}
        missing = [n for n in used if n not in there]
        needed = [n for n in missing if not (self.making.owes_bounds and n in sizes)]
        if needed and not given.is_open:
            names = [n for n in given.order if n]
            raise UnknownNameError(
                "variable",
                needed[0],
                [*names, *self.temporaries, *self.domains.inames],
                position=self.making.position_of(needed[0]),
                asked=f"kernel_data declares {', '.join(names)}, "
                "and has no '...' for what is to be inferred",
            )
        for name in missing:
            if name not in uses.written and not uses.axes.get(name):
                self._check_inferred(name, name in unexplained, [*sizes, *mentioned])
        are_sizes = uses.in_indices.union(sizes, uses.beside_inames)

        def rank(name: str) -> int:
            if name in uses.written:
                return 3
            return 2 if uses.axes.get(name) else 0 if name in are_sizes else 1

        def made(name: str) -> Argument:
            argument = given.arguments.get(name)
            if argument is None:
                is_array = uses.axes.get(name) or name in uses.written
                argument = ArrayArg(name) if is_array else ValueArg(name)
            if isinstance(argument, ArrayArg):
                is_table = isinstance(argument, ConstantTable)
                return argument if is_table else self._with_defaults(argument)
            is_open = argument.dtype is None and name in are_sizes
            return replace(argument, dtype=INT32) if is_open else argument

        inferred = sorted(missing, key=rank)
        order = given.order if given.is_open else (*given.order, None)
        return [made(n) for name in order for n in (inferred if name is None else [name])]

    def _check_inferred(self, name: str, is_unexplained: bool, known: Sequence[str]) -> None:
        """Refuse a value that is a slip rather than an argument.

        One that stands in subscripts, and in no domain, assumption, shape or declaration,
        has no bounds: it is a misspelt iname where it stands nowhere else, or reads like one.
        """
        inames = self.domains.inames
        if name.lower() in NO_NUMBERS or _CONSTANT.fullmatch(name):
            raise ParseError(
                f"there is no constant '{name}'",
                position=self.making.position_of(name),
                instead="there are inf, nan, M_PI and M_E, and others are numbers, such as "
                "3.4028235e38; an argument is declared: "
                f"kernel_data=[ValueArg('{name}'), ...]",
            )
        is_near = bool(difflib.get_close_matches(name, inames, n=1))
        may_be_told_later = self.making.owes_bounds or name in self.uses.in_values
        if is_unexplained and (is_near or not may_be_told_later):
            raise UnknownNameError(
                "size or iname",
                name,
                [*inames, *known],
                position=self.making.position_of(name),
                asked=f"'{name}' is used in subscripts, but is in no domain, assumption or shape, "
                "and is not declared",
            )

    def _with_defaults(self, argument: ArrayArg) -> ArrayArg:
        axes = self.uses.axes.get(argument.name, len(argument.shape or ()))
        if argument.name in self.given.strided:
            argument = replace(argument, dim_tags=(GivenStride(),) * axes or None)
        elif argument.dim_tags is None and self._order_of(argument.name) == "F":
            argument = replace(argument, dim_tags=column_major(axes))
        if argument.shape is None and axes == 0:
            argument = replace(argument, shape=())
        return argument

    def _order_of(self, name: str) -> str:
        return self.given.layouts.get(name, self.making.default_order)

    def _check_assumptions(self, args: Sequence[Argument], used: Collection[str]) -> None:
        """Assumptions are about sizes: integer arguments that something else mentions, too."""
        mentioned = {*used, *filter(None, self.given.order)}
        by_name = {a.name: a for a in args}
        sizes = [n for n in mentioned if isinstance(by_name.get(n), ValueArg)]
        for name in sorted(self.known.parameters):
            argument = by_name.get(name)
            what = self._kind_of(name)
            if isinstance(argument, ArrayArg):
                what = "an array"
            elif argument is not None and argument.dtype is not None and not is_integer(argument):
                what = f"of type {argument.dtype}"
            if what:
                raise InvalidArgumentError(
                    f"'{name}' is {what}, and assumptions are about sizes",
                    instead="what is known of data is said by assertions: assume_within, "
                    "assume_injective",
                )
            if name not in mentioned:
                raise UnknownNameError("size", name, sizes, asked="assumptions")

    def _apply_dtypes(self, args: list[Argument]) -> None:
        """Set the types that ``dtypes`` gives; each name must be one of the kernel's."""
        where = {a.name: p for p, a in enumerate(args)}
        for name, dtype in self.dtypes.items():
            if name in where:
                argument = args[where[name]]
                before = None if isinstance(argument, ValueArg) else argument.dtype
                if before is not None and before != dtype:
                    why = f"'{name}' is declared as {before}, dtypes says {dtype}"
                    raise InvalidArgumentError(why)
                args[where[name]] = replace(argument, dtype=dtype)
            elif name in self.temporaries:
                self.temporaries[name] = replace(self.temporaries[name], dtype=dtype)
            elif name in self.domains.inames:
                raise InvalidArgumentError(
                    f"'{name}' is an iname: its type follows from its range",
                    instead="code generation takes 64 bits where 32 do not suffice",
                )
            else:
                known = [*where, *self.temporaries]
                raise UnknownNameError("variable", name, known, asked="dtypes")


def _names_of_data(argument: Argument) -> list[str]:
    """The names in an argument's declaration, in its order."""
    parts = expressions_of(argument) if isinstance(argument, ArrayArg) else ()
    return [name for part in parts for name in sorted(variable_names(part))]


def is_integer(argument: Argument) -> bool:
    """Whether an argument is an integer value: what bounds and shapes may use."""
    if not isinstance(argument, ValueArg) or argument.dtype is None:
        return False
    return argument.dtype.kind in "iu"


def other_axes(name: str, declared: int, used: int) -> InvalidArgumentError:
    """The error of an array that is used otherwise than it was declared."""
    return InvalidArgumentError(
        f"'{name}' is declared with {counted(declared, 'axis', 'axes')}, "
        f"but used with {counted(used, 'index', 'indices')}"
    )


def _check_use(argument: Argument, uses: Uses) -> None:
    name = argument.name
    axes = uses.axes.get(name)
    if axes is None:
        return
    if isinstance(argument, ValueArg):
        if axes:
            raise InvalidArgumentError(
                f"'{name}' is declared as a value, but used with "
                f"{counted(axes, 'index', 'indices')}",
                instead=f"declare it as GlobalArg('{name}', ...)",
            )
        if name in uses.written:
            raise InvalidArgumentError(
                f"'{name}' is declared as a value, but statement '{uses.written[name]}' writes it",
                instead=f"values are only read; declare it as GlobalArg('{name}', shape=())",
            )
    elif argument.shape is not None and len(argument.shape) != axes:
        raise other_axes(name, len(argument.shape), axes)
    elif argument.dim_tags is not None and len(argument.dim_tags) != axes:
        raise InvalidArgumentError(
            f"'{name}' is declared with strides or tags of "
            f"{counted(len(argument.dim_tags), 'axis', 'axes')}, "
            f"but used with {counted(axes, 'index', 'indices')}"
        )


def read_dtypes(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """``{"a, b": "float32"}`` as ``{"a": float32, "b": float32}``."""
    if given is None:
        return {}
    result: dict[str, Any] = {}
    for names, dtype in kind.dtypes_by_name("dtypes", given).items():
        if dtype is None:
            raise InvalidArgumentError(f"dtypes gives '{names}' no type")
        for name in names_in(names):
            if result.setdefault(name, dtype) != dtype:
                raise InvalidArgumentError(
                    f"dtypes says of '{name}' both {result[name]} and {dtype}"
                )
    return result


def _check_sizes(parameters: Sequence[str], args: Sequence[Argument]) -> None:
    """What a domain uses is an integer."""
    for argument in args:
        if argument.name not in parameters:
            continue
        if isinstance(argument, ArrayArg):
            raise InvalidArgumentError(
                f"'{argument.name}' is a parameter of a domain, but declared as an array",
                instead=f"declare it as ValueArg('{argument.name}'), or load it into a temporary: "
                f"'<> {argument.name} = ...'",
            )
        if argument.dtype is not None and argument.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"'{argument.name}' is a parameter of a domain, but of type {argument.dtype}",
                instead="sizes are integers",
            )
