"""What is known about sizes and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import Argument, ArrayArg, Strided, TemporaryVariable, ValueArg
from loopkit._assertions import map_bounds
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError
from loopkit._expression import ExpressionMapper, is_constant, substitute, variable_names
from loopkit._kernel import Domain, Kernel, SubstitutionRule
from loopkit._make import check_types, infer_known_types, infer_types
from loopkit._nodes import Expression
from loopkit._promotion import as_dtype, dtype_name
from loopkit._simplify import simplify
from loopkit._spelling import shown
from loopkit._syntax import parse_assumptions
from loopkit._transform import transform
from loopkit.transforms._common import integer_names, simplified

# {{{ assume


@transform
def assume(kernel: Kernel, assumptions: kind.Conditions, *, unchecked: bool = False) -> Change:
    """Say what is true of the sizes.

    Before: guards for ragged tiles      After (``"n mod 16 = 0"``): none

    Assumptions add up.  Every call of the kernel checks them.

    :arg assumptions: for example ``"n >= 1 and n mod 16 = 0"``.
    :raises InvalidArgumentError: where no sizes satisfy them.
    """
    if isinstance(assumptions, str):
        given = parse_assumptions(assumptions)
    elif isinstance(assumptions, isl.BasicSet):
        given = assumptions.to_set().params()
    else:
        given = assumptions.params()
    for name in sorted(_sets.involved_names(given)):
        if name not in kernel.sizes:
            raise UnknownNameError("size", name, kernel.sizes)
    combined = (kernel.assumptions.set & given).coalesce()
    if combined.is_empty():
        raise InvalidArgumentError(
            f"no sizes satisfy '{assumptions}'"
            + ("" if given.is_empty() else f" together with {kernel.assumptions.text}")
        )
    return Change(kernel.with_(assumptions=Domain((), combined)), assumes=True)


# }}}

# {{{ fix_parameters


class _Fixer(ExpressionMapper):
    """Puts numbers in the place of sizes, which have no types of their own either."""

    def __init__(self, kernel: Kernel, values: Mapping[str, int]) -> None:
        super().__init__()
        self.values = values
        self.integers = integer_names(kernel)

    def map_variable(self, expr: prim.Variable) -> Expression:
        return self.values.get(expr.name, expr)

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        index = expr.index if isinstance(expr.index, tuple) else (expr.index,)
        return prim.Subscript(expr.aggregate, tuple(self.index(i) for i in index))

    def map_comparison(self, expr: prim.Comparison) -> Expression:
        if variable_names(expr) <= self.integers:
            return prim.Comparison(self.index(expr.left), expr.operator, self.index(expr.right))
        return prim.Comparison(self.rec(expr.left), expr.operator, self.rec(expr.right))

    def index(self, expr: Expression) -> Expression:
        """An expression of integers, with plain numbers."""
        plain = substitute(expr, self.values)
        return expr if plain is expr else simplify(plain)

    def any(self, expr: Expression) -> Expression:
        """An expression of any kind."""
        return expr if is_constant(expr) else self.rec(expr)


def _fixed_data(data: Any, fixer: _Fixer) -> Any:
    changes: dict[str, Any] = {}
    if data.shape is not None:
        changes["shape"] = tuple(fixer.index(s) for s in data.shape)
    if data.dim_tags is not None:
        changes["dim_tags"] = tuple(
            Strided(fixer.index(t.stride)) if isinstance(t, Strided) else t for t in data.dim_tags
        )
    if isinstance(data, ArrayArg):
        changes["offset"] = fixer.index(data.offset)
    return replace(data, **changes)


def _fixed_values(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, int]:
    values: dict[str, int] = {}
    for name, value in given.items():
        if name not in kernel.sizes:
            raise UnknownNameError("size", name, kernel.sizes)
        dtype = kernel.arg_by_name[name].dtype
        if dtype is not None and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise InvalidArgumentError(
                f"the size '{name}' is of type {dtype_name(dtype)}, which {shown(value)} is not in",
                instead=f"make_kernel(..., dtypes={{'{name}': 'int64'}}) takes larger ones",
            )
        values[name] = value
    if not values:
        raise InvalidArgumentError("no size is given", instead="for example fix_parameters(n=16)")
    return values


@transform
def fix_parameters(
    kernel: Kernel, /, *, unchecked: bool = False, **value_dict: kind.SizeValues
) -> Change:
    """Make sizes constants; they are no arguments any more.

    Before: for i in [0, n): S(i)      After (``n=16``): for i in [0, 16): S(i)

    :arg value_dict: sizes and their values.
    :raises IllegalTransformError: where the values contradict the assumptions.
    """
    # A recorded step holds the keyword arguments as one value.
    recorded = value_dict.get("value_dict")
    if isinstance(recorded, Mapping) and len(value_dict) == 1:
        value_dict = dict(recorded)
    for name, value in value_dict.items():
        if isinstance(value, Mapping):
            raise kind.unfit(f"the size '{name}'", "an integer", dict(value))
    values = _fixed_values(kernel, value_dict)
    known = kernel.assumptions.set
    for name, value in values.items():
        known = _sets.at_values(known, {name: value})
    if known.is_empty():
        shown = ", ".join(f"{n}={v}" for n, v in values.items())
        raise IllegalTransformError(
            f"{shown} contradicts the assumptions of the kernel: {kernel.assumptions.text}"
        )
    fixer = _Fixer(kernel, values)
    domains = tuple(
        Domain(d.inames, _sets.at_values(d.set, values)) if d.parameters & values.keys() else d
        for d in kernel.domains
    )
    args: list[Argument] = []
    for argument in kernel.args:
        if isinstance(argument, ValueArg):
            if argument.name not in values:
                args.append(argument)
        else:
            args.append(_fixed_data(argument, fixer))
    temporaries: list[TemporaryVariable] = [_fixed_data(t, fixer) for t in kernel.temporaries]
    new = kernel.with_(
        domains=domains,
        statements=tuple(s.map_expressions(fixer.any) for s in kernel.statements),
        args=tuple(args),
        temporaries=tuple(temporaries),
        assumptions=Domain((), known),
        substitutions=tuple(_fixed_rule(kernel, r, values) for r in kernel.substitutions),
        assertions=map_bounds(kernel.assertions, fixer.index),
    )
    touched = {s.id for s in kernel.statements if s.names & values.keys()}
    return Change(simplified(new, touched) if touched else new, fixed=values)


def _fixed_rule(
    kernel: Kernel, rule: SubstitutionRule, values: Mapping[str, int]
) -> SubstitutionRule:
    mine = {n: v for n, v in values.items() if n not in rule.arguments}
    return replace(rule, expression=_Fixer(kernel, mine).any(rule.expression))


# }}}

# {{{ types


def _with_dtypes(kernel: Kernel, dtype_dict: Mapping[str, Any]) -> Kernel:
    wanted: dict[str, np.dtype[Any]] = {}
    for names, spec in dtype_dict.items():
        for name in names_in(names):
            if name not in kernel.arg_by_name and name not in kernel.temporary_by_name:
                known = [*kernel.arg_by_name, *kernel.temporary_by_name]
                raise UnknownNameError("variable", name, known)
            wanted[name] = as_dtype(spec)
    if not wanted:
        raise InvalidArgumentError("no type is given", instead='add_dtypes({"a, b": "float32"})')
    for name, dtype in wanted.items():
        data = kernel.arg_by_name.get(name) or kernel.temporary_by_name[name]
        if data.dtype is not None and data.dtype != dtype:
            raise InvalidArgumentError(
                f"'{name}' has the type {dtype_name(data.dtype)} already, and cannot become "
                f"{dtype_name(dtype)}"
            )

    def typed(data: Any) -> Any:
        return replace(data, dtype=wanted[data.name]) if data.name in wanted else data

    new = kernel.with_(
        args=tuple(typed(a) for a in kernel.args),
        temporaries=tuple(typed(t) for t in kernel.temporaries),
    )
    check_types(infer_known_types(new), wanted, news=wanted)
    return new


@transform
def add_dtypes(kernel: Kernel, dtype_dict: kind.DTypesByName, *, unchecked: bool = False) -> Change:
    """Give arguments and temporaries types.

    Before: a, b of unknown type      After (``{"a, b": "float32"}``): float32 arrays

    :arg dtype_dict: types by name, or by several names with commas.
    :raises TypeInferenceError: where expressions cannot have these types.
    :raises InvalidArgumentError: for what has another type already.
    """
    return Change(_with_dtypes(kernel, dtype_dict))


@transform
def add_and_infer_dtypes(
    kernel: Kernel,
    dtype_dict: kind.DTypesByName,
    *,
    unchecked: bool = False,
) -> Change:
    """Give arguments and temporaries types, and work out what follows from these.

    Before: a of unknown type, b[i] = 2*a[i]
    After (``{"a": "float32"}``): a and b are float32 arrays

    :arg dtype_dict: see :func:`add_dtypes`.
    :raises TypeInferenceError: where a type does not follow, or does not fit.
    """
    return Change(infer_types(_with_dtypes(kernel, dtype_dict)))


# }}}
