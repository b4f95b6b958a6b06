"""Affine changes of loop coordinates: skewing, reversal, diamonds, and joining of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._match import Match
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._syntax.domain_parser import parse_map
from loopkit._tags import LocalAuto, Tag, parse_tag
from loopkit._transform import transform
from loopkit._tree import path_inames
from loopkit.transforms import _reindex as renumbering
from loopkit.transforms._common import inames_in, new_name, refuse_tagged, then
from loopkit.transforms._expand import in_order
from loopkit.transforms._loop_nests import extent_or, offset, settled_tree
from loopkit.transforms._reindex import Reindexing, marks_for, reindexed
from loopkit.transforms.duplicate import isolated
from loopkit.transforms.tag import with_tags

_EXAMPLE = 'for example map_domain("{ [t, i] -> [w, i]: w = t + i }")'


def _as_graph(relation: isl.Map, marks: Sequence[str]) -> isl.Set:
    """The map as a set over its input names and ``marks``."""
    count = relation.dim(isl.dim_type.in_)
    at = relation.dim(isl.dim_type.param)
    graph = relation.move_dims(isl.dim_type.param, at, isl.dim_type.in_, 0, count).range()
    for number, mark in enumerate(marks):
        graph = graph.set_dim_name(isl.dim_type.set, number, mark)
    at = graph.dim(isl.dim_type.param)
    return graph.move_dims(isl.dim_type.param, at, isl.dim_type.set, 0, len(marks)).params()


def _is_same(graph: isl.Set, first: str, second: str) -> bool:
    equal = prim.Comparison(prim.Variable(first), "==", prim.Variable(second))
    return bool(graph.is_subset(_sets.condition_set(equal)))


def _output_names(relation: isl.Map, old: Sequence[str], graph: isl.Set) -> list[str]:
    names: list[str] = []
    for number, mark in enumerate(marks_for(relation.dim(isl.dim_type.out))):
        name = relation.get_dim_name(isl.dim_type.out, number)
        if name is None:
            name = next((o for o in old if _is_same(graph, o, mark)), None)
        if name is None:
            raise InvalidArgumentError(
                f"output {number + 1} of the map has no name", instead=f"name it, {_EXAMPLE}"
            )
        names.append(name.rstrip("'"))
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"two outputs of the map have one name: {', '.join(names)}")
    return names


@transform
def map_domain(
    kernel: Kernel,
    transform_map: kind.Relation,
    within: kind.Within = None,
    rename_after: kind.NamesByName = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Replace inames by others, with a one-to-one affine map.

    Before: for t: for i: S(t, i)
    After (``"{ [t, i] -> [w, i]: w = t + i }"``): for w: for i: S(w - i, i)

    The new loops take the places of the old ones, in the order in which the map
    names them.  A primed output, such as ``i'``, may take the name of the input
    that it replaces.  A statement that is inside only some of the old inames
    gets those new ones that depend on no other.  A map that is not one to one is
    refused with two instances that show it.

    :arg transform_map: from old inames to new ones; an isl map or its text.
    :arg within: a match string: only around these statements, which gives them
        loops of their own.
    :arg rename_after: other names for outputs of the map.
    :raises IllegalTransformError: where the map is not one to one, an iname that it changes is
        tagged, or the new order would change a result.
    """
    relation = parse_map(transform_map) if isinstance(transform_map, str) else transform_map
    if isinstance(relation, isl.BasicMap):
        relation = relation.to_map()
    names = [
        relation.get_dim_name(isl.dim_type.in_, k) for k in range(relation.dim(isl.dim_type.in_))
    ]
    if any(n is None for n in names):
        raise InvalidArgumentError("an input of the map is no iname", instead=_EXAMPLE)
    old: list[str] = [kernel.check_iname(n) for n in names]
    for name in sorted(set(_sets.names_of(relation)) - set(kernel.sizes)):
        kernel.check_iname(name)
    marks = marks_for(relation.dim(isl.dim_type.out))
    graph = _as_graph(relation, marks)
    new = _output_names(relation, old, graph)
    new = [(rename_after or {}).get(n, n) for n in new]
    return _mapped(kernel, old, new, graph, within)


