"""Splitting of one loop into two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change, Chunked
from loopkit._kernel import Kernel
from loopkit._match import Match
from loopkit._nodes import Expression
from loopkit._slabs import with_slabs
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit._tree import Path
from loopkit.transforms import _common
from loopkit.transforms import _reindex as renumbering
from loopkit.transforms._loop_nests import extent_or, offset, replace_inames
from loopkit.transforms.duplicate import isolated
from loopkit.transforms.slabs import check_peeled
from loopkit.transforms.tag import with_tags


@dataclass(frozen=True)
class _Division:
    """An iname as ``value``, which is made of two others.

    These lie in ``box``; with ``box_is_all`` that alone says which values they have.
    """

    value: Expression
    box: isl.Set
    box_is_all: bool = False


Divide = Callable[[Kernel, str, str, str], _Division | Chunked]


def _divided(
    kernel: Kernel,
    iname: str,
    divide: Divide,
    verb: str,
    names: tuple[str | None, str | None],
    tags: tuple[kind.TagLike, kind.TagLike],
    slabs: Sequence[int],
    within: str | Match | None,
) -> Change:
    """A loop divided as ``divide(kernel, iname, outer, inner)`` says."""
    kernel.check_iname(iname)
    _common.refuse_tagged(kernel, iname, verb)
    change, inames = isolated(kernel, [iname], within)
    outer = _common.new_name(change.kernel, names[0], f"{iname}_outer")
    inner = _common.new_name(change.kernel, names[1], f"{iname}_inner", [outer])
    division = divide(change.kernel, inames[iname], outer, inner)
    parts: tuple[Change, ...] = ()
    if isinstance(division, Chunked):
        cut = renumbering.renumbered(change.kernel, division)
        parts = (change, cut)
        change = renumbering.with_short_subscripts(cut.kernel, [outer, inner])
    else:
        replaced = _replaced(change.kernel, inames[iname], outer, inner, division)
        change = _common.then(kernel, change, replaced)
    parsed = {i: parse_tag(t) for i, t in zip((outer, inner), tags, strict=True)}
    given = {i: t for i, t in parsed.items() if t is not None}
    if given:
        change = replace(change, kernel=with_tags(change.kernel, given))
    first, last = slabs
    if first or last:
        check_peeled(change.kernel, outer, first, last)
        change = replace(change, kernel=with_slabs(change.kernel, {outer: (first, last)}))
    return Change(change.kernel, parts=(*parts, change)) if parts else change


def _replaced(kernel: Kernel, iname: str, outer: str, inner: str, division: _Division) -> Change:
    """``iname`` replaced by two inames; see :func:`replace_inames`."""
    ids, new = _common.statements_with(kernel, [iname]), [outer, inner]
    graph = _sets.condition_set(prim.Comparison(prim.Variable(iname), "==", division.value))
    box, is_all = division.box, division.box_is_all
    domains = replace_inames(kernel, [iname], new, graph, box, box_is_all=is_all)

    def longer(id_: str, path: Path) -> Path:
        parts = (((outer, n), (inner, n)) if i == iname else ((i, n),) for i, n in path)
        return tuple(key for part in parts for key in part)

    values = {iname: division.value}
    by_id = dict.fromkeys(ids, values)
    change = _common.with_inames(kernel, by_id, new, longer, domains=domains)
    return replace(change, kernel=_common.simplified(change.kernel, ids))


def _between(low: Expression, name: str, high: Expression) -> isl.Set:
    """``low <= name < high``."""
    variable = prim.Variable(name)
    above = prim.Comparison(low, "<=", variable)
    return _sets.condition_set(prim.LogicalAnd((above, prim.Comparison(variable, "<", high))))


@transform
def split_iname(
    kernel: Kernel,
    split_iname: kind.Name,
    inner_length: kind.Positive,
    *,
    outer_iname: kind.NewName = None,
    inner_iname: kind.NewName = None,
    outer_tag: kind.TagLike = None,
    inner_tag: kind.TagLike = None,
    slabs: kind.Counts = (0, 0),
    within: kind.Within = None,
    unchecked: bool = False,
) -> Change:
    """Split a loop in two.

    Before: for i: S(i)        After: for i_outer: for i_inner: S(16*i_outer + i_inner)

    Tiles start at multiples of ``inner_length``, whatever the loop's bounds are.

    :arg split_iname: the iname.
    :arg inner_length: the length of the inner loop, a positive integer.
    :arg outer_iname: the new outer iname; ``<iname>_outer`` if not given.
    :arg inner_iname: the new inner iname; ``<iname>_inner`` if not given.
    :arg outer_tag: see :func:`tag_inames`.
    :arg inner_tag: see :func:`tag_inames`.
    :arg slabs: ``(first, last)``: that many iterations of the outer loop get code
        of their own, so that the rest needs no guards.  They are peeled during code
        generation, so that later steps see one loop; ``peel_iname(outer)`` does it at once.
    :arg within: a match string: split only around these statements, which gives
        them a loop of their own.
    :raises IllegalTransformError: where the iname is tagged already, or the tags of the parts
        are not possible or would change a result.
    """

    def divide(current: Kernel, iname: str, outer: str, inner: str) -> _Division:
        product: Expression = prim.Variable(outer)
        if inner_length > 1:
            product = prim.Product((inner_length, product))
        value = prim.Sum((product, prim.Variable(inner)))
        return _Division(value, _between(0, inner, inner_length))

    names, tags = (outer_iname, inner_iname), (outer_tag, inner_tag)
    return _divided(kernel, split_iname, divide, "split", names, tags, slabs, within)


@transform
def chunk_iname(
    kernel: Kernel,
    split_iname: kind.Name,
    num_chunks: kind.Positive,
    outer_iname: kind.NewName = None,
    inner_iname: kind.NewName = None,
    outer_tag: kind.TagLike = None,
    inner_tag: kind.TagLike = None,
    slabs: kind.Counts = (0, 0),
    within: kind.Within = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Split a loop into a number of chunks whose lengths differ by at most one.

    Before: for i in [0, 10): S(i)
    After (3 chunks): for i_outer in [0, 3): for i_inner in [0, 4 or 3):
    S(3*i_outer + min(i_outer, 1) + i_inner)

    Longer chunks come first.  Of a length ``n`` that is a size, a chunk has ``n // 3`` iterations
    or one more, and ``n % 3`` chunks are longer.  ``outer_iname``, ``inner_iname``, ``outer_tag``,
    ``inner_tag``, ``slabs``, ``do_tagged_check`` and ``within`` are those of
    :func:`split_iname`.

    :arg num_chunks: a positive integer.
    :raises IllegalTransformError: where data or other inames bound the loop, or the iname is
        tagged.
    """
    names, tags = (outer_iname, inner_iname), (outer_tag, inner_tag)
    divide = partial(_chunks, num_chunks)
    return _divided(kernel, split_iname, divide, "chunk", names, tags, slabs, within)


