"""Types that the user gives by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopkit._arrays import Argument, ArrayArg, TemporaryVariable, ValueArg
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._types import as_dtype


def read_dtypes(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """``{"a, b": "float32"}`` as ``{"a": float32, "b": float32}``."""
    result = {}
    for names, dtype in (given or {}).items():
        for name in names.split(","):
            if name.strip():
                result[name.strip()] = as_dtype(dtype)
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
