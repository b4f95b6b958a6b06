"""The arguments of a kernel: those that were declared, and those that its text implies; types."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._arrays import Argument, ArrayArg, TemporaryVariable, ValueArg
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    SourcePosition,
    UnknownNameError,
    caret_at,
)
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import guarded_reads
from loopkit._kernel import Domain, Statement
from loopkit._make.domain_factors import Domains
from loopkit._make.free_names import names_beside_inames, names_in_values
from loopkit._make.given_data import Given, column_major
from loopkit._nodes import Expression
from loopkit._promotion import INT32
from loopkit._syntax.condition_parser import NO_NUMBERS

PositionOf = Callable[[str], SourcePosition | None]


@dataclass(frozen=True, eq=False)
class Access:
    """One access: a statement, indices, and the conditions under which it happens."""

    statement: Statement
    indices: tuple[Expression, ...]
    guards: tuple[Expression, ...] = ()


@dataclass
class Uses:
    """How names are used: with how many indices, in what, and by which statement written first."""

    axes: dict[str, int] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    in_indices: set[str] = field(default_factory=set)
    in_values: set[str] = field(default_factory=set)
    beside_inames: set[str] = field(default_factory=set)
    accesses: dict[str, list[Access]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        indices: tuple[Expression, ...],
        guards: tuple[Expression, ...],
        statement: Statement,
    ) -> None:
        """Record one access."""
        known = self.axes.get(name)
        if known is None:
            self.axes[name] = len(indices)
        elif known != len(indices):
            raise InvalidArgumentError(
                f"'{name}' is used with {known} and with {len(indices)} indices",
                asked=caret_at(statement.position),
                instead="an array is always used with all its indices",
            )
        self.accesses.setdefault(name, []).append(Access(statement, indices, guards))
        for index in indices:
            self.in_indices |= variable_names(index)


def find_uses(statements: Iterable[Statement], inames: Collection[str]) -> Uses:
    """All uses of names other than inames, in order of execution; rules are expanded already."""
    uses = Uses()
    for statement in statements:
        for name, indices, guards in guarded_reads(statement, affinely=True):
            if name not in inames:
                uses.add(name, indices, guards, statement)
        uses.in_values |= names_in_values(statement)
        uses.beside_inames |= names_beside_inames(statement, inames)
        name, indices = statement.write
        uses.add(name, indices, statement.predicates, statement)
        uses.written.setdefault(name, statement.id)
    return uses


def make_arguments(
    given: Given,
    uses: Uses,
    domains: Domains,
    known: Domain,
    temporaries: dict[str, TemporaryVariable],
    dtypes: Mapping[str, Any],
    position_of: PositionOf,
    default_order: str,
    default_offset: Any,
) -> list[Argument]:
    """All arguments in their order, with the types that ``dtypes`` gives; shapes may be missing.

    Sets the types of temporaries, too.  ``known`` is what the assumptions say.
    """
    inames = frozenset(domains.inames)
    _check_declared(given, inames, temporaries)
    tiles = {n for t in temporaries.values() for s in t.shape for n in variable_names(s)}
    used = known.parameters.union(*(d.parameters for d in domains.domains))
    sizes = [*domains.parameters, *sorted(used.difference(domains.parameters))]
    args = _in_order(
        given,
        uses,
        [s for s in sizes if s not in temporaries and s not in inames],
        inames,
        temporaries,
        position_of,
        default_order,
        default_offset,
        {*dtypes, *tiles},
    )
    _apply_dtypes(dtypes, args, temporaries, inames)
    _check_sizes(domains.parameters, args)
    mentioned = {*domains.parameters, *uses.axes, *uses.in_indices, *tiles}
    mentioned.update(n for n in given.order if n is not None)
    _check_assumptions(known.parameters, args, temporaries, inames, mentioned)
    return args


def _check_declared(given: Given, inames: Collection[str], temporaries: Collection[str]) -> None:
    """Refuse arguments and temporaries that are something else as well."""
    for name in filter(None, given.order):
        what = "an iname" if name in inames else "a temporary" if name in temporaries else ""
        if what:
            raise InvalidArgumentError(f"'{name}' is {what} and cannot be an argument as well")
    for name in given.temporaries:
        if name in inames:
            raise InvalidArgumentError(f"'{name}' is an iname and cannot be a temporary as well")


def _in_order(
    given: Given,
    uses: Uses,
    sizes: Sequence[str],
    inames: Collection[str],
    temporaries: Collection[str],
    position_of: PositionOf,
    default_order: str,
    default_offset: Any,
    declared: Collection[str] = (),
) -> list[Argument]:
    """The arguments that were declared, and in place of ``...`` those that the text implies.

    ``declared`` are names that the user mentions elsewhere, by their types say.
    What is inferred stands in the order of sizes, other values, arrays that are
    only read, arrays that are written; each by first appearance.
    """
    mentioned = [n for a in given.arguments.values() for n in _names_of_data(a)]
    used = dict.fromkeys([*sizes, *uses.axes, *mentioned])
    unexplained = uses.in_indices.difference(sizes, declared, mentioned)
    uses.in_indices.update(mentioned)
    for name, argument in given.arguments.items():
        _check_use(name, argument, uses)
    missing = [n for n in used if n not in given.order and n not in temporaries]
    if missing and not given.is_open:
        declared_names = [n for n in given.order if n]
        raise UnknownNameError(
            "variable",
            missing[0],
            [*declared_names, *temporaries, *inames],
            position=position_of(missing[0]),
            asked=f"kernel_data declares {', '.join(declared_names)}, "
            "and has no '...' for what is to be inferred",
        )
    for name in missing:
        known = [*inames, *sizes, *mentioned]
        _check_inferred(name, name in unexplained, inames, known, uses, position_of)
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
            return _with_defaults(argument, uses, default_order, default_offset)
        is_open = argument.dtype is None and name in are_sizes
        return replace(argument, dtype=INT32) if is_open else argument

    inferred = sorted(missing, key=rank)
    names = [n for name in given.order for n in (inferred if name is None else [name])]
    return [made(name) for name in names]


def _names_of_data(argument: Argument) -> list[str]:
    """The names in an argument's declaration, in its order."""
    if not isinstance(argument, ArrayArg):
        return []
    parts = (*(argument.shape or ()), argument.offset)
    return [name for part in parts for name in sorted(variable_names(part))]