def _chunks(chunks: int, kernel: Kernel, iname: str, outer: str, inner: str) -> _Division | Chunked:
    ends = _constant_range(kernel, iname)
    if ends is None:
        found = extent_or(
            kernel,
            iname,
            f"loop '{iname}' cannot be cut into chunks: its length does not follow from the sizes",
            f"split_iname('{iname}', length) takes any loop",
        )
        return Chunked(iname, *found, chunks, outer, inner)
    low, high = ends
    short, longer = divmod(high - low + 1, chunks)
    chunk, rest = prim.Variable(outer), prim.Variable(inner)
    terms: list[Expression] = [prim.Product((short, chunk))] if short > 1 else []
    terms += [chunk] if short == 1 else []
    terms += [prim.Min((chunk, longer))] if longer else []
    terms += [rest] + ([low] if low else [])
    value = prim.Sum(tuple(terms)) if len(terms) > 1 else terms[0]
    # Longer chunks: the quotient is 1 where i_outer < longer, else 0.
    extra = prim.FloorDiv(offset(longer - 1 + chunks, chunk), chunks)
    length: Expression = prim.Sum((short, extra)) if longer else short
    home = kernel.domains[kernel.home_domain[iname]]
    every = _between(low, iname, high + 1) & _sets.project_out(home.set, [iname])
    is_all = home.inames == (iname,) and every.is_subset(home.set)
    return _Division(value, _between(0, outer, chunks) & _between(0, inner, length), is_all)


def _constant_range(kernel: Kernel, iname: str) -> tuple[int, int] | None:
    """The first and the last value of a loop; None where they are not the same for all sizes."""
    domain = kernel.domain_of([iname]) & kernel.assumptions.set
    low, high = _sets.value_range(domain, prim.Variable(iname))
    context = _sets.project_out(domain, [iname])
    if low is not None and high is not None and not domain.is_empty():
        ends = (_sets.project_out(domain & _sets.equality(iname, e), [iname]) for e in (low, high))
        if all(context.is_subset(end) for end in ends):
            return low, high
    return None
