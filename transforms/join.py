"""Joining several loops into one."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit.transforms._common import new_name, refuse_tagged, then
from loopkit.transforms._loop_nests import extent
from loopkit.transforms._reindex import Reindexing, marks_for, reindexed
from loopkit.transforms._tagging import with_tags
from loopkit.transforms.duplicate import isolated


@transform
def join_inames(
    kernel: Kernel,
    inames: kind.Names,
    new_iname: kind.NewName = None,
    tag: kind.TagLike = None,
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Join loops into one that counts through all of them.

    Before: for i: for j in [0, 16): S(i, j)
    After (``["i", "j"]``): for j_and_i: S(j_and_i // 16, j_and_i % 16)

    :arg inames: the last one varies fastest.  All but the first need a constant
        length.
    :arg new_iname: by default their names, the fastest first, joined by ``_and_``.
    :arg tag: see :func:`tag_inames`.
    :arg within: a match string: only around these statements, which gives them
        loops of their own.
    :raises IllegalTransformError: where a length is no constant, an iname is tagged, or a
        statement is inside of some of the inames only.
    """
    old = names_in(inames)
    for iname in old:
        kernel.check_iname(iname)
        refuse_tagged(kernel, iname, "join")
    if len(set(old)) < 2 or len(set(old)) < len(old):
        raise InvalidArgumentError("joining takes two or more different inames")
    change, names = isolated(kernel, old, within)
    joined = new_name(kernel, new_iname, "_and_".join(reversed(old)))
    change = then(kernel, change, _joined(change.kernel, tuple(names.values()), joined))
    parsed = parse_tag(tag)
    if parsed is not None:
        change = Change(with_tags(change.kernel, {joined: parsed}), change.instances)
    return change


def _joined(kernel: Kernel, old: tuple[str, ...], joined: str) -> Change:
    [mark] = marks_for(1)
    total: list[Expression] = []
    conditions: list[Expression] = []
    inverse: dict[str, Expression] = {}
    stride = 1
    for iname in reversed(old):
        low, length = _range(kernel, iname, need_length=iname != old[0])
        offset = prim.Sum((prim.Variable(iname), prim.Product((-1, low))))
        total.insert(0, prim.Product((stride, offset)))
        quotient = prim.FloorDiv(prim.Variable(joined), stride)
        if length is not None:
            conditions += [prim.Comparison(offset, ">=", 0), prim.Comparison(offset, "<", length)]
            inverse[iname] = simplify(prim.Sum((prim.Remainder(quotient, length), low)))
            stride *= length
        else:
            inverse[iname] = simplify(prim.Sum((quotient, low)))
    whole = prim.Comparison(prim.Variable(mark), "==", prim.Sum(tuple(total)))
    graph = _sets.condition_set(prim.LogicalAnd((whole, *conditions)))
    return reindexed(kernel, Reindexing(old, (joined,), (mark,), graph), "join", inverse)


def _range(kernel: Kernel, iname: str, need_length: bool) -> tuple[Expression, int | None]:
    found = extent(kernel, iname)
    if found is None:
        raise IllegalTransformError(f"iname '{iname}' has no bounds that depend on sizes alone")
    low, length = found
    if not need_length:
        return low, None
    if not isinstance(length, int):
        raise IllegalTransformError(
            f"cannot join iname '{iname}': it has {to_text(length)} values, and only the first "
            f"of the inames may have a length that is no constant",
            instead=f"put '{iname}' first, split it, or fix its length with fix_parameters",
        )
    return low, length
