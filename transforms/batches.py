"""Batching: one kernel that solves many problems of the same kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit._arrays import Argument, ArrayArg, ConstantTable, Nested, ValueArg, if_distinct
from loopkit._assertions.assertion_values import Within
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._change import Change, InstanceMap
from loopkit._check import check_change
from loopkit._check.instance_maps import lineage_of
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    UndecidedError,
    check_known,
)
from loopkit._expression import replace_accesses
from loopkit._kernel import Domain, Kernel
from loopkit._nodes import Expression
from loopkit._poly.pairs import inside
from loopkit._promotion import INT32
from loopkit._spelling import check_name, shown
from loopkit._tree import Loop
from loopkit.transforms._loop_nests import ordered_domains


@fitting
@in_turn
def to_batched(
    kernel: Kernel,
    nbatches: str | int,
    batch_varying_args: str | Iterable[str],
    batch_iname_prefix: str = "ibatch",
    sequential: bool = False,
) -> Kernel:
    """Make a kernel that solves ``nbatches`` problems like that of ``kernel``.

    Before: for i: b[i] = 2*a[i]
    After (``"nb", "a, b"``): for ibatch: for i: b[ibatch, i] = 2*a[ibatch, i]

    It is another kernel, with a text of its own, as :func:`fuse_kernels` makes one.  The schedule
    of the kernel is kept, and proven again.  Temporaries are those of one problem at a time;
    :func:`privatize_temporaries_with_inames` gives each problem its own.

    :arg nbatches: the number of problems: a number, or a size, which is added where there is none.
    :arg batch_varying_args: arguments of which each problem has its own.  An array gets an axis in
        front of its others, a number becomes an array.
    :arg batch_iname_prefix: what the new iname is called, as far as that is free.
    :arg sequential: the loop is one until it is tagged, in any case.
    :returns: the kernel, with no step taken.
    :raises InvalidArgumentError: where a size is to differ, or a layout speaks of all axes.
    :raises IllegalTransformError: where the schedule does not fit, with a witness.
    """
    kind.flag("sequential", sequential)
    if not isinstance(kernel, Kernel):
        raise InvalidArgumentError(
            f"to_batched takes a kernel, not {shown(kernel)}",
            instead="fuse_kernels makes one kernel of several",
        )
    varying = kind.names_in(kind.names("batch_varying_args", batch_varying_args))
    check_known("argument", varying, kernel.arg_by_name)
    lineage = lineage_of(kernel)
    text = lineage.root
    count = _count(kernel, nbatches)
    rules = (*text.substitutions, *kernel.substitutions)
    taken = text.all_names.union(*(rule.arguments for rule in rules))
    iname = kernel.fresh_name(check_name(batch_iname_prefix), taken)
    whole = _batched(text, iname, count, varying)
    if text is kernel:
        return whole
    maps = [
        InstanceMap(i.statement, i.origin, {**i.value_of, iname: prim.Variable(iname)})
        for i in lineage.images
    ]
    mapped = {m.new for m in maps}
    moves = frozenset(s.id for s in kernel.statements if s.id not in mapped)
    scheduled = _batched(kernel, iname, count, varying)
    change = Change(scheduled, tuple(maps), moves, dict(lineage.fixed))
    try:
        lineage = check_change(whole, change)
    except (IllegalTransformError, UndecidedError) as error:
        error.asked = "the schedule does not fit many problems:"
        raise
    return replace(scheduled, history=type(kernel.history)(), lineage=lineage)


def _count(kernel: Kernel, given: str | int) -> Expression:
    """The number of problems, a size or a number."""
    if not isinstance(given, str):
        return kind.at_least(1)("nbatches", given)
    name = check_name(given)
    if name in kernel.all_names and name not in kernel.sizes:
        raise InvalidArgumentError(f"'{name}' is no size", instead="nbatches is one, or a number")
    return prim.Variable(name)


def _batched(kernel: Kernel, iname: str, count: Expression, varying: Collection[str]) -> Kernel:
    """All statements inside one more loop, and arguments with one more axis."""
    here = prim.Variable(iname)

    def in_batch(expr: Expression, own: Collection[str] = ()) -> Expression:
        def access(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            if name not in varying or name in own:
                return None
            return prim.Subscript(prim.Variable(name), (here, *indices))

        return replace_accesses(expr, access)

    statements = tuple(
        replace(s.map_expressions(in_batch), inames=s.inames | {iname}) for s in kernel.statements
    )
    rules = tuple(
        replace(r, expression=in_batch(r.expression, r.arguments)) for r in kernel.substitutions
    )
    args = [_with_axis(kernel, a, count, iname) if a.name in varying else a for a in kernel.args]
    if isinstance(count, prim.Variable) and count.name not in kernel.arg_by_name:
        args.append(ValueArg(count.name, INT32))
    for assertion in kernel.assertions:
        if not isinstance(assertion, Within) and not set(varying).isdisjoint(assertion.arrays):
            raise InvalidArgumentError(
                f"it is asserted that {assertion.text}, and each problem has its own",
                instead="assert what holds for all of them of the kernel that comes out",
            )
    return kernel.with_(
        statements=statements,
        tree=(Loop(iname, kernel.tree),),
        domains=ordered_domains([Domain((iname,), inside(here, count)), *kernel.domains]),
        args=tuple(args),
        substitutions=rules,
    )


def _with_axis(kernel: Kernel, argument: Argument, count: Expression, iname: str) -> Argument:
    """An argument of which each problem has its own."""
    name = argument.name
    if isinstance(argument, ValueArg):
        if name in kernel.sizes:
            raise InvalidArgumentError(
                f"'{name}' is a size, and all problems are of the same sizes",
                instead="call the kernel once for each size",
            )
        return ArrayArg(name, argument.dtype, (count,), is_input=True, is_output=False)
    if isinstance(argument, ConstantTable):
        raise InvalidArgumentError(
            f"'{name}' is a table of constants, the same for all problems",
            instead="an array that each problem has its own of is an argument",
        )
    if argument.shape is None:
        raise InvalidArgumentError(
            f"the shape of '{name}' is not known",
            instead=f"kernel_data=[GlobalArg('{name}', shape=...), ...] declares it",
        )
    tags = argument.dim_tags
    if tags is not None:
        if not all(isinstance(tag, Nested) for tag in tags):
            raise InvalidArgumentError(
                f"'{name}' has given strides, and none for the new axis",
                instead="tag_array_axes for the kernel that comes out",
            )
        tags = (Nested(len(tags)), *tags)
    names = if_distinct((iname, *argument.dim_names)) if argument.dim_names else None
    return replace(argument, shape=(count, *argument.shape), dim_tags=tags, dim_names=names)
