"""What arguments are called, their order, and none that nothing needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arrays import with_expressions
from loopkit._assertions.values import in_order
from loopkit._assertions.values import renamed as with_names
from loopkit._change import Change
from loopkit._check.argument_names import names_needed
from loopkit._errors import (
    InvalidArgumentError,
    NothingToDoError,
    check_known,
)
from loopkit._expression import substitute
from loopkit._kernel import Domain, Kernel
from loopkit._transform import transform
from loopkit.transforms import _common
from loopkit.transforms._renaming import Renaming, renamed


@transform
def rename_argument(
    kernel: Kernel, old_name: kind.Name, new_name: kind.NeededName, *, unchecked: bool = False
) -> Change:
    """Call an argument by another name, in the text as in the schedule.

    Before: ``scale(n; a[n]) -> b[n]``        After (``"a", "x"``): ``scale(n; x[n]) -> b[n]``

    Callers pass it by its new name.

    :arg old_name: an array, a size or another number.
    :arg new_name: a name that is free.
    :raises IllegalTransformError: where something else is called so.
    """
    check_known("argument", [old_name], kernel.arg_by_name)
    name = _common.new_name(kernel, new_name, new_name)
    names = {n: name if n == old_name else n for n in kernel.arg_by_name}
    return Change(with_arguments_named(kernel, {old_name: name}), arguments=names)


def with_arguments_named(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """The kernel with arguments by other names."""
    variables = {old: prim.Variable(new) for old, new in names.items()}

    def declared(data: Any) -> Any:
        data = with_expressions(data, lambda e: substitute(e, variables))
        return replace(data, name=names.get(data.name, data.name))

    return renamed(kernel, Renaming(names, {})).with_(
        args=tuple(map(declared, kernel.args)),
        temporaries=tuple(map(declared, kernel.temporaries)),
        assumptions=Domain((), _sets.rename(kernel.assumptions.set, names)),
        assertions=in_order(tuple(with_names(a, names) for a in kernel.assertions)),
    )


@transform
def set_argument_order(kernel: Kernel, arg_names: kind.Names, *, unchecked: bool = False) -> Change:
    """Say in which order the generated function takes its arguments.

    Before: ``scale(n; a[n]) -> b[n]``, ``scale(int n, float *a, float *b)``
    After (``"b, a, n"``): ``scale(float *b, float *a, int n)``

    :arg arg_names: all arguments, in their new order.
    :raises IllegalTransformError: where that is their order already.
    """
    wanted = kind.names_in(arg_names)
    check_known("argument", wanted, kernel.arg_by_name)
    missing = [n for n in kernel.arg_by_name if n not in wanted]
    if missing or len(set(wanted)) < len(wanted):
        raise InvalidArgumentError(
            "arg_names names each argument once, and "
            + (f"lacks {', '.join(map(repr, missing))}" if missing else "one of them twice"),
            instead=f"all of them: {', '.join(kernel.arg_by_name)}",
        )
    if wanted == tuple(kernel.arg_by_name):
        raise NothingToDoError(
            "the arguments have this order already", instead="any other order of the same names"
        )
    new = kernel.with_(args=tuple(kernel.arg_by_name[n] for n in wanted))
    return Change(new, arguments={n: n for n in wanted})


@transform
def remove_unused_arguments(kernel: Kernel, *, unchecked: bool = False) -> Change:
    """Forget arguments that nothing needs.

    Before: ``scale(n, m; a[n], c[m]) -> b[n]``, ``b[i] = 2*a[i]``
    After: ``scale(n; a[n]) -> b[n]``

    :raises IllegalTransformError: where all are needed.
    """
    idle: frozenset[str] = frozenset()
    while more := kernel.arg_by_name.keys() - names_needed(kernel, idle) - idle:
        idle |= more
    if not idle:
        raise NothingToDoError(
            "the kernel needs all of its arguments",
            instead="remove_instructions first, where nobody needs what some statements make",
        )
    kept = tuple(a for a in kernel.args if a.name not in idle)
    return Change(kernel.with_(args=kept), arguments={a.name: a.name for a in kept})
