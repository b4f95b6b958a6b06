"""Kernels that other kernels call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError
from loopkit._make.create import TEXT_PASSES, items_of, make_kernel
from loopkit._make.given_data import read_kernel_data
from loopkit._make.infer_arguments import read_dtypes
from loopkit._make.kernel_functions import KernelFunction
from loopkit._make.making import Making
from loopkit._make.reduction_operations import check_free_name


@fitting
def make_function(
    domains: Any,
    instructions: Any,
    kernel_data: Any = None,
    *,
    name: str,
    functions: Iterable[Any] = (),
    **more: Any,
) -> KernelFunction:
    """A kernel that texts of others call, as ``make_kernel(..., functions=[f])``.

    .. code-block:: python

        f = lk.make_function(
            "{ [i]: 0 <= i < n }", "y[i] = c*x[i]", ["x", "c", ...], name="f")
        knl = lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < m }",
            "[i]: b[i, j] = f([i]: a[i, j], 2)", functions=[f])

    A call means what the function's text says with the parts of arrays that it is given, in its
    place: the kernel holds those statements, tagged ``call.f``.  Arguments are what the function
    reads, in the order of ``kernel_data``; results what it writes.  Sizes that are extents of its
    arrays follow from the parts, unless the call gives all arguments.

    :arg domains: as of :func:`make_kernel`.
    :arg instructions: its text, in which other functions may be called.
    :arg kernel_data: its arguments in the order in which calls give them.
    :arg name: what calls say.
    :arg functions: what its text calls.
    :arg more: other arguments of :func:`make_kernel`.
    :returns: the function, which is a kernel by itself, too: ``f.kernel``.
    :raises LoopkitError: for what :func:`make_kernel` would refuse.
    """
    check_free_name(name)
    kernel = make_kernel(domains, instructions, kernel_data, name=name, functions=functions, **more)
    if more.get("substitutions"):
        raise InvalidArgumentError(
            "a function has no substitutions=", instead="its text can hold them: f(x) := ..."
        )
    making = Making(
        name,
        items_of(instructions),
        domains,
        read_kernel_data(kernel_data, more.get("temporary_variables", ())),
        dict(more.get("fixed_parameters") or {}),
        more.get("assumptions"),
        read_dtypes(more.get("dtypes")),
        default_order=more.get("default_order", "C"),
        reductions=tuple(more.get("reductions", ())),
        given_functions=functions,
    )
    for text_pass in TEXT_PASSES:
        text_pass(making)
    function = KernelFunction(
        name,
        tuple(making.items),
        making.domains,
        kernel,
        tuple(making.given.temporaries.values()),
        making.reductions,
        making.functions,
    )
    if not function.results:
        raise InvalidArgumentError(
            f"the function '{name}' gives nothing: its text writes no argument",
            instead="a call is assigned to what its function writes: [i]: y[i] = f([i]: x[i])",
        )
    return function