def _check_inferred(
    name: str,
    is_unexplained: bool,
    inames: Collection[str],
    known: Collection[str],
    uses: Uses,
    position_of: PositionOf,
) -> None:
    """Refuse what is a slip rather than an argument.

    A value that stands in subscripts, and in no domain, assumption, shape or
    declaration, has no bounds: it is a misspelt iname where it stands nowhere
    else, or reads like one.
    """
    if name in uses.written or uses.axes.get(name):
        return
    position = position_of(name)
    if name.lower() in NO_NUMBERS:
        raise ParseError(
            f"there is no constant '{name}'",
            position=position,
            instead="a number is written in digits; an argument of that name is declared: "
            f"kernel_data=[ValueArg('{name}'), ...]",
        )
    is_near = bool(difflib.get_close_matches(name, inames, n=1))
    if is_unexplained and (is_near or name not in uses.in_values):
        raise UnknownNameError(
            "size or iname",
            name,
            known,
            position=position,
            asked=f"'{name}' stands in subscripts, and in no domain, assumption or shape",
        )


def is_integer(argument: Argument) -> bool:
    """Whether an argument is an integer value: what bounds and shapes may use."""
    if not isinstance(argument, ValueArg) or argument.dtype is None:
        return False
    return argument.dtype.kind in "iu"


def _with_defaults(
    argument: ArrayArg, uses: Uses, default_order: str, default_offset: Any
) -> ArrayArg:
    axes = uses.axes.get(argument.name, len(argument.shape or ()))
    if argument.dim_tags is None and default_order == "F":
        argument = replace(argument, dim_tags=column_major(axes))
    if isinstance(argument.offset, int) and argument.offset == 0:
        argument = replace(argument, offset=default_offset)
    if argument.shape is None and axes == 0:
        argument = replace(argument, shape=())
    return argument


def other_axes(name: str, declared: int, used: int) -> InvalidArgumentError:
    """The error of an array that is used otherwise than it was declared."""
    return InvalidArgumentError(
        f"'{name}' is declared with {declared} axes, but used with {used} indices"
    )


def _check_use(name: str, argument: Argument, uses: Uses) -> None:
    axes = uses.axes.get(name)
    if axes is None:
        return
    if isinstance(argument, ValueArg):
        if axes:
            raise InvalidArgumentError(
                f"'{name}' is declared as a value, but used with {axes} indices",
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
            f"'{name}' is declared with strides or tags of {len(argument.dim_tags)} axes, "
            f"but used with {axes} indices"
        )


# {{{ types


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


def _check_assumptions(
    names: Collection[str],
    args: Sequence[Argument],
    temporaries: Collection[str],
    inames: Collection[str],
    mentioned: Collection[str],
) -> None:
    """Assumptions are about sizes: integer arguments that something else mentions, too."""
    by_name = {a.name: a for a in args}
    sizes = [n for n in mentioned if isinstance(by_name.get(n), ValueArg)]
    for name in sorted(names):
        argument = by_name.get(name)
        what = "an iname" if name in inames else "a temporary" if name in temporaries else ""
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


def _apply_dtypes(
    dtypes: Mapping[str, Any],
    args: list[Argument],
    temporaries: dict[str, TemporaryVariable],
    inames: Collection[str],
) -> None:
    """Set the types that ``dtypes`` gives; each name must be one of the kernel's."""
    where = {a.name: p for p, a in enumerate(args)}
    for name, dtype in dtypes.items():
        if name in where:
            argument = args[where[name]]
            before = None if isinstance(argument, ValueArg) else argument.dtype
            if before is not None and before != dtype:
                raise InvalidArgumentError(f"'{name}' is declared as {before}, dtypes says {dtype}")
            args[where[name]] = replace(argument, dtype=dtype)
        elif name in temporaries:
            temporaries[name] = replace(temporaries[name], dtype=dtype)
        elif name in inames:
            raise InvalidArgumentError(
                f"'{name}' is an iname: its type follows from its range",
                instead="code generation takes 64 bits where 32 do not suffice",
            )
        else:
            raise UnknownNameError("variable", name, [*where, *temporaries], asked="dtypes")


# }}}
