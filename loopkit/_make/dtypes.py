"""Types that the user gives by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._arrays import Argument, ArrayArg, TemporaryVariable, ValueArg
from loopkit._errors import InvalidArgumentError, UnknownNameError


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


def check_sizes(parameters: Sequence[str], args: Sequence[Argument]) -> None:
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


def check_assumptions(
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
        elif (
            argument is not None and argument.dtype is not None and argument.dtype.kind not in "iu"
        ):
            what = f"of type {argument.dtype}"
        if what:
            raise InvalidArgumentError(
                f"'{name}' is {what}, and assumptions are about sizes",
                instead="what is known of data is said by assertions: assume_within, "
                "assume_injective",
            )
        if name not in mentioned:
            raise UnknownNameError("size", name, sizes, asked="assumptions")


def apply_dtypes(
    dtypes: Mapping[str, Any],
    args: list[Argument],
    temporaries: dict[str, TemporaryVariable],
    inames: Collection[str],
) -> None:
    """Set the types that ``dtypes`` gives; each name must be one of the kernel's."""
    where = {a.name: p for p, a in enumerate(args)}
    for name, dtype in dtypes.items():
        if name in where:
            before = args[where[name]].dtype
            argument = args[where[name]]
            is_given = before is not None and not isinstance(argument, ValueArg)
            if is_given and before != dtype:
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
