"""What is known about sizes and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arrays import D, with_expressions
from loopkit._assertions.assertion_values import map_bounds
from loopkit._change import Change
from loopkit._check.value_types import ValueTypes
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    check_known,
)
from loopkit._expression import substitute, to_text, variable_names
from loopkit._kernel import Domain, Kernel, SubstitutionRule
from loopkit._make import check_types, infer_known_types, infer_types
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._promotion import as_dtype, dtype_name
from loopkit._sets import at_values
from loopkit._simplify import simplify, simplify_indices
from loopkit._spelling import shown
from loopkit._syntax.domain_parser import parse_assumptions
from loopkit._transform import transform
from loopkit.transforms._common import simplified, with_arrays


@transform
def assume(kernel: Kernel, assumptions: kind.Conditions, *, unchecked: bool = False) -> Change:
    """Add an assumption about the sizes.

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
    check_known("size", sorted(_sets.involved_names(given)), kernel.sizes)
    combined = (kernel.assumptions.set & given).coalesce()
    if combined.is_empty():
        raise InvalidArgumentError(
            f"no sizes satisfy '{assumptions}'"
            + ("" if given.is_empty() else f" together with '{_assumed(kernel)}'")
        )
    return Change(kernel.with_(assumptions=Domain((), combined)), assumes=True)


def _assumed(kernel: Kernel) -> str:
    return to_text(_sets.conditions(kernel.assumptions.set))


def _fixed(expr: Expression, values: Mapping[str, int]) -> Expression:
    """An expression of integers, with numbers for sizes."""
    plain = substitute(expr, values)
    return expr if plain is expr else simplify(plain)


def _fixed_values(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, int]:
    check_known("size", given, kernel.sizes)
    values: dict[str, int] = {}
    for name, value in given.items():
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
    """Replace sizes by constants; they are no longer arguments.

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
    for name, value in kernel.with_computed(values).items():
        if name in values and name in kernel.computed_sizes:
            raise IllegalTransformError(
                f"'{name}' is computed: it is {to_text(kernel.computed_sizes[name])}",
                instead=f"fix {', '.join(sorted(variable_names(kernel.computed_sizes[name])))}",
            )
        values[name] = value

    def declared(data: D) -> D:
        return with_expressions(data, lambda e: _fixed(e, values))

    args = [declared(a) for a in kernel.args if a.name not in values]
    kernel, given = kernel.with_(args=tuple(args)), kernel
    known = at_values(kernel.assumptions.set, values) & kernel.computed_facts
    if known.is_empty():
        shown = ", ".join(f"{n}={v}" for n, v in values.items())
        raise IllegalTransformError(
            f"{shown} contradicts the assumptions of the kernel: {_assumed(given)}"
        )
    domains = tuple(
        Domain(d.inames, at_values(d.set, values)) if d.parameters & values.keys() else d
        for d in kernel.domains
    )
    types = ValueTypes(Model(given))
    new = kernel.with_(
        domains=domains,
        statements=tuple(
            s.map_expressions(lambda e: types.substituted(e, values)) for s in kernel.statements
        ),
        temporaries=tuple(map(declared, kernel.temporaries)),
        assumptions=Domain((), known),
        substitutions=tuple(_fixed_rule(kernel, r, values) for r in kernel.substitutions),
        assertions=map_bounds(kernel.assertions, lambda bound: _fixed(bound, values)),
    )
    touched = {s.id for s in kernel.statements if s.names & values.keys()}
    return Change(simplified(new, touched) if touched else new, fixed=values)


def _fixed_rule(
    kernel: Kernel, rule: SubstitutionRule, values: Mapping[str, int]
) -> SubstitutionRule:
    mine = {n: v for n, v in values.items() if n not in rule.arguments}
    body = substitute(rule.expression, mine)
    return replace(rule, expression=simplify_indices(body, kernel.integers))


def _with_dtypes(kernel: Kernel, dtype_dict: Mapping[str, Any]) -> Kernel:
    variables: dict[str, Any] = {**kernel.arg_by_name, **kernel.temporary_by_name}
    wanted: dict[str, np.dtype[Any]] = {}
    for names, spec in dtype_dict.items():
        check_known("variable", kind.names_in(names), variables)
        wanted |= dict.fromkeys(kind.names_in(names), as_dtype(spec))
    if not wanted:
        raise InvalidArgumentError("no type is given", instead='add_dtypes({"a, b": "float32"})')
    for name, dtype in wanted.items():
        known = variables[name].dtype
        if known is not None and known != dtype:
            raise InvalidArgumentError(
                f"'{name}' has the type {dtype_name(known)} already, and cannot become "
                f"{dtype_name(dtype)}"
            )
        if name in kernel.assumptions.parameters and dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"'{name}' cannot become {dtype_name(dtype)}: the kernel assumes something of it, "
                f"as of a whole number: {_assumed(kernel)}"
            )

    changed = {n: replace(variables[n], dtype=dtype) for n, dtype in wanted.items()}
    new = with_arrays(kernel, changed)
    # Numbers in the text are literals; those that steps made of sizes and inames are not.
    text = kernel if kernel.lineage is None else kernel.lineage.root
    here = text.arg_by_name.keys() | text.temporary_by_name.keys()
    text = with_arrays(text, {n: d for n, d in changed.items() if n in here})
    check_types(infer_known_types(text), wanted, news=wanted)
    return new


@transform
def add_dtypes(kernel: Kernel, dtype_dict: kind.DTypesByName, *, unchecked: bool = False) -> Change:
    """Declare types of arguments and temporaries.

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
    """Declare types of arguments and temporaries, and infer the types that depend on them.

    Before: a of unknown type, b[i] = 2*a[i]
    After (``{"a": "float32"}``): a and b are float32 arrays

    :arg dtype_dict: see :func:`add_dtypes`.
    :raises TypeInferenceError: where a type does not follow, or does not fit.
    """
    return Change(infer_types(_with_dtypes(kernel, dtype_dict)))