def _mapped(
    kernel: Kernel,
    old: Sequence[str],
    new: Sequence[str],
    graph: isl.Set,
    within: str | Match | None,
) -> Change:
    marks = marks_for(len(new))
    kept = {n for n, m in zip(new, marks, strict=True) if n in old and _is_same(graph, n, m)}
    for iname in old:
        if iname not in kept:
            refuse_tagged(kernel, iname, "map")
    if set(old) == kept:
        raise IllegalTransformError("the map does not change any iname")
    for name in new:
        if name not in old:
            new_name(kernel, name, name)
    change, copies = isolated(kernel, [i for i in old if i not in kept], within, new)
    inputs = [copies.get(i, i) for i in old]
    outputs = list(new)
    if change.kernel is not kernel:
        outputs = [n if n in kept or n not in old else kernel.fresh_name(f"{n}_1") for n in new]
    graph = _sets.rename(graph, copies)
    return then(kernel, change, _without_kept(change.kernel, inputs, outputs, graph, kept))


def _without_kept(
    kernel: Kernel, old: Sequence[str], new: Sequence[str], graph: isl.Set, kept: set[str]
) -> Change:
    """Map what changes; inames that the map keeps are only put into its order."""
    marks = marks_for(len(new))
    given = {i for i in kept if i in kernel.iname_tags}
    if _stays_outside(kernel, old, new, kept):
        given = kept
    # What stays what it is, outside of all that changes, is a parameter of the map.
    stay = [m for n, m in zip(new, marks, strict=True) if n in given]
    graph = _sets.project_out(graph, stay)
    changed = {m: n for n, m in zip(new, marks, strict=True) if n not in given}
    inputs = tuple(i for i in old if i not in given)
    reindexing = Reindexing(inputs, tuple(changed.values()), tuple(changed), graph)
    return reindexed(kernel, reindexing, "map")


def _stays_outside(kernel: Kernel, old: Sequence[str], new: Sequence[str], kept: set[str]) -> bool:
    """Whether the inames that a map keeps are outside of the others, before and after."""
    orders = [list(new)]
    for path in kernel.paths.values():
        orders.append([iname for iname, _ in path if iname in old])
    return all(
        not any(later in kept for later in order[position:])
        for order in orders
        for position, name in enumerate(order)
        if name not in kept
    )


@transform
def affine_map_inames(
    kernel: Kernel,
    old_inames: kind.Names,
    new_inames: kind.Names,
    equations: kind.Equations,
    *,
    unchecked: bool = False,
) -> Change:
    """Replace inames by others that are defined by affine equations.

    Before: for i: for j: S(i, j)
    After (``"i, j", "u, v", ["u = i + j", "v = i - j"]``): for u: for v:
    S((u + v)//2, (u - v)//2)

    :arg equations: texts such as ``"u = i + j"``, or pairs of expressions.
    :arg old_inames, new_inames: names; all of the new ones must be free.
    :raises IllegalTransformError: as for :func:`map_domain`.
    """
    old, new = inames_in(kernel, old_inames), kind.names_in(new_inames)
    for name in new:
        new_name(kernel, name, name)
    graph = _sets.universe()
    for left, right in equations:
        try:
            graph = graph & _sets.condition_set(prim.Comparison(left, "==", right))
        except _sets.NotAffineError:
            raise InvalidArgumentError(
                f"the equation {to_text(left)} = {to_text(right)} is not affine"
            ) from None
    marks = dict(zip(new, marks_for(len(new)), strict=True))
    return _mapped(kernel, old, new, _sets.rename(graph, marks), None)


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
    """Combine nested loops into one loop over all their iterations.

    Before: for i: for j in [0, 16): S(i, j)
    After (``["i", "j"]``): for j_and_i: S(j_and_i // 16, j_and_i % 16)

    Where a length but the first is a size, the loop counts to a size that is computed, and
    that no call passes:

    Before: for i in [0, n): for j in [0, m): S(i, j)
    After: for j_and_i in [0, n_m): S(j_and_i // m, j_and_i % m), with n_m = n*m

    Loops whose bounds depend on the joined inames, such as the inner loops of partial tiles, then
    cover all values that they ever take, with guards inside.

    :arg inames: the last one varies fastest.  Where lengths are sizes, their values may not
        hang on other inames, nor on each other.
    :arg new_iname: by default their names, the fastest first, joined by ``_and_``.
    :arg tag: see :func:`tag_inames`.
    :arg within: a match string: only around these statements, which gives them
        loops of their own.
    :raises IllegalTransformError: where data or other inames bound a loop, an iname is tagged
        (unless all are ``l.auto``, which the new one is then), or a statement is inside of some
        of the inames only.
    """
    old = inames_in(kernel, inames)
    if old and all(isinstance(kernel.iname_tags.get(i), LocalAuto) for i in old):
        plain = Change(with_tags(kernel, dict.fromkeys(old)))
        change = _all_joined(plain.kernel, old, new_iname, tag, within)
        if tag is None:  # what the threads are to share, once it is known which there are
            (joined,) = set(change.kernel.all_inames).difference(kernel.all_inames)
            tags = (*change.kernel.tags, (joined, LocalAuto()))
            change = replace(change, kernel=settled_tree(change.kernel.with_(tags=tags)))
        return Change(change.kernel, parts=(plain, *(change.parts or (change,))))
    for iname in old:
        refuse_tagged(kernel, iname, "join")
    return _all_joined(kernel, old, new_iname, tag, within)


