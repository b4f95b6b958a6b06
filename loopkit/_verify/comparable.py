"""Whether two kernels are comparable: equal arguments; and their joint assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import islpy as isl

from loopkit import _sets
from loopkit._arrays import ArrayArg, ConstantTable
from loopkit._contents import Contents
from loopkit._errors import InvalidArgumentError
from loopkit._expression import to_text
from loopkit._kernel import Domain, Kernel
from loopkit._make.type_inference import infer_types
from loopkit._nodes import Expression
from loopkit._rules import expand_rules
from loopkit._same import same
from loopkit.transforms.arguments import with_arguments_named

_FIX = "verify compares kernels over the same arguments"


def prepared(before: Kernel, after: Kernel) -> tuple[Kernel, Kernel, isl.Set]:
    """Both kernels with types, without lineage, and with what both assume; and that.

    Raises :class:`~loopkit.InvalidArgumentError` where their arguments differ.
    """
    one, two = infer_types(expand_rules(before)), infer_types(expand_rules(after))
    two = _with_tables_of(one, two)
    context = one.assumptions.set & two.assumptions.set
    _same_arguments(one, two, context)
    return _under(one, context), _under(two, context), context


def _with_tables_of(one: Kernel, two: Kernel) -> Kernel:
    """``two`` with the names that ``one`` has for the same tables: no call says them."""
    left = {t.contents: t.name for t in _tables(one) if t.name not in two.all_names}
    names = {
        table.name: left.pop(table.contents)
        for table in _tables(two)
        if table.name not in one.arg_by_name and table.contents in left
    }
    return with_arguments_named(two, names) if names else two


def _tables(kernel: Kernel) -> list[ConstantTable]:
    return [a for a in kernel.args if isinstance(a, ConstantTable)]


def _under(kernel: Kernel, context: isl.Set) -> Kernel:
    """A kernel without past, with what is assumed of its sizes; others are computed elsewhere."""
    others = sorted({*_sets.involved_names(context)} - {*kernel.sizes})
    known = Domain((), _sets.project_out(context, others))
    return kernel.with_(assumptions=known, lineage=None, history=())


def _same_arguments(one: Kernel, two: Kernel, context: isl.Set) -> None:
    computed = one.computed_sizes.keys(), two.computed_sizes.keys()
    names = one.arg_by_name.keys() - computed[0], two.arg_by_name.keys() - computed[1]
    for mine, its, where in ((*names, "before"), (*names[::-1], "after")):
        only = sorted(mine - its)
        if only:
            raise InvalidArgumentError(
                f"the kernels have different arguments: only '{where}' has {', '.join(only)}",
                instead=_FIX,
            )
    for name in (
        *(n for n in one.arg_by_name if n in names[0]),
        *sorted(computed[0] & computed[1]),
    ):
        known, other = _described(one, name), _described(two, name)
        for what, a in known.items():
            b = other.get(what)
            if a != b and not (isinstance(a, tuple) and _equal(a, b or (), context)):
                words = [_words(what, value) for value in (a, b)]
                raise InvalidArgumentError(
                    f"the kernels do not agree on the {what} of '{name}': "
                    f"{words[0]} in before, {words[1]} in after",
                    instead=_FIX,
                )


def _described(kernel: Kernel, name: str) -> dict[str, Any]:
    """What kernels must agree on about an argument; expressions in tuples."""
    argument = kernel.arg_by_name[name]
    found: dict[str, Any] = {"kind": "a scalar", "type": argument.dtype}
    if name in kernel.computed_sizes:
        found["value"] = (kernel.computed_sizes[name],)
    if isinstance(argument, ArrayArg):
        found |= {"kind": "an array", "shape": argument.shape or (), "offset": (argument.offset,)}
    if isinstance(argument, ConstantTable) and argument.contents is not None:
        found |= {"kind": "a table of constants", "elements": argument.contents}
    return found | {"use": "written" if name in kernel.writers else "only read"}


def _words(what: str, value: Any) -> str:
    if isinstance(value, Contents):
        return " ".join(str(value.array).split())
    if not isinstance(value, tuple):
        return str(value)
    texts = ", ".join(map(to_text, value))
    return f"({texts})" if what == "shape" else texts


def _equal(mine: Sequence[Expression], its: Sequence[Expression], context: isl.Set) -> bool:
    """Whether expressions have the same values for all sizes."""
    try:
        return len(mine) == len(its) and all(
            same(a, b) or context.is_subset(_sets.pw_affine(a).eq_set(_sets.pw_affine(b)))
            for a, b in zip(mine, its, strict=True)
        )
    except _sets.NotAffineError:
        return False
