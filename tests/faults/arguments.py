"""Faults in steps that say what things are called, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from refusals.case import do
from seams import substitute

import loopkit as lk
from faults import kernels
from faults.evidence import wrong_instances
from faults.making import var
from faults.planting import Patch, fault
from faults.promises import comes_out, with_statement
from loopkit import Kernel


def differences() -> lk.Kernel:
    """Two inputs that are not alike, a condition on the first, and an argument that is idle."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        if a[i] < 8
            c[i] = a[i] - 2*b[i] {id=s}
        end
        """,
        [lk.GlobalArg("idle", shape="n"), ...],
        dtypes={"a, b, c, idle": "float32"},
        assumptions="n >= 1",
    )


def _another(original: Any) -> Any:
    """Who reads the argument with the new name reads ``b``."""

    def called(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
        right: Kernel = original(kernel, names)
        swapped = {new: var("b") for new in names.values()}
        return right.with_(
            statements=tuple(
                dataclasses.replace(s, rhs=substitute(s.rhs, swapped)) for s in right.statements
            )
        )

    return called


def _by_old_names(kernel: Kernel) -> str | None:
    """What is wrong with a kernel whose ``a`` is called ``x``."""
    again = kernel.rename_argument("x", "a", unchecked=True)
    return wrong_instances(differences(), again, {"n": 6})


fault(
    "rename_argument: another argument is read",
    differences,
    do("rename_argument", "a", "x"),
    Patch("transforms.arguments:with_arguments_named", _another),
    evidence=_by_old_names,
)


def _last_two_exchanged(kernel: Kernel) -> Kernel:
    *others, one, two = kernel.args
    return kernel.with_(args=(*others, two, one))


def _in_other_order(kernel: Kernel) -> str | None:
    names = [a.name for a in kernel.args]
    return None if names == ["c", "b", "a", "idle", "n"] else f"a call passes {', '.join(names)}"


fault(
    "set_argument_order: two arguments are exchanged",
    differences,
    do("set_argument_order", "c, b, a, idle, n"),
    comes_out("arguments", _last_two_exchanged),
    evidence=_in_other_order,
)


def _not_for_conditions(original: Any) -> Any:
    """An argument that conditions need is thought to be idle."""
    return lambda kernel, gone=(): original(kernel, gone) - {"a"}


def _missing(kernel: Kernel) -> str | None:
    """A name that statements use and no argument has."""
    known = kernel.all_names
    lost = {name for s in kernel.statements for name in s.names if name not in known}
    return f"no argument is called {min(lost)}" if lost else None


fault(
    "remove_unused_arguments: what a condition reads goes",
    differences,
    do("remove_unused_arguments"),
    Patch("transforms.arguments:names_needed", _not_for_conditions),
    evidence=_missing,
)


def _axes_exchanged(original: Any) -> Any:
    """With the names of its axes, the extents of an array change places."""

    def with_arrays(kernel: Kernel, changed: Any) -> Any:
        turned = {n: dataclasses.replace(a, shape=a.shape[::-1]) for n, a in changed.items()}
        return original(kernel, turned)

    return with_arrays


def tall() -> lk.Kernel:
    """Columns that are longer than rows, in memory of a block."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 6 and 0 <= j < 3 }",
        """
        for i, j
            <> t[i, j] = 2*a[i, j] {id=t}
        end
        for i, j
            b[i, j] = t[5 - i, j] {id=out}
        end
        """,
        dtypes={"a, b": "float32"},
    )
    return knl.set_temporary_address_space("t", "shared")


fault(
    "set_array_axis_names: the extents change places",
    tall,
    do("set_array_axis_names", "t", "row, col"),
    Patch("transforms.array_axes:with_arrays", _axes_exchanged),
)


fault(
    "tag_instructions: what gets a tag loses its condition",
    kernels.conditional,
    do("tag_instructions", "half", "id:s"),
    comes_out("statements", with_statement("s", predicates=())),
    sizes={"n": 5},
)


def calling() -> lk.Kernel:
    """A function in the place of its calls: it adds to what it is given."""
    more = lk.make_function(
        "{ [i]: 0 <= i < n }", "y[i] = x[i] + 1 {id=more}", ["x", ...], name="more"
    )
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "[i]: b[i, j] = more([i]: a[i, j])",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        functions=[more],
    )


def _first_row(kernel: Kernel) -> Kernel:
    (one,) = kernel.statements
    first = substitute(one.rhs, {"j": 0})
    return kernel.with_(statements=(dataclasses.replace(one, rhs=first),))


fault(
    "inline_callable_kernel: each call gets what the first one gets",
    calling,
    do("inline_callable_kernel", "more"),
    comes_out("statements", _first_row),
    sizes={"n": 2, "m": 3},
)