def _all_joined(
    kernel: Kernel,
    old: tuple[str, ...],
    new_iname: str | None,
    tag: str | Tag | None,
    within: str | Match | None,
) -> Change:
    if len(set(old)) < 2 or len(set(old)) < len(old):
        raise InvalidArgumentError("joining takes two or more different inames")
    first, names = isolated(kernel, old, within)
    joined = new_name(kernel, new_iname, "_and_".join(reversed(old)))
    inames = tuple(names.values())
    parsed = parse_tag(tag)
    tags = {} if parsed is None else {joined: parsed}
    extents = [
        extent_or(first.kernel, i, f"iname '{i}' has no bounds that depend on sizes alone")
        for i in inames
    ]
    if all(isinstance(length, int) for _, length in extents[1:]):
        change = then(kernel, first, _joined(first.kernel, inames, extents, joined))
        return replace(change, kernel=with_tags(change.kernel, tags)) if tags else change
    for statement in first.kernel.statements:
        some, others = (
            [i for i in inames if (i in statement.inames) == inside] for inside in (True, False)
        )
        if some and others:
            raise IllegalTransformError(
                f"cannot join {', '.join(old)}: statement '{statement.id}' is inside some of the "
                f"loops only, '{some[0]}' and not '{others[0]}', and loops can be joined only "
                "where each is directly inside the previous one"
            )
    nested = in_order(first.kernel, _adjacent(first.kernel, inames))
    lows, lengths = zip(*extents, strict=True)
    apart = renumbering.apart(nested.kernel, inames)
    counted = renumbering.joined(apart.kernel, inames, lows, lengths, joined)
    short = renumbering.with_short_subscripts(counted.kernel, [joined])
    last = replace(short, kernel=with_tags(short.kernel, tags)) if tags else short
    return Change(last.kernel, parts=(first, nested, apart, counted, last))


def _adjacent(kernel: Kernel, inames: tuple[str, ...]) -> list[str]:
    """The loops around statements, with some of them one directly inside the other, in order."""
    found: list[str] = []
    path = max(kernel.paths.values(), key=lambda p: len({*inames} & {*path_inames(p)}))
    for iname in path_inames(path):
        if iname not in inames:
            found.append(iname)
        elif not {*found} & {*inames}:
            found += inames
    return found


def _joined(
    kernel: Kernel,
    old: tuple[str, ...],
    extents: Sequence[tuple[Expression, Expression]],
    joined: str,
) -> Change:
    [mark] = marks_for(1)
    total: list[Expression] = []
    conditions: list[Expression] = []
    inverse: dict[str, Expression] = {}
    stride = 1
    for iname, (low, length) in reversed([*zip(old, extents, strict=True)]):
        at = offset(prim.Variable(iname), low)
        total.insert(0, prim.Product((stride, at)))
        quotient = prim.FloorDiv(prim.Variable(joined), stride)
        if iname == old[0]:
            inverse[iname] = simplify(prim.Sum((quotient, low)))
        else:
            assert isinstance(length, int)
            conditions += [prim.Comparison(at, ">=", 0), prim.Comparison(at, "<", length)]
            inverse[iname] = simplify(prim.Sum((prim.Remainder(quotient, length), low)))
            stride *= length
    whole = prim.Comparison(prim.Variable(mark), "==", prim.Sum(tuple(total)))
    graph = _sets.condition_set(prim.LogicalAnd((whole, *conditions)))
    return reindexed(kernel, Reindexing(old, (joined,), (mark,), graph), "join", inverse)
