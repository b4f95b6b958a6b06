"""Whether two kernels can be compared at all: the same arguments, assumptions joined."""

from __future__ import annotations

from typing import Any

import islpy as isl

from loopkit import _sets
from loopkit._arrays import Argument, ValueArg
from loopkit._errors import InvalidArgumentError
from loopkit._expression import to_text
from loopkit._kernel import Domain, Kernel
from loopkit._make.infer import infer_types
from loopkit._nodes import Expression
from loopkit._rules import expand_rules

_FIX = "verify compares kernels over the same arguments"


def prepared(before: Kernel, after: Kernel) -> tuple[Kernel, Kernel, isl.Set]:
    """Both kernels with types, without lineage, and with what both assume; and that.

    Raises :class:`~loopkit.InvalidArgumentError` where their arguments differ.
    """
    for kernel in (before, after):
        if not isinstance(kernel, Kernel):
            raise InvalidArgumentError(f"verify takes two kernels, not {type(kernel).__name__}")
    one, two = infer_types(expand_rules(before)), infer_types(expand_rules(after))
    context = one.assumptions.set & two.assumptions.set
    _same_arguments(one, two, context)
    both = Domain((), context)
    return (
        one.with_(assumptions=both, lineage=None, history=()),
        two.with_(assumptions=both, lineage=None, history=()),
        context,
    )


def _same_arguments(one: Kernel, two: Kernel, context: isl.Set) -> None:
    names = one.arg_by_name.keys(), two.arg_by_name.keys()
    for mine, its, where in ((*names, "before"), (*names[::-1], "after")):
        only = sorted(mine - its)
        if only:
            raise InvalidArgumentError(
                f"the kernels have different arguments: only '{where}' has {', '.join(only)}",
                instead=_FIX,
            )
    for name, argument in one.arg_by_name.items():
        other = two.arg_by_name[name]
        _same(name, "kind", _kind(argument), _kind(other))
        _same(name, "type", argument.dtype, other.dtype)
        if not isinstance(argument, ValueArg) and not isinstance(other, ValueArg):
            _same_shape(name, argument.shape or (), other.shape or (), context)
            _same_offset(name, argument.offset, other.offset, context)
        _same(
            name,
            "use",
            "written" if name in one.writers else "only read",
            "written" if name in two.writers else "only read",
        )


def _kind(argument: Argument) -> str:
    return "a scalar" if isinstance(argument, ValueArg) else "an array"


def _same(name: str, what: str, mine: Any, its: Any) -> None:
    if mine != its:
        raise InvalidArgumentError(
            f"the kernels do not agree on the {what} of '{name}': {mine} in before, {its} in after",
            instead=_FIX,
        )


def _same_shape(name: str, mine: tuple[Any, ...], its: tuple[Any, ...], context: isl.Set) -> None:
    alike = len(mine) == len(its) and all(
        _equal(a, b, context) for a, b in zip(mine, its, strict=True)
    )
    if not alike:
        words = [f"({', '.join(to_text(e) for e in shape)})" for shape in (mine, its)]
        _same(name, "shape", *words)


def _same_offset(name: str, mine: Expression, its: Expression, context: isl.Set) -> None:
    """An array begins at the same element of what is passed."""
    if not _equal(mine, its, context):
        _same(name, "offset", to_text(mine), to_text(its))


def _equal(a: Expression, b: Expression, context: isl.Set) -> bool:
    """Whether two expressions have one value for all sizes."""
    if a == b:
        return True
    try:
        return bool(context.is_subset(_sets.pw_affine(a).eq_set(_sets.pw_affine(b))))
    except _sets.NotAffineError:
        return False
